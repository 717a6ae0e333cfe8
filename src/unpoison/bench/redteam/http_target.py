"""A system under test behind HTTP, as a configuration describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from unpoison.bench.redteam.config import as_tuple
from unpoison.bench.redteam.http_answer import read_answer
from unpoison.bench.redteam.http_calls import Ask, Asking, Requests, Tool
from unpoison.bench.redteam.http_client import ABSENT, HttpClient, Response
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_request import Request
from unpoison.bench.redteam.http_session import HttpSession, LoginKeeper
from unpoison.bench.redteam.http_tools import Conversation, declare
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.pace import Clock
from unpoison.bench.redteam.reply_fields import new_id
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Answered, Document, check_handles
from unpoison.errors import OptionError, TargetError, clip

__all__ = ["HttpAsked", "HttpTarget"]


class HttpAsked:
    """Asks a running system as a configuration says.

    Args:
        described: The call `ask`, perhaps others, a login, and `headers` for all of them.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        timeout: Seconds that one call may take, with all its requests.
        clock: Time.
        folder: Where the relative path of a tool's store begins.

    Attributes:
        on_reply: Called with every reply to a question, without secrets: what its JSON holds, or a list of what its
            events hold.

    Raises:
        OptionError: A variable that is not set, or a host that may not be tested.
        MissingExtraError: httpx is not installed.
    """

    def __init__(
        self,
        described: Asking,
        secrets: Secrets,
        hosts: Hosts,
        *,
        timeout: float = 30.0,
        clock: Clock | None = None,
        folder: Path = Path(),
    ) -> None:
        self._tools, self._folder = cast(Sequence[Tool], described.steps.get("tools", ())), folder
        self._steps, login = described.steps, described.login or ()
        everything = {"login": login, **self._steps} if login else self._steps
        encrypted = any(step.url.startswith("https:") for steps in everything.values() for step in steps)
        self._secrets, self._timeout, self._clock = secrets, timeout, clock or Clock()
        self.on_reply: Callable[[Any], None] = lambda reply: None
        self._client = HttpClient(secrets, hosts, timeout, encrypted=encrypted)
        self._login = LoginKeeper(login, self._client, secrets, timeout, self._clock) if login else None
        self._described = everything
        self.name = next(step.url for step in self._steps["ask"] if "question" in step.used)
        for steps in everything.values():  # what is not set and what is not allowed is said before a request
            for step in steps:
                if step.url and step.address is None:
                    self._client.check(step.fill({}, secrets).url)

    def ask(self, question: str) -> Answered:
        """The answer, and the passages where `ask.passages` says where they stand. Each question has its own session.

        Raises:
            TargetError: No reply, or one that cannot be used.
        """
        session = self._session({"question": question, "uuid": str(uuid4())})
        conversation = Conversation(self._tools, session, self._folder)
        answered: Answered | None = None
        for step, response in session.run(self._steps["ask"]):
            last = conversation.finish(step, response)
            self.on_reply(session.client.content_of(last))
            answered = read_answer(session.client, cast(Ask, step), last, answered)
        return conversation.add_to(cast(Answered, answered))

    def describe(self, kind: str, values: Mapping[str, str]) -> str:
        """The requests of a call as they would be sent, without secrets; what is taken from replies as its place."""
        steps = self._described[kind]
        taken = {name for some in self._described.values() for step in some for name in step.take}
        known = {**{name: f"{{{name}}}" for name in taken}, **values}
        text = "\n".join(self._describe_step(step, known) for step in steps)
        for name in (*taken, *(name for tool in self._tools for name in tool.arguments)):
            text = text.replace(f"%7B{name}%7D", f"{{{name}}}")  # as it stands in an address
        return str(self._secrets.mask(text)).rstrip()

    def _describe_step(self, step: Request, values: Mapping[str, str]) -> str:
        if isinstance(step, Tool):
            if step.store:
                return f"{step.name} searches {step.store} for {{query}}"
            values = {**{name: f"{{{name}}}" for name in step.used}, **values}
        filled = declare(step, step.fill(values, self._secrets), self._tools)
        body = b"" if filled.content is None else filled.content
        if filled.file is not None:
            body = f"{dict(filled.fields)} and the file {filled.file[1]!r}: ".encode() + filled.file[2]
        headers = "".join(f"\n  {name}: {value}" for name, value in filled.headers.items())
        return f"{filled.method} {filled.url}{headers}\n  {body.decode('utf-8', 'replace')}".rstrip()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The calls that the configuration describes."""
        return tuple(self._described)

    def _session(self, values: Mapping[str, str]) -> HttpSession:
        return HttpSession(self._client, self._secrets, values, self._timeout, self._clock, self._login)


class HttpTarget(HttpAsked):
    """Speaks to a running system as the `target` of a configuration says.

    Args:
        values: The calls by their kind (`ask`, `plant`, `remove`, and perhaps `login`, `find` and `ready`), and
            `headers` for all of them.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        timeout: Seconds that one call may take, with all its requests.
        clock: Time.
        folder: Where the relative path of a tool's store begins.

    Attributes:
        may_guess: Whether a document's id may be taken from elsewhere in the reply where `plant.id` leads to nothing.
        guessed: What was taken so, as a sentence; "" where nothing was.

    Raises:
        UnknownNameError: A field that is none.
        OptionError: A field that cannot be used, a variable that is not set, or a host that may not be tested.
        MissingExtraError: httpx is not installed.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        secrets: Secrets,
        hosts: Hosts,
        *,
        timeout: float = 30.0,
        clock: Clock | None = None,
        folder: Path = Path(),
    ) -> None:
        described = Requests.read(values, "target")
        self.may_guess, self.guessed = False, ""
        self._marks_used = {place for step in described.plant for place in step.used}
        self.marks = not self._marks_used.isdisjoint(("canary", "uuid"))
        told = {name for step in described.ask for name in step.paths} | {
            "cited" for step in described.ask if step.cited is not None
        }
        self.tells_passages = not {"passages", "ids", "cited"}.isdisjoint(told) or bool(described.tools)
        if all(step.id is None for step in described.plant):
            if not self.marks:
                raise OptionError("plant needs id, the path of the new document's id, or {canary} or {uuid} as its id")
            self.own_ids = self._own_ids
        if described.find is not None:
            self.find = self._find
        if described.ready is not None:
            self.ready = self._ready
        super().__init__(described, secrets, hosts, timeout=timeout, clock=clock, folder=folder)

    def plant(self, documents: Sequence[Document]) -> list[str]:
        """Add documents, one call each; the ids that the system gave them.

        Raises:
            TargetError: No reply, or one without an id; it says whether surely nothing was planted.
        """
        handles = list[str]()
        for document in documents:
            values = {name: getattr(document, name) or "" for name in ("text", "title", "canary", "uuid")}
            session = self._session(values)
            replies = list(session.run(self._steps["plant"]))
            paths = [(path, reply) for step, reply in replies if (path := step.paths.get("id")) is not None]
            ids = [value for path, reply in paths for value in session.values_at(path, "plant", reply)]
            if paths and not ids:
                ids = self._guess_ids(*paths[0])
            handles += check_handles(ids if paths else self._own_ids(document.canary), "plant.id")
        return handles

    def remove(self, handles: Sequence[str]) -> list[str]:
        """Remove documents, one call each; the ids that the system does not know."""
        absent = list[str]()
        for handle in check_handles(handles, "the journal"):
            replies = list(self._session({"id": handle}).run(self._steps["remove"], allowed=ABSENT))
            if any(reply.status in ABSENT for _, reply in replies):
                absent.append(handle)
        return absent

    def _guess_ids(self, path: JsonPath, reply: Response) -> list[Any]:
        """The ids that stand elsewhere than a path says, where they may be guessed.

        Raises:
            TargetError: There are none, or they may not: it says what the reply has in place of what the path leads to.
        """
        content = self._client.content_of(reply)
        found = new_id(content) if self.may_guess else None
        if found is not None:
            self.guessed = f"{path.owner}: {path.source} leads to nothing in the reply, which has an id at {found}"
            return JsonPath.of(found, path.owner).values(content)
        if path.header:
            names = clip(sorted(set(map(str.lower, reply.headers)))[:20], 200)
            raise TargetError(f"{path.owner}: the reply has no header {path.header}, but {names}")
        return [path.first(self._client.parse_json("plant", reply))]

    def _own_ids(self, canary: str) -> list[str]:
        """Ids that we chose ourselves: whichever of the two marks `plant` has for an id; `remove` takes it as {id}."""
        return [canary if "canary" in self._marks_used else Document("", canary).uuid]

    def _find(self, canary: str) -> list[str]:
        """The ids of the documents that carry the canary, each checked for it: a search may return others too."""
        uuid = Document("", canary).uuid
        session, ids = self._session({"canary": canary, "uuid": uuid}), list[Any]()
        for step, response in session.run(self._steps["find"], allowed=ABSENT):
            paths = step.paths
            if response.status in ABSENT or not {"items", "id", "canary"} <= paths.keys():
                continue
            for item in session.values_at(paths["items"], "find", response):
                if any(_holds_mark(mark, uuid) for mark in paths["canary"].values(item)):
                    ids += paths["id"].values(item)
        return check_handles(ids, "find.id") if ids else []

    def _ready(self, handles: Sequence[str]) -> bool:
        return all(self._is_ready(handle) for handle in handles)

    def _is_ready(self, handle: str) -> bool:
        session = self._session({"id": handle})
        for step, response in session.run(self._steps["ready"], allowed=ABSENT):
            if step.value is None:
                continue
            found = [None] if response.status in ABSENT else session.values_at(step.value, "ready", response)
            if not any(value in found for value in as_tuple(step.equals)):
                return False
        return True


def _holds_mark(mark: object, uuid: str) -> bool:
    """Whether a mark is ours: the canary, its UUID, or a name made of it, as of a file or a piece (`UUID-0`).

    A text with spaces is none: a system that keeps conversations has questions with a canary too.
    """
    return isinstance(mark, str) and uuid in mark and not any(map(str.isspace, mark))
