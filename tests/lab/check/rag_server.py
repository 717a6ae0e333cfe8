"""A RAG system over HTTP in this process: a page that describes it, a chat endpoint, and what may go wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANDBOOK = {
    "hr/leave.md": "Full-time employees have 30 days of paid leave each year. The parental leave lasts 12 months.",
    "hr/travel.md": "The travel allowance is 45 euros a day. Receipts are handed in within 60 days.",
    "it/backup.md": "Backups are kept for 90 days. The maximum size of a mailbox is 50 GB.",
}


def _text(name: str) -> dict[str, Any]:
    return {
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
            }
        }
    }


OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/ask": {"post": {"operationId": "ask", "requestBody": _text("question"), "responses": {"200": {}}}},
        "/documents": {"post": {"operationId": "add", "requestBody": _text("text"), "responses": {"200": {}}}},
        "/documents/{doc_id}": {"delete": {"operationId": "delete", "responses": {"200": {}}}},
    },
}
"""As FastAPI describes an application whose replies have no model."""


class Rag:
    """Its state.

    Attributes:
        url: Its address.
        documents: (text, source) by id.
        openapi: Its page; None where it has none.
        fixed: What a path replies whatever is asked: (status, type, content).
        key: What it wants as a bearer token.
        chats: Whether it has an OpenAI-compatible chat endpoint.
        shows: Whether replies have the passages.
        planted: Texts that were added so far.
    """

    def __init__(self) -> None:
        self.url = ""
        self.documents = {f"first-{i}": (text, name) for i, (name, text) in enumerate(HANDBOOK.items())}
        self.openapi: dict[str, Any] | None = OPENAPI
        self.fixed: dict[str, tuple[int, str, str]] = {}
        self.key = ""
        self.chats = False
        self.shows = True
        self.planted: list[str] = []
        self.asked: list[str] = []

    def answer(self, question: str) -> tuple[str, list[dict[str, str]]]:
        self.asked.append(question)
        words = set(question.casefold().split())
        ranked = sorted(self.documents.values(), key=lambda one: -len(words & set(one[0].casefold().split())))
        best = [{"text": text, "source": source} for text, source in ranked[:5]]
        return best[0]["text"], best if self.shows else []

    def respond(self, method: str, path: str, key: str, body: Any) -> tuple[int, Any]:
        if path == "/openapi.json":
            return (404, {}) if self.openapi is None else (200, self.openapi)
        if self.key and key != f"Bearer {self.key}":
            return 401, {"detail": "who are you?"}
        if method == "POST" and path in ("/ask", "/chat"):
            name = "question" if path == "/ask" else "query"
            if name not in body:
                return 422, {"detail": f"{name} is missing"}
            text, passages = self.answer(body[name])
            return 200, {"answer": text, **({"sources": passages} if self.shows else {})}
        if path in ("/v1/models", "/v1/chat/completions") and self.chats:
            if method == "GET":
                return 200, {"data": [{"id": "handbook"}]}
            text, passages = self.answer(body["messages"][-1]["content"])
            cited = [{"content": one["text"], "filepath": one["source"]} for one in passages]
            return 200, {"choices": [{"message": {"content": text, "context": {"citations": cited}}}]}
        if method == "POST" and path == "/documents":
            self.planted.append(body["text"])
            self.documents[f"doc-{len(self.planted)}"] = (body["text"], "upload")
            return 200, {"doc_id": f"doc-{len(self.planted)}"}
        if method == "DELETE" and path.startswith("/documents/"):
            known = path.rpartition("/")[2] in self.documents
            self.documents.pop(path.rpartition("/")[2], None)
            return (200, {}) if known else (404, {})
        return 404, {"detail": path}


@contextmanager
def serve_rag() -> Iterator[Rag]:
    """Serve one on a free port of this machine."""
    rag, lock = Rag(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *parts: object) -> None:
            pass

        def handle_any(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path in rag.fixed:
                status, kind, text = rag.fixed[self.path]
            else:
                with lock:
                    key = self.headers.get("Authorization", "")
                    status, reply = rag.respond(self.command, self.path, key, json.loads(content or b"{}"))
                kind, text = "application/json", json.dumps(reply)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_DELETE = handle_any  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    rag.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield rag
    finally:
        server.shutdown()
        server.server_close()
