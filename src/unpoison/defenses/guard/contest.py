"""Contests that Guard reports: passages with rival answers, none of which has a clear majority.

Contests come from two places: near-copies that differ in a name or number, in any language and without a model
(`text.near_duplicates`), and the statements of passages (`guard.statements`). A contest never keeps or drops a passage;
it is reported to the user.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unpoison.core.verdicts import Contest, Rival
from unpoison.defenses.guard.claims import relations
from unpoison.defenses.guard.features import TextWords, common_words
from unpoison.defenses.guard.statements import DOUBT, MAX_READ, Statement
from unpoison.models.requests import Flow
from unpoison.text.analysis import analysis, words_of
from unpoison.text.answers import LIKELY, Related, group_equivalent
from unpoison.text.near_duplicates import FoldedText, Frame, near_copies
from unpoison.text.questions import read_question
from unpoison.text.replies import informative

__all__ = ["ReadAnswers", "contests", "copy_frames", "overlap"]

COPY = 0.8
"""Passages with at least this share of words in common are copies, and share one voice."""

ANSWERED = 0.4
"""P(no answer) from which a passage has no answer: the reader's own threshold."""

SERIOUS = 0.5
"""A rival needs at least this share of the leading answer's voices; otherwise the majority is clear."""

MAX_ANSWERS = 12
"""Maximum number of distinct answers to compare, the most frequent first."""

MAX_CONTESTS = 10
"""Maximum number of contests per screening: first those of statements, then near-copies with the fewest differences."""

MAX_SHOWN_CHARS = 200
"""Maximum characters of a rival's answer; the rest is cut."""


class ReadAnswers(NamedTuple):
    """The answers of passages, each read alone.

    Attributes:
        answers: By position; passages that were not read are missing.
        doubtful: Positions of uncertain answers. They do not count as conflicts, but as voices for an answer that
            another passage gives with certainty.
        notes: Notes on passages that were not read.
    """

    answers: Mapping[int, str] = MappingProxyType({})
    doubtful: Set[int] = frozenset()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, question: str, statements: Mapping[int, Statement], kept: Sequence[int]) -> Self:
        """The statements of the kept passages, unless the question is for yes or no."""
        if len(kept) < 2 or read_question(question).kind == "polar":  # readers copy words
            return cls()
        answers = {i: statements[i].answer for i in kept if i in statements and statements[i].no_answer < ANSWERED}
        doubtful = frozenset(i for i in answers if not statements[i].no_answer <= DOUBT)
        note = f"the reader compared the answers of the first {MAX_READ} of {len(kept)} kept passages"
        return cls(answers, doubtful, (note,) * (len(kept) > MAX_READ))


def copy_frames(texts: Sequence[str]) -> list[Frame]:
    """The near-copies among texts, and the words in which they differ."""
    return near_copies(texts, lambda text: analysis(text).part(FoldedText))


def overlap(question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """The pairwise word overlap of k texts without the question's words, shape (k, k), 0 on the diagonal.

    The number of common stems over the geometric mean of both. O(n log n + k^2 w) time for w distinct words.
    """
    if not texts:
        return np.zeros((0, 0))
    words, shared = common_words(words_of([question])[0].stem, TextWords.of(words_of(texts)), len(texts))
    np.fill_diagonal(shared, 0)
    return np.asarray(shared / np.sqrt(words[:, None] * words))


def contests(
    question: str,
    texts: Sequence[str],
    frames: Sequence[Frame],
    read_answers: ReadAnswers,
    overlap: NDArray[np.float64],
    *,
    asks: bool = False,
) -> Flow[tuple[Contest, ...]]:
    """The contests among the passages of one question.

    Args:
        question: The question.
        texts: The k passages.
        frames: The near-copies among them.
        read_answers: The answers of the passages that were read.
        overlap: The share of words that two passages have in common, shape (k, k).
        asks: Whether the generator compares answers itself (`relations`); otherwise rules compare them.

    Returns:
        At most `MAX_CONTESTS`.
    """
    copies = _copy_matrix(texts, frames, overlap)
    answers = {i: answer for i, answer in read_answers.answers.items() if informative(answer)}
    related = yield from relations(question, _wording(answers), asks=asks)
    disputes = _disputes(answers, related, copies, read_answers.doubtful)
    for frame in frames:
        difference = yield from _difference(question, frame, copies)
        if difference is not None and not any(_covers(dispute, difference) for dispute in disputes):
            disputes.append(difference)
        if len(disputes) >= MAX_CONTESTS:
            break
    return tuple(disputes[:MAX_CONTESTS])


def _copy_matrix(texts: Sequence[str], frames: Sequence[Frame], overlap: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which passages are copies of each other and share one voice; shape (k, k), symmetric."""
    copies = overlap >= COPY
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


def _difference(question: str, frame: Frame, copies: NDArray[np.bool_]) -> Flow[Contest | None]:
    """The contest of near-copies: the differing words at the same place in each; None if all are the same."""
    related = yield from relations(question, _wording(frame.fillings), asks=False)
    groups = _groups(frame.fillings, related)
    if len(groups) < 2:
        return None
    return Contest(_rank_rivals([_rival(frame.fillings, group, copies) for group in groups.values()]))


def _key(answer: str) -> str:
    return " ".join(answer.casefold().split()).rstrip(".")


def _wording(answers: Mapping[int, str]) -> dict[str, str]:
    """The most frequent answers, by their words without case, white space and a final period."""
    wording = {_key(answer): answer for answer in answers.values()}
    return {key: wording[key] for key, _ in Counter(map(_key, answers.values())).most_common(MAX_ANSWERS)}


def _groups(answers: Mapping[int, str], related: Related) -> dict[str, list[int]]:
    """Groups of equivalent answers: positions, by the most frequent answer of the group."""
    equivalent = group_equivalent(list(_wording(answers)), related)
    lead_of = {name: lead for lead, names in equivalent.items() for name in names}
    groups: dict[str, list[int]] = {}
    for i in sorted(answers):
        if (lead := lead_of.get(_key(answers[i]))) is not None:
            groups.setdefault(lead, []).append(i)
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
