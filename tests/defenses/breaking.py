"""Searches that try to break a guarantee: changes to m passages that would change an answer which is proved to stand.

One success is a bug in the proof or in what runs. The searches know the defense and see how much it still withstands:

- `random` changes any passages into any texts of a pool, takes some away and puts others in;
- `strongest` turns passages that support the answer into passages that support its strongest rival;
- `greedy` makes one change after the other, each time of several the one that leaves the lowest guarantee.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from unpoison.core.answers import Answer
from unpoison.defenses.base import Defense

__all__ = ["Break", "breaks", "changed"]

TRIED = 4
"""Changes that the greedy search compares at each step."""

Same = Callable[[Answer, Answer], bool]


class Break(NamedTuple):
    """A change that breaks a guarantee: what was shown, what instead, and both answers."""

    passages: tuple[Any, ...]
    instead: tuple[Any, ...]
    answer: Answer
    other: Answer


def breaks(
    defense: Defense,
    question: str,
    passages: Sequence[Any],
    pool: Sequence[Any],
    *,
    most: int = 3,
    tries: int = 3,
    seed: int = 0,
    same: Same | None = None,
) -> Break | None:
    """Look for a change to no more passages than the answer's guarantee that changes the answer.

    Args:
        defense: One whose answers come with a guarantee.
        question: What is asked.
        passages: What it is shown.
        pool: What the attacker may put in: texts or passages, one at least.
        most: Changed passages at most, also where more are guaranteed.
        tries: Of the random search; the others try once.
        seed: Of all choices.
        same: Whether two answers are the same; by default equal texts, and both abstain or neither.

    Returns:
        The first success, None where every search failed.

    Complexity: about (tries + 2 + 4 m) answers.
    """
    rng = random.Random(seed)
    answer = defense.answer(question, list(passages))
    m = min(answer.guarantee or 0, most)
    if m < 1:
        return None
    alike = same or _equal
    for instead in _candidates(defense, question, list(passages), answer, list(pool), m, tries, rng):
        other = defense.answer(question, instead)
        if not alike(answer, other):
            return Break(tuple(passages), tuple(instead), answer, other)
    return None


def changed(passages: Sequence[Any], pool: Sequence[Any], m: int, rng: random.Random) -> list[Any]:
    """The passages with up to `m` taken away and up to `m` others put in, anywhere; the rest keep their order."""
    gone = set(rng.sample(range(len(passages)), min(rng.randint(0, m), len(passages))))
    left = [passage for i, passage in enumerate(passages) if i not in gone]
    for _ in range(rng.randint(0, m)):
        left.insert(rng.randint(0, len(left)), rng.choice(pool))
    return left


def _equal(one: Answer, two: Answer) -> bool:
    return one.text == two.text and one.abstained == two.abstained


def _candidates(
    defense: Defense,
    question: str,
    passages: list[Any],
    answer: Answer,
    pool: list[Any],
    m: int,
    tries: int,
    rng: random.Random,
) -> Iterator[list[Any]]:
    for _ in range(tries):
        yield changed(passages, pool, m, rng)
    yield _strongest(passages, answer, pool, m, rng)
    yield passages[m:]
    yield [*[rng.choice(pool)] * m, *passages]
    yield _greedy(defense, question, passages, pool, m, rng)


def _strongest(passages: list[Any], answer: Answer, pool: list[Any], m: int, rng: random.Random) -> list[Any]:
    """M of the passages behind the answer say what most of the others say, or all the same thing of the pool."""
    kept = list(answer.screening.kept_indices)
    behind = rng.sample(kept, min(m, len(kept)))
    scores = {i: verdict.score for i, verdict in enumerate(answer.screening.verdicts) if not verdict.kept}
    rival = passages[max(scores, key=lambda i: (scores[i], -i))] if scores and rng.random() < 0.8 else rng.choice(pool)
    return [rival if i in behind else passage for i, passage in enumerate(passages)]


def _greedy(
    defense: Defense, question: str, passages: list[Any], pool: list[Any], m: int, rng: random.Random
) -> list[Any]:
    """One replaced passage after the other, each the one of a few that leaves the lowest guarantee."""
    now, free = list(passages), list(range(len(passages)))
    for _ in range(min(m, len(free))):
        options: list[tuple[int, int, int, list[Any]]] = []
        for _ in range(TRIED):
            position = rng.choice(free)
            tried = [*now[:position], rng.choice([*pool, *passages]), *now[position + 1 :]]
            answer = defense.answer(question, tried)
            options.append((-1 if answer.guarantee is None else answer.guarantee, len(options), position, tried))
        _, _, position, now = min(options, key=lambda option: option[:2])
        free.remove(position)
    return now
