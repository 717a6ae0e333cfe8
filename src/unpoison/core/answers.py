"""The result of `answer`, the model calls behind it, and the belief that RADAR stores for the next time step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

from unpoison.core.codec import JsonRecord, from_row, json_entries, to_row
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Status
from unpoison.errors import InputError, clip
from unpoison.utils.checks import within
from unpoison.utils.extras import wired

__all__ = ["Answer", "Belief", "BeliefUpdate", "Call", "Reply", "Weights", "guarantee_sentence"]

SPARSE = ("details", "belief", "proof", "status")
"""Fields that are omitted from an answer's row if empty."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply of a generator to one prompt.

    Attributes:
        text: The whole reply.
        prompt_tokens, completion_tokens: None if the model does not report them.
        finish: Why it ended: "stop", "length", "refusal", or the provider's word.
        cached: Whether it came from the response cache.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str = "stop"
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Call(JsonRecord):
    """The record of one model call.

    Attributes:
        kind: "encode", "generate", "judge", "read", "relate", "compare", "classify", "likelihood", "next token" or
            "retrieve".
        model: The model's name.
        purpose: The purpose in the defense, such as "atomic answer".
        seconds: Wall time, including retries.
        items: The number of texts, prompts or pairs.
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


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of `answer`.

    Attributes:
        text: The answer.
        screening: The verdicts on the passages behind it.
        calls: Every model call, by start time.
        abstained: Whether there was nothing trustworthy to answer from.
        details: Named intermediate texts (atomic answers, internal knowledge, consolidated information).
        belief: The effect of RADAR's memory, if it has one.
        guarantee: The largest m for which the method proves that no change to any m of these passages changes the
            answer: replaced, removed, added or reordered; a failing passage (a model error, a deadline) gives no
            answer. 0 if one passage may change it, None if the method has no proof. It does not concern truth.
        proof: The rule that proves it, in one sentence.
        guarantee_unit: The unit of the guarantee: `passages`, or `sources` with all their passages.
        status: Whether the sources agree, if claims were read: `agreed` (two or more), `disputed` (they contradict each
            other), `single` (one), `none` (no single passage answers).
    """

    text: str
    screening: Screening
    calls: tuple[Call, ...] = ()
    abstained: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    belief: BeliefUpdate | None = None
    guarantee: int | None = None
    proof: str = ""
    guarantee_unit: Literal["passages", "sources"] = "passages"
    status: Status | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims of the screening, the heaviest first."""
        return self.screening.claims

    @property
    def contested(self) -> tuple[Contest, ...]:
        """The contests of the screening."""
        return self.screening.contested

    def _repr_html_(self) -> str:
        """The answer and the table of its screening, for a notebook."""
        said = self.text if self.status is None else f"{self.text} ({self.status})"
        html: str = wired("rendering").table(self.screening, said)
        return html

    def __repr__(self) -> str:
        return f"Answer({clip(self.text)}, status={self.status!r}, {self.screening!r})"

    @property
    def promise(self) -> str:
        """The guarantee as a sentence for the user."""
        return guarantee_sentence(self.guarantee, len(self.screening.passages), self.guarantee_unit)

    @classmethod
    def abstention(cls, screening: Screening, details: Mapping[str, Any] | None = None) -> Self:
        """The answer if there is nothing trustworthy to answer from; no model is called."""
        return cls("I don't know.", screening, abstained=True, details=dict(details or {}))

    def with_notes(self, *notes: str) -> Self:
        """The same answer with more notes in the evidence of its screening."""
        evidence = replace(self.screening.evidence, notes=(*self.screening.evidence.notes, *notes))
        return replace(self, screening=replace(self.screening, evidence=evidence))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values for output rows, without the screening; details only as far as JSON allows."""
        out = ("screening",) if self.guarantee is not None else ("screening", "guarantee_unit")
        fields = to_row(replace(self, details=json_entries(self.details)), leave_out=out, sparse=SPARSE)
        return fields if self.guarantee is None else {**fields, "promise": self.promise}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], screening: Screening) -> Self:
        """Read the output of `to_dict`, with this screening.

        Raises:
            InputError: A field is missing or malformed.
        """
        return from_row(cls, data, screening=screening)


def guarantee_sentence(guarantee: int | None, count: int, unit: Literal["passages", "sources"] = "passages") -> str:
    """The sentence for the user about a guarantee over this many passages."""
    if guarantee is None:
        return "Nothing is guaranteed: this method has no proof of its answers."
    if guarantee == 0:
        one = "planted passage" if unit == "passages" else "source"
        return f"Nothing is guaranteed: one {one} could change this answer."
    some, verb = ("any one", "is") if guarantee == 1 else (f"any {guarantee}", "are")
    if unit == "sources":
        return (
            f"This answer holds even if {some} of the sources that count {verb} in somebody else's hands, and whatever "
            "other sources say. It may still be wrong: sources that agree can err together."
        )
    return f"This answer holds even if {some} of the {count} passages {verb} planted."


MAX_ANSWER = 400
"""Maximum UTF-8 bytes of a stored answer; a belief with its key and times stays below 1 KB in every store."""

MAX_QUERY = 120
"""Maximum bytes of a stored question, which lets a person distinguish beliefs."""

CUT = "\u2026"
"""Ends a truncated text."""


class Weights(NamedTuple):
    """The support and the contradiction of an answer, each in [0, 1]; they need not sum to 1."""

    support: float
    conflict: float


@dataclass(frozen=True, slots=True)
class Belief:
    """The last answer to a query and its two priors for the next step (RADAR, Eq. 11 and 12); about 500 bytes.

    Attributes:
        answer: Truncated to `MAX_ANSWER` bytes, with control characters and white space as single spaces. A truncated
            answer ends with an ellipsis; the weights belong to the whole answer.
        support: Mean agreement of the answer with its passages, in [0, 1].
        conflict: Mean contradiction, in [0, 1].
        query: The question, truncated to `MAX_QUERY` bytes; for display only.
        version: The store's identifier of this state, unique per write; "" if never stored.
        created, updated: Unix seconds, set by the store; None if unknown.

    Raises:
        InputError: The answer is not a string, or a weight is not a number in [0, 1].
    """

    answer: str
    support: float
    conflict: float
    query: str = field(default="", compare=False)
    version: str = field(default="", compare=False)
    created: float | None = field(default=None, compare=False)
    updated: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name, limit in (("answer", MAX_ANSWER), ("query", MAX_QUERY)):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise InputError(f"belief.{name} must be a text, got {clip(text)}")
            object.__setattr__(self, name, _shorten(text, limit))
        for name, most in (("support", 1), ("conflict", 1), ("created", 1e12), ("updated", 1e12)):
            if most == 1 or getattr(self, name) is not None:
                object.__setattr__(self, name, _number(name, getattr(self, name), most))

    @property
    def weights(self) -> Weights:
        return Weights(self.support, self.conflict)

    @property
    def cut(self) -> bool:
        """Whether the answer was truncated."""
        return self.answer.endswith(CUT)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values without the version, for `from_dict`."""
        return to_row(self, leave_out=("version",), sparse=("query", "created", "updated"))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, version: str = "") -> Self:
        """Read the output of `to_dict`.

        Raises:
            InputError: A field is missing or malformed.
        """
        return from_row(cls, values, version=version)


@dataclass(frozen=True, slots=True)
class BeliefUpdate:
    """The effect of the memory on one answer.

    Attributes:
        previous: The previous answer; None at the first step, like the next four fields.
        prior: Its stored weights (the paper's pi).
        likelihood: The evidence of this step's passages (Eq. 13 and 15).
        posterior: The combination, which gives the capacities of the memory node (Eq. 14 and 16).
        kept: Whether the previous answer stayed trusted.
        reason: Why, in one sentence.
        belief: The new belief; None if there is nothing to store.
        saved: Whether it was stored.
    """

    previous: str | None
    prior: Weights | None
    likelihood: Weights | None
    posterior: Weights | None
    kept: bool | None
    reason: str
    belief: Belief | None
    saved: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; the new belief is `now`, without its version and question."""
        now = None if self.belief is None else {"answer": self.belief.answer, **self.belief.weights._asdict()}
        return {**to_row(self, leave_out=("belief",)), "now": now}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`.

        Raises:
            InputError: A field is missing or malformed.
        """
        now = values.get("now")
        return from_row(cls, values, belief=None if now is None else Belief.from_dict(now))


def _shorten(text: str, limit: int) -> str:
    """One line of at most `limit` bytes that every store accepts; a truncated one ends with `CUT`."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * limit]).split())
    whole = line.encode("utf-8", "replace")
    if len(whole) <= limit and not text[2 * limit :].strip():
        return whole.decode("utf-8")
    return whole[: limit - len(CUT.encode())].decode("utf-8", "ignore").rstrip() + CUT


def _number(name: str, value: Any, most: float) -> float:
    try:
        return float(within(f"belief.{name}", value, 0.0, most, open_end=most > 1))
    except ValueError as error:
        raise InputError(str(error)) from None
