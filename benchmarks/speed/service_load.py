"""What `unpoison serve` does under load, up to more than it can carry, on this machine, over loopback.

    python -m benchmarks service_load --loop --clients 16,320
    python -m benchmarks service_load --loop --passages 10,50,100 --workers 1,2

Each client asks `/v2/rerank` with short documents, one request after the other over one connection, and again at once
when it is refused. A document is one or two sentences, drawn from 400 words as often as such words occur; those of one
request share a topic, and none is a copy of another one. Prints a Markdown table: answers a second (goodput), the time
to an answer, how many were refused, and the time to `/healthz` over a connection of its own. With `--loop`, first the
same screenings in a loop in this process, and what share of its speed the service reaches. The clients take part of a
processor too, and other work on the machine lowers all figures; compare those of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, product

import numpy as np

from benchmarks.speed.inputs import FUNCTION_WORDS, TOPICS

VOCABULARY = [*FUNCTION_WORDS.split(), *TOPICS]
"""From common to rare."""

REQUESTS = 64
"""Different ones, which the clients send in turn."""

HEAD = """\
| passages | processes | clients | answers/s | of the loop | median ms | p99 ms | others | /healthz p99 ms |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | ---: |"""


@contextmanager
def service(defense: str, *options: str) -> Iterator[str]:
    """HOST:PORT of a service with one defense."""
    command = [sys.executable, "-c", "from unpoison.cli import main; main()", "serve", "--port", "0", "-d", defense]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)  # noqa: S603  our own
    log = process.stderr or ()
    try:
        for line in log:
            if found := re.search(r"running on http://([\d.:]+)", line):
                break
        else:
            raise SystemExit("the service did not start")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: [None for _ in log])  # or the pipe would fill
            yield found[1]
            process.terminate()
    finally:
        process.terminate()
        process.wait(60)


def row(random: np.random.Generator, passages: int, words: int) -> dict[str, object]:
    """A request of documents of so many words."""
    weights = 1 / np.arange(1, len(VOCABULARY) + 1)
    topic = random.choice(TOPICS, 8, replace=False).tolist()

    def sentence(length: int) -> str:
        drawn = random.choice(VOCABULARY, length, p=weights / weights.sum()).tolist()
        drawn[int(random.integers(length))] = topic[int(random.integers(8))]
        return f"{' '.join(drawn).capitalize()}."

    documents = [f"{sentence(words - words // 2)} {sentence(words // 2)}" for _ in range(passages)]
    return {"model": "guard", "query": f"which {topic[0]} was the {topic[1]} of the {topic[2]}", "documents": documents}


def rows(passages: int, words: int) -> list[dict[str, object]]:
    random = np.random.default_rng(0)
    return [row(random, passages, words) for _ in range(REQUESTS if passages <= 100 else 4)]


def request(address: str, method: str, path: str, content: object = None) -> bytes:
    body = b"" if content is None else json.dumps(content).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


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


async def measured(address: str, asked: list[dict[str, object]], clients: int, seconds: float) -> tuple[float, str]:
    """Answers a second, and the rest of a row of the table."""
    requests = [request(address, "POST", "/v2/rerank", one) for one in asked]
    health = [request(address, "GET", "/healthz")]
    seen, alive = dict[int, list[float]](), dict[int, list[float]]()
    began = time.monotonic()
    until = began + seconds
    work = [client(address, requests[i % len(requests) :] + requests, until, 0.0, seen) for i in range(clients)]
    work.append(client(address, health, until, 0.05, alive))
    await asyncio.gather(*work)
    took = time.monotonic() - began
    times, healthy = (1000 * np.array(found.get(200) or [np.nan]) for found in (seen, alive))
    others = {str(status): len(found) for status, found in seen.items() if status != 200}
    others |= {f"/healthz {status}": len(found) for status, found in alive.items() if status != 200}
    told = ", ".join(f"{number} x {what}" for what, number in others.items()) or "none"
    times = f"{np.median(times):.1f} | {np.percentile(times, 99):.1f} | {told} | {np.percentile(healthy, 99):.1f}"
    return len(seen.get(200, ())) / took, times


def loop(asked: list[dict[str, object]], seconds: float) -> float:
    """Screenings a second by the library, one after the other, of the same texts."""
    from unpoison import Guard

    guard, began = Guard(), 0.0
    for done in count():
        one = asked[done % len(asked)]
        guard.screen(one["query"], one["documents"])  # type: ignore[arg-type]
        began = began or time.monotonic()  # the first one loads what all need
        if time.monotonic() - began > seconds:
            return done / (time.monotonic() - began)
    raise AssertionError


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    several = "several by commas"
    parser.add_argument("--defense", default="guard")
    parser.add_argument("--passages", type=numbers, default=[10], help=f"of a request; {several}")
    parser.add_argument("--words", type=int, default=20, help="of a passage")
    parser.add_argument("--clients", type=numbers, default=[16], help=f"closed-loop connections; {several}")
    parser.add_argument("--workers", type=numbers, default=[1], help=f"processes of the service; {several}")
    parser.add_argument("--threads", help="as of unpoison serve")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--loop", action="store_true", help="measure the library called in a loop first")
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    print(HEAD)
    for passages in given.passages:
        asked = rows(passages, given.words)
        alone = loop(asked, given.seconds) if given.loop else np.nan
        if given.loop:
            print(f"| {passages} | the loop | | {alone:.1f} | 100 % | {1000 / alone:.1f} | | | |", flush=True)
        for workers, clients in product(given.workers, given.clients):
            options = ["--workers", str(workers), *(["--limit", f"threads={given.threads}"] if given.threads else [])]
            with service(given.defense, *options) as address:  # a fresh one, so that no round pays for another
                asyncio.run(measured(address, asked, 4 * workers, 1.0))
                rate, told = asyncio.run(measured(address, asked, clients, given.seconds))
            share = f"{rate / alone:.0%}" if given.loop else ""
            print(f"| {passages} | {workers} | {clients} | {rate:.1f} | {share} | {told} |", flush=True)


if __name__ == "__main__":
    main()
