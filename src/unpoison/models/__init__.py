"""Encoders, generators, readers, NLI models, each behind a one-method protocol; prompts.

The names below are imported when they are first used; an adapter imports its library when it is made.
"""

from __future__ import annotations

from unpoison.utils.extras import lazy_names

_HOMES = {
    "AnswerNLI": "lexical",
    "AnthropicGenerator": "anthropic",
    "CachedEncoder": "cache",
    "CachedGenerator": "cache",
    "CrossEncoder": "protocols",
    "CrossEncoderNLI": "classifiers",
    "CrossEncoderScorer": "classifiers",
    "Encoder": "protocols",
    "ExtractiveReader": "extractive",
    "FakeEncoder": "doubles",
    "FakeNLI": "doubles",
    "FunctionGenerator": "loading",
    "Generator": "protocols",
    "InjectionClassifier": "protocols",
    "LexicalEncoder": "lexical",
    "LexicalNLI": "lexical",
    "Models": "protocols",
    "NLIModel": "protocols",
    "OpenAIEncoder": "openai",
    "OpenAIGenerator": "openai",
    "Reader": "reader",
    "Reading": "passage_reader",
    "ScriptedGenerator": "doubles",
    "SentenceTransformerEncoder": "sentence_transformers",
    "TokenByToken": "protocols",
    "TransformersGenerator": "transformers",
    "best_reader": "loading",
    "load_cross_encoder": "loading",
    "load_encoder": "loading",
    "load_generator": "loading",
    "load_nli": "loading",
    "minilm": "sentence_transformers",
}

__all__ = list(_HOMES)


__getattr__ = lazy_names(__name__, _HOMES)
