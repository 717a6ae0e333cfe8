"""The vectors by which defenses compare passages: given embeddings, else those of the encoder."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import cosine
from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder, TwoTowers
from unpoison.models.requests import Flow, encode

__all__ = ["complete_vectors", "embed_passages"]

MIN_GIVEN = 2
"""Minimum number of given vectors for an estimate of another; with fewer, all texts are encoded."""


RIDGE = 0.05
"""Ridge penalty of the regression between the two similarities, for few pairs."""

SMALLEST = 0.1
"""Minimum share of the largest singular value; smaller directions of the given vectors are noise, as of near-copies."""


def has_refused_embedding(text: Query | Passage) -> bool:
    """Whether a text's embedding was rejected, because it was computed from other words than are screened."""
    return text.embedding is None and (text.hidden.any or bool(getattr(text, "cuts", ())))


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
    known = np.array([text.embedding is not None for text in texts])
    return complete_vectors(np.array(given, np.float32), known, cosine(encoded))


def _split_query(
    vectors: NDArray[np.float32], *, with_query: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    return (vectors[:-1], vectors[-1]) if with_query else (vectors, None)


def complete_vectors(
    given: NDArray[np.float32], known: NDArray[np.bool_], words: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Add rows for the unknown texts, with similarities that follow from their words.

    A linear regression over the pairs of known texts predicts vector similarity from word similarity. The determined
    part of a new row is in the span of the given ones; the rest, orthogonal to all of them, is in additional columns.
    So unknown texts cannot change a similarity between known ones.

    Args:
        given: The vectors of the known texts, shape (m, d), m of 2 or more.
        known: Which of the n texts are known, shape (n,).
        words: Word similarity of all texts, shape (n, n).

    Returns:
        Shape (n, d + u) for u unknown texts: the known rows unchanged, the others of the same average length.

    Complexity: O(m d min(m, d) + n^2 + u^3) time.
    """
    count, width = int((~known).sum()), given.shape[1]
    estimate = _from_words(cosine(given), words[np.ix_(known, known)], words)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    units = given / np.where(lengths > 0, lengths, 1)
    inside = estimate[np.ix_(~known, known)] @ np.linalg.pinv(units, rcond=SMALLEST).T
    inside /= np.maximum(1, np.linalg.norm(inside, axis=1, keepdims=True))
    among = estimate[np.ix_(~known, ~known)]
    np.fill_diagonal(among, 1.0)
    values, axes = np.linalg.eigh(among - inside @ inside.T)
    rows = np.hstack([inside, axes * np.sqrt(np.maximum(values, 0))])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    result = np.zeros((len(known), width + count), np.float32)
    result[np.ix_(known, np.arange(width))] = given
    result[~known] = rows * lengths.mean()
    return result


def _from_words(
    vectors: NDArray[np.float64], words: NDArray[np.float64], wanted: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Predict vector similarity from word similarity, by the pairs with both."""
    pairs = np.triu_indices(len(vectors), 1)
    x, y = words[pairs], vectors[pairs]
    slope = max(0.0, float((x - x.mean()) @ (y - y.mean()) / ((x - x.mean()) @ (x - x.mean()) + RIDGE)))
    estimate: NDArray[np.float64] = np.clip(y.mean() + slope * (wanted - x.mean()), -1.0, 1.0)
    return estimate
