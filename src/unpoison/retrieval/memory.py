"""Retrievers in memory: BM25 over an inverted index, and exact search over a matrix of vectors.

BM25 is that of Robertson and Zaragoza (2009), in the variant of Lucene. Why not the library bm25s, which has the same
formula: its index cannot change. It keeps finished scores, which depend on all documents, so one that is added or
removed means indexing anew. Tried once with bm25s 0.3.16 on numpy, 100,000
made-up documents of 80 words with Zipf's frequencies, 50 queries of 8 words: adding one takes 15 s there and 0.2 ms
here; the process grows by 175 MB there and by 51 MB here; a query takes 2.2 ms there and 12 ms here. In single
precision its scores are off by up to 9e-7, and the ten best of 5 of the 50 queries are others or in another order.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.cosine import best_first
from unpoison.core.passages import Passage, Query, Vector, as_query
from unpoison.errors import InputError, clip
from unpoison.models.protocols import Encoder
from unpoison.retrieval import base
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.text.tokens import ENGLISH_33, words
from unpoison.utils.checks import at_least, within
from unpoison.utils.processes import CopyableLock

__all__ = ["BM25Index", "BM25Retriever", "DenseRetriever", "english_words", "nearest"]

Tokenize = Callable[[str], Sequence[str]]


class BM25Index:
    """An inverted index with BM25 scores, by the statistics of its documents.

    Args:
        k1: Saturation of the term frequency.
        b: Strength of the length normalisation, in [0, 1].

    Memory: 8 bytes per distinct token of each document.
    """

    def __init__(self, *, k1: float = 1.5, b: float = 0.75) -> None:
        self.k1 = at_least("k1", k1, 0.0, whole=False)
        self.b = within("b", b, 0.0, 1.0)
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._lengths = array("I")
        self._removed = 0

    def add(self, tokens: Sequence[str]) -> None:
        """Add one document. O(its tokens)."""
        document = len(self._lengths)
        for token, count in Counter(tokens).items():
            documents, counts = self._postings.setdefault(token, (array("I"), array("I")))
            documents.append(document)
            counts.append(count)
        self._lengths.append(len(tokens))

    def remove(self, document: int, tokens: Sequence[str]) -> None:
        """Remove a document, given its number and tokens; the others keep their numbers."""
        for token in set(tokens):
            documents, counts = self._postings[token]
            position = bisect_left(documents, document)
            del documents[position], counts[position]
            if not documents:
                del self._postings[token]
        self._lengths[document] = 0
        self._removed += 1

    def scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """The scores of all documents, shape (n,).

        For each token of the query, repetitions included, idf * tf / (tf + k1 * (1 - b + b * length / mean length))
        with idf = ln(1 + (n - df + 0.5) / (df + 0.5)).

        Complexity: O(n + postings of the query's tokens).
        """
        lengths = np.array(self._lengths, np.float64)
        scores, count = np.zeros(lengths.size), len(self)
        if not count:
            return scores
        saturation = self.k1 * (1 - self.b + self.b * lengths / max(lengths.sum() / count, 1.0))
        for token, repeated in Counter(query).items():
            documents, counts = (np.array(values, np.intp) for values in self._postings.get(token, ((), ())))
            rarity = log(1 + (count - documents.size + 0.5) / (documents.size + 0.5))
            scores[documents] += repeated * rarity * counts / (counts + saturation[documents])
        return scores

    def __len__(self) -> int:
        return len(self._lengths) - self._removed


def english_words(text: str) -> list[str]:
    """Tokens as in bm25s and GRADA: lower-cased words of two characters or more, without 33 English stop words."""
    return words(text, ENGLISH_33)


class BM25Retriever(base.Retriever):
    """Retrieves by BM25, in memory, without an encoder.

    Args:
        passages: Strings, dicts, framework documents or `Passage`.
        tokenize: Splits a text into tokens. The default splits at spaces; for scripts without them, pass
            another, such as `text.tokens.stems`.
        k1: Saturation of the term frequency.
        b: Strength of the length normalisation, in [0, 1].
        sources: Multiplies the score by the trust in the passage's source (`retrieval.base`).

    Raises:
        InputError: An unusable passage, or a duplicate id.
        OptionError: An option out of its range.
    """

    def __init__(
        self,
        passages: Iterable[Any] = (),
        *,
        tokenize: Tokenize = english_words,
        k1: float = 1.5,
        b: float = 0.75,
        sources: SourcesOption = None,
    ) -> None:
        self.sources = Sources.of(sources)
        self._tokenize, self._lock = tokenize, CopyableLock()
        self._index, self._collection = BM25Index(k1=k1, b=b), base.Collection()
        self.add(passages)

    def add(self, passages: Iterable[Any]) -> None:
        """Add passages, all or none. A passage without an id gets its position, from 0.

        Raises:
            InputError: An unusable passage, or a duplicate id.
        """
        with self._lock:
            new = self._collection.prepare(passages)
            documents = [self._tokenize(passage.text) for passage in new]
            for tokens in documents:
                self._index.add(tokens)
            self._collection.extend(new)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove passages; return their number. Unknown ids are ignored. O(their tokens)."""
        with self._lock:
            taken = self._collection.remove(ids)
            for position, passage in taken.items():
                self._index.remove(position, self._tokenize(passage.text))
            return len(taken)

    def retrieve(self, query: str | Query, k: int) -> tuple[Passage, ...]:
        """The best `k` passages that share a token with the query; ties go to the one added first."""
        question, count = as_query(query).text, base.check_count(k)
        tokens = self._tokenize(question)
        with self._lock:
            scores = self._index.scores(tokens)
            matches = np.flatnonzero(scores)
            best = matches[best_first(scores[matches], base.depth(self.sources, count))]
            found = tuple(replace(self._collection[i], score=float(scores[i])) for i in best)
        return base.by_trust(self.sources, question, found, count)

    def __len__(self) -> int:
        return len(self._collection)

    def __repr__(self) -> str:
        return f"BM25Retriever({len(self):,} passages)"


Matrix = NDArray[np.float32]

BLOCK_CELLS = 2**22
"""Numbers per block in double precision: 32 MB."""


class DenseRetriever(base.VectorRetriever):
    """Retrieves by cosine similarity of vectors; ties go to the passage added first.

    An encoder whose similarity is "dot" (Contriever, DPR) is ranked by the dot product, its vectors as it makes them.

    In memory and exact. Up to some 100,000 passages this is as fast as a vector database. Searching takes O(n d) time
    and, besides the vectors themselves (4 n d bytes), O(n) memory. The embeddings that come back have
    length 1, or with "dot" the encoder's.

    Args:
        encoder: The encoder of passages and queries, or its string, such as "minilm".
        passages: Strings, dicts, framework documents or `Passage`. What brings its embedding is not
            encoded.
        sources: Multiplies the score by the trust in the passage's source (`retrieval.base`).

    Raises:
        InputError: An unusable passage, a duplicate id, or embeddings of different dimensions.
        OptionError: The encoder's vectors are valid within one call only.
        ModelError: The encoder failed.
    """

    def __init__(self, encoder: Encoder | str, passages: Iterable[Any] = (), *, sources: SourcesOption = None) -> None:
        self.sources = Sources.of(sources)
        self.encoder = base.check_encoder(encoder, dot=True)
        self._dot = getattr(self.encoder, "similarity", "cosine") == "dot"
        self._state: tuple[base.Collection, Matrix] = base.Collection(), np.zeros((0, 0), np.float32)
        self._lock = CopyableLock()
        self.add(passages)

    def add(self, passages: Iterable[Any]) -> None:
        """Add passages, all or none. Each call copies the matrix, so add many at once.

        A passage without an id gets its position, from 0.

        Raises:
            InputError: An unusable passage, a duplicate id, or an embedding of another dimension.
            ModelError: The encoder failed.
        """
        with self._lock:
            collection, matrix = self._state
            new = collection.prepare(passages)
            if not new:
                return
            vectors = base.vectors_of(new, self.encoder, matrix.shape[1] if len(self) else None)
            rows = vectors if self._dot else base.unit_rows(vectors)
            matrix = np.concatenate([matrix, rows]) if len(self) else rows
            matrix.setflags(write=False)
            collection.extend(replace(passage, embedding=None) for passage in new)
            self._state = collection, matrix  # last, so that concurrent searches see consistent rows

    def remove(self, ids: Iterable[str]) -> int:
        """Remove passages; return their number. Unknown ids are ignored. Copies the matrix."""
        with self._lock:
            collection, matrix = self._state
            rest, positions = collection.without(ids)
            rows = np.delete(matrix, positions, axis=0)
            rows.setflags(write=False)
            self._state = rest, rows
            return len(positions)

    def _nearest(self, vector: Vector, count: int) -> tuple[Passage, ...]:
        collection, matrix = self._state
        if not len(matrix) or not count:
            return ()
        if vector.size != matrix.shape[1]:
            raise InputError(
                f"the query's embedding has {vector.size} dimensions and the index {matrix.shape[1]}; "
                f"encode the query with the encoder {clip(self.encoder.name)}"
            )
        if self._dot:
            positions, scores = nearest(matrix, vector, count, float(np.linalg.norm(matrix, axis=1).max()))
        else:
            positions, scores = nearest(matrix, base.unit_rows(vector[None])[0], count)
            scores = scores.clip(-1.0, 1.0)
        return tuple(
            replace(collection[i], score=score, embedding=matrix[i])
            for i, score in zip(positions.tolist(), scores.tolist())
        )

    def __len__(self) -> int:
        return len(self._state[1])

    def __repr__(self) -> str:
        return f"DenseRetriever({len(self):,} passages, encoder={self.encoder.name!r})"


def nearest(
    matrix: Matrix, vector: Vector, count: int, longest: float = 1.0
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows with the largest dot product with a vector, best first; ties go to the lower row.

    One pass in single precision finds all rows that can be among the best whatever the rounding; only these are
    compared in double precision. So the result is that of comparing all of them so.

    Args:
        matrix: Shape (n, d).
        vector: Shape (d,).
        count: Number of rows, at least 1.
        longest: An upper bound of the rows' lengths.

    Returns:
        Row numbers and products, each shape (min(count, n),). O(n d) time.
    """
    rough = matrix @ vector
    near = np.arange(rough.size)
    if count < rough.size:
        rounding = (vector.size + 4) * float(np.finfo(np.float32).eps)  # Higham, 2002, Section 3.1
        doubt = 2 * rounding * longest * float(np.linalg.norm(vector))
        near = np.flatnonzero(rough >= np.partition(rough, rough.size - count)[rough.size - count] - doubt)
    exact = np.empty(near.size)
    step = max(1, BLOCK_CELLS // vector.size)
    for start in range(0, near.size, step):
        exact[start : start + step] = matrix[near[start : start + step]].astype(np.float64) @ vector.astype(np.float64)
    best = best_first(exact, count)
    return near[best], exact[best]
