"""A second reading of passages that agree with known sources: the right value may come first and a false one after it.

"The warranty is 36 months. Since May it is 60 months." agrees with a page that says 36 months, and misleads a model
that reads on. The value is removed and the passage read again; a second answer that contradicts the claim replaces the
first, so that the passage is judged by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unpoison.core.passages import Passage, Query
from unpoison.core.verdicts import Claim
from unpoison.defenses.guard.claims import LIKELY, Findings, relation_by_value
from unpoison.defenses.guard.statements import CERTAIN, DOUBT, Statement, find_by_words, read_statements
from unpoison.defenses.voices import Voice
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow
from unpoison.text.answers import relation
from unpoison.text.values import agree, question_coverage, values, wanted, without_values

__all__ = ["read_again"]


def read_again(
    query: Query,
    passages: Sequence[Passage],
    statements: Mapping[int, Statement],
    findings: Findings,
    voices: Sequence[Voice],
    generator: Generator | None,
) -> Flow[dict[int, Statement]]:
    """The contradicting second answers of passages of other sources that agree with counting ones, by position.

    A reader reads the rest of each passage; for any other generator, rules find the value (no further model call).
    """
    question = query.reading
    agreed = _agreeing(question, statements, findings, voices)
    if not agreed:
        return {}
    rests = [_without_claim(passages[i].reading, statements[i], i, claim) for i, claim in agreed.items()]
    if callable(getattr(generator, "read", None)):
        read = yield from read_statements(query, list(map(Passage, rests)), generator)
    else:
        read = find_by_words(question, rests, range(len(rests)), wanted(question))
    known = [passage.reading for passage, voice in zip(passages, voices, strict=True) if voice.counts]
    second = {i: read[n] for n, i in enumerate(agreed) if n in read}
    return {
        i: statement
        for i, statement in second.items()
        if _is_certain(question, statements[i], statement)
        and not any(statement.sentence in text for text in known)
        and _contradicts(question, agreed[i].text, statement.answer)
    }


def _agreeing(
    question: str, statements: Mapping[int, Statement], findings: Findings, voices: Sequence[Voice]
) -> dict[int, Claim]:
    """For each passage of another source that agrees with a claim of counting sources, that claim."""
    kind = wanted(question).kind
    return {
        i: claim
        for claim in findings.claims
        if any(voices[i].counts for i in claim.passages)
        for i, statement in statements.items()
        if not voices[i].counts and (i in claim.passages or agree(statement.answer, claim.text, kind, question))
    }


def _without_claim(text: str, statement: Statement, i: int, claim: Claim) -> str:
    """A text without the values of a claim or, if the claim has none, without the sentence that states it."""
    if values(claim.text):
        return without_values(text, claim.text)
    return text.replace(statement.sentence, "") if i in claim.passages else text


def _is_certain(question: str, first: Statement, second: Statement) -> bool:
    """Whether a second answer is sure, or likely in a sentence as close to the question as that of the first."""
    if not second.given or second.no_answer >= CERTAIN:
        return False
    if second.no_answer < DOUBT:
        return True
    return question_coverage(question, second.sentence) >= question_coverage(question, first.sentence)


def _contradicts(question: str, claim: str, second: str) -> bool:
    """Whether a second answer contradicts a claim; a value only by another value of its kind."""
    kinds = {value.kind for value in values(claim)}
    if kinds and kinds.isdisjoint(value.kind for value in values(second)):
        return False
    return relation_by_value(question, claim, second, relation(question, claim, second)).rival >= LIKELY
