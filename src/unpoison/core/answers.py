"""What `answer` returns, and the model calls behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from unpoison.core.belief import BeliefUpdate
from unpoison.core.claims import Claim, Contest, Status
from unpoison.core.codec import from_row, json_entries, to_row
from unpoison.core.screenings import Screening

__all__ = ["Answer", "Call", "Reply", "guarantee_sentence"]

SPARSE = ("details", "belief", "proof", "status")
"""Fields that are not in an answer's row where they hold nothing."""


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
        return to_row(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return from_row(cls, data)


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
        guarantee_unit: What the guarantee counts: `passages`, or `sources` with all that they ever say.
        status: Whether the sources agree, where claims were read: `agreed` (two or more say so), `disputed` (they
            contradict each other), `single` (one says so), `none` (no passage says so by itself).
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
    guarantee_unit: Literal["passages", "sources"] = "passages"
    status: Status | None = None

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What its passages say in answer to the question, the heaviest first: the screening's."""
        return self.screening.claims

    @property
    def contested(self) -> tuple[Contest, ...]:
        """What its sources disagree on: the screening's."""
        return self.screening.contested

    @property
    def promise(self) -> str:
        """What the guarantee comes to, as a sentence for the user."""
        return guarantee_sentence(self.guarantee, len(self.screening.passages), self.guarantee_unit)

    def to_dict(self) -> dict[str, Any]:
        """What output rows carry beside the screening; of the details what JSON has."""
        out = ("screening",) if self.guarantee is not None else ("screening", "guarantee_unit")
        fields = to_row(replace(self, details=json_entries(self.details)), leave_out=out, sparse=SPARSE)
        return fields if self.guarantee is None else {**fields, "promise": self.promise}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], screening: Screening) -> Self:
        """Read what `to_dict` wrote, and put the screening behind it.

        Raises:
            InputError: A field is missing or malformed.
        """
        return from_row(cls, data, screening=screening)


def guarantee_sentence(guarantee: int | None, count: int, unit: Literal["passages", "sources"] = "passages") -> str:
    """What a guarantee over so many passages comes to, as a sentence for the user."""
    if guarantee is None:
        return "Nothing is guaranteed: this method has no proof of its answers."
    if guarantee == 0:
        one = "planted passage" if unit == "passages" else "source"
        return f"Nothing is guaranteed: one {one} could change this answer."
    some, verb = ("any one", "is") if guarantee == 1 else (f"any {guarantee}", "are")
    if unit == "sources":
        return (
            f"This answer holds even if {some} of the sources that count {verb} in somebody else's hands, and whatever "
            "those that do not count say. It may still be wrong: sources that agree can err together."
        )
    return f"This answer holds even if {some} of the {count} passages {verb} planted."
