"""A running system behind HTTP, described by a YAML file.

    target:
      headers: {Authorization: "Bearer ${RAG_TOKEN}"}
      ask:    {url: "http://127.0.0.1:8000/ask", body: {q: "{question}"}, answer: "$.answer", passages: "$.sources[*]"}
      plant:  {url: "http://127.0.0.1:8000/docs", body: {text: "{text}", canary: "{canary}"}, id: "$.id"}
      remove: {method: DELETE, url: "http://127.0.0.1:8000/docs/{id}"}

`{question}`, `{text}`, `{title}`, `{canary}`, `{uuid}` and `{id}` are places for the values of each call; they become
parts of strings and are percent-encoded in a url. Paths are JSONPath; `text` is the whole
reply. Of a stream of events a path is applied to every event, and the pieces of the answer are joined.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from unpoison.core.passages import Passage
from unpoison.errors import InputError, OptionError, TargetError, clip
from unpoison.utils.extras import require
from unpoison_lab.redteam.http_client import ABSENT, SENSITIVE, Hosts, HttpClient, HttpReply
from unpoison_lab.redteam.settings import SettingsSection
from unpoison_lab.redteam.targets import TargetDocument, TargetReply, check_handles

__all__ = ["HttpTarget", "ReplyPath"]

WHOLE_TEXT = "text"
MAX_VALUES = 10_000
"""Values that one path may match."""

_PLACE = re.compile(r"(?<!\$)\{([a-z]{1,20})\}")
Method = Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], BeforeValidator(lambda m: str(m).upper())]


class ReplyPath:
    """A JSONPath into a reply, or `text` for the whole reply.

    Args:
        source: As written.

    Raises:
        OptionError: It is not a path.
    """

    def __init__(self, source: object) -> None:
        jsonpath = require("jsonpath_ng", "reading replies by paths", "redteam")
        if source != WHOLE_TEXT and not (isinstance(source, str) and source.startswith("$")):
            raise OptionError(f"{clip(source)} is no path; write one such as $.answer or $.passages[*].text, or text")
        self.source = str(source)
        try:
            self._path = None if source == WHOLE_TEXT else jsonpath.parse(self.source)
        except Exception as error:  # the library has several kinds
            raise OptionError(f"{clip(source)} is no path: {clip(str(error), 100)}; see JSONPath") from None

    def values(self, value: Any) -> list[Any]:
        """The matches in JSON.

        Raises:
            TargetError: More than 10,000 values, or JSON that is too deep.
        """
        if self._path is None:
            return [value]
        try:
            found = [match.value for match in self._path.find(value)]
        except Exception as error:  # a hostile reply must not end the run
            raise TargetError(f"{self.source} cannot be applied to the reply ({type(error).__name__})") from None
        if len(found) > MAX_VALUES:
            raise TargetError(f"{self.source} leads to more than {MAX_VALUES:,} values; narrow it")
        return found

    def of(self, reply: HttpReply) -> list[Any]:
        """The matches in a reply, or in every event of a stream.

        Raises:
            TargetError: The reply is not JSON, or as for `values`.
        """
        if reply.events is not None:
            events = [event for event in reply.events if self._path is None or isinstance(event, dict)]
            return [value for event in events for value in self.values(event)]
        return self.values(reply.text if self._path is None else reply.json)

    def found(self, owner: str, reply: HttpReply, *, may_be_empty: bool = True) -> list[Any]:
        """The matches in a reply; none only where the list that they would stand in is there and empty.

        Raises:
            TargetError: As for `of`, or the path leads nowhere, so that it is probably misspelled.
        """
        matches = self.of(reply)
        listing = self.source.rpartition("[*]")[0]
        lists = ReplyPath(listing).of(reply) if listing and may_be_empty and not matches else []
        if not matches and (not lists or any(lists)):
            said = clip(reply.text, 200) if reply.events is None else f"{len(reply.events):,} events"
            raise TargetError(f"{owner}: {self.source} leads to nothing in the reply, {said}")
        return matches


Path = Annotated[ReplyPath, BeforeValidator(ReplyPath), PlainSerializer(lambda path: path.source)]


def _refuse_plain_secrets(headers: dict[str, str]) -> dict[str, str]:
    """The same headers.

    Raises:
        OptionError: One holds a secret in plain text: files are committed, and journals are kept.
    """
    for name, value in headers.items():
        if SENSITIVE.search(name) and "${" not in value:
            raise OptionError(f"headers.{name} looks like a secret in plain text; write ${{NAME}} and export it")
    return headers


Headers = Annotated[dict[str, str], AfterValidator(_refuse_plain_secrets)]


class Request(SettingsSection):
    """A request as the file describes it.

    Attributes:
        url, method, headers: As written; a url has a fixed host.
        body: Sent as JSON; a string is sent unchanged.
        file: The form field of a multipart upload, whose file holds the text and is named by the canary.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    places: ClassVar[tuple[str, ...]] = ()
    needed: ClassVar[tuple[str, ...]] = ()

    url: str
    method: Method = "POST"
    headers: Headers = Field(default_factory=dict)
    body: Any = None
    file: str | None = None

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if (
            parts.scheme not in ("http", "https")
            or not parts.netloc
            or "@" in parts.netloc
            or _PLACE.search(parts.netloc)
        ):
            raise OptionError(
                f"{clip(url.rpartition('@')[2])} is no url; it must begin with http:// or https:// and a host without "
                "user, password or {place}"
            )
        return url

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        written = [self.url, self.body, self.headers, "{text}{canary}" if self.file else ""]
        used = {name for text in _texts(written) for name in _PLACE.findall(text)}
        kind = type(self).__name__.lower()
        if unknown := used - set(self.places):
            known = ", ".join(f"{{{name}}}" for name in self.places)
            raise OptionError(f"{kind}: {{{min(unknown)}}} is unknown; it may hold {known}")
        if not used & set(self.needed):
            raise OptionError(
                f'{kind} never mentions {{{self.needed[0]}}}; write it in quotes, as "{{{self.needed[0]}}}"'
            )
        return self


class Ask(Request):
    """`ask`: the paths of the answer, and of the passages and their ids if the system returns them."""

    places, needed = ("question", "uuid"), ("question",)
    answer: Path
    passages: Path | None = None
    ids: Path | None = None


class Plant(Request):
    """`plant`: `id` is the path of the new document's id, or of its pieces' ids; without it the canary is the id."""

    places, needed = ("text", "title", "canary", "uuid"), ("text",)
    id: Path | None = None

    @property
    def own_id(self) -> str | None:
        """The place that holds an id chosen by us: `canary` or `uuid`; None for neither."""
        written = f"{self.url} {self.body} {self.file and '{canary}'}"
        return next((name for name in ("canary", "uuid") if f"{{{name}}}" in written), None)

    @model_validator(mode="after")
    def _check_id(self) -> Self:
        if self.id is None and self.own_id is None:
            raise OptionError("plant needs id, the path of the new document's id, or {canary} or {uuid} as its id")
        return self


class Remove(Request):
    """`remove`: removes a document."""

    places, needed = ("id",), ("id",)


class Calls(SettingsSection):
    """The section `target` of a system behind HTTP; `headers` are those of all requests."""

    headers: Headers = Field(default_factory=dict)
    ask: Ask
    plant: Plant | None = None
    remove: Remove | None = None


class HttpTarget:
    """Talks to a running system as described in a file.

    Args:
        values: Its section `target`.
        hosts: Where requests may go.
        timeout: Seconds for one request.
        environment: The values of `${NAME}`; those of this process by default.

    Attributes:
        name: The address that is asked.
        plants: Whether the file says how documents are added and removed.
        tells_passages: Whether it has a path for passages or ids.

    Raises:
        UnknownNameError: An unknown field.
        OptionError: A field that cannot be used, a variable that is not set, or a host that may not be tested.
        MissingExtraError: A library is missing.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        hosts: Hosts,
        *,
        timeout: float = 30.0,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._calls = calls = Calls.read(values, "target")
        self.client = HttpClient(hosts, environment, timeout)
        self.name = calls.ask.url
        self.plants = calls.plant is not None and calls.remove is not None
        self.tells_passages = calls.ask.passages is not None or calls.ask.ids is not None
        if calls.plant is not None and calls.plant.id is None:
            self.own_ids = self._own_ids
        for call in (calls.ask, calls.plant, calls.remove):
            if call is not None:  # missing variables and forbidden hosts fail before any request
                hosts.check(self._fill(call, {})[1]["url"])

    def ask(self, question: str) -> TargetReply:
        """The answer, and the passages if `ask.passages` is given.

        Raises:
            TargetError: No reply, or one that cannot be used.
        """
        return self.read_answer(self.ask_raw(question))

    def ask_raw(self, question: str, *, allowed: Collection[int] = ()) -> HttpReply:
        """The reply to a question, successful or with an allowed status.

        Raises:
            TargetError: There is none.
        """
        return self._send("ask", self._calls.ask, {"question": question, "uuid": str(uuid4())}, allowed)

    def read_answer(self, reply: HttpReply) -> TargetReply:
        """Parse the reply to a question.

        Raises:
            TargetError: A path leads to nothing, or to a value of the wrong type.
        """
        ask = self._calls.ask
        pieces = (
            ask.answer.of(reply)
            if ask.answer.source == WHOLE_TEXT
            else ask.answer.found("ask.answer", reply, may_be_empty=False)
        )
        answer = ("\n" if reply.events is None else "").join(_text(piece) for piece in pieces)
        answer = self.client.secrets.mask(answer)  # a secret may come in pieces
        if ask.passages is None:
            return TargetReply(answer, ids=_unique(map(str, ask.ids.found("ask.ids", reply))) if ask.ids else None)
        passages = [
            _passage(value, position) for position, value in enumerate(ask.passages.found("ask.passages", reply))
        ]
        names = (
            ask.ids.found("ask.ids", reply) if ask.ids else [passage.source or passage.id or "" for passage in passages]
        )
        return TargetReply(answer, tuple(passage.raw for passage in passages), tuple(map(str, names)))

    def plant(self, documents: Sequence[TargetDocument]) -> list[str]:
        """Add documents, one request each; the ids that the system gave them.

        Raises:
            TargetError: No reply, or one without an id.
        """
        call, handles = self._calls.plant, list[str]()
        if call is None:
            raise TargetError("the file does not say how a document is added; give plant", refused=True)
        for document in documents:
            values = {name: getattr(document, name) or "" for name in ("text", "title", "canary", "uuid")}
            reply = self._send("plant", call, values)
            handles += self._own_ids(document.canary) if call.id is None else self._ids("plant.id", call.id, reply)
        return handles

    def remove(self, handles: Sequence[str]) -> list[str]:
        """Remove documents, one request each; the ids that the system does not know.

        Raises:
            TargetError: It failed.
        """
        call = self._calls.remove
        if call is None:
            raise TargetError("the file does not say how a document is removed; give remove", refused=True)
        checked = check_handles(handles, "the journal")
        return [one for one in checked if self._send("remove", call, {"id": one}, ABSENT).status in ABSENT]

    def _ids(self, owner: str, path: ReplyPath, reply: HttpReply) -> list[str]:
        found = [part for value in path.of(reply) for part in (value if isinstance(value, list) else [value])]
        if not found:
            raise TargetError(f"{owner}: {path.source} leads to nothing in the reply, {clip(reply.text, 200)}")
        return check_handles(found, owner)

    def _own_ids(self, canary: str) -> list[str]:
        own = self._calls.plant.own_id if self._calls.plant else None
        return [canary if own == "canary" else TargetDocument("", canary).uuid]

    def _send(self, what: str, call: Request, values: Mapping[str, str], allowed: Collection[int] = ()) -> HttpReply:
        method, sent = self._fill(call, values)
        return self.client.send(what, method, allowed=allowed, **sent)

    def _fill(self, call: Request, values: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """The method, and the arguments of `HttpClient.send`."""
        fill = self.client.fill
        sent: dict[str, Any] = {"url": fill(call.url, values, url=True)}
        sent["headers"] = fill({**self._calls.headers, **call.headers}, values, header=True)
        body = fill(call.body, values)
        if call.file is not None:
            text = values.get("text", "").encode("utf-8", "replace")
            sent |= {"files": {call.file: (f"{values.get('canary', '')}.txt", text)}, "data": body or {}}
        elif isinstance(body, str):
            sent["content"] = body.encode("utf-8", "replace")
        elif body is not None:
            sent["json"] = body
        return call.method, sent


def _texts(value: object) -> Iterator[str]:
    """The texts in nested mappings and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list)):
        for member in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(member)


def _text(value: Any) -> str:
    """A text; null becomes "", as some systems reply so when they know nothing."""
    if isinstance(value, (dict, list, bool)):
        raise TargetError(f"ask.answer leads to {clip(value)}, which is no text; go on to its text")
    return "" if value is None else str(value)


def _passage(value: Any, position: int) -> Passage:
    """A passage: a text, or a mapping with a text as our rows have it."""
    try:
        return Passage.of(value, position)
    except InputError as error:
        raise TargetError(f"ask.passages leads to what is no passage: {error}; go on to its text") from None


def _unique(names: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
