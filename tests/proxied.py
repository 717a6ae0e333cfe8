"""What a server says to a proxy, one message after another."""

from __future__ import annotations

from unpoison.agents.mcp_proxy import Proxy
from unpoison.agents.mcp_servers import TooLong

__all__ = ["hear"]


async def hear(proxy: Proxy, line: bytes | TooLong) -> bool:
    """Give a proxy a message of the server, and wait until it was forwarded; False if it stops the server."""
    goes_on = await proxy.take(line)
    await proxy._settle(0)
    return goes_on
