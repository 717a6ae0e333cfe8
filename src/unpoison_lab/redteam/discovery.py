"""Detects the endpoints of a running system for asking and for adding and removing documents.

Operations and fields are chosen by their names. It is a guess; the rehearsal of a test tries it. Page and replies are
untrusted: their size, references and depth are bounded, they name no host and no variable of the environment.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import urlsplit

from unpoison.core.passages import Passage
from unpoison.errors import InputError, TargetError, clip
from unpoison.text.canonical import canonical
from unpoison.text.sentences import sentences
from unpoison_lab.redteam.http_client import Hosts, HttpClient, HttpReply
from unpoison_lab.redteam.http_target import HttpTarget, ReplyPath
from unpoison_lab.redteam.targets import TargetReply, passages_of

__all__ = ["SEEDS", "OpenApi", "discover", "shown_passages"]

SEEDS = (
    "What are these documents about, and who wrote them?",
    "Which numbers, dates, deadlines and limits are there?",
    "Who is responsible, and how can they be reached?",
    "What are the rules, and what are the exceptions?",
    "How does it work, and what does it cost?",
)
"""Default questions; each has words that occur in many documents."""

MAX_ASKED, MAX_SHOWN = 30, 200
"""Limits of questions asked and passages collected."""

TOKEN = "RAG_TOKEN"  # noqa: S105  the name of a variable
IDS = ("id", "ids", "document_id", "doc_id", "document_ids", "doc_ids", "uuid", "file_id")
PLACES: dict[str, dict[str, tuple[str, ...]]] = {
    "ask": {
        "{question}": ("question", "query", "q", "prompt", "message", "input", "text", "content"),
        "{uuid}": ("session_id", "thread_id", "conversation_id", "chat_id", "session", "user_id", "user"),
    },
    "plant": {
        "{text}": ("text", "content", "page_content", "passage", "documents", "texts", "passages", "chunks", "docs",
                   "document", "data"),
        "{title}": ("title",),
        "{uuid}": IDS,
        "{canary}": ("source", "filename", "file_name", "name", "url", "canary"),
    },
    "remove": {"{id}": IDS},
}  # fmt: skip
"""Call -> placeholder, the required one first -> names of request fields, most specific first."""

ANSWERS = ("answer", "response", "result", "output", "output_text", "reply", "token", "delta", "text", "content")
PASSAGES = ("passages", "context", "contexts", "documents", "source_documents", "source_nodes", "sources", "citations",
            "chunks", "results", "references", "retrieved", "docs")  # fmt: skip
"""Fields of a reply, most specific first."""

METHODS = {"ask": "POST", "plant": "POST", "remove": "DELETE"}
WORDS = {
    "ask": ("ask", "answer", "chat", "query", "question", "rag", "qa", "completions", "generate", "search", "invoke"),
    "plant": ("documents", "document", "docs", "add", "ingest", "upload", "index", "texts", "insert", "files"),
    "remove": ("documents", "document", "docs", "texts", "files"),
}
"""An operation's method, and words in its path and name, most specific first."""
NO_PLANTING = frozenset(("ask", "chat", "query", "search", "delete", "remove"))

CHAT, MODELS = "/v1/chat/completions", "/v1/models"
"""Paths of an OpenAI-compatible chat endpoint, and of its list of models."""

MAX_DEPTH, MAX_MEMBERS, MAX_REFERENCES, MAX_OPERATIONS = 8, 100, 30, 500

_PLACE = re.compile(r"\{([^{}/]{1,100})\}")
_MESSAGES = [{"role": "user", "content": "{question}"}]


def origin(url: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def discover(
    where: str,
    hosts: Hosts,
    *,
    model: str | None = None,
    questions: Sequence[str] = SEEDS,
    environment: Mapping[str, str] = os.environ,
) -> dict[str, Any]:
    """The section `target` for a system, with `plant` and `remove` if its OpenAPI page describes them.

    Args:
        where: Its address, the address that answers, or that of its OpenAPI page.
        hosts: Where requests may go.
        model: Of a chat endpoint; the first that it lists by default.
        questions: Asked one after the other until passages are shown.
        environment: The values of `${NAME}`.

    Raises:
        InputError: Nothing there is known to answer, it wants a key, or it answers with a page.
        OptionError: It is not an address, or it may not be tested.
        TargetError: No reply, or an error.
    """
    client = HttpClient(hosts, environment, 10.0)
    hosts.check(where)
    path = urlsplit(where).path.rstrip("/").removesuffix("/openapi.json")
    page = _read_page(client, f"{origin(where)}/openapi.json")
    headers = {"Authorization": f"Bearer ${{{TOKEN}}}"} if environment.get(TOKEN) else {}
    ask = _way_to_ask(client, where, path, page, model, headers)
    asked = HttpTarget({"headers": headers, "ask": {**ask, "answer": "text"}}, hosts, environment=environment)
    reply = asked.ask_raw(questions[0], allowed=range(300, 600))
    _check_reply(where, reply)
    for question in questions[1:]:
        if "passages" in reply_paths(reply):
            break
        reply = asked.ask_raw(question)
    found = {kind: page.request(kind) for kind in ("plant", "remove")} if page else {}
    target = {"headers": headers, "ask": ask | reply_paths(reply, empty=True), **found}
    return {name: value for name, value in target.items() if value}


def _check_reply(where: str, reply: HttpReply) -> None:
    """Reject a reply that is not an answer.

    Raises:
        InputError, TargetError: It is none.
    """
    better = f"give the address that answers, such as {clip(origin(where) + '/ask')}, or a target file"
    if reply.status in (401, 403):
        raise InputError(
            f"{clip(where)} wants a key (status {reply.status}): export {TOKEN}=... and it is sent as 'Authorization: "
            "Bearer'; for another header write a target file"
        )
    if reply.text.lstrip()[:200].lower().startswith(("<!doctype html", "<html")):
        raise InputError(f"{clip(where)} answers with an HTML page in place of JSON; {better}")
    if reply.status >= 300:
        raise TargetError(f"{clip(where)} answered with status {reply.status}, {clip(reply.text, 200)}; {better}")


def _way_to_ask(
    client: HttpClient, where: str, path: str, page: OpenApi | None, model: str | None, headers: Mapping[str, str]
) -> dict[str, Any]:
    """The request that asks: as the page describes it, that of a chat endpoint, or `question` in a JSON body.

    Raises:
        InputError: None is known.
    """
    here = path.endswith("/chat/completions")
    if page and not here and (described := page.request("ask", path)):
        return described
    if here or path in ("", "/v1"):
        sent = client.fill(dict(headers), {}, header=True)
        try:
            listed = ReplyPath("$.data[*].id").of(client.send("models", "GET", origin(where) + MODELS, headers=sent))
            models = [name for name in listed if isinstance(name, str) and "${" not in name]
        except TargetError:
            models = []
        if here or models:
            body = {"model": next(iter([*filter(None, [model]), *models]), "${RAG_MODEL}"), "stream": False}
            return {"url": where if here else origin(where) + CHAT, "body": {**body, "messages": _MESSAGES}}
        raise InputError(
            f"{clip(origin(where))} has neither an OpenAPI page with an operation that takes a question nor a chat "
            f"endpoint; give the address that answers, such as {clip(origin(where) + '/ask')}, or a target file"
        )
    return {"url": where, "body": {"question": "{question}"}}


def reply_paths(reply: HttpReply, *, empty: bool = False) -> dict[str, str]:
    """The paths of `answer`, and of `passages` if there are any, in a reply or in the events of a stream.

    Args:
        reply: The reply.
        empty: Whether an empty list counts if its name is one of passages.
    """
    if reply.events is None:
        try:
            values: list[Any] = [reply.json]
        except TargetError:
            return {"answer": "text"}
    else:
        values = [event for event in reply.events if isinstance(event, dict)]
    answers, passages = list[tuple[int, int, str]](), list[tuple[int, str]]()
    for value in values[:MAX_MEMBERS]:
        for number, (path, name, member) in enumerate(_fields(value)):
            if name in ANSWERS and isinstance(member, str):
                answers.append((ANSWERS.index(name), number, path))
            listed = name in PASSAGES and isinstance(member, list)
            if listed and (_is_passage(next(iter(member), None)) or (empty and not member)):
                passages.append((PASSAGES.index(name), f"{path}[*]"))
    found = {"answer": min(answers)[2] if answers else "$" if values and isinstance(values[0], str) else "text"}
    return found | ({"passages": min(passages)[1]} if passages else {})


def _fields(value: Any) -> Iterator[tuple[str, str, Any]]:
    """(path, lower-case name, member) of every field, the shallowest first; of lists only the first member."""
    waiting, looked = deque[tuple[str, Any, int]]([("$", value, 0)]), 0
    while waiting and looked < 1000:
        path, held, depth = waiting.popleft()
        looked += 1
        if depth > MAX_DEPTH:
            continue
        if isinstance(held, list) and held:
            waiting.append((f"{path}[0]", held[0], depth + 1))
        for name, member in islice(held.items(), MAX_MEMBERS) if isinstance(held, Mapping) else ():
            if isinstance(name, str) and name.isidentifier() and name.isascii():
                yield f"{path}.{name}", name.lower(), member
                waiting.append((f"{path}.{name}", member, depth + 1))


def _is_passage(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.split()) > 3  # shorter strings are names
    try:
        return isinstance(value, Mapping) and bool(Passage.of(value).text)
    except InputError:
        return False


class OpenApi:
    """An OpenAPI page (3.x).

    Args:
        values: The document.
        base: Scheme, host and port of the page; other servers that it names are not used.
    """

    def __init__(self, values: Mapping[str, Any], base: str) -> None:
        self._values = values
        servers = values.get("servers")
        server = _mapping(servers[0]).get("url") if isinstance(servers, list) and servers else ""
        self._base = base + urlsplit(str(server or "")).path.rstrip("/")

    def request(self, kind: str, at: str = "") -> dict[str, Any] | None:
        """The operation that fits best, or None.

        Args:
            kind: `ask`, `plant` or `remove`.
            at: The path of the operation; "" for any.
        """
        ranked = list[tuple[int, int, dict[str, Any]]]()
        for number, (path, item) in enumerate(islice(_mapping(self._values.get("paths")).items(), MAX_OPERATIONS)):
            described = _mapping(item).get(METHODS[kind].lower())
            if not isinstance(described, Mapping):
                continue
            names = f"{_PLACE.sub('', str(path))} {described.get('operationId') or ''}"[:1000]
            words = frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z]{1,40}", names))
            known = [rank for rank, word in enumerate(WORDS[kind]) if word in words]
            fits = bool(known) and (kind != "plant" or not words & NO_PLANTING)
            if at:
                fits = (self._base + str(path)).endswith(at)
            if fits and (filled := self._fill_request(kind, str(path), described)):
                ranked.append((min(known, default=0), number, filled))
        return min(ranked, key=lambda one: one[:2])[2] if ranked else None

    def _fill_request(self, kind: str, path: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
        if kind == "remove":
            path = re.sub(r"\{[^{}/]{1,100}\}$", "{id}", path)
        if not path.startswith("/") or set(_PLACE.findall(path)) - {"id" if kind == "remove" else ""}:
            return None  # the placeholder has no known value
        filled: dict[str, Any] = {"method": METHODS[kind], "url": f"{self._base}{path}"}
        content = _mapping(self._resolve(described.get("requestBody")).get("content"))
        form = min(map(str, content), key=lambda one: "json" not in one, default="")
        body = _mapping(content.get(form)).get("schema")
        if "multipart" in form and kind == "plant":
            fields = _mapping(self._schema(body).get("properties"))
            uploads = [name for name in fields if self._schema(fields[name]).get("format") == "binary"]
            filled["file"] = next(iter(uploads), "file")
        elif content:
            filled["body"] = self._fill_body(body, kind)
        if "file" not in filled and next(iter(PLACES[kind])) not in json.dumps(filled):
            return None
        return filled | ({"id": f"$[{','.join(IDS)}]"} if kind == "plant" else {})

    def _fill_body(self, part: Any, kind: str, depth: int = 0) -> Any:
        """A request body with placeholders; unknown required fields get defaults."""
        schema, (own, names) = self._schema(part), next(iter(PLACES[kind].items()))
        if schema.get("type") == "array" and depth < MAX_DEPTH:
            return [self._fill_body(schema.get("items"), kind, depth + 1)]
        properties = dict(islice(_mapping(schema.get("properties")).items(), MAX_MEMBERS))
        if not properties or depth == MAX_DEPTH:
            return own
        main = min((name for name in properties if name in names), key=names.index, default=None)
        filled: dict[str, Any] = {}
        for name, inner in properties.items():
            field, place = self._schema(inner), _place(name, kind)
            if kind == "ask" and name == "messages":
                filled[name], main = _MESSAGES, None
            elif kind == "plant" and name in ("metadata", "meta"):
                filled[name] = {"canary": "{canary}"}
            elif name == main:
                filled[name] = self._fill_body(field, kind, depth + 1)
            elif place not in (None, own) and field.get("type") in (None, "string"):
                filled[name] = place
            elif name in (schema.get("required") or ()):
                filled[name] = _default(field)
        return filled

    def _schema(self, part: Any) -> Mapping[str, Any]:
        """A schema with its reference followed, and with the first member of a union that is not null."""
        schema = self._resolve(part)
        for key in ("allOf", "anyOf", "oneOf"):
            members = [self._resolve(one) for one in islice(schema.get(key) or (), 10)]
            schema = {**next((one for one in members if one.get("type") != "null"), {}), **schema}
        return schema

    def _resolve(self, part: Any) -> Mapping[str, Any]:
        """Resolve a reference within the document; external references are not followed."""
        for _ in range(MAX_REFERENCES):
            reference = _mapping(part).get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            part = self._values
            for step in reference[2:].split("/")[:20]:
                part = _mapping(part).get(step.replace("~1", "/").replace("~0", "~"))
        return _mapping(part)


def _read_page(client: HttpClient, url: str) -> OpenApi | None:
    """The OpenAPI page at an address, or None.

    Raises:
        InputError: It names a variable of the environment, which would be sent to the system.
    """
    try:
        reply = client.send("the request for the OpenAPI page", "GET", url)
        values = reply.json
    except TargetError as error:
        if "cannot reach" in str(error):
            raise
        return None
    if "${" in reply.text:
        raise InputError("the OpenAPI page names a variable of your environment; write the target file by hand")
    return OpenApi(values, origin(url)) if isinstance(values, Mapping) and values.get("paths") else None


def shown_passages(
    ask: Callable[[str], TargetReply],
    seeds: Sequence[str] = SEEDS,
    progress: Callable[[int, int], None] = lambda d, t: None,
) -> tuple[list[Passage], int]:
    """Some of a system's passages: those shown for the seeds, and for the first sentence of each passage found so.

    Args:
        ask: The system.
        seeds: First questions.
        progress: Called with the questions asked, and the most that are.

    Returns:
        The passages, each text once, and how many questions were asked.
    """
    waiting, found, asked = deque(seeds), dict[str, Passage](), 0
    while waiting and asked < MAX_ASKED + len(seeds) and len(found) < MAX_SHOWN:
        progress(asked, MAX_ASKED + len(seeds))
        reply, asked = ask(waiting.popleft()), asked + 1
        for passage in passages_of(reply):
            read = canonical(passage.text[:4000]).text
            if (key := " ".join(read.casefold().split())) and key not in found:
                found[key] = passage
                waiting.extend(" ".join(read[start:end].split())[:200] for start, end in sentences(read)[:1])
    return list(found.values()), asked


def _place(name: str, kind: str) -> str | None:
    """The place for a field of this name in a call of this kind; None if unknown."""
    return next((place for place, names in PLACES[kind].items() if name.lower() in names), None)


def _default(schema: Mapping[str, Any]) -> Any:
    """A value for a required field of unknown meaning."""
    empty = {"integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}.get(str(schema.get("type")), "")
    choices = schema.get("enum")
    return schema.get("default", choices[0] if isinstance(choices, list) and choices else empty)


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one: the page is untrusted."""
    return value if isinstance(value, Mapping) else {}
