"""Embeddings that are made once and kept on disk, for benchmarks that are run again and again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.models.protocols import Encoder

CHUNK = 256
"""Texts between two saves: what a killed run has to do again."""


class Embeddings:
    """Vectors by text: one matrix and one list of text hashes per encoder.

    Args:
        encoder: Must give a text the same vector in any company (`per_set` unset).
        folder: Where the two files live.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.encoder = encoder
        folder.mkdir(parents=True, exist_ok=True)
        name = "".join(c if c.isalnum() else "-" for c in encoder.name)
        self._vectors_file, self._keys_file = folder / f"{name}.npy", folder / f"{name}.json"
        self._vectors: list[NDArray[np.float32]] = []
        self._places: dict[str, int] = {}
        if self._keys_file.exists() and self._vectors_file.exists():
            keys, vectors = json.loads(self._keys_file.read_text()), np.load(self._vectors_file)
            self._places = {key: i for i, key in enumerate(keys)}
            self._vectors = list(vectors[: len(keys)])

    def __getitem__(self, text: str) -> NDArray[np.float32]:
        return self._vectors[self._places[_key(text)]]

    def add(self, texts: Iterable[str], progress: Callable[[int, int], None]) -> None:
        """Encode the texts that are not there yet, alike lengths together, and save after every chunk."""
        wanted = {_key(text): text for text in texts}
        missing = sorted((key for key in wanted if key not in self._places), key=lambda key: (len(wanted[key]), key))
        for start in range(0, len(missing), CHUNK):
            keys = missing[start : start + CHUNK]
            self._vectors.extend(self.encoder.encode([wanted[key] for key in keys]))
            self._places.update({key: len(self._places) + i for i, key in enumerate(keys)})
            if (start // CHUNK) % 8 == 0 or start + CHUNK >= len(missing):
                self._save()
            progress(start + len(keys), len(missing))

    def _save(self) -> None:
        # The matrix first: a run killed in between leaves rows without a key, which are dropped when read.
        for path, write in (
            (self._vectors_file, lambda file: np.save(file, np.stack(self._vectors))),
            (self._keys_file, lambda file: file.write(json.dumps(list(self._places)).encode())),
        ):
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                write(file)
            part.replace(path)


def _key(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
