"""RA-RAG: each source answers separately, and the answer of the most reliable ones wins (Hwang et al., 2025).

Each source answers from its own passages only. Of those with an answer the `kappa` most reliable are counted:
equivalent answers are one, and the one with the largest sum of weights wins. A source with accuracy w has the weight
L w - 1, for L possible answers (Li and Yu, 2014). No labels are needed: w is the agreement of a source with the others,
weighted by their reliability (`sources.trust`).

A source is trusted on a new question because of older ones. A source that was honest for long can lie once with full
weight, and a colluding majority of sources is believed from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, Unpack

import numpy as np

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ShellOptions
from unpoison.defenses.isolation import MAX_ANSWER_CHARS
from unpoison.defenses.voices import Voice, voices_of
from unpoison.models.prompts import answer_prompt, informative
from unpoison.models.protocols import Generator, NLIModel
from unpoison.models.requests import Flow, generate, judge
from unpoison.sources import Sources
from unpoison.text.answer_forms import form
from unpoison.text.answers import relation
from unpoison.utils.checks import at_least, within

__all__ = ["RaRag"]

UNTESTED = 0.5
"""The reliability of an unknown source."""

SAME = 0.5
"""Minimum probability at which two answers have the same meaning."""


class _Witness(NamedTuple):
    """One source and its answer.

    Attributes:
        passages: Positions of its passages.
        reliability: In [0, 1].
        answer: Its answer, "" if it has none.
        supported: Whether one of its passages supports the answer.
    """

    passages: tuple[int, ...]
    reliability: float
    answer: str
    supported: bool = True


class _Outcome(NamedTuple):
    """The result: the counted witnesses, the answer, and the witnesses behind it."""

    counted: tuple[str, ...]
    weights: Mapping[str, float]
    text: str | None
    behind: tuple[str, ...]


class RaRag(Defense):
    """Give the answer of the most reliable sources, each asked separately (RA-RAG).

    Args:
        generator: Answers from the passages of each source; `screen` needs it as well.
        nli: With it, an answer counts only if a passage of its source entails it (AlignScore in the paper), and answers
            that entail each other in both directions are equivalent. Without it, no answer is checked, and rules decide
            equivalence.
        reliability: For each origin its share of right answers, in [0, 1], as in `sources.trust`, instead of the
            history of `sources`. Missing origins have 0.5; if none is known, all have equal weights.
        kappa: The maximum number of sources with an answer to count, the most reliable first, at least 1.
        support: The minimum P(entailment) of a passage that supports an answer, in [0, 1].
        sources: `Sources`, or a policy as a file or a mapping; by default origins are domains, users and folders, with
            unknown reliability. Blocked sources are dropped unread.

    As every defense it also takes the options of the shell (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "ra-rag"
    needs = ("generator",)
    summary = "asks each source alone and takes the answer of the most reliable ones, by a weighted majority"
    calls = "one for each source"
    source = "Hwang et al., 2025"

    def __init__(
        self,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        *,
        reliability: Mapping[str, float] | None = None,
        kappa: int = 4,
        support: float = 0.5,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, nli=nli, **shell)
        given = {} if reliability is None else reliability
        self.reliability = {name: within(f"reliability of {name}", rate, 0.0, 1.0) for name, rate in given.items()}
        self.kappa = at_least("kappa", kappa, 1)
        self.support = within("support", support, 0.0, 1.0)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Keep the passages of the sources behind the winning answer, in retrieval order."""
        witnesses = yield from self._witnesses(query, passages)
        return self._build_screening(query, passages, witnesses, (yield from self._outcome(query.reading, witnesses)))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The winning answer in the words of its most reliable source, or an abstention."""
        witnesses = yield from self._witnesses(query, passages)
        outcome = yield from self._outcome(query.reading, witnesses)
        screening = self._build_screening(query, passages, witnesses, outcome)
        details = {
            "source_answers": {name: witness.answer for name, witness in witnesses.items()},
            "reliability": {name: witness.reliability for name, witness in witnesses.items()},
        }
        if outcome.text is None:
            return Answer.abstention(screening, details)
        return Answer(outcome.text, screening, details=details)

    def _witnesses(self, query: Query, passages: Sequence[Passage]) -> Flow[dict[str, _Witness]]:
        """The answer of each source, by the name of its voice, in the order of their first passages."""
        sources = self.sources or Sources()
        voices = voices_of(sources, query.text, passages)
        own: dict[str, list[int]] = {}
        for i, voice in enumerate(voices):
            own.setdefault(voice.name, []).append(i)
        rates = self._rates(sources, query.text, voices)
        prompts = [answer_prompt(query.reading, [passages[i].reading for i in at]) for at in own.values()]
        replies = (yield from generate(prompts, "answer of a source")) if prompts else []
        answers = ["" if reply.finish == "refusal" else reply.text[:MAX_ANSWER_CHARS].strip() for reply in replies]
        witnesses = {
            name: _Witness(tuple(at), rates[name], answer if informative(answer) else "")
            for (name, at), answer in zip(own.items(), answers, strict=True)
        }
        if self.models.nli is None:
            return witnesses
        pairs = [
            (passages[i].reading, f"Question: {query.reading} Answer: {witness.answer}")
            for witness in witnesses.values()
            if witness.answer
            for i in witness.passages
        ]
        judged = iter((yield from judge(pairs, "support"))[:, 0].tolist() if pairs else ())
        return {
            name: witness._replace(supported=max(next(judged) for _ in witness.passages) >= self.support)
            if witness.answer
            else witness
            for name, witness in witnesses.items()
        }

    def _rates(self, sources: Sources, question: str, voices: Sequence[Voice]) -> dict[str, float]:
        """The accuracy of each source, by the name of its voice; 1 for all if none is known."""
        origins = {voice.name: voice.origin for voice in voices}
        known = self.reliability or sources.agreement(list(origins.values()), question)
        if not any(origin in known for origin in origins.values()):
            return dict.fromkeys(origins, 1.0)
        return {name: known.get(origin, UNTESTED) for name, origin in origins.items()}

    def _outcome(self, question: str, witnesses: Mapping[str, _Witness]) -> Flow[_Outcome]:
        """The weighted majority of the most reliable; ties go to the better retrieval rank."""
        place = {name: n for n, name in enumerate(witnesses)}
        knowing = [name for name, witness in witnesses.items() if witness.answer and witness.supported]
        counted = sorted(knowing, key=lambda name: (-witnesses[name].reliability, place[name]))[: self.kappa]
        forms = {name: form(question, witnesses[name].answer) or witnesses[name].answer.casefold() for name in counted}
        equivalent = yield from self._equivalent(question, sorted(set(forms.values())))
        groups: dict[str, list[str]] = {}  # by the form of the most reliable source of each answer
        for name in counted:
            same = (lead for lead in groups if lead == forms[name] or frozenset((lead, forms[name])) in equivalent)
            groups.setdefault(next(same, forms[name]), []).append(name)
        possible = max(2, len(groups))
        weights = {name: max(0.0, possible * witnesses[name].reliability - 1) for name in counted}
        total = {lead: round(sum(sorted(weights[name] for name in names)), 9) for lead, names in groups.items()}
        lead = max(groups, key=lambda lead: (total[lead], -min(place[n] for n in groups[lead])), default=None)
        if lead is None or not total[lead]:
            return _Outcome(tuple(counted), weights, None, ())
        return _Outcome(tuple(counted), weights, witnesses[groups[lead][0]].answer, tuple(groups[lead]))

    def _equivalent(self, question: str, forms: Sequence[str]) -> Flow[frozenset[frozenset[str]]]:
        """The pairs of forms with the same meaning: by the NLI model in both directions, else by rules."""
        pairs = list(combinations(forms, 2))
        if self.models.nli is None:
            return frozenset(frozenset(pair) for pair in pairs if relation(question, *pair).same >= SAME)
        said = {name: f"Question: {question} Answer: {name}" for name in forms}
        judged = yield from judge([(said[a], said[b]) for pair in pairs for a, b in (pair, pair[::-1])], "same answer")
        entailed = judged[:, 0].reshape(-1, 2).min(axis=1) >= SAME
        return frozenset(frozenset(pair) for pair, same in zip(pairs, entailed.tolist(), strict=True) if same)

    def _build_screening(
        self, query: Query, passages: Sequence[Passage], witnesses: Mapping[str, _Witness], outcome: _Outcome
    ) -> Screening:
        reasons, scores = [Reason("")] * len(passages), np.zeros(len(passages))
        for name, witness in witnesses.items():
            for i in witness.passages:
                reasons[i], scores[i] = self._reason(name, witness, outcome), outcome.weights.get(name, 0.0)
        kept = sorted(i for name in outcome.behind for i in witnesses[name].passages)
        notes = () if kept or not passages else ("no source that can be believed answers",)
        notes = (*notes, *self.source_notes)
        evidence = Evidence({"weights": scores}, notes)
        return Screening.decided(
            self.name, query, passages, kept=kept, scores=scores, reasons=reasons, evidence=evidence
        )

    def _reason(self, name: str, witness: _Witness, outcome: _Outcome) -> Reason:
        if not witness.answer:
            return Reason.of("ra_rag.unknowing")
        answer = quotable(witness.answer)
        if not witness.supported:
            return Reason.of("ra_rag.unsupported", answer=answer)
        if name not in outcome.counted:
            return Reason.of("ra_rag.unreliable", answer=answer, kappa=self.kappa)
        weight = outcome.weights[name]
        if name in outcome.behind:
            return Reason.of("ra_rag.wins", answer=answer, weight=weight)
        return Reason.of("ra_rag.loses", answer=answer, weight=weight, other=quotable(outcome.text or ""))
