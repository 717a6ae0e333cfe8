"""Whom guilty documents reached: the questions of an audit log that they answered, since when, and who was answered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from unpoison.bench.incident.scope import Suspect, is_cited
from unpoison.bench.redteam.targets import Answered
from unpoison.core.passages import Passage
from unpoison.errors import InputError
from unpoison.io.files import open_source
from unpoison.scan.audit_log import parts_of
from unpoison.scan.audit_rows import Event, Sighting, read_event
from unpoison.scan.collection import origins
from unpoison.scan.documents import Document
from unpoison.utils.fences import digest_text

__all__ = ["Reach", "ReachedQuestion", "reach_of"]

MAX_KEPT = 1_000
"""Questions, people and documents that are named; the others are counted."""


@dataclass(slots=True)
class ReachedQuestion:
    """A question that was answered with a guilty document.

    Attributes:
        asked: The beginning of its text, or its hash where the log has no texts.
        answers: How often.
        first, last: Seconds since 1970; None where the log has no times.
        documents: Ids of the guilty ones that were read.
    """

    asked: str
    answers: int = 0
    first: float | None = None
    last: float | None = None
    documents: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Reach:
    """Whom the guilty documents reached.

    Attributes:
        rows: Answers that the log has.
        unreadable: Rows that could not be read.
        answers: Those that were given from a guilty document.
        kept_away: Those where all guilty documents that came up were dropped.
        first, last: When guilty documents were read, seconds since 1970; None where nobody says.
        questions: By question, those asked most in front.
        people: How many of these answers everybody got, where the log says who asked.
        company: By origin of a guilty document, the ids of other documents of the log that came from there.
    """

    rows: int = 0
    unreadable: int = 0
    answers: int = 0
    kept_away: int = 0
    first: float | None = None
    last: float | None = None
    questions: list[ReachedQuestion] = field(default_factory=list)
    people: list[tuple[str, int]] = field(default_factory=list)
    company: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("rows", "unreadable", "answers", "kept_away")},
            "first": moment_text(self.first),
            "last": moment_text(self.last),
            "questions": [
                {
                    "question": one.asked, "answers": one.answers, "first": moment_text(one.first),
                    "last": moment_text(one.last), "documents": sorted(one.documents),
                }
                for one in self.questions
            ],
            "people": [{"who": who, "answers": answers} for who, answers in self.people],
            "company": self.company,
        }  # fmt: skip

    @property
    def first_time(self) -> str:
        return moment_text(self.first) or "a time that the log does not say"


def reach_of(guilty: Sequence[Suspect], logs: Sequence[str]) -> Reach:
    """Look guilty documents up in audit logs, by their ids, or by their texts or hashes of these.

    Args:
        guilty: The documents.
        logs: As for `unpoison audit`; older parts of rotated logs are read too.

    Raises:
        OSError, InputError: A log cannot be read.
    """
    reach, known = Reach(), _Known(guilty)
    questions, people = dict[str, ReachedQuestion](), Counter[str]()
    company = defaultdict[str, dict[str, None]](dict)
    for fields in _rows(logs):
        event = None if fields is None else _event(fields)
        if fields is None or event is None:
            reach.unreadable += 1
            continue
        reach.rows += 1
        read, seen = set[str](), False
        for sighting, passage in zip(event.sightings, fields["passages"]):
            name = known.name(sighting, passage)
            if name is None:
                for origin in known.origins & set(_origins(sighting)):
                    if len(company[origin]) < MAX_KEPT:
                        company[origin][sighting.document] = None
                continue
            seen = True
            if not sighting.dropped or fields.get("action") == "monitor":  # dropped ones were passed on all the same
                read.add(name)
        reach.kept_away += seen and not read
        if read:
            _add_answer(reach, event, read, questions)
            who = _who(fields)
            if who and (who in people or len(people) < MAX_KEPT):
                people[who] += 1
    reach.questions = sorted(questions.values(), key=lambda one: (-one.answers, one.asked))
    reach.people = people.most_common()
    reach.company = {origin: list(names) for origin, names in company.items() if names}
    return reach


def moment_text(seconds: float | None) -> str | None:
    """A time as ISO text."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


class _Known:
    """The guilty documents, as a log may name them."""

    def __init__(self, guilty: Sequence[Suspect]) -> None:
        self._guilty = {suspect.id: suspect.text for suspect in guilty}
        self._hashes = {
            digest_text("passage", Passage(text).reading): suspect.id
            for suspect in guilty
            for text in (suspect.text, suspect.text.partition("\n")[2])  # with the title, and without
            if text.strip()
        }
        self.origins = {origin for suspect in guilty for origin in suspect.origins}

    def name(self, sighting: Sighting, passage: object) -> str | None:
        """The id of the guilty document that this is; None where it is another one."""
        if sighting.document in self._guilty:
            return sighting.document
        fields = passage if isinstance(passage, Mapping) else {"text": passage}
        for digest in (fields.get("hash"), sighting.document.removeprefix("#")):
            if isinstance(digest, str) and digest in self._hashes:
                return self._hashes[digest]
        text = fields.get("text")
        if not isinstance(text, str):
            return None
        said = Answered("", (text,))
        return next((name for name, own in self._guilty.items() if is_cited("", own, said)), None)


def _rows(logs: Sequence[str]) -> Iterator[Mapping[str, Any] | None]:
    """Every row; None for one that cannot be read."""
    for part in dict.fromkeys(part for log in logs for part in parts_of(log)):
        with open_source(str(part)) as source:
            for record in source:
                yield None if record.error is not None else record.fields


def _event(fields: Mapping[str, Any]) -> Event | None:
    try:
        return read_event(fields)
    except InputError:
        return None


def _origins(sighting: Sighting) -> tuple[str, ...]:
    passage = Passage("-", id=sighting.document, source=sighting.source or None)
    return origins(Document(passage, author=sighting.author or None))


def _who(fields: Mapping[str, Any]) -> str:
    request = fields.get("request")
    names = (request.get("user"), request.get("client")) if isinstance(request, Mapping) else ()
    return next((name[:200] for name in names if isinstance(name, str) and name), "")


def _add_answer(reach: Reach, event: Event, read: set[str], questions: dict[str, ReachedQuestion]) -> None:
    reach.answers += 1
    times = [time for time in (reach.first, reach.last, event.time) if time is not None]
    reach.first, reach.last = (min(times), max(times)) if times else (None, None)
    if event.question not in questions and len(questions) >= MAX_KEPT:
        return
    one = questions.setdefault(event.question, ReachedQuestion(event.asked or event.question))
    one.answers += 1
    one.documents |= read
    times = [time for time in (one.first, one.last, event.time) if time is not None]
    one.first, one.last = (min(times), max(times)) if times else (None, None)
