"""The result of a scan: one finding for each document, most suspicious first, with reasons, spans and neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.codec import to_row
from unpoison.core.verdicts import Span
from unpoison.errors import clip
from unpoison.injections.imperatives import VOUCHES
from unpoison.scan.changed import Change
from unpoison.scan.collection import ScanCollection
from unpoison.scan.documents import Document, Unit
from unpoison.scan.engine import UnitScores
from unpoison.scan.parts import COVERT
from unpoison.scan.signs import COLUMNS, Imperatives, ScreeningOdds
from unpoison.sources.allow import text_hash
from unpoison.utils.files import Spilled
from unpoison.utils.plain_text import excerpt, first_of

__all__ = ["Finding", "Scan", "ScanEvidence", "findings"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The suspicion of one document, with reasons.

    Attributes:
        id: The name of the document.
        suspicion: Probability that it is planted, in [0, 1].
        flagged: Whether the suspicion reaches the threshold of the scan.
        spans: The suspicious parts, in the order of the text.
        reasons: The reasons, the strongest first.
        group: The name of its group of related documents, None without one.
        neighbours: Ids of similar documents outside the group, the nearest first.
        text: The caller's text.
        source, author, added_at: From its metadata, None if missing.
        notes: Warnings from reading the document.
    """

    id: str
    suspicion: float
    flagged: bool
    spans: tuple[Span, ...]
    reasons: tuple[str, ...]
    group: str | None
    neighbours: tuple[str, ...]
    text: str = field(repr=False)
    source: str | None = None
    author: str | None = None
    added_at: datetime | None = None
    notes: tuple[str, ...] = ()

    @property
    def allow(self) -> str:
        """The entry of a policy's list `allow` for exactly this text."""
        return text_hash(self.text)

    def to_dict(self) -> dict[str, Any]:
        """A row of `scan --json`: id, suspicion, flagged, spans, reasons, group, neighbours, and other known fields."""
        fields = to_row(self, leave_out=("text", "added_at"), sparse=("source", "author", "notes"))
        time = {} if self.added_at is None else {"added_at": self.added_at.isoformat()}
        return fields | time | ({"allow": self.allow} if self.flagged else {})


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan's result.

    Attributes:
        findings: One for each checked document, most suspicious first.
        documents: Number of documents in the source, checked or not.
        notes: Warnings about the scan as a whole.
    """

    findings: Sequence[Finding]
    documents: int
    notes: tuple[str, ...] = ()

    @property
    def flagged(self) -> tuple[Finding, ...]:
        """The documents above the threshold."""
        return tuple(finding for finding in self.findings if finding.flagged)

    def groups(self) -> dict[str, tuple[Finding, ...]]:
        """The groups with their members, most suspicious first."""
        groups = dict[str, tuple[Finding, ...]]()
        for finding in self.findings:
            if finding.group is not None:
                groups[finding.group] = (*groups.get(finding.group, ()), finding)
        return groups

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)


WORTH_NAMING = 0.25
"""Minimum probability of a reason; the strongest reason is always listed."""

INVENTED = -1.0
"""Style odds from which the style is a reason: fewer than one in a hundred human texts reach them."""

CERTAIN = 0.9
"""Minimum probability of an injection that is stated as a fact."""

NAMED = 5
"""Maximum number of neighbours, and of group members, in a reason."""


@dataclass(frozen=True)
class ScanEvidence:
    """The evidence on all units and documents.

    Attributes:
        screening_odds: Scores of the defense.
        signs: The features behind `claimed`, by unit and `COLUMNS`.
        claimed, hidden, suspicion: Probabilities by unit.
        scores: Of each unit on its own.
        strange: Unusual imperatives.
        changed: Numbers and names that differ from a near-copy's, by unit.
        withheld: Number of documents with such differences that come from a template and are not reported.
        groups: The name of the group, by document.
        failed: Number of questions that could not be screened.
    """

    screening_odds: ScreeningOdds
    signs: NDArray[np.float64]
    claimed: NDArray[np.float64]
    scores: Sequence[UnitScores]
    strange: Imperatives
    hidden: NDArray[np.float64]
    suspicion: NDArray[np.float64]
    changed: dict[int, Change]
    withheld: int
    groups: dict[int, str]
    failed: int


def findings(
    collection: ScanCollection, evidence: ScanEvidence, chosen: NDArray[np.bool_], threshold: float
) -> Sequence[Finding]:
    """One finding for each chosen document, most suspicious first; ties in the documents' order."""
    last = np.searchsorted(collection.owner, np.arange(len(collection.documents)), side="right")
    members = dict[str, list[str]]()
    for number, name in evidence.groups.items():
        members.setdefault(name, []).append(collection.ids[number])
    by_document, start = Spilled[Finding](), 0
    for number, end in enumerate(last.tolist()):
        if chosen[number]:
            group = members.get(evidence.groups.get(number, ""), [])
            by_document.append(_make_finding(collection, evidence, number, range(start, end), threshold, group))
        start = end
    suspicion = np.array([finding.suspicion for finding in by_document])
    return Spilled(by_document[i] for i in np.argsort(-suspicion, kind="stable").tolist())


def _make_finding(
    collection: ScanCollection, evidence: ScanEvidence, number: int, units: range, threshold: float, members: list[str]
) -> Finding:
    document, group = collection.documents[number], evidence.groups.get(number)
    suspicion = round(float(evidence.suspicion[units.start : units.stop].max(initial=0.0)), 4)
    spans, weighted_reasons = list[Span](), list[tuple[float, str]]()
    for unit in units:
        if evidence.suspicion[unit] >= min(WORTH_NAMING, suspicion):
            for weight, reason, span in _reasons(collection, document, evidence, unit):
                weighted_reasons.append((weight, reason))
                spans += [Span(*span, round(weight, 4), reason)] if span is not None and span[0] < span[1] else []
    together = [name for name in members if name != document.id]
    if together:
        joined = first_of(list(map(clip, together)), NAMED)
        weighted_reasons.append((WORTH_NAMING, f"it belongs together with {joined}"))
    reasons = dict.fromkeys(reason for _, reason in sorted(weighted_reasons, key=lambda item: -item[0]))
    return Finding(
        id=document.id,
        suspicion=suspicion,
        flagged=suspicion >= threshold,
        spans=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
        reasons=tuple(reasons) or (_nothing(document),),
        group=group,
        neighbours=_neighbours(collection, evidence, number, units),
        text=document.passage.text,
        source=document.passage.source,
        author=document.author,
        added_at=document.added_at,
        notes=document.notes,
    )


def _nothing(document: Document) -> str:
    """The finding without a reason; a note may say that parts of the document were not read."""
    return f"nothing unusual{' in what was read' if any('read' in note for note in document.notes) else ''}"


def _reasons(
    collection: ScanCollection, document: Document, evidence: ScanEvidence, unit: int
) -> list[tuple[float, str, tuple[int, int] | None]]:
    """Weight, wording with the place, and region (in the caller's text, if it stands there) of the evidence."""
    piece = collection.units[unit]
    found = list[tuple[float, str, tuple[int, int] | None]]()

    def add(weight: float, reason: str, words: str, region: tuple[int, int] | None = None) -> None:
        span, place = _place(document, piece, words, region)
        found.append((weight, f"{reason} ({place})" if place else reason, span))

    claimed, injection = float(evidence.claimed[unit]), evidence.scores[unit].injection
    if claimed >= WORTH_NAMING:
        add(claimed, _claim(collection, evidence, unit), "" if not piece.concealed else piece.body)
        question = collection.probes[unit]
        echo = evidence.signs[unit, COLUMNS.index("echo")]
        if question.asks and echo > 0:
            weight = claimed * float(min(echo, 1))
            add(weight, "a question stands in front of the text that answers it", piece.body[slice(*question.lead)])
    if unit in evidence.changed:
        change = evidence.changed[unit]
        at = document.passage.text.find(piece.body, piece.start, piece.end)
        add(change.suspicion, change.reason, "", None if at < 0 else (at + change.start, at + change.end))
    imperative, rarity = evidence.strange.strangest[unit], float(evidence.strange.probability[unit])
    if imperative is not None and rarity >= WORTH_NAMING:
        quote = piece.body[imperative.start : imperative.end]
        does = "insists that it is right, as" if imperative.form == VOUCHES else "demands, beside its own subject, what"
        add(rarity, f"it {does} hardly another document here does: {excerpt(quote, 160)!r}", quote)
    if injection.probability >= WORTH_NAMING or (imperative is None and rarity >= WORTH_NAMING):
        words = piece.text[injection.start : injection.end]
        speaks = "speaks" if injection.probability >= CERTAIN else "may speak"
        reason = f"it {speaks} to the model that reads it: {excerpt(injection.quote or words, 160)!r}"
        add(max(injection.probability, 0.0 if imperative else rarity), reason, words)
    if evidence.hidden[unit] > 0:
        likely = piece.text[injection.start : injection.end] if injection.probability >= WORTH_NAMING else ""
        words = (likely or piece.body.split("\n")[0]) if piece.concealed else ""
        hides = f"its markup hides {excerpt(words, 120)!r}" if words else f"it hides {piece.hidden}"
        add(float(evidence.hidden[unit]), hides, words)
    return found


def _place(
    document: Document, piece: Unit, words: str, region: tuple[int, int] | None
) -> tuple[tuple[int, int] | None, str]:
    """The region of some words in the caller's text (None if they are not in it), and their place for a reader.

    For words that are not found, the place is that of the whole unit or of all hidden text.
    """
    start = document.passage.text.find(words, piece.start, piece.end) if words else -1
    if region is None and start >= 0:
        region = start, start + len(words)
    reading, (begin, end) = document.reading, region or (piece.start, piece.end)
    if hidden := region is None and bool(piece.concealed):
        reading = document.covert if piece.concealed == COVERT else document.hidden
        begin = reading.text.find(words)
        begin, end = (begin, begin + len(words)) if begin >= 0 else (0, len(reading.text))
    first, last = reading.place(begin), reading.place(max(end - 1, begin))
    return None if hidden else (begin, end), first if first == last else f"{first} to {last}"


def _claim(collection: ScanCollection, evidence: ScanEvidence, unit: int) -> str:
    signs = dict(zip(COLUMNS, evidence.signs[unit].tolist()))
    own, others = (1 / (1 + np.exp(-signs[name])) for name in ("own", "others"))
    times = int(evidence.screening_odds.times[unit])
    by_others = f", {others:.2f} on average over {times} questions made of others" if times else ""
    style = "; each of its sentences is built as invented claims are" if signs["style"] >= INVENTED else ""
    return f"it reads like a planted claim beside its neighbours: {own:.2f} by its own words{by_others}{style}"


def _neighbours(collection: ScanCollection, evidence: ScanEvidence, number: int, units: range) -> tuple[str, ...]:
    """The nearest documents of the most suspicious unit, outside its group."""
    if not len(units):
        return ()
    unit = units.start + int(evidence.suspicion[units.start : units.stop].argmax())
    group = evidence.groups.get(number)
    near = dict.fromkeys(int(collection.owner[i]) for i in collection.near[unit] if i >= 0)
    outside = [document for document in near if group is None or evidence.groups.get(document) != group]
    return tuple(collection.ids[document] for document in outside[:NAMED])
