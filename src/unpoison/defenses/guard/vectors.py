"""The vectors that Guard compares passages by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.defenses.embedding import embedded, refused
from unpoison.models.protocols import Encoder
from unpoison.requests import Flow, encode
from unpoison.types import Passage, Query

__all__ = ["Vectors", "vectors_of"]

MOST_NAMED = 10
"""Passages that a note names."""


class Vectors(NamedTuple):
    """What passages and a query are compared by.

    Attributes:
        passages: One row each, shape (k, d).
        query: Shape (d,).
        kind: Which coefficients suit them: `lexical` or `minilm`.
        notes: That given ones could not be used.
    """

    passages: NDArray[np.float32]
    query: NDArray[np.float32]
    kind: str
    notes: tuple[str, ...]


def vectors_of(query: Query, passages: tuple[Passage, ...], encoder: Encoder | None) -> Flow[Vectors]:
    """Those that came with the passages and the query, or else the encoder's.

    Vectors of the built-in encoder only compare within one call, so it cannot add to what is given, but for texts
    whose own vectors were refused.
    """
    given = [passage.embedding is not None for passage in passages]
    whole = query.embedding is not None and any(given)
    if not getattr(encoder, "per_set", False) or (whole and all(g or refused(p) for g, p in zip(given, passages))):
        vectors, target = yield from embedded(query, passages, encoder, with_query=True)
        assert target is not None  # noqa: S101  it was asked for
        cut = [i for i, passage in enumerate(passages) if passage.cuts and any(given)]
        note = f"given embeddings are not used for what is cut, of passage {', '.join(map(str, cut[:MOST_NAMED]))}"
        return Vectors(vectors, target, "minilm", (note,) if cut else ())
    note = "given embeddings are not used: the query or a passage has none, and the encoder cannot add to them"
    encoded = yield from encode([*(passage.reading for passage in passages), query.reading])
    return Vectors(encoded[:-1], encoded[-1], "lexical", (note,) if any(given) else ())
