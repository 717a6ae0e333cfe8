"""Model strings to models: what `-e`, `-g` and `--nli` take, and what every constructor takes in place of a model."""

from __future__ import annotations

from unpoison.errors import OptionError, shown
from unpoison.models.protocols import Encoder, Generator, NLIModel

__all__ = ["load_encoder", "load_generator", "load_nli"]


def load_encoder(spec: str) -> Encoder:
    """`lexical`, `minilm`, `st:NAME_OR_PATH`, `onnx:PATH` or `openai:MODEL`.

    Raises:
        OptionError: No such form.
        MissingExtraError: The form needs an extra that is not installed.
    """
    kind, _, name = spec.partition(":")
    if kind == "lexical" and not name:
        from unpoison.models.lexical import LexicalEncoder

        return LexicalEncoder()
    if kind == "minilm" and not name:
        from unpoison.models.sentence_transformers import minilm

        return minilm()
    if kind == "st" and name:
        from unpoison.models.sentence_transformers import SentenceTransformerEncoder

        return SentenceTransformerEncoder(name)
    if kind == "onnx" and name:
        from unpoison.models.onnx import OnnxEncoder

        return OnnxEncoder(name)
    if kind == "openai" and name:
        from unpoison.models.openai import OpenAIEncoder

        return OpenAIEncoder(name)
    raise OptionError(f"no encoder {shown(spec)}; use lexical, minilm, st:NAME_OR_PATH, onnx:PATH or openai:MODEL")


def load_generator(spec: str) -> Generator:
    """`extractive`, `openai:MODEL`, `anthropic:MODEL` or `hf:NAME_OR_PATH`.

    Raises:
        OptionError: No such form.
        MissingExtraError: The form needs an extra that is not installed.
    """
    kind, _, name = spec.partition(":")
    if kind == "extractive" and not name:
        from unpoison.models.extractive import ExtractiveReader

        return ExtractiveReader()
    if kind == "openai" and name:
        from unpoison.models.openai import OpenAIGenerator

        return OpenAIGenerator(name)
    if kind == "anthropic" and name:
        from unpoison.models.anthropic import AnthropicGenerator

        return AnthropicGenerator(name)
    if kind == "hf" and name:
        from unpoison.models.transformers import TransformersGenerator

        return TransformersGenerator(name)
    raise OptionError(f"no generator {shown(spec)}; use extractive, openai:MODEL, anthropic:MODEL or hf:NAME_OR_PATH")


def load_nli(spec: str) -> NLIModel:
    """`lexical`, `cross:NAME_OR_PATH` (torch) or `onnx:PATH`.

    Raises:
        OptionError: No such form.
        MissingExtraError: The form needs an extra that is not installed.
    """
    kind, _, name = spec.partition(":")
    if kind == "lexical" and not name:
        from unpoison.models.lexical_nli import LexicalNLI

        return LexicalNLI()
    if kind == "cross" and name:
        from unpoison.models.cross_encoders import CrossEncoderNLI

        return CrossEncoderNLI(name)
    if kind == "onnx" and name:
        from unpoison.models.onnx import OnnxNLI

        return OnnxNLI(name)
    raise OptionError(f"no NLI model {shown(spec)}; use lexical, cross:NAME_OR_PATH or onnx:PATH")
