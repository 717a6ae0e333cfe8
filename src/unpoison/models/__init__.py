"""Encoders, generators, readers, NLI models, each behind a one-method protocol; prompts.

The names below are imported when they are first used; an adapter imports its library when it is made.
"""

from __future__ import annotations

from unpoison.utils.extras import lazy_names

_HOMES = {
    "anthropic": "AnthropicGenerator",
    "cache": "CachedEncoder CachedGenerator",
    "classifiers": "CrossEncoderNLI CrossEncoderScorer",
    "doubles": "FakeEncoder FakeNLI ScriptedGenerator",
    "extractive": "ExtractiveReader",
    "lexical": "AnswerNLI LexicalEncoder LexicalNLI",
    "loading": "FunctionGenerator best_reader load_cross_encoder load_encoder load_generator load_nli",
    "openai": "OpenAIEncoder OpenAIGenerator",
    "passage_reader": "Reading",
    "protocols": "CrossEncoder Encoder Generator InjectionClassifier Models NLIModel TokenByToken",
    "reader": "Reader",
    "sentence_transformers": "SentenceTransformerEncoder minilm",
    "transformers": "TransformersGenerator",
}

__all__ = [name for names in _HOMES.values() for name in names.split()]


__getattr__ = lazy_names(__name__, _HOMES)
