"""How many unrelated subjects a document's questions are about."""

from __future__ import annotations

from collections.abc import Sequence, Set

__all__ = ["topics"]

RELATED = 0.3
"""Questions are about one thing when the shorter one shares this part of its words with the other."""


def topics(questions: Sequence[Set[str]]) -> int:
    """Groups of questions that share words, by their words or hashes of these.

    Single linkage: who is related to one of a group belongs to it. O(n^2) in the questions.

    Returns:
        At least 1 where there is a question; one without words is a topic of its own.
    """
    group = list(range(len(questions)))

    def root(i: int) -> int:
        while group[i] != i:
            group[i] = group[group[i]]
            i = group[i]
        return i

    for i, words in enumerate(questions):
        for j in range(i):
            shorter = min(len(words), len(questions[j]))
            if shorter and len(words & questions[j]) >= RELATED * shorter:
                group[root(i)] = root(j)
    return len({root(i) for i in range(len(questions))})
