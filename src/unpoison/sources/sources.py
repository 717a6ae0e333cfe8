"""Sources: the standing of each passage's source, by a policy and a history."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, TypeVar

from unpoison.errors import InputError, OptionError, UnpoisonError
from unpoison.sources.allow import Allowed
from unpoison.sources.history import History, Outcome, Past, question_hash, retrieval_of
from unpoison.sources.origins import Metadata, is_shared, metadata_of, origin_of, source_in, source_of
from unpoison.sources.policy import LISTS, Pattern, Policy
from unpoison.sources.trust import Level, outcomes, trust
from unpoison.utils.checks import among
from unpoison.utils.extras import wired
from unpoison.utils.lru_cache import LRUCache

if TYPE_CHECKING:
    from unpoison.core.passages import Passage

__all__ = ["Sources", "Standing", "Tally"]

T = TypeVar("T")

PAUSE = 10.0
"""Seconds until a history that was unavailable is tried again."""

DATABASE = b"SQLite format 3\0"
"""The first bytes of an SQLite file."""

Record = tuple[int, Mapping[str, Outcome]]
"""The hash of a question, and the outcome of each origin."""

CHUNK = 500
"""Questions per transaction."""


class Standing(NamedTuple):
    """The standing of one passage's source.

    Attributes:
        origin: The party behind it; "" if unknown.
        level: `trusted`, `known`, `open` or `blocked` by the policy; `open` also on a host with user content if the
            address names no user; `seen` by the history; `fresh` if the history does not know it, or not for long
            enough; `unknown` without an origin, or without a policy and a history.
        trust: The weight of its claims, in [0, 1].
        questions: Number of other questions for which it was retrieved.
        first_day: Day of its first retrieval; None if there was none.
    """

    origin: str
    level: Level
    trust: float
    questions: int
    first_day: date | None


def _is_database(path: str | Path) -> bool:
    """Whether a file is an SQLite file; False if it cannot be read, which a later access reports."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(DATABASE)) == DATABASE
    except (OSError, ValueError):
        return False


def _today() -> date:
    return datetime.now(UTC).date()


class Sources:
    """Policy and history of sources: the origin and trust of each passage.

    Thread-safe; processes share a history through its file. If the history cannot be used, screening continues without
    it and `notes` say so.

    Args:
        policy: A YAML file or a mapping: lists of patterns `trusted`, `known`, `open`, `blocked`, and `origin`,
            `fresh`, `history`; None without a policy.
        history: An SQLite file, created if missing; a `History`; None for the policy's history, else for memory.
        today: Returns the current day.

    Raises:
        OptionError: The policy cannot be used.
    """

    def __init__(
        self,
        policy: Policy | str | Path | Mapping[str, Any] | None = None,
        history: History | str | Path | None = None,
        *,
        today: Callable[[], date] = _today,
    ) -> None:
        self.policy = Policy.of(policy)
        self.history = history if isinstance(history, History) else History(history or self.policy.history)
        self._today = today
        self._supposed: Mapping[str, Level] = {}
        self.allowed = Allowed(self.policy.allow)
        self._start()

    def _start(self) -> None:
        self._levels: LRUCache[tuple[str | None, str], str] = LRUCache(lambda _k, _v: 1, 4096)
        self._note, self._again, self.met = "", 0.0, ""
        self._matched = set[Pattern]()

    @classmethod
    def of(cls, value: Sources | Policy | str | Path | Mapping[str, Any] | None) -> Sources | None:
        """The `Sources` of an option `sources=`: an instance, a policy, or a history (SQLite); None for None.

        Raises:
            OptionError: The policy cannot be used, or is neither a file nor a mapping.
            InputError: The file of the history is damaged, or not a history.
            StoreError: It cannot be opened.
        """
        if value is None or isinstance(value, Sources):
            return value
        found = cls(history=value) if isinstance(value, (str, Path)) and _is_database(value) else cls(value)
        if found.history.path is not None:
            bool(found.history)  # an unusable file is an error now; later failures only add a note
        return found

    def suppose(self, levels: Mapping[str, Level]) -> Sources:
        """The same policy and history with other levels for some origins, for what-if questions.

        Args:
            levels: Origin -> `trusted`, `known`, `open` or `blocked`. Overrides the patterns of the policy.

        Raises:
            OptionError: An unknown level.
        """
        other = Sources(self.policy, self.history, today=self._today)
        other._supposed = {origin: among("level", level, LISTS) for origin, level in levels.items()}
        return other

    @property
    def informed(self) -> bool:
        """Whether sources can be distinguished: by a trusted or known source, or by a history.

        If not, every source that is not blocked or open is `unknown` with weight 1, as without sources.
        """
        if self.policy.informed or not {"trusted", "known"}.isdisjoint(self._supposed.values()):
            return True
        return bool(self._try(lambda: bool(self.history), default=False))

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about an unusable history."""
        return (self._note,) if self._note else ()

    def origin(self, passage: object) -> str:
        """The party behind a passage, by the policy's rule; "" if unknown.

        Args:
            passage: A `Passage`, or a mapping or object that `Passage.of` accepts.
        """
        return self._read(passage)[1]

    def blocks(self, passage: object) -> bool:
        """Whether the policy blocks its source."""
        return bool(self.policy.patterns or self._supposed) and self._level(*self._read(passage)) == "blocked"

    def spares(self, passage: Passage) -> bool:
        """Whether a passage is exempt from the style check: its source is trusted or known, or `allow` names it.

        Depends on the passage and the policy only, not on the history.
        """
        source, origin = self._read(passage)
        return self._level(source, origin) in ("trusted", "known") or self.allowed.matches(passage, origin)

    def unmatched(self) -> list[str]:
        """The patterns that no source matched so far; `met` is one of those sources, "" if there was none."""
        return [pattern.text for pattern, _ in self.policy.patterns if pattern not in self._matched]

    def trust(self, origin: str, question: str | None = None) -> float:
        """The weight of an origin's claims, in [0, 1]; the question itself does not count."""
        past = self._past([origin], question)
        return self._standing(None, origin, past.get(origin), self.informed).trust

    def standings(self, question: str, passages: Sequence[object]) -> tuple[Standing, ...]:
        """The standing of each passage's source; the question itself does not count.

        Args:
            question: The user's question.
            passages: As for `origin`.
        """
        located = [self._read(passage) for passage in passages]
        past = self._past([origin for _, origin in located], question)
        informed = bool(past) or self.informed
        return tuple(self._standing(source, origin, past.get(origin), informed) for source, origin in located)

    def record(self, question: str, outcomes: Mapping[str, Outcome]) -> None:
        """Record the outcome of each origin for a question.

        Args:
            question: The question; 8 bytes of a hash of its words are stored.
            outcomes: For each origin: `seen`, `agreed` with the answer, `contested` it, or `dropped`.
        """
        self._try(lambda: self.history.record(question, outcomes, self._today()), default=None)

    def learn(
        self, rows: Iterable[object], method: Literal["seen", "agreement"] = "seen", generator: Any = None
    ) -> Self:
        """Fill the history from rows: mappings with a question and passages, or `Row` objects.

        Args:
            rows: Rows with `query` or `question`, and `passages`.
            method: `seen` counts the questions for which each origin was retrieved. `agreement` also reads every
                passage and counts how often an origin agrees with the others, weighted by their estimated reliability
                (`reliability`); it needs no labels, and fails if most sources are wrong.
            generator: Reads the passages for `agreement`, such as "reader".

        Raises:
            OptionError: An unknown method, or no generator.
            InputError: A row without question or passages; the message has its number.
            StoreError: The history cannot be used.
        """
        if among("method", method, ("seen", "agreement")) == "agreement":
            self._write(self._agreement(rows, generator))
        else:
            self._write(self._read_records(rows))
        return self

    def _read_records(self, rows: Iterable[object]) -> Iterator[Record]:
        for number, row in enumerate(rows, 1):
            try:
                read = retrieval_of(row)
            except InputError as error:
                raise InputError(f"row {number}: {error}") from None
            yield question_hash(read.question or ""), read.outcomes([self.origin(one) for one in read.passages])

    def _agreement(self, rows: Iterable[object], generator: Any) -> Iterator[Record]:
        if generator is None:
            raise OptionError('method="agreement" reads passages: pass a generator such as "reader"')
        read = list(wired("answers_by_origin")(rows, self, generator))
        for (question, _), found in zip(read, outcomes([answers for _, answers in read])):
            yield question_hash(question), found

    def _write(self, records: Iterable[Record]) -> None:
        left = iter(records)
        while chunk := list(islice(left, CHUNK)):
            self.history.record_many(chunk, self._today())

    def forget(self, origin: str) -> bool:
        """Delete the record of an origin; return whether there was one."""
        return self.history.forget(origin)

    def _read(self, passage: object) -> tuple[str | None, str]:
        """The text that the origin is read from, and the origin."""
        held = getattr(passage, "metadata", None)
        if isinstance(held, Metadata):
            return self._locate(getattr(passage, "source", None), held)
        if isinstance(passage, Mapping):
            more = passage.get("metadata") or passage.get("meta")
            source, held = source_in(passage, more), metadata_of(passage, more)
        else:
            source, held = getattr(passage, "source", None) or source_in({}, held), metadata_of({}, held)
        return self._locate(source if isinstance(source, str) else None, held)

    def _locate(self, source: str | None, metadata: Mapping[str, Any]) -> tuple[str | None, str]:
        best = source_of(source, metadata)
        return best, origin_of(best, self.policy.origin, metadata)

    def _standing(self, source: str | None, origin: str, past: Past | None, informed: bool) -> Standing:
        questions, first = (0, None) if past is None else (past.questions, past.first_day)
        kept_questions = questions - (0 if past is None else past.dropped)  # where not all its passages were dropped
        level = self._level(source, origin)
        if level is None and not informed:
            return Standing(origin, "unknown", 1.0, questions, first)
        if level is None:
            level = self._age(origin, kept_questions, first)
        counts = (0, 0) if past is None else (past.agreed, past.contested)
        return Standing(origin, level, trust(level, kept_questions, *counts), questions, first)

    def _level(self, source: str | None, origin: str) -> Level | None:
        if origin in self._supposed:
            return self._supposed[origin]
        if not self.policy.patterns:
            return None
        level = self._levels.get((source, origin))
        if level is None:
            found = self.policy.matching(source, origin)
            level = found[0][1] if found else ""
            self._matched.update(pattern for pattern, _ in found)
            self.met = self.met or source or origin
            if len(source or "") <= 2_048:
                self._levels.put((source, origin), level)
        return level or None  # type: ignore[return-value]

    def _age(self, origin: str, questions: int, first: date | None) -> Level:
        if not origin:
            return "unknown"
        if is_shared(origin):
            return "open"  # user content without a named user
        young = first is not None and bool(self.policy.fresh) and (self._today() - first).days < self.policy.fresh
        return "seen" if questions and not young else "fresh"

    def _past(self, origins: Sequence[str], question: str | None) -> dict[str, Past]:
        but = None if question is None else question_hash(question)
        return self._try(lambda: self.history.past(origins, but), default={})

    def _try(self, use: Callable[[], T], default: T) -> T:
        """Use the history; after a failure, continue without it for `PAUSE` seconds, with a note."""
        if time.monotonic() < self._again:
            return default
        try:
            found = use()
        except OptionError:
            raise
        except UnpoisonError as error:
            self._note, self._again = f"screening continues without a history: {error}", time.monotonic() + PAUSE
            return default
        self._note = ""
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("policy", "history", "_today", "_supposed", "allowed")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def __repr__(self) -> str:
        return f"Sources({self.policy!r}, {self.history!r})"


SourcesOption: TypeAlias = Sources | str | Path | Mapping[str, Any] | None
"""`Sources`, a policy as a file or a mapping, or None: then every passage is its own source."""


class TallyRow(NamedTuple):
    """One origin ("" for unknown): its passages, their questions, its share, and its passages by level."""

    origin: str
    passages: int
    questions: int
    share: float
    levels: dict[str, int]


class Tally:
    """Counts by origin; a repeated question counts once, its passages each time."""

    def __init__(self) -> None:
        self.passages = 0
        self._passages: Counter[str] = Counter()
        self._questions: dict[str, set[int]] = {}
        self._levels: dict[str, Counter[str]] = {}

    def add(self, question: str | None, standings: Sequence[Standing]) -> None:
        """Count the passages of one question; None for documents without a question."""
        origins = [standing.origin for standing in standings]
        self.passages += len(origins)
        self._passages.update(origins)
        for standing in standings:
            self._levels.setdefault(standing.origin, Counter())[standing.level] += 1
        if question is not None:
            key = question_hash(question)
            for origin in set(origins):
                self._questions.setdefault(origin, set()).add(key)

    def rows(self) -> list[TallyRow]:
        """All origins, those with the most passages first."""
        ranked = sorted(self._passages.items(), key=lambda item: (-item[1], item[0]))
        asked = {origin: len(questions) for origin, questions in self._questions.items()}
        levels = {origin: dict(own.most_common()) for origin, own in self._levels.items()}
        return [TallyRow(name, n, asked.get(name, 0), n / self.passages, levels[name]) for name, n in ranked]
