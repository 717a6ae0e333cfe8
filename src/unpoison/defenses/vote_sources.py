"""Counting what sources answer: each has one vote in every class in which a passage of its stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from unpoison.algorithms.votes import outvotes
from unpoison.defenses.voices import Voice, votes_of
from unpoison.defenses.vote_counting import Ballots, Counted, alike
from unpoison.models.protocols import NLIModel
from unpoison.models.requests import Flow

__all__ = ["count_by_source"]

Votes = Mapping[str, Mapping[str, float]]
"""For each class the weight of each source that votes for it."""


def count_by_source(
    question: str, ballots: Ballots, voices: Sequence[Voice], least: int, same: str, seconds: int, nli: NLIModel | None
) -> Flow[Counted]:
    """Count the ballots of sources.

    Nothing is proved of a winner by meaning, of one behind which only sources stand that do not count, nor where
    nobody wins.

    Args:
        question: The user's.
        ballots: One for each passage.
        voices: One for each passage.
        least: Sources that the answer needs.
        same: `written` or `meaning`, as for `Vote`.
        seconds: Sources that a candidate needs, with `meaning`.
        nli: Decides what says the same; None for rules.
    """
    votes: Votes = votes_of(voices, {i: (name,) for i, name in enumerate(ballots.forms) if name})
    likes: frozenset[frozenset[str]] = frozenset()
    if same == "meaning":
        likes = yield from alike(question, sorted(votes), nli)
    seconded = same == "meaning" and any(len(own) >= seconds for own in votes.values())

    def says_the_same(left: str, right: str) -> bool:
        return left == right or (seconded and frozenset((left, right)) in likes)

    support = {name: _merge_sources(name, votes, says_the_same) for name in votes}
    weight = {name: _total(sources) for name, sources in support.items()}
    candidates = [name for name in votes if not seconded or len(votes[name]) >= seconds]
    most = max((weight[name] for name in candidates), default=0)
    leaders = [name for name in candidates if weight[name] == most > 0]
    totals = {name: _total(sources) for name, sources in votes.items()}
    agreed = any(all(says_the_same(name, leader) for leader in leaders) for name in candidates)
    winner = min(leaders, key=lambda name: (-totals[name], name), default=None)
    if winner is None or not agreed or len(support[winner]) < least:
        says = "no passage answers" if winner is None else _nobody(len(support[winner]), most, agreed, least)
        return Counted(None, frozenset(), most, totals, 0, says, "sources")
    behind = frozenset(name for name in votes if says_the_same(winner, name))
    rival = max((weight[name] for name in candidates if name not in behind), default=0)
    counts = any(v.counts for v, name in zip(voices, ballots.forms, strict=True) if name in behind)
    margin = 0
    if counts and same == "written":
        margin = outvotes(votes, winner, {voice.name: voice.most for voice in voices}, least)
    says = f"{_many(len(support[winner]))} so, each passage read alone: {_votes(most)} against {rival:g}"
    return Counted(winner, behind, most, totals, margin, says if counts else f"{says}; none of them counts", "sources")


def _merge_sources(name: str, votes: Votes, same: Callable[[str, str], bool]) -> Mapping[str, float]:
    """The sources that say an answer or the same, each once."""
    joined: dict[str, float] = {}
    for other, sources in votes.items():
        if same(name, other):
            joined |= sources
    return joined


def _total(sources: Mapping[str, float]) -> float:
    """Their weight; rounded, so that no order decides a tie."""
    return round(sum(sorted(sources.values())), 9)


def _many(count: int) -> str:
    return "1 source says" if count == 1 else f"{count} sources say"


def _votes(weight: float) -> str:
    return "1 vote" if weight == 1 else f"{weight:g} votes"


def _nobody(sources: int, weight: float, agreed: bool, least: int) -> str:
    if not agreed:
        return f"no answer leads: several have {_votes(weight)} of sources"
    return f"no answer has the {least} sources that it needs: {_many(sources)} the same"
