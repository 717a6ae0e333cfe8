"""One character in one passage costs that passage its vector, and nobody else's (real vectors of MiniLM)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recorded import Case, Recorded, cases
from unpoison import Defense, Grada, Passage, Query, TrustRag
from unpoison.algorithms.cosine import cosine
from unpoison.errors import InputError

ENCODER = Recorded()
ODD = 2


def whole(case: Case) -> tuple[Query, list[Passage]]:
    passages = [*case.clean[:5], case.fronted[0]]
    vectors = ENCODER.encode([passage.reading for passage in passages])
    query = Query(case.question, ENCODER.encode([case.question])[0])
    return query, [replace(passage, embedding=vector) for passage, vector in zip(passages, vectors)]


def with_odd_character(passage: Passage) -> Passage:
    word = max(re.findall("[a-z]+", passage.text), key=len)
    odd = Passage(
        passage.text.replace(word, f"{word[:2]}\u200b{word[2:]}", 1), title=passage.title, embedding=passage.embedding
    )
    assert odd.hidden
    return odd


def attacked(case: Case) -> tuple[Query, list[Passage]]:
    query, passages = whole(case)
    return query, [with_odd_character(p) if i == ODD else p for i, p in enumerate(passages)]


@pytest.mark.parametrize("case", cases()[:6], ids=lambda case: case.id)
def test_the_others_are_compared_by_their_own_vectors(case: Case):
    others = [i for i in range(6) if i != ODD]
    before, after = (Grada("ebd").screen(*given).evidence["similarity"] for given in (whole(case), attacked(case)))
    np.testing.assert_allclose(after[np.ix_(others, others)], before[np.ix_(others, others)], atol=1e-6)
    assert np.abs(after[ODD, others] - before[ODD, others]).mean() < 0.25
    assert after[ODD, others].max() > 0


@pytest.mark.parametrize("defense", [Grada("ebd"), TrustRag(stages=1)], ids=lambda defense: defense.name)
def test_the_note_counts_that_one(defense: Defense):
    (note,) = [note for note in defense.screen(*attacked(cases()[0])).evidence.notes if "given embedding" in note]
    assert note == "1 given embedding is not used, for the texts hide something; they are compared by their words"


class ThreeDimensions:
    name = "three dimensions"

    def encode(self, texts: Sequence[str], /) -> Any:
        return np.array([[len(text), 1.0, text.count("a")] for text in texts], np.float32)


def test_vectors_of_another_size_do_not_cost_the_others_theirs():
    query, passages = attacked(cases()[0])
    similarity = Grada("ebd", encoder=ThreeDimensions()).screen(query, passages).evidence["similarity"]
    others = [i for i in range(6) if i != ODD]
    given = cosine(np.array([passages[i].embedding for i in others]))
    off_diagonal = ~np.eye(5, dtype=bool)
    np.testing.assert_allclose(similarity[np.ix_(others, others)][off_diagonal], given[off_diagonal], atol=1e-6)


def test_who_gives_no_vector_and_hides_nothing_made_a_mistake():
    query, passages = attacked(cases()[0])
    with pytest.raises(InputError, match="cannot add to them"):
        Grada("ebd").screen(query, [replace(passages[0], embedding=None), *passages[1:]])


def test_where_fewer_than_two_have_a_vector_all_are_encoded():
    query, passages = whole(cases()[0])
    hiding = [with_odd_character(p) for p in (passages[0], *passages[3:])]
    screening = Grada("ebd").screen(query, [*hiding, passages[1]])
    bare = [replace(p, embedding=None) for p in screening.passages]
    assert screening.kept_indices == Grada("ebd").screen(query.text, bare).kept_indices
