"""Calls as a configuration describes them: every slip is named; chat endpoints are presets; any language passes."""

from __future__ import annotations

import json

import pytest

from bench.redteam.running_system import TRUTH
from bench.redteam.test_http_session import LOGIN, PRIVATE, QUESTION, THREAD
from unpoison.bench.redteam.http_client import Response, _decode
from unpoison.errors import UnpoisonError


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({"ask": [THREAD[1]]}, r"ask: \{thread\} is unknown; it may hold \{question\}, \{uuid\}"),
        ({"ask": [THREAD[0]]}, "ask needs answer; add it"),
        ({"ask": []}, "target needs ask"),
        ({"ask": [THREAD[0], {**THREAD[1], "anwser": "$.a"}]}, "did you mean 'answer'"),
        ({"ask": [PRIVATE] * 11}, "ask has 11 steps; 10 are the most"),
        ({"ask": {**PRIVATE, "take": {"id": "$.id"}}}, "ask.take: 'id' cannot name a value"),
        ({"ask": {**PRIVATE, "take": {"Thread": "$.id"}}}, "ask.take: 'Thread' cannot name a value"),
        ({"ask": {**PRIVATE, "take": {"thread": "id"}}}, "ask.take.thread must be a path"),
        ({"ask": {**PRIVATE, "form": {"q": "{question}"}}}, "ask has form beside body"),
        ({"ask": {**PRIVATE, "headers": {"X-Thread": "{thread}"}}}, r"\{thread\} is unknown"),
        ({"headers": {"Authorization": "Bearer {token}"}}, r"\{token\} is unknown"),
        ({"login": {**LOGIN, "body": {"password": "hunter22"}}}, "login.body.password looks like a secret"),
        (
            {"login": {**LOGIN, "form": {"password": "hunter22"}, "body": None}},
            "login.form.password looks like a secret",
        ),
        ({"login": "me"}, "login must be a mapping with headers, url, method.*expires"),
        ({"login": {**LOGIN, "expires": 0}}, "login.expires must be seconds, or a path to them, got 0"),
        ({"login": {**LOGIN, "expries": 5}}, "no field of login is named 'expries'; did you mean 'expires'"),
        ({"login": {"url": "http://192.0.2.7/login"}}, "not this machine.*--i-may-test 192.0.2.7"),
        ({"login": LOGIN}, r"\${RAG_PASSWORD} is not set"),
        (
            {"ask": {**PRIVATE, "preset": "opanai", "model": "m"}},
            "no preset of ask is named 'opanai'; did you mean 'openai'",
        ),
        ({"ask": {"preset": "openai", "url": "BASE"}}, "the preset openai needs url and model"),
        ({"ask": {**PRIVATE, "model": "m"}}, "ask.model belongs to a preset"),
        ({"ask": [{**THREAD[0], "cited": "markers"}, THREAD[1]]}, "ask.cited: markers stand in an answer"),
        ({"ask": {**PRIVATE, "fails": ["failed"]}}, "ask.fails needs value"),
        ({"ask": {**PRIVATE, "equals": "done"}}, "ask.equals needs value"),
        ({"ask": {**PRIVATE, "cited": "marks"}}, r"ask.cited must be a path"),
    ],
)
def test_every_slip_of_a_call_is_named_before_anything_is_sent(system, target, calls, message):
    with pytest.raises(UnpoisonError, match=message):
        target(**calls)
    assert system.requests == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("preset", "path"), [("openai", ""), ("openai", "/v1"), ("openai", "/v1/chat/completions"), ("ollama", "/api/chat")]
)
def test_presets_ask_chat_endpoints_as_stream_or_at_once(system, target, preset, path, stream):
    """The stream of the one ends in the midst of a chunk, and its connection stays open."""
    asked = target(ask={"preset": preset, "url": f"BASE{path}", "model": "m", "stream": stream, "body": {"top_p": 0.5}})
    assert asked.ask(QUESTION).answer.strip() == TRUTH
    sent = json.loads(system.requests[0][3])
    assert (sent["model"], sent["stream"], sent["top_p"]) == ("m", stream, 0.5)
    assert sent["messages"] == [{"role": "user", "content": QUESTION}]


QUESTIONS = [
    "Wann wurde das Rathaus „Älteres Schloß“ gebaut?",
    "市政厅是哪一年建成的？",
    "В каком году?",
    "متى بُنيت؟",
    "🏰?",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_in_other_languages_pass_unharmed(system, target, question):
    system.said = "{q}"
    assert target().ask(question).answer == question
    text = {"url": "BASE/ask.txt", "body": "{question}", "answer": "text"}
    assert target(ask=text).ask(question).answer == question
    assert json.loads(system.bodies("/ask")[0])["question"] == question
    chat = {"preset": "openai", "url": "BASE", "model": "m", "stream": True}
    assert target(ask=chat).ask(question).answer.strip() == question


def test_a_reply_in_another_encoding_is_read_in_it(target):
    for charset, text in (("gb18030", "市政厅"), ("ISO-8859-1", "Schloß"), ("no-such", "x"), ("base64", "x")):
        known = charset if charset in ("gb18030", "ISO-8859-1") else "utf-8"
        headers = {"content-type": f'text/plain; charset="{charset}"'}
        assert _decode(Response(200, headers, text.encode(known))) == text
