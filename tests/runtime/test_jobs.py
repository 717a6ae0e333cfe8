"""What a model gives is checked before a flow sees it: its type, shape, range and number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from model_doubles import FakeCrossEncoder
from runtime.runners import FAST, PROMPTS, Batched, Runner, Synchronous, both, raising
from unpoison import Guard
from unpoison.core.answers import Reply
from unpoison.errors import InputError, ModelError, OptionError
from unpoison.models import FakeEncoder, FakeNLI, FunctionGenerator, ScriptedGenerator
from unpoison.models.passage_reader import Reading
from unpoison.models.prompts import Prompt, answer_alone_prompt
from unpoison.models.protocols import Models
from unpoison.models.requests import (
    Classify,
    Compare,
    Encode,
    Flow,
    Generate,
    Judge,
    Likelihood,
    NextToken,
    Read,
    Relate,
    Retrieve,
    encode,
    generate,
    judge,
    likelihood,
)
from unpoison.runtime.driver import arun, run


class Model:
    """Returns the same object whatever it is asked."""

    name = "broken"

    def __init__(self, result: object) -> None:
        self.encode = self.judge = self.score = self.logprobs = lambda _: result


@both
def test_replies_stand_where_their_requests_stood(runner: Runner) -> None:
    def flow() -> Flow[tuple[Any, ...]]:
        replies = yield (
            Encode(("a", "b", "a")),
            Generate(tuple(PROMPTS[:3]), "one"),
            Judge((("a", "b"), ("b", "a"), ("a", "b"))),
            Compare((("a", "a"), ("a", "b"))),
            Generate((PROMPTS[2], PROMPTS[0]), "two"),
            Likelihood(("x", "y z", "x")),
        )
        assert (yield ()) == ()
        return replies

    class Language:
        name = "language"

        def logprobs(self, texts: Sequence[str], /) -> list[Any]:
            return [np.full(len(text), -1.0) for text in texts]

    scripted = ScriptedGenerator({f"item {i}?": f"answer {i}" for i in range(3)})
    models = Models(FakeEncoder(), scripted, FakeNLI(), FakeCrossEncoder(), Language())
    (vectors, first, judged, compared, second, likely), calls = runner(flow(), models)
    assert vectors.shape == (3, 32) and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert [reply.text for reply in first] == ["answer 0", "answer 1", "answer 2"]
    assert [reply.text for reply in second] == ["answer 2", "answer 0"]
    np.testing.assert_array_equal(judged, [[0, 1, 0]] * 3)
    np.testing.assert_array_equal(compared, [1, 0])
    assert [row.size for row in likely] == [1, 3, 1]
    kinds = ["encode", "generate", "generate", "generate", "judge", "compare", "generate", "generate", "likelihood"]
    assert [call.kind for call in calls] == kinds
    assert [call.purpose for call in calls if call.kind == "generate"] == ["one"] * 3 + ["two"] * 2
    assert [call.items for call in calls if call.kind in ("encode", "judge", "likelihood")] == [2, 2, 2]


@both
def test_nothing_asked_is_nothing_called(runner: Runner) -> None:
    def flow() -> Flow[tuple[Any, ...]]:
        return (yield Encode(()), Judge(()), Compare(()), Generate(()), Likelihood(()))

    models = Models(FakeEncoder(), ScriptedGenerator([]), FakeNLI(), FakeCrossEncoder(), Model(None))
    (vectors, judged, compared, replies, likely), calls = runner(flow(), models)
    assert (vectors.shape, judged.shape, compared.shape) == ((0, 1), (0, 3), (0,))
    assert (replies, likely, calls) == ([], [], ())
    assert runner(generate([]), Models(generator=Batched(lambda _: 1 / 0)))[0] == []


@both
def test_equal_prompts_are_asked_once_unless_their_bounds_differ(runner: Runner) -> None:
    scripted = ScriptedGenerator("yes")
    longer = Prompt("answer-alone", answer_alone_prompt("why").system, "why", max_tokens=999)
    prompts = [answer_alone_prompt("why"), answer_alone_prompt("who"), answer_alone_prompt("why"), longer]
    replies, calls = runner(generate(prompts), Models(generator=scripted))
    assert len(replies) == 4
    assert len(calls) == len(scripted.prompts) == 3


@both
@pytest.mark.parametrize("error", [ValueError("odd"), StopIteration("odd"), KeyError("odd"), ZeroDivisionError("odd")])
def test_an_exception_of_a_model_names_the_model(runner: Runner, error: Exception) -> None:
    for generator_made in (Synchronous(raising([error])), FunctionGenerator(raising([error]), name="plain")):
        with pytest.raises(ModelError, match=f"'plain' raised .*{type(error).__name__}.*odd") as caught:
            runner(generate(PROMPTS[:1]), Models(generator=generator_made), FAST)
        assert not caught.value.retryable


@both
def test_our_own_errors_pass_unchanged(runner: Runner) -> None:
    for error in (InputError("bad row"), OptionError("bad option")):
        with pytest.raises(type(error), match=r"^bad"):
            runner(generate(PROMPTS[:1]), Models(generator=Synchronous(raising([error]))), FAST)


@both
@pytest.mark.parametrize("result", [None, 3, b"text", ["text"], Reply(None)])  # type: ignore[arg-type]
def test_a_reply_that_is_none(runner: Runner, result: object) -> None:
    with pytest.raises(ModelError, match="'plain' must return a Reply or a string"):
        runner(generate(PROMPTS[:1]), Models(generator=Synchronous(lambda _: result)))
    with pytest.raises(ModelError, match="'batched' must return"):
        runner(generate(PROMPTS[:1]), Models(generator=Batched(lambda _: [result])))


@both
def test_a_string_is_a_reply(runner: Runner) -> None:
    assert runner(generate(PROMPTS[:1]), Models(generator=Synchronous(lambda _: "yes")))[0] == [Reply("yes")]
    assert runner(generate(PROMPTS[:1]), Models(generator=Batched(lambda _: ["yes"])))[0] == [Reply("yes")]


@both
@pytest.mark.parametrize("result", [None, [], ["a"], ["a", "b", "c"], "ab"])
def test_a_wrong_number_of_replies(runner: Runner, result: object) -> None:
    with pytest.raises(ModelError, match="must return 2 replies for 2 prompts"):
        runner(generate(PROMPTS[:2]), Models(generator=Batched(lambda _: result)))


@both
@pytest.mark.parametrize(
    ("result", "says"),
    [
        (None, "shape"),
        ("vectors", "shape"),
        ([["a"], ["b"]], "shape"),
        ([[1.0], [1.0, 2.0]], "shape"),
        (np.zeros((3, 4)), r"\(3, 4\)"),
        (np.zeros(2), r"\(2,\)"),
        (np.zeros((2, 0)), r"\(2, 0\)"),
        ([[1.0, 0.0], [np.nan, 1.0]], "item 1 of 2"),
        ([[np.inf, 0.0], [0.0, 1.0]], "item 0 of 2"),
        (np.ones((2, 2), complex), "shape"),
    ],
)
def test_vectors_that_are_none(runner: Runner, result: object, says: str) -> None:
    with pytest.raises(ModelError, match=f"'broken'.*{says}"):
        runner(encode(["a", "b"]), Models(encoder=Model(result)))


@both
@pytest.mark.parametrize(
    ("result", "says"),
    [
        ([[1.0, 0.0]], "shape"),
        ([1.0, 0.0, 0.0], "shape"),
        ([[2.0, -1.0, 0.0]], "softmax"),
        ([[np.nan, 0, 0]], "finite"),
    ],
)
def test_judgements_that_are_none(runner: Runner, result: object, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        runner(judge([("a", "b")]), Models(nli=Model(result)))


def test_probabilities_may_be_off_by_rounding() -> None:
    judged, _ = run(judge([("a", "b")]), Models(nli=Model([[1.0000001, 0.0, -1e-7]])))
    np.testing.assert_array_equal(judged, [[1.0, 0.0, 0.0]])


@both
@pytest.mark.parametrize("result", [[[1.0]], [], [np.nan], None, ["high"]])
def test_scores_that_are_none(runner: Runner, result: object) -> None:
    def flow() -> Flow[Any]:
        return (yield (Compare((("a", "b"),)),))

    with pytest.raises(ModelError, match="'broken'"):
        runner(flow(), Models(cross_encoder=Model(result)))


@both
@pytest.mark.parametrize("result", [None, [], [[0.5]], [[-np.inf]], [[np.nan]], [[[-1.0]]], [None], ["text"]])
def test_log_probabilities_that_are_none(runner: Runner, result: object) -> None:
    with pytest.raises(ModelError, match="'broken'"):
        runner(likelihood(["a"]), Models(language_model=Model(result)))


@both
def test_a_model_that_was_not_given(runner: Runner) -> None:
    for flow, name in ((encode(["a"]), "encoder"), (judge([("a", "b")]), "nli"), (generate(PROMPTS), "generator")):
        with pytest.raises(OptionError, match=f"{name}="):
            runner(flow, Models())


@both
@pytest.mark.parametrize("batched", [False, True])
def test_what_a_model_thinks_first_is_no_part_of_its_reply(runner: Runner, batched: bool) -> None:
    said = Reply("<think>I don't know.</think>Paris", 5, 9)
    thinking = Batched(lambda _: [said]) if batched else Synchronous(lambda _: said)
    replies, calls = runner(generate(PROMPTS[:1]), Models(generator=thinking), FAST)
    assert replies == [Reply("Paris", 5, 9)]
    assert calls[0].completion_tokens == 9
    unfinished, _ = runner(generate(PROMPTS[:1]), Models(generator=Synchronous(lambda _: Reply("<think>hm"))), FAST)
    assert unfinished == [Reply("", finish="length")]


def test_a_listener_hears_no_reasoning() -> None:
    class Streaming(Synchronous):
        async def astream(self, prompt: Prompt, /, *, timeout: float | None = None) -> Any:
            text = self.function(prompt)
            for letter in text:
                yield letter
            yield Reply(text)

    class Listener:
        heard: ClassVar[list[str]] = []

        def on_screening(self, screening: Any, /) -> None:
            pass

        def on_text(self, text: str, /) -> None:
            self.heard.append(text)

    guard = Guard(generator=Streaming(lambda _: "<think>I don't know.</think>\n\nParis < Rome"))

    async def listen() -> Reply:
        request = Generate(tuple(PROMPTS[:1]), final=guard.screen("where?", ["In Paris."]))

        def flow() -> Flow[Reply]:
            ((reply,),) = yield (request,)
            return reply

        reply, _ = await arun(flow(), Models(generator=guard.models.generator), FAST, Listener())
        return reply

    assert asyncio.run(listen()).text == "Paris < Rome"
    assert "".join(Listener.heard) == "Paris < Rome"
    assert len(Listener.heard) > 5, "in pieces"


class Reader(Synchronous):
    """A reader that gives the same whatever it is asked, and counts what."""

    def __init__(self, result: object) -> None:
        super().__init__(lambda _: "")
        self.asked: list[Any] = []
        self.read = self.relations = lambda _, items: [self.asked.append(items), result][1]  # type: ignore[func-returns-value]


def asked(*wanted: Any) -> Flow[Any]:
    return (yield wanted)


@both
def test_a_reader_reads_each_passage_once_and_gives_readings(runner: Runner) -> None:
    one, other = Reading("1902", 0, 4, 1.0, 0.1), Reading("", 0, 0, 0.0, 1.0)
    reader = Reader([one, other])
    (readings,), _ = runner(asked(Read("when", ("a", "b", "a"))), Models(generator=reader))
    assert readings == [one, other, one]
    assert reader.asked == [["a", "b"]]
    for wrong in ([one], (one, other), [one, "1902"], [one, None]):
        with pytest.raises(ModelError, match="must return a list of 2 Reading"):
            runner(asked(Read("when", ("a", "b"))), Models(generator=Reader(wrong)))
    with pytest.raises(ModelError, match="must return a list of 1 Relation"):
        runner(asked(Relate("when", (("a", "b"),))), Models(generator=Reader([0.5])))


def test_what_a_model_cannot_do_is_said_with_the_way_out() -> None:
    plain = Models(generator=Synchronous(lambda _: ""))
    with pytest.raises(OptionError, match=r"no reader, it has no read\(\); pass generator='reader'"):
        run(asked(Read("when", ("a",))), plain)
    with pytest.raises(OptionError, match="how likely the next token is"):
        run(asked(NextToken(tuple(PROMPTS[:1]), (1,))), plain)


@pytest.mark.parametrize("result", [[1.1], [-0.1], [[0.5]], [0.5, 0.5], [True]])
def test_a_classifier_gives_one_probability_for_each_text(result: object) -> None:
    classifier = Model(result)
    classifier.probabilities = lambda _: result  # type: ignore[attr-defined]
    with pytest.raises(ModelError, match="'broken'"):
        run(asked(Classify(("a",))), Models(injection=classifier))


@both
@pytest.mark.parametrize("result", [None, "a text", b"bytes", {"text": "a"}, 3])
def test_a_retriever_gives_a_list(runner: Runner, result: object) -> None:
    def broken(question: object) -> object:
        return result

    with pytest.raises(ModelError, match="'broken' must return a list of passages"):
        runner(asked(Retrieve(("q",))), Models(retriever=broken))


@both
def test_equal_questions_are_retrieved_once(runner: Runner) -> None:
    seen: list[str] = []

    def retriever(question: str) -> Any:
        seen.append(question)
        return (text for text in (question, "more"))

    (found,), _ = runner(asked(Retrieve(("q", "r", "q"))), Models(retriever=retriever))
    assert found == [["q", "more"], ["r", "more"], ["q", "more"]]
    assert sorted(seen) == ["q", "r"]


@pytest.mark.parametrize(
    "half",
    [SimpleNamespace(answer="1902"), SimpleNamespace(answer=None, no_answer=0.5), SimpleNamespace(no_answer=0.5)],
)
def test_half_a_reading_is_none(half: Any) -> None:
    with pytest.raises(ModelError, match="must return a list of 1 Reading"):
        run(asked(Read("when", ("a",))), Models(generator=Reader([half])))


def test_what_is_off_by_rounding_is_taken_and_nothing_more() -> None:
    def classified(value: float) -> Any:
        return run(asked(Classify(("a",))), Models(injection=Classifier([value])))[0][0]

    assert classified(1.0009).tolist() == [1]
    assert classified(-0.0009).tolist() == [0]
    for value in (1.0011, -0.0011):
        with pytest.raises(ModelError, match="probabilities from 0 to 1"):
            classified(value)


def test_equal_texts_are_classified_once_and_each_gets_its_probability() -> None:
    classifier = Classifier([0.25, 0.75])
    (found,), (call,) = run(asked(Classify(("a", "b", "a"))), Models(injection=classifier))
    assert found.tolist() == [0.25, 0.75, 0.25]
    assert (classifier.asked, call.items, call.kind) == ([["a", "b"]], 2, "classify")


def test_a_retriever_goes_by_its_name_or_that_of_its_class() -> None:
    class Own:
        def __call__(self, question: object) -> list[str]:
            return ["a"]

    class Named(Own):
        name = "wiki"

    for retriever, name in ((Own(), "Own"), (Named(), "wiki"), (lambda question: ["a"], "<lambda>")):
        _, (call,) = run(asked(Retrieve(("q",))), Models(retriever=retriever))  # type: ignore[arg-type]
        assert (call.model, call.kind, call.items) == (name, "retrieve", 1)


class Classifier:
    """Gives the same probabilities whatever it is asked, and keeps what."""

    name = "given"

    def __init__(self, result: list[float]) -> None:
        self.result, self.asked = result, list[Any]()

    def probabilities(self, texts: Sequence[str], /) -> Any:
        self.asked.append(texts)
        return self.result
