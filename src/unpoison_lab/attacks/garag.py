"""GARAG (Cho et al., 2024): a golden passage with typos, still retrieved, no longer understood.

A genetic search (NSGA-II; Deb et al., 2002) over sets of typos minimises two ratios at once: RSR, below 1 when the
passage became more relevant to the question, and GPR, below 1 when the reader became less likely to give the right
answer. The text holds no wrong answer: report the drop in accuracy, not a substring match.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.algorithms.cosine import inner_products
from unpoison.models.prompts import answer_prompt
from unpoison.models.requests import Flow
from unpoison.text.sentences import STOP_WORDS
from unpoison.utils.checks import at_least, within
from unpoison_lab.attacks.base import Attack, Meter, PoisonText, RetrievalOptions, Target, contains_answer
from unpoison_lab.attacks.rewriting import typo
from unpoison_lab.attacks.white_box import CausalModel

__all__ = ["Garag", "dominates", "fronts", "generation_ratio", "modifiable", "overlap", "relevance_ratio", "survivors"]

MAX_PREDICTION_WORDS = 10
"""Words; the words of a longer first reply may be changed."""

Typos = Mapping[int, str]
"""Token position to its replacement."""


class GaragReader(Protocol):
    """A reader that returns the probability of an answer."""

    def read(self, question: str, passages: Sequence[str], answer: str, /) -> list[tuple[str, float]]:
        """For each passage alone: the reply, and p(answer | question, passage)."""


class _ReaderResult(NamedTuple):
    similarity: float
    reply: str
    probability: float


@dataclass(frozen=True, slots=True)
class _Subject:
    """One golden passage under attack; its tokens are words and the white space between them."""

    target: Target
    answer: str
    tokens: list[str]
    word_positions: list[int]
    size: int

    def text(self, typos: Typos) -> str:
        return "".join(typos.get(i, token) for i, token in enumerate(self.tokens))


class Garag(Attack):
    """Genetic search for typos that keep retrieval and break reading.

    The defaults are those of the authors' evaluation script. One text costs about
    `population + iterations * 2 * parents` encodings and readings.

    Args:
        share: Of the modifiable words, how many are mistyped.
        population: Individuals that survive a generation.
        iterations: Generations.
        crossover: Of the positions where two parents differ, the share taken from the second.
        mutation: Of a child's positions, the share drawn anew.
        parents: Pairs per generation.
        reader: A `GaragReader`, or the name of a local causal language model; its probabilities make GPR. None asks
            `generator`, and takes the overlap of its reply with the right answer for the probability.
        encoder: Judges retrieval.
        generator: Reads, where no `reader` is given.
        seed: Drives the search.
        prefix: Put the question in front of the finished text.
        limits: Bounds on the model calls.
    """

    name = "garag"
    summary = "genetic search for typos in the golden passage that break reading"
    wording = "data"
    needs = ("encoder", "generator")
    usual_encoder = "lexical"
    usual_generator = "extractive"
    requires = ("gold", "correct")
    uses_gold = True

    def __init__(
        self,
        *,
        share: float = 0.2,
        population: int = 25,
        iterations: int = 25,
        crossover: float = 0.2,
        mutation: float = 0.4,
        parents: int = 10,
        reader: GaragReader | str | None = None,
        **common: Unpack[RetrievalOptions],
    ) -> None:
        super().__init__(**common)
        self.share = within("share", share, 0.0, 1.0)
        self.population = at_least("population", population, 2)
        self.iterations = at_least("iterations", iterations, 0)
        self.crossover = within("crossover", crossover, 0.0, 1.0)
        self.mutation = within("mutation", mutation, 0.0, 1.0)
        self.parents = at_least("parents", parents, 1)
        self.reader = CausalModel(reader) if isinstance(reader, str) else reader

    def target_answers(self, target: Target) -> tuple[str, ...]:
        return ()  # untargeted

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        poisons = []
        for i in range(count):
            meter = Meter()
            passage = target.gold[i % len(target.gold)]
            text, reason, meta = yield from self._search(target, passage, self.rng(target, i), meter)
            poisons.append(self.poison(target, i, text, reason=reason, meter=meter, **meta))
        return poisons

    def _search(
        self, target: Target, passage: str, rng: np.random.Generator, meter: Meter
    ) -> Flow[tuple[str, str, dict[str, Any]]]:
        answer = next((a for a in target.correct if contains_answer(passage, a)), target.correct[0])
        (original,) = yield from self._try_texts(target, answer, passage, [passage], meter)
        tokens = re.findall(r"\S+|\s+", passage)
        # A reply as long as a sentence would protect the very words that carry the answer.
        predicted = original.reply if len(original.reply.split()) <= MAX_PREDICTION_WORDS else ""
        positions = modifiable(tokens, [*target.correct, predicted])
        if not positions:
            return passage, "no word of the passage can be changed", {}
        if original.probability <= 0:
            return passage, "the reader misses the answer in the unchanged passage already", {}
        subject = _Subject(target, answer, tokens, positions, max(1, int(self.share * len(positions))))
        pool: list[Typos] = [self._draw_typos(subject, rng) for _ in range(self.population)]
        values, replies = yield from self._score(subject, passage, pool, original, meter)
        generation = 0
        while True:
            order = survivors(values, self.population)
            pool, values, replies = [pool[i] for i in order], values[order], [replies[i] for i in order]
            fails = [not any(contains_answer(reply, right) for right in target.correct) for reply in replies]
            # The first-ranked of those that succeed, else the first-ranked.
            leader = next((i for i, failed in enumerate(fails) if failed and values[i][0] < 1), 0)
            reached = fails[leader] and values[leader][0] < 1
            if reached or generation == self.iterations:
                break
            generation += 1
            children = self._children(subject, pool, values, rng)
            fresh, fresh_replies = yield from self._score(subject, passage, children, original, meter)
            pool, replies = [*pool, *children], [*replies, *fresh_replies]
            values = np.concatenate([values, fresh])
        rsr, gpr = (float(v) for v in values[leader])
        reason = (
            ""
            if reached
            else f"after {generation} generations: RSR {rsr:.3f}, reader {'fails' if fails[leader] else 'answers'}"
        )
        meta = {"rsr": round(rsr, 6), "gpr": round(gpr, 6), "generations": generation, "typos": len(pool[leader])}
        return subject.text(pool[leader]), reason, meta

    def _try_texts(
        self, target: Target, answer: str, passage: str, texts: Sequence[str], meter: Meter
    ) -> Flow[list[_ReaderResult]]:
        """Similarity to the question, reply and answer probability of each text."""
        # The original goes along each time: an encoder may weigh words by the texts of one call.
        vectors = yield from meter.encode([target.question, passage, *texts])
        similarity = inner_products(vectors[2:], vectors[0]).tolist()
        meter.llm_calls += len(texts)
        if self.reader is not None:
            read = self.reader.read(target.question, texts, answer)
        else:
            prompts = [answer_prompt(target.question, [text], abstain=False) for text in texts]
            replies = yield from Meter().generate(prompts, "reading")
            read = [(reply.text, overlap(reply.text, answer)) for reply in replies]
        return [_ReaderResult(s, reply, probability) for s, (reply, probability) in zip(similarity, read, strict=True)]

    def _score(
        self, subject: _Subject, passage: str, pool: Sequence[Typos], original: _ReaderResult, meter: Meter
    ) -> Flow[tuple[NDArray[np.float64], list[str]]]:
        """(RSR, GPR) of each individual, shape (n, 2), and the replies."""
        texts = [subject.text(typos) for typos in pool]
        readings = yield from self._try_texts(subject.target, subject.answer, passage, [passage, *texts], meter)
        base, readings = readings[0].similarity, readings[1:]
        values = [
            (relevance_ratio(base, r.similarity), generation_ratio(original.probability, r.probability))
            for r in readings
        ]
        return np.array(values), [r.reply for r in readings]

    def _draw_typos(self, subject: _Subject, rng: np.random.Generator, kept: Typos | None = None) -> Typos:
        """Typos at random places, without replacement, on top of the kept ones."""
        typos = dict(kept or {})
        free = [i for i in subject.word_positions if i not in typos]
        for k in rng.permutation(len(free))[: subject.size - len(typos)]:
            typos[free[k]] = typo(subject.tokens[free[k]], rng)
        return typos

    def _children(
        self, subject: _Subject, pool: Sequence[Typos], values: NDArray[np.float64], rng: np.random.Generator
    ) -> list[Typos]:
        """Two children of each pair of tournament winners; ratios above 1 count as worse (RSR by 1.2)."""
        penalised = np.where(values > 1, values * (1.2, 1.0), values)
        lonely = np.zeros(len(values))
        for front in fronts(penalised):
            lonely[front] = crowding_distance(penalised[front])
        children = []
        for _ in range(self.parents):
            first, second = (pool[tournament(penalised, lonely, rng)] for _ in range(2))
            children += [self._child(subject, a, b, rng) for a, b in ((first, second), (second, first))]
        return children

    def _child(self, subject: _Subject, first: Typos, second: Typos, rng: np.random.Generator) -> Typos:
        """Common places stay, of the others 1 - crossover come from the first parent; then mutation."""
        child = {i: first[i] for i in first if i in second}
        for parent, share in ((first, 1 - self.crossover), (second, self.crossover)):
            own = [i for i in parent if i not in child]
            for k in rng.permutation(len(own))[: round(share * len(own))]:
                child[own[k]] = parent[own[k]]
        kept = list(child)
        staying = rng.permutation(len(kept))[: min(round((1 - self.mutation) * subject.size), subject.size)]
        return self._draw_typos(subject, rng, {kept[k]: child[kept[k]] for k in sorted(staying)})


def relevance_ratio(before: float, after: float) -> float:
    """RSR = exp(s(q, d) - s(q, d')): below 1 when the changed passage is more relevant."""
    return math.exp(before - after)


def generation_ratio(before: float, after: float) -> float:
    """GPR = p(a | q, d') / p(a | q, d): below 1 when the answer became less likely; `before` must be positive."""
    return after / before


def modifiable(tokens: Sequence[str], protected: Sequence[str]) -> list[int]:
    """Positions of words of 3 letters or more that are not stop words and occur in no protected text."""
    kept = {_bare(word) for text in protected for word in text.split()}
    positions = []
    for i, token in enumerate(tokens):
        word = _bare(token)
        if len(word) >= 3 and any(c.isalpha() for c in word) and word not in STOP_WORDS and word not in kept:
            positions.append(i)
    return positions


def overlap(reply: str, answer: str) -> float:
    """Token F1 of a reply and the right answer, 1 if it contains the whole answer: a stand-in for p(a | q, d)."""
    if contains_answer(reply, answer):
        return 1.0
    reply_words, answer_words = {_bare(w) for w in reply.split()}, {_bare(w) for w in answer.split()}
    shared = len(reply_words & answer_words)
    return 2 * shared / (len(reply_words) + len(answer_words)) if shared else 0.0


def _bare(word: str) -> str:
    return word.strip(".,;:!?()[]{}\"'").lower()


# The selection of NSGA-II (Deb et al., 2002): several objectives at once, each to be minimised.


def dominates(left: ArrayLike, right: ArrayLike) -> bool:
    """Whether `left` is nowhere worse than `right` and somewhere better."""
    a, b = np.asarray(left), np.asarray(right)
    return bool((a <= b).all() and (a < b).any())


def fronts(objectives: ArrayLike) -> list[list[int]]:
    """Positions by non-domination rank: the first front is not dominated, and so on.

    Args:
        objectives: Shape (n, m).

    Returns:
        Every position once, in rising order inside each front. O(n^2 m) time and memory.
    """
    values = np.asarray(objectives, dtype=float)
    nowhere_worse = np.all(values[:, None] <= values, axis=2)
    better = np.asarray(nowhere_worse & np.any(values[:, None] < values, axis=2))
    left = np.arange(len(values))
    layers = []
    while len(left):
        free = ~better[np.ix_(left, left)].any(axis=0)
        layers.append(left[free].tolist())
        left = left[~free]
    return layers


def crowding_distance(objectives: ArrayLike) -> NDArray[np.float64]:
    """The crowding distance of each member of one front: the normalised side lengths of the box between its neighbours.

    Args:
        objectives: Shape (n, m).

    Returns:
        Shape (n,); infinite for the extremes of each objective.
    """
    values = np.asarray(objectives, dtype=float)
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = column[order[-1]] - column[order[0]]
        distance[order[[0, -1]]] = np.inf
        if span > 0:
            distance[order[1:-1]] += (column[order[2:]] - column[order[:-2]]) / span
    return distance


def survivors(objectives: ArrayLike, size: int) -> list[int]:
    """The best `size` positions: whole fronts first, then the least crowded members of the front that does not fit.

    The first one is the least sum of objectives of the first front, so that "the best" is one and the same.
    """
    values = np.asarray(objectives, dtype=float)
    kept: list[int] = []
    for front in fronts(values):
        lonely = np.argsort(-crowding_distance(values[front]), kind="stable")
        chosen = [front[i] for i in lonely[: size - len(kept)]]
        kept += sorted(chosen, key=lambda i: (values[i].sum(), i))
        if len(kept) >= size:
            break
    return kept


def tournament(values: NDArray[np.float64], lonely: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Two at random: the dominating one, else the less crowded one."""
    first, second = (int(i) for i in rng.integers(len(values), size=2))
    if dominates(values[first], values[second]):
        return first
    if dominates(values[second], values[first]) or lonely[second] > lonely[first]:
        return second
    return first
