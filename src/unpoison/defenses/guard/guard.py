"""Guard: four checks of each passage, then the evidence of claims and sources.

1. `hidden`            text that no reader sees is not read (`guard.checks`)
2. `prompt_injection`  sentences that instruct the model are cut, as in every defense (`injections.cutting`)
3. `gibberish`         text that no person writes is dropped (`text.gibberish`)
4. `crafted`           text that looks written for this question is dropped (`guard.crafted`)
5. `contradicted`      claims that known sources contradict are dropped, and their own are kept (`guard.sources`)

Each of the first three reads one passage at a time; `crafted` compares a passage with the question and the others. None
of these four judges truth: the fifth does, with a reader or a language model. Kept passages stay in the retriever's
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import ACTIONS, Action, Contest, Evidence, without
from unpoison.defenses.base import Defense, SharedOptions
from unpoison.defenses.guard import sources
from unpoison.defenses.guard.checks import DEFAULT_DAMAGE, REMARKABLE, Checks, CheckScores, reasons
from unpoison.defenses.guard.claims import SHARE, Findings, answer_from_claims, claims_of
from unpoison.defenses.guard.contest import ReadAnswers, contests, copy_frames, overlap
from unpoison.defenses.guard.crafted import Crafted
from unpoison.defenses.guard.features import Matrix, coverage
from unpoison.defenses.guard.redaction import Judged, Redaction, redact_passages
from unpoison.defenses.guard.statements import MAX_READ, Statement, read_statements
from unpoison.defenses.voices import Voice, by_turns, voices_of
from unpoison.defenses.vote import answer_by_vote
from unpoison.errors import OptionError
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow
from unpoison.sources.allow import Allowed
from unpoison.text.near_duplicates import Frame
from unpoison.text.questions import read_question
from unpoison.text.tokens import stems, words
from unpoison.utils.checks import among, within

if TYPE_CHECKING:
    from unpoison.models.loading import GeneratorFunction

__all__ = ["Guard"]


RELATED = 1 / 3
"""A passage with a smaller share of the question's words does not answer it."""

ANSWERS = 0.5
"""A passage with at least this share of the question's words in one sentence tries to answer it."""


@dataclass(slots=True)
class _Case:
    """The k passages of one question on their way through Guard; every array and sequence has one entry per passage.

    Attributes:
        query: The question.
        scores: The results of the checks.
        cut: The passages after redaction.
        threshold: Passages with a higher probability are dropped.
        probability: Of being poison, as decided so far, shape (k,).
        reasons: As decided so far.
        voices: Whose word each passage is.
        statements: The answer of each passage that was read and answers, by position.
        findings: The claims behind the statements; None if no passage was read.
        contested: Answers that contradict each other.
        arrays, notes: Further evidence.
    """

    query: Query
    scores: CheckScores
    cut: Redaction
    threshold: float
    probability: Matrix
    reasons: list[Reason]
    voices: Sequence[Voice] = ()
    statements: Mapping[int, Statement] = field(default_factory=dict)
    findings: Findings | None = None
    contested: tuple[Contest, ...] = ()
    arrays: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def passages(self) -> tuple[Passage, ...]:
        return self.cut.passages

    @property
    def texts(self) -> list[str]:
        return [passage.reading for passage in self.passages]

    @property
    def kept(self) -> list[int]:
        return np.flatnonzero(self.probability <= self.threshold).tolist()

    @property
    def dropped(self) -> list[int]:
        return np.flatnonzero(self.probability > self.threshold).tolist()


class Guard(Defense):
    """Drop passages that no honest source writes or that are written for the question; report contradictions.

    `Screening.contested` lists near-copies that differ in a name or number, and, if a reader is the generator or
    sources are weighed, answers of kept passages that contradict each other and have at least half of the leading
    answer's voices (`defenses.guard.contest`). Contests drop nothing.

    Args:
        damage: The share of clean passages that the checks may drop on a clean retrieval, in [0.0025, 0.1]; it selects
            the threshold, by the clean data sets of the training.
        threshold: The probability above which a check acts, in [0, 1], instead of `damage`; `unpoison screen
            --calibrate` finds one for your own retrievals.
        hidden: The action on messages that no reader sees: `redact` removes them, `drop` drops a passage with any,
            `flag` only reports them, `keep` ignores them.
        prompt_injection: The same for sentences that instruct the model; every defense has it.
        gibberish: The same for text that no person writes; None as `action`.
        crafted: The same for text that looks written for this question; None as `action`.
        action: For `gibberish` and `crafted`: `drop`, `redact`, `flag` or `keep`. With `redact`, give a model
            `Screening.texts`.
        answer: `kept` answers from the kept passages. `guaranteed` compares no passages, so that none can make another
            suspicious, then votes over the answers of single passages, in the generator's words: `Answer.guarantee` is
            the number of planted passages that this withstands (`defenses.vote`).
        on_dispute: If sources contradict each other: `show` both sides in one sentence, answer with the weightier side
            (`majority`), or `abstain`.
        allow: Passages whose style is not judged: ids, sources, patterns of sources, or hashes of texts as shown in the
            reason of a drop (`sha256:...`). Hidden text and injections are still cut.
        mode: `monitor` keeps every passage whole and only reports, in the reasons, what would be dropped.
        generator: For `answer`, and to read claims.

    Like every defense, it also takes the common options (`ShellOptions`). With `sources` each source has one voice;
    passages that contradict sources that count are dropped, and passages that agree with them are kept, whatever their
    style. A reader always reads the claims of passages; any other `generator` only with `sources` (one call for each
    passage).

    Raises:
        OptionError: An option out of its range.

    Attributes:
        independent: Whether no check compares passages.
    """

    name = "guard"
    summary = "drops what no honest text has and what is written for the question, at a stated damage"
    calls = "1"
    source = "this package"
    independent: bool = False

    def __init__(
        self,
        *,
        damage: float = DEFAULT_DAMAGE,
        threshold: float | None = None,
        hidden: Action = "redact",
        prompt_injection: Action = "redact",
        gibberish: Action | None = None,
        crafted: Action | None = None,
        action: Action = "drop",
        answer: Literal["kept", "guaranteed"] = "kept",
        on_dispute: Literal["show", "majority", "abstain"] = "show",
        allow: Sequence[str] = (),
        mode: Literal["enforce", "monitor"] = "enforce",
        generator: Generator | GeneratorFunction | str | None = None,
        **shell: Unpack[SharedOptions],
    ) -> None:
        if among("mode", mode, ("enforce", "monitor")) == "monitor":
            hidden = prompt_injection = gibberish = crafted = "flag"
        self.mode = mode
        super().__init__(generator=generator, prompt_injection=prompt_injection, **shell)
        self.on_dispute = among("on_dispute", on_dispute, ("show", "majority", "abstain"))
        self.action = among("action", action, ACTIONS)
        self.certifies = among("answer", answer, ("kept", "guaranteed")) == "guaranteed"
        self.independent = self.independent or self.certifies
        if threshold is not None and "damage" in self._given:
            raise OptionError("damage selects the threshold; give damage or threshold, not both")
        self.damage = damage
        self.allow = Allowed(allow)
        bar = Crafted.load().threshold(damage)
        self.threshold = bar if threshold is None else within("threshold", threshold, 0.0, 1.0)
        actions = {
            "hidden": among("hidden", hidden, ACTIONS),
            "gibberish": self.action if gibberish is None else among("gibberish", gibberish, ACTIONS),
            "crafted": self.action if crafted is None else among("crafted", crafted, ACTIONS),
        }
        self.checks = Checks(actions, Crafted.load(), self.threshold, use_neighbors=not self.independent)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """The checks, then claims and sources."""
        return self._conclude((yield from self._examine(query, passages)))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Answer from the claims if they were read (`guard.claims`), else from the kept passages."""
        case = yield from self._examine(query, passages)
        screening, findings = self._conclude(case), case.findings
        plain = self.answer_from(query, screening)
        if findings is None or self.certifies or (screening.passages and not screening.kept):
            return (yield from plain)
        return (yield from answer_from_claims(query, screening, findings, plain, self.on_dispute, self.sources))

    def answer_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """From the kept passages; with `answer="guaranteed"`, by their vote."""
        if self.certifies:
            return (yield from answer_by_vote(query, screening, self.models.generator, self.sources))
        return (yield from super().answer_from(query, screening))

    def _examine(self, query: Query, passages: tuple[Passage, ...]) -> Flow[_Case]:
        case = self._check(query, passages)
        if self.independent or not passages:
            return case
        case.voices = voices_of(self.sources, query.text, case.passages)
        yield from self._read_claims(case)
        frames = copy_frames(case.texts)
        yield from self._find_contests(case, frames)
        by_content = self._judge_content(case, frames)
        self._apply(case, by_content)
        self._spare_only_answer(case, by_content)
        case.contested = sources.open_contests(case.contested, by_content)
        read, model = self._reads_claims, self.models.generator
        case.notes += sources.missing_evidence(query.reading, passages, model, self.sources, read=read)
        return case

    def _check(self, query: Query, passages: tuple[Passage, ...]) -> _Case:
        """Run the checks on each text, and redact."""
        hidden = self.checks.hidden(passages)
        seen = [passage.without_asides() for passage in passages]
        bare = tuple(without(p, hidden[i]) if i in hidden else p for i, p in enumerate(seen))
        spared = [i for i, passage in enumerate(passages) if self._spares(passage)]

        def judge(rests: Sequence[Passage]) -> Judged:
            return self.checks.score_passages(query.reading, rests, spared).judged

        scores = self.checks.score_passages(query.reading, bare, spared)
        cut = redact_passages(bare, scores.judged, judge, hidden)
        why = reasons(scores, cut, passages)
        return _Case(query, scores, cut, self.threshold, cut.probability, why, arrays=dict(scores.by_check))

    def _read_claims(self, case: _Case) -> Flow[None]:
        """Read the claims: of all passages if sources are distinguished, else of the kept ones."""
        if not self._reads_claims:
            return
        order = by_turns(case.voices) if self._informed else case.kept
        first, generator = sorted(order[:MAX_READ]), self.models.generator
        read = yield from read_statements(case.query, [case.passages[i] for i in first], generator)
        case.statements = {first[i]: statement for i, statement in read.items()}
        findings = yield from self._find_claims(case)
        if self._informed and findings.counted:
            second = yield from sources.read_again(
                case.query, case.passages, case.statements, findings, case.voices, generator
            )
            if second:
                case.statements |= second
                findings = yield from self._find_claims(case)
        whole = self._informed and len(order) <= MAX_READ  # otherwise planted passages could choose what is read
        case.findings = findings if whole else findings._replace(guarantee=None)
        case.notes += sources.doubts(findings, case.passages)

    def _find_claims(self, case: _Case) -> Flow[Findings]:
        question, asks = case.query.reading, self._has("relations")
        proof = 1.0 if self.on_dispute == "majority" else SHARE
        return (yield from claims_of(question, case.statements, case.voices, asks=asks, proof=proof, texts=case.texts))

    def _find_contests(self, case: _Case, frames: Sequence[Frame]) -> Flow[None]:
        """Find contradictions among near-copies and, if claims were read, among the answers of kept passages."""
        question = case.query.reading
        read = ReadAnswers.of(question, case.statements, case.kept) if self._reads_claims else ReadAnswers()
        shared = overlap(question, case.texts)
        alike = sources.one_voice(shared, case.voices)
        case.contested = yield from contests(question, case.texts, frames, read, alike, asks=self._has("relations"))
        case.arrays["overlap"] = shared
        case.notes += read.notes

    def _judge_content(self, case: _Case, frames: Sequence[Frame]) -> sources.ByContent:
        """Verdicts from claims and sources; none if no sources are distinguished."""
        if not self._informed:
            return sources.ByContent({})
        copies = sources.verdicts_by_copies(case.query.reading, frames, case.voices)
        if case.findings is None or not case.findings.counted:
            return sources.ByContent({**sources.verdicts_by_origin(case.voices, case.passages), **copies})
        by_claims = sources.verdicts_by_claims(case.findings, case.statements, case.voices, case.passages)
        restored = {i: reason for i, reason in by_claims.restored.items() if i not in copies}
        return sources.ByContent({**copies, **by_claims.dropped}, restored, by_claims.disputed)

    def _apply(self, case: _Case, by_content: sources.ByContent) -> None:
        """Let content overrule style; in monitor mode only the reasons change."""
        for i, reason in by_content.restored.items():
            if case.scores.worst[i] == "crafted" or i in case.scores.spared:
                case.reasons[i] = reason
                if case.probability[i] > self.threshold:
                    case.probability[i] = 0.0
        for i in by_content.disputed.keys() & set(case.kept):
            case.reasons[i] = by_content.disputed[i]
        for i, reason in by_content.dropped.items():
            if self.mode == "monitor":
                case.reasons[i] = Reason.of("guard.flagged", clauses=[reason])
            else:
                case.probability[i], case.reasons[i] = 1.0, reason

    def _spare_only_answer(self, case: _Case, by_content: sources.ByContent) -> None:
        """Keep the only passage dropped for its style if no other passage answers the question.

        A passage that repeats the question verbatim is not spared: this is how planted texts get retrieved.
        """
        suspects = [i for i in case.dropped if i not in by_content.dropped]
        if len(suspects) != 1 or case.scores.worst[suspects[0]] != "crafted":
            return
        (i,) = suspects
        passage, question = case.passages[i], case.query.reading
        if passage.hidden or case.scores.crafted.probability[i] < REMARKABLE:
            return  # dropped because of the threshold, and not because of its style
        if " ".join(words(question)) in " ".join(words(passage.reading)):
            return
        others = [other for other in range(len(case.passages)) if other != i]
        if any(other in case.statements and case.statements[other].given for other in others):
            return
        asked = read_question(question).content
        if any(len(asked.intersection(stems(case.texts[other]))) >= RELATED * len(asked) for other in others):
            return
        if coverage(question, [passage.reading])[0] >= ANSWERS:
            case.probability[i] = self.threshold
            case.reasons[i] = Reason.of("guard.alone", clauses=[case.reasons[i]])

    def _conclude(self, case: _Case) -> Screening:
        """The screening of a decided case."""
        if not case.passages:
            return Screening.decided(self.name, case.query, (), kept=(), scores=(), reasons=())
        whole = set(case.kept) - case.cut.cut  # of a passage that is kept after all, nothing is cut
        flagged = {i: tuple(replace(s, flagged=True) for s in case.cut.spans.get(i, ())) for i in whole}
        level, curve = np.array(self.threshold), np.array(Crafted.load().calibration)
        arrays = {"probability": case.probability, "threshold": level, "calibration": curve, **case.arrays}
        graph = "overlap" if "overlap" in case.arrays else None
        return Screening.decided(
            self.name,
            case.query,
            case.passages,
            kept=case.kept,
            scores=1 - case.probability,
            reasons=case.reasons,
            evidence=Evidence(arrays, (*case.cut.notes, *case.notes), graph=graph),
            contested=case.contested,
            claims=() if case.findings is None else case.findings.claims,
            spans={**case.cut.spans, **flagged},
        )

    @property
    def answers_itself(self) -> bool:
        """Whether sources are weighed, or a vote answers."""
        return self.certifies or (self._reads_claims and self.sources is not None)

    @property
    def _informed(self) -> bool:
        """Whether sources are distinguished."""
        return self.sources is not None and self.sources.informed

    @property
    def _reads_claims(self) -> bool:
        """Whether passages are read one by one: always by a reader, by a language model only with sources."""
        return self.models.generator is not None and (self._has("read") or self.sources is not None)

    def _has(self, method: str) -> bool:
        """Whether the generator is a reader: it reads passages cheaply (`read`), or compares answers (`relations`)."""
        return callable(getattr(self.models.generator, method, None))

    def _spares(self, passage: Passage) -> bool:
        """Whether the style of a passage is not judged: its source is known, or it is allowed."""
        return self.allow.matches(passage) or (self.sources is not None and self.sources.spares(passage))
