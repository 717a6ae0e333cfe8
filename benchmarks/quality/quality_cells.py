"""The cells of the quality benchmark: the passages that reach a defense, by data set, attack and amount of poison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unpoison_lab.evaluation.contexts import Context, clean_contexts, context_from_labels
from unpoison_lab.evaluation.datasets import load, load_passages
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.injection import poison_candidates, prepend, replace_at

CANDIDATES = 10
"""Passages per context, poison included."""

WIKI = ("nq", "hotpotqa", "msmarco")
BENIGN = ("nq_retrieved", "hotpotqa_distractor", "msmarco_retrieved", "realtimeqa_weekly", "timeqa")
AS_PUBLISHED = ("ramdocs", "rgb_counterfactual")
POISONED = (*WIKI, "nq_large", "realtimeqa", "biogen")
SETS = (*POISONED, *AS_PUBLISHED, *BENIGN)

ATTACKS = {
    "poisonedrag, question in front": ("poisonedrag", True),
    "poisonedrag": ("poisonedrag", False),
    "poisonedrag-revprag": ("poisonedrag-revprag", False),
    "tan": ("tan", False),
    "garag": ("garag", False),
    "paraphrase": ("paraphrase", False),
    "synonym": ("synonym", False),
    "radar-incorrect-context, question in front": ("radar-incorrect-context", True),
    "radar-incorrect-context": ("radar-incorrect-context", False),
}
"""Label: (the attack's name in the data, whether the question stands in front)."""


@dataclass(frozen=True)
class Cell:
    """All contexts of one data set under one attack with one number of poisons.

    `order` says how the contexts are to be ordered before they are shown: "cosine" to the question, or "given".
    """

    dataset: str
    attack: str
    poisons: int
    order: str
    contexts: tuple[Context, ...]


def cells(folder: Path, name: str, limit: int | None) -> Iterator[Cell]:
    """The cells of one data set."""
    file = folder / (f"{name}_poisoned.jsonl" if name in (*WIKI, "nq_large") else f"{name}.jsonl")
    examples = load(file).examples[:limit]
    if name in BENIGN:
        yield Cell(name, "none", 0, "given", tuple(clean_contexts(examples, CANDIDATES, order="rank")))
    elif name in AS_PUBLISHED:
        yield Cell(name, "as published", 0, "given", tuple(context_from_labels(example) for example in examples))
    elif name in (*WIKI, "nq_large"):
        corpus = load_passages(folder / "corpus.jsonl", examples[0].dataset)
        yield from _planted(name, examples, clean_contexts(examples, CANDIDATES, corpus), "cosine")
    else:
        found = clean_contexts(examples, CANDIDATES, order="rank")
        for order in ("cosine", "given") if name == "realtimeqa" else ("given",):
            yield from _planted(name, examples, found, order)
    if name == "realtimeqa":
        yield from _positions(examples)


def _planted(name: str, examples: tuple[Example, ...], clean: list[Context], order: str) -> Iterator[Cell]:
    """0 to 5 poisons in front of as many clean passages as make up the rest."""
    yield Cell(name, "none", 0, order, tuple(clean))
    for label, (attack, prefix) in ATTACKS.items():
        for count in range(1, 6):
            contexts = tuple(
                prepend(context, poison_candidates(example, example.poisons(attack)[:count], prefix=prefix), CANDIDATES)
                for example, context in zip(examples, clean, strict=True)
                if len(example.poisons(attack)) >= count
            )
            if contexts:
                yield Cell(name, label, count, order, contexts)


def _positions(examples: tuple[Example, ...]) -> Iterator[Cell]:
    """RADAR's setting: one poison in place of the first, 25th or last of up to 50 results in Google's order."""
    attack, size = "radar-incorrect-context", 50
    clean = clean_contexts(examples, size, order="rank")
    for name, position in (("1", 0), ("25", 24), ("last", -1)):
        contexts = []
        for example, context in zip(examples, clean, strict=True):
            if len(context) > position:
                poison = poison_candidates(example, example.poisons(attack)[:1])
                contexts.append(replace_at(context, poison, [position % len(context)]))
        if contexts:
            yield Cell("realtimeqa", f"{attack} at position {name} of {size}", 1, "given", tuple(contexts))
