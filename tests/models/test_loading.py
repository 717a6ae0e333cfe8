from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from unpoison.core.answers import Reply
from unpoison.errors import ModelError, OptionError
from unpoison.models import (
    ExtractiveReader,
    FunctionGenerator,
    LexicalEncoder,
    LexicalNLI,
    ScriptedGenerator,
    load_encoder,
    load_generator,
    load_nli,
    loading,
)
from unpoison.models.lexical import AnswerNLI
from unpoison.models.loading import (
    answer_judge,
    as_generator,
    best_reader,
    can_write,
    load_best_reader,
    load_models,
)
from unpoison.models.prompts import Message, answer_prompt
from unpoison.models.protocols import AsyncGenerator, Models
from unpoison.models.requests import generate
from unpoison.runtime.driver import Limits, arun, run


def test_built_in_forms() -> None:
    assert isinstance(load_encoder("lexical"), LexicalEncoder)
    assert isinstance(load_generator("extractive"), ExtractiveReader)
    assert isinstance(load_nli("lexical"), LexicalNLI)


@pytest.mark.needs("openai")
def test_options_follow_the_models_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    plain, reasoning = load_generator("openai:m"), load_generator("openai:m,temperature=none,seed=7")
    assert plain.name != reasoning.name
    with pytest.raises(OptionError, match=r"has no option 'temprature'; did you mean 'temperature'\? it has: "):
        load_generator("openai:m,temprature=0")
    with pytest.raises(OptionError, match="max_tokens must be"):
        load_generator("openai:m,max_tokens=many")


@pytest.mark.needs("openai")
def test_keys_come_from_the_environment_only() -> None:
    with pytest.raises(OptionError, match="in the environment, such as OPENAI_API_KEY"):
        load_generator("openai:m,api_key=secret")


@pytest.mark.parametrize("spec", ["", "openai", "openai:", "extractive:x", "word2vec:x"])
def test_forms_that_do_not_exist(spec: str) -> None:
    listed = "use reader, reader-base, reader-multilingual, qa:NAME_OR_PATH, extractive, openai:MODEL"
    with pytest.raises(OptionError, match=listed):
        load_generator(spec)


PROMPT = answer_prompt("who?", ["Ann did it."])


def plain(messages: list[Message]) -> str:
    return f"{len(messages)} messages, the last from the {messages[-1]['role']}"


async def asynchronous(messages: list[Message]) -> str:
    await asyncio.sleep(0)
    return plain(messages)


@pytest.mark.parametrize("function", [plain, asynchronous])
def test_both_kinds_of_function_serve_both_kinds_of_call(function: object) -> None:
    generator = FunctionGenerator(function)
    assert isinstance(generator, AsyncGenerator)
    expected = Reply("2 messages, the last from the user")
    assert generator.generate(PROMPT) == expected
    assert asyncio.run(generator.agenerate(PROMPT)) == expected
    assert run(generate([PROMPT]), Models(generator=generator))[0] == [expected]
    assert asyncio.run(arun(generate([PROMPT]), Models(generator=generator)))[0] == [expected]


@pytest.mark.parametrize("result", [None, 3, b"bytes", ["text"]])
def test_anything_else_is_refused(result: object) -> None:
    with pytest.raises(ModelError, match="must return a string"):
        FunctionGenerator(lambda _: result).generate(PROMPT)


def test_an_asynchronous_function_is_stopped_at_its_timeout() -> None:
    async def forever(messages: list[Message]) -> str:
        await asyncio.sleep(3600)
        return ""

    generator = FunctionGenerator(forever)
    with pytest.raises(TimeoutError):
        generator.generate(PROMPT, timeout=0.01)
    with pytest.raises(ModelError, match=r"forever.*TimeoutError"):
        run(generate([PROMPT]), Models(generator=generator), Limits(timeout=0.01, retries=1, backoff=0.01))


class Encoding:
    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        return np.zeros((len(texts), 1))


def test_a_string_an_object_and_a_function_are_models() -> None:
    own = Encoding()
    models = load_models(encoder=own, nli="answers", generator=plain, cross_encoder=None)
    assert models.encoder is own
    assert isinstance(models.nli, AnswerNLI)
    assert models.generator is not None
    assert models.generator.name == "function:plain"
    assert models.cross_encoder is None
    assert as_generator(None) is None
    kept = ScriptedGenerator("x")
    assert as_generator(kept) is kept
    assert repr(as_generator(plain)) == "FunctionGenerator('function:plain')"
    assert FunctionGenerator(plain, name="mine").name == "mine"


@pytest.mark.parametrize("generator", [ScriptedGenerator, 5, [plain]])
def test_what_cannot_write_is_no_generator(generator: Any) -> None:
    with pytest.raises(OptionError, match=r"^generator must be a string such as 'extractive', a function"):
        as_generator(generator)


@pytest.mark.parametrize(
    ("name", "method", "given"),
    [
        ("encoder", "encode", Encoding),
        ("encoder", "encode", 5),
        ("nli", "judge", Encoding()),
        ("cross_encoder", "score", plain),
        ("injection", "probabilities", Encoding()),
    ],
)
def test_a_model_has_the_method_of_its_kind(name: str, method: str, given: Any) -> None:
    with pytest.raises(OptionError, match=f"^{name} must be a string or an object with a method {method}, "):
        load_models(**{name: given})


def test_a_language_model_tells_its_probabilities() -> None:
    with pytest.raises(OptionError, match=r"with a method logprobs, .*got .extractive.; use hf:NAME_OR_PATH"):
        load_models(language_model="extractive")


@pytest.mark.parametrize(
    ("generator", "judge"),
    [
        ("reader", "reader"),
        ("reader-base,threshold=0.9", "reader-base"),
        ("qa:folder", "answers"),
        ("openai:m", "lexical"),
        (None, "lexical"),
        (ScriptedGenerator("x"), "lexical"),
    ],
)
def test_a_reader_judges_its_own_answers(generator: Any, judge: str) -> None:
    assert answer_judge(None, generator) == judge
    assert answer_judge("lexical", generator) == "lexical"


def test_readers_copy_and_language_models_write() -> None:
    assert [can_write(name) for name in ("reader", "reader-base,threads=1", "extractive", "qa:x")] == [False] * 4
    assert can_write("openai:m")
    assert can_write(ScriptedGenerator("x"))


def test_no_reader_is_loaded_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_best_reader(False) is None
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    assert best_reader() == "extractive"
    assert load_best_reader(None) is None
    asked: list[str] = []
    monkeypatch.setattr(loading, "load_generator", asked.append)
    load_best_reader(True)
    assert asked == ["reader"]  # which says what to install
    monkeypatch.setattr(loading, "find_spec", lambda name: None if name == "unpoison_reader" else True)
    assert best_reader() == "reader-base"
