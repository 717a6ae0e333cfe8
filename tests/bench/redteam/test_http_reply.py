"""Replies that come as a stream of events: the answer is put together of its pieces, or the reply is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from unpoison.bench.redteam import Hosts, Secrets, build_target
from unpoison.bench.redteam.http_reply import read_events, stream_text
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.cli import app
from unpoison.errors import OptionError, TargetError

SSE = "text/event-stream; charset=utf-8"


def frames(*events: object) -> str:
    return "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)


def chat(**delta: object) -> dict[str, object]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


CITED = {"sources": [{"id": "s1", "text": "It was built in 1600."}, {"id": "s2", "text": "It was built in 1700."}]}
CHAT = frames(CITED, chat(role="assistant", content=""), chat(content="In "), chat(content="1200."), "[DONE]")
COMPLETED = frames(
    {"choices": [{"text": "In "}]}, {"choices": [{"text": "1200.", "finish_reason": "stop"}]}, {"choices": []}
)
ANTHROPIC = "".join(
    f"event: {event['type']}\n{frames(event)}"
    for event in (
        {"type": "message_start", "message": {"content": [], "model": "1600"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "or 1600?"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "In "}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "1200."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
)
RESPONSES = frames(
    {"type": "response.created", "response": {}},
    {"type": "response.output_text.delta", "delta": "In "},
    {"type": "response.output_text.delta", "delta": "1200."},
    {"type": "response.output_text.done", "text": "In 1200."},
    {"type": "response.completed", "response": {}},
)
PLAIN = ": begin\r\n\r\nid: 1\r\ndata:  In\r\n\r\nretry: 10\r\ndata:  1200.\r\n\r\ndata: [DONE]\r\n\r\n"
OLLAMA = "".join(
    json.dumps({"model": "m", "message": {"role": "assistant", "content": text}, "done": text == ""}) + "\n"
    for text in ("In ", "1200.", "")
)


@pytest.fixture
def replying() -> Iterator[Callable[..., HttpTarget]]:
    """A target whose `ask` is answered with the given type and text."""
    reply = ["", ""]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            content = reply[1].encode()
            self.send_response(200)
            self.send_header("Content-Type", reply[0])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def target(kind: str, text: str, answer: str = "text", environment: dict[str, str] | None = None, **paths: str):
        reply[:] = kind, text
        url = f"http://127.0.0.1:{server.server_port}/"
        headers = {"X-Token": "${TOKEN}"} if environment else {}
        values = {
            "ask": {"url": url, "body": {"q": "{question}"}, "headers": headers, "answer": answer, **paths},
            "plant": {"url": url, "body": {"text": "{text}", "mark": "{canary}"}, "id": "$.id"},
            "remove": {"method": "DELETE", "url": f"{url}{{id}}"},
        }
        return build_target(values, secrets=Secrets(environment or {}), hosts=Hosts())

    yield target
    server.shutdown()
    server.server_close()
    thread.join(60)


@pytest.mark.parametrize("text", [CHAT, COMPLETED, ANTHROPIC, RESPONSES, PLAIN, frames('"In "', '"1200."')])
@pytest.mark.parametrize("kind", [SSE, "text/plain"])  # frameworks send streams as whatever they are told
def test_the_pieces_of_a_stream_are_the_answer_and_its_frames_are_not(replying, text, kind):
    assert replying(kind, text).ask("q").answer.strip() == "In 1200."


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json", "text/plain"])
def test_a_stream_of_json_lines_is_one_too(replying, kind):
    assert replying(kind, OLLAMA).ask("q").answer == "In 1200."
    generated = '{"response": "In ", "done": false}\n{"response": "1200.", "done": true}\n'
    assert replying(kind, generated).ask("q").answer == "In 1200."


def test_a_path_is_followed_in_every_event_and_its_pieces_are_joined(replying):
    target = replying(SSE, CHAT, "$.choices[0].delta.content", passages="$.sources[*].text", ids="$.sources[*].id")
    read = target.ask("q")
    assert read.answer == "In 1200."
    assert read.passages == ("It was built in 1600.", "It was built in 1700.")
    assert read.ids == ("s1", "s2")
    own = frames({"screening": {}}, {"text": "In 16"}, {"answer": {"text": "In 1200."}})
    assert replying(SSE, own, "$.answer.text").ask("q").answer == "In 1200."
    assert replying(SSE, CHAT, "text", passages="$.sources[*].text").ask("q") == read.__class__(
        "In 1200.", read.passages
    )


@pytest.mark.parametrize(
    ("kind", "text", "answer", "message"),
    [
        (SSE, frames({"token": "In "}, {"token": "1200."}), "text", r"\['token'\].*\$\.token"),
        (SSE, frames(CITED, "In ", "1200."), "text", r"\['sources'\].*beside plain text"),
        (SSE, frames(CITED), "$.token", r"ask.answer: \$\.token leads to nothing in any of 1 events.*sources"),
        (SSE, "", "text", "no event"),
        (SSE, ": hello\n\n", "text", "no event"),
        (SSE, frames("[DONE]"), "text", "no event"),
        (SSE, frames({"token": {"text": "In"}}), "$.token", "no text"),
        (SSE, frames(chat(content="In 12")), "text", "broke off"),
        (
            SSE,
            frames({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "I"}}),
            "text",
            "broke off",
        ),
        (SSE, CHAT.replace("data: [DONE]", 'data: {"error": {"message": "overloaded"}}'), "text", "overloaded"),
        (SSE, frames({"text": "In"}) + "event: error\n" + frames({"detail": "no model"}), "$.text", "no model"),
        (SSE, frames(chat(content={"parts": []}), "[DONE]"), "text", "no text"),
        (
            "application/json",
            json.dumps({"answer": "In 1200.", **CITED}),
            "text",
            r"\['answer', 'sources'\].*\$\.answer",
        ),
    ],
)
def test_what_cannot_be_put_together_is_refused(replying, kind, text, answer, message):
    with pytest.raises(TargetError, match=message):
        replying(kind, text, answer).ask("q")


def test_other_requests_are_not_read_from_a_stream(replying):
    from unpoison.bench.redteam import Document

    with pytest.raises(TargetError, match="plant was answered with a stream of events"):
        replying(SSE, frames({"id": "7"})).plant([Document("t", "unpoison-1")])


def test_plain_text_stays_plain_text(replying):
    for text in ("In 1200.", "data: In 1200.", "event: it was\nbuilt in 1200.", "{curly} and [square]", "12"):
        assert replying("text/plain", text).ask("q").answer == text
    assert replying("application/json", '"In 1200."').ask("q").answer == "In 1200."
    assert replying("text/plain", "", passages="text").ask("q").passages == ("",)


def test_passages_of_a_reply_that_is_no_json_are_not_none_at_all(replying):
    with pytest.raises(TargetError, match="no JSON"):
        replying("text/plain", "In 1200.", passages="$.passages[*].text").ask("q")


def test_a_secret_that_comes_in_pieces_is_masked(replying):
    target = replying(SSE, frames("my s3cr3t-", "token-value"), environment={"TOKEN": "s3cr3t-token-value"})
    assert target.ask("q").answer == "my ${TOKEN}"


@given(st.text(), st.sampled_from([SSE, "text/plain", "application/json", "application/x-ndjson"]))
def test_any_text_is_read_or_refused(text, kind):
    try:
        events = read_events(kind, text)
        assert events is None or isinstance(stream_text(events, "ask.answer"), str)
    except TargetError:
        pass


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), min_size=1, max_size=5))
def test_deltas_survive_whatever_they_hold(pieces):
    text = frames(*(chat(content=piece) for piece in pieces), "[DONE]")
    assert stream_text(read_events(SSE, text) or [], "ask.answer") == "".join(pieces)


@pytest.mark.parametrize("mode", ["stream-chat", "stream-plain"])
def test_a_streaming_system_has_the_figures_of_one_that_replies_at_once(stand_in, tmp_path, mode):
    figures = []
    for number, one in enumerate(("", mode)):
        folder = tmp_path / str(number)
        folder.mkdir()
        system = stand_in(*(("--mode", one) if one else ()), questions=8, folder=folder)
        changed = {"answer": "text"} if one else {}
        config = system.config(
            folder, passages=False, attacks=["corruptrag"], wait={"seconds": 0.1}, ask=changed, limits={"in_flight": 1}
        )
        result = CliRunner().invoke(app, ["redteam", str(config), "--json"])
        assert result.exit_code == 0, result.stderr
        cells = json.loads(result.stdout)["cells"]
        figures.append([cell["figures"][name]["value"] for cell in cells for name in ("asr", "accuracy")])
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", [{"a": [{"b": 1}, {"b": None}, {"c": 2}], "x y": {"*": "star"}}]),
        ("$.a[*].b", [1, None]),
        ("$.a[0].b", [1]),
        ("$.a[-1].c", [2]),
        ("$.a[7].b", []),
        ("$['x y']['*']", ["star"]),
        ('$["x y"].*', ["star"]),
        ("$.a.b", []),
        ("$.nothing[*]", []),
    ],
)
def test_paths_lead_where_they_say(path, values):
    reply = {"a": [{"b": 1}, {"b": None}, {"c": 2}], "x y": {"*": "star"}}
    assert JsonPath.of(path, "ask.answer").values(reply) == values


def test_a_path_that_leads_nowhere_names_what_there_is():
    with pytest.raises(
        TargetError, match=r"\$.answer leads to nothing in the reply, which has \$.anwser, \$.hits\[\*\].text"
    ):
        JsonPath.of("$.answer", "ask.answer").first({"anwser": 1, "hits": [{"text": "a"}, {"text": "b"}]})


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ({"ids": ["a", "b"]}, r"has \$.ids\[\*\]$"),
        ({"my field": {"it's": 1}}, r"""has \$\['my field'\]\["it's"\]$"""),
        ([[{"id": 1}]], r"has \$\[\*\]\[\*\].id$"),
        ({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}, r"has \$.a.b.c.d.e$"),
        ({f"n{i}": i for i in range(100_000)}, r"has \$.n0, .*\$.n19, \.\.\.$"),
        ({"none": [], "'\"": 1}, r"has \$.none\[\*\]$"),
        ({}, r"is empty$"),
        ("a text", r"is 'a text'$"),
        ({"x" * 10_000: 1, "y": 1}, r"has \$.y$"),
    ],
)
def test_the_paths_that_there_are_can_be_copied(reply, told):
    with pytest.raises(TargetError, match=told) as caught:
        JsonPath.of("$.answer", "ask.answer").first(reply)
    assert len(str(caught.value)) < 2_000
    for path in str(caught.value).partition("which has ")[2].split(", "):
        assert path in ("...", "$.none[*]", "") or JsonPath.of(path, "x").values(reply)


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_is_refused(text):
    try:
        path = JsonPath.of(f"${text}", "x")
    except OptionError as error:
        assert "x" in str(error)
    else:
        assert all(value in ({"a": [1]}, [1], 1) for value in path.values({"a": [1]}))
