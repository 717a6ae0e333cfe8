"""Train and test kept apart by code: hashes of what may only be tested on, and of what shipped numbers were fitted on.

A text is known by the first 64 bits of the SHA-256 of its words, so that capitals, punctuation and white space make no
other text of it. Cutting or rewriting a text does: the lists keep whole texts out, which is what goes wrong when a file
is read by mistake.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import InputError

__all__ = [
    "Overlap",
    "check_disjoint",
    "fitted_hashes",
    "load_hashes",
    "refuse_test_texts",
    "save_hashes",
    "test_hashes",
    "text_hashes",
]

Hashes = NDArray[np.uint64]

FITTED = Path(__file__).with_name("fitted-on.npz")

_WORD = re.compile(r"\w+")


def text_hashes(texts: Iterable[str]) -> Hashes:
    """The hashes of texts, each once, sorted."""
    return np.unique(np.fromiter((_hash(text) for text in texts), np.uint64))


def _hash(text: str) -> int:
    words = " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))
    return int.from_bytes(hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def save_hashes(path: Path, sets: Mapping[str, Hashes]) -> None:
    """Write sets of hashes: sorted, as differences, the bytes of one place together, which packs best."""
    rows = {name: np.diff(np.sort(hashes), prepend=np.uint64(0)).astype(">u8") for name, hashes in sets.items()}
    planes: dict[str, Any] = {name: row.view(np.uint8).reshape(-1, 8).T.copy() for name, row in rows.items()}
    np.savez_compressed(path, **planes)


def load_hashes(content: bytes) -> dict[str, Hashes]:
    """The sets that `save_hashes` wrote."""
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        planes = {name: np.ascontiguousarray(arrays[name].T) for name in arrays.files}
    return {name: np.cumsum(rows.view(">u8").ravel().astype(np.uint64)) for name, rows in planes.items()}


def test_hashes() -> dict[str, Hashes]:
    """The texts that are only ever tested on, by the family that their authors published."""
    return load_hashes(Path(__file__).with_name("test-only.npz").read_bytes())


def fitted_hashes(path: Path = FITTED) -> dict[str, Hashes]:
    """What each shipped file of numbers was fitted on, by the file's name."""
    return load_hashes(path.read_bytes())


def refuse_test_texts(texts: Iterable[str]) -> None:
    """See that nothing that is about to be fitted on is a test text; every training script calls it first.

    Raises:
        InputError: Something is; the message has the number and the family.
    """
    about = text_hashes(texts)
    for family, hashes in test_hashes().items():
        if count := int(np.isin(about, hashes).sum()):
            raise InputError(
                f"{count:,} of the texts to fit on are test texts ({family}), on which nothing is ever fitted; "
                "leave them out"
            )


class Overlap(NamedTuple):
    """How many texts one shipped file and one test family share.

    Attributes:
        fitted: The shipped file.
        texts: How many texts it was fitted on.
        tested: How many test texts there are.
        shared: How many are both.
    """

    fitted: str
    texts: int
    tested: int
    shared: int


def check_disjoint(path: Path = FITTED) -> list[Overlap]:
    """Compare what every shipped file of numbers was fitted on with all texts that are only tested on."""
    tested = np.unique(np.concatenate(list(test_hashes().values())))
    return [
        Overlap(name, len(hashes), len(tested), int(np.isin(hashes, tested).sum()))
        for name, hashes in fitted_hashes(path).items()
    ]
