"""What `unpoison serve` does under more load than it can carry, on this machine, over loopback.

    python benchmarks/service_load.py --clients 16,100,320 --seconds 5
    python benchmarks/service_load.py --clients 16 --idle 0,2000          # beside silent and half-sent connections

Each client asks `/v2/rerank` with ten short documents, one request after the other over one connection, and again at
once when it is refused. Prints for every number of clients the answers a second (goodput), the refusals, the time to an
answer, and the time to `/healthz` over a connection of its own. With `--loop`, first the same screenings in a loop in
this process. Other work on the machine lowers all figures; compare those of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import time
from collections import Counter
from itertools import count

import numpy as np

from service import service

WORDS = ("harbour", "museum", "ship", "hull", "city", "island", "north", "war", "salvage", "crew", "king", "water")


def body(random: np.random.Generator) -> bytes:
    """A request of ten documents of twenty words."""
    documents = [" ".join(random.choice(WORDS, 20)) + f" {n}." for n in random.integers(0, 10**6, 10)]
    return json.dumps({"model": "guard", "query": "where is the ship shown", "documents": documents}).encode()


def request(address: str, method: str, path: str, content: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def client(address: str, requests: list[bytes], until: float, pause: float, seen: dict[int, list[float]]) -> None:
    """Ask until the time is over; the seconds to each reply by its status, 0 for a broken connection."""
    host, _, port = address.partition(":")
    connection = None
    for i in count():
        if time.monotonic() > until:
            break
        began = time.perf_counter()
        try:
            connection = connection or await asyncio.wait_for(asyncio.open_connection(host, int(port)), 5)
            reader, writer = connection
            writer.write(requests[i % len(requests)])
            head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).lower()
            length = head.partition(b"content-length:")[2].partition(b"\r")[0]
            await reader.readexactly(int(length or 0))
            seen.setdefault(int(head[9:12]), []).append(time.perf_counter() - began)
            if b"connection: close" in head or not length:
                writer.close()
                connection = None
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            seen.setdefault(0, []).append(time.perf_counter() - began)
            connection = None
            await asyncio.sleep(0.05)
        if pause:
            await asyncio.sleep(pause)
    if connection is not None:
        connection[1].close()


async def idle(address: str, number: int) -> list[asyncio.StreamWriter]:
    """Connections that say nothing, or half of a head."""
    host, _, port = address.partition(":")
    opened = []
    for i in range(number):
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(host, int(port)), 5)
        except (OSError, TimeoutError):
            continue
        if i % 2:
            writer.write(b"POST /v2/rerank HTTP/1.1\r\nHost: loc")
        opened.append(writer)
    return opened


async def measured(address: str, clients: int, idlers: int, seconds: float) -> str:
    random = np.random.default_rng(0)
    requests = [request(address, "POST", "/v2/rerank", body(random)) for _ in range(64)]
    silent = await idle(address, idlers)
    seen: dict[int, list[float]] = {}
    alive: dict[int, list[float]] = {}
    began = time.monotonic()
    until = began + seconds
    health = client(address, [request(address, "GET", "/healthz")], until, 0.05, alive)
    await asyncio.gather(health, *(client(address, requests, until, 0.0, seen) for _ in range(clients)))
    took = time.monotonic() - began
    for writer in silent:
        writer.close()
    times = 1000 * np.array(seen.get(200) or [np.nan])
    healthy = 1000 * np.array(alive.get(200) or [np.nan])
    others = dict(Counter({status: len(found) for status, found in seen.items() if status != 200}))
    sick = sum(len(found) for status, found in alive.items() if status != 200)
    return (
        f"{clients:5d} clients {idlers:5d} idle: {len(times) / took:7.1f} answers/s, "
        f"median {np.median(times):6.1f} ms, p99 {np.percentile(times, 99):7.1f} ms; "
        f"others in all {others}; /healthz p99 {np.percentile(healthy, 99):6.1f} ms, {sick} failed"
    )


def loop(seconds: float) -> float:
    """Screenings a second by the library, one after the other, of the same texts."""
    from unpoison import Guard

    random, guard = np.random.default_rng(0), Guard()
    rows = [json.loads(body(random)) for _ in range(64)]
    guard.screen(rows[0]["query"], rows[0]["documents"])
    began = time.monotonic()
    for done in count(1):
        row = rows[done % len(rows)]
        guard.screen(row["query"], row["documents"])
        if time.monotonic() - began > seconds:
            return done / (time.monotonic() - began)
    raise AssertionError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defense", default="guard")
    parser.add_argument("--clients", default="16,100,320", help="closed-loop connections, separated by commas")
    parser.add_argument("--idle", default="0", help="silent connections beside them, separated by commas")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--loop", action="store_true", help="measure the library called in a loop first")
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    if arguments.loop:
        print(f"the library in a loop: {loop(arguments.seconds):.1f} screenings/s")
    for idlers in map(int, arguments.idle.split(",")):
        for clients in map(int, arguments.clients.split(",")):
            with service(arguments.defense) as address:  # a fresh one, so that no round pays for another
                asyncio.run(measured(address, 2, 0, 1.0))
                print(asyncio.run(measured(address, clients, idlers, arguments.seconds)), flush=True)


if __name__ == "__main__":
    main()
