"""The track `at-rest`: poison that lies in a collection, found before anybody asks.

Collections of real passages, alone and in groups of five. What counts is what a person sees who looks at the first
ten documents of the list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unpoison.algorithms.intervals import wilson
from unpoison.algorithms.ranking import best_first
from unpoison.bench.arena.cases import Data, question_ids
from unpoison.bench.arena.tasks import AT_REST, Task
from unpoison.bench.evaluation.datasets import load_passages
from unpoison.errors import OptionError
from unpoison.retrieval.bm25 import BM25Index, english_words
from unpoison.scan import scan

__all__ = ["LOOKED_AT", "RANKERS", "measure", "summarise"]

LOOKED_AT = 10

Row = dict[str, Any]
Documents = Sequence[dict[str, str]]


def by_scan(documents: Documents) -> list[str]:
    """The ids as `unpoison scan` lists them."""
    return [finding.id for finding in scan(documents).findings]


def by_hubs(documents: Documents) -> list[str]:
    """Those first that stand among the ten nearest of most others, by BM25 of their first words."""
    index = BM25Index()
    tokens = [english_words(document["text"]) for document in documents]
    for words in tokens:
        index.add(words)
    counts = np.zeros(len(documents))
    for number, words in enumerate(tokens):
        near = [i for i in best_first(index.scores(words[:12]), LOOKED_AT + 1) if i != number]
        counts[near[:LOOKED_AT]] += 1
    return [documents[i]["id"] for i in best_first(counts)]


RANKERS: dict[str, Callable[[Documents], list[str]]] = {"scan": by_scan, "hubs": by_hubs}
"""Entries of this track: they list a collection, most suspicious first."""


def measure(task: Task, entry: str, data: Data, documents: int) -> Row:
    """How many planted documents are among the first ten of each collection."""
    if entry not in RANKERS:
        raise OptionError(f"the track at-rest has the entries {', '.join(RANKERS)}, got {entry}")
    each, questions = AT_REST[task.name]
    cases = []
    for name, dataset in (("nq_poisoned", "nq"), ("msmarco_poisoned", "msmarco")):
        clean = load_passages(data.path("corpus"), dataset)[:documents]
        planted = list(_poison(data, name, each, questions))
        rows = [*({"id": f"clean-{i}", "text": p.text} for i, p in enumerate(clean)), *planted]
        order = np.random.default_rng(0).permutation(len(rows))
        listed = RANKERS[entry]([rows[i] for i in order])
        hits = sum(identifier.startswith("poison-") for identifier in listed[:LOOKED_AT])
        cases.append({"id": dataset, "documents": len(rows), "planted": len(planted), "hits": hits})
    return {"cases": cases}


def _poison(data: Data, name: str, each: int, questions: int) -> Iterator[dict[str, str]]:
    asked = [identifier for file, identifier in question_ids("at-rest", 1_000) if file == name][:questions]
    for identifier in asked:
        texts = data.examples(name)[identifier].poisons("poisonedrag")[:each]
        yield from ({"id": f"poison-{identifier}-{i}", "text": text.text} for i, text in enumerate(texts))


def summarise(rows: Mapping[str, Row], tasks: Iterable[Task]) -> Row:
    """The precision of the first ten, by collection and together."""
    table = {}
    for task in tasks:
        if task.key in rows:
            cases = rows[task.key]["cases"]
            looked = [min(LOOKED_AT, case["planted"]) for case in cases]
            table[task.name] = {
                **{f"first ten, {c['id']}": wilson(c["hits"], most).to_dict() for c, most in zip(cases, looked)},
                "first ten": wilson(sum(case["hits"] for case in cases), sum(looked)).to_dict(),
            }
    score = {name: row["first ten"]["value"] for name, row in table.items()}
    return {"tables": {"own": table}, "score": {"own": score}}
