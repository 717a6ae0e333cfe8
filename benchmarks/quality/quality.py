"""What the screening defenses save and what they cost, on the data sets that bring published poison.

    python -m benchmarks quality evaluation-data --encoder minilm --cache build/embeddings > quality.md

The screening defenses see 10 passages per question. nq, hotpotqa, msmarco, nq_large: the gold passages, then the
question's own retrieved passages, then BM25 results from corpus.jsonl; poisons push out the last ones, and the order
shown is that of the cosine similarity to the question. realtimeqa: Google's first results, in cosine order ("cosine")
or in Google's with the poisons in front ("given"). Benign sets, RAMDocs and RGB: the published passages, nothing
planted. Intervals are 95 %: Wilson's for shares of questions, a bootstrap over questions for shares of passages.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality import quality_tables as tables
from benchmarks.quality.embeddings import Embeddings
from benchmarks.quality.quality_cells import AS_PUBLISHED, ATTACKS, BENIGN, CANDIDATES, SETS, WIKI, Cell, cells
from unpoison import Passage, Query, __version__
from unpoison.algorithms.cosine import cosine
from unpoison.algorithms.ranking import best_first
from unpoison.bench.evaluation import CellTally, Context, tally
from unpoison.core.registry import create
from unpoison.defenses.base import Defense
from unpoison.models import load_encoder
from unpoison.models.protocols import Encoder

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

Key = tuple[str, str, int, str, str]
"""Data set, attack, poisons, order, defense."""


class Progress:
    """Says on standard error how far a stage has come and how long it will still take, every few seconds."""

    def __init__(self, stage: str) -> None:
        self.stage, self.started, self.said = stage, time.monotonic(), 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.said > 5 or done == total:
            left = (now - self.started) * (total - done) / max(done, 1)
            print(f"{self.stage}: {done:,} of {total:,}, {left:.0f} s left", file=sys.stderr, flush=True)
            self.said = now


class Shown:
    """Contexts as the defenses see them: ordered, and with vectors where the encoder's can be kept."""

    def __init__(self, encoder: Encoder, cache: Path) -> None:
        self.encoder = encoder
        self.embeddings = None if getattr(encoder, "per_set", False) else Embeddings(encoder, cache)
        self._passages: dict[tuple[str | None, str], Passage] = {}

    def prepare(self, found: list[Cell]) -> None:
        if self.embeddings is not None:
            texts = {text for cell in found for c in cell.contexts for text in (c.query, *(p.text for p in c.passages))}
            self.embeddings.add(sorted(texts), Progress("encoding"))

    def __call__(self, context: Context, order: str) -> tuple[Query, Context]:
        if self.embeddings is None:
            query = Query(context.query)
        else:
            query = Query(context.query, self.embeddings[context.query])
            embedded = [replace(c, passage=self._embedded(c.passage)) for c in context.candidates]
            context = replace(context, candidates=tuple(embedded))
        return query, context.reorder(best_first(self._closeness(query, context))) if order == "cosine" else context

    def _embedded(self, passage: Passage) -> Passage:
        key = (passage.id, passage.text)
        if key not in self._passages:
            self._passages[key] = replace(passage, embedding=self.embeddings[passage.text])  # type: ignore[index]
        return self._passages[key]

    def _closeness(self, query: Query, context: Context) -> NDArray[np.float64]:
        if query.embedding is not None:
            return cosine([query.embedding], [p.embedding for p in context.passages]).ravel()
        vectors = self.encoder.encode([query.text, *(p.text for p in context.passages)])
        return cosine(vectors[:1], vectors[1:]).ravel()


def measure(found: list[Cell], defenses: dict[str, Defense | None], shown: Shown) -> dict[Key, list[CellTally]]:
    """Screen every context with every defense."""
    results = defaultdict[Key, list[CellTally]](list)
    total, done, progress = sum(len(cell.contexts) for cell in found), 0, Progress("screening")
    for cell in found:
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
            done += 1
            progress(done, total)
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
                attacked(results, names, sets, order, attack, tables.UNDER_ATTACK)
    if len(set(WIKI) & present) > 1:
        print("## Attacks by data set\n")
        for dataset in (s for s in WIKI if s in present):
            for attack in ATTACKS:
                attacked(results, names, [dataset], "cosine", attack, tables.POISON_LEFT)
    singles = [key for key in results if " at position " in key[1] or key[0] in AS_PUBLISHED]
    for dataset, attack in dict.fromkeys((key[0], key[1]) for key in singles):
        print(f"## {dataset}: {attack}\n")
        measures = {"poison left %": tables.poisoned, "precision / recall / F1": tables.removal, **tables.BENIGN}
        single(results, names, dataset, attack, measures)
    for dataset in (s for s in BENIGN if s in present):
        print(f"## No attack: {dataset}\n")
        single(results, names, dataset, "none", tables.BENIGN)


def attacked(results: dict, names: list[str], sets: list[str], order: str, attack: str, measures: dict) -> None:
    """One table per measure: defenses by number of poisons."""

    def pooled(count: int, name: str) -> list[CellTally]:
        cell = attack if count else "none"
        return [t for s in sets for t in results.get((s, cell, count, order, name), ())]

    counts = [count for count in range(1, 6) if pooled(count, names[0])]
    if not counts:
        return
    for title, value in measures.items():
        shown = counts if value in (tables.poisoned, tables.poison_left, tables.removal) else [0, *counts]
        columns = [f"{count} poison{'' if count == 1 else 's'} (n = {len(pooled(count, names[0]))})" for count in shown]
        print(f"**{', '.join(sets)}; {attack}: {title}**\n")
        print(tables.table("defense", columns, [(name, [value(pooled(c, name)) for c in shown]) for name in names]))


def single(results: dict, names: list[str], dataset: str, attack: str, measures: dict) -> None:
    """One table: defenses by measure."""
    found = {key[-1]: value for key, value in results.items() if key[:2] == (dataset, attack)}
    rows = [(name, [value(found[name]) for value in measures.values()]) for name in names]
    print(f"n = {len(found[names[0]])} questions\n\n{tables.table('defense', list(measures), rows)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--encoder", default="minilm", help="minilm, lexical or any encoder string (default: minilm)")
    parser.add_argument("--limit", type=int, help="at most this many questions per data set")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {','.join(SETS)}")
    parser.add_argument(
        "--defense", action="append", default=[], metavar="SPEC", help="a further defense, such as guard"
    )
    parser.add_argument("--cache", type=Path, default=Path("build/embeddings"), help="folder for embeddings")
    parser.add_argument("--json", type=Path, help="also write every count to this file")
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
    if arguments.json:
        names = ("dataset", "attack", "poisons", "order", "defense")
        rows = [
            dict(zip(names, key), counts=[list(asdict(t).values()) for t in value]) for key, value in results.items()
        ]
        arguments.json.write_text(json.dumps({"fields": list(CellTally.__slots__), "cells": rows}))


if __name__ == "__main__":
    main()
