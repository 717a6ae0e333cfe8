"""What a belief costs: time to read and write one, bytes, and many processes at once.

    python -m benchmarks beliefs
    python -m benchmarks beliefs sqlite:/tmp/beliefs.db redis://localhost:6379/0 postgresql://me@localhost/me

`read + write` is one `get` and the compare-and-set `put` that follows it, the median and the 95th percentile of 5,000
pairs over 1,000 beliefs on one connection. `16 processes` makes 10 updates of each of 1,000 queries in each of 16
processes and counts what was lost. The names given are the stores to measure; without names a new SQLite file.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from unpoison.beliefs import Belief, BeliefStore, MemoryBeliefs, export_lines, open_beliefs

PAIRS, QUERIES, PROCESSES, TIMES = 5_000, 1_000, 16, 10
WRITERS = Path(__file__).parents[2] / "tests" / "beliefs" / "writers.py"
NAMESPACE = "benchmark"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="*", help="such as sqlite:FILE, redis://HOST or postgresql://HOST/NAME")
    parser.add_argument("--skip-processes", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = options.stores or [f"sqlite:{folder}/beliefs.db"]
        print("| store | read + write, median | p95 | updates by 16 processes | lost | seconds |")
        print("|---|---|---|---|---|---|")
        for name in names:
            store = open_beliefs(name, namespace=NAMESPACE)
            median, late = pair_times(store)
            store.forget_all()
            store.close()
            crowd = "| - | - | - |" if options.skip_processes else processes(name)
            print(f"| {name.partition(':')[0]} | {median:.3f} ms | {late:.3f} ms {crowd}", flush=True)
    print(f"\nA belief as JSON: {size()} bytes at its longest.")


def pair_times(store: BeliefStore) -> tuple[float, float]:
    """Median and 95th percentile of reading a belief and writing it back, in milliseconds."""
    belief = Belief("The answer is a sentence of about this length, as models write them.", 0.75, 0.125, "Who is it?")
    for number in range(QUERIES):
        store.put(f"q{number}", belief)
    seconds = []
    for number in range(PAIRS):
        key = f"q{number * 7919 % QUERIES}"
        began = time.perf_counter()
        found = store.get(key)
        written = store.put(key, belief, expected=found.version if found else "")
        seconds.append(time.perf_counter() - began)
        assert written  # noqa: S101  nobody else writes here
    return 1000 * statistics.median(seconds), 1000 * statistics.quantiles(seconds, n=20)[-1]


def processes(name: str) -> str:
    began = time.perf_counter()
    command = [sys.executable, str(WRITERS), "updates", name, NAMESPACE, *map(str, (PROCESSES, QUERIES, TIMES))]
    told = dict(part.split("=") for part in subprocess.check_output(command, text=True).split())  # noqa: S603
    expected = PROCESSES * TIMES
    lost = "none" if told["least"] == told["most"] == str(expected) and told["failed"] == "0" else str(told)
    return f"| {PROCESSES * TIMES * QUERIES:,} | {lost} | {time.perf_counter() - began:.0f} |"


def size() -> int:
    store = MemoryBeliefs()
    store.put("k" * 32, Belief("word " * 500, 1 / 3, 2 / 3, "why " * 500))
    return max(len(line.encode()) for line in export_lines(store))


if __name__ == "__main__":
    main()
