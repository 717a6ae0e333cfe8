"""Which passages made the model say that: after a wrong answer, the documents behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from unpoison.core.passages import Passage, as_passages, as_query
from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import FileRow
from unpoison.io.rows import QUERY_FIELDS
from unpoison.models.functions import GeneratorFunction
from unpoison.models.loading import as_generator, can_write
from unpoison.models.protocols import Generator, Models
from unpoison.models.requests import Flow
from unpoison.retrieval.base import Retriever
from unpoison.retrieval.bm25 import BM25Retriever
from unpoison.runtime.driver import Limits, arun, run
from unpoison.scan.statements import statements
from unpoison.scan.trace_methods import Culprits, Interview, Spent, by_groups, by_judge, by_leaving_one_out, by_matching
from unpoison.types import Call
from unpoison.utils.checks import among, at_least

__all__ = [
    "METHODS",
    "Method",
    "Suspect",
    "Trace",
    "TraceCase",
    "Tracer",
    "choose_row",
    "find_row",
    "is_row",
    "retriever_of",
]

Method = Literal["groups", "leave-one-out", "judge", "matching"]
METHODS = ("groups", "leave-one-out", "judge", "matching")

DEEPER = 5
"""Of a retriever so many times as many passages are fetched as are read: others come up where the guilty are gone."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """What was found of one passage.

    Attributes:
        index: Its position.
        guilty: Whether it is named.
        stated: How plainly it states the answer, in [0, 1].
        reason: One sentence.
    """

    index: int
    guilty: bool
    stated: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"index": self.index, "guilty": self.guilty, "stated": round(self.stated, 4), "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Trace:
    """Who made the model say that.

    Attributes:
        question, answer: What was looked for.
        passages: All that were looked at, in retrieval order.
        suspects: One for each, most suspicious first; those that are named stand in front.
        method: How they were found.
        asked: How many prompts the generator was sent.
        reproduced: Whether the generator gives the answer again; None where it was not asked.
        caused: Whether it was seen to give another answer without the culprits; otherwise they are no more than
            consistent with it.
        without: What it replies without the guilty; None where that was not wanted, or no call was left.
        notes: Anything unusual.
        calls: The account of all calls.
    """

    question: str
    answer: str
    passages: tuple[Passage, ...]
    suspects: tuple[Suspect, ...]
    method: str
    asked: int = 0
    reproduced: bool | None = None
    caused: bool = False
    without: str | None = None
    notes: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def culprits(self) -> tuple[int, ...]:
        """Positions of the named passages, most suspicious first."""
        return tuple(suspect.index for suspect in self.suspects if suspect.guilty)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values, with the passages' ids and sources but not their texts."""
        named = [{name: getattr(p, name) for name in ("id", "source") if getattr(p, name)} for p in self.passages]
        return {
            "question": self.question,
            "answer": self.answer,
            "method": self.method,
            "culprits": list(self.culprits),
            "suspects": [{**suspect.to_dict(), **named[suspect.index]} for suspect in self.suspects],
            "reproduced": self.reproduced,
            "caused": self.caused,
            "without": self.without,
            "asked": self.asked,
            "notes": list(self.notes),
        }


class Tracer:
    """Finds the passages behind an answer.

        found = Tracer("reader").trace("who built the Vasa", "Henrik Hybertsson", passages)
        found.culprits, found.without

    The methods:

    - `groups`: the generator is asked again with halves of the passages, those that state the answer first. Where one
      of k is guilty, it is named after ceil(log2 k) + 1 calls at most, mostly 3, and one or two confirm it. Several
      culprits are found one by one.
    - `leave-one-out`: without which passage is the answer another? k + 1 calls. Misses what is planted twice.
    - `judge`: RAGForensics (Zhang et al., WWW 2025): the generator judges each passage alone. k calls.
    - `matching`: no call; passages are named that state the answer. The only one without a generator: these are
      consistent with the answer, and nothing shows that they caused it.

    Args:
        generator: The one that gave the answer, or another, or its name; None for matching alone.
        method: One of these; None for groups with a generator and matching without.
        k: How many passages the model reads at once; None for all. Further ones take the places of the guilty.
        calls: How many prompts may be sent for one answer.
        remove: Whether to ask, in the end, without the guilty.
        limits: Bounds on the model calls.

    Raises:
        OptionError: An option out of its range, or a method that needs a generator without one.
    """

    def __init__(
        self,
        generator: Generator | GeneratorFunction | str | None = None,
        *,
        method: Method | None = None,
        k: int | None = None,
        calls: int = 64,
        remove: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.generator = as_generator(generator)
        chosen = method or ("matching" if generator is None else "groups")
        self.method = among("method", chosen, METHODS)
        if self.generator is None and (method not in (None, "matching") or remove):
            raise OptionError(
                f"{'remove' if remove else method} asks a generator; give one, such as reader or extractive"
            )
        self.k = None if k is None else at_least("k", k, 1)
        self.calls = at_least("calls", calls, 1)
        self.remove = remove
        self.limits = limits

    def trace(self, question: str, answer: str, passages: Any) -> Trace:
        """Find who made the model say `answer`.

        Args:
            question: What was asked.
            answer: What the model said, or the wrong part of it, such as "Sydney".
            passages: What it read, in retrieval order; or a retriever, of which `DEEPER` times `k` (10 without one)
                are fetched.

        Raises:
            InputError: No answer, or an unusable question or passage.
            ModelError: The generator failed.
        """
        flow, models = self._flow(question, answer, self._passages_of(question, passages))
        result, calls = run(flow, models, self.limits)
        return replace(result, calls=calls)

    async def atrace(self, question: str, answer: str, passages: Any) -> Trace:
        """`trace` for asyncio; a retriever is asked on this thread."""
        flow, models = self._flow(question, answer, self._passages_of(question, passages))
        result, calls = await arun(flow, models, self.limits)
        return replace(result, calls=calls)

    def _passages_of(self, question: str, passages: Any) -> tuple[tuple[Passage, ...], int | None]:
        """The passages, and how many of them are read at once."""
        if not callable(getattr(passages, "retrieve", None)):
            return as_passages(passages), self.k
        k = self.k or 10
        return as_passages(list(passages.retrieve(question, DEEPER * k))), k

    def _flow(
        self, question: str, answer: str, read: tuple[tuple[Passage, ...], int | None]
    ) -> tuple[Flow[Trace], Models]:
        query = as_query(question)
        if not isinstance(answer, str) or not answer.strip():
            raise InputError(f"answer must be what the model said, got {clip(answer)}; give its words")
        passages, k = read
        return self._trace_flow(query.reading, answer.strip(), passages, k), Models(generator=self.generator)

    def _trace_flow(self, question: str, answer: str, passages: tuple[Passage, ...], k: int | None) -> Flow[Trace]:
        texts = [passage.reading for passage in passages]
        stated = statements(question, answer, texts)
        interview = Interview(question, answer, texts, self.calls)

        def window(gone: Collection[int]) -> list[int]:
            return [i for i in range(len(texts)) if i not in gone][:k]

        writes = self.generator is not None and can_write(self.generator)
        if self.method == "groups":
            culprits = yield from by_groups(interview, stated, window, remembers=writes)
        elif self.method == "leave-one-out":
            culprits = yield from by_leaving_one_out(interview, stated, window)
        elif self.method == "judge":
            culprits = yield from by_judge(interview, window, writes=writes)
        else:
            culprits = by_matching(stated)
        if others := [i for i in by_matching(stated).positions if i not in culprits.reasons]:
            culprits.notes.append(f"these state the answer as well: {', '.join(map(str, others))}")
        without = None
        if self.remove:
            try:
                without = yield from interview.reply(window(culprits.positions))
            except Spent:
                culprits.notes.append("no call was left to ask without the guilty")
        return Trace(
            question, answer, passages, _suspects(culprits, stated), self.method, interview.sent_count,
            culprits.reproduced, culprits.withheld, without, tuple(culprits.notes),
        )  # fmt: skip


def _suspects(culprits: Culprits, stated: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Suspect, ...]:
    """All passages: the named in the order in which they were found, then the others by what they state."""
    others = [i for i in np.argsort(-stated, kind="stable").tolist() if i not in culprits.reasons]
    named = [Suspect(i, True, float(stated[i]), culprits.reasons[i]) for i in culprits.positions]
    rest = [Suspect(i, False, float(stated[i]), f"states the answer to {stated[i]:.2f}") for i in others]
    return (*named, *rest)


@dataclass(frozen=True, slots=True)
class TraceCase:
    """A question, what was answered, and what the model read.

    Attributes:
        question, answer: None where the row does not say.
        passages: In the order in which the model read them: those that the screening kept, best first, where there was
            one.
    """

    question: str | None
    answer: str | None
    passages: tuple[Passage, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> TraceCase:
        """Read a line of the audit log, or a row with passages that was screened and answered, or neither.

        Raises:
            InputError: The log was kept without texts, or the row cannot be used.
        """
        question = next((fields[name] for name in QUERY_FIELDS if isinstance(fields.get(name), str)), None)
        answer = fields.get("answer")
        answer_text = answer.get("text") if isinstance(answer, Mapping) else answer
        if "audit" in fields:
            passages = _logged_passages(fields["passages"])
        else:
            passages = _kept_passages(as_passages(fields["passages"]), fields.get("screening"))
        return cls(question, answer_text if isinstance(answer_text, str) else None, passages)


def is_row(fields: Mapping[str, Any]) -> bool:
    """Whether a line holds a question's passages, rather than being a document itself."""
    return "passages" in fields


def choose_row(records: Iterable[FileRow], *, number: int | None, id: str | None, question: str | None) -> TraceCase:
    """`find_row` as a case.

    Raises:
        InputError: As for `find_row`, and for `TraceCase.of`.
    """
    return TraceCase.of(find_row(records, number=number, id=id, question=question).fields)


def find_row(
    records: Iterable[FileRow], *, number: int | None = None, id: str | None = None, question: str | None = None
) -> FileRow:
    """The row that is meant: by its line, its id or request id, its question, or because it is the only one.

    Of a request id its beginning will do, 4 characters or more.

    Raises:
        InputError: There is no such row, or it cannot be read; or none was named and there are several.
    """
    first: FileRow | None = None
    lines = list[int]()  # of the first row and the last
    for record in records:
        lines = [*lines[:1], record.number]
        if number is not None and record.number != number:
            continue
        if record.error is not None:
            if number is not None:
                raise InputError(f"line {number}: {record.error}")
            continue
        if (id is not None and not _is(record.fields, id)) or (question is not None and not _asks(record, question)):
            continue
        if first is not None:
            raise InputError(
                f"lines {first.number} and {record.number} both fit; say which is meant with --row {first.number}"
            )
        first = record
        if number is not None:
            break
    if first is None and number is not None and lines:
        raise InputError(f"no row {number:,}; rows go by their line in the file, here {lines[0]:,} to {lines[-1]:,}")
    if first is None:
        what = "its question" if question is not None else "its id"
        raise InputError(f"no row fits; look at {what}, or leave it out where there is one row")
    return first


def retriever_of(records: Iterable[FileRow], k: int) -> tuple[Passage, ...] | Retriever:
    """The documents of a file: as they stand where a model could read them all, else a BM25 index of them.

    Raises:
        InputError: A line cannot be read: a document that is missing could be the guilty one.
    """
    documents = []
    for record in records:
        if record.error is not None:
            raise InputError(f"line {record.number}: {record.error}")
        try:
            documents.append(Passage.of(record.fields))
        except InputError as error:
            raise InputError(f"line {record.number}: {error}") from None
    if not documents:
        raise InputError("the file holds no documents; give one on each line, with 'text'")
    return tuple(documents) if len(documents) <= k else BM25Retriever(documents)


def _asks(record: FileRow, question: str) -> bool:
    own = (record.fields.get(name) for name in QUERY_FIELDS)
    return any(isinstance(text, str) and text.strip() == question.strip() for text in own)


def _is(fields: Mapping[str, Any], id: str) -> bool:
    request = fields.get("request")
    logged = request.get("id") if isinstance(request, Mapping) else None
    begins = isinstance(logged, str) and len(id) >= 4 and logged.startswith(id)
    return id in (fields.get("id"), logged) or begins


def _kept_passages(passages: tuple[Passage, ...], screening: object) -> tuple[Passage, ...]:
    kept = screening.get("kept") if isinstance(screening, Mapping) else None
    if kept is None:
        return passages
    if not isinstance(kept, list) or not all(type(i) is int and 0 <= i < len(passages) for i in kept):
        raise InputError(f"the screening keeps {clip(kept)}, but the row has {len(passages)} passages")
    return tuple(passages[i] for i in kept)


def _logged_passages(passages: object) -> tuple[Passage, ...]:
    if not isinstance(passages, list) or not all(isinstance(p, Mapping) for p in passages):
        raise InputError(f"passages must be a list of objects, got {clip(passages)}")
    kept = [p for p in passages if p.get("kept") is True]
    if any(not isinstance(p.get("text"), str) for p in kept):
        raise OptionError(
            "the log was kept without texts, so there is nothing to read again; give the documents themselves, with "
            "--question and --answer, or keep texts with --audit-texts keep"
        )
    return as_passages(list(kept))
