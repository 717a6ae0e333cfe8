"""Who stands nearest is the same on every processor, copies and all."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from unpoison.scan.neighbours import by_vectors


def unit(copies: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(0).integers(-3, 4, (1600 // copies, 24))
    vectors = np.repeat(rows, copies, axis=0).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# Single precision, rounded: now and then a cosine lies on the border of two values, and a ninth neighbour is another.
@pytest.mark.parametrize(("copies", "same"), [(1, 0.9995), (40, 1.0)])
def test_the_nearest_do_not_depend_on_the_order_of_additions(copies: int, same: float) -> None:
    vectors = unit(copies)
    wanted = by_vectors(vectors)
    for order in range(2):
        there = np.random.default_rng(order).permutation(vectors.shape[1])
        assert (by_vectors(np.ascontiguousarray(vectors[:, there])) == wanted).mean() >= same
