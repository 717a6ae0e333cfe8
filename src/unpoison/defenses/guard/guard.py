"""Guard: four checks of each text, then what claims and sources say; it touches nothing otherwise.

1. `hidden`            what no reader sees is not read (`guard.checks`)
2. `prompt_injection`  sentences that tell the model what to do are cut, as in every defense (`injections`)
3. `gibberish`         text that no person writes goes (`text.gibberish`)
4. `crafted`           what looks written for this question goes (`guard.crafted`)
5. `contradicted`      what sources that count contradict goes, and what they say stays (`guard.sources`)

The first three look at one passage and nothing else. The first four say nothing about truth: the fifth does, with a
reader or a language model. What is kept stays in the retriever's order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import ACTIONS, Action, Evidence, without
from unpoison.defenses.base import Defense, ScreeningOptions
from unpoison.defenses.claims import (
    MAX_READ,
    SHARE,
    Findings,
    Statement,
    answer_from_claims,
    claims_of,
    read_statements,
)
from unpoison.defenses.guard.checks import REMARKABLE, Checks, CheckScores, reasons
from unpoison.defenses.guard.contest import ReadAnswers, contests, read_through
from unpoison.defenses.guard.crafted import Crafted, coverage, overlap
from unpoison.defenses.guard.redaction import Redaction, redact_passages
from unpoison.defenses.guard.sources import (
    ByContent,
    answers_from_statements,
    one_voice,
    open_contests,
    verdicts_by_claims,
    verdicts_by_copies,
    verdicts_by_origin,
)
from unpoison.defenses.guard.votes import CLAIM, Opinion, ambiguous, answer_by_vote, compare_answers, majority_passage
from unpoison.defenses.radar import Radar
from unpoison.defenses.voices import Voice, by_turns, voices_of
from unpoison.errors import OptionError
from unpoison.models.protocols import Encoder, NLIModel
from unpoison.models.requests import Flow
from unpoison.sources.allow import Allowed
from unpoison.text.questions import read_question
from unpoison.text.tokens import stems, words
from unpoison.utils.checks import among, within

__all__ = ["Guard"]


Matrix = NDArray[np.float64]

UNREAD = (
    "nobody read what the passages claim: sources decide only on near-copies that differ and on many texts of one new "
    "source; give a generator, such as reader"
)

RELATED = 1 / 3
"""A passage that holds less than this share of the question's words does not answer it."""

MIN_RIVALS = 2
"""Fewer passages cannot contradict each other."""


class Guard(Defense):
    """Drop what no honest text has and what is written for the question; report what the rest disagree on.

    `Screening.contested` lists near-copies that differ in a name or number, whatever the models; and with a reader as
    generator, or where answers were compared anyway, the answers of kept passages that contradict each other and have
    at least half of the leading answer's voices (`defenses.guard.contest`). Nothing is dropped because of it.

    Args:
        damage: The share of clean passages that the checks may cost on a clean retrieval, in [0.0025, 0.1]; it chooses
            the threshold by the clean data sets of the training.
        threshold: The probability above which a check acts, in [0, 1], instead of `damage`; `unpoison screen
            --calibrate` finds one for your own retrievals.
        hidden: What becomes of messages that no reader sees: `redact` reads the passage without them, `drop` drops a
            passage that hides anything, `flag` says so, `keep` does nothing.
        prompt_injection: The same for sentences that tell the model what to do; every defense has it.
        gibberish: The same for text that no person writes; None as `action`.
        crafted: The same for what looks written for this question; None as `action`.
        action: For `gibberish` and `crafted`: `drop`, `redact`, `flag` or `keep`. With `redact` give a model
            `Screening.texts`.
        answer: `kept` answers from the kept passages. `guaranteed` compares no passages, so that none can make another
            suspicious, then votes over what each says by itself, in the generator's words: `Answer.guarantee` says how
            many planted passages that withstands (`defenses.guard.votes`).
        nli: Judges which answers contradict each other, where the checks are in doubt; costs one call of the generator
            for each passage that is still kept. Without it no answers are compared.
        encoder: Compares passages where answers are compared with `nli`; the checks use none.
        on_dispute: Where sources contradict each other, `show` both sides in one sentence, answer as the weightier one
            does (`majority`), or `abstain`.
        allow: Passages whose style is not judged: ids, sources, patterns of sources, or hashes of texts as the reason
            of a drop shows them (`sha256:...`). Hidden text and injections are cut there too.
        mode: `monitor` keeps everything whole and only says in the reasons what would go.

    As every defense it also takes the options of the shell (`ShellOptions`). With `sources` each source has one voice,
    what contradicts sources that count goes, and what agrees with them stays, however it is written. What passages
    claim is read by a reader always, by any other `generator` where `sources` are given (one call for each passage).

    Raises:
        OptionError: An option out of its range.

    Attributes:
        claims: When passages are read for what they claim: `auto` as above, `always`, `never` (`bench.ablations`).
        consult: With `nli`, when answers are compared: where the checks are `ambiguous`, `always`, `never`.
        independent: Whether no check compares passages.
    """

    name = "guard"
    summary = "drops what no honest text has and what is written for the question, at a stated damage"
    calls = "1"
    source = "this package"
    client_options = {"damage": "higher"}  # noqa: RUF012  nobody writes to it
    claims: Literal["auto", "always", "never"] = "auto"
    consult: Literal["ambiguous", "always", "never"] = "ambiguous"
    independent: bool = False

    def __init__(  # type: ignore[misc]  # its own default of an option of the shell
        self,
        *,
        damage: float = 0.02,
        threshold: float | None = None,
        hidden: Action = "redact",
        prompt_injection: Action = "redact",
        gibberish: Action | None = None,
        crafted: Action | None = None,
        action: Action = "drop",
        answer: Literal["kept", "guaranteed"] = "kept",
        nli: NLIModel | str | None = None,
        encoder: Encoder | str | None = None,
        on_dispute: Literal["show", "majority", "abstain"] = "show",
        allow: Sequence[str] = (),
        mode: Literal["enforce", "monitor"] = "enforce",
        **shell: Unpack[ScreeningOptions],
    ) -> None:
        if among("mode", mode, ("enforce", "monitor")) == "monitor":
            hidden = prompt_injection = gibberish = crafted = "flag"
        self.mode = mode
        shell["prompt_injection"] = prompt_injection
        super().__init__(encoder=encoder or ("lexical" if nli is not None else None), nli=nli, **shell)
        self.on_dispute = among("on_dispute", on_dispute, ("show", "majority", "abstain"))
        if self.models.nli is not None and self.models.generator is None:
            raise OptionError("nli compares answers, and only a generator can read them; pass generator=... too")
        self.action = among("action", action, ACTIONS)
        self.certifies = among("answer", answer, ("kept", "guaranteed")) == "guaranteed"
        self.independent = self.independent or self.certifies
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
        """The checks, the comparison of answers where wanted, claims and sources."""
        return (yield from self._screen(query, passages))[0]

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """From the claims where these were read (`defenses.claims`), else from what is kept."""
        screening, findings = yield from self._screen(query, passages)
        if findings is None or self.certifies or (screening.passages and not screening.kept):
            return (yield from self.answer_from(query, screening))
        plain = self.answer_from(query, screening)
        return (yield from answer_from_claims(query, screening, findings, plain, self.on_dispute, self.sources))

    def _screen(self, query: Query, passages: tuple[Passage, ...]) -> Flow[tuple[Screening, Findings | None]]:
        if not passages:
            return Screening.decided(self.name, query, passages, kept=(), scores=(), reasons=()), None
        look, cut = self._run_checks(query, passages)
        if self.independent:
            return self._build_screening(query, cut, cut.probability, reasons(look, cut, passages), look.by_check), None
        voices = voices_of(self.sources, query.text, cut.passages)
        opinion = yield from self._opinion(query, look, cut, voices)
        probability = cut.probability if opinion is None else 1 - (1 - cut.probability) * (1 - opinion.conflict)
        why = reasons(look, cut, passages, opinion, probability)
        kept = np.flatnonzero(probability <= self.threshold).tolist()
        statements, findings = yield from self._claims(query, cut.passages, kept, voices)
        texts = [passage.reading for passage in cut.passages]
        read_answers = yield from self._read_answers(query, texts, kept, opinion, statements)
        shared = overlap(query.reading, texts)
        contested = yield from contests(
            query.reading, texts, read_answers, one_voice(shared, voices), asks=self._has("relations")
        )
        decided = self._content_verdicts(query.reading, findings, statements, voices, cut.passages)
        for i, reason in decided.restored.items():
            if look.worst[i] == "crafted" or i in look.spared:
                probability[i], why[i] = 0.0 if probability[i] > self.threshold else probability[i], reason
        for i, reason in decided.dropped.items():
            if self.mode == "monitor":
                why[i] = Reason.of("guard.flagged", clauses=[reason])
            else:
                probability[i], why[i] = 1.0, reason
        alone = self._only_answer(query, cut.passages, probability, look, statements, decided)
        if alone is not None:
            probability[alone], why[alone] = self.threshold, Reason.of("guard.alone", clauses=[why[alone]])
        compared = {} if opinion is None else {"answers": opinion.answers, "agreement": opinion.agreement}
        arrays = {**look.by_check, "overlap": shared, **compared}
        notes = (*(opinion.notes if opinion else ()), *read_answers.notes, *self._source_notes(passages))
        screening = self._build_screening(query, cut, probability, why, arrays, notes)
        claims = () if findings is None else findings.claims
        return replace(screening, contested=open_contests(contested, decided), claims=claims), findings

    def _only_answer(
        self,
        query: Query,
        passages: Sequence[Passage],
        probability: Matrix,
        look: CheckScores,
        statements: Mapping[int, Statement],
        decided: ByContent,
    ) -> int | None:
        """The one passage that goes for its style alone, where no other that was retrieved answers the question.

        What repeats the question word for word is not spared: that is how planted texts get themselves retrieved.
        """
        suspects = [i for i in np.flatnonzero(probability > self.threshold).tolist() if i not in decided.dropped]
        if len(suspects) != 1 or look.worst[suspects[0]] != "crafted" or passages[suspects[0]].hidden:
            return None
        if look.crafted.probability[suspects[0]] < REMARKABLE:
            return None  # it goes for the threshold, and not for its style
        if " ".join(words(query.reading)) in " ".join(words(passages[suspects[0]].reading)):
            return None
        others = [i for i in range(len(passages)) if i != suspects[0]]
        if any(i in statements and statements[i].given for i in others):
            return None
        asked = read_question(query.reading).content
        if any(len(asked.intersection(stems(passages[i].reading))) >= RELATED * len(asked) for i in others):
            return None
        covered = coverage(query.reading, [passages[suspects[0]].reading])
        return suspects[0] if covered[0] >= CLAIM else None

    def _build_screening(
        self,
        query: Query,
        cut: Redaction,
        probability: Matrix,
        why: Sequence[Reason],
        arrays: Mapping[str, NDArray[Any]],
        notes: Sequence[str] = (),
    ) -> Screening:
        """The screening that these probabilities make."""
        common = {
            "probability": probability,
            "threshold": np.array(self.threshold),
            "calibration": np.array(Crafted.load().calibration),
        }
        return Screening.decided(
            self.name,
            query,
            cut.passages,
            kept=np.flatnonzero(probability <= self.threshold).tolist(),
            scores=1 - probability,
            reasons=why,
            evidence=Evidence({**common, **arrays}, (*cut.notes, *notes), "overlap" if "overlap" in arrays else None),
            spans=cut.spans,
        )

    def _opinion(
        self, query: Query, look: CheckScores, cut: Redaction, voices: Sequence[Voice]
    ) -> Flow[Opinion | None]:
        """What the comparison of the kept passages' answers says, where it is wanted."""
        kept = np.flatnonzero(cut.probability <= self.threshold)
        if self.models.nli is None or self.consult == "never" or len(kept) < MIN_RIVALS:
            return None
        covered = coverage(query.reading, [cut.passages[i].reading for i in kept])
        if self.consult == "ambiguous" and not ambiguous(covered, cut.probability[kept]):
            return None
        opinion = yield from compare_answers(self._radar, query, cut.passages, kept)
        if self._informed:  # strangers outvote nobody
            opinion = opinion._replace(conflict=np.where([v.counts for v in voices], 0.0, opinion.conflict))
        return opinion

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
            query.reading,
            statements,
            voices,
            asks=self._has("relations"),
            share=SHARE,
            proof=share,
            texts=[passage.reading for passage in passages],
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

    def _content_verdicts(
        self,
        question: str,
        findings: Findings | None,
        statements: Mapping[int, Statement],
        voices: Sequence[Voice],
        passages: Sequence[Passage],
    ) -> ByContent:
        """What goes or stays for what it says and who says it; nothing where no source is known from another."""
        if not self._informed:
            return ByContent({})
        copies = verdicts_by_copies(question, [passage.reading for passage in passages], voices).dropped
        if findings is None or not findings.counted:
            return ByContent({**verdicts_by_origin(voices, passages).dropped, **copies})
        by_claims = verdicts_by_claims(findings, statements, voices, passages)
        restored = {i: reason for i, reason in by_claims.restored.items() if i not in copies}
        return ByContent({**copies, **by_claims.dropped}, restored)

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
            return answers_from_statements(query.reading, statements, kept)
        return (yield from read_through(query.reading, texts, kept)) if self._has("read") else ReadAnswers()

    def _run_checks(self, query: Query, passages: tuple[Passage, ...]) -> tuple[CheckScores, Redaction]:
        """What the checks say of the passages, and what is left of these."""
        hidden = self.checks.hidden(passages)
        bare = tuple(without(p, hidden[i]) if i in hidden else p for i, p in enumerate(passages))
        spared = [i for i, passage in enumerate(passages) if self._spares(passage)]
        look = self.checks.score_passages(query.reading, bare, spared)
        again = lambda rests: self.checks.score_passages(query.reading, rests, spared).judged  # noqa: E731
        return look, redact_passages(bare, look.judged, again, hidden)

    def _spares(self, passage: Passage) -> bool:
        """Whether the style of a passage is not judged: a known source's, or what is allowed."""
        return self.allow.matches(passage) or (self.sources is not None and self.sources.spares(passage))

    def answer_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """From the kept passages; where these were read one by one, the answer has to stand their vote.

        With `answer="guaranteed"` by the vote itself.
        """
        if self.certifies:
            return (yield from answer_by_vote(query, screening, self.models.generator, self.sources))
        answer = yield from super().answer_from(query, screening)
        if "answers" not in screening.evidence or answer.abstained:
            return answer
        winner = yield from majority_passage(query.reading, answer.text, screening)
        if winner is None:
            return answer
        majority = str(screening.evidence["answers"][winner])
        return replace(answer, text=majority, details={**answer.details, "outvoted": answer.text})

    def _has(self, method: str) -> bool:
        """Whether the generator is a reader: it reads passages at little cost (`read`), or compares (`relations`)."""
        return callable(getattr(self.models.generator, method, None))

    @cached_property
    def _radar(self) -> Radar:
        models = self.models
        return Radar(models.generator, models.nli, encoder=models.encoder, limits=self.limits)
