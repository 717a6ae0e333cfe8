"""What the screening defenses save and what they cost, on the data sets that bring published poison.

    python -m benchmarks quality evaluation-data --encoder minilm > quality.md

The screening defenses see 10 passages per question. nq, hotpotqa, msmarco, nq_large: the gold passages, then the
question's own retrieved passages, then BM25 results from corpus.jsonl; poisons push out the last ones, and the order
shown is that of the cosine similarity to the question. realtimeqa: Google's first results, in cosine order ("cosine")
or in Google's with the poisons in front ("given"). Benign sets, RAMDocs and RGB: the published passages, nothing
planted. Intervals are 95 %: Wilson's for shares of questions, a bootstrap over questions for shares of passages.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality.quality_cells import AS_PUBLISHED, ATTACKS, BENIGN, CANDIDATES, SETS, WIKI, Cell, cells
from unpoison import Query, __version__
from unpoison.algorithms.cosine import best_first, cosine
from unpoison.algorithms.intervals import Estimate, bootstrap_ratio, wilson
from unpoison.core.registry import create
from unpoison.defenses.base import Defense
from unpoison.models import CachedEncoder, load_encoder
from unpoison.models.protocols import Encoder
from unpoison_lab.evaluation.contexts import Context
from unpoison_lab.evaluation.runs import CellTally, tally

DEFENSES = {
    "none (top 5)": None,
    "grada hrsim": "grada:variant=hrsim",
    "grada bm25": "grada:variant=bm25",
    "grada ebd": "grada:variant=ebd",
    "ragdefender single": "ragdefender:hops=single",
    "ragdefender multi": "ragdefender:hops=multi",
    "trustrag stage 1, paper": "trustrag:stages=1",
    "trustrag stage 1, reference": "trustrag:stages=1,mode=reference",
}
TOP = 5

Tallies = Sequence[CellTally]
Measure = Callable[[Tallies], str]


def table(corner: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A Markdown table."""
    lines = [f"| {corner} | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    lines += [f"| {name} | {' | '.join(cells)} |" for name, cells in rows]
    return "\n".join(lines) + "\n"


def percent(estimate: Estimate) -> str:
    if np.isnan(estimate.value):
        return "-"
    return f"{100 * estimate.value:.0f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def poisoned(tallies: Tallies) -> str:
    return percent(wilson(sum(t.poisoned for t in tallies), len(tallies)))


def damaged(tallies: Tallies) -> str:
    return percent(wilson(sum(t.damaged for t in tallies), len(tallies)))


def emptied(tallies: Tallies) -> str:
    return percent(wilson(sum(t.emptied for t in tallies), len(tallies)))


def clean_kept(tallies: Tallies) -> str:
    return percent(bootstrap_ratio([t.clean_kept for t in tallies], [t.clean_kept + t.clean_dropped for t in tallies]))


def gold_kept(tallies: Tallies) -> str:
    return percent(bootstrap_ratio([t.gold_kept for t in tallies], [t.gold_kept + t.gold_dropped for t in tallies]))


POISON_LEFT: dict[str, Measure] = {"% of questions with poison left": poisoned}

BENIGN_MEASURES: dict[str, Measure] = {
    "% of clean passages kept": clean_kept,
    "% of gold passages kept": gold_kept,
    "% of questions that lose a clean passage": damaged,
    "% of questions with nothing left": emptied,
}


Key = tuple[str, str, int, str, str]
"""Data set, attack, poisons, order, defense."""


class Shown:
    """Contexts as the defenses see them: ordered, and with vectors where the encoder's can be kept."""

    def __init__(self, encoder: Encoder, cache: Path) -> None:
        self.encoder = encoder
        if not getattr(encoder, "per_set", False):
            cache.parent.mkdir(parents=True, exist_ok=True)
            self.encoder = CachedEncoder(encoder, path=cache)

    def prepare(self, found: list[Cell]) -> None:
        """Encode all texts at once."""
        if isinstance(self.encoder, CachedEncoder):
            texts = {text for cell in found for c in cell.contexts for text in (c.query, *(p.text for p in c.passages))}
            self.encoder.encode(sorted(texts, key=lambda text: (len(text), text)))

    def __call__(self, context: Context, order: str) -> tuple[Query, Context]:
        vectors = self.encoder.encode([context.query, *(passage.text for passage in context.passages)])
        query = Query(context.query)
        if isinstance(self.encoder, CachedEncoder):
            query = Query(context.query, vectors[0])
            embedded = (
                replace(candidate, passage=replace(candidate.passage, embedding=vector))
                for candidate, vector in zip(context.candidates, vectors[1:], strict=True)
            )
            context = replace(context, candidates=tuple(embedded))
        if order != "cosine":
            return query, context
        return query, context.reorder(best_first(cosine(vectors[:1], vectors[1:]).ravel()))


def measure(found: list[Cell], defenses: dict[str, Defense | None], shown: Shown) -> dict[Key, list[CellTally]]:
    """Screen every context with every defense."""
    results = defaultdict[Key, list[CellTally]](list)
    for cell in found:
        print(f"{cell.dataset}, {cell.attack} x {cell.poisons}", file=sys.stderr, flush=True)
        for plain in cell.contexts:
            query, context = shown(plain, cell.order)
            for name, defense in defenses.items():
                kept = (
                    range(min(TOP, len(context)))
                    if defense is None
                    else defense.screen(query, context.passages).kept_indices
                )
                counts = tally(len(context), kept, context.poison, context.gold)
                results[cell.dataset, cell.attack, cell.poisons, cell.order, name].append(counts)
    return dict(results)


def report(results: dict[Key, list[CellTally]], names: list[str]) -> None:
    """Print every table."""
    present = {key[0] for key in results}
    groups = [(f"{', '.join(s for s in WIKI if s in present)} pooled", [s for s in WIKI if s in present], "cosine")]
    groups += [(f"realtimeqa, {order} order", ["realtimeqa"], order) for order in ("cosine", "given")]
    groups += [("nq_large", ["nq_large"], "cosine"), ("biogen", ["biogen"], "given")]
    for title, sets, order in groups:
        if set(sets) & present:
            print(f"## Attacks: {title}\n")
            for attack in ATTACKS:
                attacked(results, names, sets, order, attack, POISON_LEFT | BENIGN_MEASURES)
    if len(set(WIKI) & present) > 1:
        print("## Attacks by data set\n")
        for dataset in (s for s in WIKI if s in present):
            for attack in ATTACKS:
                attacked(results, names, [dataset], "cosine", attack, POISON_LEFT)
    singles = [key for key in results if " at position " in key[1] or key[0] in AS_PUBLISHED]
    for dataset, attack in dict.fromkeys((key[0], key[1]) for key in singles):
        print(f"## {dataset}: {attack}\n")
        measures = POISON_LEFT | BENIGN_MEASURES
        single(results, names, dataset, attack, measures)
    for dataset in (s for s in BENIGN if s in present):
        print(f"## No attack: {dataset}\n")
        single(results, names, dataset, "none", BENIGN_MEASURES)


def attacked(results: dict, names: list[str], sets: list[str], order: str, attack: str, measures: dict) -> None:
    """One table per measure: defenses by number of poisons."""

    def pooled(count: int, name: str) -> list[CellTally]:
        cell = attack if count else "none"
        return [t for s in sets for t in results.get((s, cell, count, order, name), ())]

    counts = [count for count in range(1, 6) if pooled(count, names[0])]
    if not counts:
        return
    for title, value in measures.items():
        shown = counts if value is poisoned else [0, *counts]
        columns = [f"{count} poison{'' if count == 1 else 's'} (n = {len(pooled(count, names[0]))})" for count in shown]
        print(f"**{', '.join(sets)}; {attack}: {title}**\n")
        print(table("defense", columns, [(name, [value(pooled(c, name)) for c in shown]) for name in names]))


def single(results: dict, names: list[str], dataset: str, attack: str, measures: dict) -> None:
    """One table: defenses by measure."""
    found = {key[-1]: value for key, value in results.items() if key[:2] == (dataset, attack)}
    rows = [(name, [value(found[name]) for value in measures.values()]) for name in names]
    print(f"n = {len(found[names[0]])} questions\n\n{table('defense', list(measures), rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--encoder", default="minilm", help="minilm, lexical or any encoder string (default: minilm)")
    parser.add_argument("--limit", type=int, help="at most this many questions per data set")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument(
        "--defense", action="append", default=[], metavar="SPEC", help="a further defense, such as guard"
    )
    parser.add_argument("--cache", type=Path, default=Path("build/vectors.db"), help="file for the vectors")
    arguments = parser.parse_args()

    encoder = load_encoder(arguments.encoder)
    specs = {**DEFENSES, **{spec: spec for spec in arguments.defense}}
    defenses = {name: spec and create("defenses", spec, encoder=encoder) for name, spec in specs.items()}
    found = [cell for name in arguments.sets.split(",") for cell in cells(arguments.folder, name, arguments.limit)]
    shown = Shown(encoder, arguments.cache)
    shown.prepare(found)
    results = measure(found, defenses, shown)

    print(f"# Screening quality\n\nunpoison {__version__}, encoder {encoder.name}, {CANDIDATES} passages per context.")
    print("\n" + (__doc__ or "").partition("quality.md")[2])
    report(results, list(specs))


if __name__ == "__main__":
    main()
