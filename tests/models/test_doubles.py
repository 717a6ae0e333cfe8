"""The shipped test doubles."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from unpoison.core.answers import Reply
from unpoison.errors import ModelError, OptionError
from unpoison.models import FakeEncoder, FakeNLI, ScriptedGenerator
from unpoison.models.prompts import answer_prompt

PROMPT = answer_prompt("Where?", ["Here."])


def prompts(count):
    return [answer_prompt(f"Which is number {i}?", ["text"]) for i in range(count)]


def test_given_vectors_are_scaled_to_length_one_and_a_missing_text_is_an_error():
    encoder = FakeEncoder({"a": [3, 4], "b": [0, 0]})
    assert np.allclose(encoder.encode(["a", "b"]), [[0.6, 0.8], [0, 0]])
    with pytest.raises(ModelError, match="no vector for 'c'"):
        encoder.encode(["a", "c"])
    with pytest.raises(OptionError, match="dimensions"):
        FakeEncoder(dimensions=0)


def test_judgements_come_from_a_mapping_a_function_or_equality():
    table = {("a", "b"): "entailment", ("b", "a"): (0.2, 0.3, 0.5)}
    judged = FakeNLI(table, otherwise="contradiction").judge([("a", "b"), ("b", "a"), ("x", "y")])
    assert np.array_equal(judged, [[1, 0, 0], [0.2, 0.3, 0.5], [0, 0, 1]])
    assert np.array_equal(FakeNLI().judge([("a", "a"), ("a", "b")]), [[1, 0, 0], [0, 1, 0]])
    assert np.array_equal(FakeNLI(lambda p, h: "contradiction").judge([("a", "a")]), [[0, 0, 1]])
    assert FakeNLI().judge([]).shape == (0, 3)
    asked = FakeNLI()
    asked.judge([("a", "b")])
    asked.judge([])
    assert asked.calls == [(("a", "b"),), ()]
    with pytest.raises(ModelError, match="'entails'"):
        FakeNLI(lambda p, h: "entails").judge([("a", "a")])


def test_one_text_answers_everything_and_a_sequence_is_used_up():
    same = ScriptedGenerator("Paris")
    assert [same.generate(p).text for p in prompts(3)] == ["Paris"] * 3
    turns = ScriptedGenerator(["one", Reply("two", finish="length"), ModelError("three")])
    assert turns.generate(PROMPT).text == "one"
    assert turns.generate(PROMPT) == Reply("two", finish="length")
    with pytest.raises(ModelError, match="three"):
        turns.generate(PROMPT)
    with pytest.raises(ModelError, match="only 3 replies"):
        turns.generate(PROMPT)
    assert turns.prompts == [PROMPT] * 4


def test_a_reply_that_takes_too_long_fails_as_a_server_would():
    generator = ScriptedGenerator("Paris", seconds=5)
    with pytest.raises(ModelError, match=r"within 0\.01 s") as caught:
        generator.generate(PROMPT, timeout=0.01)
    assert caught.value.retryable
    with pytest.raises(ModelError, match=r"within 0\.01 s"):
        asyncio.run(generator.agenerate(PROMPT, timeout=0.01))


def test_without_vectors_equal_texts_are_alike_and_others_are_not():
    encoder = FakeEncoder()
    vectors = encoder.encode(["a", "a", "b", " "])
    assert vectors.shape == (4, 32) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 0])
    assert vectors[0] @ vectors[1] == pytest.approx(1) and abs(vectors[0] @ vectors[2]) < 0.9
    assert np.array_equal(vectors, FakeEncoder().encode(["a", "a", "b", " "]))
    assert FakeEncoder(dimensions=1).encode(["a"]).shape == (1, 1)
    assert (FakeEncoder({}).encode([]).shape, encoder.calls) == ((0, 1), [("a", "a", "b", " ")])


def test_the_first_key_in_the_prompt_decides_and_none_is_an_error():
    generator = ScriptedGenerator({"is number 1": "one", "is number": "some"})
    assert [generator.generate(p).text for p in prompts(2)] == ["some", "one"]
    with pytest.raises(ModelError, match=r"no key of the script is in the prompt .*; add one"):
        generator.generate(answer_prompt("Who?", ["They."]))


def test_a_reply_counts_words_as_tokens_and_may_take_as_long_as_it_is_given():
    generator = ScriptedGenerator("in Paris", seconds=0.01)
    reply = generator.generate(PROMPT, timeout=0.01)
    assert (reply.prompt_tokens, reply.completion_tokens) == (len(PROMPT.text().split()), 2)
    assert asyncio.run(generator.agenerate(PROMPT)) == reply
    assert (generator.most_in_flight, generator._in_flight) == (1, 0)


def test_as_many_calls_are_counted_as_are_under_way():
    generator = ScriptedGenerator("x", seconds=0.05)

    async def both():
        await asyncio.gather(*(generator.agenerate(p) for p in prompts(3)))

    asyncio.run(both())
    generator.generate(PROMPT)
    assert (generator.most_in_flight, generator._in_flight, len(generator.prompts)) == (3, 0, 4)
