"""What a scan says: one finding for each document, most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from unpoison.types import Span

__all__ = ["Finding", "Scan"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How suspicious one document is, and why.

    Attributes:
        id: Its name.
        suspicion: Of being planted, in [0, 1].
        flagged: Whether that is above the scan's threshold.
        spans: The parts that are suspicious, in the order of the text.
        reasons: Why, the strongest first.
        group: The name of the documents that it belongs to, None where it stands alone.
        neighbours: Ids of documents about the same that are not of its group, the nearest first.
        text: The document's text, as the caller has it.
        source, author, added_at: Where it comes from, where its metadata say so.
        notes: What was unusual when it was read.
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

    def to_dict(self) -> dict[str, Any]:
        """A row of `scan --json`: id, suspicion, flagged, spans, reasons, group, neighbours, and what there is else."""
        origin = {"source": self.source, "author": self.author}
        if self.added_at is not None:
            origin["added_at"] = self.added_at.isoformat()
        return {
            "id": self.id,
            "suspicion": self.suspicion,
            "flagged": self.flagged,
            "spans": [span.to_dict() for span in self.spans],
            "reasons": list(self.reasons),
            "group": self.group,
            "neighbours": list(self.neighbours),
            **{name: value for name, value in origin.items() if value is not None},
            **({"notes": list(self.notes)} if self.notes else {}),
        }


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan's result.

    Attributes:
        findings: One for each document that was judged, most suspicious first.
        documents: How many the source holds, the ones that were not judged included.
        notes: On the scan as a whole.
    """

    findings: tuple[Finding, ...]
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
