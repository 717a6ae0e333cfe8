"""What `screen_tool_result` does to results of tools that hold prompt injections, and to those that hold none.

    python -m benchmarks tool_results evaluation-data/injections.jsonl
    python -m benchmarks tool_results evaluation-data/injections.jsonl --family --show 10

Rows are `{text, label, kind, family}`, with the label `injection` or `benign`; `order` is the injection alone, where it
is known. A row counts as caught where the result is redacted or blocked, and as cut where nothing is left of the order.
Nothing is fitted on these rows here.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from unpoison.agents import screen_tool_result

AGENT = ("agent task", "tool call", "tool call/exfiltration", "memory write")
"""Kinds that ask for something that an agent does, not for an answer."""

RESULTS = ("tool result", "tool result JSON", "ticket or event JSON", "table", "email", "memory entry")
"""Kinds of harmless texts that a tool returns as they are."""

UNCLEAR = "prompt or agent instruction file"
"""A kind of texts that speak to a model with the blessing of whoever wrote them: nobody can say that they are harmless
in a result."""

DRAWS = 2_000


class Outcome(NamedTuple):
    """What became of one row: whether it was changed, and whether nothing of its order is left, where that is known."""

    row: dict[str, Any]
    changed: bool
    gone: bool | None
    value: Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--family", action="store_true", help="a line for each family of the agents' kinds as well")
    parser.add_argument("--show", type=int, default=0, help="so many harmless rows that were changed")
    arguments = parser.parse_args()
    with arguments.rows.open(encoding="utf-8") as file:
        outcomes = [outcome_of(json.loads(line)) for line in file]
    bad = [one for one in outcomes if one.row["label"] == "injection"]
    good = [one for one in outcomes if one.row["label"] == "benign" and one.row["kind"] != UNCLEAR]
    print("| injections | rows | families | redacted or blocked | by family | of known orders, gone |")
    print("|---|---:|---:|---:|---:|---:|")
    print(line("agent kinds", [one for one in bad if one.row["kind"] in AGENT]))
    for kind in AGENT:
        print(line(kind, [one for one in bad if one.row["kind"] == kind]))
    print(line("all", bad))
    print("\n| harmless | rows | documents | changed | by document |\n|---|---:|---:|---:|---:|")
    for name, kinds in (("results of tools", RESULTS), *((kind, (kind,)) for kind in RESULTS)):
        print(line(name, [one for one in good if one.row["kind"] in kinds], gone=False))
    print(line("all", good, gone=False))
    if arguments.family:
        for name, own in families(one for one in bad if one.row["kind"] in AGENT).items():
            print(f"{np.mean([one.changed for one in own]):.2f} {len(own)} {name}")
    for one in [one for one in good if one.changed][: arguments.show]:
        print(f"--- {one.row['kind']}\n{one.row['text'][:600]}\n=>\n{one.value[:600]}")


def outcome_of(row: dict[str, Any]) -> Outcome:
    """Screen a row as the text of a result."""
    result = screen_tool_result("tool", row["text"])
    order = row.get("order")
    return Outcome(row, result.changed, None if not order else order not in result.value, result.value)


def families(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    """The rows of each family."""
    found: dict[str, list[Outcome]] = {}
    for one in outcomes:
        found.setdefault(one.row["family"], []).append(one)
    return found


def line(name: str, outcomes: list[Outcome], *, gone: bool = True) -> str:
    """A row of the table: shares with the middle 95 % of draws of whole families."""
    if not outcomes:
        return f"| {name} | 0 |"
    shares = [float(np.mean([one.changed for one in own])) for own in families(outcomes).values()]
    sizes = np.array([len(own) for own in families(outcomes).values()])
    share = float(np.mean([one.changed for one in outcomes]))
    drawn = np.random.default_rng(0).integers(0, len(shares), (DRAWS, len(shares)))
    means = (np.array(shares) * sizes)[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    cells = [name, f"{len(outcomes):,}", f"{len(shares):,}", f"{share:.1%} ({low:.1%} to {high:.1%})"]
    cells.append(f"{np.mean(shares):.1%}")
    if gone:
        known = [one.gone for one in outcomes if one.gone is not None]
        cells.append(f"{np.mean(known):.1%} of {len(known):,}" if known else "-")
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
