"""How fast a log is audited, and in how much memory: rows of ten documents, most of them new, some planted.

python -m benchmarks audit --rows 10000,40000
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

from unpoison.scan.audit import Audit


def rows(count: int, seed: int = 0) -> Iterator[str]:
    """Lines as the audit log has them without texts."""
    rng = random.Random(seed)
    for number in range(count):
        passages = [
            {
                "id": f"doc-{rng.randrange(10 * count)}",
                "source": f"site-{rng.randrange(500)}",
                "kept": rng.random() > 0.02,
            }
            for _ in range(10)
        ]
        question = rng.randrange(count)
        yield json.dumps(
            {
                "audit": 1,
                "time": f"2026-03-{1 + number * 28 // count:02}T12:00:00+00:00",
                "defense": "guard",
                "query_hash": f"{question:016x}",
                "passages": passages,
            }
        )


def measure(count: int) -> None:
    began = time.process_time()
    for _ in map(json.loads, rows(count)):
        pass
    made = time.process_time() - began
    began = time.process_time()
    with Audit() as audit:
        for line in rows(count):
            audit.add(json.loads(line))
        report = audit.report()
    seconds = time.process_time() - began - made
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"| {count:,} | {report.documents:,} | {count / seconds:,.0f} | {peak:,.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="10000,40000")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        measure(args.one)
        return
    print("| rows | different documents | rows / CPU second | peak memory, MB |\n|---|---|---|---|", flush=True)
    for count in args.rows.split(","):
        subprocess.run([sys.executable, "-m", "benchmarks", "audit", "--one", count], check=True)  # noqa: S603  memory of its own


if __name__ == "__main__":
    main()
