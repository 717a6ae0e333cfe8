"""The input of a defense: passages in order, with the positions of the poisoned and the gold ones.

`clean_contexts` makes the undisturbed context of each question; `injection.py` puts poison into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import best_first
from unpoison.core.passages import Passage
from unpoison.retrieval.memory import BM25Index, english_words
from unpoison.utils.checks import at_least
from unpoison_lab.evaluation.examples import Example, LabelledPassage

__all__ = ["Candidate", "Context", "clean_contexts", "context_from_labels", "nearest", "text_key"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage and its ground truth.

    Attributes:
        passage: The text and its id.
        poison: Whether an attacker wrote it.
        gold: Whether it is annotated as relevant.
        target: The example that a poison was made for.
    """

    passage: Passage
    poison: bool = False
    gold: bool = False
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """One question with the passages that reach the defense.

    Attributes:
        example: The example's id.
        query: The question.
        candidates: In the order that the defense sees.
        injected: How many poisons the attacker planted for this question, retrieved or not.
    """

    example: str
    query: str
    candidates: tuple[Candidate, ...]
    injected: int = 0

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(candidate.passage for candidate in self.candidates)

    @property
    def poison(self) -> frozenset[int]:
        """Positions of the poisoned passages."""
        return frozenset(i for i, candidate in enumerate(self.candidates) if candidate.poison)

    @property
    def gold(self) -> frozenset[int]:
        """Positions of the gold passages."""
        return frozenset(i for i, candidate in enumerate(self.candidates) if candidate.gold)

    @property
    def foreign(self) -> frozenset[int]:
        """Positions of poisons that were made for another question."""
        return frozenset(
            i for i, candidate in enumerate(self.candidates) if candidate.poison and candidate.target != self.example
        )

    def reorder(self, order: Iterable[int]) -> Self:
        """The candidates at these positions, in this order."""
        return replace(self, candidates=tuple(self.candidates[i] for i in order))


def context_from_labels(example: Example) -> Context:
    """All passages of an example in the file's order, as published: for sets that come poisoned (RAMDocs, RGB)."""
    candidates = tuple(
        _candidate(labelled, example.id, labelled.label in ("poison", "misinfo")) for labelled in example.passages
    )
    return Context(example.id, example.question, candidates, sum(labelled.poison for labelled in candidates))


def clean_contexts(
    examples: Sequence[Example], k: int, corpus: Sequence[Passage] = (), *, order: Literal["gold", "rank"] = "gold"
) -> list[Context]:
    """The undisturbed context of each question: its own passages, filled up from a corpus to `k`.

    The question's clean and gold passages come first, then the corpus passages with the highest BM25 score for the
    question (English stop words left out, statistics of the whole corpus). A text that the question already has is not
    taken twice. Fewer than `k` passages remain fewer where the corpus is too small.

    Args:
        examples: Questions of one data set.
        k: Passages per context, at least 1.
        corpus: Clean passages of the same data set.
        order: `gold` puts the gold passages first and the rest in rank order; `rank` goes by rank alone, passages
            without a rank behind those with one.

    Raises:
        OptionError: `k` below 1.

    Complexity: One BM25 index of the corpus; for every question that needs filling, O(corpus + postings of its terms).
    """
    at_least("k", k, 1)
    own = [_own(example, order)[:k] for example in examples]
    short = [i for i, candidates in enumerate(own) if len(candidates) < k]
    # A question may meet each of its own passages again in the corpus, and others twice, so ask for that many more.
    again = (
        len(corpus) - len({text_key(passage.text) for passage in corpus}) + max((len(own[i]) for i in short), default=0)
    )
    ranked = nearest([examples[i].question for i in short], corpus, k + again)
    for i, positions in zip(short, ranked):
        seen = {text_key(candidates.passage.text) for candidates in own[i]}
        for position in positions:
            key = text_key(corpus[position].text)
            if len(own[i]) < k and key not in seen:
                seen.add(key)
                own[i].append(Candidate(corpus[position]))
    return [Context(example.id, example.question, tuple(candidates)) for example, candidates in zip(examples, own)]


def nearest(questions: Sequence[str], corpus: Sequence[Passage], count: int) -> list[NDArray[np.intp]]:
    """The positions of the `count` corpus passages with the highest BM25 score for each question, best first."""
    index = BM25Index()
    for passage in corpus if questions else ():
        index.add(english_words(passage.text))
    return [best_first(index.scores(english_words(question)), count) for question in questions]


def _own(example: Example, order: str) -> list[Candidate]:
    def order_key(labelled: LabelledPassage) -> tuple[bool, float]:
        return order == "gold" and labelled.label != "gold", float("inf") if labelled.rank is None else labelled.rank

    return [
        _candidate(labelled, example.id)
        for labelled in sorted(example.passages_by_label("clean", "gold", "noise"), key=order_key)
    ]


def _candidate(labelled: LabelledPassage, example: str, poison: bool = False) -> Candidate:
    return Candidate(labelled.passage, poison, labelled.label == "gold", example if poison else None)


def text_key(text: str) -> str:
    """The key by which two clean texts are equal: their words, ignoring case."""
    return " ".join(text.casefold().split())
