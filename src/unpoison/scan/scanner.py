"""Finds planted documents in a collection without user questions.

Text that markup hides is no evidence by itself: honest pages hide banners, menus and hints. It is judged as a separate
text. An injection or a claim in it is more suspicious than in visible text, and less so if many documents of the
collection have hidden text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.scan import signs
from unpoison.scan.changed import OPEN, changes
from unpoison.scan.collection import Groups, ScanCollection, collect_documents
from unpoison.scan.documents import Unit
from unpoison.scan.engine import Engine, ScanQuestion, UnitScores, UnitTask, score_units, screen_questions
from unpoison.scan.findings import Scan, ScanEvidence, findings
from unpoison.scan.parts import COVERT, FOLDED, MIN_WORDS
from unpoison.sources.sources import Sources
from unpoison.utils.checks import within
from unpoison.utils.files import Spilled
from unpoison.utils.plain_text import count_noun

__all__ = ["judge_documents", "scan"]

MAX_HIDING_SHARE = 0.04
"""The share of documents with a kind of hidden text from which that kind is no evidence."""

MIN_DOCUMENTS = 100
"""Minimum denominator of the share."""

HIDING_STRENGTH = {"invisible": 6.0, "look_alikes": 6.0, "styled": 10.0, "marks": 12.0, "tags": 8.0, "entities": 20.0}
"""Scale of the number of hidden characters, by kind."""

UNSEEN = 0.4
"""Suspicion of hidden text without injection or claim, and of a message in a comment or an attribute."""

UNSEEN_ODDS = 3.0
"""Log-odds that an injection gains in hidden text, and a claim in text that nobody can unfold."""

STATED = 0.7
"""Probability of a claim in text that nobody can see."""


@dataclass(frozen=True, slots=True)
class HidingShares:
    """How common each kind of hidden text is in the collection.

    Attributes:
        shares: The share of documents with a kind of hidden text.
    """

    shares: dict[str, float]

    @classmethod
    def among(cls, units: Sequence[Unit], reference: signs.Flags) -> HidingShares:
        """Count the documents by kind.

        Args:
            units: All units.
            reference: The documents that define what is usual, shape (documents,).
        """
        kinds = (*HIDING_STRENGTH, "messages")
        hiding = {kind: set[int]() for kind in (*kinds, FOLDED, COVERT, "")}
        for unit in units:
            for kind in (unit.concealed, *(kind for kind in kinds if getattr(unit.hidden, kind))):
                hiding[kind].add(unit.document)
        size = max(int(reference.sum()), MIN_DOCUMENTS)
        return cls({kind: max(sum(reference[i] for i in those) - 1, 0) / size for kind, those in hiding.items()})

    def weight(self, kind: str) -> float:
        """From 1 if no other document has this kind, to 0 if the share reaches `MAX_HIDING_SHARE`."""
        return max(0.0, 1 - self.shares[kind] / MAX_HIDING_SHARE)


def concealment(unit: Unit, injection: float, claim: float, shares: HidingShares) -> float:
    """The probability that something was hidden on purpose, in [0, 1].

    Args:
        unit: The unit.
        injection: The probability that its text is a prompt injection.
        claim: The probability that it is a planted claim.
        shares: How common each kind is in the collection.
    """
    if unit.concealed:
        weight = shares.weight(unit.concealed)
        covert = UNSEEN_ODDS * weight if unit.concealed == COVERT else 0.0
        return max(UNSEEN * weight, _raised(injection, UNSEEN_ODDS), _raised(claim, covert))
    probabilities = [UNSEEN * shares.weight("messages")] if unit.hidden.messages else []
    for kind, strength in HIDING_STRENGTH.items():
        count = getattr(unit.hidden, kind)
        if count:
            probabilities.append((1 - float(np.exp(-count / strength))) * shares.weight(kind))
    return max(probabilities, default=0.0)


def _raised(probability: float, odds: float) -> float:
    bounded = min(max(probability, 1e-6), 1 - 1e-6)
    return 1 / (1 + float(np.exp(-odds)) * (1 - bounded) / bounded)


_DETAIL = re.compile(r"\d[\d.,:]*|(?<=[\w,;:)] )[^\W\d_a-z]\w+")
"""A number, or a capitalised word that begins no sentence."""


def states_something(text: str, beside: str) -> bool:
    """Whether a line of a text that nobody can see has a name or a number that the visible text beside it lacks."""
    lines = [line for line in text.split("\n") if len(line.split()) > MIN_WORDS]
    for line in lines:  # the markup of a passage is gone, and its hidden text stands between the rest
        beside = beside.replace(line, "")
    return any(word.strip(".,:") not in beside for line in lines for word in _DETAIL.findall(line))


COMPANIONS = 3
"""Neighbours of each checked unit whose own questions are asked too, if only some documents are checked."""

SUREST = 9.0
"""Maximum log-odds of a claim: 0.9999."""

SAMPLE = 256
"""In a large collection, the number of questions asked of units that are not suspicious by themselves."""

SUSPICIOUS = 0.25
"""Minimum suspicion of documents that are grouped."""


Progress = Callable[[str, int, int], None]
"""Is told the name of a step, the number done, and the total."""


def scan(
    documents: Iterable[object],
    *,
    threshold: float = 0.5,
    seen: Container[str] = frozenset(),
    engine: Engine | None = None,
    sources: Sources | str | Path | Mapping[str, Any] | None = None,
    progress: Progress = lambda step, done, total: None,
) -> Scan:
    """Detect the documents of a collection against each other.

    The rarest words of each unit are used as a question, and the ten nearest units are screened as if they had been
    retrieved for it. The scores of the defense over all questions are combined with style and hidden text
    (`scan.signs`).

    Args:
        documents: Strings, dicts, framework documents, `Passage` or `Document`.
        threshold: The minimum suspicion of a flagged document, in [0, 1].
        seen: Keys (`Document.key`) of documents that are not judged, but the others are compared with them.
        engine: The defense and its workers; by default in this process.
        sources: A policy or a history (`Sources`): which near-copy to trust, and which texts to allow. A document whose
            text is allowed by its hash is never flagged; other allowed documents are exempt from the style check.
        progress: Called with the name of the step, the number done, and the total.

    Returns:
        One finding for each checked document, most suspicious first; ties in the documents' order. The result does not
        depend on the number of workers.

    Raises:
        InputError: An unusable document.
        OptionError: A threshold out of its range, or an unusable policy.
        WorkerError: A worker died.

    Complexity: O(n) time for n words, O(n) memory for n documents: their texts stand in temporary files.
    """
    within("threshold", threshold, 0.0, 1.0)
    known = Sources.of(sources)
    collection = collect_documents(documents)
    chosen = np.array([document.key not in seen for document in collection.documents], bool)
    evidence = judge_documents(collection, chosen, engine or Engine(workers=1), progress, sources=known)
    notes = [*collection.notes, *(() if known is None else known.notes)]
    if evidence.failed:
        notes.append(f"{count_noun(evidence.failed, 'question')} could not be screened; run the scan again")
    if evidence.withheld:
        notes.append(
            f"{evidence.withheld:,} documents differ from a near-copy in a number or name; they seem to come from a "
            "template, so none is reported"
        )
    return Scan(findings(collection, evidence, chosen, threshold), len(collection.documents), tuple(notes))


def judge_documents(
    collection: ScanCollection, chosen: signs.Flags, engine: Engine, progress: Progress, sources: Sources | None = None
) -> ScanEvidence:
    """The evidence on the chosen documents and, as far as needed, on the others.

    Args:
        collection: The documents.
        chosen: The documents to check; the others define what is usual.
        engine: The defense and its workers.
        progress: As for `scan`.
        sources: As for `scan`.
    """
    units, near = collection.units, collection.near
    usual = chosen if chosen.all() else ~chosen
    wanted = chosen[collection.owner] if len(units) else np.zeros(0, bool)
    counted = wanted if usual.sum() < signs.TOO_FEW else np.ones(len(units), bool)
    scores = _score_collection(collection, _asking(collection, wanted), counted, engine, progress)
    screened, failed = _screened(collection, scores, usual[collection.owner], engine, progress)
    odds = signs.claims(screened.signs, screened.reference)
    shares = HidingShares.among(units, usual)
    strange = signs.imperative_signs(collection.owner, [one.strengths for one in scores], usual)
    claimed = 1 / (1 + np.exp(-np.clip(odds, -30, SUREST)))
    named, settled = _allowed(collection, sources)
    claimed[named] = 0.0
    likely = np.array([one.injection.probability for one in scores])
    ordered = signs.injection_suspicion(likely, int(usual.sum()))
    strange = replace(strange, probability=signs.supported(strange.probability, np.maximum(likely, claimed)))
    _claim_covertly(collection, claimed, shares)
    hidden = np.array([concealment(*one, shares) for one in zip(units, likely.tolist(), claimed.tolist())])
    suspicion = np.maximum.reduce([claimed, ordered, strange.probability, hidden, np.zeros(len(units))])
    suspicion[settled] = 0.0
    changed, withheld = changes(collection, wanted, sources)
    suspects = {unit for unit, change in changed.items() if change.suspicion > OPEN}
    groups = Groups(len(collection.documents))
    suspects.update(np.flatnonzero(suspicion >= SUSPICIOUS).tolist())
    groups.join_copies(suspects, collection.owner, near, collection.cosine)
    _join_questions(collection, suspicion, groups)
    for unit, change in changed.items():
        suspicion[unit] = max(suspicion[unit], change.suspicion)
    related = groups.names()
    return ScanEvidence(
        screened.odds, screened.signs, claimed, scores, strange, hidden, suspicion, changed, withheld, related, failed
    )


def _claim_covertly(collection: ScanCollection, claimed: NDArray[np.float64], shares: HidingShares) -> None:
    """Raise the claims of units that nobody can see, and that say something on the subject of their document."""
    beside, document = "", -1
    for number, unit in enumerate(collection.units):
        beside, document = beside if unit.document == document else "", unit.document
        if not unit.concealed:
            beside += f"\n{unit.text}"
        elif unit.concealed == COVERT and states_something(unit.body, beside):
            claimed[number] = max(claimed[number], STATED * shares.weight(COVERT))


def _allowed(collection: ScanCollection, sources: Sources | None) -> tuple[signs.Flags, signs.Flags]:
    """Units of documents that the policy allows, and of those that it allows by the hash of their text.

    The first are exempt from the style check; the second are never flagged.
    """
    if sources is None or not len(collection.units):
        return (np.zeros(len(collection.units), bool),) * 2
    passages, allowed = (document.passage for document in collection.documents), sources.allowed
    told = np.array([(allowed.matches(passage), allowed.holds_text(passage.text)) for passage in passages], bool)
    return told[collection.owner, 0], told[collection.owner, 1]


def _asking(collection: ScanCollection, wanted: signs.Flags) -> signs.Flags:
    """The units that questions are made from: the wanted ones and their nearest neighbours."""
    asking = wanted.copy()
    if not asking.all():
        nearest = collection.near[asking][:, :COMPANIONS]
        asking[nearest[nearest >= 0]] = True
    return np.asarray(asking & np.array([collection.has_question(i) for i in range(len(asking))], bool))


def _score_collection(
    collection: ScanCollection, asking: signs.Flags, counted: signs.Flags, engine: Engine, progress: Progress
) -> Sequence[UnitScores]:
    """The scores of each unit on its own."""
    units = (
        UnitTask(unit, collection.question(i) if asking[i] else None, bool(counted[i]))
        for i, unit in enumerate(collection.units)
    )
    return Spilled(score_units(units, engine, _counter("reading", len(collection.units), progress)))


class _Screened(NamedTuple):
    """Scores of the defense, the features with them, and the units that define what is usual among them."""

    odds: signs.ScreeningOdds
    signs: NDArray[np.float64]
    reference: signs.Flags


def _screened(
    collection: ScanCollection, scores: Sequence[UnitScores], reference: signs.Flags, engine: Engine, progress: Progress
) -> tuple[_Screened, int]:
    """The scores of units beside their neighbours, for the questions made from them, and how many failed.

    In a large collection only the questions of units that may be suspicious are asked, and a sample of the others,
    which shows what is usual; the remaining units keep the scores that they have on their own.
    """
    odds, failed = signs.ScreeningOdds(len(scores)), 0
    alone, style, counts = np.array([one[:3] for one in scores], float).reshape(-1, 3).T

    def unit_signs() -> NDArray[np.float64]:
        return signs.signs(collection, odds, style, counts, reference)

    asked = np.flatnonzero(~np.isnan(style))
    few = len(asked) <= SAMPLE or np.isnan(alone[asked]).any()
    if not few:
        odds.add_alone(asked, alone[asked])
        reached = signs.within_reach(unit_signs(), reference)
        asked = asked[np.isin(asked, asked[:: len(asked) // SAMPLE]) | reached[asked]]
    neighbours = [(i, *(j for j in collection.near[i].tolist() if j >= 0)) for i in asked.tolist()]
    questions = (ScanQuestion(collection.question(some[0]), some) for some in neighbours)
    found = screen_questions(questions, collection.units, engine, _counter("screening", len(asked), progress))
    for some, probabilities in zip(neighbours, found):
        failed += not probabilities
        odds.add(some, probabilities)
    return _Screened(odds, unit_signs(), reference if few else reference & (odds.times > 0)), failed


def _counter(step: str, total: int, progress: Progress) -> Callable[[int], None]:
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        progress(step, done, total)

    return count


def _join_questions(collection: ScanCollection, suspicion: NDArray[Any], groups: Groups) -> None:
    """Group suspicious documents that begin with the same question."""
    first = dict[str, int]()
    for unit, probe in enumerate(collection.probes):
        if probe.asks and suspicion[unit] >= SUSPICIOUS:
            number = int(collection.owner[unit])
            groups.join(first.setdefault(" ".join(probe.question.casefold().split()), number), number)
