"""A port for a server that cannot be asked which one the system gave it."""

from __future__ import annotations

import random
import socket

BELOW_EPHEMERAL = range(10_000, 32_000)
"""Linux gives the ports from 32,768 on to whoever connects: one of those may be taken before the server has it."""


def free_port() -> int:
    for port in random.SystemRandom().sample(BELOW_EPHEMERAL, 100):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("none of 100 ports is free")
