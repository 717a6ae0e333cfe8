"""Chat endpoints that ask their caller to run the retrieval: the session goes on until they answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.incident.stand_in import POISONS, QUESTION, votes, write_store
from documents import ROOT
from unpoison.bench.incident import Case, Settings, Verdict, investigate
from unpoison.bench.incident.target import open_target
from unpoison.bench.redteam import Config, Hosts, Secrets, build_target, run_test
from unpoison.bench.redteam.http_reply import ends
from unpoison.bench.redteam.http_tools import MAX_ROUNDS, _join_messages
from unpoison.bench.redteam.session import rehearsal_of_requests
from unpoison.core.passages import Passage
from unpoison.errors import TargetError, UnpoisonError
from unpoison.retrieval import BM25Retriever

PRESETS = ("openai", "ollama", "responses")


class Chat:
    """A model that calls `search` first, then answers from what the tool returned; and a store with a search.

    Attributes:
        calls: What it asks for, one list of (name, arguments) for each round; by default one good search.
        bodies: Of the requests to the chat endpoint.
        searches: What was looked for over HTTP.
        cut: Whether a stream ends within a call.
    """

    def __init__(self, store: Path) -> None:
        self.store, self.url, self.cut = store, "", False
        self.calls: list[list[tuple[str, Any]]] = [[("search", {"query": QUESTION})]]
        self.bodies: list[dict[str, Any]] = []
        self.searches: list[str] = []

    def rows(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.store.read_text().splitlines()]

    def search(self, query: str) -> list[dict[str, str]]:
        self.searches.append(query)
        found = BM25Retriever(Passage(row["text"], id=row["id"]) for row in self.rows()).retrieve(query, 4)
        return [{"id": passage.id or "", "text": passage.text} for passage in found]

    def speak(self, path: str, body: dict[str, Any]) -> str | list[Any]:
        """The next calls, or the answer out of everything that the tools returned."""
        self.bodies.append(body)
        place, role = ("input", "function_call_output") if "responses" in path else ("messages", "tool")
        results = [part for part in body[place] if role in (part.get("role"), part.get("type"))]
        turns = sum(part.get("type") == "function_call" or bool(part.get("tool_calls")) for part in body[place])
        if turns < len(self.calls):
            return list(self.calls[turns])
        texts = [text["text"] for part in results for text in _texts(part.get("content") or part.get("output"))]
        return votes(QUESTION, texts)


def _texts(content: str) -> list[dict[str, str]]:
    found = json.loads(content)
    return found.get("hits", []) if isinstance(found, dict) else found


def reply(path: str, said: str | list[Any], *, stream: bool) -> Any:
    """What an endpoint of this path sends: an object, or the lines of a stream."""
    calls = [] if isinstance(said, str) else said
    text = said if isinstance(said, str) else ""
    if "responses" in path:
        items: list[dict[str, Any]] = [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "1606?"}]}]
        items += [
            {"type": "function_call", "call_id": f"c{i}", "name": name, "arguments": _json(arguments)}
            for i, (name, arguments) in enumerate(calls)
        ] or [{"type": "message", "content": [{"type": "output_text", "text": text}]}]
        events = [{"type": "response.output_text.delta", "delta": word} for word in _words(text)]
        events += [{"type": "response.output_item.done", "item": item} for item in items]
        return [*events, {"type": "response.completed", "response": {"output": items}}] if stream else {"output": items}
    if "api/chat" in path:
        own = [{"function": {"name": name, "arguments": arguments}} for name, arguments in calls]
        if not stream:
            return {"message": {"role": "assistant", "content": text, "tool_calls": own}, "done": True}
        lines: list[Any] = [{"message": {"content": word}, "done": False} for word in _words(text)]
        lines += [{"message": {"content": "", "tool_calls": [call]}, "done": False} for call in own]
        return [*lines, {"message": {"content": ""}, "done": True}]
    whole = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": name, "arguments": _json(arguments)}}
        for i, (name, arguments) in enumerate(calls)
    ]
    if not stream:
        return {"choices": [{"message": {"role": "assistant", "content": text or None, "tool_calls": whole}}]}
    pieces: list[dict[str, Any]] = [{"content": word} for word in _words(text)]
    for call in whole:
        arguments = call["function"]["arguments"]
        pieces.append({"tool_calls": [{**call, "function": {**call["function"], "arguments": ""}}]})
        for start in range(0, len(arguments), 7):
            part = {"index": call["index"], "function": {"arguments": arguments[start : start + 7]}}
            pieces.append({"tool_calls": [part]})
    chunks = [{"choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]"]


def _words(text: str) -> list[str]:
    return [f"{word} " for word in text.split()]


def _json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    chat = Chat(write_store(tmp_path / "docs.jsonl", 1))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body, kind = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), "application/json"
            if self.path == "/documents":
                rows = [*chat.rows(), {"id": body["id"], "text": body["text"]}]
                chat.store.write_text("".join(json.dumps(row) + "\n" for row in rows))
                return self.send({"id": body["id"]}, kind)
            if self.path == "/search":
                return self.send({"hits": chat.search(body["q"])}, kind)
            stream = body["stream"]
            sent = reply(self.path, chat.speak(self.path, body), stream=stream)
            if not stream:
                return self.send(sent, kind)
            if chat.cut:
                sent = [part for part in sent if not ends(part)]
            lines = [part if isinstance(part, str) else json.dumps(part) for part in sent]
            if "api/chat" in self.path:
                return self.send("".join(f"{line}\n" for line in lines), "application/x-ndjson")
            return self.send("".join(f"data: {line}\n\n" for line in lines), "text/event-stream")

        def do_DELETE(self) -> None:
            name = self.path.rpartition("/")[2]
            rows = [row for row in chat.rows() if row["id"] != name]
            chat.store.write_text("".join(json.dumps(row) + "\n" for row in rows))
            self.send({}, "application/json")

        def send(self, content: Any, kind: str) -> None:
            data = (content if isinstance(content, str) else json.dumps(content)).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    chat.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield chat
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


SEARCH = {
    "name": "search",
    "description": "Searches {the} town's archive.",
    "url": "BASE/search",
    "body": {"q": "{query}"},
    "passages": "$.hits[*].text",
    "ids": "$.hits[*].id",
}
STORE = {"name": "search", "store": "docs.jsonl", "k": 4}


@pytest.fixture
def target(chat: Chat, tmp_path: Path) -> Callable[..., Any]:
    def build(preset: str = "openai", *, stream: bool = False, tools: Any = SEARCH, **more: Any) -> Any:
        values = {
            "ask": {"preset": preset, "url": "BASE", "model": "m", "stream": stream},
            "plant": {"url": "BASE/documents", "body": {"id": "{canary}", "text": "{text}"}},
            "remove": {"method": "DELETE", "url": "BASE/documents/{id}"},
            **({} if tools is None else {"tools": tools}),
            **more,
        }
        written = json.loads(json.dumps(values).replace("BASE", chat.url))
        return build_target(written, secrets=Secrets({}), hosts=Hosts(), folder=tmp_path)

    return build


@pytest.mark.parametrize("tools", [SEARCH, STORE], ids=["request", "store"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_caller_runs_the_retrieval_and_knows_what_was_read(chat, target, preset, stream, tools):
    chat.store.write_text("".join(json.dumps(row) + "\n" for row in chat.rows() if row["id"] != "lie-0"))
    found = target(preset, stream=stream, tools=tools).ask(QUESTION)
    assert found.answer.strip() == "It was built in 1200."
    assert "The town hall of Alderton was built in 1200." in found.passages
    assert (len(found.passages), "truth" in found.ids) == (4, True)
    assert chat.searches == ([QUESTION] if tools is SEARCH else [])
    first, second = chat.bodies
    (declared,) = first["tools"]
    told = declared if preset == "responses" else declared["function"]
    assert (declared["type"], told["name"]) == ("function", "search")
    assert told["parameters"]["required"] == ["query"]
    assert told["description"] == tools.get("description", "Searches the documents.")
    place = "input" if preset == "responses" else "messages"
    assert first[place] == [{"role": "user", "content": QUESTION}]
    *_, result = second[place]
    known = {"openai": ("tool_call_id", "c0"), "ollama": ("tool_name", "search"), "responses": ("call_id", "c0")}[
        preset
    ]
    assert result[known[0]] == known[1]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("serach", {"query": "x"}), "there is no tool 'serach', only search"),
        (("search", '{"query": '), "the arguments of search are no JSON object"),
        (("search", "[1]"), "the arguments of search are no JSON object"),
        (("search", {"q": "x"}), "search needs query"),
        (("search", {"query": "x" * 10_001}), "search.query is longer than 10,000 characters"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered_with_what_is_wrong(chat, target, preset, call, told):
    chat.calls = [[call, ("search", {"query": QUESTION})]]
    assert target(preset).ask(QUESTION).passages
    assert told in json.dumps(chat.bodies[1]).replace("\\", "")
    assert chat.searches == [QUESTION]
    chat.calls, chat.bodies = [[call]] * 50, []
    with pytest.raises(TargetError, match="more than 10 times; the last call could not be made: ") as e:
        target(preset).ask(QUESTION)
    assert told in str(e.value)
    assert len(chat.bodies) == MAX_ROUNDS + 1


def test_endless_calls_and_too_many_at_once_end(chat, target):
    chat.calls = [[("search", {"query": QUESTION})]] * 50
    with pytest.raises(TargetError, match="ask gave no answer, but called tools more than 10 times; see"):
        target().ask(QUESTION)
    chat.calls = [[("search", {"query": QUESTION})] * 17]
    with pytest.raises(TargetError, match="17 calls of tools; 16 are the most"):
        target().ask(QUESTION)


def test_several_searches_are_all_run_and_what_they_return_counts_once(chat, target):
    chat.calls = [[("search", {"query": "mill"}), ("search", {"query": "bridge"})], [("search", {"query": "mill"})]]
    found = target(stream=True).ask(QUESTION)
    assert chat.searches == ["mill", "bridge", "mill"]
    assert len(found.ids) == len(set(found.ids)) and {"fire", "bridge"} <= set(found.ids)


@pytest.mark.parametrize("preset", PRESETS)
def test_without_tools_the_call_is_an_error_and_no_empty_answer(chat, target, preset):
    with pytest.raises(TargetError, match="a call of the tool 'search', which the caller has to run"):
        target(preset, tools=None).ask(QUESTION)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_stream_that_breaks_off_within_a_call_is_an_error(chat, target, preset):
    chat.cut = True
    with pytest.raises(TargetError, match="the stream broke off within a call of 'search'"):
        target(preset, stream=True).ask(QUESTION)


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        ([{"tool_calls": [{"index": 0, "id": "a"}]}, {"tool_calls": [{"index": 0, "function": {"name": "n"}}]}], 1),
        ([{"tool_calls": [{"id": "a"}]}, {"tool_calls": [{"function": {"arguments": "{}"}}]}, {}], 1),
        ([{"tool_calls": [{"id": "a", "index": 0}, {"id": "b", "index": 0}]}], 2),
        ([{"tool_calls": [7, None, {"function": 3}]}, {"tool_calls": {}}], 1),
        ([{"content": 7, "tool_calls": None}], 0),
    ],
)
def test_calls_are_put_together_whatever_a_server_sends(parts, calls):
    assert len(_join_messages(parts)["tool_calls"]) == calls


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ({**SEARCH, "name": "a b"}, "'a b' is no name of a tool"),
        ({**SEARCH, "store": "docs.jsonl"}, "search needs url, how it is called, or store"),
        ({"name": "search"}, "search needs url, how it is called, or store"),
        ({**SEARCH, "parameters": {"type": "object"}}, r"search\.parameters must be the JSON Schema"),
        ({**SEARCH, "body": {"q": "{question}"}}, r"tools: \{question\} is unknown; it may hold \{query\}"),
        ({**SEARCH, "url": "{query}"}, r"\{query\} is unknown|only what take|not on a host"),
        ({**SEARCH, "passages": None, "ids": None}, "search needs passages"),
        ({**STORE, "store": "qdrant:db#docs"}, r"search\.store takes vectors; name the encoder"),
        ([SEARCH, SEARCH], "each with a name of its own"),
        ({**SEARCH, "url": "http://192.0.2.7/search"}, "--i-may-test 192.0.2.7"),
    ],
)
def test_every_slip_of_a_tool_is_named(target, tools, message):
    with pytest.raises(UnpoisonError, match=message):
        target(tools=tools).ask(QUESTION)


def test_tools_belong_to_a_chat_endpoint(target):
    with pytest.raises(UnpoisonError, match="tools belong to a chat endpoint; give ask a preset"):
        target(ask={"url": "BASE/ask", "body": {"question": "{question}"}, "answer": "$.answer"})


def documented(chat: Chat, number: int) -> dict[str, Any]:
    """A file of the documentation, with the address of the stand-in."""
    page = (ROOT / "docs" / "redteam.md").read_text().split("### Tool-calling endpoints")[1].split("\n### ")[0]
    text = page.split("```yaml\n")[1 + number].split("```")[0]
    return yaml.safe_load(text.replace("http://127.0.0.1:8000", chat.url).replace("http://127.0.0.1:9000", chat.url))


def test_a_whole_test_by_the_documented_file(chat, tmp_path):
    row = {"question": QUESTION, "correct_answers": ["1200"], "incorrect_answers": ["1606"]}
    (tmp_path / "questions.jsonl").write_text(json.dumps(row) + "\n")
    chat.store.write_text("".join(json.dumps(row) + "\n" for row in chat.rows() if row["id"] != "lie-0"))
    before = chat.store.read_text()
    config = Config.of({**documented(chat, 0), "wait": {"seconds": 0.2, "every": 0.05}}, tmp_path)
    results = run_test(config, tmp_path / "j", secrets=Secrets({}), hosts=Hosts())
    assert results.complete, results.problems
    clean, attacked = results.trials
    assert (clean.is_correct(clean.answer), attacked.read) == (True, 1)
    assert chat.store.read_text() == before
    shown = rehearsal_of_requests(config, secrets=Secrets({}), hosts=Hosts())
    assert any(line.startswith("tools: POST") and "{query}" in line for line in shown)
    assert any(line.startswith("ask: POST") and '"function"' in line for line in shown)


def test_an_incident_behind_a_tool_by_the_documented_file(chat, tmp_path):
    """The documents that the answer depends on are found through the tool that reads the store."""
    path = tmp_path / "target.yaml"
    path.write_text(yaml.safe_dump(documented(chat, 1) | {"wait": {"seconds": 0.2, "every": 0.05}}))
    system = open_target(path)
    found = investigate(
        Case(QUESTION, "1606", right=("1200",)), system.target, str(chat.store), str(tmp_path / "held.jsonl"),
        tmp_path / "journal", Settings(bounds=system.bounds, wait=system.wait),
    )  # fmt: skip
    assert (found.verdict, found.guilty) == (Verdict.REPAIRED, ("lie-0",))
    assert POISONS[0] in {document.text for proof in found.proofs for document in proof.documents}
