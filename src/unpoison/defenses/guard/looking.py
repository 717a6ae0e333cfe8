"""Guard's judgement of the passages of one question, from their texts and vectors; no model is called here.

Two judgements are united (`WindowModel.united`). What the titles of a set change in general is not held against its
passages: a headline above a text makes it look written for the question. And excerpts do not incriminate the text that
they are taken from: whoever plants the question with the first words of an honest passage makes that passage look like
one of a crowd, so what would be dropped for its company is judged once more without its excerpts and copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.defenses.guard.model import GuardModel, Judgement, as_log_odds, as_probability
from unpoison.defenses.guard.windows import WindowJudgement, WindowModel
from unpoison.kernels.evidence import Signs, signs
from unpoison.kernels.stopwords import ENGLISH_318
from unpoison.kernels.tokens import stem_sets, stems

__all__ = ["Look", "excerpts", "look"]

Matrix = NDArray[np.float64]

EXCERPT = 0.8
"""A passage that shares this much of its words, beside the question's, with another one is an excerpt of that."""

DOUBTFUL = 0.2
"""Below this probability no threshold that was fitted drops a passage."""

MOST_SUSPECTS = 50
"""Passages, the best ranked, whose excerpts are looked for; a set with more of them is no set that was baited."""

FEWEST_TITLED = 3
"""Passages with a title, for what titles change in general."""

LONGEST_TITLE = 300
"""Characters; what is longer is no title but a text, and judged as one."""

MOST_RAISED = 3.0
"""Log-odds that titles may add in general, at most: the most that whoever planted most of a set gains by titles."""

COMMON = frozenset(stems(" ".join(sorted(ENGLISH_318))))


class Look(NamedTuple):
    """What Guard sees of k passages.

    Attributes:
        signs: The evidence on the whole passages.
        judgement: Of the whole passages, in company.
        windows: Of their sentences, each by itself.
        level: By how many log-odds this set is judged more mildly than others.
        probability: Of poison, shape (k,).
    """

    signs: Signs
    judgement: Judgement
    windows: WindowJudgement
    level: float
    probability: Matrix


def look(
    model: GuardModel,
    windows: WindowModel,
    question: str,
    texts: Sequence[str],
    vectors: ArrayLike,
    target: ArrayLike,
    bodies: Sequence[str] | None = None,
) -> Look:
    """Judge the passages of a question.

    Args:
        model: The coefficients for the vectors.
        windows: The coefficients for windows.
        question: The question's reading.
        texts: The readings of k passages, at least one.
        vectors: Their embeddings, shape (k, d).
        target: The question's embedding, shape (d,).
        bodies: The same readings without their titles; None where there are no titles.

    Complexity: as `kernels.evidence.signs`, at most twice, with titles four times.
    """
    bodies = texts if bodies is None else bodies
    first = _look(model, windows, question, texts, vectors, target, bodies)
    own = 1 / (1 + np.exp(first.level - windows.on_scale_of(model, first.windows.passages)))
    suspects = np.flatnonzero((first.probability > DOUBTFUL) & (first.probability > own))[:MOST_SUSPECTS].tolist()
    quoted = excerpts(question, texts, suspects)
    aside = {j for copies in quoted.values() for j in copies}
    rest = [i for i in range(len(texts)) if i not in aside]
    if not aside or not rest:
        return first
    read, bare = ([every[i] for i in rest] for every in (texts, bodies))
    second = _look(model, windows, question, read, np.asarray(vectors)[rest], target, bare)
    probability = first.probability.copy()
    for position, i in enumerate(rest):
        if i in quoted:
            probability[i] = min(probability[i], second.probability[position])
    return first._replace(probability=probability)


def excerpts(question: str, texts: Sequence[str], suspects: Sequence[int]) -> dict[int, list[int]]:
    """For each suspect the passages that are excerpts of it; of two copies the later one is the excerpt.

    Suspects without any are left out. Time linear in suspects times words of all passages.
    """
    if not suspects:
        return {}
    question_words, *words_of = stem_sets([question, *texts])
    words_of = [passage_words - COMMON - question_words for passage_words in words_of]

    def within(inner: int, outer: int) -> bool:
        return len(words_of[inner] & words_of[outer]) >= EXCERPT * len(words_of[inner])

    quoted = {i: [j for j in range(len(texts)) if j != i and within(j, i) and (j > i or not within(i, j))]
              for i in suspects}  # fmt: skip
    return {i: copies for i, copies in quoted.items() if copies}


def _look(
    model: GuardModel,
    windows: WindowModel,
    question: str,
    texts: Sequence[str],
    vectors: ArrayLike,
    target: ArrayLike,
    bodies: Sequence[str],
) -> Look:
    whole = signs(question, texts, vectors, target)
    judgement = model.judge(whole)
    titled = np.array([0 < len(text) - len(body) <= LONGEST_TITLE for text, body in zip(texts, bodies)])
    if titled.sum() >= FEWEST_TITLED:
        untitled = [body if short else text for text, body, short in zip(texts, bodies, titled)]
        bare = model.judge(signs(question, untitled, vectors, target))
        judgement = judgement._replace(probability=_despite_titles(judgement.probability, bare.probability, titled))
    looked = windows.judge(question, texts)
    level = windows.level(model, looked)
    return Look(whole, judgement, looked, level, windows.united(model, judgement, looked, level))


def _despite_titles(whole: Matrix, bare: Matrix, titled: NDArray[np.bool_]) -> Matrix:
    """Probabilities without what titles add to half of a set's titled passages; never below those without a title.

    So a text under a title is at least as suspicious as the same text without one.

    Args:
        whole: Of the passages with their titles, shape (k,).
        bare: Of the same without, shape (k,).
        titled: Which have one, shape (k,).
    """
    raised = as_log_odds(whole) - as_log_odds(bare)
    usual = np.clip(np.median(raised[titled]), 0, MOST_RAISED)
    return as_probability(as_log_odds(whole) - np.where(titled, np.clip(raised, 0, usual), 0))
