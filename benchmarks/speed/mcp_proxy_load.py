"""The MCP proxy under load: what it adds to a result when many sessions speak at once, and its memory over many calls.

    python -m benchmarks mcp_proxy_load
    python -m benchmarks mcp_proxy_load --sessions 50 --calls 20 --memory 10000

Results have 2,000 words, half of them prose and half JSON of 200 rows, each one new. The sessions are 50 proxies in one
process, each asked about once a second; the time is from the server's line to the line for the host. The memory is that
of one `unpoison mcp-proxy` between two pipes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.tool_results_speed import prose, rows
from unpoison.agents.mcp_messages import Gate
from unpoison.agents.mcp_proxy import Proxy
from unpoison.agents.proxy_bounds import ProxyBounds

MIB = 2**20


class Nobody:
    """A server that only listens."""

    async def send(self, line: bytes, message: dict[str, Any]) -> None: ...


def answer(identifier: object, draw: random.Random) -> bytes:
    """A result of 2,000 words."""
    text = (prose if draw.random() < 0.5 else rows)(draw)
    return json.dumps(
        {"jsonrpc": "2.0", "id": identifier, "result": {"content": [{"type": "text", "text": text}]}}
    ).encode()


def call(number: int) -> bytes:
    """A call of a tool."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"fetch","arguments":{}}}' % number


async def sessions(count: int, calls: int) -> tuple[list[float], float]:
    """Seconds that each result took, of so many sessions with so many calls each; and of processor time, on average."""
    taken, busy = list[float](), list[float]()
    ready = asyncio.Barrier(count)

    async def session(number: int) -> None:
        draw = random.Random(number)
        lines = [answer(i, draw) for i in range(calls)]
        await ready.wait()
        busy.append(time.process_time())
        proxy = Proxy(Nobody(), Gate("bench"), lambda line: None, ProxyBounds())  # type: ignore[arg-type]
        for i, line in enumerate(lines):
            await asyncio.sleep(draw.uniform(0, 2))
            await proxy.from_host(call(i))
            began = time.perf_counter()
            await proxy.from_server(line)
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(session(number) for number in range(count)))
    return taken, (time.process_time() - max(busy)) / len(taken)


def memory(calls: int) -> list[tuple[int, float]]:
    """Resident MiB of a proxy after some numbers of calls."""
    server = [sys.executable, "-m", "benchmarks", "mcp_proxy_load", "--serve"]
    line = [sys.executable, "-m", "unpoison", "mcp-proxy", "--", *server]
    proxy = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
    found = []
    for number in range(1, calls + 1):
        host, back = proxy.stdin, proxy.stdout
        assert host is not None and back is not None  # noqa: S101
        host.write(call(number) + b"\n")
        host.flush()
        assert b'"result"' in back.readline()[:2000]  # noqa: S101
        if number in (calls // 10, calls // 4, calls // 2, calls):
            status = Path(f"/proc/{proxy.pid}/status").read_text()
            kib = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
            found.append((number, int(kib) * 1024 / MIB))
    proxy.communicate()
    return found


def serve() -> None:
    """A server that answers every request with another result."""
    draw = random.Random(0)
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(answer(json.loads(line)["id"], draw) + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--calls", type=int, default=20, help="of each session")
    parser.add_argument("--memory", type=int, default=10_000, help="calls of one proxy")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve()
        return
    asyncio.run(sessions(1, 3))  # what is loaded once is loaded
    taken, busy = asyncio.run(sessions(arguments.sessions, arguments.calls))
    middle, late = np.percentile(taken, [50, 99]) * 1e3
    print(f"{arguments.sessions} sessions, {len(taken):,} results: p50 {middle:.1f} ms, p99 {late:.1f} ms")
    print(f"processor time of one: {busy * 1e3:.1f} ms")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for calls, mib in memory(arguments.memory) if arguments.memory else ():
        print(f"after {calls:,} calls: {mib:.0f} MiB")


if __name__ == "__main__":
    main()
