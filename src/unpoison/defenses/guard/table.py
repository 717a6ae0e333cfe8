"""The numbers that a Guard of one's own is fitted on beside the user's: evidence on passages of the training, no text.

`benchmarks/guard_table.py` writes them. Values are in at most 64 levels, which is as fine as the fit looks at them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.guard.key import GROUPS
from unpoison.defenses.guard.model import WORDING, wording
from unpoison.errors import InputError
from unpoison.kernels.comparisons import middle
from unpoison.kernels.evidence import Signs
from unpoison.kernels.style import Runs, Style
from unpoison.kernels.window_evidence import window_signs

__all__ = ["ENCODERS_OWN", "LEVELS", "Sample", "of_texts", "shipped_samples"]

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]

LEVELS: Final = 64
"""Values that a quantised number can have; each takes one byte, and the file stays small."""

ENCODERS_OWN: Final = ("similarity", "set_similarity", "support", "set_support", "nearest_", "mates", "centrality",
                       "claim_votes")  # fmt: skip
"""How the names of columns begin that depend on the encoder."""


@dataclass(frozen=True)
class Sample:
    """The passages of one question as numbers.

    Attributes:
        domain: The kind of text; `OWN` is the user's.
        attack: What the poison is, "none" without.
        question: A number that questions share which are the same.
        poison: Which passages an attacker wrote, shape (k,).
        signs: The evidence; runs and sentences of texts that are not there are left out.
        wording: `WORDING`, shape (k, 7).
        windows: The evidence on windows, shape (n, 8).
        owner: The passage of each window, shape (n,).
    """

    domain: str
    attack: str
    question: int
    poison: NDArray[np.bool_]
    signs: Signs
    wording: Matrix
    windows: Matrix
    owner: Numbers


OWN: Final = "own"


def of_texts(
    question: str, number: int, texts: Sequence[str], signs: Signs, style: Style, window_style: Style
) -> Sample:
    """The user's passages, which are taken to be clean.

    Args:
        question: What was asked.
        number: Of the question.
        texts: The passages' readings.
        signs: The evidence on them.
        style: How claims are built, as the fitted Guard will see it.
        window_style: The same for windows.
    """
    looked = window_signs(question, texts, window_style)
    words = np.column_stack(wording(signs, style))
    return Sample(OWN, "none", number, np.zeros(len(texts), bool), signs, words, looked.columns, looked.owner)


def shipped_samples(encoder: str, style: Sequence[int], window_style: Sequence[int]) -> list[Sample]:
    """The samples of the training that the package ships.

    Args:
        encoder: `lexical` or `minilm`.
        style: The groups of the style that count (`guard_key.part_of`).
        window_style: The same for the style of windows.

    Raises:
        InputError: There are no numbers for this encoder.
    """
    table, own = _load_table("guard-table"), _load_table(f"guard-table-{encoder}")
    columns = {**_columns(table), **_columns(own)}
    parts = _evenly(table["style"], table["style_scale"])
    whole, claim = (GROUPS / len(style) * parts[kind][list(style)].sum(axis=0) for kind in (0, 1))
    looked = _windows(table, window_style)
    sizes = table["size"].astype(int)
    ends = np.cumsum(sizes)
    cells = np.cumsum(sizes * (sizes - 1) // 2)
    last_window = np.cumsum(table["windows"].astype(int))
    samples = []
    for i, (end, size, cell) in enumerate(zip(ends.tolist(), sizes.tolist(), cells.tolist())):
        here = slice(end - size, end)
        pairs = slice(cell - size * (size - 1) // 2, cell)
        counts = table["windows"][here].astype(int)
        until = int(last_window[end - 1])
        signs = Signs(
            {name: column[here] for name, column in columns.items()},
            Runs(np.zeros(0, np.int64), np.zeros(0, np.int64)),
            np.zeros(0, np.int64),
            np.full(size, -1),
            _symmetric(own["residual"][pairs], size),
            _symmetric(table["overlap"][pairs], size),
        )
        samples.append(
            Sample(
                str(table["domains"][table["domain"][i]]),
                str(table["attacks"][table["attack"][i]]),
                int(table["question"][i]),
                table["poison"][here],
                signs,
                _worded(whole[here], claim[here]),
                looked[until - int(counts.sum()) : until],
                np.repeat(np.arange(size), counts),
            )
        )
    return samples


def _worded(whole: Matrix, claim: Matrix) -> Matrix:
    """`WORDING` of one sample; nothing is known of its single sentences, and no fitted tree looks at them."""
    typical, most = middle(whole), whole.max()
    columns = {
        "wording": whole,
        "wording_contrast": whole - typical,
        "wording_claim": claim,
        "set_wording": np.full(len(whole), typical),
        "set_wording_most": np.full(len(whole), most),
    }
    return np.column_stack([columns.get(name, np.zeros(len(whole))) for name in WORDING])


def _windows(table: Mapping[str, Any], groups: Sequence[int]) -> Matrix:
    """The evidence on all windows, the style first, shape (n, 8)."""
    style = GROUPS / len(groups) * _evenly(table["window_style"], table["window_scale"])[list(groups)].sum(axis=0)
    rest = np.take_along_axis(table["window_levels"], table["window_codes"].astype(np.intp), axis=1)
    return np.column_stack([style, *rest]).astype(float)


def _columns(table: Mapping[str, Any]) -> dict[str, Matrix]:
    values = np.take_along_axis(table["levels"], table["codes"].astype(np.intp), axis=1).astype(float)
    return {str(name): column for name, column in zip(table["names"], values)}


def _evenly(codes: NDArray[np.uint8], scale: NDArray[np.float32]) -> Matrix:
    low, step = scale.tolist()
    return np.asarray(low + step * codes.astype(float))


def _symmetric(cells: NDArray[np.uint8], size: int) -> Matrix:
    """From the cells above the diagonal, in 63rds; nothing that is read depends on the diagonal."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size, 1)] = cells / (LEVELS - 1)
    return np.asarray(matrix + matrix.T)


@cache
def _load_table(name: str) -> dict[str, Any]:
    try:
        with (files("unpoison.data") / f"{name}.npz").open("rb") as file, np.load(file, allow_pickle=False) as table:
            return {part: table[part] for part in table.files}
    except FileNotFoundError:
        raise InputError(
            f"there is no {name}.npz here to fit with; fit with the built-in encoder (-e lexical)"
        ) from None
