"""A number or name that differs from a near-copy's: what is told, and which of the two is the suspect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from scan.corpora import honest
from unpoison.report.rendering import plain
from unpoison.scan import Scan, scan
from unpoison.scan.changed import OPEN, Change, Changes, changes
from unpoison.scan.collection import collect_documents
from unpoison.scan.report import sarif
from unpoison.sources.sources import Sources

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


def test_where_nothing_tells_both_are_shown_and_neither_is_the_suspect() -> None:
    found = told([{"id": "old", "text": POLICY}, {"id": "new", "text": LIE}])
    assert found.keys() == {"old", "new"}
    assert not any(change.suspect for change in found.values())
    assert (found["new"].near_copy, found["old"].near_copy) == ("old", "new")
    assert str(found["new"]) == (
        "it differs from 'old' in one number: '40 days' here, '14 days' there; "
        "nothing tells which of the two was changed"
    )
    assert LIE[found["new"].start : found["new"].end] == "40"


def test_the_newer_one_that_fewer_say_is_the_suspect() -> None:
    found = told(
        [
            {"id": "old", "text": POLICY, "added_at": "2024-01-01"},
            {"id": "mirror", "text": POLICY, "added_at": "2024-03-01"},
            {"id": "new", "text": LIE, "added_at": "2026-01-01"},
        ]
    )
    assert found.keys() == {"new"}
    assert found["new"].suspicion == 0.95
    assert str(found["new"]).endswith("; 'old' is older and has more company (2 to 1)")


def test_an_older_one_and_one_with_more_company_contradict_each_other() -> None:
    """Copies of a lie that somebody planted do not make the page they were made of the suspect."""
    lies = [{"id": f"lie-{i}", "text": LIE, "added_at": "2026-01-01"} for i in range(3)]
    found = told([{"id": "true", "text": POLICY, "added_at": "2024-01-01"}, *lies])
    assert {change.suspicion for change in found.values()} == {OPEN}
    assert str(found["lie-0"]).endswith("; 'true' is older, but has less company (1 to 3)")
    assert str(found["true"]).endswith("has more company (3 to 1), but is newer")


def test_a_policy_of_sources_decides_against_age_and_company() -> None:
    rows = [
        {"id": "hr", "text": POLICY, "source": "https://hr.example/returns", "added_at": "2026-01-01"},
        {"id": "talk-1", "text": LIE, "source": "https://talk.example/1", "added_at": "2024-01-01"},
        {"id": "talk-2", "text": LIE, "source": "https://wiki.example/1", "added_at": "2024-01-01"},
    ]
    assert {name for name, change in told(rows).items() if change.suspect} == {"hr"}
    policy = {"trusted": ["hr.example"], "open": ["talk.example", "wiki.example"]}
    found = told(rows, policy)
    assert found.keys() == {"talk-1", "talk-2"}
    assert all(change.suspect for change in found.values())
    assert "'hr' is of a more trusted source, but is newer and has less company (1 to 2)" in str(found["talk-1"])


def test_who_corrects_their_own_page_is_no_suspect() -> None:
    rows = [
        {"id": "v1", "text": POLICY, "author": "Ann Lee", "added_at": "2024-01-01"},
        {"id": "v2", "text": LIE, "author": "Ann Lee", "added_at": "2026-01-01"},
    ]
    assert not any(change.suspect for change in told(rows).values())
    rows[1]["author"] = "Eve"
    assert {name for name, change in told(rows).items() if change.suspect} == {"v2"}


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
    assert not result.changed
    assert any("16 documents differ from a near-copy" in note for note in result.notes)


@pytest.fixture(scope="module")
def result() -> Scan:
    rows = [
        {"id": "true", "text": POLICY, "added_at": "2024-01-01", "source": "docs/returns.md"},
        {"id": "</script>lie", "text": LIE, "added_at": "2026-01-01"},
        {"id": "bridge", "text": BRIDGE},
        {"id": "other-bridge", "text": BRIDGE.replace("five", "seven")},
    ]
    return scan([*rows, *honest(12)])


BRIDGE = "The old bridge over the river was built of stone by a mason from the north and has five arches in all."


def test_a_suspect_is_flagged_with_its_number_and_an_open_pair_is_not(result: Scan) -> None:
    by_id = {finding.id: finding for finding in result.findings}
    lie = by_id["</script>lie"]
    assert lie.flagged
    assert [LIE[span.start : span.end] for span in lie.spans if span.reason == str(lie.changed)] == ["40"]
    assert by_id["true"].changed is None
    assert {finding.id for finding in result.changed} == {lie.id, "bridge", "other-bridge"}
    for name in ("bridge", "other-bridge"):
        assert not by_id[name].flagged
        assert by_id[name].group is None
        assert any("in one number" in reason for reason in by_id[name].reasons)


def test_a_change_is_an_alert_of_its_own(result: Scan) -> None:
    log = sarif(result, "docs")["runs"][0]
    alerts = {
        one["partialFingerprints"]["unpoisonDocument/v1"]: one
        for one in log["results"]
        if one["ruleId"] == "changed-in-near-copy"
    }
    assert {name: one["level"] for name, one in alerts.items()} == {
        "</script>lie": "warning", "bridge": "note", "other-bridge": "note",
    }  # fmt: skip
    lie = alerts["</script>lie"]
    assert lie["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1,
        "charOffset": LIE.index("40"),
        "charLength": 2,
    }
    assert lie["properties"]["changed"]["near_copy"] == "true"
    assert log["tool"]["driver"]["rules"][lie["ruleIndex"]]["id"] == "changed-in-near-copy"


def test_a_name_cannot_steer_a_terminal() -> None:
    found = told([{"id": "old\x1b[31m\u202e", "text": POLICY}, {"id": "new", "text": LIE}])
    assert "\x1b" not in plain(str(found["new"]))
    assert "\u202e" not in plain(str(found["new"]))
