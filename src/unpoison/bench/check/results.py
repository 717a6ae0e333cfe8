"""What a check found, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Self

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.check.planting import ATTACKS, OWNERS

__all__ = ["CheckResult", "Origin", "Outcome", "SystemFacts", "lost", "of"]

FEW = 20
"""With fewer questions the intervals are wide."""

USUAL_LOSS = 0.05
"""Guard loses up to this share of clean passages on the kinds of text that it is measured on (docs/results.md)."""

Row = dict[str, Any]


class Origin(NamedTuple):
    """One of who is in the documents, "" for unknown: its documents and their share."""

    name: str
    documents: int
    share: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attack from one kind of owner reached.

    Attributes:
        attack, owner: Keys of `ATTACKS` and `OWNERS`.
        plain, guard: Questions for which a model still reads the lie, without a defense and behind the recommendation.
        wrong_plain, wrong_guard: Questions that the reader answers with the lie; None without a reader. Of a running
            system `wrong_plain` is what it answered itself, and `wrong_guard` None: its model was not asked again.
        clean_lost: The share of clean passages that the recommendation drops beside the planted ones.
        cases: What was planted for each question, as the check keeps it.
    """

    attack: str
    owner: str
    plain: Estimate
    guard: Estimate
    wrong_plain: Estimate | None
    wrong_guard: Estimate | None
    clean_lost: Estimate
    cases: tuple[Row, ...]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Count what a check kept."""
        cases = tuple(row["cases"])

        def share(name: str) -> Estimate:
            return wilson(sum(case[name] for case in cases), len(cases))

        def answered(name: str) -> Estimate | None:
            return share(name) if cases and name in cases[0] else None

        return cls(
            row["attack"],
            row["owner"],
            share("plain"),
            share("guard"),
            answered("wrong_plain"),
            answered("wrong_guard"),
            lost(cases),
            cases,
        )

    @property
    def words(self) -> str:
        """Such as "a plain lie in an ordinary page, from one new source"."""
        return f"{ATTACKS[self.attack][0]}, {OWNERS[self.owner][1]}"

    def to_dict(self) -> Row:
        """JSON-ready values, without the cases."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "cases"}
        return {name: value.to_dict() if isinstance(value, Estimate) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """What was done with a running system.

    Attributes:
        asked: Questions that were asked to see its documents.
        planted: Documents that were planted in it; None where nothing was.
        remaining: Marks of those that may still be there.
        further: What goes on, in a sentence; "" where nothing does.
        problems: What went wrong, in sentences.
    """

    asked: int
    planted: int | None = None
    remaining: tuple[str, ...] = ()
    further: str = ""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found, as far as it came.

    Attributes:
        source: What was checked, as it may be shown.
        documents: How many documents were read.
        unread: How many could not be.
        questions: How many questions were made from them.
        reader: Whether the reader answered.
        complete: Whether every attack was measured.
        flagged: How many documents the scan flagged; None where it was not finished.
        findings: The worst of them, each with id, suspicion, flagged and reasons.
        origins: Who is in it, the largest first.
        new: How many documents are of origins that the policy does not know, flagged ones and open hosts among them.
        clean_lost: The share of passages that the recommendation drops where nobody attacks.
        outcomes: One for each attack and owner that was measured.
        policy: The recommended policy, as YAML.
        system: What was done with a running system; None for documents.
    """

    source: str
    documents: int
    unread: int
    questions: int
    reader: bool
    complete: bool
    flagged: int | None
    findings: tuple[Row, ...]
    origins: tuple[Origin, ...]
    new: int
    clean_lost: Estimate | None
    outcomes: tuple[Outcome, ...]
    policy: str
    system: SystemFacts | None = None

    @property
    def live(self) -> bool:
        """Whether a running system retrieved and answered."""
        return self.system is not None and self.system.planted is not None

    @property
    def worst(self) -> Outcome | None:
        """The attack that gets through most often behind the recommendation; of equals the first."""
        return _worst(self.outcomes)

    @property
    def worst_outside(self) -> Outcome | None:
        """The same of those who cannot write into the user's own sources."""
        return _worst([outcome for outcome in self.outcomes if outcome.owner != "own"])

    @property
    def headline(self) -> str:
        """The worst case, in one sentence with its counts and interval."""
        if self.worst is None:
            return "No attack was measured."
        return f"Worst case behind the recommendation: {_sentence(self.worst, live=self.live)}."

    @property
    def outside(self) -> str:
        """The same of who cannot write into the user's own sources; "" where that is the worst anyway."""
        if self.worst_outside is None or self.worst_outside == self.worst:
            return ""
        return f"Of those who cannot write into your own sources: {_sentence(self.worst_outside, live=self.live)}."

    @property
    def open(self) -> tuple[str, ...]:
        """What the check does not settle, in sentences."""
        return tuple(_open_points(self))

    def to_dict(self) -> Row:
        """JSON-ready values."""
        shown = ("source", "documents", "unread", "questions", "reader", "complete", "flagged", "new", "policy")
        return {
            "headline": self.headline,
            **{name: getattr(self, name) for name in shown},
            "findings": list(self.findings),
            "origins": [{**origin._asdict(), "share": round(origin.share, 4)} for origin in self.origins],
            "clean_lost": None if self.clean_lost is None else self.clean_lost.to_dict(),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "open": list(self.open),
            **({} if self.system is None else {"system": asdict(self.system)}),
        }


def of(estimate: Estimate, what: str = "questions") -> str:
    """Such as "3 of 25 questions (12 %, 95 % interval 4 to 30)"."""
    if not estimate.defined:
        return f"none of 0 {what}"
    return (
        f"{estimate.hits:,} of {estimate.count:,} {what} ({100 * estimate.value:.0f} %, 95 % interval "
        f"{100 * estimate.low:.0f} to {100 * estimate.high:.0f})"
    )


def lost(cases: Sequence[Mapping[str, Any]]) -> Estimate:
    """The share of clean passages that the recommendation drops."""
    return wilson(sum(case["lost"] for case in cases), sum(case["clean"] for case in cases))


def _worst(outcomes: Sequence[Outcome]) -> Outcome | None:
    measured = [outcome for outcome in outcomes if outcome.guard.defined]
    return max(measured, key=lambda outcome: outcome.guard.value, default=None)


def _sentence(worst: Outcome, *, live: bool) -> str:
    begin, counts = f"{worst.words}, still reaches the model for {of(worst.guard)}", f"{worst.plain.hits:,}"
    if not live or worst.wrong_plain is None:
        return f"{begin}; without a defense for {counts} of {worst.plain.count:,}"
    return (
        f"{begin}; your system as it is reads it for {counts} of {worst.plain.count:,} and answers with it for "
        f"{worst.wrong_plain.hits:,}"
    )


def _open_points(result: CheckResult) -> Iterator[str]:
    if not result.complete:
        yield "The check was interrupted; start it again, and it goes on where it was."
    if result.clean_lost is not None and result.clean_lost.low > USUAL_LOSS:
        yield (
            f"The recommendation drops your own texts: {of(result.clean_lost, 'passages')} where nobody attacks. Do "
            "not enforce it as it is: fit it to your texts with unpoison screen --calibrate, or let it only watch."
        )
    if result.flagged:
        verb = "document looks planted and was" if result.flagged == 1 else "documents look planted and were"
        yield f"{result.flagged:,} {verb} left in place; work through them with unpoison scan DOCS --html work.html."
    if not result.questions and result.complete:
        yield (
            "No question could be made, so nothing was attacked: no sentence of the documents states a number, a name "
            "or a definition that the rules read. unpoison questions -g MODEL lets a language model write questions."
        )
    elif result.questions < FEW and result.complete:
        made = "question was" if result.questions == 1 else "questions were"
        yield f"Only {result.questions} {made} made from the documents, so the intervals are wide."
    own = _worst([outcome for outcome in result.outcomes if outcome.owner == "own"])
    if own is not None and own.guard.hits:
        yield (
            f"Who may write into your own sources is believed: {ATTACKS[own.attack][0]} there reaches the model for "
            f"{own.guard.hits} of {own.guard.count} questions. List what anybody may write as open, and guard the rest."
        )
    nameless = sum(origin.documents for origin in result.origins if not origin.name)
    if nameless:
        yield f"{nameless:,} of {result.documents:,} documents name no source and have nobody's weight; give them one."
    elif result.new and result.flagged is not None:
        yield (
            f"{result.new:,} of {result.documents:,} documents are not of a source that the policy knows: they were "
            "flagged, or anybody writes where they come from."
        )
    if len(result.origins) == 1 and result.documents > 1 and result.origins[0].name:
        yield "All documents are of one origin and have one voice; tell its parts apart by folders or origin: path:N."
    if not result.reader:
        yield "Nobody read what the passages claim; with the extra reader sources decide on plain lies."
    if result.system is None:
        yield "Your own retriever and model were not asked: BM25 retrieved. unpoison check URL asks a running system."
    else:
        yield from _open_of_system(result, result.system)


def _open_of_system(result: CheckResult, system: SystemFacts) -> Iterator[str]:
    yield from system.problems
    if system.remaining:
        yield f"{len(system.remaining):,} planted documents may still be there: {', '.join(system.remaining[:5])}."
    yield (
        f"Only what your system showed for {system.asked:,} questions is known of its documents: {result.documents:,} "
        "passages. unpoison check DOCS reads all of them."
    )
    if not result.live:
        yield "Nothing was planted in your system: the attacks happened in a copy of these passages, with BM25."
    if system.further:
        yield system.further
