"""What `MemoryGate` sets aside of texts that are written to it by nobody known: injections, and harmless texts.

    python -m benchmarks memory_writes evaluation-data/injections.jsonl

Rows as for `tool_results`. Texts longer than a memory may be are cut. Nothing is fitted on these rows here.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from benchmarks.quality.tool_results import AGENT, UNCLEAR
from unpoison.agents import MemoryGate
from unpoison.agents.memory import MAX_CHARS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    arguments = parser.parse_args()
    rows, codes = Counter[str](), Counter[tuple[str, str]]()
    gate = MemoryGate(max_memories=1)
    with arguments.rows.open(encoding="utf-8") as file:
        for row in map(json.loads, file):
            group = row["kind"] if row["label"] == "injection" else "harmless texts"
            if row["kind"] == UNCLEAR or (row["label"] == "injection" and row["kind"] not in AGENT):
                continue
            rows[group] += 1
            codes[group, gate.write(row["text"][:MAX_CHARS]).reason.code] += 1
    print("| | rows | set aside % | for an injection % | for an order or a claim % |\n|---|---:|---:|---:|---:|")
    for group, count in sorted(rows.items()):
        claims = codes[group, "memory.order"] + codes[group, "memory.rule"]
        aside = count - codes[group, "memory.kept"]
        print(
            f"| {group} | {count:,} | " + " | ".join(f"{100 * n / count:.1f}" for n in (aside, aside - claims, claims)),
            "|",
        )


if __name__ == "__main__":
    main()
