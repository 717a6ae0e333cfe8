from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.algorithms.cosine import cosine
from unpoison.defenses.embedding import complete_vectors


@given(st.integers(2, 7), st.integers(1, 4), st.integers(1, 9), st.integers(0, 999))
def test_the_known_stay_to_the_last_bit(known_count: int, missing: int, width: int, seed: int):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(known_count, width)).astype(np.float32)
    known = rng.permutation([True] * known_count + [False] * missing)
    words = cosine(np.abs(rng.normal(size=(known_count + missing, 3))))
    rows = complete_vectors(vectors, known, words)
    assert rows.shape == (known_count + missing, width + missing)
    np.testing.assert_array_equal(rows[known][:, :width], vectors)
    assert not rows[known][:, width:].any()
    assert np.isfinite(rows).all()
    lengths = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(np.linalg.norm(rows[~known], axis=1), lengths.mean(), rtol=1e-4)


def test_the_new_stand_to_the_others_as_their_words_say():
    """Vectors that are the words' similarities stretched by a line come back by that line."""
    rng = np.random.default_rng(3)
    texts = rng.normal(size=(9, 30)) + 1.5
    known = np.array([True] * 8 + [False])
    vectors, words = texts[known].astype(np.float32), cosine(texts)
    similarity = cosine(complete_vectors(vectors, known, words))[8, :8]
    assert np.corrcoef(similarity, words[8, :8])[0, 1] > 0.95
    assert similarity == pytest.approx(words[8, :8], abs=0.1)
