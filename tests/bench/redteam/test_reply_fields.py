"""Replies as systems give them, and where their answers, passages and sources are found."""

from __future__ import annotations

from typing import Any

import pytest

from unpoison.bench.redteam.reply_fields import complete_ask, new_id, read_paths, source_of

TEXT = "Backups are kept for 90 days."
ASK = {"url": "http://127.0.0.1/ask", "answer": "$.answer"}


@pytest.mark.parametrize(
    ("reply", "answer", "passages", "ids"),
    [
        (
            {"answer": "90", "sources": [{"text": TEXT, "source": "it/backup.md"}]},
            "$.answer",
            "$.sources[*].text",
            "$.sources[*].source",
        ),
        (
            {"result": "90", "source_documents": [{"page_content": TEXT, "metadata": {"source": "a.md"}}]},
            "$.result",
            "$.source_documents[*].page_content",
            "$.source_documents[*].metadata.source",
        ),
        ({"response": "90", "contexts": [TEXT]}, "$.response", "$.contexts[*]", None),
        (
            {"data": {"answer": "90", "chunks": [{"id": "7", "node": {"text": TEXT}}]}},
            "$.data.answer",
            "$.data.chunks[*].node.text",
            "$.data.chunks[*].id",
        ),
        (
            {"choices": [{"message": {"content": "90", "context": {"citations": [{"content": TEXT, "url": "u/1"}]}}}]},
            None,
            "$.choices[0].message.context.citations[*].content",
            "$.choices[0].message.context.citations[*].url",
        ),
        (
            {"answer": "90", "sources": [{"source": {"name": "kb"}, "document": [TEXT, TEXT]}]},
            "$.answer",
            "$.sources[*].document[*]",
            None,
        ),
    ],
)
def test_answer_passages_and_sources_are_found_by_their_names(
    reply: Any, answer: str | None, passages: str, ids: str | None
) -> None:
    given = ASK if answer else {**ASK, "answer": "$.choices[0].message.content"}
    found = complete_ask(given, reply)
    assert found["answer"] == (answer or given["answer"])
    assert found["passages"] == passages
    assert found.get("ids") == ids


@pytest.mark.parametrize(
    "reply",
    [
        {"answer": "90"},
        {"answer": "90", "sources": []},
        {"answer": "90", "sources": ["backup.md", "leave.md"]},
        {"messages": [{"role": "user", "content": TEXT}], "answer": "90"},
        "90 days",
        [],
        None,
    ],
)
def test_names_and_messages_are_no_passages(reply: Any) -> None:
    assert "passages" not in complete_ask(ASK, reply)


def test_what_leads_somewhere_already_stays() -> None:
    given = {**ASK, "passages": "$.read[*]", "answer": "$.said"}
    assert complete_ask(given, {"said": "90", "read": [TEXT], "answer": "no", "sources": [TEXT]}) == given


def test_a_reply_without_end_is_bounded() -> None:
    reply: Any = TEXT
    for _ in range(200):
        reply = {"a": reply, "b": [reply]}
    assert complete_ask(ASK, reply)["answer"] == "$.answer"


@pytest.mark.parametrize(
    ("reply", "paths", "where"),
    [
        ({"sources": [{"text": "a", "id": 1}]}, {"passages": "$.sources[*].text", "ids": "$.sources[*].id"}, None),
        ({"result": {"contexts": [TEXT]}, "id": 7}, {"passages": "$.result.contexts[*]"}, "$.id"),
        ({"documents": [{"id": "x"}, {"id": "y"}]}, {}, "$.documents[*].id"),
        ({"documents": [{"page_content": {"x": 1}}]}, {}, None),
        ({"user": {"id": 3}}, {}, None),
        ({"doc_id": "7"}, {}, "$.doc_id"),
        ({"sources": [{"text": TEXT, "id": True}]}, {"passages": "$.sources[*].text"}, None),
        ([{"id": 3}], {}, None),
        ({"sources": [], "data": {"ids": ["a"]}}, {}, "$.data.ids[*]"),
        (None, {}, None),
        ("text", {}, None),
    ],
)
def test_fields_of_a_reply_by_their_names(reply, paths, where):
    assert read_paths(reply) == paths
    assert new_id(reply) == where


@pytest.mark.parametrize(
    ("name", "source"),
    [("hr/leave.md", "hr/leave.md"), ("leave.md", "leave.md"), ("https://a.example/1", "https://a.example/1")]
    + [(key, None) for key in ("17", "doc-17", "3.14", "")],
)
def test_a_file_or_address_is_a_source_and_a_key_is_none(name: str, source: str | None) -> None:
    assert source_of(name) == source
