"""What can be seen of a window beside the question, and of nothing else, neither its surroundings nor its company.

So text that is added to a passage, and passages that are added to a set, change nothing for the windows there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels.style import BASE, LONGEST_RUN, Runs, Style, known_to, resemblance, shapes_of, word_code
from unpoison.kernels.windows import FEWEST, Windows, windows

__all__ = ["COLUMNS", "WindowSigns", "known_runs", "window_runs", "window_signs"]

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

COLUMNS = ("style", "coverage", "density", "echo", "news", "length", "function_words", "question_length")
"""Nothing that a writer can add at will to any sentence, such as a year, stands among them."""

NONE = 0
"""The number of no run and of no word."""


class WindowSigns(NamedTuple):
    """The evidence on all windows; none is left out for what stands elsewhere in its passage.

    Attributes:
        columns: `COLUMNS`, shape (n, 8).
        owner: The passage of each window, shape (n,).
        start, end: Where it stands in the passage's reading, shape (n,).
    """

    columns: Matrix
    owner: Numbers
    start: Numbers
    end: Numbers


def window_signs(question: str, texts: Sequence[str], style: Style, fewest: int = FEWEST) -> WindowSigns:
    """The evidence on the windows of k passages, whose parts have so many words at least.

    Time and memory linear in the words, but for sorting.
    """
    cut = windows(question, texts, fewest)
    question_count, hits, news = _of_question(cut)
    wanted = max(question_count, 1)
    owners = cut.owner[cut.first]
    first, last = cut.first, cut.last
    count = np.maximum(_total(cut, np.ones(len(cut.part)), first, last), 1)
    columns = {
        "style": resemblance(style, *known_runs(cut, first, last, style), len(first)),
        "coverage": hits / wanted,
        "density": hits / np.maximum(hits + news, 1),
        "echo": _echo(cut, first, last),
        "news": np.log1p(news),
        "length": np.log1p(count),
        "function_words": _total(cut, cut.stop[cut.word].astype(float), first, last) / count,
        "question_length": np.full(len(first), np.log1p(wanted)),
    }
    table = np.column_stack([columns[name] for name in COLUMNS])
    return WindowSigns(table, owners, cut.start[first], cut.end[last])


def window_runs(cut: Windows) -> Runs:
    """Runs of one to three shapes of words in lower case inside parts, and the words; `sentence` is the part.

    No edges, no marks.
    """
    shape = shapes_of(cut.words)[cut.word] + 1
    codes, parts, code = [shape], [cut.part], shape
    for length in range(1, LONGEST_RUN):
        code = code[:-1] * BASE + shape[length:]
        inside = cut.part[:-length] == cut.part[length:]
        codes.append(np.where(inside, code, NONE))
        parts.append(cut.part[:-length])
    words = np.array([word_code(word) for word in cut.words], np.int64)[cut.word]
    every, part = np.concatenate([*codes, words]), np.concatenate([*parts, cut.part])
    keep = (every != NONE) & (part > 0)
    return Runs(every[keep], part[keep])


def _total(cut: Windows, values: Matrix, first: Numbers, last: Numbers) -> Matrix:
    """The sum over the words of each window of values given for each word, shape (n,)."""
    by_part = np.bincount(cut.part, values, len(cut.owner))
    return np.asarray(by_part[first] + np.where(last > first, by_part[last], 0.0))


def _of_question(cut: Windows) -> tuple[int, Matrix, Matrix]:
    """How many telling words the question has, and for each window how many of them and how many others it holds.

    Words count once in a part. In a pair of parts a word that both hold counts once too.
    """
    size = _stems(cut)
    stem, stop = cut.stem[cut.word], cut.stop[cut.word]
    of_question = cut.part == 0
    telling = of_question & ~stop
    in_question = np.zeros(size, bool)
    in_question[stem[telling if telling.any() else of_question]] = True
    keep = (~stop | in_question[stem]) & ~of_question
    parts, stems = np.divmod(np.unique(cut.part[keep] * size + stem[keep]), size)
    # A cell of the next part that this one holds as well would count twice in their pair.
    again = np.isin((parts - 1) * size + stems, parts * size + stems)
    hit = in_question[stems]

    def counted(flags: NDArray[np.bool_]) -> Matrix:
        by_part = np.bincount(parts, flags, len(cut.owner))
        fresh = np.bincount(parts, flags & ~again, len(cut.owner))
        return np.asarray(by_part[cut.first] + np.where(cut.last > cut.first, fresh[cut.last], 0.0))

    return int(in_question.sum()), counted(hit), counted(~hit)


def _stems(cut: Windows) -> int:
    return int(cut.stem.max(initial=0)) + 1


def _echo(cut: Windows, first: Numbers, last: Numbers) -> Matrix:
    """Share of the question's runs of three words that a window repeats."""
    stem, part = cut.stem[cut.word], cut.part
    size = _stems(cut)
    run = (stem[:-2] * size + stem[1:-1]) * size + stem[2:]
    inside = part[:-2] == part[2:]
    question_runs = np.unique(run[inside & (part[:-2] == 0)])
    if not len(question_runs):
        return np.zeros(len(first))
    hit = inside & np.isin(run, question_runs)
    cells = np.unique(part[:-2][hit] * len(question_runs) + np.searchsorted(question_runs, run[hit]))
    by_part = np.bincount(cells // len(question_runs), minlength=len(cut.owner)).astype(float)
    both = by_part[first] + np.where(last > first, by_part[last], 0.0)
    return np.asarray(np.minimum(both / len(question_runs), 1))


def known_runs(cut: Windows, first: Numbers, last: Numbers, style: Style) -> tuple[Numbers, Numbers]:
    """The runs of each window that the style has a weight for, and their windows."""
    runs_with_weight = known_to(style, window_runs(cut))
    order = np.argsort(runs_with_weight.sentence, kind="stable")
    feature, part = runs_with_weight.code[order], runs_with_weight.sentence[order]
    begin = np.searchsorted(part, np.arange(len(cut.owner) + 1))
    chunks, owners = [], []
    for side, valid in ((first, np.ones(len(first), bool)), (last, last > first)):
        sizes = np.where(valid, begin[side + 1] - begin[side], 0)
        offset = np.repeat(begin[side] - np.concatenate([[0], np.cumsum(sizes)[:-1]])[: len(side)], sizes)
        chunks.append(feature[np.arange(int(sizes.sum())) + offset])
        owners.append(np.repeat(np.arange(len(side)), sizes))
    return np.concatenate(chunks), np.concatenate(owners)
