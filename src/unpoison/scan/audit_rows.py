"""Reads events from audit logs, saved screenings, and the output of `screen` and `ask`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from unpoison.core.passages import Passage, Query, as_passages
from unpoison.core.reasons import PROMPT_INJECTION
from unpoison.errors import InputError, clip
from unpoison.io.rows import QUERY_FIELDS
from unpoison.report.rendering import excerpt
from unpoison.scan.audit_log import VERSION, detail
from unpoison.sources.allow import text_hash
from unpoison.utils.fences import digest_text

__all__ = ["Event", "Sighting", "moment", "read_event"]

MAX_KEY = 200
"""Maximum characters of an id; a longer one is replaced by its hash."""

MAX_SOURCE = 500
"""Maximum characters of a source or an author."""

MAX_TEXT = 1_000_000
"""Maximum characters of a text that are read."""

SHOWN = 160
"""Maximum characters of a text in a report."""

TIME_FIELDS = ("time", "timestamp", "date", "asked_at")
MILLISECONDS = 1e11
"""A larger number is in milliseconds."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One document in one answer.

    Attributes:
        document: Its id, or # and a hash of its text.
        label: The beginning of its text, "" if the log has no texts.
        source, author: "" if unknown.
        dropped: Whether it was dropped.
        injection: Whether it was dropped for a prompt injection.
        allow: The entry of its text in a policy's list `allow`, "" if the log has no texts.
    """

    document: str
    label: str
    source: str
    author: str
    dropped: bool
    injection: bool = False
    allow: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One question and the verdicts on its documents.

    Attributes:
        time: Seconds since 1970, None if unknown.
        question: A hash of the question.
        asked: The beginning of the question, "" if the log has no texts.
        defense: The name of the defense.
        sightings: The documents in retrieval order.
        newer: Whether the row is of a newer version than this one.
        watched: Whether dropped documents were passed on nevertheless (`mode="monitor"`).
    """

    time: float | None
    question: str
    asked: str
    defense: str
    sightings: tuple[Sighting, ...]
    newer: bool = False
    watched: bool = False


def read_event(fields: Mapping[str, Any]) -> Event:
    """Read one row.

    Raises:
        InputError: It has no screening; the message says what is missing.
    """
    try:
        if "audit" in fields:
            return _read_log_line(fields)
        if isinstance(fields.get("screening"), Mapping):
            return _read_saved_row(fields, fields["screening"])
        if "verdicts" in fields and "passages" in fields:
            return _read_saved_row(fields, fields)
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"the screening cannot be read: {type(error).__name__}: {clip(str(error))}") from None
    if isinstance(fields.get("error"), str):
        raise InputError(f"was not screened: {fields['error'][:SHOWN]}")
    raise InputError(
        f"no screening: a row needs 'audit', or 'screening' with 'passages', got the fields "
        f"{clip(sorted(map(str, fields)))}"
    )


def moment(value: object) -> float | None:
    """Seconds since 1970, from an ISO text (UTC by default) or a number of seconds or milliseconds."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        if isinstance(value, (int, float)):
            seconds = float(value) / (1000 if abs(value) > MILLISECONDS else 1)
        else:
            read = datetime.fromisoformat(str(value).strip()[:40])
            seconds = (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if isfinite(seconds) and 0 <= seconds < MILLISECONDS else None  # such as any clock shows in UTC


def _read_log_line(fields: Mapping[str, Any]) -> Event:
    """Read a line of the audit log; unknown fields of newer versions are ignored."""
    version = fields["audit"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"audit must be the version of the row, 1 or more, got {clip(version)}")
    passages = fields["passages"]
    if not isinstance(passages, list) or not all(isinstance(p, Mapping) for p in passages):
        raise InputError(f"passages must be a list of objects, got {clip(passages)}")
    query = _text(fields, "query")
    return Event(
        _time(fields),
        _text(fields, "query_hash")[:MAX_KEY] or _question(query),
        excerpt(query, SHOWN),
        _text(fields, "defense")[:MAX_KEY] or "unnamed",
        tuple(map(_read_sighting, passages)),
        newer=version > VERSION,
        watched=fields.get("action") == "monitor",
    )


def _read_sighting(fields: Mapping[str, Any]) -> Sighting:
    kept, text = fields["kept"], _text(fields, "text")
    if not isinstance(kept, bool):
        raise InputError(f"kept must be true or false, got {clip(kept)}")
    return Sighting(
        _key(_text(fields, "id") or f"#{_text(fields, 'hash') or digest_text('passage', Passage(text).reading)}"),
        excerpt(text, SHOWN),
        _text(fields, "source")[:MAX_SOURCE],
        _text(fields, "author")[:MAX_SOURCE],
        not kept,
        fields.get("injection") is True,
        text_hash(text) if text else "",
    )


def _read_saved_row(fields: Mapping[str, Any], screening: Mapping[str, Any]) -> Event:
    """Read a row with its passages and a screening; the verdicts may be missing."""
    query = next((fields[name] for name in QUERY_FIELDS if isinstance(fields.get(name), str)), None)
    if query is None or fields.get("passages") is None:
        raise InputError("a saved screening needs 'query' and 'passages'; audit the output of screen")
    passages = as_passages(fields["passages"])
    kept = _kept_positions(screening, len(passages))
    injections = {verdict["index"] for verdict in screening.get("verdicts") or () if _is_injection(verdict)}
    return Event(
        _time(fields),
        _question(query),
        excerpt(query, SHOWN),
        _text(screening, "defense")[:MAX_KEY] or "unnamed",
        tuple(
            Sighting(
                _key(passage.id or f"#{digest_text('passage', passage.reading)}"),
                excerpt(passage.text, SHOWN),
                _sound(passage.source or "")[:MAX_SOURCE],
                _sound(detail(passage, "author") or ""),
                i not in kept,
                i not in kept and i in injections,
                text_hash(passage.text),
            )
            for i, passage in enumerate(passages)
        ),
    )


def _kept_positions(screening: Mapping[str, Any], k: int) -> list[int]:
    """The kept positions, from their list or from the verdicts."""
    if isinstance(screening.get("kept"), list):
        kept = screening["kept"]
    else:
        kept = [verdict["index"] for verdict in screening["verdicts"] if verdict["kept"]]
    if not all(type(i) is int and 0 <= i < k for i in kept):
        raise InputError(f"the screening keeps {clip(kept)}, but the row has {k} passages")
    return list(kept)


def _is_injection(verdict: Mapping[str, Any]) -> bool:
    parts = (verdict.get("parameters") or {}).get("clauses") or ()
    return PROMPT_INJECTION in (verdict.get("code"), *(part[0] for part in parts))


def _time(fields: Mapping[str, Any]) -> float | None:
    return next((time for name in TIME_FIELDS if (time := moment(fields.get(name))) is not None), None)


def _question(text: str) -> str:
    return digest_text("query", Query(text).reading)


def _key(name: str) -> str:
    name = _sound(name)
    return name if len(name) <= MAX_KEY else f"{name[:40]}…{digest_text('id', name)}"


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return _sound(value)[:MAX_TEXT] if isinstance(value, str) else ""


def _sound(text: str) -> str:
    """The text without lone surrogates, which cannot be written to a file."""
    return text.encode("utf-8", "replace").decode()
