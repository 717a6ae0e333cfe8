"""Where the service listens."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from unpoison.serve import sockets
from unpoison.serve.sockets import SILENCE, TURNS, BalancedSocket, Loads, listen


def test_replies_are_not_held_back() -> None:
    """A reply goes out in two parts; a connection that waits for the first to be acknowledged takes 40 ms more."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


NUMBER = 3


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loads(tmp_path: Path, clock: Clock) -> Iterator[Callable[[int], Loads]]:
    """The view of each process."""
    with (tmp_path / "loads").open("w+b") as file:
        file.truncate(NUMBER * Loads.BYTES)
        yield lambda own: Loads(file.fileno(), own, clock)


def test_the_fewest_are_those_of_the_others_that_live(loads: Callable[[int], Loads], clock: Clock) -> None:
    first, second, third = map(loads, range(NUMBER))
    assert first.fewest() == float("inf"), "nobody else has said anything"
    first.say(1)
    second.say(7)
    clock.now += 0.6 * SILENCE
    third.say(9)
    assert (first.fewest(), second.fewest(), third.fewest()) == (7, 1, 1)
    clock.now += 0.6 * SILENCE
    assert first.fewest() == 9, "the second has been silent for too long"


@pytest.fixture
def listening(
    loads: Callable[[int], Loads], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[list[BalancedSocket], Callable[[], socket.socket]]]:
    """The socket as two processes have it, and what connects to it."""
    monkeypatch.setattr(sockets, "TURN", 0.0)
    with ExitStack() as stack:
        opened = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        both = [stack.enter_context(BalancedSocket(opened.dup().detach(), loads(own))) for own in range(2)]
        for one in both:
            one.setblocking(False)
            one.say()
        yield both, lambda: stack.enter_context(socket.create_connection(opened.getsockname()))


def test_who_has_more_lets_the_other_go_first(listening) -> None:
    (first, second), connect = listening
    for _ in range(4):
        connect()
    held = [first.accept()[0]]
    with pytest.raises(BlockingIOError):
        first.accept()
    held += [second.accept()[0], second.accept()[0]]
    with pytest.raises(BlockingIOError):
        second.accept()
    held += [first.accept()[0]]
    with pytest.raises(BlockingIOError):
        first.accept()  # there is none
    for one in held:
        one.close()


def test_what_is_closed_counts_no_longer_and_only_once(listening) -> None:
    (first, second), connect = listening
    for _ in range(4):
        connect()
    held, other = first.accept()[0], second.accept()[0]
    held.close()
    held.close()
    again = first.accept()[0]
    other.close()
    second.say()
    with pytest.raises(BlockingIOError):  # it has one, the other none
        first.accept()
    again.close()


def test_nobody_is_waited_for_for_ever(listening, clock: Clock) -> None:
    (first, _), connect = listening
    for _ in range(3):
        connect()
    held = [first.accept()[0]]
    for _ in range(TURNS):
        with pytest.raises(BlockingIOError):
            first.accept()
    held += [first.accept()[0]]
    with pytest.raises(BlockingIOError):
        first.accept()
    clock.now += 2 * SILENCE
    held += [first.accept()[0]]
    for one in held:
        one.close()


def test_a_connection_is_an_ordinary_one(listening) -> None:
    (first, _), connect = listening
    client = connect()
    connection, address = first.accept()
    assert address == client.getsockname()
    assert (connection.family, connection.type) == (client.family, client.type)
    with connection:
        connection.sendall(b"hello")
    assert client.recv(10) == b"hello"
    assert client.recv(10) == b"", "it is closed"
