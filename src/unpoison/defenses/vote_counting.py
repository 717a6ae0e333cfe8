"""Counting what passages or sources answer: ballots by form, near-copies, answers that say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np

from unpoison.algorithms.independent_set import maximum_independent_set
from unpoison.algorithms.votes import outvotes, plurality, support_vote
from unpoison.defenses.isolation import judge_apart
from unpoison.defenses.voices import Voice, those_that_count, votes_of
from unpoison.errors import InputError
from unpoison.models.prompts import informative
from unpoison.models.protocols import NLIModel
from unpoison.models.requests import Flow
from unpoison.text.answer_forms import form
from unpoison.text.answers import relation

__all__ = ["Ballots", "Counted", "alike", "count_ballots", "count_by_source", "independent"]

SAME = 0.5
"""Answers that say the same with at least this probability are one."""

SHARED = 0.75
"""Share of their distinct words that near-copies have in common, of the text that has more of them."""

MAX_COMPARED = 100
"""Passages of which near-copies are sought: the exact search for independent voters must end."""


@dataclass(frozen=True, slots=True)
class Ballots:
    """What each passage votes for.

    Attributes:
        answers: What it says, as read.
        forms: The class of that (`text.answer_forms`), "" where it says nothing.
    """

    answers: tuple[str, ...]
    forms: tuple[str, ...]

    @classmethod
    def of(cls, question: str, answers: Sequence[str]) -> Self:
        """The ballots of a question's answers; an uninformative answer is no ballot."""
        distinct = {answer: form(question, answer) if informative(answer) else "" for answer in dict.fromkeys(answers)}
        return cls(tuple(answers), tuple(distinct[answer] for answer in answers))

    def wording(self, winner: str, voices: Sequence[Voice]) -> str:
        """How most sources write an answer; of equally common ways the first in the alphabet."""
        behind = those_that_count(voices, (i for i, name in enumerate(self.forms) if name == winner))
        ways = Counter(way for way, _ in {(self.answers[i].strip(), voices[i].name) for i in behind})
        return min(ways, key=lambda way: (-ways[way], way))


class Counted(NamedTuple):
    """What a count comes to.

    Attributes:
        winner: The winning class, None where nobody wins.
        behind: The classes that support it.
        support: Votes of all of these.
        votes: Votes of each class.
        margin: The number of changed passages, or sources, that the outcome is proved to withstand.
        says: The rule, in a sentence.
        unit: What the margin counts.
    """

    winner: str | None
    behind: frozenset[str]
    support: float
    votes: Mapping[str, float]
    margin: int
    says: str
    unit: Literal["passages", "sources"] = "passages"


def count_ballots(
    question: str,
    ballots: Ballots,
    texts: Sequence[str],
    least: int,
    same: str,
    seconds: int,
    once: bool,
    nli: NLIModel | None,
) -> Flow[Counted]:
    """Count the ballots.

    Args:
        question: The user's.
        ballots: One for each passage.
        texts: What each passage reads.
        least: Votes that the answer needs.
        same: `written` or `meaning`, as for `Vote`.
        seconds: Votes that a candidate needs, with `meaning`.
        once: Whether near-copies have one vote together.
        nli: Decides what says the same; None for rules.

    Raises:
        InputError: Near-copies are sought among too many passages, or among so entangled ones that the search did not
            end.
    """
    voters: dict[str, list[int]] = {}
    for i, name in enumerate(ballots.forms):
        if name:
            voters.setdefault(name, []).append(i)
    if once and len(texts) > MAX_COMPARED:
        raise InputError(
            f"copies=once compares at most {MAX_COMPARED} passages, got {len(texts):,}; give fewer, or copies=each"
        )
    votes = {name: independent([texts[i] for i in at]) if once else len(at) for name, at in voters.items()}
    unit = "independent passage" if once else "passage"
    if same == "meaning":
        by_meaning = yield from _by_meaning(question, votes, least, seconds, nli, unit)
        if by_meaning is not None:
            return by_meaning
    outcome = plurality(votes, least)
    winner = None if outcome.winner is None else str(outcome.winner)
    if winner is None:
        says = _nobody(outcome.votes, outcome.rival, unit, least)
    else:
        says = f"{_many(outcome.votes, unit)} so, each read alone, and {_rival(outcome.rival)}"
    behind = frozenset() if winner is None else frozenset((winner,))
    margin = outcome.margin if same == "written" else 0  # a candidate for the count by meaning may come in
    return Counted(winner, behind, outcome.votes, votes, margin, says)


def _by_meaning(
    question: str, votes: Mapping[str, int], least: int, seconds: int, nli: NLIModel | None, unit: str
) -> Flow[Counted | None]:
    """The count in which answers support others that say the same; None where no answer has its seconds."""
    likes = yield from alike(question, sorted(votes), nli)

    def same(left: str, right: str) -> bool:
        return frozenset((left, right)) in likes

    outcome = support_vote(votes, same, seconds, str)
    winner, support, rival, margin = outcome
    if winner is None and not support:
        return None
    if winner is None or support < least:
        says = _nobody(support, rival, unit, least)
        return Counted(None, frozenset(), support, votes, 0, says)
    behind = frozenset(name for name in votes if name == winner or frozenset((name, winner)) in likes)
    says = f"{_many(support, unit)} so or the same, each read alone, and {_rival(rival)}"
    return Counted(winner, behind, support, votes, min(margin, support - least), says)


def _many(count: int, unit: str) -> str:
    return f"{count} {unit} says" if count == 1 else f"{count} {unit}s say"


def _rival(count: int) -> str:
    return f"{count} something else" if count else "none anything else"


def _nobody(votes: int, rival: int, unit: str, least: int) -> str:
    if not votes:
        return "no passage answers"
    if votes < least:
        return f"no answer has the {least} votes that it needs: {_many(votes, unit)} the same"
    return f"no answer leads: {_many(votes, unit)} one thing, and {rival} another"


def alike(question: str, forms: Sequence[str], nli: NLIModel | None) -> Flow[frozenset[frozenset[str]]]:
    """The pairs of classes that say the same: a function of each pair alone, so that no third can change it."""
    pairs = [(a, b) for i, a in enumerate(forms) for b in forms[:i]]
    if nli is None:
        return frozenset(frozenset(pair) for pair in pairs if relation(question, *pair).same >= SAME)
    says = {name: f"Question: {question} Answer: {name}" for name in forms}
    ways = [order for a, b in pairs for order in ((says[a], says[b]), (says[b], says[a]))]
    both = yield from judge_apart(ways, nli, "same")
    entailed = np.minimum(both[0::2, 0], both[1::2, 0]) >= SAME
    return frozenset(frozenset(pair) for pair, entails in zip(pairs, entailed.tolist(), strict=True) if entails)


def independent(texts: Sequence[str]) -> int:
    """The most texts of which no two are near-copies, at least 1 for one text."""
    distinct = list(dict.fromkeys(" ".join(text.casefold().split()) for text in texts))
    words = [frozenset(text.split()) for text in distinct]
    copies = np.array([[_near(a, b) for b in words] for a in words], dtype=bool)
    largest = maximum_independent_set(copies.reshape(len(words), len(words)))
    if not largest.exact:
        raise InputError(
            "the passages copy each other in too entangled a way to count independent ones; use copies=each"
        )
    return len(largest.members)


def _near(left: frozenset[str], right: frozenset[str]) -> bool:
    return len(left & right) >= SHARED * max(len(left), len(right))


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
        says = "no passage answers" if winner is None else _no_leader(len(support[winner]), most, agreed, least)
        return Counted(None, frozenset(), most, totals, 0, says, "sources")
    behind = frozenset(name for name in votes if says_the_same(winner, name))
    rival = max((weight[name] for name in candidates if name not in behind), default=0)
    counts = any(v.counts for v, name in zip(voices, ballots.forms, strict=True) if name in behind)
    margin = 0
    if counts and same == "written":
        margin = outvotes(votes, winner, {voice.name: voice.most for voice in voices}, least)
    says = f"{_many(len(support[winner]), 'source')} so, each passage read alone: {_votes(most)} against {rival:g}"
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


def _votes(weight: float) -> str:
    return "1 vote" if weight == 1 else f"{weight:g} votes"


def _no_leader(sources: int, weight: float, agreed: bool, least: int) -> str:
    if not agreed:
        return f"no answer leads: several have {_votes(weight)} of sources"
    return f"no answer has the {least} sources that it needs: {_many(sources, 'source')} the same"
