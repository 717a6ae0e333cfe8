"""RADAR with sources: what a source says in several passages is one answer, and supports another once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.isolation import statements
from unpoison.defenses.voices import Voice, of_one_voice
from unpoison.models.requests import Flow, judge

__all__ = ["first_of_each_answer", "one_voice_agreement"]

SAME = 0.5
"""From this mean entailment on two answers of one source are the same, unless they contradict each other more."""


def first_of_each_answer(
    question: str, answers: Sequence[str], speaking: Sequence[int], voices: Sequence[Voice]
) -> Flow[dict[int, int]]:
    """For each informative answer the first one of its source that says the same.

    Args:
        question: The question.
        answers: Of all passages.
        speaking: The positions of the informative ones.
        voices: Of all passages.
    """
    by_voice: defaultdict[str, list[int]] = defaultdict(list)
    for i in speaking:
        by_voice[voices[i].name].append(i)
    told = {name: statements(question, [answers[i] for i in at]) for name, at in by_voice.items()}
    pairs = list(
        dict.fromkeys((left, right) for said, _ in told.values() for left in said for right in said if left != right)
    )
    judged = (yield from judge(pairs, "the same source")) if pairs else np.zeros((0, 3))
    entails = dict(zip(pairs, judged.tolist(), strict=True))
    firsts: dict[int, int] = {}
    for name, positions in by_voice.items():
        said, number = told[name]
        kinds: dict[str, int] = {}
        for i, statement in zip(positions, (said[n] for n in number), strict=True):
            like = (first for other, first in kinds.items() if other == statement or _same(entails, other, statement))
            firsts[i] = next(like, i)
            if firsts[i] == i:
                kinds[statement] = i
    return firsts


def _same(entails: dict[tuple[str, str], list[float]], left: str, right: str) -> bool:
    there, back = entails[left, right], entails[right, left]
    agreement, conflict = (there[0] * back[0]) ** 0.5, (there[2] * back[2]) ** 0.5
    return bool(agreement >= SAME and agreement > conflict)


def one_voice_agreement(agreement: NDArray[np.float64], voices: Sequence[Voice]) -> NDArray[np.float64]:
    """How much answers support each other where those of one source count once.

    Of two sources only the answers agree that agree most; those of one source do not. Agreement weighs as much as the
    two sources are trusted, and nothing with one that does not count where others do.

    Args:
        agreement: Shape (m, m), symmetric.
        voices: Of the m answers; empty where each is its own.
    """
    m = len(agreement)
    if not voices or not m:
        return agreement
    strongest = np.zeros((m, m), bool)
    names = np.array([voice.name for voice in voices], object)
    for name in dict.fromkeys(names):
        (own,) = np.nonzero(names == name)
        strongest[np.arange(m), own[agreement[:, own].argmax(axis=1)]] = True
    once = strongest & strongest.T & ~of_one_voice(voices) | np.eye(m, dtype=bool)
    counting = any(voice.counts for voice in voices)
    weights = np.array([voice.weight if voice.counts or not counting else 0.0 for voice in voices])
    weights = np.sqrt(weights / weights.max())
    return np.where(once, agreement * weights[:, None] * weights[None, :], 0.0)
