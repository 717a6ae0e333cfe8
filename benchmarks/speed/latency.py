"""Time to screen ten passages: without a model, with the shipped reader, and over HTTP. Run it on a quiet machine.

    python -m benchmarks latency evaluation-data
    python -m benchmarks latency evaluation-data --passages 10 --words 100

Prints a Markdown table with the median (p50) and the 95th percentile in milliseconds, one request after the other, no
text twice. Questions and passages are RealtimeQA's and BioGen's: news, search results and biographies, on which nothing
of this package was fitted. The passages of a question are joined and cut into passages of so many words.
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
from pathlib import Path

import numpy as np

from benchmarks.data_option import evaluation_folder
from unpoison import Guard

FILES = ("realtimeqa", "realtimeqa_weekly", "biogen")
"""Of the evaluation data."""

WARM = 5
"""Requests before the first one that counts."""


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


def requests(folder: Path, passages: int, words: int) -> Iterator[dict[str, object]]:
    """Questions with so many passages of so many words, none of whose texts stands in an earlier one."""
    seen = set[str]()
    for name in FILES:
        for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines():
            asked = json.loads(line)
            texts = dict.fromkeys(one["text"] for one in asked["passages"] if one["label"] != "poison")
            running = " ".join(text for text in texts if text not in seen).split()
            seen.update(texts)
            if len(running) >= passages * words:
                documents = [" ".join(running[i * words : (i + 1) * words]) for i in range(passages)]
                yield {"model": "guard", "query": asked["question"], "documents": documents}


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
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("--passages", type=int, default=10, help="of a request")
    parser.add_argument("--words", type=int, default=100, help="of a passage")
    given = parser.parse_args()
    asked = list(requests(given.folder, given.passages, given.words))
    first, second, third = (asked[start::3] for start in range(3))
    size = f"{given.passages} passages of {given.words} words, {len(third) - WARM} requests"
    print(f"| {size} | p50 ms | p95 ms |\n|---|---:|---:|")
    for name, guard, some in (
        ("without a model", Guard(), first),
        ("with the reader", Guard(generator="reader"), second),
    ):
        print(f"| {name} | {timings(lambda one: guard.screen(one['query'], one['documents']), some)}", flush=True)  # type: ignore[arg-type]  # noqa: B023  called at once
    with service() as address:
        print(f"| over HTTP, without a model | {timings(over_http(address), third)}", flush=True)


if __name__ == "__main__":
    main()
