"""What can be seen of each passage in the company of the others: the numbers that Guard judges by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.kernels.cosine import cosine
from unpoison.kernels.pagerank import pagerank
from unpoison.kernels.reading import Reading, read
from unpoison.kernels.style import Runs, runs
from unpoison.kernels.wording import forms

__all__ = ["Signs", "middle", "signs"]

Matrix = NDArray[np.float64]

CONTRASTED = ("length", "sentence_length", "function_words", "word_length", "distinct", "capitals", "digits", "commas")
"""Forms that count in comparison with the set's median as well."""

SHARED_FORMS = ("length", "capitals", "ellipsis", "open_end", "lower_start")
"""Forms whose mean over the set says what kind of texts these are."""

MATE_FORMS = ("open_end", "ellipsis", "function_words", "sentence_length")
"""Forms of a passage's mates that say whether they are of one hand."""

DENSE_CELLS = 2_000_000
"""Passages times stems up to which the table of who says what is an array (16 MB)."""

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
    reading = read([question, *texts])
    form = {name: column[1:] for name, column in forms([question, *texts], reading).items()}
    near = _similarity(rows, query)
    residual = cosine(_without(rows, query))
    mates, mate_weights, alike = _mates(residual)
    asked, overlap, claim = _words(reading, alike)
    columns: dict[str, Matrix] = {**near, **_support(residual, near["similarity"]), **asked, **mates}
    columns["centrality"] = _centrality(rows, near["similarity"])
    columns |= form
    columns |= {f"{name}_contrast": form[name] - middle(form[name]) for name in CONTRASTED}
    columns |= {f"set_{name}": _everywhere(form[name].mean(), texts) for name in SHARED_FORMS}
    columns |= {f"mates_{name}": mate_weights @ form[name] for name in MATE_FORMS}
    columns["mates_claim"] = mate_weights @ asked["claim"]
    columns["mates_similarity"] = mate_weights @ near["similarity"]
    columns["mates_length_difference"] = (mate_weights * np.abs(form["length"][:, None] - form["length"])).sum(axis=1)
    columns["size"] = _everywhere(np.log(len(texts)), texts)
    columns["question_length"] = _everywhere(np.log1p(float((reading.owner == 0).sum())), texts)
    return Signs(columns, runs(reading), reading.sentence_owner - 1, claim, residual, overlap)


def middle(values: Matrix) -> float:
    """The median of at least one value; numpy's takes twenty times as long for so few."""
    ranked = np.sort(values)
    return float((ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2)


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


def _best_three(values: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The three highest values of each row off the diagonal; 0 where there are fewer."""
    k = len(values)
    others = np.where(np.eye(k, dtype=bool), -1.0, values)
    ranked = -np.sort(-others, axis=1)
    zero = np.zeros(k)
    first = ranked[:, 0] if k > 1 else zero
    return first, ranked[:, 1] if k > 2 else first, ranked[:, 2] if k > 3 else first


def _mean_of_others(values: Matrix) -> Matrix:
    return np.asarray((values.sum(axis=1) - np.diag(values)) / max(len(values) - 1, 1))


def _support(residual: Matrix, similarity: Matrix) -> dict[str, Matrix]:
    """How much company a passage has that the query does not explain."""
    first, second, third = _best_three(residual)
    mean = _mean_of_others(residual)
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


def _words(reading: Reading, alike: Matrix) -> tuple[dict[str, Matrix], Matrix, NDArray[np.int64]]:
    """What a passage says of the question's words, which other words it shares with other passages, and its claim."""
    k = len(alike)
    size = max(len(reading.stop), 1)
    of_question = np.zeros(size, bool)
    asked = reading.stem[reading.owner == 0]
    of_question[asked] = True
    if (of_question[asked] & ~reading.stop[asked]).any():
        of_question &= ~reading.stop
    wanted = max(int(of_question.sum()), 1)

    telling = ~reading.stop[reading.stem] | of_question[reading.stem]
    cells = np.unique(reading.owner[telling] * size + reading.stem[telling])
    owner, stem = np.divmod(cells, size)
    hits = np.bincount(owner[of_question[stem]], minlength=k + 1)[1:]
    inside = telling & of_question[reading.stem]
    density = np.bincount(reading.owner[inside], minlength=k + 1)[1:] / np.maximum(
        np.bincount(reading.owner[telling], minlength=k + 1)[1:], 1
    )

    other = (owner > 0) & ~of_question[stem]
    owner, stem = owner[other] - 1, stem[other]
    holders = np.bincount(stem, minlength=size)
    news = np.bincount(owner, minlength=k)
    common = holders[stem] > 1
    table = _table(owner[common], stem[common], (k, size))
    shared = _dense(table @ table.T)
    np.fill_diagonal(shared, 0)
    overlap = shared / np.sqrt(np.maximum(news[:, None] * news, 1))
    first, second, third = _best_three(overlap)
    mean = _mean_of_others(overlap)
    novel = np.bincount(owner[~common], minlength=k) / np.maximum(news, 1)
    coverage, echo = hits / wanted, _echo(reading, k)
    claims, claim = _claims(reading, of_question, table, alike)
    columns = {
        "coverage": coverage,
        "coverage_contrast": coverage - middle(coverage),
        "density": density,
        "density_contrast": density - middle(density),
        "words": first,
        "words_second": second,
        "words_third": third,
        "words_mean": mean,
        "words_inside": (shared / np.maximum(news[:, None], 1)).max(axis=1),
        "set_words": np.full(k, mean.mean()),
        "novel": novel,
        "novel_contrast": novel - middle(novel),
        **echo,
        **claims,
    }
    return columns, overlap, claim


def _table(owner: NDArray[np.intp], stem: NDArray[np.intp], shape: tuple[int, int]) -> Any:
    """1 where a passage holds a stem, shape (k, stems): dense while it is small, which is quicker, else sparse."""
    if shape[0] * shape[1] <= DENSE_CELLS:
        dense = np.zeros(shape)
        dense[owner, stem] = 1
        return dense
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(owner)), (owner, stem)), shape=shape)


def _dense(table: Any) -> Matrix:
    return table if isinstance(table, np.ndarray) else np.asarray(table.toarray(), float)


def _echo(reading: Reading, k: int) -> dict[str, Matrix]:
    """Runs of three words that repeat the question, and runs that repeat another passage."""
    size = max(len(reading.stop), 1)
    if len(reading.stem) < 3:
        return {"echo": np.zeros(k), "phrases": np.zeros(k)}
    a, b, c = reading.stem[:-2], reading.stem[1:-1], reading.stem[2:]
    within = reading.owner[:-2] == reading.owner[2:]
    _, run = np.unique((a * size + b) * size + c, return_inverse=True)
    count = int(run.max()) + 1
    owner, run = np.divmod(np.unique(reading.owner[:-2][within] * count + run[within]), count)
    asked = np.zeros(count, bool)
    asked[run[owner == 0]] = True
    echoed = np.bincount(owner[asked[run]], minlength=k + 1)[1:] / max(int(asked.sum()), 1)
    own = (owner > 0) & ~asked[run]
    owner, run = owner[own] - 1, run[own]
    repeated = np.bincount(run, minlength=count)[run] > 1
    return {
        "echo": echoed,
        "phrases": np.bincount(owner[repeated], minlength=k) / np.maximum(np.bincount(owner, minlength=k), 1),
    }


def _claims(
    reading: Reading, of_question: NDArray[np.bool_], table: Any, alike: Matrix
) -> tuple[dict[str, Matrix], NDArray[np.int64]]:
    """The sentence that comes nearest to an answer: most of the question's words, and something besides.

    `claim` is the share of the question's words in it, `claim_news` the logarithm of how many other words it has,
    `claim_share` the mean share of other passages that have these words, `claim_votes` the same where mates of the
    passage, which may be copies by one hand, have no vote, and `claim_alone` the share of words that nobody else has.
    """
    k, size = len(alike), max(len(reading.stop), 1)
    telling = ~reading.stop[reading.stem] | of_question[reading.stem]
    cells = np.unique(reading.sentence[telling] * size + reading.stem[telling])
    sentence, stem = np.divmod(cells, size)
    count = len(reading.sentence_owner)
    known = of_question[stem]
    hits = np.bincount(sentence[known], minlength=count)
    news = np.bincount(sentence[~known], minlength=count)
    able = np.flatnonzero((news > 0) & ~reading.asks & (reading.sentence_owner > 0))
    order = able[np.lexsort((able, news[able], -hits[able], reading.sentence_owner[able]))]
    owners, first = np.unique(reading.sentence_owner[order], return_index=True)
    best, owners = order[first], owners - 1
    columns = {name: np.zeros(k) for name in ("claim", "claim_news", "claim_share", "claim_votes", "claim_alone")}
    columns["claim"][owners] = hits[best] / max(int(of_question.sum()), 1)
    columns["claim_news"][owners] = np.log1p(news[best])

    place = np.full(count, -1)
    place[best] = owners
    inside = ~known & (place[sentence] >= 0)
    owner, stem = place[sentence[inside]], stem[inside]
    voters = 1 - alike
    np.fill_diagonal(voters, 0)
    distinct, column = np.unique(stem, return_inverse=True)
    held = _dense(table[:, distinct]).T[column] > 0
    held[np.arange(len(owner)), owner] = False
    words = np.maximum(np.bincount(owner, minlength=k), 1)
    columns["claim_share"] = np.bincount(owner, held.mean(axis=1), k) / words
    columns["claim_votes"] = np.bincount(owner, (held * voters[owner]).max(axis=1, initial=0.0), k) / words
    columns["claim_alone"] = np.bincount(owner, ~held.any(axis=1), k) / words
    columns["claim_contrast"] = columns["claim"] - middle(columns["claim"])
    claim = np.full(k, -1)
    claim[owners] = best
    return columns, claim
