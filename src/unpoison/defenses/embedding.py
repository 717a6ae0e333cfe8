"""The vectors by which defenses compare passages: given embeddings, else those of the encoder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import cosine
from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder, TwoTowers
from unpoison.models.requests import Flow, encode

__all__ = ["embed_passages", "has_refused_embedding"]

MIN_GIVEN = 2
"""Minimum number of given vectors for an estimate of another; with fewer, all texts are encoded."""


def has_refused_embedding(text: Query | Passage) -> bool:
    """Whether a text's embedding was rejected, because it was computed from other words than are screened."""
    return text.embedding is None and (bool(text.hidden) or bool(getattr(text, "cuts", ())))


def embed_passages(
    query: Query, passages: tuple[Passage, ...], encoder: Encoder | None, *, with_query: bool = False
) -> Flow[tuple[NDArray[np.float32], NDArray[np.float32] | None]]:
    """The vectors of the passages, and of the query if requested; texts with an embedding are not encoded again.

    A rejected embedding of one text does not affect the others: if the encoder's vectors cannot be compared with the
    given ones (they are valid for one call only, or have other dimensions), its vector is estimated from its words.

    Returns:
        Shapes (k, d) and (d,) or None. Given vectors are not normalised; they are padded with zeros if others are
        estimated.

    Raises:
        InputError: Given embeddings and the encoder's have different dimensions, or the encoder's are valid for one
            call only.
    """
    texts: tuple[Query | Passage, ...] = (*passages, query) if with_query else passages
    missing = [text for text in texts if text.embedding is None]
    brought, all_refused = len(texts) - len(missing), all(map(has_refused_embedding, missing))
    if brought and missing and getattr(encoder, "per_set", False):
        if all_refused:
            return _split_query((yield from _estimate_missing(texts)), with_query=with_query)
        raise InputError(
            f"embeddings were given for {brought} of the texts and not for {len(missing)}, and the encoder "
            f"{clip(getattr(encoder, 'name', None))} cannot add to them; pass as encoder the one that made them, or "
            "give the query and all passages theirs"
        )
    vectors = yield from _encode_missing(texts, encoder, with_query=with_query)
    sizes = {vector.size for vector in vectors}
    if len(sizes) > 1 and all_refused:
        return _split_query((yield from _estimate_missing(texts)), with_query=with_query)
    if len(sizes) > 1:
        name = clip(getattr(encoder, "name", None))
        raise InputError(
            f"some embeddings were given and others made by the encoder {name}, and their dimensions differ: "
            f"{sorted(sizes)}; pass as encoder the one that made them, or give the query and all passages theirs"
        )
    return _split_query(np.array(vectors, np.float32).reshape(len(texts), max(sizes, default=1)), with_query=with_query)


def _encode_missing(
    texts: tuple[Query | Passage, ...], encoder: Encoder | None, *, with_query: bool
) -> Flow[list[NDArray[np.float32]]]:
    """A vector for each text: the given one, or the encoder's; for the question, its query encoder's."""
    apart = with_query and texts[-1].embedding is None and isinstance(encoder, TwoTowers)
    wanted = [text.reading for text in (texts[:-1] if apart else texts) if text.embedding is None]
    fresh = iter((yield from encode(wanted)) if wanted else ())
    vectors = [next(fresh) if text.embedding is None else text.embedding for text in (texts[:-1] if apart else texts)]
    return [*vectors, *(yield from encode([texts[-1].reading], "query", queries=True))] if apart else vectors


def _estimate_missing(texts: tuple[Query | Passage, ...]) -> Flow[NDArray[np.float32]]:
    """The given vectors, and estimates of the missing ones from the encoder's similarity of all texts."""
    encoded = yield from encode([text.reading for text in texts])
    given = [text.embedding for text in texts if text.embedding is not None]
    if len(given) < MIN_GIVEN:
        return encoded
    from unpoison.algorithms.missing_vectors import complete_vectors

    known = np.array([text.embedding is not None for text in texts])
    return complete_vectors(np.array(given, np.float32), known, cosine(encoded))


def _split_query(
    vectors: NDArray[np.float32], *, with_query: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    return (vectors[:-1], vectors[-1]) if with_query else (vectors, None)
