"""Where the service listens: an address or a unix socket, opened before anything else, so that several may share it."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from unpoison.errors import InputError

__all__ = ["BACKLOG", "address", "close_socket", "listen"]

BACKLOG = 2048
"""Connections that the system holds until they are accepted."""


def listen(host: str, port: int, path: Path | None = None) -> socket.socket:
    """A listening socket.

    Args:
        host: An address or a name of this machine.
        port: 0 for a free one.
        path: A unix socket instead, for its owner and group alone (mode 660); one that nobody listens on any more is
            replaced.

    Raises:
        InputError: It cannot be listened on; the message says why.
    """
    try:
        if path is not None:
            return _unix(path)
        family, _, _, _, endpoint = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.create_server(endpoint[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        where = path if path is not None else f"{host}:{port}"
        other = "another path" if path is not None else "another address or port, 0 for a free one"
        raise InputError(f"cannot listen on {where}: {error.strerror or error}; choose {other}") from None
    # asyncio sets this only where a socket names its protocol. Without it the second part of every reply waits for the
    # client's delayed acknowledgement of the first, 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address(listening: socket.socket) -> str:
    """How to speak to it."""
    name = listening.getsockname()
    if listening.family == getattr(socket, "AF_UNIX", None):
        return f"unix:{name}"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"http://{host}:{name[1]}"


def close_socket(listening: socket.socket, path: Path | None) -> None:
    """Close it, and remove a unix socket's file."""
    listening.close()
    if path is not None:
        path.unlink(missing_ok=True)


def _unix(path: Path) -> socket.socket:
    if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
            else:
                raise OSError("something listens there already")
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o117)
    try:
        listening.bind(str(path))
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    listening.listen(BACKLOG)
    return listening
