"""How a running system is asked, and how documents are added and removed: from its OpenAPI page and its first reply.

Operations and fields are chosen by their names. It is a guess, which `redteam check` then tries. Page and replies are
hostile: their size, references and depth are bounded, they name no host and no variable of the environment.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from unpoison.bench.redteam.hosts import Hosts
from unpoison.bench.redteam.http_client import HttpClient, Reply
from unpoison.bench.redteam.http_target import HttpTarget
from unpoison.bench.redteam.targets import Answered, passages_of
from unpoison.core.passages import Passage
from unpoison.errors import InputError, TargetError, clip
from unpoison.text.canonical import canonical
from unpoison.text.sentences import sentences

__all__ = ["SEEDS", "OpenApi", "discover", "origin", "shown_passages"]

SEEDS = (
    "What are these documents about, and who wrote them?",
    "Which numbers, dates, deadlines and limits are there?",
    "Who is responsible, and how can they be reached?",
    "What are the rules, and what are the exceptions?",
    "How does it work, and what does it cost?",
)
"""Asked where no question is given; each has words that many documents have."""

MAX_ASKED, MAX_SHOWN = 30, 200
"""Questions that are asked to see documents, and passages that are collected."""

TOKEN = "RAG_TOKEN"  # noqa: S105  the name of a variable
QUESTIONS = ("question", "query", "q", "prompt", "message", "input", "user_input", "user_message", "text", "content")
ANSWERS = ("answer", "response", "result", "output", "output_text", "reply", "token", "delta", "text", "content")
PASSAGES = (
    "passages", "context", "contexts", "documents", "source_documents", "source_nodes", "sources", "citations",
    "chunks", "results", "matches", "hits", "references", "retrieved", "docs", "evidence",
)  # fmt: skip
TEXTS = ("text", "content", "page_content", "passage", "document", "body", "data", "chunk")
LISTS = ("documents", "texts", "passages", "chunks", "items", "docs", "data", "contents")
IDS = ("id", "ids", "document_id", "doc_id", "document_ids", "doc_ids", "uuid", "file_id")
SESSIONS = ("session_id", "sessionid", "thread_id", "conversation_id", "chat_id", "session", "user_id", "user")
NAMES = ("source", "filename", "file_name", "name", "url", "canary")
"""Names of fields, the surest first."""

WORDS = {
    "ask": ("ask", "answer", "chat", "query", "question", "rag", "qa", "completions", "generate", "search", "invoke"),
    "plant": ("documents", "document", "docs", "add", "ingest", "upload", "index", "texts", "insert", "files"),
    "remove": ("delete", "remove", "documents", "document", "docs"),
}
METHODS = {"ask": ("POST", "GET"), "plant": ("POST", "PUT"), "remove": ("DELETE", "POST")}
OWN = {"ask": "{question}", "plant": "{text}", "remove": "{id}"}
"""Of each call: words of its path, the surest first; its methods; and what its request must hold."""

CHATS = {
    "/chat/completions": ("/v1/chat/completions", "/v1/models", "data", "id"),
    "/api/chat": ("/api/chat", "/api/tags", "models", "name"),
}
"""By the end of a chat endpoint's path: the path, and where its server lists models."""

WRONG_BODY = (400, 415, 422, 500)
"""Statuses that say that the question may have another name."""
MAX_DEPTH, MAX_MEMBERS, MAX_REFERENCES, MAX_OPERATIONS = 8, 100, 30, 500

_PLACE = re.compile(r"\{([^{}/]{1,100})\}")


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
    """The section `target` for a system, with `plant` and `remove` where its OpenAPI page describes them.

    Args:
        where: Its address, the address that answers, or that of its OpenAPI page.
        hosts: Where requests may go.
        model: Of a chat endpoint; the first that it lists by default.
        questions: Asked one after the other until passages are shown.
        environment: What `${NAME}` stands for.

    Raises:
        InputError: Nothing there is known to answer, it wants a key, or it answers with a page.
        OptionError: It is no address, or one that may not be tested.
        TargetError: No reply, or an error.
    """
    client = HttpClient(hosts, environment, 10.0)
    client.check(where)
    path = urlsplit(where).path.rstrip("/")
    page = _read_page(client, where if path.endswith(".json") else f"{origin(where)}/openapi.json")
    path = "" if path.endswith(".json") else path
    target: dict[str, Any] = {}
    headers = {"headers": page.headers} if page and page.headers else {}
    if not headers and environment.get(TOKEN):
        headers = {"headers": {"Authorization": f"Bearer ${{{TOKEN}}}"}}
    for kind in ("plant", "remove") if page else ():
        if call := page and page.request(kind):
            target[kind] = call
    asks = _ways_to_ask(client, where, path, page, model, headers)
    if not asks:
        raise InputError(
            f"{clip(origin(where))} has neither an OpenAPI page with an operation that takes a question nor a chat "
            f"endpoint; give the address that answers, such as {clip(origin(where))}/ask, or a target file"
        )
    reply, ask = Reply(0, ""), asks[0]
    for ask in asks:
        asked = HttpTarget({**headers, "ask": {**ask, "answer": "text"}}, hosts, environment=environment)
        reply = asked.ask_raw(questions[0], allowed=range(300, 600))
        if reply.status not in WRONG_BODY:
            break
    for number, question in enumerate(questions):
        reply = asked.ask_raw(question) if number else reply
        _refuse(where, reply)
        paths = reply_paths(reply)
        if "passages" in paths:
            break
    else:
        paths = reply_paths(reply, empty=True)
    return {**headers, "ask": ask | paths, **target}


def _refuse(where: str, reply: Reply) -> None:
    """Raise where a reply is no answer."""
    if reply.status in (401, 403):
        raise InputError(
            f"{clip(where)} wants a key (status {reply.status}): export {TOKEN}=... and it is sent as 'Authorization: "
            "Bearer'; for another header write a target file: unpoison redteam init"
        )
    if reply.text.lstrip()[:200].lower().startswith(("<!doctype html", "<html")):
        raise InputError(
            f"{clip(where)} answers with an HTML page in place of JSON; give the address of the API behind it, such as "
            f"{clip(origin(where))}/ask, or a target file"
        )
    if reply.status >= 300:
        raise TargetError(
            f"{clip(where)} answered a question with status {reply.status}: {clip(reply.text, 200)}; give the address "
            "that answers, or a target file: unpoison redteam init"
        )


def _ways_to_ask(
    client: HttpClient, where: str, path: str, page: OpenApi | None, model: str | None, headers: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Requests to try, the surest first."""
    for end, (whole, listing, members, name) in CHATS.items():
        described = page is not None and page.request("ask") is not None
        if not path.endswith(end) and (path not in ("", "/v1") or described):
            continue
        models = _models(client, f"{origin(where)}{listing}", members, name, headers)
        if models or path.endswith(end):
            url = where if path.endswith(end) else f"{origin(where)}{whole}"
            chosen = model or (models[0] if models else "${RAG_MODEL}")
            return [{"url": url, "body": {"model": chosen, "messages": _MESSAGES, "stream": False}}]
    described_here = page.request("ask", path or None) if page else None
    if described_here or not path:
        return [described_here] if described_here else []
    return [
        {"url": where, "body": {name: "{question}"}} for name in ("question", "query", "message", "prompt", "input")
    ]


_MESSAGES = [{"role": "user", "content": "{question}"}]


def _models(client: HttpClient, url: str, members: str, name: str, headers: Mapping[str, Any]) -> list[str]:
    try:
        listed = client.send("the list of models", "GET", url, **client.fill(dict(headers), {}, header=True)).json
    except TargetError:
        return []
    rows = listed.get(members) if isinstance(listed, Mapping) else None
    names = [row.get(name) for row in rows[:MAX_MEMBERS] if isinstance(row, Mapping)] if isinstance(rows, list) else []
    return [one for one in names if isinstance(one, str) and one and "${" not in one]


def reply_paths(reply: Reply, *, empty: bool = False) -> dict[str, str]:
    """The paths of `answer`, and of `passages` where there are some, in a reply or in the events of a stream.

    Args:
        reply: It.
        empty: Whether a list without members counts where it is called as passages are.
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
    """(path, name in small letters, member) of every field, the shallowest first; of a list its first member's."""
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
        return len(value.split()) > 3  # with fewer words it is a name
    try:
        return isinstance(value, Mapping) and bool(Passage.of(value).text)
    except InputError:
        return False


class Operation(NamedTuple):
    """One operation of an OpenAPI page; `query` are its parameters in the address, `body` is its schema."""

    method: str
    path: str
    words: frozenset[str]
    query: tuple[str, ...]
    kind: str
    body: Any


class OpenApi:
    """An OpenAPI page (3.x).

    Args:
        values: The document.
        base: Scheme, host and port where it was found; another server that it names is not used.
    """

    def __init__(self, values: Mapping[str, Any], base: str) -> None:
        self._values = values
        servers = values.get("servers")
        server = _mapping(servers[0]).get("url") if isinstance(servers, list) and servers else ""
        self._base = base + urlsplit(str(server or "")).path.rstrip("/")
        self._operations = list(islice(self._read_operations(), MAX_OPERATIONS))

    @property
    def headers(self) -> dict[str, str]:
        """How it wants to be authorised: a bearer token or a key in a header."""
        schemes = _mapping(_mapping(self._values.get("components")).get("securitySchemes"))
        for scheme in map(_mapping, schemes.values()):
            if scheme.get("type") == "http" and str(scheme.get("scheme")).lower() == "bearer":
                return {"Authorization": f"Bearer ${{{TOKEN}}}"}
            if scheme.get("type") == "apiKey" and scheme.get("in") == "header" and isinstance(scheme.get("name"), str):
                return {scheme["name"]: "${RAG_API_KEY}"}
        return {}

    def request(self, kind: str, path: str | None = None) -> dict[str, Any] | None:
        """The request of `ask`, `plant` or `remove` that fits best, or of the operation at a path; None without one."""
        ranks = {word: rank for rank, word in enumerate(WORDS[kind])}
        usable = [one for one in self._operations if one.method in METHODS[kind]]
        if path is not None:
            chosen = [one for one in usable if (self._base + one.path).endswith(path)]
        else:
            chosen = [one for one in usable if one.words & ranks.keys() and self._plausible(kind, one)]
            chosen.sort(
                key=lambda one: (METHODS[kind].index(one.method), min(ranks[w] for w in one.words & ranks.keys()))
            )
        return next(filter(None, (self._fill_request(kind, one) for one in chosen)), None)

    def _plausible(self, kind: str, one: Operation) -> bool:
        if kind == "plant":
            return not one.words & {"delete", "remove", "ask", "chat", "query", "search"}
        return kind == "ask" or one.method == "DELETE" or bool(one.words & {"delete", "remove"})

    def _fill_request(self, kind: str, one: Operation) -> dict[str, Any] | None:
        last = one.path.rpartition("/")[2]
        path = one.path
        for name in _PLACE.findall(path):
            place = "{id}" if kind == "remove" and last == f"{{{name}}}" else f"${{RAG_{_variable(name)}}}"
            path = path.replace(f"{{{name}}}", place, 1)
        query = "&".join(f"{quote(name)}={place}" for name in one.query if (place := _place(name, kind)))
        filled: dict[str, Any] = {"method": one.method, "url": f"{self._base}{path}{'?' if query else ''}{query}"}
        if "multipart" in one.kind and kind == "plant":
            files = [
                name
                for name, part in _properties(self._schema(one.body))
                if self._schema(part).get("format") == "binary"
            ]
            filled |= {"file": next(iter(files), "file")}
        elif one.body is not None:
            filled |= {"body": self._fill_body(one.body, kind, 0)}
        if OWN[kind] not in json.dumps(filled) and "file" not in filled:
            return None
        return filled | ({"id": f"$[{','.join(IDS)}]"} if kind == "plant" else {})

    def _fill_body(self, part: Any, kind: str, depth: int) -> Any:
        """A body with its places; fields that must be there and are not known have a default."""
        schema, own = self._schema(part), OWN[kind]
        if depth > MAX_DEPTH:
            return None
        if schema.get("type") == "array":
            items = self._schema(schema.get("items"))
            return [own] if items.get("type") == "string" else [self._fill_body(items, kind, depth + 1)]
        order = {"ask": ("messages", *QUESTIONS), "plant": (*TEXTS, *LISTS), "remove": IDS}[kind]
        required, filled, done = schema.get("required") or (), dict[str, Any](), False
        for name, inner in sorted(
            _properties(schema), key=lambda p: order.index(p[0]) if p[0] in order else len(order)
        ):
            field, place = self._schema(inner), _place(name, kind)
            if kind == "ask" and name == "messages":
                filled[name], done = _MESSAGES, True
            elif kind == "plant" and name in ("metadata", "meta"):
                filled[name] = {"canary": "{canary}"}
            elif field.get("type") == "array" and not done and (name in LISTS or place == own):
                filled[name], done = self._fill_body(field, kind, depth + 1), True
            elif place is not None and field.get("type") in (None, "string") and not (place == own and done):
                filled[name], done = place, done or place == own
            elif name in required:
                filled[name] = _default(field)
        return filled

    def _read_operations(self) -> Iterator[Operation]:
        for path, item in _mapping(self._values.get("paths")).items():
            for method in ("get", "post", "put", "delete"):
                described = _mapping(item).get(method)
                if not isinstance(described, Mapping) or not isinstance(path, str) or not path.startswith("/"):
                    continue
                content = _mapping(self._resolve(described.get("requestBody")).get("content"))
                kind = min(content, key=lambda kind: "json" not in str(kind), default="")
                names = f"{_PLACE.sub('', path)} {described.get('operationId') or ''}"[:1000]
                parameters = described.get("parameters")
                query = map(self._resolve, parameters[:MAX_MEMBERS] if isinstance(parameters, list) else ())
                yield Operation(
                    method.upper(),
                    path,
                    frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z]{1,40}", names)),
                    tuple(str(one.get("name"))[:100] for one in query if one.get("in") == "query"),
                    str(kind),
                    _mapping(content.get(kind)).get("schema"),
                )

    def _schema(self, part: Any) -> Mapping[str, Any]:
        """A schema with its reference followed, `allOf` merged, and the first member of `anyOf` that is not null."""
        schema = self._resolve(part)
        for key in ("allOf", "anyOf", "oneOf"):
            parts = [self._resolve(one) for one in islice(schema.get(key) or (), 10)]
            chosen = parts if key == "allOf" else [one for one in parts if one.get("type") != "null"][:1]
            for one in chosen:
                own = {**_mapping(schema.get("properties")), **_mapping(one.get("properties"))}
                schema = {**schema, **one, **({"properties": own} if own else {})}
        return schema

    def _resolve(self, part: Any) -> Mapping[str, Any]:
        """What a reference within the document leads to; those elsewhere are not followed."""
        for _ in range(MAX_REFERENCES):
            reference = _mapping(part).get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/"):
                break
            part = self._values
            for step in reference[2:].split("/")[:20]:
                part = _mapping(part).get(step.replace("~1", "/").replace("~0", "~"))
        return _mapping(part)


def _read_page(client: HttpClient, url: str) -> OpenApi | None:
    """The OpenAPI page at an address; None where there is none.

    Raises:
        InputError: It names a variable of the environment, which would be sent to the system.
    """
    try:
        reply = client.send("the OpenAPI page", "GET", url)
        values = reply.json
    except TargetError as error:
        if "cannot reach" in str(error):
            raise
        return None
    if "${" in reply.text:
        raise InputError("the OpenAPI page names a variable of your environment; write the target file by hand")
    return OpenApi(values, origin(url)) if isinstance(values, Mapping) and values.get("paths") else None


def shown_passages(
    ask: Callable[[str], Answered],
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
    """The place for a field of this name in a call of this kind; None where none is known."""
    plain = name.lower()
    if kind == "ask":
        return "{question}" if plain in QUESTIONS else "{uuid}" if plain in SESSIONS else None
    if kind == "remove":
        return "{id}" if plain in IDS else None
    if plain in TEXTS:
        return "{text}"
    return "{uuid}" if plain in IDS else "{title}" if plain == "title" else "{canary}" if plain in NAMES else None


def _default(schema: Mapping[str, Any]) -> Any:
    choices = schema.get("enum")
    given = [
        schema.get("default"),
        schema.get("example"),
        choices[0] if isinstance(choices, list) and choices else None,
    ]
    empty = {"integer": 1, "number": 1.0, "boolean": False, "array": [], "object": {}}.get(str(schema.get("type")), "")
    return next((one for one in given if isinstance(one, (str, int, float, bool))), empty)


def _variable(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]", "_", name.upper()).removeprefix("RAG_")[:60]


def _mapping(value: Any) -> Mapping[str, Any]:
    """The value, where it is what it should be: the page is somebody else's."""
    return value if isinstance(value, Mapping) else {}


def _properties(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(_mapping(schema.get("properties")).items())[:MAX_MEMBERS]
