"""Runs flows: the only place where a defense reaches a model.

`run` and `arun` are the same loop, one with threads and one with tasks. Both bound the calls in flight, retry
transient failures, enforce one deadline for the whole answer, send equal requests once, validate every reply, and
record every call.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from types import GeneratorType
from typing import Any, NamedTuple, TypeVar, get_args

from unpoison.core.answers import Call, Reply
from unpoison.errors import DeadlineError, FlowError, ModelError, OptionError, clip
from unpoison.models.protocols import Listener, Models
from unpoison.models.requests import Flow, Generate, Request
from unpoison.runtime.jobs import Job, Plan, model_error, plan
from unpoison.utils.checks import at_least
from unpoison.utils.threads import on_thread, start_thread
from unpoison.utils.tracing import Mark, model_call_span

__all__ = ["Limits", "arun", "as_flow", "result_of", "run", "sum_of_reported"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the model calls of one answer.

    Attributes:
        in_flight: Maximum number of concurrent model calls, at least 1.
        deadline: Seconds for the whole answer; None for no limit. A local computation (an encoder or NLI model on
            this machine) is not interrupted: `screen` and `answer` return late, or raise at the next call.
        timeout: Seconds for one call, after which it counts as failed and may be retried; None for the deadline
            alone. A local model that takes all prompts in one call may use the whole deadline.
        retries: Maximum number of retries of a call that failed transiently, at least 0.
        backoff: Seconds before the first retry; doubled each time, with jitter, unless the server names a delay.
        longest_wait: Maximum seconds of a single wait, whatever the server asks.
    """

    in_flight: int = 32
    deadline: float | None = 120.0
    timeout: float | None = 60.0
    retries: int = 3
    backoff: float = 0.5
    longest_wait: float = 30.0

    def __post_init__(self) -> None:
        at_least("in_flight", self.in_flight, 1)
        at_least("retries", self.retries, 0)
        for name in ("deadline", "timeout"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise OptionError(f"{name} must be positive seconds or None, got {seconds}")
        for name in ("backoff", "longest_wait"):
            at_least(name, getattr(self, name), 0, whole=False)


T = TypeVar("T")

_LEAVE = 1.0
"""Seconds that cancelled asynchronous calls get to end before they are abandoned."""


class _Clock:
    """The time left for the whole answer."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.stopped = Event()
        self.end = None if limits.deadline is None else time.monotonic() + limits.deadline

    def time_left(self) -> float | None:
        if self.end is None:
            return None
        left = self.end - time.monotonic()
        if left <= 0:
            raise self.late()
        return left

    def for_call(self, job: Job) -> float | None:
        """Maximum seconds for one call."""
        left, timeout = self.time_left(), None if job.patient else self.limits.timeout
        return min((bound for bound in (left, timeout) if bound is not None), default=None)

    def late(self) -> DeadlineError:
        return DeadlineError(
            f"no answer within {self.limits.deadline:g} s; "
            "raise the deadline, use a faster model, or send fewer passages"
        )

    def wait_before_retry(self, error: ModelError, attempt: int) -> float:
        """Seconds to wait; raises `error` if a retry is pointless."""
        if not error.retryable or attempt > self.limits.retries:
            raise error
        wait = error.retry_after
        if wait is None:
            wait = self.limits.backoff * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)  # noqa: S311  jitter, not a secret
        wait = min(wait, self.limits.longest_wait)
        left = self.time_left()
        if left is not None and wait >= left:
            raise error
        return wait


def run(flow: Flow[T], models: Models, limits: Limits | None = None) -> tuple[T, tuple[Call, ...]]:
    """Run a flow to its end on this thread, with model calls on their own threads.

    Returns:
        The flow's return value, and a record of every call.

    Raises:
        ModelError: A call failed permanently, or its result is unusable.
        DeadlineError: The deadline passed.
        OptionError: The flow requested a model that was not given.
    """
    clock, calls = _Clock(limits or Limits()), list[Call]()
    try:
        step = _advance(flow, None)
        while not isinstance(step, _Ended):
            plans = [plan(request, models) for request in step]
            jobs = [job for planned in plans for job in planned.jobs]
            done = [_attempt(jobs[0], clock)] if len(jobs) == 1 and jobs[0].local else _all_of(jobs, clock)
            step = _advance(flow, _replies(plans, done, calls))
        return step.value, tuple(calls)
    finally:
        clock.stopped.set()
        flow.close()


async def arun(
    flow: Flow[T], models: Models, limits: Limits | None = None, listener: Listener | None = None
) -> tuple[T, tuple[Call, ...]]:
    """`run` for asyncio: native asynchronous calls where the model has them, threads elsewhere.

    The flow's own steps run on threads too, so that they do not block the event loop.

    A listener receives the screening before the model is asked for the answer, and then the reply in pieces.
    """
    clock, calls = _Clock(limits or Limits()), list[Call]()
    gate = asyncio.Semaphore(clock.limits.in_flight)
    try:
        step = await on_thread(partial(_advance, flow, None))
        while not isinstance(step, _Ended):
            for request in step:
                if listener is not None and isinstance(request, Generate) and request.final is not None:
                    listener.on_screening(request.final)
            plans = [plan(request, models, listener) for request in step]
            done = await _all_of_async([job for planned in plans for job in planned.jobs], clock, gate)
            step = await on_thread(partial(_advance, flow, _replies(plans, done, calls)))
        return step.value, tuple(calls)
    finally:
        with suppress(ValueError):  # where the wait was cancelled, a thread still runs its last step
            flow.close()


class _Ended(NamedTuple):
    value: Any


def _advance(flow: Flow[T], replies: tuple[Any, ...] | None) -> tuple[Request, ...] | _Ended:
    """The flow's next requests, or its end. Thus a `StopIteration` raised by a model is never mistaken for the end."""
    try:
        step = next(flow) if replies is None else flow.send(replies)
    except StopIteration as stop:
        return _Ended(stop.value)
    return as_requests(step)


class _JobResult(NamedTuple):
    value: Any
    call: Call


def _replies(plans: Sequence[Plan], done: Sequence[_JobResult], calls: list[Call]) -> tuple[Any, ...]:
    """Record the calls and assign each request its reply."""
    calls.extend(result.call for result in done)
    replies, start = [], 0
    for planned in plans:
        end = start + len(planned.jobs)
        replies.append(planned.reply([result.value for result in done[start:end]]))
        start = end
    return tuple(replies)


def _attempt(job: Job, clock: _Clock) -> _JobResult:
    """Call, and retry transient failures until the run is stopped."""
    with model_call_span(job.kind, job.model, job.purpose, job.items) as mark:
        began, attempt = time.perf_counter(), 1
        while True:
            try:
                value = job.check(job.do(clock.for_call(job)))
                if not job.local:
                    clock.time_left()  # a model that swallows its cancellation comes back late
            except Exception as error:
                pause = clock.wait_before_retry(model_error(error, job), attempt)
            else:
                return _job_result(job, value, began, attempt, mark)
            if clock.stopped.wait(pause):
                raise clock.late()
            attempt += 1


async def _attempt_async(job: Job, clock: _Clock, gate: asyncio.Semaphore) -> _JobResult:
    with model_call_span(job.kind, job.model, job.purpose, job.items) as mark:
        began, attempt = time.perf_counter(), 1
        while True:
            try:
                async with gate:
                    timeout = clock.for_call(job)
                    value = job.check(await (job.ado(timeout) if job.ado else on_thread(partial(job.do, timeout))))
                if job.ado:
                    clock.time_left()  # a model that swallows its cancellation comes back late
            except Exception as error:
                pause = clock.wait_before_retry(model_error(error, job), attempt)
            else:
                return _job_result(job, value, began, attempt, mark)
            await asyncio.sleep(pause)
            attempt += 1


def _all_of(jobs: Sequence[Job], clock: _Clock) -> list[_JobResult]:
    """All outcomes in order. After the first failure or the deadline no further call starts."""
    futures: list[Future[_JobResult]] = [Future() for _ in jobs]
    waiting = deque(zip(jobs, futures, strict=True))

    def work() -> None:
        while waiting and not clock.stopped.is_set():
            try:
                job, future = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                future.set_result(_attempt(job, clock))
            except BaseException as error:
                future.set_exception(error)

    for _ in range(min(clock.limits.in_flight, len(jobs))):
        start_thread(work)
    wait(futures, clock.time_left(), FIRST_EXCEPTION)
    return _collect_results(futures, clock)


async def _all_of_async(jobs: Sequence[Job], clock: _Clock, gate: asyncio.Semaphore) -> list[_JobResult]:
    if not jobs:
        return []
    tasks = [asyncio.create_task(_attempt_async(job, clock, gate)) for job in jobs]
    try:
        await asyncio.wait(tasks, timeout=clock.time_left(), return_when=asyncio.FIRST_EXCEPTION)
        return _collect_results(tasks, clock)
    finally:
        if unfinished := [task for task in tasks if task.cancel()]:
            await asyncio.wait(unfinished, timeout=_LEAVE)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # asyncio logs exceptions that were never retrieved


def _collect_results(
    futures: Sequence[Future[_JobResult]] | Sequence[asyncio.Task[_JobResult]], clock: _Clock
) -> list[_JobResult]:
    """All outcomes; raises the first failure, or that the deadline passed."""
    outcomes = [future.result() for future in futures if future.done()]
    if len(outcomes) < len(futures):
        raise clock.late()
    return outcomes


def _job_result(job: Job, value: Any, began: float, attempts: int, mark: Mark) -> _JobResult:
    """The result with the record of the call, whose cost is added to the trace."""
    call = Call(job.kind, job.model, job.purpose, time.perf_counter() - began, job.items, attempts)
    if job.kind == "generate":
        replies = [value] if isinstance(value, Reply) else value
        call = replace(
            call,
            prompt_tokens=sum_of_reported(reply.prompt_tokens for reply in replies),
            completion_tokens=sum_of_reported(reply.completion_tokens for reply in replies),
            cached=all(reply.cached for reply in replies),
        )
    mark("unpoison.attempts", attempts)
    for name, count in (("input", call.prompt_tokens), ("output", call.completion_tokens)):
        if count is not None:
            mark(f"gen_ai.usage.{name}_tokens", count)
    if call.cached:
        mark("unpoison.cached", True)
    return _JobResult(value, call)


def sum_of_reported(counts: Iterable[int | None]) -> int | None:
    """The sum of the numbers of tokens that models report; None if none reports one."""
    reported = [count for count in counts if count is not None]
    return sum(reported) if reported else None


WRITE = (
    "replies = yield from generate(prompts), (replies,) = yield (Generate(prompts),), or "
    "vectors, replies = yield Encode(texts), Generate(prompts)"
)


def as_flow(value: Flow[T], owner: object, method: str) -> Flow[T]:
    """Check that a method returned a flow.

    Raises:
        FlowError: It did not: the method has no `yield`.
    """
    if isinstance(value, GeneratorType):
        return value
    raise FlowError(
        f"{type(owner).__name__}.{method} returned {_article(value)} and is no flow: there is no yield in it. "
        "If it asks no model, put the line 'yield from ()' before its return"
    )


def result_of(value: Any, kind: type[T], owner: object, method: str) -> T:
    """Check the type of a flow's return value.

    Raises:
        FlowError: It has another type.
    """
    if isinstance(value, kind):
        return value
    raise FlowError(f"{type(owner).__name__}.{method} returned {_article(value)}; return a {kind.__name__}")


def as_requests(step: Any) -> tuple[Request, ...]:
    """Check that a flow yielded a tuple of requests.

    Raises:
        FlowError: It did not; the message says what to write.
    """
    several = isinstance(step, (tuple, list))
    for one in step if several else (step,):
        if not several or not isinstance(one, get_args(Request)):
            shown = f"{one.__name__}(...)" if isinstance(one, GeneratorType) else _article(one)
            raise FlowError(f"a flow yielded {shown}; it yields a tuple of requests: {WRITE}")
    return tuple(step)


def _article(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}, {clip(value, 40)}"
