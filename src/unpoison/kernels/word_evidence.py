"""What the words of passages say of them: the question's words, words that they share, and the sentence that claims."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels.comparisons import best_three, mean_of_others, middle
from unpoison.kernels.tokenized import TokenizedTexts

__all__ = ["WordEvidence", "word_evidence"]

Matrix = NDArray[np.float64]

DENSE_CELLS = 2_000_000
"""Passages times stems up to which the table of who says what is an array (16 MB)."""


class WordEvidence(NamedTuple):
    """What the words of k passages say of them.

    Attributes:
        columns: By name, shape (k,).
        overlap: Share of words that two passages have in common beside the question's, shape (k, k).
        claim: The sentence of each passage that comes nearest to an answer, -1 for none, shape (k,).
    """

    columns: dict[str, Matrix]
    overlap: Matrix
    claim: NDArray[np.int64]


class _Sharing(NamedTuple):
    """Which words passages share: the columns, the overlap of each pair, and who has which of the shared stems."""

    columns: dict[str, Matrix]
    overlap: Matrix
    table: Any


def word_evidence(tokenized: TokenizedTexts, alike: Matrix) -> WordEvidence:
    """What a passage says of the question's words, which other words it shares with other passages, and its claim.

    Args:
        tokenized: The question and behind it the k passages.
        alike: Which passages may be by one hand, in [0, 1], shape (k, k).

    Complexity: O(w log w + k^2 w) time for w words.
    """
    k = len(alike)
    of_question = _question_stems(tokenized)
    telling = ~tokenized.stop[tokenized.stem] | of_question[tokenized.stem]
    owner, stem = _distinct(tokenized.owner[telling], tokenized.stem[telling], len(of_question))
    hits = np.bincount(owner[of_question[stem]], minlength=k + 1)[1:]
    coverage = hits / max(int(of_question.sum()), 1)
    density = _density(tokenized, telling, of_question, k)
    news = (owner > 0) & ~of_question[stem]  # owner 0 is the question
    sharing = _sharing(owner[news] - 1, stem[news], (k, len(of_question)))
    claims, claim = _claims(tokenized, of_question, sharing.table, alike)
    columns = {
        "coverage": coverage,
        "coverage_contrast": coverage - middle(coverage),
        "density": density,
        "density_contrast": density - middle(density),
        **sharing.columns,
        **_echo(tokenized, k),
        **claims,
    }
    return WordEvidence(columns, sharing.overlap, claim)


def _question_stems(tokenized: TokenizedTexts) -> NDArray[np.bool_]:
    """Which stems the question has, shape (stems,), at least one place; stop words only if it has nothing else."""
    of_question = np.zeros(max(len(tokenized.stop), 1), bool)
    of_question[tokenized.stem[tokenized.owner == 0]] = True
    telling = of_question[: len(tokenized.stop)] & ~tokenized.stop
    return telling if telling.any() else of_question


def _distinct(group: NDArray[np.int64], stem: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], ...]:
    """Each stem of a group once, by group and then by stem; `size` is how many stems there are."""
    return np.divmod(np.unique(group * size + stem), size)


def _density(tokenized: TokenizedTexts, telling: NDArray[np.bool_], of_question: NDArray[np.bool_], k: int) -> Matrix:
    """The share of the question's words among the telling words of each passage, shape (k,)."""
    inside = telling & of_question[tokenized.stem]
    words = np.bincount(tokenized.owner[telling], minlength=k + 1)[1:]
    return np.asarray(np.bincount(tokenized.owner[inside], minlength=k + 1)[1:] / np.maximum(words, 1))


def _sharing(passage: NDArray[np.int64], stem: NDArray[np.int64], shape: tuple[int, int]) -> _Sharing:
    """From the distinct words of each passage beside the question's: how much it shares with others, and with whom."""
    k, size = shape
    holders = np.bincount(stem, minlength=size)
    news = np.bincount(passage, minlength=k)
    common = holders[stem] > 1
    table = _table(passage[common], stem[common], shape)
    shared = _dense(table @ table.T)
    np.fill_diagonal(shared, 0)
    overlap = shared / np.sqrt(np.maximum(news[:, None] * news, 1))
    first, second, third = best_three(overlap)
    mean = mean_of_others(overlap)
    novel = np.bincount(passage[~common], minlength=k) / np.maximum(news, 1)
    columns = {
        "words": first,
        "words_second": second,
        "words_third": third,
        "words_mean": mean,
        "words_inside": (shared / np.maximum(news[:, None], 1)).max(axis=1),
        "set_words": np.full(k, mean.mean()),
        "novel": novel,
        "novel_contrast": novel - middle(novel),
    }
    return _Sharing(columns, overlap, table)


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


def _echo(tokenized: TokenizedTexts, k: int) -> dict[str, Matrix]:
    """Runs of three words that repeat the question, and runs that repeat another passage."""
    size = max(len(tokenized.stop), 1)
    if len(tokenized.stem) < 3:
        return {"echo": np.zeros(k), "phrases": np.zeros(k)}
    a, b, c = tokenized.stem[:-2], tokenized.stem[1:-1], tokenized.stem[2:]
    within = tokenized.owner[:-2] == tokenized.owner[2:]
    _, run = np.unique((a * size + b) * size + c, return_inverse=True)
    count = int(run.max()) + 1
    owner, run = np.divmod(np.unique(tokenized.owner[:-2][within] * count + run[within]), count)
    of_question = np.zeros(count, bool)
    of_question[run[owner == 0]] = True
    echoed = np.bincount(owner[of_question[run]], minlength=k + 1)[1:] / max(int(of_question.sum()), 1)
    own = (owner > 0) & ~of_question[run]
    owner, run = owner[own] - 1, run[own]
    repeated = np.bincount(run, minlength=count)[run] > 1
    return {
        "echo": echoed,
        "phrases": np.bincount(owner[repeated], minlength=k) / np.maximum(np.bincount(owner, minlength=k), 1),
    }


def _claims(
    tokenized: TokenizedTexts, of_question: NDArray[np.bool_], table: Any, alike: Matrix
) -> tuple[dict[str, Matrix], NDArray[np.int64]]:
    """The sentence that comes nearest to an answer: most of the question's words, and something besides.

    `claim` is the share of the question's words in it, `claim_news` the logarithm of how many other words it has,
    `claim_share` the mean share of other passages that have these words, `claim_votes` the same where mates of the
    passage, which may be copies by one hand, have no vote, and `claim_alone` the share of words that nobody else has.
    """
    k, count = len(alike), len(tokenized.sentence_owner)
    telling = ~tokenized.stop[tokenized.stem] | of_question[tokenized.stem]
    sentence, stem = _distinct(tokenized.sentence[telling], tokenized.stem[telling], len(of_question))
    hits = np.bincount(sentence[of_question[stem]], minlength=count)
    news = np.bincount(sentence[~of_question[stem]], minlength=count)
    claimants, best = _claiming_sentences(tokenized, hits, news)
    columns = {"claim": np.zeros(k), "claim_news": np.zeros(k)}
    columns["claim"][claimants] = hits[best] / max(int(of_question.sum()), 1)
    columns["claim_news"][claimants] = np.log1p(news[best])
    claimant_of = np.full(count, -1)
    claimant_of[best] = claimants
    claimed = ~of_question[stem] & (claimant_of[sentence] >= 0)
    columns |= _shared_claims(claimant_of[sentence[claimed]], stem[claimed], table, alike)
    columns["claim_contrast"] = columns["claim"] - middle(columns["claim"])
    claim = np.full(k, -1)
    claim[claimants] = best
    return columns, claim


def _claiming_sentences(
    tokenized: TokenizedTexts, hits: NDArray[np.int64], news: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The passages that claim anything, and of each the sentence with most words of the question.

    Of these the one with fewest other words, and then the first. A question claims nothing, nor does a sentence without
    other words.
    """
    owner = tokenized.sentence_owner  # 0 is the question
    able = np.flatnonzero((news > 0) & ~tokenized.asks & (owner > 0))
    order = able[np.lexsort((able, news[able], -hits[able], owner[able]))]
    owners, first = np.unique(owner[order], return_index=True)
    return owners - 1, order[first]


def _shared_claims(passage: NDArray[np.int64], stem: NDArray[np.int64], table: Any, alike: Matrix) -> dict[str, Matrix]:
    """Who else has the words of each passage's claim; `passage` and `stem` name one word each."""
    k = len(alike)
    voters = 1 - alike
    np.fill_diagonal(voters, 0)
    distinct, column = np.unique(stem, return_inverse=True)
    held = _dense(table[:, distinct]).T[column] > 0
    held[np.arange(len(passage)), passage] = False
    words = np.maximum(np.bincount(passage, minlength=k), 1)
    return {
        "claim_share": np.bincount(passage, held.mean(axis=1), k) / words,
        "claim_votes": np.bincount(passage, (held * voters[passage]).max(axis=1, initial=0.0), k) / words,
        "claim_alone": np.bincount(passage, ~held.any(axis=1), k) / words,
    }
