"""Guard: decides whether there is an attack and which passages carry it, and touches nothing otherwise.

The published defenses rerank or delete in every set, so they also cost something where nobody attacks. Guard gathers
evidence on each passage in the company of the others (`kernels.evidence`), turns it into a probability of poison with
coefficients fitted on open data (`defenses.guard_model`), and drops only what is above a threshold that was set for a
stated damage on clean retrievals. What is kept stays in the retriever's order. With a generator and an NLI model, the
passages' answers are compared where wording leaves open whom to believe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.checks import among, flag, within
from unpoison.defenses.base import Defense, SourcesOption
from unpoison.defenses.claimed_answer import claimed_answer
from unpoison.defenses.claims import MAX_READ, SHARE, Findings, Statement, claims_of, read_statements
from unpoison.defenses.guard_alone import answered_alone, screened_alone
from unpoison.defenses.guard_consensus import Opinion, ambiguous, consulted, outvoted
from unpoison.defenses.guard_contest import ReadAnswers, contests, read_through
from unpoison.defenses.guard_file import read
from unpoison.defenses.guard_looking import look
from unpoison.defenses.guard_model import GuardModel, Judgement
from unpoison.defenses.guard_reasons import REMARKABLE, reasons, verdict_of
from unpoison.defenses.guard_redaction import Judged, Redaction, redacted, suspicious_spans
from unpoison.defenses.guard_sentences import suspicious_sentences
from unpoison.defenses.guard_sources import (
    ByContent,
    one_voice,
    stated_answers,
    unsettled,
    verdicts_by_claims,
    verdicts_by_copies,
    verdicts_by_origin,
)
from unpoison.defenses.guard_vectors import Vectors, vectors_of
from unpoison.defenses.guard_windows import WindowModel
from unpoison.defenses.injections import InjectionPolicy
from unpoison.defenses.radar import Radar
from unpoison.defenses.voices import Voice, by_turns, voices_of
from unpoison.driver import Limits
from unpoison.errors import OptionError
from unpoison.kernels.evidence import Signs
from unpoison.models.protocols import Encoder, Generator, InjectionClassifier, NLIModel
from unpoison.reasons import Reason
from unpoison.requests import Flow
from unpoison.types import Answer, Contest, Evidence, Passage, Query, Screening

__all__ = ["Guard"]

Matrix = NDArray[np.float64]

UNREAD = (
    "nobody read what the passages claim: sources decide only on near-copies that differ and on many texts of one new "
    "source; give a generator, such as reader"
)

FEWEST_RIVALS = 2
"""Fewer passages cannot contradict each other."""


class _Assessment(NamedTuple):
    """What Guard found out about passages, and by which coefficients."""

    model: GuardModel
    windows: WindowModel
    signs: Signs
    judgement: Judgement
    judged: Judged
    worst: dict[int, str]
    notes: tuple[str, ...]


class Guard(Defense):
    """Drop the passages that are probably poison, and only those; report what the rest disagree on.

    `Screening.contested` lists near-copies that differ in a name or number, whatever the models; and with a reader as
    generator, or where answers were compared anyway, the answers of kept passages that contradict each other and have
    at least half of the leading answer's voices (`defenses.guard_contest`). Nothing is dropped because of it.

    Args:
        damage: The share of clean passages that may be lost on a clean retrieval, in [0.0025, 0.1]; it chooses the
            threshold by the clean data sets of the training.
        threshold: The probability above which a passage is dropped, in [0, 1], instead of `damage`; `unpoison guard
            calibrate` finds one for your own retrievals.
        coefficients: `minilm`, fitted on the vectors of all-MiniLM-L6-v2, `lexical`, on those of the built-in
            encoder, or `auto`: `lexical` for the built-in encoder's vectors and `minilm` for all others. For an
            encoder other than these two calibrate the threshold. Or a file of your own (`unpoison guard fit`).
        consult: With `nli`, when to compare the passages' answers (`defenses.guard_consensus`): where the evidence is
            `ambiguous`, `always`, or `never`. Costs one call of the generator for each passage that is still kept;
            the notes say how many were made.
        action: `drop` what is poison, or `redact`: keep a passage without the sentences that make it so, and without
            what it hides, where the rest is judged harmless. Then give a model `Screening.texts`.
        alone: Judge each passage by its own evidence only (injections, hidden text, windows) and compare nothing, so
            that no planted passage can make an honest one suspicious (`defenses.guard_alone`).
        answer: `kept` answers from the kept passages. `guaranteed` is `alone`, then a vote over what each passage says
            by itself, in the generator's words: `Answer.guarantee` says how many planted passages it withstands.
        encoder: For passages that bring no embedding; the built-in lexical encoder by default. Given embeddings are
            used when the query brings one too, or the encoder can make one.
        generator: For `answer`, and to read passages where answers are compared. A reader reads the kept passages of
            every screening, for what is contested.
        nli: Judges which answers contradict each other. Without it no answers are compared.
        trust_embeddings: False encodes here what comes with an embedding, for vectors can be forged.
        prompt_injection: What becomes of passages that hold a prompt injection, before anything reads them: `redact`
            cuts its sentences and drops what has no harmless rest, `drop`, `flag` only says so, `keep` does not look.
        injection_model: A classifier that finds injections in place of the built-in detector, or the string of one:
            `hf:NAME_OR_PATH` or `onnx:FOLDER` (`models.load_injection_model`).
        sources: Who says so: a policy and a history (`unpoison.Sources`, a path, a mapping). Then each source has one
            voice, what contradicts sources that count goes, and what agrees with them stays, however it is written.
        claims: Whether passages are read one by one for what they claim: `auto` with a reader, and with any other
            generator where `sources` are given (one call for each passage); `always`; `never`.
        on_dispute: Where sources contradict each other, `show` both sides in one sentence, answer as the weightier one
            does (`majority`), or `abstain`.
        limits: Bounds on the model calls.

    Raises:
        OptionError: An option out of its range.
    """

    name = "guard"
    summary = "drops only what is probably poison, at a stated damage on clean retrievals"
    calls = "1"
    source = "this package"
    tightens = {"damage": "higher"}  # noqa: RUF012  nobody writes to it

    def __init__(
        self,
        *,
        damage: float = 0.02,
        threshold: float | None = None,
        coefficients: Literal["auto", "minilm", "lexical"] | str = "auto",
        consult: Literal["ambiguous", "always", "never"] = "ambiguous",
        action: Literal["drop", "redact"] = "drop",
        alone: bool = False,
        answer: Literal["kept", "guaranteed"] = "kept",
        encoder: Encoder | str | None = None,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        trust_embeddings: bool = True,
        prompt_injection: InjectionPolicy = "redact",
        injection_model: InjectionClassifier | str | None = None,
        sources: SourcesOption = None,
        claims: Literal["auto", "always", "never"] = "auto",
        on_dispute: Literal["show", "majority", "abstain"] = "show",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(
            encoder=encoder or "lexical",
            generator=generator,
            nli=nli,
            trust_embeddings=trust_embeddings,
            prompt_injection=prompt_injection,
            injection_model=injection_model,
            sources=sources,
            limits=limits,
        )
        self.claims = among("claims", claims, ("auto", "always", "never"))
        self.on_dispute = among("on_dispute", on_dispute, ("show", "majority", "abstain"))
        if self.models.nli is not None and self.models.generator is None:
            raise OptionError("nli compares answers, and only a generator can read them; pass generator=... too")
        self.coefficients = coefficients
        self._own = None if coefficients in ("auto", "minilm", "lexical") else read(coefficients)
        self.consult = among("consult", consult, ("ambiguous", "always", "never"))
        self.action = among("action", action, ("drop", "redact"))
        self.certifies = among("answer", answer, ("kept", "guaranteed")) == "guaranteed"
        self.alone = flag("alone", alone) or self.certifies
        self.damage = damage
        self.threshold = None if threshold is None else within("threshold", threshold, 0.0, 1.0)
        for name in ("minilm", "lexical") if coefficients == "auto" else (coefficients,):
            self._models(name)[0].threshold(damage)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Evidence, three steps, the comparison of answers where wanted, threshold, claims and sources."""
        return (yield from self._screen(query, passages))[0]

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """From the claims where these were read (`defenses.claimed_answer`), else from what is kept."""
        screening, findings = yield from self._screen(query, passages)
        if findings is None or self.certifies or (screening.passages and not screening.kept):
            return (yield from self.answered_from(query, screening))
        plain = self.answered_from(query, screening)
        return (yield from claimed_answer(query, screening, findings, plain, self.on_dispute, self.sources))

    def _screen(self, query: Query, passages: tuple[Passage, ...]) -> Flow[tuple[Screening, Findings | None]]:
        if not passages:
            return Screening.decided(self.name, query, passages, kept=(), scores=(), reasons=()), None
        if self.alone:
            scale, windows = self._models("lexical")
            return screened_alone(self.name, query, passages, self._bar(scale), scale, windows), None
        assessment = yield from self._assess(query, passages)
        cut = yield from self._redaction(query, passages, assessment.judged)
        threshold = assessment.judged.threshold
        voices = voices_of(self.sources, query.text, cut.passages)
        opinion = None
        if self._consults(assessment.signs, cut.probability, threshold):
            kept = np.flatnonzero(cut.probability <= threshold)
            opinion = yield from consulted(self._radar, query, cut.passages, kept)
            if self._informed:  # strangers outvote nobody
                opinion = opinion._replace(conflict=np.where([v.counts for v in voices], 0.0, opinion.conflict))
        probability = cut.probability if opinion is None else 1 - (1 - cut.probability) * (1 - opinion.conflict)
        kept_indices = np.flatnonzero(probability <= threshold).tolist()
        statements, findings = yield from self._claims(query, cut.passages, kept_indices, voices)
        texts = [passage.reading for passage in cut.passages]
        read_answers = yield from self._read_answers(query, texts, kept_indices, opinion, statements)
        overlap = one_voice(assessment.signs.overlap, voices)
        contested = yield from contests(query.reading, texts, read_answers, overlap, asks=self._has("relations"))
        why = _reasons(assessment, passages, cut, opinion, kept=frozenset(kept_indices))
        decided = self._decided_by_content(findings, statements, contested, voices, cut.passages)
        for i, reason in decided.restored.items():
            if probability[i] > threshold:
                probability[i], why[i] = 0.0, reason
        for i, reason in decided.dropped.items():
            probability[i], why[i] = 1.0, reason
        notes = (*assessment.notes, *cut.notes, *(opinion.notes if opinion else ()), *read_answers.notes)
        screening = Screening.decided(
            self.name,
            query,
            cut.passages,
            kept=np.flatnonzero(probability <= threshold).tolist(),
            scores=1 - probability,
            reasons=why,
            evidence=Evidence(
                _arrays(assessment, probability, opinion), (*notes, *self._source_notes(passages)), graph="residual"
            ),
            contested=unsettled(contested, decided),
            claims=() if findings is None else findings.claims,
            spans=cut.spans,
        )
        return screening, findings

    def _claims(
        self, query: Query, passages: Sequence[Passage], kept: Sequence[int], voices: Sequence[Voice]
    ) -> Flow[tuple[dict[int, Statement], Findings | None]]:
        """What the passages claim: all of them where sources are told apart, else the kept ones."""
        if not self._reads_claims:
            return {}, None
        informed = self._informed
        order = by_turns(voices) if informed else kept
        first = sorted(order[:MAX_READ])
        read = yield from read_statements(query, [passages[i] for i in first], self.models.generator)
        statements = {first[i]: statement for i, statement in read.items()}
        share = SHARE if self.on_dispute != "majority" else 1.0
        findings = yield from claims_of(
            query.reading, statements, voices, asks=self._has("relations"), share=SHARE, proof=share
        )
        whole = informed and len(order) <= MAX_READ  # otherwise planted passages could choose what is read
        return statements, findings if whole else findings._replace(guarantee=None)

    @property
    def _informed(self) -> bool:
        """Whether sources are told apart."""
        return self.sources is not None and self.sources.informed

    @property
    def answers_itself(self) -> bool:
        """Where sources are weighed, or a vote answers."""
        return self.certifies or (self._reads_claims and self.sources is not None)

    @property
    def _reads_claims(self) -> bool:
        """Whether passages are read one by one: by a reader always, by a language model where sources are given."""
        if self.claims == "never" or self.models.generator is None:
            return False
        return self.claims == "always" or self._has("read") or self.sources is not None

    def _decided_by_content(
        self,
        findings: Findings | None,
        statements: Mapping[int, Statement],
        contested: Sequence[Contest],
        voices: Sequence[Voice],
        passages: Sequence[Passage],
    ) -> ByContent:
        """What goes or stays for what it says and who says it; nothing where no source is known from another."""
        if not self._informed:
            return ByContent({})
        if findings is not None and findings.counted:
            return verdicts_by_claims(findings, statements, voices, passages)
        copies, flood = verdicts_by_copies(contested, voices), verdicts_by_origin(voices, passages)
        return ByContent({**flood.dropped, **copies.dropped})

    def _source_notes(self, passages: Sequence[Passage]) -> tuple[str, ...]:
        """What screening went on without."""
        if self.sources is not None:
            unread = self._informed and not self._reads_claims
            return (*self.sources.notes, UNREAD) if unread else self.sources.notes
        if self._reads_claims and len({passage.origin for passage in passages} - {""}) > 1:
            return ("every passage had a voice of its own; pass sources=Sources() to give each source one",)
        return ()

    def _read_answers(
        self,
        query: Query,
        texts: Sequence[str],
        kept: Sequence[int],
        opinion: Opinion | None,
        statements: Mapping[int, Statement],
    ) -> Flow[ReadAnswers]:
        """What the kept passages answer, where they were read already or a reader is at hand."""
        if opinion is not None:
            return ReadAnswers({i: str(opinion.answers[i]) for i in kept})
        if self._reads_claims:
            return stated_answers(query.reading, statements, kept)
        return (yield from read_through(query.reading, texts, kept)) if self._has("read") else ReadAnswers()

    def _assess(self, query: Query, passages: tuple[Passage, ...]) -> Flow[_Assessment]:
        """Everything that wording says of the passages of a question."""
        vectors, target, kind, notes = yield from self.vectors(query, passages)
        model, windows = self._models(kind)
        if self._own is not None and self._own.encoder != kind:
            notes = (*notes, f"{self.coefficients} was fitted on {self._own.encoder} vectors, these are {kind} ones")
        texts, threshold = [p.reading for p in passages], self._bar(model)
        bodies = [passage.body for passage in passages]
        view = look(model, windows, query.reading, texts, vectors, target, bodies)
        spans = suspicious_sentences(texts, view.signs, model.style, view.probability, threshold)
        spans |= windows.suspicious(model, view.windows, threshold, view.level)
        worst = windows.quoted(model, view.windows, texts, REMARKABLE, view.level)
        judged = Judged(view.probability, threshold, spans)
        return _Assessment(model, windows, view.signs, view.judgement, judged, worst, notes)

    def _models(self, kind: str) -> tuple[GuardModel, WindowModel]:
        """The coefficients of one's own, or the shipped ones for a kind of vectors."""
        if self._own is not None:
            return self._own.model, self._own.windows
        return GuardModel.load(kind), WindowModel.load()

    def _bar(self, model: GuardModel) -> float:
        """The probability above which a passage is dropped."""
        return model.threshold(self.damage) if self.threshold is None else self.threshold

    def _redaction(self, query: Query, passages: tuple[Passage, ...], judged: Judged) -> Flow[Redaction]:
        """What is cut, or where nothing may be, only where the suspicious spans are."""
        if self.action == "drop":
            return Redaction(passages, judged.probability, suspicious_spans(passages, judged))

        def again(rests: tuple[Passage, ...]) -> Flow[Judged]:
            return (yield from self._assess(query, rests)).judged

        return (yield from redacted(passages, judged, again))

    def answered_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """From the kept passages; where these were read one by one, the answer has to stand their vote.

        With `answer="guaranteed"` by the vote itself.
        """
        if self.certifies:
            return (yield from answered_alone(query, screening, self.models.generator, self.sources))
        answer = yield from super().answered_from(query, screening)
        if "answers" not in screening.evidence or answer.abstained:
            return answer
        winner = yield from outvoted(query.reading, answer.text, screening)
        if winner is None:
            return answer
        majority = str(screening.evidence["answers"][winner])
        return replace(answer, text=majority, details={**answer.details, "outvoted": answer.text})

    def _has(self, method: str) -> bool:
        """Whether the generator is a reader: it reads passages at little cost (`read`), or compares (`relations`)."""
        return callable(getattr(self.models.generator, method, None))

    def _consults(self, signs: Signs, probability: Matrix, threshold: float) -> bool:
        if self.models.nli is None or self.consult == "never" or (probability <= threshold).sum() < FEWEST_RIVALS:
            return False
        return self.consult == "always" or ambiguous(signs, probability, threshold)

    @cached_property
    def _radar(self) -> Radar:
        models = self.models
        return Radar(models.generator, models.nli, encoder=models.encoder, limits=self.limits)

    def vectors(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Vectors]:
        """Those that came with the passages and the query, or else the encoder's."""
        vectors = yield from vectors_of(query, passages, self.models.encoder)
        shipped = self._own is None and self.coefficients != "auto"
        return vectors._replace(kind=self.coefficients) if shipped else vectors


def _reasons(
    assessment: _Assessment, passages: Sequence[Passage], cut: Redaction, opinion: Opinion | None, kept: frozenset[int]
) -> list[Reason]:
    """Each verdict's reason: the evidence, what the passage hides, what is cut, whose answer contradicts it."""
    probability, threshold = assessment.judged.probability, assessment.judged.threshold
    evidence = reasons(assessment.model, assessment.signs, assessment.judgement, probability, assessment.worst)
    whole = list[Reason]()
    for i, (passage, clauses) in enumerate(zip(passages, evidence, strict=True)):
        if passage.hidden:
            clauses.append(Reason.of("guard.hides", what=str(passage.hidden)).clause)
        if opinion is not None and opinion.conflict[i]:
            rival = {"passage": opinion.rival[i], "conflict": opinion.conflict[i]}
            clauses.append(Reason.of("guard.contradicts", **rival).clause)
        reason = verdict_of(probability[i], clauses, kept=i in kept and i not in cut.cut)
        if i in cut.cut and i in kept:
            reason = cut.reason(i, reason)
        elif i not in kept and cut.probability[i] <= threshold:  # its answer, not its wording
            reason = Reason.of("guard.contradicted", probability=probability[i], clauses=clauses)
        whole.append(reason)
    return whole


def _arrays(assessment: _Assessment, probability: Matrix, opinion: Opinion | None) -> dict[str, NDArray[Any]]:
    """The evidence of a screening, by name."""
    signs = assessment.signs
    compared = {} if opinion is None else {"answers": opinion.answers, "agreement": opinion.agreement}
    return {
        "probability": probability,
        "threshold": np.array(assessment.judged.threshold),
        "calibration": np.array(f"{assessment.model.calibration}-{assessment.windows.calibration}"),
        "similarity": signs.columns["similarity"],
        "residual": signs.residual,
        "overlap": signs.overlap,
        **compared,
    }
