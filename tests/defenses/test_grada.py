from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from model_doubles import FakeCrossEncoder
from ranges import assert_range
from unpoison import Grada, Passage
from unpoison.errors import OptionError
from unpoison.models import FakeEncoder

QUERY = "capital france"
PASSAGES = [
    "paris capital france",
    "paris capital france city",
    "lyon capital france query words",
    "berlin wall history",
]


def test_the_specs_worked_example_without_the_query_penalty() -> None:
    screening = Grada("bm25", keep=4).screen(QUERY, PASSAGES)
    weights = screening.evidence["weights"]
    assert weights[0, 1] == pytest.approx(0.345218, abs=1e-6)
    assert weights[0, 2] == weights[1, 2] == pytest.approx(0.230146, abs=1e-6)
    scores = np.array([v.score for v in screening.verdicts])
    assert (scores / scores.sum()).round(4).tolist() == [0.3376, 0.3376, 0.2772, 0.0476]


def test_the_specs_worked_example_with_it() -> None:
    screening = Grada("hrsim", keep=4).screen(QUERY, PASSAGES)
    assert screening.evidence["query_similarity"][:3] == pytest.approx([0.230146] * 3, abs=1e-6)
    assert screening.evidence["weights"][0, 1] == pytest.approx(0.161102, abs=1e-6)
    scores = np.array([v.score for v in screening.verdicts])
    assert (scores / scores.sum()).round(4).tolist() == [0.3805, 0.3805, 0.1914, 0.0476]


def test_repeated_words_count_repeatedly_in_one_direction_only() -> None:
    once, twice = (
        Grada().screen("paris", [text, "paris"]).evidence["query_similarity"][0] for text in ("paris", "paris paris")
    )
    assert twice == pytest.approx(2 * once) == pytest.approx(2 * 0.115073, abs=1e-6)


@pytest.mark.parametrize("count", [0, 1, 4, 5])
def test_up_to_keep_passages_are_only_reordered(count: int) -> None:
    given = [*PASSAGES, "paris capital france again"][:count]
    assert Grada(keep=5).screen(QUERY, given).dropped == ()


def test_ties_go_to_the_better_retrieval_rank() -> None:
    given = ["same words here", "same words here", "same words here", "same words here"]
    assert Grada(keep=2, alpha=0).screen("unrelated", given).kept_indices == (0, 1)


@pytest.mark.parametrize("start", ["uniform", "query"])
def test_a_graph_without_edges_keeps_retrieval_order_and_says_so(start: str) -> None:
    given = ["alpha beta", "gamma delta", "paris capital", "eta theta"]
    screening = Grada(keep=3, start=start).screen("paris capital", given)
    assert screening.kept_indices == (0, 1, 2)
    assert "retrieval order was kept" in screening.evidence.notes[0]


def test_a_reason_says_who_is_past_the_kept() -> None:
    reasons = [verdict.reason for verdict in Grada("bm25", keep=2).screen(QUERY, PASSAGES).verdicts]
    assert [reason.code.endswith("_past") for reason in reasons] == [False, False, True, True]


def test_aliases_of_the_paper() -> None:
    assert Grada("d2dsim-bm25").variant == "bm25"
    assert Grada("d2dsim-ebd").variant == "ebd"
    with pytest.raises(OptionError, match="variant"):
        Grada("d2dsim")  # type: ignore[arg-type]


def test_ebd_uses_given_embeddings_clamped_at_zero() -> None:
    vectors = [[1, 0], [0.9, 0.1], [-1, 0], [0.8, 0.2]]
    given = [Passage(t, embedding=np.array(v)) for t, v in zip(PASSAGES, vectors, strict=True)]
    screening = Grada("ebd", keep=2, encoder=FakeEncoder({})).screen(QUERY, given)
    assert screening.evidence["weights"].min() == 0
    assert 2 in screening.dropped_indices


def test_hrsim_with_an_encoder_asks_for_the_query_only_where_passages_bring_their_vectors() -> None:
    encoder = FakeEncoder({QUERY: [1.0, 0.0]})
    given = [Passage(t, embedding=np.array([1.0, i / 4])) for i, t in enumerate(PASSAGES)]
    Grada("hrsim", similarity="encoder", encoder=encoder).screen(QUERY, given)
    assert encoder.calls == [(QUERY,)]


def test_hrsim_with_an_encoder_is_the_papers_equation_with_nothing_below_zero() -> None:
    """w_ij = max(sim(i, j) - alpha (sim(i, q) + sim(j, q)), 0), where a negative similarity counts as 0."""
    vectors = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    given = [Passage(t, embedding=v) for t, v in zip(PASSAGES, vectors, strict=True)]
    encoder = FakeEncoder({QUERY: [0.6, -0.8, 0.0]})
    evidence = Grada("hrsim", similarity="encoder", encoder=encoder).screen(QUERY, given).evidence
    to_query = np.maximum(vectors @ [0.6, -0.8, 0.0], 0)
    assert evidence["query_similarity"] == pytest.approx(to_query)
    between = np.maximum(vectors @ vectors.T, 0)
    expected = np.maximum(between - 0.4 * (to_query[:, None] + to_query), 0) * (1 - np.eye(4))
    assert evidence["weights"] == pytest.approx(expected)
    assert evidence["weights"][0, 1] == pytest.approx(0.8 - 0.4 * 0.6)


def test_a_cross_encoders_scores_below_zero_count_as_zero() -> None:
    """A reranker's logits: without the clamp the penalty for being near the query would be a bonus."""
    scorer = FakeCrossEncoder(lambda left, right: -3.0 if "berlin" in left + right else 0.5)
    evidence = Grada("hrsim", similarity="cross-encoder", cross_encoder=scorer).screen(QUERY, PASSAGES).evidence
    assert evidence["query_similarity"].tolist() == [0.5, 0.5, 0.5, 0.0]
    assert evidence["similarity"][3].tolist() == [0.0] * 4
    assert evidence["weights"][0, 1] == pytest.approx(0.5 - 0.4 * (0.5 + 0.5))


def test_start_at_the_query_is_a_teleport_in_proportion_to_similarity() -> None:
    plain, started = (Grada("bm25", start=start).screen(QUERY, PASSAGES) for start in ("uniform", "query"))
    # Nobody is tied to the last passage: its score is what it is teleported to, and it shares no word with the query.
    assert plain.verdicts[3].score == pytest.approx(0.15 / 4)
    assert started.verdicts[3].score == pytest.approx(0.0)
    nobody = Grada("bm25", start="query").screen("unrelated", PASSAGES)
    assert [v.score for v in nobody.verdicts] == pytest.approx([v.score for v in plain.verdicts])


def test_without_edges_all_have_the_same_share() -> None:
    screening = Grada().screen("q", ["alpha beta", "gamma delta", "eta theta", "iota kappa"])
    assert [v.score for v in screening.verdicts] == [0.25] * 4


def test_hrsim_with_a_cross_encoder_averages_both_directions() -> None:
    scorer = FakeCrossEncoder(lambda left, right: 1.0 if left == PASSAGES[0] and right == PASSAGES[1] else 0.0)
    screening = Grada("hrsim", similarity="cross-encoder", cross_encoder=scorer).screen(QUERY, PASSAGES)
    assert screening.evidence["weights"][0, 1] == screening.evidence["weights"][1, 0] == 0.5


CLEAN = [
    "the sharks play hockey at the sap center arena in san jose",
    "san jose sharks hockey arena sap center opened downtown",
    "the arena called sap center hosts sharks hockey games",
    "hockey fans reach the sap center arena by light rail",
    "the sharks entered the hockey league and the sap center arena later",
    "downtown san jose has an arena where hockey is played",
]
COPY = "the sharks moved their hockey home to the stadium in santa clara near the bay"


def test_what_rounding_leaves_of_zero_is_no_tie() -> None:
    # Two shared words less 0.4 of five query words: exactly 0, were it not for the last bit.
    query, others = "alpha beta gamma delta epsilon", "one other text"
    screening = Grada().screen(query, ["alpha beta one two", "gamma delta epsilon one two", others])
    assert not screening.evidence["weights"][1].any()
    assert screening.verdicts[1].score == pytest.approx(0.05)


@pytest.mark.parametrize("by", [{}, {"variant": "bm25"}, {"variant": "ebd"}, {"similarity": "encoder"}])
def test_an_encoder_that_compares_nothing_is_named_in_the_notes(by: dict[str, Any]) -> None:
    vectors = FakeEncoder()
    noted = [
        note
        for encoder in (None, "lexical", vectors)
        for note in Grada(encoder=encoder, **by).screen("q", ["a b", "a b c", "a d"]).evidence.notes
    ]
    idle = by.get("variant") != "ebd" and "similarity" not in by
    assert [note for note in noted if "the encoder" in note] == (
        ["the encoder is not used: BM25 compares the passages, unless variant=ebd or similarity=encoder"]
        if idle
        else []
    )


def test_options_have_their_range() -> None:
    assert_range(Grada, "alpha", 0.0, 1e6)
    assert_range(Grada, "damping", 0.0, 1.0, open_end=True)
    assert_range(Grada, "keep", 1)


def test_a_reason_names_the_strongest_tie_and_a_passage_without_one() -> None:
    screening = Grada("bm25", keep=2).screen(QUERY, PASSAGES)
    first, _, third, last = (str(verdict.reason) for verdict in screening.verdicts)
    assert "place 1 of 4" in first and "passage 1" in first
    assert "place 3 of 4" in third and "past the 2 kept" in third and "passage 0" in third
    assert "place 4 of 4" in last and "no edge to any other passage" in last
    assert screening.evidence.graph == "weights"


def test_the_defaults_are_the_papers() -> None:
    made = Grada()
    assert (made.variant, made.alpha, made.damping, made.keep) == ("hrsim", 0.4, 0.85, 5)
    assert (made.start, made.similarity) == ("uniform", "bm25")
