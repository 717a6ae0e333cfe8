"""The steps in which a server ends."""

from __future__ import annotations

import asyncio
import signal

import pytest
import uvicorn

from unpoison.serve.server import Draining


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stops() -> list[str]:
    return []


@pytest.fixture
def server(clock: Clock, stops: list[str]) -> Draining:
    config = uvicorn.Config("nowhere:app", log_config=None)
    return Draining(config, drain=5.0, stopping=lambda: stops.append("unready"), clock=clock)


def ended(server: Draining) -> bool:
    return asyncio.run(server.on_tick(1))


def test_after_sigterm_it_serves_for_as_long_as_it_drains(server: Draining, clock: Clock, stops: list[str]) -> None:
    assert not ended(server)
    server.handle_exit(signal.SIGTERM, None)
    assert stops == ["unready"]
    clock.now += 4.9
    assert not ended(server)
    clock.now += 0.1
    assert ended(server)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_waits_no_longer(server: Draining, second: int) -> None:
    server.handle_exit(signal.SIGTERM, None)
    assert not ended(server)
    server.handle_exit(second, None)
    assert ended(server)


def test_an_end_that_was_asked_for_is_no_failure(server: Draining) -> None:
    server.handle_exit(signal.SIGTERM, None)
    assert server._captured_signals == [], "uvicorn would raise it again"
