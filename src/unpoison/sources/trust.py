"""The weight of a source by its history, and the reliability of sources estimated from their answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from unpoison.sources.history import Outcome

__all__ = ["FRESH", "KNOWN", "Level", "Reliability", "outcomes", "reliability", "trust"]

Level = Literal["trusted", "known", "seen", "fresh", "open", "blocked", "unknown"]

FRESH = 0.05
"""Weight of a new source: sixteen of them weigh as much as one known source."""

KNOWN = 0.8

HALF = 4
"""Number of other questions at which a source weighs one half."""

PRIOR = 2
"""Prior number of agreements, so that a single answer or dispute decides little."""


def trust(level: Level, questions: int = 0, agreed: int = 0, contested: int = 0) -> float:
    """The weight of a source.

    | level | weight |
    | --- | --- |
    | `blocked` | 0 |
    | `trusted` | 1 |
    | `known` | .8 |
    | `fresh` (never seen for another question, or not for long), `open` (anybody writes there), `unknown` | .05 |
    | `seen` | n / (n + 4) times (agreed + 2) / (agreed + contested + 2), at least .05 |

    n counts the other questions for which it was retrieved, and not dropped.

    Only other questions count: whoever plants any number of texts for the question at hand gains nothing by it.

    Args:
        level: What policy and history say.
        questions: Other questions for which the source was retrieved, and not dropped.
        agreed: For how many of them it said what was answered.
        contested: For how many of them it said something else.

    Returns:
        In [0, 1]. It rises with `questions` and `agreed`, and falls with `contested`.
    """
    if level == "seen":
        reliability = (agreed + PRIOR) / (agreed + contested + PRIOR)
        return max(FRESH, questions / (questions + HALF) * reliability)
    return {"blocked": 0.0, "trusted": 1.0, "known": KNOWN}.get(level, FRESH)


S = TypeVar("S", bound=Hashable)

ROUNDS = 100
"""At most; it ends after a few, when no rate changes any more."""


class Reliability(NamedTuple):
    """How far a source can be believed.

    Attributes:
        rate: Share of its answers that are right, estimated, in [0, 1].
        weight: Of its vote, `L * rate - 1` for L possible answers; 0 for who is no better than chance.
        answered: How many questions it answered that others answered too.
    """

    rate: float
    weight: float
    answered: int


def reliability(answers: Sequence[Mapping[S, Hashable | None]]) -> dict[S, Reliability]:
    """The reliability of each source, from what they all answered.

    Every question's answer is the one with the most weight behind it; a source's rate is how often it agrees with
    these; weights follow from the rates, and so on until nothing changes. A question that one source alone answered
    says nothing, and of answers as heavy as each other each counts in part.

    The majority, by weight, is believed. A coalition of sources below half that gives one wrong answer everywhere ends
    with hardly any weight. **Above half it wins**: its answer is taken for the right one, and the honest end with no
    weight. Nothing that looks at agreement alone can tell the two apart; then only a policy helps (`trusted`).
    Sleepers, who are honest for some time, keep what they earned until they have lied about as often, but two or three
    of them among nine win no vote by it. Who copies others has a voice too many: give copies one origin.

    Args:
        answers: For each question, the class of each source's answer; None for "I don't know", which does not count.

    Returns:
        For each source that is named.
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
    """For each question that two or more answered: who did, shape (n,), what, as numbers, and how many answers."""
    votes = []
    for row in answers:
        given = [(place[source], answer) for source, answer in row.items() if answer is not None]
        if len(given) < 2:
            continue
        number = {answer: i for i, answer in enumerate(dict.fromkeys(answer for _, answer in given))}
        votes.append((np.array([i for i, _ in given]), np.array([number[answer] for _, answer in given]), len(number)))
    return votes


def _agreement(weights: np.ndarray, given: np.ndarray, count: int) -> np.ndarray:
    """How far each vote agrees with the heaviest answer: 1, 0, or a share where several are as heavy."""
    weight_of = np.bincount(given, weights, count)
    top = weight_of >= weight_of.max() - 1e-9
    return np.asarray(top[given] / top.sum())


def outcomes(answers: Sequence[Mapping[S, Hashable | None]]) -> list[dict[S, Outcome]]:
    """What became of each source's answer, for a history: by the weights of `reliability`, all votes counted.

    Args:
        answers: As for `reliability`.

    Returns:
        For each question and source `agreed` with the heaviest answer or `contested` it; `seen` for who did not answer,
        or was the only one who did, or where two answers weigh the same.
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
