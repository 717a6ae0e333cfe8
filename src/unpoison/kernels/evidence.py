"""What can be seen of each passage in the company of the others: the numbers that Guard judges by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.kernels.comparisons import best_three, mean_of_others, middle
from unpoison.kernels.cosine import cosine
from unpoison.kernels.pagerank import pagerank
from unpoison.kernels.style import Runs, runs
from unpoison.kernels.tokenized import tokenize
from unpoison.kernels.word_evidence import word_evidence
from unpoison.kernels.wording import forms

__all__ = ["Signs", "signs"]

Matrix = NDArray[np.float64]

CONTRASTED = ("length", "sentence_length", "function_words", "word_length", "distinct", "capitals", "digits", "commas")
"""Forms that count in comparison with the set's median as well."""

SHARED_FORMS = ("length", "capitals", "ellipsis", "open_end", "lower_start")
"""Forms whose mean over the set says what kind of texts these are."""

MATE_FORMS = ("open_end", "ellipsis", "function_words", "sentence_length")
"""Forms of a passage's mates that say whether they are of one hand."""

QUERY_SHARE = 0.4
"""GRADA's alpha."""

MATE, MATE_WIDTH = 0.55, 0.06
"""Residual similarity from which two passages count as mates, and how gradually."""


class Signs(NamedTuple):
    """The evidence on k passages.

    Attributes:
        columns: By name, shape (k,).
        runs: The runs of shapes in the passages' sentences (`kernels.style`).
        sentence_owner: The passage of every sentence, -1 for the question's, shape (sentences,).
        claim: The sentence of each passage that comes nearest to an answer, -1 for none, shape (k,).
        residual: Cosines of the passages once the query's direction is removed, shape (k, k).
        overlap: Share of words that two passages have in common beside the question's, shape (k, k).
    """

    columns: Mapping[str, Matrix]
    runs: Runs
    sentence_owner: NDArray[np.int64]
    claim: NDArray[np.int64]
    residual: Matrix
    overlap: Matrix


def signs(question: str, texts: Sequence[str], vectors: ArrayLike, target: ArrayLike) -> Signs:
    """All evidence on the passages of one question.

    Args:
        question: The question.
        texts: k passages, at least one.
        vectors: Their embeddings, shape (k, d).
        target: The question's embedding, shape (d,).

    Complexity: O(k^2 (d + w) + k^3) time for w shared words per passage, the last term being one dense solve; O(k^2)
    memory beside the texts.
    """
    rows, query = np.asarray(vectors, float), np.asarray(target, float)
    tokenized = tokenize([question, *texts])
    form = {name: column[1:] for name, column in forms([question, *texts], tokenized).items()}
    near = _similarity(rows, query)
    residual = cosine(_without(rows, query))
    mates, mate_weights, alike = _mates(residual)
    question_columns, overlap, claim = word_evidence(tokenized, alike)
    columns: dict[str, Matrix] = {**near, **_support(residual, near["similarity"]), **question_columns, **mates}
    columns["centrality"] = _centrality(rows, near["similarity"])
    columns |= form
    columns |= {f"{name}_contrast": form[name] - middle(form[name]) for name in CONTRASTED}
    columns |= {f"set_{name}": _everywhere(form[name].mean(), texts) for name in SHARED_FORMS}
    columns |= {f"mates_{name}": mate_weights @ form[name] for name in MATE_FORMS}
    columns["mates_claim"] = mate_weights @ question_columns["claim"]
    columns["mates_similarity"] = mate_weights @ near["similarity"]
    columns["mates_length_difference"] = (mate_weights * np.abs(form["length"][:, None] - form["length"])).sum(axis=1)
    columns["size"] = _everywhere(np.log(len(texts)), texts)
    columns["question_length"] = _everywhere(np.log1p(float((tokenized.owner == 0).sum())), texts)
    return Signs(columns, runs(tokenized), tokenized.sentence_owner - 1, claim, residual, overlap)


def _everywhere(value: float, texts: Sequence[str]) -> Matrix:
    return np.full(len(texts), float(value))


def _similarity(rows: Matrix, query: Matrix) -> dict[str, Matrix]:
    """Similarity to the query, alone and in comparison."""
    own = cosine(rows, query[None, :])[:, 0]
    ranked = np.sort(own)
    best, second = ranked[-1], ranked[max(len(own) - 2, 0)]
    return {
        "similarity": own,
        "similarity_contrast": own - middle(own),
        "similarity_lead": own - np.where(own == best, second, best),
        "similarity_rank": np.searchsorted(ranked, own) / max(len(own) - 1, 1),
        "set_similarity": np.full(len(own), own.mean()),
        "set_similarity_spread": np.full(len(own), own.std()),
        "set_similarity_best": np.full(len(own), best),
    }


def _without(rows: Matrix, query: Matrix) -> Matrix:
    """The passages' unit vectors less their component along the query."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1.0)
    length = np.linalg.norm(query)
    direction = query / length if length > 0 else query
    rest = units - np.outer(units @ direction, direction)
    # What rounding leaves of a passage that is the query itself has no direction.
    return np.asarray(np.where(np.linalg.norm(rest, axis=1, keepdims=True) > 1e-6, rest, 0.0))


def _support(residual: Matrix, similarity: Matrix) -> dict[str, Matrix]:
    """How much company a passage has that the query does not explain."""
    first, second, third = best_three(residual)
    mean = mean_of_others(residual)
    nearest = np.where(np.eye(len(residual), dtype=bool), -2.0, residual).argmax(axis=1)
    return {
        "support": first,
        "support_second": second,
        "support_third": third,
        "support_mean": mean,
        "support_contrast": first - middle(first),
        "set_support": np.full(len(mean), mean.mean()),
        "nearest_similarity": similarity[nearest],
    }


def _mates(residual: Matrix) -> tuple[dict[str, Matrix], Matrix, Matrix]:
    """How many mates there are, the weights of the others for each passage, summing to 1 (or 0), and who is a mate."""
    others = np.where(np.eye(len(residual), dtype=bool), 0.0, np.clip(residual, 0, 1) ** 3)
    total = others.sum(axis=1, keepdims=True)
    alike = 1 / (1 + np.exp(-(residual - MATE) / MATE_WIDTH))
    count = alike.sum(axis=1) - np.diag(alike)
    columns = {"mates": count, "mates_share": count / max(len(residual) - 1, 1)}
    return columns, others / np.where(total > 0, total, 1.0), alike


def _centrality(rows: Matrix, similarity: Matrix) -> Matrix:
    """GRADA's centrality over embeddings, times k, so that 1 is average."""
    weights = np.clip(cosine(rows) - QUERY_SHARE * (similarity[:, None] + similarity), 0, None)
    np.fill_diagonal(weights, 0)
    return pagerank(weights) * len(rows)
