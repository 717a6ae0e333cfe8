"""A system under test behind HTTP, as a configuration describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from unpoison.bench.redteam.http_client import ABSENT, Hosts, HttpClient, Response
from unpoison.bench.redteam.http_reply import Event, JsonPath, join_text, stream_text, stream_values
from unpoison.bench.redteam.http_request import Ask, Filled, Find, Headers, Plant, Ready, Remove, Request
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Answered, Document, check_handles
from unpoison.errors import OptionError, TargetError, clip

__all__ = ["HttpAsked", "HttpTarget"]


class Requests(Headers):
    """The section `target` of a system behind HTTP; its `headers` are those of all requests."""

    ask: Ask
    plant: Plant
    remove: Remove
    find: Find | None = None
    ready: Ready | None = None


class HttpAsked:
    """Asks a running system as a configuration says.

    Args:
        described: The request `ask`, perhaps others, and `headers` for all of them.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        timeout: Seconds that one request may take; the caller bounds the whole call.

    Raises:
        OptionError: A variable that is not set, or a host that may not be tested.
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, described: Headers, secrets: Secrets, hosts: Hosts, *, timeout: float = 30.0) -> None:
        self._requests = {
            kind: request.model_copy(update={"headers": {**described.headers, **request.headers}})
            for kind, request in described
            if isinstance(request, Request)
        }
        encrypted = any(request.url.startswith("https:") for request in self._requests.values())
        self._secrets, self._client = secrets, HttpClient(secrets, hosts, timeout, encrypted=encrypted)
        self.name = self._requests["ask"].url
        for kind in self._requests:  # what is not set and what is not allowed is said before a request
            self._client.check(self._fill(kind, {}).url)

    def ask(self, question: str) -> Answered:
        """The answer, and the passages where `ask.passages` says where they stand.

        Raises:
            TargetError: No reply, or one that cannot be used.
        """
        request = self._requests["ask"]
        response = self._client.send("ask", self._fill("ask", {"question": question}))
        events = self._client.events(response)
        if events is not None:
            return self._of_events(events)
        paths, replies = request.paths, self._replies("ask", response)
        several = paths["answer"].several
        answer = _texts(paths["answer"], replies["answer"]) if several else [_text(paths["answer"], replies["answer"])]
        return Answered(
            "\n".join(answer),
            tuple(_texts(paths["passages"], replies["passages"])) if "passages" in paths else None,
            tuple(str(value) for value in paths["ids"].values(replies["ids"])) if "ids" in paths else None,
        )

    def _of_events(self, events: Sequence[Event]) -> Answered:
        """The answer of a stream, put together of its pieces; passages may stand in any event, and in several."""
        paths = self._requests["ask"].paths
        whole = paths["answer"].whole
        answer = stream_text(events, "ask.answer") if whole else join_text(paths["answer"], events)
        found = {name: stream_values(path, events) for name, path in paths.items() if name != "answer"}
        return Answered(
            str(self._secrets.mask(answer)),  # a secret may come in pieces
            tuple(dict.fromkeys(_require_texts(paths["passages"], found["passages"]))) if "passages" in found else None,
            tuple(dict.fromkeys(map(str, found["ids"]))) if "ids" in found else None,
        )

    def describe(self, kind: str, values: Mapping[str, str]) -> str:
        """A request as it would be sent, without secrets."""
        filled = self._fill(kind, values)
        body = b"" if filled.content is None else filled.content
        if filled.file is not None:
            body = f"{dict(filled.fields)} and the file {filled.file[1]!r}: ".encode() + filled.file[2]
        headers = "".join(f"\n  {name}: {value}" for name, value in filled.headers.items())
        text = f"{filled.method} {filled.url}{headers}\n  {body.decode('utf-8', 'replace')}"
        return str(self._secrets.mask(text)).rstrip()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The requests that the configuration describes."""
        return tuple(self._requests)

    def _fill(self, kind: str, values: Mapping[str, str]) -> Filled:
        return self._requests[kind].fill(values, self._secrets)

    def _reply(self, kind: str, values: Mapping[str, str], *, parsed: bool = True, absent: bool = False) -> Any:
        """The JSON of a reply, or its text where the configuration asks for it; None where there is nothing."""
        allowed = ABSENT if absent else ()
        response = self._client.send(kind, self._fill(kind, values), allowed=allowed)
        if response.status in allowed or not parsed:
            return None
        return next(iter(self._replies(kind, response).values()))

    def _replies(self, kind: str, response: Response) -> dict[str, Any]:
        """What each path is followed in: the JSON of a reply, or its text."""
        paths = self._requests[kind].paths
        json_reply = None if all(path.whole for path in paths.values()) else self._client.parse_json(kind, response)
        return {name: self._client.text(kind, response) if path.whole else json_reply for name, path in paths.items()}


class HttpTarget(HttpAsked):
    """Speaks to a running system as the `target` of a configuration says.

    Args:
        values: The requests by their kind (`ask`, `plant`, `remove`, and perhaps `find` and `ready`), and `headers` for
            all of them.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        timeout: Seconds that one request may take; the caller bounds the whole call.

    Raises:
        UnknownNameError: A field that is none.
        OptionError: A field that cannot be used, a variable that is not set, or a host that may not be tested.
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, values: Mapping[str, Any], secrets: Secrets, hosts: Hosts, *, timeout: float = 30.0) -> None:
        described = Requests.read(values, "target")
        self.marks = not described.plant.used.isdisjoint(("canary", "uuid"))
        self.tells_passages = not {"passages", "ids"}.isdisjoint(described.ask.paths)
        if described.plant.id is None:
            if not self.marks:
                raise OptionError("plant needs id, the path of the new document's id, or {canary} or {uuid} as its id")
            self.own_ids = self._own_ids
        if described.find is not None:
            self.find = self._find
        if described.ready is not None:
            self.ready = self._ready
        super().__init__(described, secrets, hosts, timeout=timeout)

    def plant(self, documents: Sequence[Document]) -> list[str]:
        """Add documents, one request each; the ids that the system gave them.

        Raises:
            TargetError: No reply, or one without an id; it says whether surely nothing was planted.
        """
        handles = list[str]()
        for document in documents:
            values = {name: getattr(document, name) or "" for name in ("text", "title", "canary", "uuid")}
            reply = self._reply("plant", values, parsed="id" in self._requests["plant"].paths)
            path = self._requests["plant"].paths.get("id")
            ids = self._own_ids(document.canary) if path is None else path.values(reply)
            handles += check_handles(ids, "plant.id")
        return handles

    def remove(self, handles: Sequence[str]) -> list[str]:
        """Remove documents, one request each; the ids that the system does not know."""
        return [
            handle
            for handle in check_handles(handles, "the journal")
            if self._client.send("remove", self._fill("remove", {"id": handle}), allowed=ABSENT).status in ABSENT
        ]

    def _own_ids(self, canary: str) -> list[str]:
        """Ids that we chose ourselves: whichever of the two marks `plant` has for an id; `remove` takes it as {id}."""
        return [canary if "canary" in self._requests["plant"].used else Document("", canary).uuid]

    def _find(self, canary: str) -> list[str]:
        """The ids of the documents that carry the canary, each checked for it: a search may return others too."""
        paths = self._requests["find"].paths
        reply = self._reply("find", {"canary": canary, "uuid": Document("", canary).uuid}, absent=True)
        own = {canary, Document("", canary).uuid}
        marked = [
            item
            for item in paths["items"].values(reply)
            if any(isinstance(mark, str) and mark in own for mark in paths["canary"].values(item))
        ]
        ids = [value for item in marked for value in paths["id"].values(item)]
        return check_handles(ids, "find.id") if ids else []

    def _ready(self, handles: Sequence[str]) -> bool:
        request = cast(Ready, self._requests["ready"])
        replies = (self._reply("ready", {"id": handle}, absent=True) for handle in handles)
        return all(request.equals in request.value.values(reply) for reply in replies)


def _text(path: JsonPath, reply: Any) -> str:
    """One text; a null is an empty one, for systems say so that they know nothing."""
    value = path.first(reply)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise TargetError(f"{path.owner}: {path.source} leads to {clip(value)}, which is no text")
    return str(value)


def _texts(path: JsonPath, reply: Any) -> list[str]:
    return _require_texts(path, path.values(reply))


def _require_texts(path: JsonPath, values: list[Any]) -> list[str]:
    for value in values:
        if not isinstance(value, str):
            raise TargetError(
                f"{path.owner}: {path.source} leads to {clip(value)}, which is no text; go on to its text"
            )
    return values
