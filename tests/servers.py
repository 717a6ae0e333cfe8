"""A model server in a process of its own, for tests and benchmarks: `with serving() as url: ...`.

It speaks OpenAI's /v1/chat/completions and /v1/embeddings and Anthropic's /v1/messages. The model's name says how it
behaves, as "KIND" or "KIND/ARGUMENT" or "KIND/ARGUMENT/ANYTHING"; the last part keeps tests apart that count calls.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Barrier, Event, Lock
from typing import Any, ClassVar

LONG = "long " * 200_000


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Start the server on a free loopback port; yields its address without /v1."""
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port.isdigit(), "the server did not start"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def statistics(url: str) -> dict[str, Any]:
    """`calls` and `most_in_flight` so far, by model name."""
    with urllib.request.urlopen(f"{url}/statistics", timeout=60) as response:  # noqa: S310  our own server
        return json.load(response)


def release(url: str) -> None:
    """Let the models called `held` reply from now on."""
    urllib.request.urlopen(f"{url}/release", timeout=60).close()  # noqa: S310  our own server


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    lock = Lock()
    calls: ClassVar[Counter[str]] = Counter()
    in_flight: ClassVar[Counter[str]] = Counter()
    most_in_flight: ClassVar[Counter[str]] = Counter()
    meetings: ClassVar[dict[str, Barrier]] = {}
    released = Event()
    checkpoint: Any = None

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/release":
            Handler.released.set()
        with Handler.lock:
            found = {"calls": Handler.calls, "most_in_flight": Handler.most_in_flight}
            text = json.dumps(found)
        self.send(200, text)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = request["model"]
        with Handler.lock:
            Handler.calls[model] += 1
            count = Handler.calls[model]
            Handler.in_flight[model] += 1
            Handler.most_in_flight[model] = max(Handler.most_in_flight[model], Handler.in_flight[model])
        try:
            self.respond(request, count)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client did not wait
        finally:
            with Handler.lock:
                Handler.in_flight[model] -= 1

    def respond(self, request: dict[str, Any], count: int) -> None:
        kind, _, rest = request["model"].partition("/")
        argument = rest.partition("/")[0]
        if kind == "status" or (kind == "flaky" and count == 1):
            self.refuse(int(argument), "out of order", {"Location": "/v1/elsewhere"} if argument[0] == "3" else None)
        elif kind == "after":
            self.refuse(429, "slow down", {"Retry-After": rest})
        elif kind == "quota":
            self.refuse(429, "You exceeded your quota", code="insufficient_quota")
        elif kind == "indiscreet":
            secret = self.headers.get("Authorization") or self.headers.get("x-api-key")
            self.refuse(400, f"bad request with {secret}")
        elif kind == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif kind == "malformed":
            self.send(200, '{"id": "x", "choices": [{"ind')
        elif kind == "page":
            self.send(200, "<html>welcome</html>", {"Content-Type": "text/html"})
        elif kind == "json":
            self.send(200, rest)
        else:
            self.wait(kind, argument, request["model"])
            if request.get("stream"):
                self.stream(kind, request)
            else:
                self.send(200, json.dumps(self.body(kind, request)))

    def wait(self, kind: str, argument: str, model: str) -> None:
        """`answers` for so many seconds, for benchmarks; `held` for its release, `meeting` for so many requests."""
        if kind == "answers":
            time.sleep(float(argument))
        elif kind == "held":
            Handler.released.wait(60)
        elif kind == "meeting":
            with Handler.lock:
                barrier = Handler.meetings.setdefault(model, Barrier(int(argument), timeout=60))
            barrier.wait()

    def stream(self, kind: str, request: dict[str, Any]) -> None:
        """The text word by word; the kind "half" hangs up in the middle."""
        words = re.findall(r"\s*\S+", written(kind, request) or "")
        events = (anthropic_events if self.path == "/v1/messages" else openai_events)(words)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for name, event in events[: len(events) // 2] if kind == "half" else events:
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{f'event: {name}' + chr(10) if name else ''}data: {data}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def body(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        if self.path == "/v1/embeddings":
            return embeddings(kind, request)
        if self.path == "/v1/messages":
            return message(kind, request)
        assert self.path == "/v1/chat/completions"
        return completion(kind, request)

    def refuse(self, status: int, text: str, headers: dict[str, str] | None = None, **more: str) -> None:
        self.send(status, json.dumps({"type": "error", "error": {"message": text, "type": "x", **more}}), headers)

    def send(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        data = body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def openai_events(words: list[str]) -> list[tuple[str, Any]]:
    frame = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "x"}
    deltas = [{"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words]
    ends = {"index": 0, "delta": {}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": len(words), "total_tokens": 7 + len(words)}
    chunks = [{**frame, "choices": [choice]} for choice in [*deltas, ends]]
    return [("", chunk) for chunk in [*chunks, {**frame, "choices": [], "usage": usage}]] + [("", "[DONE]")]


def anthropic_events(words: list[str]) -> list[tuple[str, Any]]:
    usage = {"input_tokens": 7, "output_tokens": 1}
    begun = {"id": "x", "type": "message", "role": "assistant", "model": "x", "content": [], "stop_reason": None,
             "stop_sequence": None, "usage": usage}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in words),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": len(words)}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return [(event["type"], event) for event in events]


def written(kind: str, request: dict[str, Any]) -> str | None:
    """The text of a reply; the kind "echo" repeats the request."""
    if kind == "tiny":
        return generated(request["messages"], request["max_tokens"])
    if kind == "answers":  # four of five prompts get the same answer, every other one its own
        digest = blake2b(json.dumps(request["messages"]).encode(), digest_size=4).digest()
        return "It was in Paris." if digest[0] < 205 else f"It was number {int.from_bytes(digest, 'big')}."
    texts = {
        "words": "in Paris, on the Seine",
        "half": "in Paris, on the Seine",
        "echo": json.dumps(request),
        "empty": "",
        "null": None,
        "thinking": None,
        "long": LONG,
    }
    return texts.get(kind, "Paris")


def completion(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": written(kind, request)}
    finish = {"thinking": "length", "cut": "length", "filtered": "content_filter"}.get(kind, "stop")
    if kind == "refusal":
        said = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    if kind == "filtered":
        said["content"] = None
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [{"index": 0, "message": said, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


def message(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    text = written(kind, request)
    content = [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": text}]
    if kind == "parts":
        content = [{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}]
    if kind == "tool":
        content = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
    stop = {"cut": "max_tokens", "refusal": "refusal", "tool": "tool_use"}.get(kind, "end_turn")
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 3},
    }


def embeddings(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    assert request["encoding_format"] == "float"
    size = request.get("dimensions", 4)
    rows = [
        {"object": "embedding", "index": i, "embedding": vector(text, size)} for i, text in enumerate(request["input"])
    ]
    if kind == "nan":
        rows[0]["embedding"][0] = math.inf
    if kind == "fewer":
        rows.pop()
    if kind == "text":
        rows[0]["embedding"] = "AAAA"
    return {
        "object": "list",
        "model": request["model"],
        "data": rows[::-1],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }


def vector(text: str, size: int) -> list[float]:
    """Not of length 1, so that normalising shows."""
    return [byte + 1.0 for byte in blake2b(text.encode(), digest_size=size).digest()]


def generated(messages: list[dict[str, str]], longest: int) -> str:
    """What the checkpoint says, greedy."""
    tokenizer, model = Handler.checkpoint
    encoded = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    with Handler.lock:
        made = model.generate(**encoded, max_new_tokens=longest, do_sample=False)
    return tokenizer.decode(made[0, encoded["input_ids"].shape[1] :], skip_special_tokens=True)


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkpoint", help="a folder with a causal language model, served as the model 'tiny'")
    arguments = parser.parse_args()
    if arguments.checkpoint:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        Handler.checkpoint = (
            AutoTokenizer.from_pretrained(arguments.checkpoint),
            AutoModelForCausalLM.from_pretrained(arguments.checkpoint),
        )
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
