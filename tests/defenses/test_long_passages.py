"""A passage that is too long to be judged sentence by sentence is named, on every way in."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from unpoison import Grada, Guard, RagDefender
from unpoison.core.passages import Passage
from unpoison.integrations.screener import DocumentScreener, passage
from unpoison.screener.admission import LONG
from unpoison.serve import Bounds

QUERY = "where is the museum of the Vasa"
SHORT = [
    "The museum of the Vasa is in Stockholm.",
    "The Vasa sank in 1628.",
    {"title": "T" * 300, "text": "x " * 9_990},
]
LONG_ONE = "The harbour is old. " * 7_500 + "The museum of the Vasa is in Gothenburg."


@pytest.mark.parametrize("defense", [Guard(), Grada(), RagDefender(mode="reference")], ids=lambda d: d.name)
def test_the_notes_name_what_was_judged_as_one_text(defense: Any) -> None:
    notes = defense.screen(QUERY, [*SHORT, LONG_ONE]).evidence.notes
    (note,) = [note for note in notes if "judged as one text" in note]
    assert "passage 3;" in note
    assert f"{LONG:,} characters" in note
    assert not any("judged as one text" in note for note in defense.screen(QUERY, SHORT).evidence.notes)


def test_the_service_has_the_same_bound() -> None:
    assert Bounds().characters == LONG


def test_adapters_warn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "unpoison")
    screener = DocumentScreener[str](
        reading=lambda text: passage(text, {}, text), noting=lambda text, _: text, cutting=lambda _, text: text
    )
    screener.screen(QUERY, ["The Vasa sank in 1628.", "The hull was raised.", "It stands in Stockholm."])
    assert not caplog.records
    screener.screen(QUERY, ["The Vasa sank in 1628.", LONG_ONE, "It stands in Stockholm."])
    (record,) = caplog.records
    assert record.getMessage().startswith("longer than 20000 characters")
    assert "documents [1];" in record.getMessage()
    assert record.unpoison["long"] == [1]  # type: ignore[attr-defined]
    assert Passage(LONG_ONE).text not in record.getMessage()
