"""One request and its reply: templates, paths, streams, bounds, and where nothing is sent."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from lab.check.rag_server import Rag, serve_rag
from unpoison.errors import OptionError, TargetError
from unpoison_lab.redteam.http_client import Hosts, HttpReply
from unpoison_lab.redteam.http_target import HttpTarget, ReplyPath
from unpoison_lab.redteam.targets import TargetDocument, TargetReply


@pytest.fixture
def rag():
    with serve_rag() as running:
        yield running


def target(rag: Rag, environment: dict[str, str] | None = None, timeout: float = 30.0, **ask: Any) -> HttpTarget:
    values = {
        "ask": {"url": f"{rag.url}/ask", "body": {"question": "{question}"}, "answer": "$.answer", **ask},
        "plant": {"url": f"{rag.url}/documents", "body": {"text": "{text}"}, "id": "$['id','doc_id']"},
        "remove": {"method": "DELETE", "url": f"{rag.url}/documents/{{id}}"},
    }
    return HttpTarget(values, Hosts(), timeout=timeout, environment=environment or {})


def fixed(rag: Rag, text: str, kind: str = "application/json", status: int = 200) -> None:
    rag.fixed["/ask"] = (status, kind, text)


def test_ask_plant_and_remove(rag: Rag) -> None:
    system = target(rag, passages="$.sources[*]")
    said = system.ask("How many days of paid leave are there?")
    assert said.answer.startswith("Full-time employees")
    assert said.ids is not None
    assert said.ids[0] == "hr/leave.md"
    (handle,) = system.plant([TargetDocument("a lie", "unpoison-1")])
    assert handle in rag.documents
    assert (system.remove([handle]), system.remove([handle])) == ([], [handle])


def test_what_is_filled_in_is_data_whatever_it_holds(rag: Rag) -> None:
    nasty = 'a"},{"b": "${RAG_TOKEN} {question} {id}\n\\ ../../x?y#z'
    system = target(rag, {"RAG_TOKEN": "value-of-it"}, body={"question": "<{question}>", "n": 1})
    system.ask(nasty)
    assert rag.asked == [f"<{nasty}>"]
    system = target(rag, url=f"{rag.url}/x/{{question}}?q={{question}}", body=None)
    with pytest.raises(TargetError, match="status 404") as caught:
        system.ask("../documents?a=b#c")
    assert "/x/..%2Fdocuments%3Fa%3Db%23c?q=" in str(caught.value)


@pytest.mark.parametrize("name", [".", ".."])
def test_an_id_leads_to_no_other_address(rag: Rag, name: str) -> None:
    with pytest.raises(TargetError, match="cannot be the id"):
        target(rag).remove([name])


@pytest.mark.parametrize(
    ("path", "text", "kind", "said"),
    [
        ("$.choices[0].message.content", '{"choices": [{"message": {"content": "a"}}]}', "application/json", "a"),
        ("$['my answer']", '{"my answer": 3}', "application/json", "3"),
        ("$.answer", '{"answer": null}', "application/json", ""),
        ("$.out[*].text", '{"out": [{"text": "a"}, {"x": 1}, {"text": "b"}]}', "application/json", "a\nb"),
        ("text", "plain", "text/plain", "plain"),
        ("text", "data: a\n\ndata:  b\n\n", "text/event-stream", "a b"),
        (
            "$.choices[0].delta.content",
            'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: {"choices": [{"delta": {}}]}\n\n'
            'data: {"choices": [{"delta": {"content": "b"}}]}\n\ndata: [DONE]\n\ndata: never read\n\n',
            "text/event-stream; charset=utf-8",
            "ab",
        ),
    ],
)
def test_where_an_answer_stands(rag: Rag, path: str, text: str, kind: str, said: str) -> None:
    fixed(rag, text, kind)
    assert target(rag, answer=path).ask("x") == TargetReply(said)


@pytest.mark.parametrize(
    ("text", "kind", "status", "words"),
    [
        ("<html>", "text/html", 200, "is no JSON"),
        ('{"text": "a"}', "application/json", 200, r"\$.answer leads to nothing in the reply, .*text"),
        ('{"answer": {"text": "a"}}', "application/json", 200, "is no text; go on to its text"),
        ('data: {"error": "no model"}\n\n', "text/event-stream", 200, "an error in place of an answer"),
        ("event: error\ndata: broken\n\n", "text/event-stream", 200, "an error in place of an answer"),
        ("", "text/event-stream", 200, "leads to nothing in the reply, 0 events"),
        ("{}", "application/json", 307, "redirected.*not followed"),
        ("no", "text/plain", 500, "status 500: 'no'"),
        (" " * (9 << 20), "text/plain", 200, "more than 8,388,608 bytes"),
        ("[" * 100_000, "application/json", 200, "is no JSON"),
    ],
)
def test_a_reply_of_no_use_is_one_sentence(rag: Rag, text: str, kind: str, status: int, words: str) -> None:
    fixed(rag, text, kind, status)
    with pytest.raises(TargetError, match=words):
        target(rag).ask("x")


def test_passages_are_texts_or_rows(rag: Rag) -> None:
    fixed(rag, json.dumps({"answer": "a", "docs": ["one", {"page_content": "two", "url": "https://a.example/2"}]}))
    said = target(rag, passages="$.docs[*]").ask("x")
    assert (said.passages, said.ids) == (("one", "two"), ("", "https://a.example/2"))
    fixed(rag, json.dumps({"answer": "a", "docs": [3]}))
    with pytest.raises(TargetError, match="is no passage"):
        target(rag, passages="$.docs[*]").ask("x")


def test_a_path_to_no_passages_is_an_error_and_an_empty_list_is_none(rag: Rag) -> None:
    for passages, says in (("$.pasages[*]", "ask.passages"), ("$.pasages", "ask.passages")):
        fixed(rag, json.dumps({"answer": "a", "passages": ["one"]}))
        with pytest.raises(TargetError, match=rf"{says}: .*pasages.* leads to nothing in the reply"):
            target(rag, passages=passages).ask("x")
    with pytest.raises(TargetError, match=r"ask\.ids: .* leads to nothing"):
        target(rag, ids="$.passages[*].ident").ask("x")
    fixed(rag, json.dumps({"answer": "a", "passages": []}))
    assert target(rag, passages="$.passages[*]").ask("x").passages == ()
    assert target(rag, ids="$.passages[*].id").ask("x").ids == ()


def test_a_secret_is_sent_and_never_shown(rag: Rag, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    rag.key = 's3cr3t"token'
    with pytest.raises(TargetError, match="status 401"):
        target(rag).ask("x")
    system = target(rag, {"RAG_TOKEN": rag.key}, headers={"Authorization": "Bearer ${RAG_TOKEN}"})
    fixed(rag, json.dumps({"answer": f"{rag.key} c zM2NyM3QidG9rZW4=", "b": rag.key}))
    assert system.ask("x").answer.startswith("${RAG_TOKEN} c")
    fixed(rag, "".join(f"data: {letter}\n\n" for letter in rag.key), "text/event-stream")
    assert (
        target(rag, {"RAG_TOKEN": rag.key}, headers={"A": "${RAG_TOKEN}"}, answer="text").ask("x").answer
        == "${RAG_TOKEN}"
    )
    assert "s3cr3t" not in caplog.text


def test_nothing_is_sent_to_what_may_not_be_tested(rag: Rag) -> None:
    asked = Hosts(resolve=lambda name: ["127.0.0.1", "192.0.2.8"])
    with pytest.raises(OptionError, match=r"--i-may-test sly\.example"):
        HttpTarget({"ask": {"url": "http://sly.example/", "body": "{question}", "answer": "text"}}, asked)
    with pytest.raises(OptionError, match="is not set"):
        target(rag, headers={"Authorization": "Bearer ${RAG_NONE}"})
    assert rag.asked == []


def test_hostile_paths_and_replies_are_bounded() -> None:
    deep = json.loads("[" * 400 + "]" * 400)
    assert ReplyPath("$.a[0].b").values({"a": deep}) == []
    with pytest.raises(TargetError, match="more than 10,000 values"):
        ReplyPath("$[*]").values(list(range(20_000)))
    assert ReplyPath("$.a").of(HttpReply(200, "", ({"a": 1}, "text", {"b": 2}, {"a": [3]}))) == [1, [3]]
