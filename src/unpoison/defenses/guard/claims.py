"""Claims: statements with the same meaning, weighed by the sources behind them, and the answer from them.

1. Answers of one form (`text.answer_forms`) are one class; a class with the same meaning as a heavier one joins it.
2. A source adds to a claim once, by its surest passage: its trust times the confidence of that passage.
3. If sources that count answer at all, no other source has weight: claims of others only, that contradict one of
   theirs, are outvoted, however much the counting sources disagree among themselves.
   Exception: one source that counts by its history alone may be a sleeper, and three others with one claim dispute it.
4. A claim with nearly the weight of the heaviest, that contradicts it, disputes it; a source that makes both adds
   nothing to the heaviest.

Nothing here depends on the order of the passages, on the names of the sources, or on repetition within a source.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from types import MappingProxyType
from typing import Literal, NamedTuple

from unpoison.algorithms.votes import withstands
from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Status, disagreement
from unpoison.defenses.guard.statements import DOUBT, Statement
from unpoison.defenses.voices import COUNTING, Voice
from unpoison.models.prompts import answer_prompt
from unpoison.models.requests import Flow, generate, relate
from unpoison.sources import Sources
from unpoison.text.answer_forms import form
from unpoison.text.answers import LIKELY, Related, goes_with, group_equivalent, relation, relation_by_value
from unpoison.text.languages import other_language
from unpoison.text.questions import wanted
from unpoison.text.replies import informative
from unpoison.text.values import agree, answers_kind, fits, measures, question_coverage, values

__all__ = ["SHARE", "Findings", "answer_from_claims", "claims_of", "relations"]

MAX_CLAIMS = 12
"""Maximum number of classes to compare with each other, the heaviest first."""

SHARE = 2 / 3
"""The share of the leading claim's weight at which a rival disputes it."""

CROWD = 3
"""Number of sources with one claim that a single source, known by its history alone, does not outvote."""

ROUNDING = 1e-9
"""Maximum error of a sum of weights."""

ONE_SOURCE = 0.1
"""As `DOUBT`, for two claims of one counting source, of which a page may be taken over: a lie is written to be read."""

ON_SUBJECT = 1 / 2
"""If a value is asked for, the coverage of the question's words that a known source's passage needs, relative to the
best such passage: a value about another subject is easily found."""

MAX_QUOTES = 3
MAX_TEXT_CHARS = 200
MAX_SENTENCE_CHARS = 300


class Findings(NamedTuple):
    """Extracted claims and their status.

    Attributes:
        claims: The heaviest first.
        status: See `Status`.
        rivals: Positions in `claims` of those that dispute the first.
        doubtful: Positions of those that would dispute it, had they been read with certainty.
        outvoted: Positions in `claims` of those without a counting source, each with the position of the heaviest claim
            of counting sources that it contradicts.
        guarantee: The number of sources that an attacker may control without changing that the first claim leads
            undisputed (`algorithms.votes`); 0 if disputed, or if only doubtful words were found; None if planted
            passages choose what is read.
        counted: Whether counting sources stand behind the first claim.
        sides: Each claim restricted to the passages that add weight, so that other passages influence neither its
            wording nor its date.
    """

    claims: tuple[Claim, ...] = ()
    status: Status = "none"
    rivals: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()
    outvoted: Mapping[int, int] = MappingProxyType({})
    guarantee: int | None = 0
    counted: bool = False
    sides: tuple[Claim, ...] = ()


def claims_of(
    question: str,
    statements: Mapping[int, Statement],
    voices: Sequence[Voice],
    *,
    asks: bool = False,
    proof: float = SHARE,
    texts: Sequence[str] = (),
) -> Flow[Findings]:
    """Group statements into claims, and weigh them.

    Args:
        question: The question.
        statements: By position of their passage.
        voices: Of all passages.
        asks: Whether the generator compares answers itself (`relations`); otherwise rules do.
        proof: The share of the leading weight that a rival needs for the guarantee, in (0, 1].
        texts: The passages, for numbers in the question ("version 4.3").
    """
    used, given = _select_statements(statements, voices)
    used = _on_subject(question, used, voices, texts)
    if not used:
        return Findings()
    doubting = texts and other_language(question)  # the multilingual reader is less sure of all that it reads
    ballot = _Ballot(used, voices, {i: question_coverage(question, texts[i]) for i in used if doubting})
    classes = _classes(question, used)
    ranked = sorted(classes, key=lambda name: (*ballot.rank(classes[name]), name))[:MAX_CLAIMS]
    wording = {name: ballot.wording(classes[name]) for name in ranked}
    guessed = yield from relations(question, wording, asks=asks)
    related = {
        (pair := frozenset((left, right))): relation_by_value(question, wording[left], wording[right], guessed[pair])
        for left, right in combinations(ranked, 2)
    }
    groups = group_equivalent(ranked, related)
    members = {lead: sorted(i for name in names for i in classes[name]) for lead, names in groups.items()}
    order = sorted(members, key=lambda lead: (*ballot.rank(members[lead]), ranked.index(lead)))
    claims = tuple(ballot.claim(wording[lead], members[lead]) for lead in order)
    first = order[0]
    rival = _rivals(groups, related)
    against = [n for n, lead in enumerate(order) if n and frozenset((first, lead)) in rival]
    sure = [n for n in against if ballot.sure(members[order[n]], members[first])]
    crowds = [n for n, lead in enumerate(order) if ballot.crowd(members[lead]) >= CROWD]
    sleeper = [ballot.by_history_alone(members[lead]) for lead in order]
    firm = {  # "7 pm" is no vote for Tuesday at 7 pm against Thursday at 7 pm
        n: [i for name in groups[first] if not goes_with(name, order[n], related) for i in classes[name]]
        for n in against
    }
    heavy = [n for n in sure if ballot.disputes(members[order[n]], firm[n]) or (sleeper[0] and n in crowds)]
    doubtful = tuple(n for n in against if n not in sure and ballot.disputes(members[order[n]], firm[n]))
    made = [any(voices[i].counts for i in members[lead]) for lead in order]
    rivals = tuple(n for n in sure if n in heavy or (heavy and ballot.weigh and made[n]))
    outvoted = {
        n: other
        for n, lead in enumerate(order)
        if ballot.weigh and not made[n]
        for other in [next((m for m, by in enumerate(order) if made[m] and frozenset((lead, by)) in rival), None)]
        if other is not None and not (sleeper[other] and n in crowds)
    }
    supporters = ballot.weights(members[first])
    counted = ballot.weigh and bool(supporters)
    status: Status = "disputed" if rivals else "agreed" if counted and len(supporters) > 1 else "single"
    guarantee = 0
    if counted and given and not rivals and not sleeper[0]:
        outside = ballot.weights([i for i in used if i not in classes[first]])
        sources = len(ballot.weights(list(used)))
        guarantee = withstands(ballot.weights(classes[first]), outside, ballot.trust, proof, sources)
    sides = tuple(ballot.claim(wording[lead], ballot.lenders(members[lead])) for lead in order)
    return Findings(claims, status, rivals, doubtful, outvoted, guarantee, counted, sides)


def _select_statements(
    statements: Mapping[int, Statement], voices: Sequence[Voice]
) -> tuple[dict[int, Statement], bool]:
    """The statements to use, and whether all of them were given as answers.

    If others give an answer and no counting source does, the surest likeliest words of a counting source are added.
    """
    given = {i: statement for i, statement in statements.items() if statement.given}
    counting = [i for i in statements if voices[i].counts]
    if not given or not counting or any(i in given for i in counting):
        return given, True
    surest = min(counting, key=lambda i: (statements[i].no_answer, statements[i].answer))
    return {**given, surest: statements[surest]}, False


def _on_subject(
    question: str, statements: Mapping[int, Statement], voices: Sequence[Voice], texts: Sequence[str]
) -> dict[int, Statement]:
    """Drop statements of known sources that answer another question, as shown by other passages of known sources.

    A known source's passage is preferred if it covers more of the question's words, has the kind of value and the unit
    that are asked for, or the numbers of the question.
    """
    asked, named = wanted(question), set(_NAMED.findall(question))
    known = [i for i in statements if voices[i].level in COUNTING]
    if texts and known and asked.kind:
        covered = {i: question_coverage(question, texts[i]) for i in known}
        best = ON_SUBJECT * max(covered.values())
        known = [i for i in known if covered[i] >= best]
    if asked.kind:
        known = [i for i in known if answers_kind(statements[i].answer, asked.kind)] or known
    if asked.unit:
        units = {i: [value.unit for value in values(statements[i].answer)] for i in known}
        known = [i for i in known if any(measures(unit, asked) for unit in units[i])] or known
    if named and texts:
        known = [i for i in known if named <= set(_NAMED.findall(texts[i]))] or known
    left_out = {i for i in statements if voices[i].level in COUNTING}.difference(known)
    return {i: statement for i, statement in statements.items() if i not in left_out}


_NAMED = re.compile(r"(?<![\w.-])[A-Za-z-]*\d+(?:[.-]?\w+)*")
"""A number in a question, or a name with a number: it distinguishes one subject from another."""


class _Ballot:
    """Weights of statements: a source adds to a claim once, by its surest passage."""

    def __init__(self, statements: Mapping[int, Statement], voices: Sequence[Voice], told: Mapping[int, float]) -> None:
        self._statements, self._voices, self._told = statements, voices, told  # told: the question's words, as a share
        self.weigh = any(voices[i].counts for i in statements)
        self.trust = defaultdict[str, float](float)  # of a source with pages of two levels, the higher one
        for i in statements:
            self.trust[voices[i].name] = max(self.trust[voices[i].name], voices[i].trust)

    def weight_of(self, i: int) -> float:
        """The weight that a passage adds to its claim; 0 if its source does not count and others do."""
        voice = self._voices[i]
        return voice.trust * self._statements[i].confidence if voice.counts or not self.weigh else 0.0

    def weights(self, members: Sequence[int]) -> dict[str, float]:
        """The weight that each source adds to a claim."""
        weights = defaultdict[str, float](float)
        for i in members:
            weights[self._voices[i].name] = max(weights[self._voices[i].name], self.weight_of(i))
        return {name: weight for name, weight in weights.items() if weight > 0}

    def lenders(self, members: Sequence[int]) -> list[int]:
        """The passages that add weight to a claim; all if none does. Only these choose its wording and rank."""
        return [i for i in members if self.weight_of(i) > 0] or list(members)

    def wording(self, members: Sequence[int]) -> str:
        """The shortest wording of a claim."""
        spoken = (" ".join(self._statements[i].answer.split()) for i in self.lenders(members))
        return min(spoken, key=lambda words: (len(words), words))

    def rank(self, members: Sequence[int]) -> tuple[float, float]:
        """A sort key: the heavier first, then the surer; rounded, so that order decides no tie."""
        surest = max(self._statements[i].confidence for i in self.lenders(members))
        return -round(sum(sorted(self.weights(members).values())), 9), -round(surest, 9)

    def sure(self, members: Sequence[int], first: Sequence[int]) -> bool:
        """Whether a claim was read surely enough to dispute the first.

        Less is enough if one source says both, or in a language other than English if a passage has as many words of
        the question as those of the first.
        """
        own, others = ({self._voices[i].name for i in claim if self._voices[i].counts} for claim in (members, first))
        best = 0.0 if own & others else max(self._told.get(i, 2.0) for i in self.lenders(first))
        limits = {i: ONE_SOURCE if self._told.get(i, 0.0) >= best else DOUBT for i in self.lenders(members)}
        return any(self._statements[i].no_answer <= limit for i, limit in limits.items())

    def disputes(self, rival: Sequence[int], first: Sequence[int]) -> bool:
        """Whether a claim has enough weight against the first; a source of both adds nothing to the first."""
        own, others = self.weights(rival), self.weights(first)
        alone = sum(sorted(weight for name, weight in others.items() if name not in own))
        return bool(own) and sum(sorted(own.values())) >= SHARE * alone - ROUNDING

    def crowd(self, members: Sequence[int]) -> int:
        """The number of sources that make a claim, fresh ones and those with any history."""
        return len({self._voices[i].origin for i in members if self._voices[i].level in ("fresh", "seen")} - {""})

    def by_history_alone(self, members: Sequence[int]) -> bool:
        """Whether a claim's only counting source has earned its standing by a history, which a sleeper also has."""
        counting = {(self._voices[i].name, self._voices[i].level) for i in members if self._voices[i].counts}
        return self.weigh and len(counting) == 1 and next(iter(counting))[1] == "seen"

    def claim(self, words: str, members: Sequence[int]) -> Claim:
        surest = sorted(members, key=lambda i: (-self.weight_of(i), -self._statements[i].confidence, i))
        quotes = dict.fromkeys(self._statements[i].sentence[:MAX_SENTENCE_CHARS] for i in surest)
        origins = sorted({self._voices[i].origin for i in members} - {""})
        weight = round(float(sum(sorted(self.weights(members).values()))), 9)
        return Claim(words[:MAX_TEXT_CHARS], weight, tuple(origins), tuple(members), tuple(quotes)[:MAX_QUOTES])


def _classes(question: str, statements: Mapping[int, Statement]) -> dict[str, list[int]]:
    """Positions by the form of their answer: a function of the question and of each answer alone."""
    classes: dict[str, list[int]] = {}
    for i, statement in statements.items():
        name = form(question, statement.answer) or " ".join(statement.answer.casefold().split())
        classes.setdefault(name, []).append(i)
    return classes


def relations(question: str, wording: Mapping[str, str], *, asks: bool) -> Flow[Related]:
    """The relation of each two answers, by the generator if it compares answers (`asks`), else by rules.

    Args:
        question: The question.
        wording: The words of each answer, by its name.
        asks: Whether the generator compares answers.
    """
    pairs = list(combinations(wording, 2))
    worded = [(wording[left], wording[right]) for left, right in pairs]
    compared = (yield from relate(question, worded)) if asks and worded else [relation(question, *p) for p in worded]
    return dict(zip(map(frozenset, pairs), compared, strict=True))


def _rivals(groups: Mapping[str, Sequence[str]], related: Related) -> set[frozenset[str]]:
    """The pairs of groups whose first answers contradict each other, or any two of their answers by a rule."""
    found = set[frozenset[str]]()
    for left, right in combinations(groups, 2):
        for pair in (frozenset(pair) for pair in product(groups[left], groups[right])):
            if related[pair].rival >= LIKELY and (related[pair].sure or pair == {left, right}):
                found.add(frozenset((left, right)))
    return found


PROOF = (
    "grouped, weighted plurality: the answers of one form that sources that count give weigh more than all else that "
    "these sources say, whatever {m} of them say instead (algorithms.votes)"
)

DATES = ("date", "published", "modified", "added_at")
"""Metadata with the date of a page, first match wins; texts such as 2026-11-01, compared as they are."""


def answer_from_claims(
    query: Query,
    screening: Screening,
    findings: Findings,
    plain: Flow[Answer],
    on_dispute: Literal["show", "majority", "abstain"],
    sources: Sources | None,
) -> Flow[Answer]:
    """Answer from the passages behind the leading claim, and report whether the sources agree.

    Args:
        query: The question.
        screening: The kept passages.
        findings: Their claims.
        plain: The flow of the answer from all kept passages, used if no single passage answers.
        on_dispute: The answer if sources contradict each other.
        sources: The policy and history of sources.
    """
    if findings.status == "none":
        answer = yield from plain
        return replace(answer, status="none")
    plain.close()
    sides = [findings.sides[n] for n in (0, *findings.rivals)]
    if set.intersection(*(set(side.origins) for side in sides)):  # one source contradicts itself
        sides = _newest_first(sides, screening.passages)
    lead = sides[0]
    details = {"claim": lead.text}
    base, guarantee = Answer(lead.text, screening, details=details, status=findings.status), findings.guarantee
    if sources is not None and sources.informed and guarantee is not None:
        proof = PROOF.format(m=guarantee) if guarantee else ""
        base = replace(base, guarantee=guarantee, guarantee_unit="sources", proof=proof)
    if findings.status == "disputed" and on_dispute != "majority":
        text = disagreement(sides, screening.passages)
        if on_dispute == "show":
            return replace(base, text=text)
        return replace(base, text="I don't know.", abstained=True, details={**details, "dispute": text})
    shown = dict(zip(screening.kept_indices, screening.texts, strict=True))
    texts = [shown[i] for i in lead.passages if i in shown]
    if not texts:
        return base
    (reply,) = yield from generate([answer_prompt(query.reading, texts)], "answer", screening)
    asked = wanted(query.reading)
    usable = reply.finish != "refusal" and informative(reply.text)
    usable = usable and (bool(fits(reply.text, asked)) or not fits(lead.text, asked))
    usable = usable and agree(reply.text, lead.text, asked.kind, query.reading) not in ("rival", "risky")
    return replace(base, text=reply.text) if usable else base


def _newest_first(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Claim]:
    """The sides of a dispute by their newest passage; in their order if a side has no date."""
    dates = [max((_date(passages[i]) for i in claim.passages), default="") for claim in claims]
    return [claims[n] for n in sorted(range(len(claims)), key=dates.__getitem__)[::-1]] if all(dates) else list(claims)


def _date(passage: Passage) -> str:
    written = (passage.metadata.get(name) for name in DATES)
    return next((date.replace("/", "-") for date in written if isinstance(date, str) and date[:4].isdigit()), "")
