"""Claims: what each passage answers, read alone; answers that mean the same are one; each source has one voice.

1. Every passage is read by itself: by a reader, which copies words and says how sure it is, or by the generator. What
   a reader was not taught to read is read by its words.
2. A question that asks for a kind of value (`text.values`) is answered by values of that kind only.
3. Answers of one form (`text.answer_forms`) are an atom; atoms that say the same as a heavier one join it.
4. A source adds to a claim once, by its surest passage: its trust times that passage's confidence.
5. Where sources that count answer at all, nobody else weighs anything: what only others say, and what cannot be right
   beside any claim of theirs, is outvoted, however much they differ among themselves.
6. A claim that weighs nearly as much as the heaviest, and that cannot be right beside it, disputes it; a source that
   says both lends nothing to the heaviest.

Nothing here depends on the order of the passages, on the names of the sources, or on how often one repeats itself.

The answer from claims is the leading one, or both sides of a dispute, those first that the policy of the sources
prefers (approved, or older, or newer).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import Literal, NamedTuple

from unpoison.algorithms.votes import withstands
from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Status, disagreement
from unpoison.defenses.isolation import read_apart
from unpoison.defenses.voices import COUNTING, Voice
from unpoison.models.extractive import RELEVANT, ExtractiveReader
from unpoison.models.prompts import answer_prompt, atomic_answer_reference_prompt, informative
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate, read, relate
from unpoison.sources import Sources
from unpoison.text.answer_forms import form
from unpoison.text.answers import COMPATIBLE, Relation, relation
from unpoison.text.answers import RIVAL as VALUE_RIVAL
from unpoison.text.answers import SAME as VALUE_SAME
from unpoison.text.questions import read_question
from unpoison.text.sentences import sentence_of
from unpoison.text.values import (
    Kind,
    Wanted,
    agree,
    answers_kind,
    find_value,
    question_coverage,
    several,
    values,
    wanted,
)

__all__ = ["SHARE", "Findings", "Statement", "answer_from_claims", "claims_of", "read_statements", "sort_by_preference"]

MAX_READ = 50
"""Passages that are read, those of sources that count first: about half a second on two cores."""

MAX_CLAIMS = 12
"""Atoms that are compared with each other, the heaviest."""

UNLIKELY = 0.9
"""P(no answer) up to which the likeliest words of a source that counts come before what others say.

Only where others give an answer and no source that counts does: any other claim needs the reader's own threshold.
"""

DOUBT = 0.03
"""P(no answer) up to which a statement may dispute another: readers err, and an error is no dispute."""

SHARE = 2 / 3
"""Of the leading claim's weight that a rival needs to dispute it."""

GUESSED = 0.1
"""P(no answer) of what the extractive reader says where the reader was not taught the language."""

_WORDS = ExtractiveReader()

SAME = 0.5
"""From this probability on two answers are the same, or rivals."""

ROUNDING = 1e-9
"""What sums of weights may be off by."""

ON_SUBJECT = 1 / 2
"""Share of the words of a question, of those that the best passage of a known source holds, that others need.

Where a value is asked for: one of another subject is found too easily.
"""

MAX_QUOTES = 3
MAX_TEXT_CHARS = 200
MAX_SENTENCE_CHARS = 300


class Statement(NamedTuple):
    """What one passage answers.

    Attributes:
        answer: Its words.
        sentence: The sentence around them.
        no_answer: P(the passage does not answer); 0 for a language model, which does not say.
        given: Whether the reader gives it as an answer; otherwise they are the passage's likeliest words.
    """

    answer: str
    sentence: str
    no_answer: float = 0.0
    given: bool = True

    @property
    def confidence(self) -> float:
        return (1 - self.no_answer) ** 2


class Findings(NamedTuple):
    """What the passages say, and what that comes to.

    Attributes:
        claims: The heaviest first.
        status: See `Status`.
        rivals: Positions in `claims` of those that dispute the first.
        outvoted: Positions in `claims` of those that no source makes that counts, each with the position of the
            heaviest claim of theirs beside which it cannot be right.
        guarantee: Sources that may be owned without changing that the first claim leads undisputed, by
            `algorithms.votes`; 0 if disputed, and where only doubtful words were found; None where planted
            passages choose what is read.
        counted: Whether sources that count stand behind the first claim.
        sides: For each claim, the same as those sources make it that lend it weight: what others say beside them, say
            of themselves, or are named, neither words nor dates it.
    """

    claims: tuple[Claim, ...] = ()
    status: Status = "none"
    rivals: tuple[int, ...] = ()
    outvoted: Mapping[int, int] = MappingProxyType({})
    guarantee: int | None = 0
    counted: bool = False
    sides: tuple[Claim, ...] = ()


def read_statements(
    query: Query, passages: Sequence[Passage], generator: Generator | None
) -> Flow[dict[int, Statement]]:
    """What each passage answers, by position; what says nothing is missing. One reading, or one call, each.

    Every statement is a function of the question and of its own passage.
    """
    question, texts = query.reading, [passage.reading for passage in passages]
    asked = wanted(question)
    if callable(getattr(generator, "read", None)) and read_question(question).kind != "polar":
        readings = yield from read(question, texts)
        words = [reading.answer or text[reading.start : reading.end] for reading, text in zip(readings, texts)]
        said = {
            i: Statement(
                words[i],
                sentence_of(words[i], texts[i], max(reading.start, 0)),
                reading.no_answer,
                bool(reading.answer),
            )
            for i, reading in enumerate(readings)
            if informative(words[i]) and (reading.answer or reading.no_answer < UNLIKELY)
        }
        refused = [i for i, reading in enumerate(readings) if reading.language]
        return _of_kind(question, texts, said, asked) | _read_words(question, texts, refused, asked)
    answers = yield from read_apart(query, passages, atomic_answer_reference_prompt, generator)
    said = {
        i: Statement(answer, sentence_of(answer, texts[i], max(texts[i].find(answer), 0)))
        for i, answer in enumerate(answers)
        if informative(answer)
    }
    said = _of_kind(question, texts, said, asked)
    if isinstance(generator, ExtractiveReader) and asked.kind:
        typed = {i: statement for i, statement in said.items() if answers_kind(statement.answer, asked.kind)}
        return said | _read_words(question, texts, range(len(texts)), asked) | typed
    return said


def _of_kind(question: str, texts: Sequence[str], said: Mapping[int, Statement], asked: Wanted) -> dict[int, Statement]:
    """The statements that are of the kind that is asked for; of another one the value beside it, where there is one."""
    found = dict[int, Statement]()
    for i, statement in said.items():
        fits = answers_kind(statement.answer, asked.kind)
        if fits is False and (value := find_value(question, statement.sentence, asked)) is not None:
            found[i] = statement._replace(answer=value[0])
        elif _is_bare(statement.answer, asked.kind) and (value := find_value(question, texts[i], asked)) is not None:
            found[i] = statement._replace(answer=value[0], sentence=value[1])
        elif fits is not False:
            found[i] = statement
    return found


def _is_bare(answer: str, kind: Kind) -> bool:
    """Whether an answer has only numbers without a unit, where money or a duration is asked for."""
    found = values(answer)
    return kind in ("money", "duration") and bool(found) and all(value.kind == "number" for value in found)


def _read_words(question: str, texts: Sequence[str], unread: Sequence[int], asked: Wanted) -> dict[int, Statement]:
    """What passages say by the words around a value of the kind that is asked for, else by the extractive reader."""
    found = dict[int, Statement]()
    for i in unread:
        if not asked.kind:
            answer = _WORDS.generate(atomic_answer_reference_prompt(question, texts[i])).text
            if informative(answer):
                found[i] = Statement(answer, sentence_of(answer, texts[i], max(texts[i].find(answer), 0)), GUESSED)
        elif (value := find_value(question, texts[i], asked)) is not None:
            words, sentence, relevance = value
            given = relevance > RELEVANT
            found[i] = Statement(words, sentence, DOUBT if given else UNLIKELY / 2, given)
    return found


def claims_of(
    question: str,
    statements: Mapping[int, Statement],
    voices: Sequence[Voice],
    *,
    asks: bool = False,
    share: float = SHARE,
    proof: float | None = None,
    texts: Sequence[str] = (),
) -> Flow[Findings]:
    """What statements come to.

    Args:
        question: The question.
        statements: By position of their passage.
        voices: Of all passages.
        asks: Whether the generator compares answers itself (`relations`); otherwise the rules do.
        share: Of the leading weight that a rival needs to dispute it, in (0, 1].
        proof: The same for the guarantee, where a dispute changes nothing; `share` by default.
        texts: The passages, for numbers that the question names ("version 4.3").
    """
    heard, given = _select_statements(statements, voices)
    heard = _on_subject(question, heard, voices, texts)
    if not heard:
        return Findings()
    ballot = _Ballot(heard, voices)
    atoms = _atoms(question, heard)
    ranked = sorted(atoms, key=lambda name: (*ballot.rank(atoms[name]), name))[:MAX_CLAIMS]
    wording = {name: ballot.wording(atoms[name]) for name in ranked}
    related = yield from _relations(question, wording, asks=asks)
    groups = _groups(ranked, related)
    members = {lead: sorted(i for name in names for i in atoms[name]) for lead, names in groups.items()}
    order = sorted(members, key=lambda lead: (*ballot.rank(members[lead]), ranked.index(lead)))
    claims = tuple(ballot.claim(wording[lead], members[lead]) for lead in order)
    first = order[0]
    rival = {pair for pair, relative in related.items() if relative.rival >= SAME}
    against = [n for n, lead in enumerate(order) if n and frozenset((first, lead)) in rival]
    sure = [n for n in against if ballot.sure(members[order[n]])]
    heavy = [n for n in sure if ballot.disputes(members[order[n]], members[first], share)]
    made = [any(voices[i].counts for i in members[lead]) for lead in order]
    rivals = tuple(n for n in sure if n in heavy or (heavy and ballot.weigh and made[n]))
    outvoted = {
        n: other
        for n, lead in enumerate(order)
        if ballot.weigh and not made[n]
        for other in [next((m for m, by in enumerate(order) if made[m] and frozenset((lead, by)) in rival), None)]
        if other is not None
    }
    supporters = ballot.weights(members[first])
    counted = ballot.weigh and bool(supporters)
    status: Status = "disputed" if rivals else "agreed" if counted and len(supporters) > 1 else "single"
    guarantee = 0
    if counted and given and not rivals:
        outside = ballot.weights([i for i in heard if i not in atoms[first]])
        sources = len(ballot.weights(list(heard)))
        guarantee = withstands(ballot.weights(atoms[first]), outside, ballot.trust, proof or share, sources)
    sides = tuple(ballot.claim(wording[lead], ballot.lenders(members[lead])) for lead in order)
    return Findings(claims, status, rivals, outvoted, guarantee, counted, sides)


def _select_statements(
    statements: Mapping[int, Statement], voices: Sequence[Voice]
) -> tuple[dict[int, Statement], bool]:
    """The statements that are used, and whether all were given as answers.

    Where others give one and no source that counts does, the surest of its likeliest words come before theirs.
    """
    given = {i: statement for i, statement in statements.items() if statement.given}
    counting = [i for i in statements if voices[i].counts]
    if not given or not counting or any(i in given for i in counting):
        return given, True
    surest = min(counting, key=lambda i: (statements[i].no_answer, statements[i].answer))
    return {**given, surest: statements[surest]}, False


def _on_subject(
    question: str, heard: Mapping[int, Statement], voices: Sequence[Voice], texts: Sequence[str]
) -> dict[int, Statement]:
    """The statements that answer this question, where known sources show which do; they only leave out their own.

    Where a known source answers in a passage that holds more of the question's words, with the kind of value that is
    asked for, in the unit that is asked for, or beside the numbers that the question names, the others of known
    sources answer another question.
    """
    asked, named = wanted(question), set(_NAMED.findall(question))
    known = [i for i in heard if voices[i].level in COUNTING]
    if texts and known and asked.kind:
        covered = {i: question_coverage(question, texts[i]) for i in known}
        best = ON_SUBJECT * max(covered.values())
        known = [i for i in known if covered[i] >= best]
    if asked.kind:
        known = [i for i in known if answers_kind(heard[i].answer, asked.kind)] or known
    if asked.unit:
        known = [i for i in known if any(value.unit == asked.unit for value in values(heard[i].answer))] or known
    if named and texts:
        known = [i for i in known if named <= set(_NAMED.findall(texts[i]))] or known
    left_out = {i for i in heard if voices[i].level in COUNTING}.difference(known)
    return {i: statement for i, statement in heard.items() if i not in left_out}


_NAMED = re.compile(r"(?<![\w.-])[A-Za-z-]*\d+(?:[.-]?\w+)*")
"""A number in a question, or a name with one: it tells one subject from another."""


class _Ballot:
    """Who says what, weighed: a source adds to a claim once, by its surest passage."""

    def __init__(self, heard: Mapping[int, Statement], voices: Sequence[Voice]) -> None:
        self._heard, self._voices = heard, voices
        self.weigh = any(voices[i].counts for i in heard)
        self.trust = defaultdict[str, float](float)  # of a source with pages of two levels the higher one
        for i in heard:
            self.trust[voices[i].name] = max(self.trust[voices[i].name], voices[i].trust)

    def lent(self, i: int) -> float:
        """What a passage lends a claim; nothing where its source does not count, and others do."""
        voice = self._voices[i]
        return voice.trust * self._heard[i].confidence if voice.counts or not self.weigh else 0.0

    def weights(self, members: Sequence[int]) -> dict[str, float]:
        """What each source adds to a claim."""
        weights = defaultdict[str, float](float)
        for i in members:
            weights[self._voices[i].name] = max(weights[self._voices[i].name], self.lent(i))
        return {name: weight for name, weight in weights.items() if weight > 0}

    def lenders(self, members: Sequence[int]) -> list[int]:
        """The passages that lend a claim anything; all where none does. No others choose its words or its place."""
        return [i for i in members if self.lent(i) > 0] or list(members)

    def wording(self, members: Sequence[int]) -> str:
        """The shortest way to say it."""
        spoken = (" ".join(self._heard[i].answer.split()) for i in self.lenders(members))
        return min(spoken, key=lambda words: (len(words), words))

    def rank(self, members: Sequence[int]) -> tuple[float, float]:
        """Smaller for what comes first: the heavier, then the surer; rounded, so that order decides no tie."""
        surest = max(self._heard[i].confidence for i in self.lenders(members))
        return -round(sum(sorted(self.weights(members).values())), 9), -round(surest, 9)

    def sure(self, members: Sequence[int]) -> bool:
        """Whether a claim is read surely enough to dispute another."""
        return any(self._heard[i].no_answer <= DOUBT for i in self.lenders(members))

    def disputes(self, rival: Sequence[int], first: Sequence[int], share: float) -> bool:
        """Whether a claim weighs enough against the first; who says both lends nothing to the first."""
        own, others = self.weights(rival), self.weights(first)
        alone = sum(sorted(weight for name, weight in others.items() if name not in own))
        return bool(own) and sum(sorted(own.values())) >= share * alone - ROUNDING

    def claim(self, words: str, members: Sequence[int]) -> Claim:
        surest = sorted(members, key=lambda i: (-self.lent(i), -self._heard[i].confidence, i))
        quotes = dict.fromkeys(self._heard[i].sentence[:MAX_SENTENCE_CHARS] for i in surest)
        origins = sorted({self._voices[i].origin for i in members} - {""})
        weight = round(float(sum(sorted(self.weights(members).values()))), 9)
        return Claim(words[:MAX_TEXT_CHARS], weight, tuple(origins), tuple(members), tuple(quotes)[:MAX_QUOTES])


def _atoms(question: str, heard: Mapping[int, Statement]) -> dict[str, list[int]]:
    """Positions by the form of their answer: a function of the question and of each answer alone."""
    atoms: dict[str, list[int]] = {}
    for i, statement in heard.items():
        name = form(question, statement.answer) or " ".join(statement.answer.casefold().split())
        atoms.setdefault(name, []).append(i)
    return atoms


def _relations(question: str, wording: Mapping[str, str], *, asks: bool) -> Flow[dict[frozenset[str], Relation]]:
    """How each two atoms relate."""
    pairs = list(combinations(wording, 2))
    worded = [(wording[left], wording[right]) for left, right in pairs]
    if asks and worded:
        compared = yield from relate(question, worded)
    else:
        compared = [relation(question, *pair) for pair in worded]
    compared = [_by_value(question, *pair, guess) for pair, guess in zip(worded, compared, strict=True)]
    return dict(zip(map(frozenset, pairs), compared, strict=True))


def _by_value(question: str, left: str, right: str, guess: Relation) -> Relation:
    """How two answers relate by their values: one value among several of the other's is no contradiction."""
    kind = wanted(question).kind
    same = agree(left, right, kind, question)
    if same and (several(left, kind, question) or several(right, kind, question) or guess.sure):
        return guess if guess.same >= SAME or guess == VALUE_RIVAL else COMPATIBLE
    if guess.sure or same is None:
        return guess
    return VALUE_SAME if same else VALUE_RIVAL


def _groups(ranked: Sequence[str], related: Mapping[frozenset[str], Relation]) -> dict[str, list[str]]:
    """Atoms by the heaviest one that says the same."""
    groups: dict[str, list[str]] = {}
    for name in ranked:
        lead = next((lead for lead in groups if related[frozenset((lead, name))].same >= SAME), name)
        groups.setdefault(lead, []).append(name)
    return groups


PROOF = (
    "grouped, weighted plurality: the answers of one form that sources that count give weigh more than all else that "
    "these sources say, whatever {m} of them say instead (algorithms.owned_sources)"
)


def answer_from_claims(
    query: Query,
    screening: Screening,
    findings: Findings,
    plain: Flow[Answer],
    on_dispute: Literal["show", "majority", "abstain"],
    sources: Sources | None,
) -> Flow[Answer]:
    """Answer from the passages behind the leading claim, and say whether the sources agree.

    Args:
        query: The question.
        screening: Which passages are kept.
        findings: What they claim.
        plain: The flow of the answer from all kept passages, for what no passage says by itself.
        on_dispute: What to say where sources contradict each other.
        sources: Who is known.
    """
    if findings.status == "none":
        answer = yield from plain
        return replace(answer, status="none")
    plain.close()
    sides = [findings.sides[n] for n in (0, *findings.rivals)]
    prefer = sources.policy.prefer if sources is not None else ""
    if not prefer and set.intersection(*(set(side.origins) for side in sides)):
        prefer = "newer"  # one source that contradicts itself
    sides = sort_by_preference(sides, screening.passages, prefer)
    lead = sides[0]
    details = {"claim": lead.text}
    guarantee = findings.guarantee if sources is not None and sources.informed else None
    base = Answer(
        lead.text,
        screening,
        details=details,
        guarantee=guarantee,
        guarantee_unit="sources" if guarantee is not None else "passages",
        proof=PROOF.format(m=guarantee) if guarantee else "",
        status=findings.status,
    )
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
    kind = wanted(query.reading).kind
    said = reply.finish != "refusal" and informative(reply.text)
    said = said and (bool(answers_kind(reply.text, kind)) or not answers_kind(lead.text, kind))
    return replace(base, text=reply.text) if said else base


DATES = ("date", "published", "modified", "added_at")
"""Metadata that say when a page was written, first match wins; texts such as 2026-11-01, compared as they are."""


def sort_by_preference(claims: Sequence[Claim], passages: Sequence[Passage], prefer: str) -> list[Claim]:
    """The sides of a dispute, those first that the policy prefers; else in their order.

    Args:
        claims: The sides, the heaviest first.
        passages: All passages of the question.
        prefer: "", `older`, `newer` or `field:NAME=value` (`sources.Policy.prefer`).
    """
    if prefer.startswith("field:"):
        name, _, wanted = prefer.removeprefix("field:").partition("=")
        return sorted(claims, key=lambda c: not any(str(passages[i].metadata.get(name)) == wanted for i in c.passages))
    if not prefer:
        return list(claims)
    dates = [[date for i in claim.passages if (date := _date(passages[i]))] for claim in claims]
    if not all(dates):  # what has no date is neither older nor newer
        return list(claims)
    order = sorted(range(len(claims)), key=lambda n: min(dates[n]) if prefer == "older" else max(dates[n]))
    return [claims[n] for n in (order if prefer == "older" else reversed(order))]


def _date(passage: Passage) -> str:
    written = (passage.metadata.get(name) for name in DATES)
    return next((date.replace("/", "-") for date in written if isinstance(date, str) and date[:4].isdigit()), "")
