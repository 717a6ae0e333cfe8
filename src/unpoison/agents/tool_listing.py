"""All tools of a server, asked for without a host."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from unpoison.agents.json_rpc import dump, parse
from unpoison.agents.mcp_messages import MAX_TOOLS
from unpoison.agents.mcp_servers import Server, TooLong
from unpoison.errors import TargetError
from unpoison.utils.plain_text import excerpt

__all__ = ["MAX_PAGES", "list_tools"]

MAX_PAGES = 100


async def list_tools(server: Server, seconds: float) -> list[dict[str, Any]]:
    """All tools of a server, in the order of its list; it is started, and ended.

    Args:
        server: Not started.
        seconds: For all of it.

    Raises:
        TargetError: It does not answer, or not as the protocol has it.
    """
    try:
        return await asyncio.wait_for(_list_tools(server), seconds)
    except TimeoutError:
        raise TargetError(f"the server did not list its tools in {seconds:g} seconds") from None


async def _list_tools(server: Server) -> list[dict[str, Any]]:
    from mcp.types.version import LATEST_HANDSHAKE_VERSION

    from unpoison import __version__

    await server.start()
    try:
        lines = server.lines()

        async def ask(number: int, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await server.send(dump(message), message)
            async for line in lines:
                found = None if isinstance(line, TooLong) else parse(line)
                if found and found.value.get("id") == number and isinstance(found.value.get("result"), dict):
                    return dict(found.value["result"])
                if found and found.value.get("id") == number and "method" not in found.value:
                    raise TargetError(f"the server refuses {method}: {excerpt(str(found.value.get('error')), 200)}")
            raise TargetError(f"the server ended before it answered {method}")

        info = {"name": "unpoison", "version": __version__}
        version = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": info}
        await ask(1, "initialize", version)
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await server.send(dump(ready), ready)
        tools, cursor = list[dict[str, Any]](), None
        for number in range(2, 2 + MAX_PAGES):
            page = await ask(number, "tools/list", {"cursor": cursor} if cursor else {})
            tools += [tool for tool in page.get("tools", []) if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if not cursor or len(tools) > MAX_TOOLS:
                break
        return tools
    finally:
        await server.close()
