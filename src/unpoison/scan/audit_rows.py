"""Rows of logs to events: the audit log of any version, saved screenings, what `screen`, `ask`, `batch` write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite, isnan
from typing import Any

from unpoison.core.passages import Passage, Query, as_passages
from unpoison.core.reasons import PROMPT_INJECTION, Reason
from unpoison.errors import InputError, clip
from unpoison.io.rows import QUERY_FIELDS
from unpoison.report.rendering import excerpt
from unpoison.scan.audit_log import VERSION, agreement, detail, terms
from unpoison.utils.fences import digest_text

__all__ = ["Event", "Sighting", "moment", "read_event"]

MAX_KEY = 200
"""Characters of an id; what stands in place of a longer one is its hash."""

MAX_SOURCE = 500
"""Characters of a source or an author."""

MAX_TEXT = 1_000_000
"""Characters of a text that are read."""

CONTRADICTED = "sources.contradicted"
"""The code of what goes because sources that count say otherwise."""

SHOWN = 160
"""Characters of a text that are kept, to be shown."""

TIME_FIELDS = ("time", "timestamp", "date", "asked_at")
MILLISECONDS = 1e11
"""A number of seconds beyond this is one of milliseconds."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One document in one answer.

    Attributes:
        document: Its id, or a hash of its text where it has none.
        label: The beginning of its text, "" where the log has none.
        source, author: Where it came from.
        dropped: Whether it was kept from the model.
        suspicion: The probability of poison where the defense gives one, else 1 or 0, in [0, 1].
        order: Whether it was dropped for a prompt injection.
        agrees: Which share of its names and numbers the kept ones have too; None where unknown.
        contested: Whether it stood on a side of a dispute, or was dropped for what sources that count contradict.
        by_threshold: Whether it was dropped because its probability, which is `suspicion`, is above a threshold.
    """

    document: str
    label: str
    source: str
    author: str
    dropped: bool
    suspicion: float
    order: bool = False
    agrees: float | None = None
    contested: bool = False
    by_threshold: bool = False


@dataclass(frozen=True, slots=True)
class Event:
    """One question, and what became of its documents.

    Attributes:
        time: Seconds since 1970, None where the row has none.
        question: What tells it from others: a hash of its text.
        asked: The beginning of its text, "" where the log has none.
        terms: Its words, or hashes of them.
        defense: Who judged.
        sightings: In retrieval order.
        newer: Whether the row is of a newer version than this code knows.
        watched: Whether what was dropped went to the model all the same (`mode="monitor"`).
    """

    time: float | None
    question: str
    asked: str
    terms: tuple[str, ...]
    defense: str
    sightings: tuple[Sighting, ...]
    newer: bool = False
    watched: bool = False


def read_event(fields: Mapping[str, Any]) -> Event:
    """Read one row.

    Raises:
        InputError: It holds no screening; the message says what it lacks.
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
    """Seconds since 1970 of an ISO text (UTC unless it says otherwise) or a number of seconds or milliseconds."""
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


def _time(fields: Mapping[str, Any]) -> float | None:
    return next((time for name in TIME_FIELDS if (time := moment(fields.get(name))) is not None), None)


def _read_log_line(fields: Mapping[str, Any]) -> Event:
    """A line of the audit log; of a newer version the fields that this version knows."""
    version = fields["audit"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise InputError(f"audit must be the version of the row, 1 or more, got {clip(version)}")
    passages = fields["passages"]
    if not isinstance(passages, list) or not all(isinstance(p, Mapping) for p in passages):
        raise InputError(f"passages must be a list of objects, got {clip(passages)}")
    query = _text(fields, "query")
    contested = _contested(fields)
    given = fields.get("terms")
    words = [term for term in given if isinstance(term, str)][:64] if isinstance(given, list) else []
    return Event(
        _time(fields),
        _text(fields, "query_hash")[:MAX_KEY] or _question(query),
        excerpt(query, SHOWN),
        tuple(map(_sound, words or terms(Query(query).reading))),
        _text(fields, "defense")[:MAX_KEY] or "unnamed",
        tuple(
            _read_sighting(passage, i in contested, _share(fields.get("threshold")))
            for i, passage in enumerate(passages)
        ),
        newer=version > VERSION,
        watched=fields.get("action") == "monitor",
    )


def _contested(fields: Mapping[str, Any]) -> frozenset[int]:
    """Positions of the passages behind the sides of disputes."""
    rivals = [rival for contest in fields.get("contested") or () for rival in contest["rivals"]]
    return frozenset(i for rival in rivals for i in rival["passages"] if isinstance(i, int))


def _read_sighting(fields: Mapping[str, Any], contested: bool, threshold: float | None) -> Sighting:
    kept = fields["kept"]
    if not isinstance(kept, bool):
        raise InputError(f"kept must be true or false, got {clip(kept)}")
    text = _text(fields, "text")
    contradicted, probability = fields.get("code") == CONTRADICTED, _share(fields.get("probability"))
    above = threshold is not None and probability is not None and probability > threshold
    name = _text(fields, "id") or (f"#{_text(fields, 'hash') or digest_text('passage', Passage(text).reading)}")
    return Sighting(
        _key(name),
        excerpt(text, SHOWN),
        _text(fields, "source")[:MAX_SOURCE],
        _text(fields, "author")[:MAX_SOURCE],
        not kept,
        _probability(fields.get("probability"), kept=kept),
        fields.get("order") is True,
        _share(fields.get("agrees")),
        contested or contradicted,
        not kept and above and not contradicted and fields.get("order") is not True,
    )


def _read_saved_row(fields: Mapping[str, Any], screening: Mapping[str, Any]) -> Event:
    """A row with its passages and the summary of a screening; older ones have the kept positions alone."""
    query = next((fields[name] for name in QUERY_FIELDS if isinstance(fields.get(name), str)), None)
    if query is None or fields.get("passages") is None:
        raise InputError("a saved screening needs 'query' and 'passages' beside it; audit the rows that screen wrote")
    passages, reading = as_passages(fields["passages"]), Query(query).reading
    kept = _kept_positions(screening, len(passages))
    defense = _text(screening, "defense")[:MAX_KEY] or "unnamed"
    contested = _contested(screening)
    chances = _chances(screening, defense, len(passages))
    agrees = agreement(reading, [p.reading for p in passages], kept) if len(kept) < len(passages) else None
    return Event(
        _time(fields),
        _question(query),
        excerpt(query, SHOWN),
        tuple(map(_sound, terms(reading))),
        defense,
        tuple(
            Sighting(
                _key(passage.id or f"#{digest_text('passage', passage.reading)}"),
                excerpt(passage.text, SHOWN),
                _sound(passage.source or "")[:MAX_SOURCE],
                _sound(detail(passage, "author") or ""),
                i not in kept,
                _probability(chances[i], kept=i in kept),
                _is_injection(screening, i),
                None if agrees is None or isnan(agrees[i]) else float(agrees[i]),
                i in contested or _has_code(screening, i, CONTRADICTED),
            )
            for i, passage in enumerate(passages)
        ),
    )


def _kept_positions(screening: Mapping[str, Any], k: int) -> list[int]:
    """The kept positions, by their list or by the verdicts."""
    if isinstance(screening.get("kept"), list):
        kept = screening["kept"]
    else:
        kept = [verdict["index"] for verdict in screening["verdicts"] if verdict["kept"]]
    if not all(type(i) is int and 0 <= i < k for i in kept):
        raise InputError(f"the screening keeps {clip(kept)}, but the row has {k} passages")
    return sorted(set(kept))


def _chances(screening: Mapping[str, Any], defense: str, k: int) -> Sequence[Any]:
    """Probabilities of poison by position, None where unknown: as listed, of the evidence, or by Guard's score."""
    listed = screening.get("probability")
    if listed is None:
        arrays = (screening.get("evidence") or {}).get("arrays") or {}
        listed = (arrays.get("probability") or {}).get("values")
    if listed is None and defense == "guard":
        scores = {verdict["index"]: verdict["score"] for verdict in screening.get("verdicts") or ()}
        listed = [1 - scores[i] if i in scores else None for i in range(k)]
    return listed if isinstance(listed, list) and len(listed) == k else [None] * k


def _is_injection(screening: Mapping[str, Any], position: int) -> bool:
    return _has_code(screening, position, PROMPT_INJECTION)


def _has_code(screening: Mapping[str, Any], position: int, code: str) -> bool:
    verdicts = screening.get("verdicts") or ()
    dropped = (v for v in verdicts if v["index"] == position and not v["kept"])
    try:
        return any(code in Reason.from_dict({"reason": "", **verdict}).codes for verdict in dropped)
    except ValueError as error:
        raise InputError(f"the reason of passage {position} cannot be read: {clip(str(error), 200)}") from None


def _question(text: str) -> str:
    return digest_text("query", Query(text).reading)


def _key(name: str) -> str:
    name = _sound(name)
    return name if len(name) <= MAX_KEY else f"{name[:40]}…{digest_text('id', name)}"


def _probability(value: object, *, kept: bool) -> float:
    return share if (share := _share(value)) is not None else float(not kept)


def _share(value: object) -> float | None:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
        return min(max(float(value), 0.0), 1.0)
    return None


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return _sound(value)[:MAX_TEXT] if isinstance(value, str) else ""


def _sound(text: str) -> str:
    """Without lone surrogates, which no file takes."""
    return text.encode("utf-8", "replace").decode()
