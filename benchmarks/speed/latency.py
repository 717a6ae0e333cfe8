"""Time to screen ten passages: without a model, with the shipped reader, and over HTTP. Run it on a quiet machine.

    python -m benchmarks latency
    python -m benchmarks latency --passages 10 --words 100 --requests 200

Prints a Markdown table with the median (p50) and the 95th percentile in milliseconds, one request after the other, no
text twice. A text is two sentences, drawn from 400 words as often as such words occur; those of one request share a
topic, and none is a copy of another one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from benchmarks.speed.inputs import FUNCTION_WORDS, TOPICS
from unpoison import Guard

WARM = 5
"""Requests before the first one that counts."""


VOCABULARY = [*FUNCTION_WORDS.split(), *TOPICS]
"""From common to rare."""


@contextmanager
def service() -> Iterator[str]:
    """HOST:PORT of a service with Guard."""
    command = [sys.executable, "-m", "unpoison", "serve", "--port", "0", "-d", "guard"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603  our own
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


def timings(work: Callable[[dict[str, object]], object], asked: list[dict[str, object]]) -> str:
    """p50 and p95 as cells of a table."""
    taken = []
    for one in asked:
        began = time.perf_counter()
        work(one)
        taken.append(1000 * (time.perf_counter() - began))
    p50, p95 = np.percentile(taken[WARM:], (50, 95))
    return f"{p50:.1f} | {p95:.1f} |"


def over_http(address: str) -> Callable[[dict[str, object]], object]:
    """Send a request over one connection that stays open."""
    connection = http.client.HTTPConnection(address, timeout=60)

    def send(one: dict[str, object]) -> bytes:
        connection.request("POST", "/v2/rerank", json.dumps(one), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            raise SystemExit(f"the service answered {reply.status}")
        return reply.read()

    return send


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=10, help="of a request")
    parser.add_argument("--words", type=int, default=100, help="of a passage")
    parser.add_argument("--requests", type=int, default=200)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    asked = [row(random, given.passages, given.words) for _ in range(3 * (given.requests + WARM))]
    print(f"| {given.passages} passages of {given.words} words | p50 ms | p95 ms |\n|---|---:|---:|")
    for name, guard in (("without a model", Guard()), ("with the reader", Guard(generator="reader"))):
        some, asked = asked[: given.requests + WARM], asked[given.requests + WARM :]
        print(f"| {name} | {timings(lambda one: guard.screen(one['query'], one['documents']), some)}", flush=True)  # type: ignore[arg-type]  # noqa: B023  called at once
    with service() as address:
        print(f"| over HTTP, without a model | {timings(over_http(address), asked)}", flush=True)


if __name__ == "__main__":
    main()
