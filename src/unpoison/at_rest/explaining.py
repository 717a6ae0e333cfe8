"""Evidence in words: reasons, spans of the caller's text, and the neighbours to compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpoison.at_rest.batches import Batch
from unpoison.at_rest.collection import Collection
from unpoison.at_rest.demanding import Demanding
from unpoison.at_rest.findings import Finding, Span
from unpoison.at_rest.rivals import Rival
from unpoison.at_rest.signs import COLUMNS, Heard, Signs
from unpoison.at_rest.units import Unit
from unpoison.errors import shown
from unpoison.kernels.demands import VOUCHES
from unpoison.kernels.orders import Order
from unpoison.rendering import excerpt

__all__ = ["Evidence", "findings"]

TOLD = 0.25
"""What is less probable than this is no reason, except for the strongest."""

MADE = -1.0
"""Style from which a text is said to be built as invented claims are: hardly one in a hundred of people's texts is."""

NAMED = 5
"""Neighbours and companions that are named."""


@dataclass(frozen=True)
class Evidence:
    """What was found of every unit, and of the documents together.

    Attributes:
        heard: What the defense said.
        signs: The rows behind `claimed`.
        claimed, hidden, suspicion: Probabilities by unit.
        orders: The most order-like stretch of each unit.
        strange: The demands that hardly any other document makes.
        unseen: By document, what its markup keeps from the eye.
        rivals: By unit.
        batches: Sudden ones.
        groups: The group's name by document.
        failed: How many questions could not be screened.
    """

    heard: Heard
    signs: Signs
    claimed: NDArray[np.float64]
    orders: list[Order]
    strange: Demanding
    hidden: NDArray[np.float64]
    unseen: dict[int, tuple[str, ...]]
    suspicion: NDArray[np.float64]
    rivals: dict[int, Rival]
    batches: list[Batch]
    groups: dict[int, str]
    failed: int


def findings(
    collection: Collection, evidence: Evidence, chosen: NDArray[np.bool_], threshold: float
) -> tuple[Finding, ...]:
    """One finding for each chosen document, most suspicious first; ties in the documents' order."""
    last = np.searchsorted(collection.owner, np.arange(len(collection.documents)), side="right")
    members = dict[str, list[str]]()
    for number, name in evidence.groups.items():
        members.setdefault(name, []).append(collection.documents[number].id)
    made, start = list[Finding](), 0
    for number, end in enumerate(last.tolist()):
        if chosen[number]:
            made.append(_finding(collection, evidence, number, range(start, end), threshold, members))
        start = end
    return tuple(sorted(made, key=lambda finding: -finding.suspicion))


def _finding(
    collection: Collection,
    evidence: Evidence,
    number: int,
    units: range,
    threshold: float,
    members: dict[str, list[str]],
) -> Finding:
    document, group = collection.documents[number], evidence.groups.get(number)
    suspicion = round(float(evidence.suspicion[units.start : units.stop].max(initial=0.0)), 4)
    spans, told = list[Span](), list[tuple[float, str]]()
    for unit in units:
        if evidence.suspicion[unit] >= min(TOLD, suspicion):
            for weight, reason, span in _reasons(collection, evidence, unit):
                told.append((weight, reason))
                spans += [] if span is None else [Span(*span, round(weight, 4), reason)]
    together = [name for name in members.get(group or "", ()) if name != document.id]
    if together:
        told.append((TOLD, f"it belongs together with {_listed(together)}"))
    told += [
        (TOLD, f"{len(batch.members)} documents share {batch.name} and agree mostly with each other")
        for batch in evidence.batches
        if number in batch.members
    ]
    reasons = dict.fromkeys(reason for _, reason in sorted(told, key=lambda item: -item[0]))
    return Finding(
        id=document.id,
        suspicion=suspicion,
        flagged=suspicion >= threshold,
        spans=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
        reasons=tuple(reasons) or ("nothing unusual",),
        group=group,
        neighbours=_neighbours(collection, evidence, number, units),
        text=document.passage.text,
        source=document.passage.source,
        author=document.author,
        added_at=document.added_at,
        notes=document.notes,
    )


def _reasons(collection: Collection, evidence: Evidence, unit: int) -> list[tuple[float, str, tuple[int, int] | None]]:
    """Weight, words and place of everything that speaks against a unit, each place in the caller's text."""
    found: list[tuple[float, str, tuple[int, int] | None]] = []
    one, raw = collection.units[unit], collection.documents[collection.units[unit].document].passage.text
    claimed, order = float(evidence.claimed[unit]), evidence.orders[unit]
    if claimed >= TOLD:
        found.append((claimed, _claim(collection, evidence, unit), (one.start, one.end)))
        asked = collection.probes[unit]
        echo = evidence.signs.rows[unit, COLUMNS.index("echo")]
        if asked.asks and echo > 0:
            lead = _place(raw, one, one.body[slice(*asked.lead)])
            found.append(
                (claimed * float(min(echo, 1)), "a question stands in front of the text that answers it", lead)
            )
        if unit in evidence.rivals:
            rival = evidence.rivals[unit]
            other = collection.documents[rival.other].id
            said = f"it says {shown(rival.ours)} where its near-copy {shown(other)} says {shown(rival.theirs)}"
            found.append((claimed * 0.9, said, _place(raw, one, rival.ours.partition(", ")[0])))
    demand, rarity = evidence.strange.strangest[unit], float(evidence.strange.probability[unit])
    if demand is not None and rarity >= TOLD:
        quote = one.body[demand.start : demand.end]
        does = "insists that it is right, as" if demand.form == VOUCHES else "demands, beside its own subject, what"
        said = f"it {does} hardly another document here does: {excerpt(quote, 160)!r}"
        found.append((rarity, said, _place(raw, one, quote)))
    if order.probability >= TOLD or (demand is None and rarity >= TOLD):
        said = f"it speaks to the model that reads it: {excerpt(order.quote, 160)!r}"
        words = one.text[order.start : order.end] or order.quote
        found.append((max(order.probability, 0.0 if demand else rarity), said, _place(raw, one, words)))
    if evidence.hidden[unit] > 0:
        unseen = evidence.unseen[one.document]
        said = f"it hides {one.hidden}" if one.hidden else f"its markup hides {excerpt(unseen[0], 120)!r}"
        found.append((float(evidence.hidden[unit]), said, _place(raw, one, unseen[0] if unseen else "")))
    return found


def _claim(collection: Collection, evidence: Evidence, unit: int) -> str:
    found = dict(zip(COLUMNS, evidence.signs.rows[unit].tolist()))
    own, others = (1 / (1 + np.exp(-found[name])) for name in ("own", "others"))
    times = int(evidence.heard.times[unit])
    by_others = f", {others:.2f} on average over {times} questions made of others" if times else ""
    made = "; each of its sentences is built as invented claims are" if found["style"] >= MADE else ""
    return f"it reads like a planted claim beside its neighbours: {own:.2f} by its own words{by_others}{made}"


def _neighbours(collection: Collection, evidence: Evidence, number: int, units: range) -> tuple[str, ...]:
    """Whoever stands nearest to the most suspicious unit and is not of its group."""
    if not len(units):
        return ()
    unit = units.start + int(evidence.suspicion[units.start : units.stop].argmax())
    group = evidence.groups.get(number)
    near = dict.fromkeys(int(collection.owner[i]) for i in collection.near[unit] if i >= 0)
    outside = [other for other in near if group is None or evidence.groups.get(other) != group]
    return tuple(collection.documents[other].id for other in outside[:NAMED])


def _place(raw: str, unit: Unit, words: str) -> tuple[int, int]:
    """Where words stand in the unit's part of the text; the whole part where they do not stand so."""
    at = raw.find(words, unit.start, unit.end) if words else -1
    return (unit.start, unit.end) if at < 0 else (at, at + len(words))


def _listed(names: list[str]) -> str:
    some = ", ".join(shown(name) for name in names[:NAMED])
    return some if len(names) <= NAMED else f"{some} and {len(names) - NAMED:,} more"
