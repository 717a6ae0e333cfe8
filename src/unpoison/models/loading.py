"""Creates models from strings: the values of `-e`, `-g` and `--nli`, accepted by every constructor.

A string may have options of the class: `openai:o4-mini,temperature=none`. Other packages register models with an entry
point in `unpoison.encoders`, `unpoison.generators`, `unpoison.nli` or `unpoison.cross_encoders`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any, TypeAlias, TypeVar, cast

from unpoison.core.answers import Reply
from unpoison.core.registry import entry_point, names, read_options, split_options
from unpoison.errors import ModelError, OptionError, clip, nearest
from unpoison.models.prompts import Message, Prompt
from unpoison.models.protocols import CrossEncoder, Encoder, Generator, Models, NLIModel
from unpoison.utils.threads import on_thread

__all__ = [
    "FunctionGenerator", "GeneratorFunction", "answer_judge", "as_generator", "best_reader", "can_write",
    "load_best_reader", "load_cross_encoder", "load_encoder", "load_generator", "load_models", "load_nli",
]  # fmt: skip

T = TypeVar("T")

GeneratorFunction: TypeAlias = Callable[[list[Message]], str | Reply | Awaitable[str | Reply]]
"""A function from chat messages to text, for `FunctionGenerator`."""

ENCODERS = {
    "lexical": "lexical:LexicalEncoder",
    "minilm": "sentence_transformers:minilm",
    "st:NAME_OR_PATH": "sentence_transformers:SentenceTransformerEncoder",
    "openai:MODEL": "openai:OpenAIEncoder",
}
MULTILINGUAL = "reader-multilingual"

READERS = {
    "reader": "unpoison_reader",
    "reader-base": "unpoison_reader_base",
    MULTILINGUAL: "unpoison_reader_multilingual",
}
"""The readers with weights in packages, and these packages."""

GENERATORS = {
    **dict.fromkeys(READERS, "reader:load_reader"),
    "qa:NAME_OR_PATH": "reader:Reader",
    "extractive": "extractive:ExtractiveReader",
    "openai:MODEL": "openai:OpenAIGenerator",
    "anthropic:MODEL": "anthropic:AnthropicGenerator",
    "hf:NAME_OR_PATH": "transformers:TransformersGenerator",
}
NLI_MODELS = {
    **dict.fromkeys(READERS, "reader:load_reader"),
    "answers": "lexical:AnswerNLI",
    "lexical": "lexical:LexicalNLI",
    "cross:NAME_OR_PATH": "classifiers:CrossEncoderNLI",
}
CROSS_ENCODERS = {"cross:NAME_OR_PATH": "classifiers:CrossEncoderScorer"}


def load_encoder(spec: str) -> Encoder:
    """`lexical`, `minilm`, `st:NAME_OR_PATH` or `openai:MODEL`.

    As in the papers: `st:facebook/contriever,similarity=dot`, `st:...,pooling=cls`, `st:...,query_encoder=NAME`.

    Raises:
        OptionError: No such form, or an option that the model does not have.
        MissingExtraError: The form needs an extra that is not installed.
    """
    return _load("encoder", "encoders", spec, ENCODERS)  # type: ignore[no-any-return]


def load_generator(spec: str) -> Generator:
    """`reader`, `reader-base`, `qa:NAME_OR_PATH`, `extractive`, `openai:MODEL`, `anthropic:MODEL` or `hf:NAME_OR_PATH`.

    Raises:
        OptionError: No such form, or an option that the model does not have.
        MissingExtraError: The form needs an extra that is not installed.
    """
    return _load("generator", "generators", spec, GENERATORS)  # type: ignore[no-any-return]


class FunctionGenerator:
    """A generator from a function from chat messages to text.

        generator = FunctionGenerator(lambda messages: my_model(messages[-1]["content"]))

    The function is called from several threads concurrently, or awaited if it is asynchronous. `TimeoutError` and
    `ConnectionError` are retried; any other exception ends the answer with a `ModelError`.

    Args:
        function: Takes messages, `[{"role": "system", "content": ...}, {"role": "user", ...}]`, and returns the text
            or a `Reply`; may be `async def`.
        name: Its name in records of calls and in caches; None for the function's name.
    """

    def __init__(self, function: GeneratorFunction, *, name: str | None = None) -> None:
        self.name = name or f"function:{getattr(function, '__name__', type(function).__name__)}"
        self._function = function

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The result of the function; only an asynchronous one is cancelled after `timeout` seconds.

        Raises:
            ModelError: It returned neither a string nor a `Reply`.
        """
        result = self._function(prompt.messages())
        return self._reply(asyncio.run(_await_result(result, timeout)) if inspect.isawaitable(result) else result)

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate` for asyncio; a synchronous function runs on a thread."""
        if inspect.iscoroutinefunction(self._function):
            return self._reply(await _await_result(self._function(prompt.messages()), timeout))
        return await on_thread(lambda: self.generate(prompt, timeout=timeout))

    def _reply(self, result: object) -> Reply:
        if isinstance(result, str):
            return Reply(result)
        if not isinstance(result, Reply):
            raise ModelError(f"{self.name} must return a string or a Reply, got {clip(result)}")
        return result

    def __repr__(self) -> str:
        return f"FunctionGenerator({self.name!r})"


async def _await_result(result: Awaitable[Any], timeout: float | None) -> Any:
    async with asyncio.timeout(timeout):
        return await result


def as_generator(generator: Generator | GeneratorFunction | str | None) -> Generator | None:
    """Convert an object, a string (`load_generator`), or a function from messages to text to a generator.

    Raises:
        OptionError: As `load_generator`, or an unsupported object.
        MissingExtraError: The form needs an extra that is not installed.
    """
    if generator is None or isinstance(generator, str):
        return None if generator is None else load_generator(generator)
    if callable(getattr(generator, "generate", None)) and not isinstance(generator, type):
        return cast(Generator, generator)
    if not callable(generator) or isinstance(generator, type):
        raise OptionError(
            f"generator must be a string such as 'extractive', a function from messages to text, or an object "
            f"with generate, got {clip(generator)}"
        )
    return FunctionGenerator(generator)


def load_nli(spec: str) -> NLIModel:
    """`reader`, `reader-base`, `answers` (for answers to one question), `lexical`, `cross:NAME_OR_PATH`.

    Raises:
        OptionError: No such form, or an option that the model does not have.
        MissingExtraError: The form needs an extra that is not installed.
    """
    return _load("NLI model", "nli", spec, NLI_MODELS)  # type: ignore[no-any-return]


def load_cross_encoder(spec: str) -> CrossEncoder:
    """`cross:NAME_OR_PATH` (torch), any reranker.

    Raises:
        OptionError: No such form, or an option that the model does not have.
        MissingExtraError: The form needs an extra that is not installed.
    """
    return _load("cross-encoder", "cross_encoders", spec, CROSS_ENCODERS)  # type: ignore[no-any-return]


KINDS: dict[str, tuple[Callable[[str], Any] | None, str]] = {
    "encoder": (load_encoder, "encode"),
    "nli": (load_nli, "judge"),
    "cross_encoder": (load_cross_encoder, "score"),
    "language_model": (load_generator, "logprobs"),
    "injection": (None, "probabilities"),
}
"""Kind of model -> what loads one by its string, and its required method."""


def load_models(**given: Any) -> Models:
    """The models of a defense, each given as an object, a string, or None.

    Args:
        given: By the names of `Models`; a generator may also be a function from messages to text.

    Raises:
        OptionError: An unknown string, or a language model without log-probabilities.
        MissingExtraError: A required extra is not installed.
    """
    models = {**given, "generator": as_generator(given.get("generator"))}
    for name, (load, method) in KINDS.items():
        model = given.get(name)
        models[name] = model = load(model) if load is not None and isinstance(model, str) else model
        if isinstance(model, type) or (model is not None and not callable(getattr(model, method, None))):
            fix = "; use hf:NAME_OR_PATH" if name == "language_model" else ""
            raise OptionError(
                f"{name} must be a string or an object with a method {method}, which no class and no function is, got "
                f"{clip(given[name])}{fix}"
            )
    return Models(**models)


def best_reader() -> str:
    """The default generator without a language model: the first installed one of `READERS`, else `extractive`."""
    runs = find_spec("onnxruntime") and find_spec("tokenizers")
    return next((name for name, package in READERS.items() if runs and find_spec(package)), "extractive")


def load_best_reader(wanted: bool | None = None) -> Generator | None:
    """The installed reader; with `wanted` None only if one is installed, with False none.

    Raises:
        MissingExtraError: `wanted` is true, and no reader is installed.
    """
    name = best_reader()
    if wanted is False or (wanted is None and name == "extractive"):
        return None
    return load_generator("reader" if name == "extractive" else name)


def answer_judge(nli: NLIModel | str | None, generator: Generator | str | None) -> NLIModel | str:
    """The judge of contradictions between answers: the given one, else a default for the generator.

    The bare names, dates and numbers of a reader are judged by the reader itself, statements of a language model by the
    lexical judge.
    """
    if nli is not None:
        return nli
    name = generator if isinstance(generator, str) else getattr(generator, "name", "")
    kind = _kind(name)
    return kind if kind in READERS else "answers" if kind == "qa" else "lexical"


def can_write(generator: Generator | str) -> bool:
    """Whether a generator, or the one of this name, writes its own texts; readers only copy."""
    name = generator if isinstance(generator, str) else generator.name
    return _kind(name) not in (*READERS, "extractive", "qa", "fid")


def _kind(name: str) -> str:
    """The kind of a model string: "reader" of "reader,threshold=0.9"."""
    return name.partition(":")[0].partition(",")[0]


def _load(what: str, group: str, spec: str, forms: dict[str, str]) -> Any:
    """The model of a string, `kind`, `kind,option=value` or `kind:MODEL,option=value`, built in or of another package.

    Raises:
        OptionError: No such form, an unknown option, or a missing model name.
    """
    kind, _, rest = spec.partition(":")
    kind, comma, bare = kind.partition(",")
    kinds = [form.partition(":")[0] for form in forms]
    offered = [name for name in names(group) if name not in kinds]
    homes = [home for form, home in forms.items() if form.partition(":")[0] == kind and bool(rest) == (":" in form)]
    if not homes and kind not in offered:
        meant = nearest(kind, [*kinds, *offered])
        raise OptionError(f"no {what} {clip(spec)}; {meant}use {', '.join([*forms, *offered])}")
    target = resolve_name(f"unpoison.models.{homes[0]}") if homes else entry_point(group, kind)
    model, _, texts = rest.partition(",")
    owner = f"{kind}:{model}".strip(":")
    options = read_options(target, split_options(bare or texts, spec), owner) if comma or texts else {}
    try:
        return target(*([model] if rest else [kind] if kind in READERS else []), **options)
    except TypeError as error:
        if homes:
            raise
        raise OptionError(f"{clip(spec)} cannot be created: {error}; see the documentation of its package") from error
