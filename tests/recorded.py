"""Recorded vectors: all-MiniLM-L6-v2 on a part of the built-in sample; the core meets real geometry without torch.

`PYTHONPATH=src python tests/recorded.py` records them anew; it needs the extra [offline]. Numbers only: the texts are
those of the sample, and are found by a digest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison import Passage

VECTORS = Path(__file__).parent / "data" / "minilm.npz"
SAMPLE = Path(__file__).parents[1] / "src" / "unpoison" / "data" / "sample.jsonl"
QUESTIONS = 24


class Case(NamedTuple):
    """One question of the sample: its passages without poison, best first, the places of the gold ones, its poisons.

    `fronted` are the first two poisons with the question in front, as PoisonedRAG plants them.
    """

    id: str
    question: str
    clean: list[Passage]
    gold: list[int]
    poisons: list[Passage]
    fronted: list[Passage]


def cases() -> list[Case]:
    recorded_values = []
    for line in SAMPLE.read_text(encoding="utf-8").splitlines()[:QUESTIONS]:
        row = json.loads(line)
        clean = [p for p in row["passages"] if p["label"] != "poison"]
        poisons = [p for p in row["passages"] if p["label"] == "poison"]
        recorded_values.append(
            Case(
                row["id"],
                row["question"],
                [Passage(p["text"], title=p["title"]) for p in clean],
                [i for i, p in enumerate(clean) if p["label"] == "gold"],
                [Passage(p["text"], title=p["title"]) for p in poisons],
                [Passage(f"{row['question']}. {p['text']}") for p in poisons[:2]],
            )
        )
    return recorded_values


class Recorded:
    """The encoder that made the vectors, as far as it was asked."""

    name = "all-MiniLM-L6-v2"

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        table, vectors = _recorded()
        missing = [text for text in texts if _digest(text) not in table]
        if missing:
            raise KeyError(f"no vector was recorded for {missing[0][:80]!r}; see {Path(__file__).name}")
        rows = vectors[[table[_digest(text)] for text in texts]].astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


@cache
def _recorded() -> tuple[dict[int, int], NDArray[np.float16]]:
    with np.load(VECTORS, allow_pickle=False) as recorded_values:
        return {int(digest): i for i, digest in enumerate(recorded_values["digests"])}, recorded_values["vectors"]


def texts() -> list[str]:
    """What the recording covers, each text once."""
    recorded_values = []
    for case in cases():
        recorded_values += [case.question, *(p.reading for p in (*case.clean, *case.poisons, *case.fronted))]
    return list(dict.fromkeys(recorded_values))


def record() -> None:
    from unpoison.models import load_encoder

    all_texts = texts()
    vectors = np.asarray(load_encoder("minilm").encode(all_texts), np.float16)
    VECTORS.parent.mkdir(exist_ok=True)
    np.savez(VECTORS, digests=np.array([_digest(text) for text in all_texts], np.uint64), vectors=vectors)
    print(f"{len(all_texts)} vectors, {VECTORS.stat().st_size:,} bytes")


if __name__ == "__main__":
    record()
