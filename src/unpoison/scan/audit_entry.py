"""One line of the audit log: what was asked, which documents were read, and what became of each.

Version 1. With texts: question, passages, reasons and the answer as they are. Without: keyed hashes, by which the same
question and the same document are known again, and hashes of the question's words, by which related questions are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison import __version__
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import PROMPT_INJECTION
from unpoison.models.questions import read_question
from unpoison.models.sentences import STOP_WORDS, split, stem
from unpoison.scan.stating import says
from unpoison.types import Answer, Screening, Verdict
from unpoison.utils.fences import digest_text

__all__ = ["VERSION", "agreement", "detail", "entry", "terms"]

VERSION = 1
"""Readers of the log read what they know of newer ones."""

MAX_TERMS = 32
"""Words of a question that are kept, as hashes or as they are."""

MAX_NAME = 512
"""Characters of an id, a source or an author that are written."""


def entry(
    result: Screening | Answer,
    *,
    texts: bool,
    time: datetime | None = None,
    action: str | None = None,
    request: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """What the log says of a screening or an answer, as JSON-ready values.

    Args:
        result: What a defense returned.
        texts: Whether the texts are written, or hashes in their place.
        time: When; now by default.
        action: What became of the dropped: "drop", "demote", or "monitor" where they were passed on.
        request: Names of the request, such as its id and the client's address.
    """
    screening = result.screening if isinstance(result, Answer) else result
    question = Query(screening.query).reading
    agrees = agreement(question, [p.reading for p in screening.passages], screening.kept_indices)
    fields: dict[str, Any] = {
        "audit": VERSION,
        "time": (time or datetime.now(UTC)).isoformat(timespec="milliseconds"),
        "version": __version__,
        "defense": screening.defense,
        "action": action,
        "request": dict(request) if request else None,
        **_question(screening.query, question, texts=texts),
        "threshold": _number(screening.evidence.get("threshold")),
        "calibration": _name(screening.evidence.get("calibration")),
        "passages": [
            _passage(screening, verdict, float(agrees[verdict.index]), texts=texts) for verdict in screening.verdicts
        ],
        "contested": [_contest(contest.to_dict(), texts=texts) for contest in screening.contested] or None,
    }
    if isinstance(result, Answer):
        fields["answer"] = _answer(result, question, texts=texts)
    return {name: value for name, value in fields.items() if value is not None}


def terms(question: str) -> list[str]:
    """The stems by which questions are compared, rising."""
    return sorted(read_question(question).content)[:MAX_TERMS]


def detail(passage: Passage, name: str) -> str | None:
    """A field of the caller's own object, or of its metadata, where that is a text: author, added_at."""
    own: object = passage.original
    for holder in (own, _field(own, "metadata"), _field(own, "meta")):
        value = _field(holder, name)
        if isinstance(value, str) and value.strip():
            return value[:MAX_NAME]
    return None


def agreement(question: str, texts: Sequence[str], kept: Sequence[int]) -> NDArray[np.float64]:
    """Which share of a text's names and numbers, apart from the question's, some other kept text has as well.

    A planted claim names what nobody else names; what was dropped by mistake mostly says what the others say. Linear
    time in the texts.

    Returns:
        Shape (k,), in [0, 1]; nan where a text has none, or there is nothing to compare with.
    """
    question_words = read_question(question).content
    named = [_distinctive_stems(text) - question_words for text in texts]
    holders: dict[str, int] = {}
    for i in kept:
        for word in named[i]:
            holders[word] = holders.get(word, 0) + 1
    own = frozenset(kept)
    shares = np.full(len(texts), np.nan)
    for i, words in enumerate(named):
        if words and own - {i}:
            shares[i] = np.mean([holders.get(word, 0) > (i in own) for word in words])
    return shares


def _distinctive_stems(text: str) -> frozenset[str]:
    """The names and numbers of a text, as stems; all its words in scripts without capitals."""
    words = [word for sentence in split(text) for word in sentence.words]
    names = {word for word in words if word[:1].isupper() or word[:1].isdecimal()}
    if not any(word[:1].islower() for word in words):
        names = set(words)
    return frozenset(stem(word) for word in names) - STOP_WORDS


def _question(text: str, reading: str, *, texts: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"query_hash": digest_text("query", reading)}
    if texts:
        return {"query": text, **fields}
    return {**fields, "terms": [digest_text("term", term)[:8] for term in terms(reading)]}


def _passage(screening: Screening, verdict: Verdict, agrees: float, *, texts: bool) -> dict[str, Any]:
    passage = screening.passages[verdict.index]
    probability, injections = (screening.evidence.get(name) for name in ("probability", PROMPT_INJECTION))
    fields: dict[str, Any] = {
        **{name: value[:MAX_NAME] for name in ("id", "source") if (value := getattr(passage, name))},
        **{name: value for name in ("author", "added_at") if (value := detail(passage, name))},
        "hash": digest_text("passage", passage.reading),
        "kept": verdict.kept,
        "score": _round(verdict.score),
        "probability": None if probability is None else _round(float(probability[verdict.index])),
        "order": True if injections is not None and not verdict.kept and _is_injection(verdict) else None,
        "agrees": None if np.isnan(agrees) else round(agrees, 3),
    }
    if texts:
        fields |= {"text": passage.text, "title": passage.title, "reason": verdict.reason}
    return {name: value for name, value in fields.items() if value is not None}


def _is_injection(verdict: Verdict) -> bool:
    return PROMPT_INJECTION in verdict.reason.codes


def _contest(contest: dict[str, Any], *, texts: bool) -> dict[str, Any]:
    if texts:
        return contest
    return {"rivals": [{"passages": rival["passages"], "voices": rival["voices"]} for rival in contest["rivals"]]}


def _answer(answer: Answer, question: str, *, texts: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"abstained": answer.abstained, "hash": digest_text("answer", answer.text)}
    if not answer.abstained:
        passages = answer.screening.passages
        fields["stated_by"] = [i for i, p in enumerate(passages) if says(question, p.reading, answer.text)]
    return {**fields, "text": answer.text} if texts else fields


def _field(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _number(value: NDArray[Any] | None) -> float | None:
    return None if value is None or value.ndim else _round(float(value))


def _name(value: NDArray[Any] | None) -> str | None:
    return None if value is None or value.ndim else str(value)


def _round(value: float) -> float | None:
    return round(value, 6) if np.isfinite(value) else None
