"""The weight of a source by its history, and the reliability of sources estimated from their answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from unpoison.sources.history import Outcome

__all__ = ["FRESH", "Level", "Reliability", "outcomes", "reliability", "trust"]

Level = Literal["trusted", "known", "seen", "fresh", "open", "blocked", "unknown"]

FRESH = 0.05
"""Weight of a new source: sixteen of them weigh as much as one known source."""

KNOWN = 0.8

HALF = 4
"""Number of other questions at which the weight of a source is one half."""

PRIOR = 2
"""Prior number of agreements, so that a single answer has little influence."""


def trust(level: Level, questions: int = 0, agreed: int = 0, contested: int = 0) -> float:
    """The weight of a source.

    | level | weight |
    | --- | --- |
    | `blocked` | 0 |
    | `trusted` | 1 |
    | `known` | .8 |
    | `fresh` (never seen for another question, or not for long), `open` (user content), `unknown` | .05 |
    | `seen` | n / (n + 4) times (agreed + 2) / (agreed + contested + 2), at least .05 |

    n is the number of other questions for which the source was retrieved and not dropped. The current question never
    counts, so planting texts for it gains no weight.

    Args:
        level: By policy and history.
        questions: Number of other questions for which the source was retrieved and not dropped.
        agreed: Number of those on which it agreed with the answer.
        contested: Number of those on which it contradicted the answer.

    Returns:
        In [0, 1]. It rises with `questions` and `agreed`, and falls with `contested`.
    """
    if level == "seen":
        reliability = (agreed + PRIOR) / (agreed + contested + PRIOR)
        return max(FRESH, questions / (questions + HALF) * reliability)
    return {"blocked": 0.0, "trusted": 1.0, "known": KNOWN}.get(level, FRESH)


S = TypeVar("S", bound=Hashable)

ROUNDS = 100
"""Maximum number of iterations; it converges after a few."""


class Reliability(NamedTuple):
    """The estimated reliability of a source.

    Attributes:
        rate: Estimated share of right answers, in [0, 1].
        weight: Weight of its vote, `L * rate - 1` for L possible answers; 0 if it is no better than chance.
        answered: Number of questions that it and others answered.
    """

    rate: float
    weight: float
    answered: int


def reliability(answers: Sequence[Mapping[S, Hashable | None]]) -> dict[S, Reliability]:
    """Estimate the reliability of each source by iterative weighted majority voting.

    The answer to a question is the one with the most weight; the rate of a source is its share of agreement with these
    answers; its weight follows from its rate; this is repeated until convergence. A question with one answering source
    is ignored, and tied answers share the vote.

    A coalition of less than half of the sources that gives one wrong answer everywhere ends with almost no weight.
    **Above half it wins**, and honest sources end without weight: agreement alone cannot distinguish the two, only a
    policy can (`trusted`). Sleepers, who are honest for some time, keep their weight until they have lied about as
    often, but two or three of them among nine win no vote. Copies of a source add votes: give them one origin.

    Args:
        answers: For each question, the class of each source's answer; None for "I don't know", which is ignored.

    Returns:
        By source.
    """
    names = list(dict.fromkeys(source for row in answers for source in row))
    place = {source: i for i, source in enumerate(names)}
    votes = _votes(answers, place)
    rates = np.full(len(names), 0.5)
    answered = np.zeros(len(names))
    for found, _, _ in votes:
        answered[found] += 1
    classes = max(2.0, float(np.mean([count for _, _, count in votes]))) if votes else 2.0
    weights = np.ones(len(names))
    for _ in range(ROUNDS):
        agreed = np.zeros(len(names))
        for found, given, count in votes:
            agreed[found] += _agreement(weights[found], given, count)
        common = float(agreed.sum() / answered.sum()) if answered.any() else 0.5
        before, rates = rates, (agreed + PRIOR * common) / (answered + PRIOR)
        weights = np.maximum(0.0, classes * rates - 1)
        if np.abs(rates - before).max(initial=0.0) < 1e-9:
            break
    return {source: Reliability(float(rates[i]), float(weights[i]), int(answered[i])) for i, source in enumerate(names)}


def _votes(
    answers: Sequence[Mapping[S, Hashable | None]], place: Mapping[S, int]
) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Each question with two or more answers: sources and answers as numbers, shape (n,), and the number of answers."""
    votes = []
    for row in answers:
        given = [(place[source], answer) for source, answer in row.items() if answer is not None]
        if len(given) < 2:
            continue
        number = {answer: i for i, answer in enumerate(dict.fromkeys(answer for _, answer in given))}
        votes.append((np.array([i for i, _ in given]), np.array([number[answer] for _, answer in given]), len(number)))
    return votes


def _agreement(weights: np.ndarray, given: np.ndarray, count: int) -> np.ndarray:
    """Agreement of each vote with the heaviest answer: 1, 0, or a share in a tie."""
    weight_of = np.bincount(given, weights, count)
    top = weight_of >= weight_of.max() - 1e-9
    return np.asarray(top[given] / top.sum())


def outcomes(answers: Sequence[Mapping[S, Hashable | None]]) -> list[dict[S, Outcome]]:
    """The outcome of each source's answer, for a history, by the weights of `reliability`.

    Args:
        answers: As for `reliability`.

    Returns:
        For each question and source, `agreed` with the heaviest answer or `contested` it; `seen` if the source did not
        answer, answered alone, or two answers tie.
    """
    found = reliability(answers)
    results = []
    for row in answers:
        weight_of: dict[Hashable, float] = {}
        for source, answer in row.items():
            if answer is not None:
                weight_of[answer] = weight_of.get(answer, 0.0) + found[source].weight
        voters = sum(answer is not None for answer in row.values())
        top = max(weight_of.values(), default=0.0)
        best = [answer for answer, weight in weight_of.items() if weight >= top - 1e-9]
        decided = voters > 1 and len(best) == 1
        results.append({source: _outcome(answer, best[0] if decided else None) for source, answer in row.items()})
    return results


def _outcome(answer: Hashable | None, best: Hashable | None) -> Outcome:
    if answer is None or best is None:
        return "seen"
    return "agreed" if answer == best else "contested"
