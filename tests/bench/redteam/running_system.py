"""A RAG system over HTTP as many are: behind a login, with conversations, jobs and pieces. In this process, for tests.

It keeps documents in a dictionary, and answers with the first one that shares a word with the question.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TRUTH = "The town hall of Alderbridge was built in 1200."


class RunningSystem:
    """The system's state, and what it was asked.

    Attributes:
        url: Its address.
        documents: Texts by their ids.
        marks: The canary that each document was added with.
        requests: (method, path, headers, body as text) of all requests.
        user_password: What the login wants.
        token_uses: Requests that a token is good for.
        piece: Characters of a piece, where texts are cut.
        page: Documents that a search shows at once.
        job_address, job_status: The `Location` with which a job is accepted, and the status; in place of its id.
        respond_to_planting: In place of the new ids, where it is set.
        cookie: What a new thread sets, in place of its name.
        described: Its OpenAPI document, where it has one.
        replies: Requests that are answered; the others never are.
        said: In place of an answer, where it is set; `{q}` stands for the question.
    """

    def __init__(self) -> None:
        self.url = ""
        self.documents: dict[str, str] = {"town-0": TRUTH}
        self.marks: dict[str, str] = {}
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self.user_password = "correct horse battery"
        self.token_uses, self.tokens, self.logins = 10**9, dict[str, int](), 0
        self.threads: dict[str, list[str]] = {}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.staged: list[tuple[str, str]] = []
        self.piece, self.page, self.number = 10**9, 10**9, 0
        self.said: str | None = None
        self.broken_job = False
        self.replies = 10**9
        self.job_address: str | None = None
        self.job_status = 202
        self.respond_to_planting: dict[str, Any] | None = None
        self.cookie: str | None = None
        self.described: dict[str, Any] | None = None
        self.lock = threading.Lock()

    def answer(self, question: str) -> dict[str, Any]:
        words = set(re.findall(r"[\w-]{4,}", question.casefold()))
        found = [key for key, text in self.documents.items() if words & set(re.findall(r"[\w-]{4,}", text.casefold()))]
        found.sort(key=lambda key: -len(words & set(re.findall(r"[\w-]{4,}", self.documents[key].casefold()))))
        text = self.documents[found[0]] if found else "I don't know."
        if self.said is not None:
            text = self.said.replace("{q}", question)
        return {
            "answer": text,
            "passages": [{"id": key, "text": self.documents[key]} for key in found[:5]],
            "files": [self.marks.get(key, key) for key in found[:5]],
        }

    def add(self, text: str, mark: str) -> list[str]:
        names = []
        for start in range(0, len(text), self.piece):
            self.number += 1
            names.append(f"piece-{self.number}")
            self.documents[names[-1]] = text[start : start + self.piece]
            self.marks[names[-1]] = mark
        return names

    def remove(self, key: str) -> bool:
        self.marks.pop(key, None)
        return self.documents.pop(key, None) is not None

    def bodies(self, path: str) -> list[str]:
        return [body for _, where, _, body in self.requests if where.startswith(path)]


@contextmanager
def serve_system() -> Iterator[RunningSystem]:
    """Serve one on a free port of this machine."""
    system = RunningSystem()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *parts: object) -> None:
            pass

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            with system.lock:
                system.requests.append((self.command, self.path, dict(self.headers), body))
                silent = len(system.requests) > system.replies
                status, reply, headers = respond(system, self.command, self.path, dict(self.headers), body)
            if silent:
                closed.wait(60)
                self.close_connection = True
                return None
            if isinstance(reply, list):
                return self.send_chunks(reply, headers)
            content = (reply if isinstance(reply, str) else json.dumps(reply)).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            return None

        def send_chunks(self, pieces: list[str], headers: dict[str, str]) -> None:
            """One chunk after the other, and no end: the connection stays open."""
            self.send_response(200)
            for name, value in {"Content-Type": "text/event-stream", **headers}.items():
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in map(str.encode, pieces):
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                self.wfile.flush()
            closed.wait(60)
            self.close_connection = True

        do_GET = do_POST = do_DELETE = do_PUT = handle_any  # noqa: N815

    closed = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    system.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield system
    finally:
        closed.set()
        server.shutdown()
        server.server_close()


Reply = tuple[int, Any, dict[str, str]]


def respond(system: RunningSystem, method: str, path: str, headers: dict[str, str], body: str) -> Reply:  # noqa: C901
    """One route after the other."""
    parts, query = urlsplit(path).path.strip("/").split("/"), parse_qs(urlsplit(path).query, keep_blank_values=True)
    if parts == ["login"]:
        system.logins += 1
        given = parse_qs(body) if "=" in body else json.loads(body or "{}")
        password = given.get("password")
        if (password[0] if isinstance(password, list) else password) != system.user_password:
            return 403, {"detail": f"wrong password {password}"}, {}
        token = f"token-of-login-{system.logins}-abcdef"
        system.tokens[token] = system.token_uses
        cookie = {"Set-Cookie": f"sessionid={token}; Path=/; HttpOnly"}
        return (200, {"access_token": token, "expires_in": 100}, cookie) if "form" not in query else (303, "", cookie)
    if parts[0] == "private":
        sent = headers.get("Authorization", "").removeprefix("Bearer ") or _cookies(headers).get("sessionid", "")
        if system.tokens.get(sent, 0) <= 0:
            return 401, {"detail": f"token {sent} has expired"}, {}
        system.tokens[sent] -= 1
        parts = parts[1:]
    if parts == ["openapi.json"] and system.described is not None:
        return 200, system.described, {}
    if parts == ["threads"]:
        name = f"thread-{len(system.threads) + 1}"
        system.threads[name] = []
        return 200, {"thread": {"id": name}}, {"Set-Cookie": system.cookie or f"seen={name}-cookie"}
    if parts[0] == "threads":
        if _cookies(headers).get("seen") != f"{parts[1]}-cookie":
            return 400, {"detail": "whose thread?"}, {}
        system.threads[parts[1]].append(json.loads(body)["question"])
        return (
            200,
            system.answer(system.threads[parts[1]][0]),
            {},
        )  # the first question of a thread is the one it is about
    if parts[-1] in ("completions", "chat"):
        return _chat(system, parts, json.loads(body))
    if parts == ["ask"]:
        given = json.loads(body)
        return 200, system.answer(given["question"]), {}
    if parts == ["ask.txt"]:
        return 200, system.answer(body)["answer"], {"Content-Type": "text/plain; charset=utf-8"}
    if parts == ["add"]:
        given = json.loads(body)
        system.staged.append((given["text"], given.get("mark", "")))
        if system.job_address is not None:
            _job(system)
            return system.job_status, "", {"Location": system.job_address}
        return 200, {"job": {"id": f"job-{len(system.jobs) + 1}"}} if "job" in query else {"staged": True}, _job(system)
    if parts == ["upsert"]:
        system.staged, staged = [], system.staged
        return 200, {"ids": [key for text, mark in staged for key in system.add(text, mark)]}, {}
    if parts[0] == "jobs":
        job = system.jobs[parts[1]]
        job["looks"] += 1
        if system.broken_job:
            return 200, {"status": "failed", "why": "no space"}, {}
        if job["looks"] == 2:
            system.staged, staged = [], system.staged
            job["ids"] = [key for text, mark in staged for key in system.add(text, mark)]
        return 200, {"status": "done" if job["looks"] >= 2 else "running", "ids": job.get("ids", [])}, {}
    if parts == ["documents"] and method == "POST" and "created" in query:
        given = json.loads(body)
        (key,) = system.add(given["text"], given.get("mark", ""))
        return 201, "", {"Location": f"documents/{key}", "X-Document": key}
    if parts == ["documents"] and method == "POST":
        given = json.loads(body)
        ids = system.add(given["text"], given.get("mark", ""))
        return 200, {"ids": ids} if system.respond_to_planting is None else system.respond_to_planting, {}
    if parts == ["documents"]:
        mark = query["mark"][0]
        own = [{"id": key, "mark": system.marks[key]} for key in system.marks if mark in system.marks[key]]
        return 200, {"documents": own[: system.page]}, {}
    if parts[0] == "documents" and method == "DELETE":
        return (200, {}, {}) if system.remove(parts[1]) else (404, {"detail": "no such document"}, {})
    return 404, {"detail": path}, {}


def _job(system: RunningSystem) -> dict[str, str]:
    system.jobs[f"job-{len(system.jobs) + 1}"] = {"looks": 0}
    return {}


def _cookies(headers: dict[str, str]) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in headers.get("Cookie", "").split(";"))
    return {name: value for name, _, value in pairs}


def _chat(system: RunningSystem, parts: list[str], given: dict[str, Any]) -> Reply:
    """OpenAI's and Ollama's chat endpoints, as a stream where it is wanted (Ollama: unless it is not)."""
    reply = system.answer(given["messages"][-1]["content"])
    openai = parts[-1] == "completions"
    words = [f"{word} " for word in reply["answer"].split(" ")]
    if openai and not given.get("stream"):
        message = {"role": "assistant", "content": reply["answer"]}
        return 200, {"choices": [{"index": 0, "message": message}], "citations": reply["files"]}, {}
    if openai:
        chunks = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
        return 200, [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DO", "NE]\n\n"], {}
    if not given.get("stream", True):
        return 200, {"message": {"role": "assistant", "content": reply["answer"]}, "done": True}, {}
    lines = [{"message": {"content": word}, "done": False} for word in words] + [
        {"message": {"content": ""}, "done": True}
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return 200, text, {"Content-Type": "application/x-ndjson"}
