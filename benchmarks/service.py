"""Requests per second of `unpoison serve` on this machine, over loopback, with given embeddings.

    python benchmarks/service.py --clients 8 --seconds 5

Starts the service as a process of its own, sends `/v1/screen` over connections that stay open, and prints the rate, the
times to reply, and how long `/healthz` takes meanwhile.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

HEADERS = {"Content-Type": "application/json"}


@contextmanager
def service(defense: str) -> Iterator[str]:
    """HOST:PORT of a service with one defense."""
    command = [sys.executable, "-c", "from unpoison.cli import main; main()"]
    options = ["serve", "--port", "0", "-d", defense, "--log-level", "info"]
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


def request(passages: int, dimensions: int, words: int = 100) -> bytes:
    """A question and passages of random words, all with embeddings."""
    random = np.random.default_rng(0)

    def passage() -> dict[str, object]:
        text = " ".join(f"word{i}" for i in random.integers(0, 2000, words))
        return {"text": text, "embedding": np.round(random.normal(size=dimensions), 6).tolist()}

    question = passage()
    body = {"query": "which of the words is it", "embedding": question["embedding"]}
    return json.dumps({**body, "passages": [passage() for _ in range(passages)]}).encode()


def seconds_of(
    address: str, method: str, path: str, body: bytes | None, until: float, pause: float = 0.0
) -> list[float]:
    """Seconds to reply, of one request after another."""
    connection, found = http.client.HTTPConnection(address, timeout=60), list[float]()
    while time.monotonic() < until:
        began = time.perf_counter()
        connection.request(method, path, body, HEADERS)
        response = connection.getresponse()
        response.read()
        found.append(time.perf_counter() - began)
        if response.status != 200:
            raise SystemExit(f"{path} replied with status {response.status}")
        time.sleep(pause)
    connection.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defense", default="guard")
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    arguments = parser.parse_args()
    body = request(arguments.passages, arguments.dimensions)
    with service(arguments.defense) as address, ThreadPoolExecutor(arguments.clients + 1) as pool:
        seconds_of(address, "POST", "/v1/screen", body, time.monotonic() + 0.5)
        began = time.monotonic()
        until = began + arguments.seconds
        asked = [pool.submit(seconds_of, address, "POST", "/v1/screen", body, until) for _ in range(arguments.clients)]
        health = pool.submit(seconds_of, address, "GET", "/healthz", None, until, 0.05)
        times = np.array([one for future in asked for one in future.result()]) * 1000
        alive = np.array(health.result()) * 1000
        rate = len(times) / (time.monotonic() - began)
    print(
        f"{arguments.defense}, k = {arguments.passages}, {arguments.dimensions} dimensions, "
        f"{len(body) / 1024:.0f} KiB a request, {arguments.clients} clients: {rate:.0f} requests/s; "
        f"time to reply: median {np.median(times):.1f} ms, 95 % {np.percentile(times, 95):.1f} ms; "
        f"/healthz meanwhile: median {np.median(alive):.1f} ms, 95 % {np.percentile(alive, 95):.1f} ms"
    )


if __name__ == "__main__":
    main()
