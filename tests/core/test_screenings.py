"""A screening is a verdict on every passage, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Evidence, Rival, Span, Verdict
from unpoison.errors import InputError

PASSAGES = (Passage("first"), Passage("second", title="T"), Passage("third"))


def decided(**options: object) -> Screening:
    given = {"kept": (2, 0), "scores": [0.5, -0.0, 1], "reasons": ["a", "b", "c"], **options}
    return Screening.decided("mine", Query("who?"), PASSAGES, **given)


def test_the_kept_stand_best_first_and_the_dropped_in_their_order() -> None:
    screening = decided()
    assert (screening.kept_indices, screening.dropped_indices) == ((2, 0), (1,))
    assert (screening.kept, screening.dropped) == ((PASSAGES[2], PASSAGES[0]), (PASSAGES[1],))
    assert screening.select(["x", "y", "z"]) == ["z", "x"]
    assert str(screening.verdicts[1].score) == "0.0"
    with pytest.raises(InputError, match="2 objects but 3 passages"):
        screening.select(["x", "y"])


@pytest.mark.parametrize(
    "verdicts",
    [
        (Verdict(0, True, 1.0, 0, "a"),),
        (Verdict(0, True, 1.0, 0, "a"), Verdict(2, False, 0.0, None, "b"), Verdict(1, False, 0.0, None, "c")),
        (Verdict(0, True, 1.0, 1, "a"), Verdict(1, True, 1.0, 2, "b"), Verdict(2, False, 0.0, None, "c")),
        (Verdict(0, True, 1.0, 0, "a"), Verdict(1, True, 1.0, 0, "b"), Verdict(2, False, 0.0, None, "c")),
    ],
)
def test_every_passage_has_one_verdict_and_every_kept_one_a_rank(verdicts: tuple[Verdict, ...]) -> None:
    with pytest.raises(ValueError, match=r"one verdict each|must have the ranks"):
        Screening("mine", "who?", PASSAGES, verdicts)


def test_a_span_ends_within_its_field() -> None:
    assert decided(spans={0: [Span(0, 5, 0.9, "x")]}).verdicts[0].spans[0].end == 5
    for position, span in ((0, Span(0, 6, 0.9, "x")), (1, Span(0, 2, 0.9, "x", field="title"))):
        with pytest.raises(ValueError, match=f"a span of passage {position} ends at {span.end}"):
            decided(spans={position: [span]})


def test_a_screening_comes_back_from_its_row_and_from_its_summary() -> None:
    screening = decided(evidence=Evidence({"threshold": np.array(0.5), "graph": np.eye(3)}, ("a note",)))
    whole = Screening.from_dict(screening.to_dict())
    assert whole == screening
    assert whole.evidence.notes == ("a note",)
    assert np.array_equal(whole.evidence["graph"], np.eye(3))
    short = Screening.from_dict(
        {**screening.summary(), "query": "who?", "passages": [passage.to_dict() for passage in PASSAGES]}
    )
    assert short == screening
    assert (float(short.evidence["threshold"]), "graph" in short.evidence) == (0.5, False)


@pytest.mark.parametrize("data", [{}, {"defense": "x"}, None, []])
def test_what_is_no_screening_is_refused(data: object) -> None:
    with pytest.raises(InputError, match="not a saved screening"):
        Screening.from_dict(data)


def test_what_is_contested_or_claimed_stands_among_the_passages() -> None:
    contest, claim = Contest((Rival("a", (0,), 1), Rival("b", (2,), 1))), Claim("a", 1.0, (), (2,))
    screening = decided(contested=[contest], claims=[claim])
    assert (screening.contested, screening.claims) == ((contest,), (claim,))
    assert Screening.from_dict(screening.to_dict()) == screening
    with pytest.raises(ValueError, match="passage 3 is contested, but there are 3"):
        decided(contested=[Contest((Rival("a", (0,), 1), Rival("b", (3,), 1)))])
    with pytest.raises(ValueError, match="passage 3 makes a claim, but there are 3"):
        decided(claims=[Claim("a", 1.0, (), (0, 3))])


def test_what_is_kept_is_read_without_its_spans() -> None:
    screening = decided(
        spans={0: [Span(0, 2, 0.9, "x")], 1: [Span(0, 3, 0.9, "x")], 2: [Span(0, 1, 1, "f", flagged=True)]}
    )
    assert screening.redacted_indices == (0,)
    assert screening.texts == ("third", "[removed] rst")
    assert screening.read[0] is PASSAGES[2]
    assert screening.notes == screening.evidence.notes == ()
    assert repr(screening) == "Screening('mine', 'who?', kept [2, 0] of 3 passages)"
    assert screening.explain().startswith("mine: kept 2 of 3 passages")
    assert screening._repr_html_().startswith("<table>")
    assert set(screening.summary()) == {"defense", "kept", "texts", "verdicts"}
