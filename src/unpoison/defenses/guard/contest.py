"""Contests that Guard reports: passages with rival answers, none of which has a clear majority.

Contests come from two places: near-copies that differ in a name or number, in any language and without a model
(`text.near_duplicates`), and the answers of passages that were read one by one. A contest never keeps or drops a
passage; it is reported to the user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.verdicts import Contest, Rival
from unpoison.defenses.guard.votes import COPY
from unpoison.models.prompts import informative
from unpoison.models.requests import Flow, read, relate
from unpoison.text.analysis import analysis
from unpoison.text.answers import Relation, relation
from unpoison.text.near_duplicates import FoldedText, Frame, near_copies
from unpoison.text.questions import read_question

__all__ = ["MAX_READ_PASSAGES", "ReadAnswers", "contests", "copy_matrix", "read_through"]

MAX_READ_PASSAGES = 50
"""Maximum number of top-ranked kept passages that a reader reads for contests: about half a second on two cores."""

DOUBT = 0.03
"""Above this probability of no answer, the answer that a reader copied from a passage does not count as a conflict. It
still counts as a voice for an answer that another passage gives with certainty."""

SERIOUS = 0.5
"""A rival needs at least this share of the leading answer's voices; otherwise the majority is clear."""

MAX_ANSWERS = 12
"""Maximum number of distinct answers to compare, the most frequent first."""

MAX_CONTESTS = 10
"""Maximum number of contests per screening: first those of read answers, then near-copies with the fewest differences.
"""

MAX_SHOWN_CHARS = 200
"""Maximum characters of a rival's answer; the rest is cut."""

LIKELY = 0.5
"""Minimum probability at which two answers are the same, or rivals."""

Related = Mapping[frozenset[str], Relation]
"""The relation between each pair of distinct answers."""


class ReadAnswers(NamedTuple):
    """The answers of passages, each read alone.

    Attributes:
        answers: By position; passages that were not read are missing.
        doubtful: Positions of uncertain answers, which do not count as conflicts.
        notes: Notes on passages that were not read.
    """

    answers: Mapping[int, str] = MappingProxyType({})
    doubtful: Set[int] = frozenset()
    notes: tuple[str, ...] = ()


def read_through(question: str, texts: Sequence[str], kept: Sequence[int]) -> Flow[ReadAnswers]:
    """Have the reader read the kept passages, at most `MAX_READ_PASSAGES`, unless the question is for yes or no."""
    if len(kept) < 2 or read_question(question).kind == "polar":  # readers copy words
        return ReadAnswers()
    first = kept[:MAX_READ_PASSAGES]
    readings = yield from read(question, [texts[i] for i in first])
    answers = {i: reading.answer for i, reading in zip(first, readings, strict=True)}
    doubtful = frozenset(i for i, reading in zip(first, readings, strict=True) if not reading.no_answer <= DOUBT)
    note = f"the reader compared the answers of the first {MAX_READ_PASSAGES} of {len(kept)} kept passages"
    return ReadAnswers(answers, doubtful, (note,) * (len(first) < len(kept)))


def contests(
    question: str,
    texts: Sequence[str],
    read_answers: ReadAnswers,
    overlap: NDArray[np.float64],
    *,
    asks: bool = False,
) -> Flow[tuple[Contest, ...]]:
    """The contests among the passages of one question.

    Args:
        question: The question.
        texts: The k passages.
        read_answers: The answers of the passages that were read.
        overlap: The share of words that two passages have in common, shape (k, k).
        asks: Whether the generator compares answers itself (`relations`); otherwise rules compare them.

    Returns:
        At most `MAX_CONTESTS`.
    """
    frames = near_copies(texts, lambda text: analysis(text).part(FoldedText))
    copies = copy_matrix(texts, frames, overlap)
    answers = {i: answer for i, answer in read_answers.answers.items() if informative(answer)}
    keys, worded = _pairs(answers)
    if asks and worded:
        compared = yield from relate(question, worded)
    else:
        compared = [relation(question, *pair) for pair in worded]
    disputes = _disputes(answers, dict(zip(keys, compared, strict=True)), copies, read_answers.doubtful)
    for frame in frames:
        difference = _difference(question, frame, copies)
        if difference is not None and not any(_covers(dispute, difference) for dispute in disputes):
            disputes.append(difference)
        if len(disputes) >= MAX_CONTESTS:
            break
    return tuple(disputes[:MAX_CONTESTS])


def copy_matrix(texts: Sequence[str], frames: Sequence[Frame], overlap: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which passages are copies of each other and share one voice; shape (k, k), symmetric."""
    copies = overlap >= COPY
    np.fill_diagonal(copies, val=True)
    positions: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        positions.setdefault(text, []).append(i)
    for alike in (*positions.values(), *(list(frame.fillings) for frame in frames)):
        if len(alike) > 1:
            copies[np.ix_(alike, alike)] = True
    return copies


def _disputes(
    answers: Mapping[int, str], related: Related, copies: NDArray[np.bool_], doubtful: Set[int]
) -> list[Contest]:
    """Contests among read answers: those that contradict each other and have enough voices."""
    groups = _groups(answers, related)
    leaders = [leader for leader, passages in groups.items() if not doubtful >= set(passages)]
    disputes = []
    while leaders:
        party = [leaders.pop(0)]
        for leader in party:  # grows: an answer that contradicts any member joins the contest
            against = [opponent for opponent in leaders if related[frozenset((leader, opponent))].rival >= LIKELY]
            party += against
            leaders = [opponent for opponent in leaders if opponent not in against]
        if len(party) < 2:
            continue
        rivals = _rank_rivals([_rival(answers, groups[leader], copies) for leader in party])
        serious = tuple(rival for rival in rivals if rival.voices >= SERIOUS * rivals[0].voices)
        if len(serious) > 1:
            disputes.append(Contest(serious))
    return disputes


def _difference(question: str, frame: Frame, copies: NDArray[np.bool_]) -> Contest | None:
    """The contest of near-copies: the differing words at the same place in each; None if all are the same."""
    related = {key: relation(question, *pair) for key, pair in zip(*_pairs(frame.fillings), strict=True)}
    groups = _groups(frame.fillings, related)
    if len(groups) < 2:
        return None
    return Contest(_rank_rivals([_rival(frame.fillings, group, copies) for group in groups.values()]))


def _key(answer: str) -> str:
    return " ".join(answer.casefold().split()).rstrip(".")


def _distinct(answers: Mapping[int, str]) -> list[str]:
    """The most frequent answers, compared without case, white space and a final period."""
    return [key for key, _ in Counter(map(_key, answers.values())).most_common(MAX_ANSWERS)]


def _pairs(answers: Mapping[int, str]) -> tuple[list[frozenset[str]], list[tuple[str, str]]]:
    """All pairs of distinct answers: their keys, and the wordings to compare."""
    wording = {_key(answer): answer for answer in answers.values()}
    pairs = list(combinations(_distinct(answers), 2))
    return list(map(frozenset, pairs)), [(wording[left], wording[right]) for left, right in pairs]


def _groups(answers: Mapping[int, str], related: Related) -> dict[str, list[int]]:
    """Groups of equivalent answers: positions, by the most frequent answer of the group."""
    leads: dict[str, str] = {}
    for key in _distinct(answers):
        leading = dict.fromkeys(leads.values())
        leads[key] = next((lead for lead in leading if related[frozenset((lead, key))].same >= LIKELY), key)
    groups: dict[str, list[int]] = {}
    for i in sorted(answers):
        if _key(answers[i]) in leads:
            groups.setdefault(leads[_key(answers[i])], []).append(i)
    return groups


def _rival(answers: Mapping[int, str], passages: Sequence[int], copies: NDArray[np.bool_]) -> Rival:
    """An answer in its shortest wording, and the passages that give it."""
    voices: list[int] = []
    for i in passages:
        if not copies[i, voices].any():
            voices.append(i)
    words = min((" ".join(answers[i].split()) for i in passages), key=len)
    shown = words if len(words) <= MAX_SHOWN_CHARS else f"{words[: MAX_SHOWN_CHARS - 1]}…"
    return Rival(shown, tuple(passages), len(voices))


def _rank_rivals(rivals: Sequence[Rival]) -> tuple[Rival, ...]:
    return tuple(sorted(rivals, key=lambda rival: (-rival.voices, -len(rival.passages), rival.passages)))


def _covers(contest: Contest, smaller: Contest) -> bool:
    """Whether a contest already puts the passages of another one on different sides."""
    side = {i: number for number, rival in enumerate(contest.rivals) for i in rival.passages}
    sides = [{side.get(i, -1) for i in rival.passages} for rival in smaller.rivals]
    return all(-1 not in side_numbers for side_numbers in sides) and sum(map(len, sides)) == len(set().union(*sides))
