"""Guard's verdicts in words: which evidence spoke against a passage, and which neighbours it involves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard_model import COMPANY, WORDING, GuardModel, Judgement
from unpoison.kernels.evidence import Signs

__all__ = ["CLAUSE", "GROUPS", "REMARKABLE", "reasons"]

Matrix = NDArray[np.float64]

REMARKABLE = 0.2
"""Probability from which a passage's evidence is taken apart."""

CLAUSE = "a sentence of it states an answer as invented claims do"

LEAST = 0.3
"""Log-odds that a group of evidence must add to be named."""

GROUPS = {
    "it answers the question more directly than its neighbours": ("similarity", "coverage", "density", "claim"),
    "it repeats the question": ("echo",),
    "it resembles passage {near} more than the question explains": ("support", "centrality", "phrases", "mates"),
    "it shares telling words with passage {words}": ("words",),
    "nobody else says what it says": ("novel", "claim_alone", "claim_votes", "claim_share"),
    "it resembles passages that are suspicious themselves, first of all passage {suspect}": ("suspicious",),
    "its wording is that of a written claim, not of its neighbours": ("wording", "function_words", "word_length",
        "distinct", "capitals", "digits", "commas", "quoted", "marks", "year"),
    "its length and form differ from its neighbours'": ("length", "sentence_length", "ellipsis", "open_end",
        "lower_start", "foreign", "asks"),
    "it gives orders to its reader": ("orders",),
}  # fmt: skip
"""What to say when these columns, by the beginning of their names, weigh most; columns of the set belong to nobody."""


def reasons(
    model: GuardModel, signs: Signs, judgement: Judgement, united: Matrix, worst: Mapping[int, str]
) -> list[str]:
    """One sentence for each passage.

    Args:
        model: The coefficients of the judgement in company.
        signs: The evidence.
        judgement: What it came to.
        united: The passages' probability by all judgements, shape (k,).
        worst: By position, the window that speaks most against a passage, of those that are remarkable.

    A group of evidence counts as much as the log-odds fall when the passage's values of the group are replaced by
    those of the least suspicious passage; in a set of one there is none to compare with.
    """
    probability = judgement.probability
    sentences = [f"probability of poison {value:.2f}" for value in united.tolist()]
    clauses = {i: [f"{CLAUSE}: \u201c{text}\u201d"] for i, text in worst.items()}
    suspects = np.flatnonzero((probability >= REMARKABLE) & (united >= REMARKABLE))
    if len(suspects):
        for suspect, points in zip(suspects.tolist(), _weights(model, judgement, suspects)):
            named = [i for i in np.argsort(-points, kind="stable")[:3] if points[i] >= LEAST]
            texts = [list(GROUPS)[i].format(**_neighbours(signs, probability, suspect)) for i in named]
            clauses[suspect] = [*texts, *clauses.get(suspect, ())] or ["by many small signs together"]
    return [f"{sentence}: {'; '.join(clauses.get(i, ['nothing remarkable']))}" for i, sentence in enumerate(sentences)]


def _weights(model: GuardModel, judgement: Judgement, suspects: NDArray[np.intp]) -> Matrix:
    """How much the log-odds of each suspect fall without each group of evidence, shape (suspects, groups)."""
    rows, around, where, probability, alone = judgement
    whole = np.hstack([rows, around])
    innocent = whole[probability.argmin()]
    members = _members((*model.columns, *WORDING, *COMPANY))
    changed = np.repeat(whole[suspects, None], len(members), axis=1)
    for group, columns in enumerate(members):
        changed[:, group, columns] = innocent[columns]
    flat = changed.reshape(-1, whole.shape[1])
    sums = model.sums(flat[:, : rows.shape[1]], flat[:, rows.shape[1] :])
    without = model.odds(sums, np.repeat(alone[suspects], len(members)), where).reshape(len(suspects), len(members))
    return model.odds(model.sums(rows[suspects], around[suspects]), alone[suspects], where)[:, None] - without


@cache
def _members(names: tuple[str, ...]) -> list[list[int]]:
    """The columns of every group."""
    return [[i for i, name in enumerate(names) if name.startswith(starts)] for starts in GROUPS.values()]


def _neighbours(signs: Signs, probability: Matrix, i: int) -> dict[str, int]:
    """The positions that a sentence on passage `i` may name."""

    def best(values: Matrix) -> int:
        others = np.array(values, float)
        others[i] = -np.inf
        return int(others.argmax())

    return {
        "near": best(signs.residual[i]),
        "words": best(signs.overlap[i]),
        "suspect": best(np.clip(signs.residual[i], 0, 1) * probability),
    }
