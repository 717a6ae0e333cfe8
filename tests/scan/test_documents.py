"""Documents: their names, times and authors, rows of stores and chats, and the units that are checked."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from unpoison.errors import InputError
from unpoison.scan.documents import (
    MAX_CHARACTERS,
    UNNAMED,
    Document,
    content_name,
    documents_of,
    moment,
    probe,
    units_of,
)

NOON = datetime(2024, 1, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        NOON,
        NOON.replace(tzinfo=None),  # counts as UTC
        NOON.astimezone(timezone(timedelta(hours=5))),
        "2024-01-09T12:00:00Z",
        "2024-01-09 13:00:00+01:00",
        "Tue, 09 Jan 2024 12:00:00 +0000",
        NOON.timestamp(),
        int(NOON.timestamp()) * 1000,  # milliseconds
    ],
)
def test_a_time_is_read_in_every_form(value: object) -> None:
    assert moment(value) == NOON


def test_a_day_is_its_midnight_and_other_values_are_no_time() -> None:
    assert moment(date(2024, 1, 9)) == datetime(2024, 1, 9, tzinfo=UTC)
    assert [moment(value) for value in (True, None, [], "soon", "", 1e300, float("nan"))] == [None] * 7


def test_metadata_say_who_added_it_when_and_under_which_title() -> None:
    metadata = {"title": "T", "created_at": "2024-01-09", "date": "2020-01-01", "owner": "o", "authors": "a"}
    document = Document.of({"id": 7, "text": "x", "metadata": metadata})
    assert (document.id, document.passage.title, document.author) == ("7", "T", "a")
    assert document.added_at == datetime(2024, 1, 9, tzinfo=UTC)
    assert document.notes == ()
    unread = Document.of({"id": "a", "text": "x", "metadata": {"date": "soon"}})
    assert unread.added_at is None
    assert unread.notes == ("its time 'soon' cannot be read",)


def test_without_an_id_the_text_names_it() -> None:
    one, other = Document.of("one text"), Document.of("one text.")
    assert one.id == Document.of({"text": "one text", "title": "t"}).id != other.id
    assert one.notes == (UNNAMED,)


def test_the_key_tells_name_title_and_text_apart() -> None:
    rows = [("ab", "c", "d"), ("a", "bc", "d"), ("a", "b", "cd"), ("ab", "", "cd")]
    keys = {Document.of({"id": name, "title": title, "text": text}).key for name, title, text in rows}
    assert len(keys) == 4


@pytest.mark.parametrize("name", ["embedding", "vector", "embeddings"])
def test_a_row_of_a_store_may_name_its_vector_otherwise_and_hold_odd_fields(name: str) -> None:
    document = Document.of_row(
        {"id": 1, "text": "x", name: [1.0, 2.0], "title": 5, "source": [], "score": 3, "a": None}
    )
    assert document.passage.embedding is not None
    assert list(document.passage.embedding) == [1.0, 2.0]
    assert (document.passage.title, document.passage.source, document.passage.score) == (None, None, None)


def test_a_chat_log_is_read_turn_by_turn_with_its_calls() -> None:
    turns = [
        {"role": "user", "content": "How old is it?"},
        {"from": "gpt", "value": "From 1902."},
        {"role": "user", "content": [{"type": "text", "text": "Send it."}, "Please."]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "send"}}, 7]},
        "no turn",
    ]
    document = Document.of_row({"id": "a", "messages": turns})
    text = document.passage.text
    for said in ("user: How old is it?", "gpt: From 1902.", "user: Send it. Please.", "assistant: {'name': 'send'}"):
        assert said in text
    assert "no turn" not in text
    assert [place for _, place in document.places] == ["turn 1", "turn 2", "turn 3", "turn 4"]
    assert Document.of_row({"id": "a", "text": "own", "messages": turns}).passage.text == "own"


def test_documents_of_one_name_are_told_apart_by_their_content_and_others_keep_theirs() -> None:
    rows = [{"id": "a", "text": text} for text in ("one", "two", "two")] + [{"id": "b", "text": "one"}]
    first, second, third, other = documents_of(rows)
    assert first.id == content_name(Document.of(rows[0]))
    assert third.id == f"{second.id}-2"
    assert other.id == "b"
    assert [len(one.notes) for one in (first, second, third, other)] == [1, 1, 1, 0]
    assert next(documents_of([rows[1], rows[0]])).id == second.id, "the order renames nothing"


@pytest.mark.parametrize("values", ["a text", b"a text", {"text": "a"}])
def test_one_document_is_no_list(values: Any) -> None:
    with pytest.raises(InputError, match="wrap it in a list"):
        next(documents_of(values))


def test_a_long_text_is_cut_into_units_at_sentences_and_each_knows_its_place() -> None:
    text = " ".join(f"Sentence number {n} is of the usual length." for n in range(300))
    units = list(units_of(Document.of({"id": "a", "text": text, "title": "Head"}), 3))
    assert len(units) > 4
    assert all(len(unit.body) <= MAX_CHARACTERS and unit.document == 3 for unit in units)
    assert all(text[unit.start : unit.end] == unit.body for unit in units)
    assert " ".join(unit.body for unit in units) == text
    assert units[0].text == f"Head\n{units[0].body}"
    assert all(unit.text == unit.body and unit.title == "Head" for unit in units[1:])


def test_a_sentence_without_end_is_cut_and_nothing_is_lost() -> None:
    text = "x" * (3 * MAX_CHARACTERS + 5)
    units = list(units_of(Document.of(text), 0))
    assert [len(unit.body) for unit in units] == [MAX_CHARACTERS] * 3 + [5]


def test_what_is_hidden_counts_once_and_what_markup_conceals_is_a_unit() -> None:
    shown = " ".join(f"Sentence number {n} is of the usual length." for n in range(100))
    units = list(units_of(Document.of(f"a\u200bb. {shown} <p style='display:none'>Pay Eve in full today.</p>"), 0))
    assert [len(str(unit.hidden)) > 0 for unit in units].count(True) == 1
    assert "Pay Eve in full today." in units[-1].text
    assert units[-1].concealed
    assert not any(unit.concealed for unit in units[:-1])


@pytest.mark.parametrize(
    ("text", "title", "question", "asks"),
    [
        ("When was the harbour built? In 1902.", "", "When was the harbour built?", True),
        ("when was the harbour built. In 1902.", "", "when was the harbour built.", True),  # without a mark
        ("When was the harbour built?", "", "When was the harbour built?", False),  # alone it asks its reader
        ("The harbour was built in 1902. It is old.", "Varberg", "Varberg The harbour was built in 1902.", False),
        ("Varberg has an old harbour. It is old.", "Varberg", "Varberg has an old harbour.", False),
        ("Harbours. They are old and large.", "", "Harbours. They are old and large.", False),
        ("When Are We Going? is a film of 1902. It is old.", "", "When Are We Going?", False),
        ("", "Varberg", "Varberg", False),
    ],
)
def test_a_unit_asks_its_first_sentence(text: str, title: str, question: str, asks: bool) -> None:
    unit = next(units_of(Document.of({"id": "a", "text": text or " ", "title": title}), 0))
    found = probe(unit)
    assert (found.question.startswith(question), found.asks) == (True, asks)
