"""A system under test: its protocol, the limits on calls to it, and which planted texts it read."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable
from uuid import uuid4

from pydantic import Field

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage
from unpoison.errors import OptionError, TargetError, UnpoisonError, clip
from unpoison.rag import Rag
from unpoison.text.canonical import canonical
from unpoison.utils.threads import start_thread
from unpoison_lab.redteam.settings import SettingsSection

__all__ = [
    "Clock",
    "InterruptedTestError",
    "Pace",
    "RagTarget",
    "RedteamTarget",
    "RequestLimits",
    "TargetDocument",
    "TargetReply",
    "Wait",
    "check_handles",
    "fingerprints",
    "load_target",
    "new_canary",
    "passages_of",
    "planted_positions",
    "read_count",
]


PREFIX = "unpoison-"
"""Prefix of every canary, so that one search finds all marked documents."""
MAX_HANDLE_LENGTH = 512
"""Characters of an id that a target gives to a document."""
MAX_HANDLES = 1000
"""Ids of one document: stores cut texts into pieces."""
UUID_LENGTH = 36
"""Characters of a UUID, and of the shortest id that is looked for within other names."""
MIN_PIECE_LENGTH = 40
"""Minimum length of a passage that counts as a piece of a planted text."""


def new_canary() -> str:
    """A mark that no other document has: `unpoison-` and a random UUID."""
    return f"{PREFIX}{uuid4()}"


@dataclass(frozen=True, slots=True)
class TargetDocument:
    """A document to plant.

    Attributes:
        text: The attack's text.
        canary: The unique mark in its metadata, by which an operator finds it.
        title: None if the attack plants none.
    """

    text: str
    canary: str
    title: str | None = None

    @property
    def uuid(self) -> str:
        """The canary without its prefix, for stores whose ids are UUIDs."""
        return self.canary.removeprefix(PREFIX)


@dataclass(frozen=True, slots=True)
class TargetReply:
    """The reply of a system under test.

    Attributes:
        answer: Its words.
        passages: The texts that it read, best first; None if the system does not return them.
        ids: Their ids or sources; None if the system does not return them.
    """

    answer: str
    passages: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None


@runtime_checkable
class RedteamTarget(Protocol):
    """A system under test. Its methods are called from several threads at once.

    One more method is optional: `own_ids(canary)` returns handles chosen by the caller, known before anything is
    planted.

    An exception in any of these methods fails one question. A `TargetError` may say that a retry can succeed, or that
    nothing was planted.
    """

    def ask(self, question: str) -> TargetReply | str:
        """The answer, with the passages that were read if the system returns them."""
        ...

    def plant(self, documents: Sequence[TargetDocument]) -> Sequence[str]:
        """Add documents; returns handles to remove them by, one or several (pieces) for each document."""
        ...

    def remove(self, handles: Sequence[str]) -> Iterable[str] | None:
        """Remove documents; returns the handles that the system did not know."""
        ...


class RagTarget:
    """Our own `Rag` as a target: documents are planted into its retriever.

    Args:
        rag: With a generator.
        name: For reports.
    """

    def __init__(self, rag: Rag, name: str) -> None:
        if rag.defense.models.generator is None:
            raise OptionError("the Rag has no generator, so it cannot answer; give it one")
        self._rag, self._store, self.name = rag, rag.retriever, name
        if not (hasattr(self._store, "add") and hasattr(self._store, "remove")):
            raise OptionError(
                f"{type(self._store).__name__} cannot be planted into; give a retriever with add and remove"
            )

    def ask(self, question: str) -> TargetReply:
        answer: Answer = self._rag.ask(question)
        read = answer.screening.read
        texts = tuple(passage.shown if passage.cuts else passage.raw for passage in read)
        return TargetReply(answer.text, texts, tuple(passage.id or "" for passage in read))

    def plant(self, documents: Sequence[TargetDocument]) -> list[str]:
        store: Any = self._store
        store.add([Passage(d.text, id=d.uuid, title=d.title, source=d.canary) for d in documents])
        return [document.uuid for document in documents]

    def remove(self, handles: Sequence[str]) -> None:
        store: Any = self._store
        store.remove(list(handles))

    def own_ids(self, canary: str) -> list[str]:
        return [TargetDocument("", canary).uuid]


def load_target(where: str, folder: Path) -> RedteamTarget:
    """The object behind `module:attribute`: a target, a class of one, or a `Rag`.

    Args:
        where: Such as `my_target:target`.
        folder: Where modules are looked for too.

    Raises:
        OptionError: There is no such object, or it is not a target.
    """
    module, _, attribute = where.partition(":")
    if not module or not attribute:
        raise OptionError(f"{clip(where)} names no object; write module:attribute")
    try:
        with _looked_for_in(folder):
            loaded: Any = getattr(import_module(module), attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        raise OptionError(f"{clip(where)} cannot be loaded: {error}; put the module beside the configuration") from None
    loaded = loaded() if isinstance(loaded, type) else loaded
    if isinstance(loaded, Rag):
        return RagTarget(loaded, where)
    if not isinstance(loaded, RedteamTarget):
        raise OptionError(f"{clip(where)} is no target; give an object with ask, plant and remove, or a Rag")
    return loaded


@contextmanager
def _looked_for_in(folder: Path) -> Iterator[None]:
    """Look for modules in a folder too, while they are loaded and no longer."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.reverse()  # `remove` takes the first of equal entries, and ours is the last
        sys.path.remove(str(folder))
        sys.path.reverse()


def check_handles(values: Iterable[Any], owner: str) -> list[str]:
    """Handles that are safe to put into a request: each can only mean one document.

    Raises:
        TargetError: None at all, too many, or one that is empty, only dots, has a wildcard or a control character.
    """
    handles = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values]
    if not handles or len(handles) > MAX_HANDLES:
        raise TargetError(f"{owner} must give 1 to {MAX_HANDLES:,} ids, got {len(handles):,}; see its path")
    for value in handles:
        if not isinstance(value, str) or not _is_safe(value):
            raise TargetError(f"{owner} gave {clip(value)}, which cannot be the id of one document; see its path")
    return list(dict.fromkeys(handles))


def _is_safe(handle: str) -> bool:
    if not 0 < len(handle) <= MAX_HANDLE_LENGTH or not handle.strip(". ") or "*" in handle:
        return False
    return handle.isprintable()  # neither control characters nor halves of a surrogate pair are


def passages_of(reply: TargetReply) -> Iterator[Passage]:
    """The passages that a system showed, with unique ids, and a source if the name is a path or address."""
    texts, names = reply.passages or (), reply.ids or ()
    for position, text in enumerate(texts):
        name = names[position] if len(names) == len(texts) else ""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        suffix = name.rpartition("/")[2].rpartition(".")[2] if "." in name else ""
        is_source = "/" in name or (suffix.isalnum() and not suffix.isdigit())
        yield Passage(text, id=f"{name or 'passage'}-{digest}", source=name if is_source else None)


def fingerprints(passages: Sequence[str] | None) -> tuple[str, ...]:
    """Hashes that identify passages."""
    return tuple(map(_fingerprint, map(_plain, passages or ())))


def read_count(
    reply: TargetReply, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> int | None:
    """How many of the planted texts the system read.

    A text was read if the system returns one of its ids, also inside a longer name such as a file name; or if a
    passage contains it, or is a piece of it of 40 characters or more. White space and case are ignored.

    Args:
        reply: The system's.
        texts: The planted texts.
        handles: The ids of each.
        honest: Hashes of passages that it read before; a poison that quotes one is not read with it.

    Returns:
        None if the system returns neither passages nor ids.
    """
    if reply.passages is None and reply.ids is None:
        return None
    read = set(planted_positions(reply, texts, handles, honest).values())
    return len(read.union(number for number, own in enumerate(handles) if _named(own, reply.ids or ())))


def planted_positions(
    reply: TargetReply, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> dict[int, int]:
    """Position of a passage -> number of the planted text that it is, as in `read_count`."""
    names, passages = reply.ids or (), [_plain(text) for text in reply.passages or ()]
    found: dict[int, int] = {}
    for position, passage in enumerate(passages):
        name = names[position : position + 1] if len(names) == len(passages) else ()
        for number, (text, own) in enumerate(zip(texts, handles, strict=True)):
            known = passage and _fingerprint(passage) not in honest and _same(_plain(text), passage)
            if known or _named(own, name):
                found.setdefault(position, number)
    return found


def _named(own: Sequence[str], names: Sequence[str]) -> bool:
    """Whether one of our ids is among the names or, if long enough to be unique, inside one."""
    return any(
        handle in names or (len(handle) >= UUID_LENGTH and any(handle in name for name in names)) for handle in own
    )


def _same(planted: str, passage: str) -> bool:
    return planted in passage or (len(passage) >= MIN_PIECE_LENGTH and passage in planted)


def _plain(text: str) -> str:
    return " ".join(canonical(text).text.casefold().split())


def _fingerprint(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class RequestLimits(SettingsSection):
    """The section `limits`.

    Attributes:
        in_flight: Concurrent questions, 1 to 64; each plants at most `poisons` documents.
        timeout: Seconds for one request, above 0 and up to 3600.
        retries: Further tries of a request that failed for a moment, 0 to 10. A document is planted again only where
            the first try certainly did nothing.
    """

    in_flight: Annotated[int, Field(ge=1, le=64)] = 4
    timeout: Annotated[float, Field(gt=0, le=3600)] = 30.0
    retries: Annotated[int, Field(ge=0, le=10)] = 3


class Wait(SettingsSection):
    """The section `wait`: how long a system may take to index planted documents.

    Attributes:
        seconds: The longest wait until a document is served, or is gone, 0 to 3600; 0 asks once.
        every: The first pause between two looks; each is twice the last one, at most a quarter of `seconds`.
    """

    seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    every: Annotated[float, Field(gt=0, le=600)] = 0.25

    def pause(self, looks: int) -> float:
        """Seconds to wait after `looks` polls."""
        return max(self.every, min(self.every * 2.0 ** min(looks - 1, 30), self.seconds / 4))


T = TypeVar("T")

FIRST_PAUSE = 0.5
"""Seconds before the second try; each pause is twice the last one."""


class InterruptedTestError(UnpoisonError):
    """The run was stopped; no new question starts."""


class Clock:
    """The clock, replaceable in tests."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, until: Event | None = None) -> None:
        """Wait, or until the event."""
        if until is None:
            time.sleep(seconds)
        else:
            until.wait(seconds)


class Pace:
    """Calls a target within limits and retries if that may help. Thread-safe.

    Args:
        limits: The limits.
        clock: Time.
    """

    def __init__(self, limits: RequestLimits, clock: Clock | None = None) -> None:
        self.limits, self.clock = limits, clock or Clock()
        self._stop = Event()

    def stop(self) -> None:
        """Stop new questions; removals continue."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def check(self) -> None:
        """Check that new work may start.

        Raises:
            InterruptedTestError: The run was stopped.
        """
        if self.stopped:
            raise InterruptedTestError("the run was interrupted")

    def sleep(self, seconds: float, *, removing: bool = False) -> None:
        """Wait; a stopped run ends the wait, except for removals."""
        self.clock.sleep(seconds, None if removing else self._stop)

    def poll(self, wait: Wait, end: float, *, removing: bool = False) -> Iterator[None]:
        """Yield once per poll, with pauses between polls, until `end`."""
        looks = 0
        while True:
            yield
            looks += 1
            left = end - self.clock.now()
            if left <= 0:
                return
            self.sleep(min(wait.pause(looks), left), removing=removing)

    def call(self, what: str, work: Callable[[], T], *, repeat: bool = True, removing: bool = False) -> T:
        """Call the target.

        Args:
            what: For messages, such as "ask".
            work: The call.
            repeat: Whether it may be called again after a try that may have had an effect.
            removing: Whether to retry in a stopped run too.

        Raises:
            TargetError: It failed for good.
        """
        nothing_done = True
        for tries in range(self.limits.retries + 1):
            try:
                return self._call_with_timeout(what, work)
            except TargetError as error:
                again = error.retryable and (repeat or error.refused)
                error.refused = nothing_done = nothing_done and error.refused  # an earlier try may have had an effect
                if not again or tries == self.limits.retries or (self.stopped and not removing):
                    raise
                self.sleep(FIRST_PAUSE * 2**tries, removing=removing)
        raise AssertionError("unreachable")

    def _call_with_timeout(self, what: str, work: Callable[[], T]) -> T:
        """Run the call on its own thread, which is abandoned if the target hangs."""
        try:
            return start_thread(work).result(self.limits.timeout * 1.5 + 1)  # its own timeout comes first
        except (FutureTimeoutError, TimeoutError):
            why = f"{what} was not done within {self.limits.timeout:g} s; raise limits.timeout"
            raise TargetError(why, retryable=True) from None
        except UnpoisonError:
            raise
        except Exception as error:  # third-party code
            raise TargetError(f"{what} failed with {type(error).__name__}: {clip(str(error), 200)}") from None
