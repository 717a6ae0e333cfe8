"""The driver: bounds, retries, deadlines, checks and accounts, the same in both of its forms."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from runtime.runners import FAST, PROMPTS, Batched, Runner, Synchronous, both, raising
from unpoison import Guard
from unpoison.core.answers import Reply
from unpoison.errors import DeadlineError, FlowError, ModelError, OptionError
from unpoison.models import FakeEncoder, FunctionGenerator, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.models.protocols import Models
from unpoison.models.requests import (
    Encode,
    Flow,
    Generate,
    encode,
    generate,
)
from unpoison.runtime.driver import Limits, arun, as_flow, result_of, run


class Meeting:
    """A generator whose calls wait for each other: they pass when so many are under way, and fail when fewer ever are.

    `most` is the largest number that was under way at once.
    """

    name = "meeting"

    def __init__(self, parties: int) -> None:
        self.running, self.most, self.lock = 0, 0, threading.Lock()
        self.barrier = threading.Barrier(parties, timeout=30)

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.barrier.wait()
        with self.lock:
            self.running -= 1
        return Reply(prompt.question)


class AsynchronousMeeting(Meeting):
    def __init__(self, parties: int) -> None:
        super().__init__(parties)
        self.meeting = asyncio.Barrier(parties)

    async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        self.running += 1
        self.most = max(self.most, self.running)
        async with asyncio.timeout(30):
            await self.meeting.wait()
        self.running -= 1
        return Reply(prompt.question)


@both
@pytest.mark.parametrize("kind", [Meeting, AsynchronousMeeting])
@pytest.mark.parametrize("bound", [1, 4, 20])
def test_as_many_calls_are_in_flight_as_allowed_and_no_more(
    runner: Runner, kind: Callable[[int], Any], bound: int
) -> None:
    kind_of = kind(bound)
    replies, _ = runner(generate(PROMPTS), Models(generator=kind_of), Limits(in_flight=bound))
    assert [reply.text for reply in replies] == [prompt.question for prompt in PROMPTS]
    assert kind_of.most == bound


@both
def test_a_batch_generator_gets_all_prompts_in_one_call(runner: Runner) -> None:
    generator_made = Batched(lambda prompts: [Reply(p.question, prompt_tokens=2) for p in prompts])
    replies, calls = runner(generate([*PROMPTS, PROMPTS[0]]), Models(generator=generator_made))
    assert [reply.text for reply in replies] == [p.question for p in PROMPTS] + ["item 0?"]
    assert [(call.items, call.prompt_tokens, call.completion_tokens) for call in calls] == [(20, 40, None)]


@both
def test_what_may_succeed_later_is_retried(runner: Runner) -> None:
    script = [ModelError("busy", retryable=True), ConnectionResetError("gone"), "yes"]
    replies, calls = runner(generate(PROMPTS[:1]), Models(generator=Synchronous(raising(script))), FAST)
    assert (replies[0].text, calls[0].attempts) == ("yes", 3)


@both
def test_retries_end_and_what_cannot_succeed_is_not_retried(runner: Runner) -> None:
    scripted = ScriptedGenerator(lambda _: ModelError("busy", retryable=True))
    with pytest.raises(ModelError, match="busy"):
        runner(generate(PROMPTS[:1]), Models(generator=scripted), Limits(retries=2, backoff=0))
    assert len(scripted.prompts) == 3
    scripted = ScriptedGenerator(lambda _: ModelError("wrong key"))
    with pytest.raises(ModelError, match="wrong key"):
        runner(generate(PROMPTS[:1]), Models(generator=scripted), FAST)
    assert len(scripted.prompts) == 1


@both
@pytest.mark.parametrize(("requested", "waited"), [(0.0, 0.0), (7.0, 7.0), (999.0, 30.0), (None, 0.5)])
def test_the_servers_waiting_time_is_respected_up_to_a_bound(
    monkeypatch: pytest.MonkeyPatch, requested: float | None, waited: float, runner: Runner
) -> None:
    waits: list[float] = []

    class Instant(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout or 0.0)
            return False

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("unpoison.runtime.driver.Event", Instant)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    scripted = ScriptedGenerator([ModelError("busy", retryable=True, retry_after=requested), "yes"])
    runner(generate(PROMPTS[:1]), Models(generator=scripted))
    waited_for = [seconds for seconds in waits if seconds]
    assert waited_for == pytest.approx([waited] if waited else [], rel=0.26 if requested is None else 1e-9)


@both
def test_a_wait_beyond_the_deadline_is_not_begun(runner: Runner) -> None:
    scripted = ScriptedGenerator(lambda _: ModelError("come back", retryable=True, retry_after=1e6))
    with pytest.raises(ModelError, match="come back"):
        runner(generate(PROMPTS[:1]), Models(generator=scripted), Limits(deadline=29))
    assert len(scripted.prompts) == 1


@both
@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_deadline_holds_whatever_a_model_does(runner: Runner, asynchronous: bool) -> None:
    release = threading.Event()

    async def deaf(_: object) -> str:
        while not release.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                break
        return "late"

    function = deaf if asynchronous else lambda _: str(release.wait(30))
    try:
        with pytest.raises((DeadlineError, ModelError)):  # whoever waited for the model would get its answer
            runner(generate(PROMPTS[:3]), Models(generator=FunctionGenerator(function)), Limits(deadline=0.1))
    finally:
        release.set()


@both
def test_no_call_begins_after_the_deadline(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    late, monotonic = [0.0], time.monotonic
    monkeypatch.setattr("unpoison.runtime.driver.time.monotonic", lambda: monotonic() + late[0])

    def flow() -> Flow[None]:
        yield (Encode(("a",)),)
        late[0] = 61
        yield (Encode(("b",)),)

    encoder = FakeEncoder()
    with pytest.raises(DeadlineError, match="60 s"):
        runner(flow(), Models(encoder), Limits(deadline=60))
    assert encoder.calls == [("a",)]


@both
@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_first_failure_ends_the_answer_and_what_has_not_begun_never_begins(
    runner: Runner, asynchronous: bool
) -> None:
    begun, closed, release = [], [], threading.Event()

    class Failing(Synchronous):
        if asynchronous:

            async def agenerate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
                begun.append(prompt)
                if prompt.question == "item 3?":
                    raise ModelError("no")
                await asyncio.sleep(3600)
                return Reply("yes")

    def function(prompt: Prompt) -> Reply:
        begun.append(prompt)
        if prompt.question == "item 3?":
            raise ModelError("no")
        release.wait(30)
        return Reply("yes")

    def flow() -> Flow[None]:
        try:
            yield (Generate(tuple(PROMPTS)),)
        finally:
            closed.append(True)

    try:
        with pytest.raises(ModelError, match=r"^no$"):
            runner(flow(), Models(generator=Failing(function)), Limits(in_flight=4))
        assert closed == [True]
        # The place of the one that failed may have been taken before the failure was seen.
        assert len(begun) in (4, 5)
    finally:
        release.set()


def test_a_failure_does_not_wait_for_a_slower_call_before_it() -> None:
    release = threading.Event()

    def function(prompt: Prompt) -> Reply:
        if prompt.question == "item 0?":
            release.wait(30)
        raise ModelError(prompt.question)

    with pytest.raises(ModelError, match="item 1"):
        run(generate(PROMPTS[:2]), Models(generator=Synchronous(function)), Limits(in_flight=2))
    release.set()


def test_cancellation_reaches_the_calls_and_closes_the_flow() -> None:
    scripted, closed = ScriptedGenerator("yes", seconds=30), []

    def flow() -> Flow[None]:
        try:
            yield (Generate(tuple(PROMPTS)),)
        finally:
            closed.append(True)

    async def cancelled() -> set[asyncio.Task[Any]]:
        task = asyncio.create_task(arun(flow(), Models(generator=scripted), Limits(in_flight=3)))
        while scripted.most_in_flight < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(cancelled()) == set()
    assert closed == [True]
    assert scripted._in_flight == 0
    assert len(scripted.prompts) == 3


def test_an_abandoned_call_does_not_keep_the_interpreter(tmp_path: Any) -> None:
    program = """
import threading
from unpoison.runtime.driver import run
from unpoison.runtime.driver import Limits
from unpoison.errors import DeadlineError
from unpoison.models import FunctionGenerator
from unpoison.models.protocols import Models
from unpoison.models.prompts import answer_alone_prompt
from unpoison.models.requests import generate

made = FunctionGenerator(lambda _: threading.Event().wait() or "never")
try:
    run(generate([answer_alone_prompt("why")]), Models(generator=made), Limits(deadline=0.05))
except DeadlineError:
    print("late")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr, done.returncode) == ("late\n", "", 0)


@both
def test_an_exception_of_the_flow_passes(runner: Runner) -> None:
    def flow() -> Flow[None]:
        yield (Encode(("a",)),)
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        runner(flow(), Models(FakeEncoder()))


@pytest.mark.parametrize(
    "options",
    [
        {"in_flight": 0},
        {"retries": -1},
        {"deadline": 0},
        {"timeout": -1},
        {"deadline": float("nan")},
        {"backoff": -1},
        {"longest_wait": float("nan")},
    ],
)
def test_impossible_limits_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        Limits(**options)  # type: ignore[arg-type]


def test_a_single_local_call_stays_on_the_callers_thread() -> None:
    class Here:
        name = "here"
        thread: object = None

        def encode(self, texts: Sequence[str], /) -> Any:
            self.thread = threading.current_thread()
            return np.ones((len(texts), 2), np.float32)

    encoder = Here()
    run(encode(["a"]), Models(encoder))
    assert encoder.thread is threading.current_thread()


def test_the_loop_stays_free_while_a_screening_computes() -> None:
    texts = [f"Shop {i} takes goods back within {i} days, says page {i} of its terms. " * 8 for i in range(100)]

    async def share_of_the_longest_gap() -> float:
        gaps, last = [0.0], time.perf_counter()
        screening = asyncio.create_task(Guard().ascreen("how long may goods go back", texts))
        while not screening.done():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now
        return max(gaps) / sum(gaps)

    Guard().screen("how long may goods go back", texts[:2])  # loads what it reads by
    shares = (asyncio.run(share_of_the_longest_gap()) for _ in range(10))
    assert any(share < 0.5 for share in shares), "a screening on the loop is one gap, however slow the machine is"


@both
def test_a_step_without_a_request_goes_on_with_no_reply(runner: Runner) -> None:
    def flow() -> Flow[Any]:
        return (yield ())

    assert runner(flow(), Models()) == ((), ())


def test_the_least_limits_are_allowed() -> None:
    least = Limits(in_flight=1, retries=0, backoff=0, longest_wait=0, deadline=1e-9, timeout=1e-9)
    assert (least.in_flight, least.retries, least.backoff) == (1, 0, 0)
    assert (Limits().deadline, Limits().timeout, Limits().retries) == (120, 60, 3), "docs/concepts.md"


@both
def test_every_call_is_recorded_with_what_it_cost(runner: Runner) -> None:
    told = [Reply("a", 5, 2), Reply("b", None, 3, cached=True)]
    _, calls = runner(
        generate(PROMPTS[:2], "claims"), Models(generator=Synchronous(raising(told))), Limits(in_flight=1)
    )
    fields = [(call.kind, call.model, call.purpose, call.items, call.attempts, call.cached) for call in calls]
    assert fields == [("generate", "plain", "claims", 1, 1, False), ("generate", "plain", "claims", 1, 1, True)]
    assert [(call.prompt_tokens, call.completion_tokens) for call in calls] == [(5, 2), (None, 3)]
    assert all(0 <= call.seconds < 60 for call in calls)
    _, (call,) = runner(generate(PROMPTS[:2]), Models(generator=Batched(lambda _: told)))
    assert (call.items, call.prompt_tokens, call.completion_tokens, call.cached) == (2, 5, 5, False)
    _, (call,) = runner(
        generate(PROMPTS[:1]), Models(generator=Synchronous(raising([ModelError("x", retryable=True), "a"]))), FAST
    )
    assert (call.attempts, call.prompt_tokens, call.completion_tokens) == (2, None, None)


@both
@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (Encode(("a",)), "a Encode, Encode"),
        (encode(["a"]), r"encode\(\.\.\.\)"),
        (None, "None"),
        (("a",), "a str, 'a'"),
    ],
)
def test_a_step_that_is_no_tuple_of_requests_says_what_to_write(runner: Runner, step: Any, shown: str) -> None:
    def flow() -> Flow[Any]:
        return (yield step)

    with pytest.raises(FlowError, match=f"a flow yielded {shown}.*it yields a tuple of requests"):
        runner(flow(), Models(encoder=FakeEncoder()))


def test_a_list_of_requests_will_do_and_a_method_must_be_a_flow() -> None:
    def flow() -> Flow[Any]:
        return (yield [Encode(("a",))])  # type: ignore[misc]

    ((vectors,), _) = run(flow(), Models(encoder=FakeEncoder()))
    assert vectors.shape[0] == 1
    for value, shown in ((None, "None"), ("text", "a str, 'text'")):
        with pytest.raises(FlowError, match=rf"Guard\.screening returned {shown} and is no flow"):
            as_flow(value, Guard(), "screening")  # type: ignore[arg-type]
        with pytest.raises(FlowError, match=rf"Guard\.screening returned {shown}; return a Reply"):
            result_of(value, Reply, Guard(), "screening")
    made = Reply("a")
    assert result_of(made, Reply, Guard(), "screening") is made
