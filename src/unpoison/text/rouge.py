"""ROUGE-L of all pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from unpoison.text.tokens import stems

__all__ = ["rouge_l"]

SURROGATES = range(0xD800, 0xE000)
CODE_POINTS = 0x110000 - len(SURROGATES)
"""The number of characters that can represent stems."""


def rouge_l(texts: Sequence[str], stems: Callable[[str], list[str]] = stems) -> NDArray[np.float64]:
    """ROUGE-L F1 of every pair of texts (Lin, 2004), on stems as the `rouge-score` package with its stemmer.

    F1 = 2 * LCS(a, b) / (|a| + |b|), LCS being the length of the longest common subsequence of stems.

    `rouge-score` stems with NLTK's extensions of Porter's algorithm. The two differ in a few words ("uses" is not "use"
    here), which moves about 1 pair in 1,000 across TrustRAG's threshold of 0.25; `nltk_stems` gives NLTK's.

    Args:
        texts: k texts.
        stems: Splits a text into stems.

    Returns:
        Shape (k, k), in [0, 1], symmetric. The diagonal is 1; a text without tokens has 0 everywhere, on the diagonal
        too.

    Complexity: O(k^2 n^2 / 64) time for n tokens per text (bit-parallel), O(k^2) memory.
    """
    tokens = [stems(text) for text in texts]
    lengths = np.array([len(sequence) for sequence in tokens], np.float64)
    # A stem of only one text is in no common subsequence: it counts in the length and need not be compared.
    holders = Counter(stem for sequence in tokens for stem in set(sequence))
    shared = {stem: number for number, stem in enumerate(stem for stem, count in holders.items() if count > 1)}
    numbered = [[shared[stem] for stem in sequence if stem in shared] for sequence in tokens]
    sequences: Sequence[str] | Sequence[list[int]] = numbered
    if len(shared) <= CODE_POINTS:
        sequences = ["".join(map(_character, sequence)) for sequence in numbered]
    common = cdist(sequences, sequences, scorer=LCSseq.similarity, dtype=np.int32).astype(np.float64)
    totals = lengths[:, None] + lengths
    scores = np.divide(2 * common, totals, out=np.zeros_like(common), where=totals > 0)
    np.fill_diagonal(scores, lengths > 0)
    return scores


def _character(number: int) -> str:
    """The character that represents a stem; surrogates are skipped."""
    return chr(number if number < SURROGATES.start else number + len(SURROGATES))
