"""The gate before an index: what goes in, what does not, and that nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest

from scan.corpora import honest, planted
from unpoison.errors import InputError, OptionError, StoreError
from unpoison.retrieval import BM25Retriever
from unpoison.scan import Ingest


@pytest.fixture
def store() -> BM25Retriever:
    return BM25Retriever(honest(60)[:50])


def test_honest_documents_go_in_and_planted_ones_do_not(store: BM25Retriever) -> None:
    added = Ingest(store).add([*honest()[50:], *planted()])
    assert [d.id for d in added.accepted] == [d["id"] for d in honest()[50:]]
    assert len(store) == 60
    assert {d.id for d in (*added.quarantined, *added.rejected)} == {f"bad-{i}" for i in range(5)}
    assert [one.document.id for one in added.decisions] == [d["id"] for d in [*honest()[50:], *planted()]]


def test_one_planted_document_alone_is_not_accepted(store: BM25Retriever) -> None:
    assert Ingest(store).check(planted()[:1]).decisions[0].decision != "accept"
    assert len(store) == 50


def test_those_in_question_go_to_the_quarantine(store: BM25Retriever) -> None:
    held: list[Any] = []
    added = Ingest(store, quarantine=held.append, reject=1.0).add(planted())
    assert [one.document.id for one in held] == [d.id for d in added.quarantined] != []
    aside = BM25Retriever()
    Ingest(store, quarantine=aside, reject=1.0).add(planted())
    assert len(aside) == len(added.quarantined)


def test_a_document_that_is_in_the_index_is_not_its_own_neighbour(store: BM25Retriever) -> None:
    (one,) = Ingest(store).check([honest()[3]]).decisions
    assert one.decision == "accept"
    assert "page-3" not in one.finding.neighbours
    (changed,) = Ingest(store).check([{**honest()[3], "text": honest()[3]["text"] + " It has a pier."}]).decisions
    assert "page-3 (indexed)" in f"{changed.finding.neighbours} {changed.finding.reasons}"


def test_a_store_that_goes_away_is_said_and_nothing_is_added() -> None:
    class Gone(BM25Retriever):
        def retrieve(self, query: Any, k: int) -> Any:
            raise StoreError("the store cannot be reached; see whether it runs")

    store = Gone(honest(3))
    with pytest.raises(StoreError, match="cannot be reached"):
        Ingest(store).add(honest()[5:6])
    assert len(store) == 3


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(OptionError, match="no index"):
        Ingest().add(honest(1))
    with pytest.raises(OptionError, match="at least threshold"):
        Ingest(threshold=0.9, reject=0.5)
    with pytest.raises(InputError, match="no text"):
        Ingest().check([{"id": "x"}])
    assert Ingest().check([]).decisions == ()
