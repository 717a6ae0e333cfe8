from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unpoison.algorithms.concentration import top_terms

token_lists = st.lists(st.lists(st.sampled_from(["ab", "cd", "ef", "gh"]), max_size=8), max_size=6)

# The words, in no order, that the five passages of RAGDefender's Figure 6 hold besides stop words.
CAPITALS = [
    line.split()
    for line in (
        "capital city city coast france marseille mediterranean port renowned vibrant",
        "capital european france hosts important institutions serves strasbourg",
        "capital city france known la recognized rose toulouse ville",
        "beautiful capital city coastal france functions nice",
        "art celebrated fashion france gastronomy heart iconic influential landmarks paris role serves",
    )
]


def test_capital_of_france() -> None:
    assert top_terms(CAPITALS, 4) == ["city", "france", "capital", "serves"]


@given(token_lists, st.integers(0, 6), st.randoms(use_true_random=False))
def test_top_terms_do_not_depend_on_any_order(documents, count, random) -> None:
    expected = top_terms(documents, count)
    assert len(expected) == min(count, len({token for document in documents for token in document}))
    shuffled = [random.sample(document, len(document)) for document in documents]
    random.shuffle(shuffled)
    assert top_terms(shuffled, count) == expected
