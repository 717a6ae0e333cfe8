"""What screening adds to one result of a tool of 2,000 words: median and 99th percentile, each text a new one.

python -m benchmarks tool_results_speed
"""

from __future__ import annotations

import json
import random
import time

import numpy as np

from unpoison.agents import screen_tool_result

WORDS, RUNS = 2_000, 300
TEXT = """The river bridge council harvest engine station museum treaty village record water market report street
winter school garden island letter of and in was built near after between with from over"""
VOCABULARY = TEXT.lower().split()


def prose(draw: random.Random) -> str:
    """Sentences of 12 words."""
    lines = (" ".join(draw.choices(VOCABULARY, k=12)).capitalize() for _ in range(WORDS // 12))
    return ". ".join(lines) + "."


def rows(draw: random.Random) -> str:
    """JSON of objects with a sentence each."""
    made = [{"id": i, "body": " ".join(draw.choices(VOCABULARY, k=10))} for i in range(WORDS // 10)]
    return json.dumps({"rows": made})


def main() -> None:
    """Print one Markdown table."""
    print("| result | p50 ms | p99 ms |\n|---|---:|---:|")
    for name, make in (("prose", prose), ("JSON", rows)):
        draw, taken = random.Random(0), list[float]()
        for _ in range(RUNS + 20):
            text = make(draw)
            began = time.perf_counter()
            assert screen_tool_result("fetch", text).value is text  # noqa: S101
            taken.append(time.perf_counter() - began)
        middle, late = np.percentile(taken[20:], [50, 99]) * 1e3
        print(f"| {name} | {middle:.1f} | {late:.1f} |")


if __name__ == "__main__":
    main()
