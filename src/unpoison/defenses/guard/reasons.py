"""Guard's verdicts in words: which evidence spoke against a passage, and which neighbours it involves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.model import COMPANY, WORDING, GuardModel, Judgement
from unpoison.kernels.evidence import Signs
from unpoison.reasons import Clause, Reason

__all__ = ["GROUPS", "REMARKABLE", "claim", "reasons", "verdict_of"]

Matrix = NDArray[np.float64]

REMARKABLE = 0.2
"""Probability from which a passage's evidence is taken apart."""

MOST = 3
"""Groups of evidence that are named."""

LEAST = 0.3
"""Log-odds that a group of evidence must add to be named."""

GROUPS = {
    "guard.direct_answer": ("similarity", "coverage", "density", "claim"),
    "guard.repeats_question": ("echo",),
    "guard.resembles": ("support", "centrality", "phrases", "mates"),
    "guard.shares_words": ("words",),
    "guard.unsupported": ("novel", "claim_alone", "claim_votes", "claim_share"),
    "guard.resembles_suspects": ("suspicious",),
    "guard.wording": ("wording", "function_words", "word_length",
        "distinct", "capitals", "digits", "commas", "quoted", "marks", "year"),
    "guard.form": ("length", "sentence_length", "ellipsis", "open_end",
        "lower_start", "foreign", "asks"),
    "guard.addresses": ("orders",),
}  # fmt: skip
"""What to say when these columns, by the beginning of their names, weigh most; columns of the set belong to nobody."""


def reasons(
    model: GuardModel, signs: Signs, judgement: Judgement, united: Matrix, worst: Mapping[int, str]
) -> list[list[Clause]]:
    """What speaks against each passage, the strongest first; nothing where nothing is remarkable.

    Args:
        model: The coefficients of the judgement in company.
        signs: The evidence.
        judgement: What it came to.
        united: The passages' probability by all judgements, shape (k,).
        worst: By position, the window that speaks most against a passage, of those that are remarkable.

    A group of evidence counts as much as the log-odds fall when the passage's values of the group are replaced by
    those of the least suspicious passage; in a set of one there is none to compare with. That a group counts does not
    say in which direction a passage differs, so what its clause claims is looked up in the evidence.
    """
    probability = judgement.probability
    claims = {i: [claim(text)] for i, text in worst.items()}
    clauses = [list[Clause]() for _ in united]
    suspects = np.flatnonzero((probability >= REMARKABLE) & (united >= REMARKABLE))
    if len(suspects):
        evidence = _Evidence(model, signs, judgement)
        for suspect, points in zip(suspects.tolist(), _weights(model, judgement, suspects)):
            heavy = (list(GROUPS)[i] for i in np.argsort(-points, kind="stable") if points[i] >= LEAST)
            named = islice(filter(None, (evidence.clause(code, suspect) for code in heavy)), MOST)
            clauses[suspect] = [*named, *claims.pop(suspect, ())] or [Reason.of("guard.small_signs").clause]
    for i, found in claims.items():
        clauses[i] = found
    return clauses


def claim(quote: str) -> Clause:
    """That a sentence of a passage states an answer as invented claims do."""
    return Reason.of("guard.claim", quote=quote).clause


def verdict_of(probability: float, clauses: Sequence[Clause], *, kept: bool) -> Reason:
    """The reason that Guard's evidence on a passage makes."""
    if not clauses:
        return Reason.of("guard.unremarkable" if kept else "guard.threshold", probability=probability)
    return Reason.of("guard.kept" if kept else "guard.crafted", probability=probability, clauses=clauses)


class _Evidence:
    """Whether what a clause claims is so, and which neighbour it is about."""

    def __init__(self, model: GuardModel, signs: Signs, judgement: Judgement) -> None:
        self.signs, self.probability = signs, judgement.probability
        self.rows, self.names = judgement.rows, (*model.columns, *WORDING)

    def clause(self, code: str, i: int) -> Clause | None:
        """The clause of a group for a passage, the opposite one where there is one, None where it would be untrue."""
        column = self.signs.columns
        match code:
            case "guard.direct_answer":
                names = ("claim", "similarity", "coverage", "density")
                return _named(code) if any(column[f"{name}_contrast"][i] > 0 for name in names) else None
            case "guard.repeats_question":
                return _named(code) if column["echo"][i] > 0 else None
            case "guard.resembles":
                if column["support_contrast"][i] < 0:
                    return _named("guard.unlike")
                return _named(code, passage=_nearest(self.signs.residual[i], i))
            case "guard.shares_words":
                return _named(code, passage=_nearest(self.signs.overlap[i], i)) if column["words"][i] > 0 else None
            case "guard.unsupported":
                alone = column["claim_alone"][i] > 0 or column["novel_contrast"][i] > 0
                return _named(code) if alone else None
            case "guard.resembles_suspects":
                near = _nearest(np.clip(self.signs.residual[i], 0, 1) * self.probability, i)
                known = self.probability[near] >= REMARKABLE and self.signs.residual[i, near] > 0
                return _named(code, passage=near) if known else None
            case "guard.wording":
                return _named(code) if self.rows[i, self.names.index("wording_contrast")] > 0 else None
            case "guard.addresses":
                return _named(code) if column["orders"][i] > 0 else None
        return _named(code)


def _named(code: str, **parameters: int) -> Clause:
    return Reason.of(code, **parameters).clause


def _nearest(values: Matrix, i: int) -> int:
    """The passage, other than passage `i`, with the highest value."""
    others = np.array(values, float)
    others[i] = -np.inf
    return int(others.argmax())


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
