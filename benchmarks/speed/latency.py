"""What the calls of a whole answer cost: a server on this machine that takes 200 ms for every reply.

    python -m benchmarks latency

The server is a process of its own. Four of five prompts get the same answer and every other one its own, so that RADAR
has pairs to judge and something to trust; judge and encoder are the built-in ones. Medians of five runs, each with a
question of its own.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from servers import serving
from unpoison import Radar, TrustRag
from unpoison.defenses.base import Defense
from unpoison.models import OpenAIGenerator
from unpoison.runtime.driver import Limits
from unpoison.types import Answer

RUNS = 5
LATENCY = 0.2
LIMITS = Limits(in_flight=32)
ROWS: list[tuple[str, type[Defense], int, float]] = [
    ("RADAR", Radar, 50, 3.0),
    ("RADAR", Radar, 10, 0.7),
    ("TrustRAG", TrustRag, 10, 3 * LATENCY + 0.05),
]
"""Name, defense, passages, and the seconds that it may take."""


def passages(k: int, run: int) -> list[str]:
    """About a hundred words each, all different."""
    words = ["river", "bridge", "council", "harvest", "engine", "station", "museum", "treaty", "village", "record"]
    return [" ".join(f"{words[(i * j + run) % 10]} {i * 97 + j * run}" for j in range(1, 51)) for i in range(k)]


def seconds(answer: Callable[[str, list[str]], Answer], k: int) -> tuple[float, Answer]:
    """The median of all runs after one to warm up, and the last answer."""
    taken = []
    for run in range(RUNS + 1):
        texts = passages(k, run)
        began = time.perf_counter()
        last = answer(f"where was the treaty of the year {1900 + run} signed?", texts)
        taken.append(time.perf_counter() - began)
    return median(taken[1:]), last


def main() -> None:
    """Print one Markdown table."""
    print("| | passages | | calls | median | at most | |")
    print("|---|---:|---|---:|---:|---:|---|")
    with serving() as url:
        generator = OpenAIGenerator(f"answers/{LATENCY}", f"{url}/v1")
        for name, defense, k, most in ROWS:
            made = defense(generator=generator, limits=LIMITS)  # type: ignore[call-arg]
            with asyncio.Runner() as loop:
                ways = {"`answer`": made.answer, "`aanswer`": lambda *a, m=made, r=loop: r.run(m.aanswer(*a))}
                for way, answer in ways.items():
                    taken, last = seconds(partial(answer), k)
                    calls = sum(call.kind == "generate" for call in last.calls)
                    verdict = "reached" if taken <= most else "missed"
                    print(f"| {name} | {k} | {way} | {calls} | {taken:.3f} s | {most:.2f} s | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
