"""The MCP proxy in front of a streamable-HTTP server: what it adds to a call by the clock, many sessions at once.

    python -m benchmarks mcp_proxy_http
    python -m benchmarks mcp_proxy_http --sessions 50 --calls 10

Every session is a proxy with a connection of its own to the same server (the official SDK's, a process of its own). The
sessions ask for results of 2,000 words about once a second. The same calls with `action: keep`, which looks at nothing,
are the baseline: the difference is what screening adds. One more session waits all the time for a tool that does not
answer; the others are not to wait for it. Memory is that of this process, which holds all proxies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.tool_results_speed import prose, rows
from unpoison.agents.mcp_messages import Gate
from unpoison.agents.mcp_proxy import Proxy
from unpoison.agents.mcp_servers import HttpServer
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.proxy_bounds import ProxyBounds

KEEP = {"action": "keep", "hidden": "keep"}


class Session:
    """A host that asks one proxy, one call at a time."""

    def __init__(self, url: str, policy: ToolPolicy) -> None:
        bounds = ProxyBounds()
        self.server = HttpServer(url, bounds.message_bytes)
        self.proxy = Proxy(self.server, Gate("bench", policy), self._take, bounds)
        self._loop = asyncio.get_running_loop()
        self._answers: asyncio.Queue[bytes] = asyncio.Queue()

    def _take(self, line: bytes) -> None:
        self._loop.call_soon_threadsafe(self._answers.put_nowait, line)

    async def open(self) -> None:
        """Connect, and shake hands."""
        await self.server.start()
        self._task = asyncio.create_task(self.proxy.serve())
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        await self.ask(0, "initialize", info)
        await self.proxy.from_host(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')

    async def ask(self, number: int, method: str, params: dict[str, Any]) -> None:
        """Send a request and wait for its answer."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.proxy.from_host(json.dumps(message).encode())
        while b'"result"' not in (line := await self._answers.get()):
            if b'"error"' in line:
                raise RuntimeError(line[:300].decode())

    async def close(self) -> None:
        """End the connection."""
        self._task.cancel()
        await self.server.close()


async def measure(url: str, policy: ToolPolicy, sessions: int, calls: int) -> list[float]:
    """Seconds of every call of so many sessions, while one more waits for an answer that does not come."""
    taken = list[float]()
    stuck = Session(url, policy)
    await stuck.open()
    waiting = asyncio.create_task(stuck.ask(1, "tools/call", {"name": "hang", "arguments": {}}))
    opened = [Session(url, policy) for _ in range(sessions)]
    for session in opened:
        await session.open()

    async def work(number: int, session: Session) -> None:
        draw = random.Random(number)
        for i in range(1, calls + 1):
            await asyncio.sleep(draw.uniform(0, 2))
            began = time.perf_counter()
            await session.ask(i, "tools/call", {"name": "fetch", "arguments": {"seed": draw.randrange(10**9)}})
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(work(number, session) for number, session in enumerate(opened)))
    if waiting.done():
        raise RuntimeError("the session that was to wait got an answer")
    waiting.cancel()
    for session in (stuck, *opened):
        await session.close()
    return taken


def serve(port: int) -> None:
    """The server: a tool of 2,000 words, and one that does not answer."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench", log_level="ERROR")

    @server.tool(structured_output=False)
    async def fetch(seed: int) -> str:
        """Return a page."""
        draw = random.Random(seed)
        return (prose if draw.random() < 0.5 else rows)(draw)

    @server.tool(structured_output=False)
    async def hang() -> str:
        """Return nothing."""
        await asyncio.sleep(3600)
        return ""

    server.run(transport="streamable-http", port=port)


def resident() -> float:
    """MiB of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--calls", type=int, default=10, help="of each session")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "benchmarks", "mcp_proxy_http", "--serve", str(port)])  # noqa: S603
    try:
        while socket.socket().connect_ex(("127.0.0.1", port)):
            time.sleep(0.1)
        url = f"http://127.0.0.1:{port}/mcp"
        asyncio.run(measure(url, ToolPolicy(), 1, 2))  # what is loaded once is loaded
        for name, policy in (("not screened", ToolPolicy({"*": KEEP})), ("screened", ToolPolicy())):
            busy = time.process_time()
            taken = asyncio.run(measure(url, policy, arguments.sessions, arguments.calls))
            busy = (time.process_time() - busy) / len(taken)
            middle, late = np.percentile(taken, [50, 99]) * 1e3
            print(
                f"{name}: {len(taken):,} calls, p50 {middle:.0f} ms, p99 {late:.0f} ms; processor {busy * 1e3:.1f} ms"
            )
            print(f"  {resident():.0f} MiB; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
