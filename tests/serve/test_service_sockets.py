"""Where the service listens."""

from __future__ import annotations

import socket

from unpoison.serve.sockets import listen


def test_replies_are_not_held_back() -> None:
    """A reply goes out in two parts; a connection that waits for the first to be acknowledged takes 40 ms more."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
