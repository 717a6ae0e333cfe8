"""Rounding as another processor has it, on this one: vectors whose entries stand in another order.

A sum depends on the order of its terms in the last bits, and each processor has its own. What is the same for every
order of the entries does not hang on those bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.models.protocols import Encoder

ORDERS = range(1, 5)


class Reordered:
    """An encoder whose vectors have their entries in another order, with zeros between them."""

    def __init__(self, encoder: Encoder, order: int) -> None:
        self.encoder, self.order = encoder, order
        self.name, self.per_set = encoder.name, getattr(encoder, "per_set", False)

    def encode(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        vectors = np.asarray(self.encoder.encode(texts))
        wider = np.hstack([vectors, np.zeros((len(vectors), self.order), np.float32)])
        return wider[:, np.random.default_rng(self.order).permutation(wider.shape[1])]
