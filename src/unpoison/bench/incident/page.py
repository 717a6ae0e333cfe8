"""An incident as one page that works offline; what a store, a log or a system says is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unpoison.bench.incident.reach import ReachedQuestion, moment_text
from unpoison.bench.incident.results import STANDARDS, Incident
from unpoison.report.document import Table
from unpoison.report.pages import render

__all__ = ["incident_page"]

MAX_ROWS = 50
"""Of each table; the JSON has all."""

STEPS = {
    "incident": "The journal was begun.",
    "reproduced": "The question was asked with nothing withheld: the answer was wrong {wrong} of {asked} times.",
    "proven": "Suspects were withheld and put back; the answer depends on: {guilty}.",
    "repaired": "In quarantine: {quarantined}.",
    "undone": "Everything was put back.",
    "finished": "It ended: {verdict}.",
}


def incident_page(incident: Incident) -> str:
    """The page."""
    named = set(incident.guilty)
    suspects = incident.suspects[:MAX_ROWS]
    return render(
        "incident.html",
        incident=incident,
        standards=STANDARDS,
        timeline=Table("", ("time", "step"), tuple((row["at"], _step(row)) for row in incident.timeline)),
        regressions=Table(
            "",
            ("question", "before", "after", "broken"),
            tuple(
                (one.question, one.before, one.after or "not asked", "yes" if one.broken else "no")
                for one in incident.regressions
            ),
            flagged=frozenset(number for number, one in enumerate(incident.regressions) if one.broken),
        ),
        reached=Table(
            "",
            ("question", "answers", "since", "until", "documents"),
            tuple(map(_reached, incident.reach.questions[:MAX_ROWS])) if incident.reach else (),
        ),
        suspects=Table(
            "",
            ("document", "read", "similarity", "states the answer", "guilty"),
            tuple(
                (
                    one.id,
                    "yes" if one.cited else "not seen",
                    f"{one.similarity:.2f}",
                    f"{one.stated:.2f}",
                    "yes" if one.id in named else "not shown",
                )
                for one in suspects
            ),
            flagged=frozenset(number for number, one in enumerate(suspects) if one.id in named),
        ),
    )


def _step(row: Mapping[str, Any]) -> str:
    if row["event"] not in STEPS:
        return str(row["event"])
    proofs = [document["id"] for proof in row.get("proofs", ()) for document in proof["documents"]]
    quarantined = ", ".join(row.get("quarantined", ())) or "nothing"
    fields = {**row, "quarantined": quarantined, "guilty": ", ".join(proofs) or "none"}
    return STEPS[row["event"]].format(**fields)


def _reached(one: ReachedQuestion) -> tuple[str, ...]:
    times = [moment_text(time) or "unknown" for time in (one.first, one.last)]
    return (one.asked, f"{one.answers:,}", *times, ", ".join(sorted(one.documents)))
