"""What takes too long, too much memory or the process with it is an error, and the next question is answered."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from unpoison.errors import InputError, MissingExtraError
from unpoison.utils import confined as confined_module
from unpoison.utils.confined import MAX_SECONDS, Confined


def work(asked: list[Any]) -> Iterator[Any]:
    match asked:
        case ["count", most]:
            yield from range(most)
        case ["hang"]:
            threading.Event().wait()
        case ["fill"]:
            yield len(b"a" * 2**31)
        case ["end"]:
            os._exit(1)
        case ["refuse"]:
            raise InputError("no such thing")
        case ["miss"]:
            raise MissingExtraError("install it")
        case ["long"]:
            yield "a" * 2_000
        case ["left"]:
            import resource

            for _ in range(2):
                yield resource.getrlimit(resource.RLIMIT_CPU)[0] - time.process_time()
        case ["stop"]:  # as the system does at that limit
            os.kill(os.getpid(), signal.SIGXCPU)


def test_replies_and_errors_are_passed_on_and_the_process_goes_on() -> None:
    with Confined(work) as confined:
        assert list(confined.ask(["count", 3])) == [0, 1, 2]
        process = confined._process
        for asked, error in ((["refuse"], InputError), (["miss"], MissingExtraError)):
            with pytest.raises(error):
                list(confined.ask(asked))
        assert (list(confined.ask(["count", 2])), confined._process) == ([0, 1], process)
        assert confined.received > 0
        assert next(confined.ask(["count", 10**9])) == 0  # and the rest is not waited for
        assert list(confined.ask(["count", 1])) == [0]


@pytest.mark.parametrize(("asked", "why"), [("fill", "too much memory"), ("end", "too much memory")])
def test_a_limit_of_memory_and_a_sudden_end(asked: str, why: str) -> None:
    with Confined(work, memory=2**28) as confined:
        with pytest.raises(InputError, match=why):
            list(confined.ask([asked]))
        assert list(confined.ask(["count", 1])) == [0]


def test_a_deadline_and_the_length_of_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    with Confined(work, seconds=0) as confined, pytest.raises(InputError, match="takes more than 0 seconds"):
        list(confined.ask(["hang"]))
    monkeypatch.setattr("unpoison.utils.confined.MAX_REPLY", 1_000)
    with Confined(work) as confined, pytest.raises(InputError, match="too much memory"):
        list(confined.ask(["long"]))


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="Windows limits no time of the processor")
def test_the_limit_of_time_is_of_the_processor_and_another_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a harmless notebook of a second of the processor takes a minute of the clock."""
    waits: list[float] = []

    class Clock(threading.Timer):
        def __init__(self, seconds: float, function: Any) -> None:
            waits.append(seconds)
            super().__init__(seconds, function)

    monkeypatch.setattr(confined_module, "Timer", Clock)
    with Confined(work) as confined:
        assert all(MAX_SECONDS - 0.1 <= left <= MAX_SECONDS + 1 for left in confined.ask(["left"]))
        assert set(waits) == {5 * MAX_SECONDS}
        with pytest.raises(InputError, match="takes more than 60 seconds"):
            list(confined.ask(["stop"]))
        assert list(confined.ask(["count", 1])) == [0]
