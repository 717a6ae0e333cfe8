"""A gate in front of what an agent remembers: retrieval may restore information, never authority.

    gate = MemoryGate("memory.db", sources="sources.yaml")
    gate.write(note, source=page_url)
    prompt = gate.read("What is the refund limit?").text

A memory is as trusted as the least trusted text that it was made from, however often it was summarised, and a less
trusted one never takes the place of a more trusted one, whatever it is called and whenever it was written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple
from uuid import uuid4

from unpoison.agents.memory_recall import (
    MAX_COMPARED,
    Recall,
    Recalled,
    Standing,
    Withheld,
    find_contests,
    group_versions,
    overruled,
    relevant,
    versions_contest,
)
from unpoison.agents.memory_rules import claim_of
from unpoison.agents.memory_store import Memory, MemoryStore, SqliteMemories, State
from unpoison.agents.memory_tree import (
    Parent,
    ancestors_closed,
    descendants,
    is_open,
    make_room,
    parents_of,
    readable,
    sources_of,
)
from unpoison.agents.policy import ToolPolicy, ToolSettings
from unpoison.agents.redaction import MARK
from unpoison.agents.screening import ScreenedResult, screen_tool_result
from unpoison.core.reasons import Reason
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.loading import load_generator
from unpoison.models.protocols import Generator
from unpoison.runtime.driver import Limits
from unpoison.sources.origins import origin_of
from unpoison.sources.sources import Sources, SourcesOption
from unpoison.sources.trust import Level
from unpoison.text.prompt_injection import THRESHOLD
from unpoison.utils.checks import at_least, within

__all__ = ["Changed", "MemoryGate", "Written"]

MAX_CHARS = 20_000
"""Characters of a memory."""

MAX_NAME_CHARS = 2_048
"""Characters of a key and of a source."""

BEST = Standing(1.0, "trusted")

NAME = "memory"
"""As what memories are screened."""


class Written(NamedTuple):
    """What became of a memory that was written: as it is stored, and why it is read or set aside."""

    memory: Memory
    reason: Reason

    @property
    def quarantined(self) -> bool:
        """Whether nobody reads it until somebody puts it back."""
        return self.memory.state == "quarantined"


class Changed(NamedTuple):
    """What a change reached: the memories themselves, and those made from them, which go and come with them."""

    ids: tuple[str, ...]
    derived: tuple[str, ...]


class MemoryGate:
    """Screens what is written to a store of memories and what is read from it. Safe for threads.

    Args:
        store: A SQLite file, made where there is none; a `MemoryStore`; None for memory.
        sources: Who is believed how far: `Sources`, a policy as a file or a mapping; None where `level` alone says so.
        reader: Compares what memories say, such as "reader"; None compares their words alone.
        threshold: The probability from which a stretch is a prompt injection, in [0, 1].
        max_memories: Memories and versions that are kept, set-aside ones included, at most 100,000. The first to go
            are those that nobody may read, then the least trusted, the oldest first, and none for a less trusted one.
        limits: Of the reader's calls.
        clock: Seconds since 1970.

    Raises:
        OptionError: An option out of its range.
        InputError, StoreError: The file cannot be used.
    """

    def __init__(
        self,
        store: MemoryStore | str | Path | None = None,
        *,
        sources: SourcesOption = None,
        reader: Generator | str | None = None,
        threshold: float = THRESHOLD,
        max_memories: int = 10_000,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = SqliteMemories(store) if store is None or isinstance(store, (str, Path)) else store
        self.sources = Sources.of(sources)
        self.reader = load_generator(reader) if isinstance(reader, str) else reader
        if self.reader is not None and not hasattr(self.reader, "read"):
            raise OptionError(f'reader must read one text at a time, which {clip(self.reader)} cannot; give "reader"')
        self.threshold = within("threshold", threshold, 0.0, 1.0)
        self.max_memories = at_least("max_memories", max_memories, 1, 100_000)
        self._limits, self._clock, self._lock = limits, clock, RLock()

    def write(
        self,
        text: str,
        *,
        key: str | None = None,
        source: str | None = None,
        level: Level | None = None,
        derived_from: Iterable[Parent] = (),
    ) -> Written:
        """Keep a text. One that speaks to the model, or of what the model may do, is set aside.

        Args:
            text: What is to be remembered, at most 20,000 characters.
            key: What it is a version of. The newest of the most trusted versions is the one that is read.
            source: Where it comes from: an address or a name, such as that of a user.
            level: How far that is believed where no policy of sources says so; "unknown" if nobody says anything.
            derived_from: What else it was made from: all that the model had read. It is trusted no more than those.

        Raises:
            InputError: No text, one too long, memories that do not exist, or a store full of more trusted ones.
            OptionError: No such level.
            StoreError: The store cannot be used.
        """
        _check_text("text", text, MAX_CHARS)
        for name, value in (("key", key), ("source", source)):
            if value is not None:
                _check_text(name, value, MAX_NAME_CHARS)
        with self._lock:
            stored = self.store.load().memories
            by_id = {memory.id: memory for memory in stored}
            parents, results = parents_of(derived_from, by_id)
            screened = self._screen(text, level, source, hidden="cut")
            made_from: list[Memory | ScreenedResult] = [*parents, *results]
            standings = [Standing(one.trust, one.level) for one in made_from]
            if source is not None or level is not None or not standings:
                standings.append(Standing(screened.trust, screened.level))
            least = min(standings)
            reason = self._objection(screened, least, made_from, readable(stored))
            kept = reason.code == "memory.kept"
            name = f"m{uuid4().hex[:15]}"
            memory = Memory(
                id=name,
                key=name if key is None else key,
                text=screened.value if kept else text,
                level=least.level,
                trust=least.trust,
                sources=sources_of(source, parents, results),
                derived_from=tuple(dict.fromkeys(parent.id for parent in parents)),
                written=max([self._clock(), *(one.written + 1e-5 for one in stored[-1:])]),
                state="live" if kept else "quarantined",
                code="" if kept else reason.code,
            )
            dropped = make_room(stored, memory, self.max_memories)
            details = {"key": memory.key, "level": memory.level, "state": memory.state, "dropped": dropped}
            self.store.commit([memory], dropped, self._entry("write", [name], reason=reason.code, **details))
        return Written(memory, reason)

    def read(
        self, query: str | None = None, *, limit: int = 8, where: Callable[[Memory], bool] | None = None
    ) -> Recall:
        """The memories for a question, screened again; what contradicts a more trusted one is withheld, and said.

        Args:
            query: What is asked, or a few words; None for any.
            limit: How many, in [1, 50].
            where: Which memories come into question.

        Raises:
            StoreError: The store cannot be used.
            ModelError: The reader failed.
        """
        at_least("limit", limit, 1, MAX_COMPARED)
        stored = self.store.load()
        notes = [f"{stored.broken:,} records of the store are no memories, and were not read"] * bool(stored.broken)
        alive = readable(stored.memories)
        open_ones = [memory for memory in stored.memories if memory.id in alive and (where is None or where(memory))]
        now = self._standings_now(open_ones)
        versions = group_versions(open_ones, now)
        current = [held[0] for held in versions.values()]
        found = relevant(query, [memory.text for memory in current])
        order = sorted(found, key=lambda one: (-now[current[one[0]].id].trust, -one[1], -current[one[0]].written))
        chosen = [current[i] for i, _ in order[:MAX_COMPARED]]
        if len(order) > MAX_COMPARED:
            notes.append(f"the {MAX_COMPARED} most trusted of {len(order):,} memories that fit were compared")
        memories, withheld = self._screen_again(chosen, now)
        contests = [versions_contest(one, versions[one.memory.key], now) for one in memories]
        contested = [contest for contest in contests if contest is not None]
        contested += find_contests(query, memories, self.reader, self._limits)
        by_id = {memory.id: memory for memory in stored.memories}
        beaten = overruled(contested)
        withheld += [
            Withheld(by_id[name], Reason.of("memory.outranked", other=other)) for name, other in beaten.items()
        ]
        given = [one for one in memories if one.memory.id not in beaten][:limit]
        return Recall(tuple(given), tuple(contested), tuple(withheld), tuple(notes))

    def versions(self, key: str) -> tuple[Memory, ...]:
        """All versions of a memory, the oldest first, whatever became of them."""
        return tuple(memory for memory in self.store.load().memories if memory.key == key)

    def quarantined(self) -> tuple[Memory, ...]:
        """What is set aside or taken out, the oldest first; not what was made from it and goes with it."""
        return tuple(memory for memory in self.store.load().memories if memory.state in ("quarantined", "removed"))

    def journal(self) -> list[dict[str, Any]]:
        """What was done, in its order, by ids; the newest 100,000 changes."""
        return self.store.journal()

    def rollback(self, *, source: str | None = None, after: datetime | float | None = None) -> Changed:
        """Take out everything that came from a source, or was written after a moment, and all that was made from it.

        Args:
            source: An address, or the party behind addresses, such as "blog.example". With `after` both must hold.
            after: A time, or seconds since 1970.

        Raises:
            OptionError: Neither was given, or no such time.
        """
        if source is None and after is None:
            raise OptionError("a rollback needs a source, a time or both; give source=... or after=...")
        moment = _seconds(after)
        return self._change(
            "rollback",
            lambda memory: (
                is_open(memory) and memory.written > moment and (source is None or self._comes_from(memory, source))
            ),
            "removed",
            "memory.rolled_back",
            source=source,
            after=None if after is None else moment,
        )

    def quarantine(self, ids: Collection[str]) -> Changed:
        """Set memories aside, and with them all that was made from them.

        Raises:
            InputError: No such memory.
        """
        chosen = self._checked(ids)
        return self._change(
            "quarantine", lambda memory: memory.id in chosen and is_open(memory), "quarantined", "memory.set_aside"
        )

    def put_back(self, ids: Collection[str]) -> Changed:
        """Let memories be read again that were set aside or taken out; injections are still cut out of them.

        Raises:
            InputError: No such memory, or it was made from one that is set aside and is not named.
        """
        with self._lock:
            chosen = self._checked(ids)
            stored = self.store.load().memories
            for memory in stored:
                missing = ancestors_closed(memory, stored, chosen) if memory.id in chosen else None
                if missing is not None:
                    raise InputError(f"{memory.id} was made from {missing}, which is set aside; put that back as well")
            return self._change("put_back", lambda memory: memory.id in chosen, "released", "")

    def forget(self, ids: Collection[str]) -> Changed:
        """Erase memories and all that was made from them; their ids stay in the journal.

        Raises:
            InputError: No such memory.
        """
        with self._lock:
            chosen = self._checked(ids)
            derived = descendants(chosen, self.store.load().memories)
            gone = [*chosen, *derived]
            self.store.commit([], gone, self._entry("forget", list(chosen), derived=derived))
        return Changed(tuple(chosen), tuple(derived))

    def _change(
        self, action: str, chosen: Callable[[Memory], bool], state: State, code: str, **details: object
    ) -> Changed:
        with self._lock:
            stored = self.store.load().memories
            reached = [memory for memory in stored if chosen(memory)]
            ids = [memory.id for memory in reached]
            derived = descendants(ids, stored)
            changed = [replace(memory, state=state, code=code) for memory in reached]
            self.store.commit(changed, [], self._entry(action, ids, derived=derived, **details))
        return Changed(tuple(ids), tuple(derived))

    def _checked(self, ids: Collection[str]) -> dict[str, None]:
        known = {memory.id for memory in self.store.load().memories}
        chosen = dict.fromkeys([ids] if isinstance(ids, str) else ids)
        for name in chosen:
            if name not in known:
                raise InputError(f"there is no memory {clip(name)}; take ids from what was written or read")
        return chosen

    def _entry(self, action: str, ids: Sequence[str], **details: object) -> dict[str, Any]:
        held = {name: value for name, value in details.items() if value is not None and value != []}
        return {"time": round(self._clock(), 3), "action": action, "ids": list(ids), **held}

    def _origin(self, source: str) -> str:
        return origin_of(source) if self.sources is None else self.sources.origin({"text": "", "source": source})

    def _comes_from(self, memory: Memory, source: str) -> bool:
        return any(source in (one, self._origin(one)) for one in memory.sources)

    def _screen(self, text: Any, level: Level | None, source: str | None, hidden: str) -> ScreenedResult:
        """What would be cut, without cutting it, but for hidden characters."""
        settings = ToolSettings(action="flag", hidden=hidden, threshold=self.threshold, level=level)  # type: ignore[arg-type]
        return screen_tool_result(NAME, text, policy=ToolPolicy({NAME: settings}, self.sources), source=source)

    def _objection(
        self,
        screened: ScreenedResult,
        least: Standing,
        made_from: Sequence[Memory | ScreenedResult],
        alive: Collection[str],
    ) -> Reason:
        """Why a text is set aside; `memory.kept` where nothing speaks against it."""
        if screened.blocked:
            return screened.reason
        if least.level == "blocked":
            return Reason.of("tool.source")
        if any(cut.reason.code != "tool.hidden" for cut in screened.cuts):
            return screened.reason
        if any(
            parent.blocked if isinstance(parent, ScreenedResult) else parent.id not in alive for parent in made_from
        ):
            return Reason.of("memory.parent")
        return Reason.of(_claim(screened.value, least.level) or "memory.kept")

    def _standings_now(self, memories: Sequence[Memory]) -> dict[str, Standing]:
        """The standing of each memory: what was stored, or less where a source of it is believed less by now."""
        names = list(dict.fromkeys(source for memory in memories for source in memory.sources))
        today: dict[str, Standing] = {}
        if self.sources is not None and names:
            found = self.sources.standings("", [{"text": "", "source": name} for name in names])
            today = {
                name: Standing(one.trust, one.level)
                for name, one in zip(names, found, strict=True)
                if one.level != "unknown"
            }
        found_now = {memory.id: Standing(memory.trust, memory.level) for memory in memories}
        for memory in memories if today else ():
            found_now[memory.id] = min(found_now[memory.id], *(today.get(name, BEST) for name in memory.sources), BEST)
        return found_now

    def _screen_again(
        self, chosen: Sequence[Memory], now: Mapping[str, Standing]
    ) -> tuple[list[Recalled], list[Withheld]]:
        """What may be read of memories. Those of one trust are judged together, so that nobody spoils a better one."""
        groups: dict[Standing, list[Memory]] = {}
        for memory in chosen:
            groups.setdefault(now[memory.id], []).append(memory)
        recalled, withheld = list[Recalled](), list[Withheld]()
        policy = ToolPolicy({NAME: ToolSettings(threshold=self.threshold)})
        for standing, group in groups.items():
            screened = screen_tool_result(NAME, [memory.text for memory in group], policy=policy)
            texts = [memory.text for memory in group] if screened.blocked else screened.value
            for memory, text in zip(group, texts, strict=True):
                claim = None if memory.state == "released" else _claim(text, standing.level)
                if standing.level == "blocked":
                    withheld.append(Withheld(memory, Reason.of("tool.source")))
                elif screened.blocked or not text.replace(MARK, "").strip():
                    withheld.append(Withheld(memory, screened.reason))
                elif claim is not None:
                    withheld.append(Withheld(memory, Reason.of(claim)))
                else:
                    origins = dict.fromkeys(filter(None, map(self._origin, memory.sources)))
                    recalled.append(Recalled(memory, text, standing.level, standing.trust, tuple(origins)))
        return recalled, withheld


def _claim(text: str, level: Level) -> str | None:
    """A claim about the agent's rules, or an order to it, from who may not make it."""
    if level == "trusted":
        return None
    found = claim_of(text)
    return None if found == "memory.order" and level == "known" else found


def _seconds(after: datetime | float | None) -> float:
    if after is None:
        return float("-inf")
    if isinstance(after, datetime):
        return after.astimezone().timestamp()
    if isinstance(after, bool) or not isinstance(after, (int, float)) or after != after:
        raise OptionError(f"after must be a time or seconds since 1970, got {clip(after)}")
    return float(after)


def _check_text(name: str, text: object, most: int) -> None:
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{name} must be a text, got {clip(text)}")
    if len(text) > most:
        raise InputError(f"{name} has {len(text):,} characters, more than {most:,}; split it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"{name} holds half a character: {clip(text)}; decode it anew") from None
