"""Whether memory grows with the number of requests: mixed traffic, hostile texts among it, in this process.

    python -m benchmarks memory --requests 200000

Prints the resident memory after 1,000 requests and then at each tenth of the way. A service that runs for a day must
end within 20 % of the first figure.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from unpoison import Grada, Guard

FIRST = 1000


def resident() -> float:
    """MiB of this process (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def texts(random: np.random.Generator) -> list[str]:
    """Ten passages: words nobody has used before, endless tokens, one character, other scripts, commas."""
    kind = random.integers(0, 6)
    if kind == 1:
        return ["x" * 190 + str(random.integers(10**12)) for _ in range(10)]
    if kind == 2:
        return ["\u6f22" * int(n) for n in random.integers(1, 200, 10)]
    if kind == 3:
        return [",".join(map(str, random.integers(0, 10**6, 30))) for _ in range(10)]
    return [" ".join(f"word{n}" for n in random.integers(0, 10**9, 30)) + "." for _ in range(10)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    answering, other = Guard(generator="extractive"), Grada()
    first, began = 0.0, time.monotonic()
    for done in range(1, arguments.requests + 1):
        query, passages = f"which word is {random.integers(10**9)}", texts(random)
        if done % 4 == 0:
            answering.answer(query, passages)
        else:
            (other if done % 4 == 1 else answering).screen(query, passages)
        if done == FIRST:
            first = resident()
        if done >= FIRST and (done == FIRST or done % (arguments.requests // 10) == 0):
            now = resident()
            took = time.monotonic() - began
            print(f"{done:8,} requests, {took:6.0f} s: {now:6.1f} MiB, {100 * (now / first - 1):+.0f} %", flush=True)


if __name__ == "__main__":
    main()
