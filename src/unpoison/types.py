"""What passes between the rooms: screenings and answers out, with the passages of `unpoison.passages` in.

All of these are frozen and validated where they are made, so that everything behind the door can rely on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.beliefs.belief import BeliefUpdate
from unpoison.errors import InputError, shown
from unpoison.passages import MAX_PASSAGES, Passage, Query, Vector, as_passages, as_query
from unpoison.spans import Span, united, without

__all__ = [
    "MAX_PASSAGES",
    "Answer",
    "Call",
    "Contest",
    "Evidence",
    "Passage",
    "Query",
    "Reply",
    "Rival",
    "Screening",
    "Span",
    "Vector",
    "Verdict",
    "as_passages",
    "as_query",
    "promised",
    "united",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a defense says of one passage.

    Attributes:
        index: Its position in the input.
        kept: Whether the model may read it.
        score: The defense's own trust score; higher is more trusted; scales differ between defenses.
        rank: 0 for the best of the kept, None when dropped.
        reason: One sentence, naming the neighbours that incriminate or support it.
        spans: What in its text is suspicious, the title's first, rising and without overlaps; a kept passage is read
            without these.

    Raises:
        ValueError: Spans that overlap or do not rise.
    """

    index: int
    kept: bool
    score: float
    rank: int | None
    reason: str
    spans: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        if self.spans and united(self.spans) != tuple(self.spans):
            raise ValueError(f"the spans of passage {self.index} must rise and not overlap, got {shown(self.spans)}")

    def to_dict(self) -> dict[str, Any]:
        return {
            "index": self.index,
            "kept": self.kept,
            "score": self.score,
            "rank": self.rank,
            "reason": self.reason,
            "spans": [span.to_dict() for span in self.spans],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote; without `spans` it has none."""
        return cls(**{**data, "spans": tuple(map(Span.from_dict, data.get("spans", ())))})


@dataclass(frozen=True, slots=True)
class Evidence(Mapping[str, NDArray[Any]]):
    """The named arrays that a decision rests on, read-only, plus notes on anything unusual.

    Attributes:
        arrays: For example `similarity` (k, k), `clusters` (k,), `centrality` (k,).
        notes: Sentences such as "fewer than 3 passages: nothing to compare".
        graph: Which (k, k) array the picture draws as edges.
    """

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    graph: str | None = None

    def __post_init__(self) -> None:
        frozen = {}
        for name, value in self.arrays.items():
            array = np.asarray(value).view()
            array.setflags(write=False)
            frozen[name] = array
        object.__setattr__(self, "arrays", MappingProxyType(frozen))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


@dataclass(frozen=True, slots=True)
class Rival:
    """One of several answers that cannot all be right.

    Attributes:
        answer: Its words, from a passage; hostile.
        passages: Positions of the passages that give it, ascending; at least one.
        voices: How many of them are independent, 1 to all: near-copies have one voice together.

    Raises:
        ValueError: An empty answer, positions that are not ascending, or voices out of range.
    """

    answer: str
    passages: tuple[int, ...]
    voices: int

    def __post_init__(self) -> None:
        if not isinstance(self.answer, str) or not self.answer.strip():
            raise ValueError(f"a rival needs an answer, got {shown(self.answer)}")
        if not self.passages or not _ascending(self.passages):
            raise ValueError(f"a rival needs ascending positions of its passages, got {shown(self.passages)}")
        if not 1 <= self.voices <= len(self.passages):
            raise ValueError(f"{len(self.passages)} passages have 1 to {len(self.passages)} voices, got {self.voices}")

    def to_dict(self) -> dict[str, Any]:
        return {"answer": self.answer, "passages": list(self.passages), "voices": self.voices}


def _ascending(positions: Sequence[object]) -> bool:
    numbers = [i for i in positions if type(i) is int and i >= 0]
    return len(numbers) == len(positions) and numbers == sorted(set(numbers))


@dataclass(frozen=True, slots=True)
class Contest:
    """What the passages disagree on, with nobody clearly in the right; as text, a sentence for the user.

    Attributes:
        rivals: Two or more, those with the most voices first; no passage is behind two of them.

    Raises:
        ValueError: Fewer than two rivals, or a passage behind two of them.
    """

    rivals: tuple[Rival, ...]

    def __post_init__(self) -> None:
        if len(self.rivals) < 2:
            raise ValueError(f"a contest needs two or more rivals, got {len(self.rivals)}")
        if len(self.passages) < sum(len(rival.passages) for rival in self.rivals):
            raise ValueError("a passage stands behind two rivals of one contest; give it to one of them")

    @property
    def passages(self) -> tuple[int, ...]:
        """All positions, ascending."""
        return tuple(sorted({i for rival in self.rivals for i in rival.passages}))

    def __str__(self) -> str:
        """Such as "sources disagree: 30 days (2 passages), 14 days (1)"; copies are said to be copies."""
        said = []
        for place, rival in enumerate(self.rivals):
            count = len(rival.passages)
            unit = "" if place else " passages" if count > 1 else " passage"
            copies = f", {rival.voices} independent" if rival.voices < count else ""
            said.append(f"{_unmistakable(rival.answer)} ({count}{unit}{copies})")
        return f"sources disagree: {', '.join(said)}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values; `says` is the sentence."""
        return {"says": str(self), "rivals": [rival.to_dict() for rival in self.rivals]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return cls(tuple(Rival(r["answer"], tuple(r["passages"]), r["voices"]) for r in data["rivals"]))


def _unmistakable(answer: str) -> str:
    """An answer as a sentence can hold it: in quotation marks if it could be taken for the counts around it."""
    return '"{}"'.format(answer.replace('"', "'")) if any(mark in answer for mark in '(),:"') else answer


@dataclass(frozen=True, slots=True)
class Screening:
    """What `screen` returns: a verdict on every passage, the kept ones best first, and the evidence.

    Kept plus dropped is exactly the input, by position; making one that is not raises `ValueError`.

    Attributes:
        defense: The defense's name.
        query: The question.
        passages: The input, in its order.
        verdicts: One per passage, in input order.
        evidence: The arrays behind the verdicts.
        contested: What the passages disagree on where no side has a clear majority; nothing is dropped because of it.
    """

    defense: str
    query: str
    passages: tuple[Passage, ...]
    verdicts: tuple[Verdict, ...]
    evidence: Evidence = field(default_factory=Evidence, compare=False)
    contested: tuple[Contest, ...] = ()

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

    @classmethod
    def decided(
        cls,
        defense: str,
        query: Query,
        passages: Sequence[Passage],
        *,
        kept: Sequence[int],
        scores: ArrayLike,
        reasons: Sequence[str],
        evidence: Evidence | None = None,
        contested: Sequence[Contest] = (),
        spans: Mapping[int, Sequence[Span]] = MappingProxyType({}),
    ) -> Self:
        """Assemble a screening from a decision: `kept` best first, `scores`, `reasons` and `spans` by position."""
        rank = {int(index): place for place, index in enumerate(kept)}
        values = (np.asarray(scores, dtype=float) + 0.0).tolist()  # -0.0 becomes 0.0
        verdicts = tuple(
            Verdict(i, i in rank, value, rank.get(i), reason, united(spans.get(i, ())))
            for i, (value, reason) in enumerate(zip(values, reasons, strict=True))
        )
        found = Evidence() if evidence is None else evidence
        return cls(defense, query.text, tuple(passages), verdicts, found, tuple(contested))

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
        """The kept passages as a model should read them, best first: canonical, the title in front, spans cut.

        "[removed]" stands where something visible was cut. With `Guard(action="redact")` give a model these, not the
        passages: what a model reads is then what was screened.
        """
        return tuple(passage.shown for passage in self.read)

    @property
    def read(self) -> tuple[Passage, ...]:
        """The kept passages, best first, their reading without their spans; the very objects where there are none."""
        return tuple(without(self.passages[i], self.verdicts[i].spans) for i in self.kept_indices)

    @property
    def redacted_indices(self) -> tuple[int, ...]:
        """Input positions of the kept passages that are read without their spans, best first."""
        return tuple(i for i in self.kept_indices if self.verdicts[i].spans)

    def select(self, items: Sequence[T]) -> list[T]:
        """The caller's own objects for the kept positions, best first: `docs = screening.select(docs)`.

        They are whole, whatever is cut in `texts`.
        """
        if len(items) != len(self.passages):
            raise InputError(
                f"items holds {len(items)} objects but {len(self.passages)} passages were screened; pass the same list"
            )
        return [items[i] for i in self.kept_indices]

    def rethreshold(self, threshold: float) -> Self:
        """The same evidence with another threshold: dropped is what has a higher probability of being poison.

        The kept passages stand in input order. Nothing is computed again, so this costs nothing; what is contested
        stays what it was. What was kept without spans still is, or goes; of the others' spans those stay that have a
        higher probability than the threshold, and what goes only now has none.

        Args:
            threshold: In [0, 1]; 1 keeps everything.

        Raises:
            InputError: The threshold is out of range, or the defense gave no probabilities.
        """
        if isinstance(threshold, bool) or not (isinstance(threshold, (int, float)) and 0 <= threshold <= 1):
            raise InputError(f"threshold must be a probability between 0 and 1, got {shown(threshold)}")
        probability = self.evidence.arrays.get("probability")
        if probability is None or probability.shape != (len(self.passages),):
            raise InputError(
                f"{self.defense} gives no probabilities, so its threshold cannot be moved afterwards; "
                "screen again with other options, or use guard"
            )
        rank = {int(index): place for place, index in enumerate(np.flatnonzero(probability <= threshold))}
        verdicts = tuple(
            replace(
                v,
                kept=v.index in rank,
                rank=rank.get(v.index),
                spans=tuple(s for s in v.spans if v.kept or s.probability > threshold),
            )
            for v in self.verdicts
        )
        arrays = {**self.evidence.arrays, "threshold": np.array(float(threshold))}
        return replace(self, verdicts=verdicts, evidence=replace(self.evidence, arrays=arrays))

    def explain(self) -> str:
        """The decision in plain text, for a terminal."""
        from unpoison.rendering import explain

        return explain(self)

    def to_html(self) -> str:
        """One self-contained page with the picture of the similarity graph and every reason, escaped."""
        from unpoison.rendering import page

        return page([self])

    def summary(self) -> dict[str, Any]:
        """What output rows carry: defense, kept positions and texts, verdicts; what is contested and notes, if any."""
        found: dict[str, Any] = {
            "defense": self.defense,
            "kept": list(self.kept_indices),
            "texts": list(self.texts),
            "verdicts": [v.to_dict() for v in self.verdicts],
        }
        if self.contested:
            found["contested"] = [contest.to_dict() for contest in self.contested]
        if self.evidence.notes:
            found["notes"] = list(self.evidence.notes)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready values; `from_dict` reads it back (embeddings and the caller's objects stay out)."""
        return {
            **self.summary(),
            "query": self.query,
            "passages": [
                {
                    name: value
                    for name in ("text", "id", "title", "source", "score")
                    if (value := getattr(p, name)) is not None
                }
                for p in self.passages
            ],
            "evidence": {
                "arrays": {
                    name: {"dtype": str(array.dtype), "values": array.tolist()} for name, array in self.evidence.items()
                },
                "graph": self.evidence.graph,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            evidence = data["evidence"]
            return cls(
                defense=data["defense"],
                query=data["query"],
                passages=as_passages(data["passages"]),
                verdicts=tuple(map(Verdict.from_dict, data["verdicts"])),
                evidence=Evidence(
                    {name: np.array(a["values"], dtype=a["dtype"]) for name, a in evidence["arrays"].items()},
                    tuple(data.get("notes", ())),
                    evidence["graph"],
                ),
                contested=tuple(map(Contest.from_dict, data.get("contested", ()))),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"not a saved screening: {type(error).__name__}: {error}; pass what Screening.to_dict() wrote"
            ) from error


@dataclass(frozen=True, slots=True)
class Reply:
    """What a generator returns for one prompt.

    Attributes:
        text: The reply, whole.
        prompt_tokens, completion_tokens: None where the model does not say.
        finish: Why it ended: "stop", "length", "refusal", or the provider's word.
        cached: Whether it came from the response cache.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str = "stop"
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """The account of one model call.

    Attributes:
        kind: "encode", "generate", "judge", "read", "relate", "compare", "likelihood", "next token" or
            "retrieve".
        model: The model's name.
        purpose: What the defense wanted, such as "atomic answer".
        seconds: Wall time, retries included.
        items: How many texts, prompts or pairs it carried.
        attempts: 1 unless it was retried.
        prompt_tokens, completion_tokens: None where unknown.
        cached: Whether the reply came from the cache.
    """

    kind: str
    model: str
    purpose: str
    seconds: float
    items: int = 1
    attempts: int = 1
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Answer:
    """What `answer` returns.

    Attributes:
        text: The answer.
        screening: Which passages stood behind it.
        calls: Every model call, in the order of their start.
        abstained: True when there was nothing trustworthy to answer from.
        screened: False only where the caller asked to answer unscreened after a failure.
        details: Named intermediate texts (atomic answers, internal knowledge, consolidated information).
        belief: What RADAR's memory did, where it has one.
        guarantee: An m such that no change to any m of these passages changes the answer: whatever others stand in
            their place, whether they are gone or more than these came in, and wherever they stand; a passage that
            fails (a model error, a deadline) is no answer. The largest m that the method can prove; 0 where one passage
            may change it, None where the method has no proof. It says nothing on whether the answer is true.
        proof: The rule that proves it, in a sentence.
    """

    text: str
    screening: Screening
    calls: tuple[Call, ...] = ()
    abstained: bool = False
    screened: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)
    belief: BeliefUpdate | None = None
    guarantee: int | None = None
    proof: str = ""

    @property
    def contested(self) -> tuple[Contest, ...]:
        """What its sources disagree on: the screening's."""
        return self.screening.contested

    @property
    def promise(self) -> str:
        """What the guarantee comes to, as a sentence for the user."""
        return promised(self.guarantee, len(self.screening.passages))

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "text": self.text,
            "abstained": self.abstained,
            "screened": self.screened,
            "calls": [call.to_dict() for call in self.calls],
            "guarantee": self.guarantee,
        }
        if self.guarantee is not None:
            found |= {"promise": self.promise, "proof": self.proof}
        return found if self.belief is None else {**found, "belief": self.belief.to_dict()}


def promised(guarantee: int | None, count: int) -> str:
    """What a guarantee over so many passages comes to, as a sentence for the user."""
    if guarantee is None:
        return "Nothing is guaranteed: this method has no proof of its answers."
    if guarantee == 0:
        return "Nothing is guaranteed: one planted passage could change this answer."
    some, verb = ("any one", "is") if guarantee == 1 else (f"any {guarantee}", "are")
    return f"This answer holds even if {some} of the {count} passages {verb} planted."
