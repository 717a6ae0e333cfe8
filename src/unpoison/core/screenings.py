"""The result of `screen`, on the command line, over HTTP and in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from unpoison.core.codec import from_row
from unpoison.core.passages import Passage, Query, as_passages
from unpoison.core.reasons import Reason, as_reason
from unpoison.core.verdicts import Claim, Contest, Evidence, Span, Verdict, merge_spans, without
from unpoison.errors import InputError, clip
from unpoison.utils.extras import wired

__all__ = ["Screening"]

T = TypeVar("T")

SUMMARY = ("threshold", "probability", "calibration")
"""Evidence that is also in a summary: the threshold above which passages were dropped, and the coefficients used."""


@dataclass(frozen=True, slots=True)
class Screening:
    """The result of `screen`: a verdict on every passage, the kept ones best first, and the evidence.

    Kept plus dropped is exactly the input, by position; otherwise the constructor raises `ValueError`.

    Attributes:
        defense: The defense's name.
        query: The question.
        passages: The input, in its order.
        verdicts: One per passage, in input order.
        evidence: The arrays behind the verdicts.
        contested: Contradictions between passages without a clear majority; they drop nothing.
        claims: The answers of the passages, each read alone, the heaviest first; empty if none was read.
    """

    defense: str
    query: str
    passages: tuple[Passage, ...]
    verdicts: tuple[Verdict, ...]
    evidence: Evidence = field(default_factory=Evidence, compare=False)
    contested: tuple[Contest, ...] = ()
    claims: tuple[Claim, ...] = ()

    def __post_init__(self) -> None:
        if [v.index for v in self.verdicts] != list(range(len(self.passages))):
            raise ValueError(f"{len(self.passages)} passages need one verdict each, in order; got {len(self.verdicts)}")
        ranks = sorted(v.rank for v in self.verdicts if v.kept and v.rank is not None)
        if ranks != list(range(sum(v.kept for v in self.verdicts))):
            raise ValueError(f"kept verdicts must have the ranks 0, 1, 2, ..., got {ranks}")
        for verdict, passage in zip(self.verdicts, self.passages):
            for span in verdict.spans:
                whole = passage.text if span.field == "text" else passage.title or ""
                if span.end > len(whole):
                    raise ValueError(f"a span of passage {verdict.index} ends at {span.end} of {len(whole)} characters")
        for contest in self.contested:
            if contest.passages[-1] >= len(self.passages):
                raise ValueError(f"passage {contest.passages[-1]} is contested, but there are {len(self.passages)}")
        for claim in self.claims:
            if claim.passages[-1] >= len(self.passages):
                raise ValueError(f"passage {claim.passages[-1]} makes a claim, but there are {len(self.passages)}")

    @classmethod
    def decided(
        cls,
        defense: str,
        query: Query,
        passages: Sequence[Passage],
        *,
        kept: Sequence[int],
        scores: ArrayLike,
        reasons: Sequence[str | Reason],
        evidence: Evidence | None = None,
        contested: Sequence[Contest] = (),
        claims: Sequence[Claim] = (),
        spans: Mapping[int, Sequence[Span]] = MappingProxyType({}),
    ) -> Self:
        """Build a screening from a decision: `kept` best first; `scores`, `reasons` and `spans` by position.

        A reason is a `Reason`, or a string, which is shown unchanged.
        """
        rank = {int(index): number for number, index in enumerate(kept)}
        values = (np.asarray(scores, dtype=float) + 0.0).tolist()  # -0.0 becomes 0.0
        verdicts = tuple(
            Verdict(i, i in rank, value, rank.get(i), as_reason(reason), merge_spans(spans.get(i, ())))
            for i, (value, reason) in enumerate(zip(values, reasons, strict=True))
        )
        arrays = Evidence() if evidence is None else evidence
        return cls(defense, query.text, tuple(passages), verdicts, arrays, tuple(contested), tuple(claims))

    @property
    def kept_indices(self) -> tuple[int, ...]:
        """Input positions of the kept passages, best first."""
        kept = [v for v in self.verdicts if v.rank is not None]
        return tuple(v.index for v in sorted(kept, key=lambda v: v.rank or 0))

    @property
    def dropped_indices(self) -> tuple[int, ...]:
        """Input positions of the dropped passages, in input order."""
        return tuple(v.index for v in self.verdicts if not v.kept)

    @property
    def kept(self) -> tuple[Passage, ...]:
        """The kept passages, best first."""
        return tuple(self.passages[i] for i in self.kept_indices)

    @property
    def dropped(self) -> tuple[Passage, ...]:
        """The dropped passages, in input order."""
        return tuple(self.passages[i] for i in self.dropped_indices)

    @property
    def texts(self) -> tuple[str, ...]:
        """The kept passages for a model, best first: canonical, with title, without suspicious spans.

        "[removed]" replaces visible cuts. Give a model these texts, not the passages, so that it reads what was
        screened.
        """
        return tuple(passage.shown for passage in self.read)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the whole set, such as hidden text or a language that is not supported."""
        return self.evidence.notes

    @property
    def read(self) -> tuple[Passage, ...]:
        """The kept passages without their spans, best first; the same objects if there are no spans."""
        return tuple(without(self.passages[i], self.verdicts[i].cuts) for i in self.kept_indices)

    @property
    def redacted_indices(self) -> tuple[int, ...]:
        """Input positions of the kept passages with removed spans, best first."""
        return tuple(i for i in self.kept_indices if self.verdicts[i].cuts)

    def select(self, items: Sequence[T]) -> list[T]:
        """The caller's own objects at the kept positions, best first: `docs = screening.select(docs)`.

        The objects are unchanged; only `texts` has the cuts.
        """
        if len(items) != len(self.passages):
            raise InputError(
                f"items holds {len(items)} objects but {len(self.passages)} passages were screened; pass the same list"
            )
        return [items[i] for i in self.kept_indices]

    def explain(self) -> str:
        """The decision in plain text, for a terminal."""
        text: str = wired("rendering").explain(self)
        return text

    def _repr_html_(self) -> str:
        """The decision as a table, for a notebook."""
        html: str = wired("rendering").table(self)
        return html

    def __repr__(self) -> str:
        kept = f"kept {list(self.kept_indices)} of {len(self.passages)} passages"
        return f"Screening({self.defense!r}, {clip(self.query)}, {kept})"

    def summary(self) -> dict[str, Any]:
        """The fields of output rows: defense, kept positions and texts, verdicts, notes, and `SUMMARY`."""
        fields: dict[str, Any] = {
            "defense": self.defense,
            "kept": list(self.kept_indices),
            "texts": list(self.texts),
            "verdicts": [v.to_dict() for v in self.verdicts],
        }
        if self.contested:
            fields["contested"] = [contest.to_dict() for contest in self.contested]
        if self.claims:
            fields["claims"] = [claim.to_dict() for claim in self.claims]
        if self.evidence.notes:
            fields["notes"] = list(self.evidence.notes)
        return fields | {name: self.evidence[name].tolist() for name in SUMMARY if name in self.evidence}

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-ready values for `from_dict`, without embeddings and the caller's objects."""
        return {
            **self.summary(),
            "query": self.query,
            "passages": [passage.to_dict() for passage in self.passages],
            "evidence": self.evidence.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`, or of `summary` with `query` and `passages` added.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            notes = tuple(map(str, data.get("notes", ())))
            if "evidence" in data:
                evidence = Evidence.from_dict(data["evidence"], notes)
            else:
                evidence = Evidence({name: np.array(data[name]) for name in SUMMARY if name in data}, notes)
            fields = {name: data[name] for name in ("defense", "query", "verdicts")}
            fields |= {name: data.get(name, ()) for name in ("contested", "claims")}
            return from_row(cls, fields, passages=as_passages(data["passages"]), evidence=evidence)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"not a saved screening: {type(error).__name__}: {error}; pass the output of Screening.to_dict()"
            ) from error
