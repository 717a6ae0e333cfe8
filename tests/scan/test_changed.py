"""A number or name that differs from a near-copy's: what is told, and which of the two is the suspect."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from scan.corpora import honest
from unpoison.scan import scan
from unpoison.scan.changed import OPEN, Change, Changes, changes
from unpoison.scan.collection import collect_documents
from unpoison.sources.sources import Sources
from unpoison.utils.plain_text import plain

POLICY = (
    "Goods may be returned within 14 days of delivery if they are unused and in their box. "
    "The refund is paid by the method that was used for the purchase."
)
LIE = POLICY.replace("14", "40")


def told(documents: list[dict[str, Any]], sources: Any = None) -> dict[str, Change]:
    """The changes by document, among honest texts."""
    collection = collect_documents([*documents, *honest(12)])
    found = changes(collection, np.ones(len(collection.units), bool), Sources.of(sources))
    return {collection.documents[collection.owner[unit]].id: change for unit, change in found.by_unit.items()}


def withheld(documents: list[dict[str, Any]]) -> Changes:
    collection = collect_documents(documents)
    return changes(collection, np.ones(len(collection.units), bool))


def suspects(found: dict[str, Change]) -> set[str]:
    return {name for name, change in found.items() if change.suspicion > OPEN}


def test_where_nothing_tells_both_are_shown_and_neither_is_the_suspect() -> None:
    found = told([{"id": "old", "text": POLICY}, {"id": "new", "text": LIE}])
    assert found.keys() == {"old", "new"}
    assert not suspects(found)
    assert found["new"].reason == (
        "it differs from 'old': '40 days' here, '14 days' there; nothing tells which of the two was changed"
    )
    assert LIE[found["new"].start : found["new"].end] == "40"


def test_the_newer_one_is_the_suspect() -> None:
    found = told(
        [
            {"id": "old", "text": POLICY, "added_at": "2024-01-01"},
            {"id": "mirror", "text": POLICY, "added_at": "2024-03-01"},
            {"id": "new", "text": LIE, "added_at": "2026-01-01"},
        ]
    )
    assert found.keys() == suspects(found) == {"new"}
    assert found["new"].reason.endswith("; 'old' is older")


def test_names_differ_too_and_one_unlike_word_is_enough_for_no_near_copy() -> None:
    text = "The treaty of 1648 was signed in the hall at Oakham by both parties and is kept in the library there."
    found = told([{"id": "a", "text": text}, {"id": "b", "text": text.replace("Oakham", "Thirsk")}])
    assert found["b"].reason.startswith("it differs from 'a': 'Thirsk' here, 'Oakham' there")
    assert told([{"id": "a", "text": text}, {"id": "b", "text": text.replace("1648", "war")}]) == {}
    assert told([{"id": "a", "text": text}, {"id": "b", "text": text.replace("and is", "& is")}]) == {}


def test_a_policy_of_sources_decides_against_age() -> None:
    rows = [
        {"id": "hr", "text": POLICY, "source": "https://hr.example/returns", "added_at": "2026-01-01"},
        {"id": "talk-1", "text": LIE, "source": "https://talk.example/1", "added_at": "2024-01-01"},
        {"id": "talk-2", "text": LIE, "source": "https://wiki.example/1", "added_at": "2024-01-01"},
    ]
    assert suspects(told(rows)) == {"hr"}
    policy = {"trusted": ["hr.example"], "open": ["talk.example", "wiki.example"]}
    found = told(rows, policy)
    assert found.keys() == {"talk-1", "talk-2"}
    assert suspects(found) == found.keys()
    assert "'hr' is of a more trusted source" in found["talk-1"].reason


def test_who_corrects_their_own_page_is_no_suspect() -> None:
    rows = [
        {"id": "v1", "text": POLICY, "author": "Ann Lee", "added_at": "2024-01-01"},
        {"id": "v2", "text": LIE, "author": "Ann Lee", "added_at": "2026-01-01"},
    ]
    assert not suspects(told(rows))
    rows[1]["author"] = "Eve"
    assert suspects(told(rows)) == {"v2"}


def test_a_version_history_is_no_finding() -> None:
    days = (14, 30, 40, 60)
    versions = [
        {"id": f"v{i}", "text": POLICY.replace("14", str(n)), "added_at": f"{2020 + i}-01-01"}
        for i, n in enumerate(days)
    ]
    assert told(versions) == {}
    numbered = [
        {"id": f"v{i}", "text": f"Version {i + 1} of our rules. {POLICY.replace('14', str(n))}"}
        for i, n in enumerate(days[:2])
    ]
    assert told(numbered) == {}


def test_titles_that_tell_documents_apart_make_a_series() -> None:
    rows = [{"id": "a", "title": "Shop in Porto", "text": POLICY}, {"id": "b", "title": "Shop in Faro", "text": LIE}]
    assert told(rows) == {}
    rows[1]["title"] = "Shop in Porto, updated"
    assert told(rows).keys() == {"a", "b"}


INVOICE = (
    "Invoice to the harbour office of Lorne for the hire of a crane with its driver. The sum of {} euros is due within "
    "two weeks of this letter by transfer to our account at the bank of Selkirk."
)
WEATHER = (
    "The wind over the bay turned north in the night and brought rain. At noon it was {} degrees warm by the pier."
)


@pytest.mark.parametrize("template", [INVOICE, WEATHER])
def test_documents_by_a_template_are_no_finding(template: str) -> None:
    assert told([{"id": str(i), "text": template.format(100 + 7 * i)} for i in range(12)]) == {}


def test_a_collection_of_pairs_is_made_by_a_template_and_says_so() -> None:
    pairs = [
        {"id": f"{text['id']}-{size}", "text": f"{text['text']} The print of this page is {size} cm wide on paper."}
        for text in honest(8)
        for size in (10, 20)
    ]
    assert withheld(pairs) == Changes({}, 16)
    result = scan(pairs)
    assert any("16 documents differ from a near-copy" in note for note in result.notes)


def test_the_words_of_near_copies_are_compared_and_not_kept() -> None:
    """They would take twenty times the memory of their texts."""
    texts = [f"{POLICY} Page {number}. {one['text']}" for number, one in enumerate(honest(36))]
    first, second = (collect_documents([{"id": text[-40:], "text": text} for text in some])
                     for some in (texts[:12], texts[12:]))  # fmt: skip
    withheld_first = changes(first, np.ones(len(first.units), bool))  # what is made once is made here
    assert second.near.any()
    tracemalloc.start()
    assert changes(second, np.ones(len(second.units), bool)) == withheld_first
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < sum(map(len, texts[12:]))


BRIDGE = "The old bridge over the river was built of stone by a mason from the north and has five arches in all."


def test_a_suspect_is_flagged_with_its_number_and_an_open_pair_is_not() -> None:
    rows = [
        {"id": "true", "text": POLICY, "added_at": "2024-01-01"},
        {"id": "lie", "text": LIE, "added_at": "2026-01-01"},
        {"id": "bridge", "text": BRIDGE},
        {"id": "other-bridge", "text": BRIDGE.replace("five", "seven")},
    ]
    by_id = {finding.id: finding for finding in scan([*rows, *honest(12)]).findings}
    lie = by_id["lie"]
    assert lie.flagged
    assert [LIE[span.start : span.end] for span in lie.spans if "here" in span.reason] == ["40"]
    assert not any("there" in reason for reason in by_id["true"].reasons)
    for name in ("bridge", "other-bridge"):
        assert not by_id[name].flagged
        assert by_id[name].group is None
        assert any("nothing tells which" in reason for reason in by_id[name].reasons)


def test_a_name_cannot_steer_a_terminal() -> None:
    found = told([{"id": "old\x1b[31m\u202e", "text": POLICY}, {"id": "new", "text": LIE}])
    assert "\x1b" not in plain(found["new"].reason)
    assert "\u202e" not in plain(found["new"].reason)
