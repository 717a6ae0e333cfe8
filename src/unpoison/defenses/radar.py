"""RADAR: an exact min-cut over atomic answers (2026).

Each passage is read alone, giving one atomic answer. A natural language inference (NLI) model says which answers
entail or contradict each other. Agreement ties passages together, conflict with the consensus pulls them to the sink,
and the minimum s-t cut of that graph is the most consistent set: the source side is trusted.

The majority wins, whoever that is. Reading costs one model call per passage, all at the same time.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.checks import among, at_least, within
from unpoison.defenses.base import Defense, abstention, answered
from unpoison.driver import Limits
from unpoison.kernels.centrality import eigenvector_centrality, power_iteration
from unpoison.kernels.cosine import cosine
from unpoison.kernels.mincut import min_cut
from unpoison.models.protocols import Encoder, Generator, NLIModel
from unpoison.prompts import (
    Prompt,
    answer_alone_prompt,
    answer_prompt,
    atomic_answer_prompt,
    atomic_answer_reference_prompt,
    informative,
    lenient_synthesis_prompt,
    synthesis_prompt,
)
from unpoison.requests import Flow, encode, generate, judge
from unpoison.types import Answer, Evidence, Passage, Query, Screening

__all__ = ["Radar"]

Matrix = NDArray[np.float64]

LONGEST_ANSWER = 2000
"""Characters of one atomic answer that are compared; a model may return a megabyte."""

UNANIMOUS = 1e-6
"""Eq. 36 maps equal centralities to 0, so that agreement by all would count as support for none. Below this spread
every answer is fully central instead."""


class Cut(NamedTuple):
    """The graph over the informative answers and its minimum cut, all of shape (m,) or (m, m)."""

    agreement: Matrix
    conflict: Matrix
    centrality: Matrix
    source: Matrix
    sink: Matrix
    trusted: NDArray[np.int64]
    unanimous: bool = False


class Radar(Defense):
    """Trust the source side of the min-cut over atomic answers (RADAR, Sections 4.1 and 4.2, Appendices D to G).

    Args:
        generator: Reads each passage and gives the final answer; `screen` needs it as well.
        nli: Judges pairs of answers; the built-in lexical judge by default.
        mode: `paper`, or `reference` for the released code: S and F rescaled to [0.01, 0.99], ranks from 0, strong
            conflict switching agreement off, short-answer prompt. It keeps nothing in most unanimous sets.
        outlier: Mean cosine to the other trusted answers below which one is an outlier (the paper's lambda), in
            [-1, 1].
        contradiction_cut: Above this mean conflict a pair's agreement counts as 0, in [0, 1]; None for the mode's own
            (`paper`: never, `reference`: 0.8).
        final: What the final answer is made from: the trusted `documents` (Section 4.2) or their atomic `answers`
            (Appendix G), with the strict synthesis prompt of Appendix H.
        lenient_below: With `final="answers"`, allow the model its own knowledge if fewer answers than this are
            trusted, as the released code does with 3; 0 never.
        fallback: When no passage is trusted: `abstain`, answer from `all` passages as the released code does when
            every atomic answer is uninformative, or answer from `memory` alone.
        encoder: Compares the trusted answers; the built-in lexical encoder by default.
        limits: Bounds on the model calls.

    Raises:
        OptionError: An option out of its range.
    """

    name = "radar"
    needs = ("generator",)
    summary = "reads each passage alone and keeps the most consistent answers by an exact min-cut"

    def __init__(
        self,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        *,
        mode: Literal["paper", "reference"] = "paper",
        outlier: float = 0.3,
        contradiction_cut: float | None = None,
        final: Literal["documents", "answers"] = "documents",
        lenient_below: int = 0,
        fallback: Literal["abstain", "all", "memory"] = "abstain",
        encoder: Encoder | str | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(encoder=encoder or "lexical", generator=generator, nli=nli or "lexical", limits=limits)
        self.mode = among("mode", mode, ("paper", "reference"))
        self.outlier = within("outlier", outlier, -1.0, 1.0)
        default = 1.0 if mode == "paper" else 0.8
        self.contradiction_cut = (
            default if contradiction_cut is None else within("contradiction_cut", contradiction_cut, 0.0, 1.0)
        )
        self.final = among("final", final, ("documents", "answers"))
        self.lenient_below = at_least("lenient_below", lenient_below, 0)
        self.fallback = among("fallback", fallback, ("abstain", "all", "memory"))

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Atomic answers, then the cut, then the outlier filter."""
        screening, _ = yield from self._read_and_cut(query, passages)
        return screening

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The final answer from what the cut trusts."""
        screening, answers = yield from self._read_and_cut(query, passages)
        details = {"atomic_answers": answers}
        trusted = list(screening.kept_indices)
        if passages and not trusted and self.fallback == "abstain":
            return abstention(screening, details)
        prompt = self._final_prompt(query.text, trusted, passages, answers)
        (reply,) = yield from generate([prompt], "final answer")
        return answered(reply, screening, details)

    def _final_prompt(
        self, question: str, trusted: list[int], passages: tuple[Passage, ...], answers: list[str]
    ) -> Prompt:
        if not trusted:
            texts = [p.reading for p in passages] if self.fallback == "all" else []
            return answer_prompt(question, texts) if texts else answer_alone_prompt(question)
        if self.final == "documents":
            return answer_prompt(question, [passages[i].reading for i in trusted])
        synthesis = lenient_synthesis_prompt if len(trusted) < self.lenient_below else synthesis_prompt
        return synthesis(question, [answers[i] for i in trusted])

    def _read_and_cut(self, query: Query, passages: tuple[Passage, ...]) -> Flow[tuple[Screening, list[str]]]:
        prompt = atomic_answer_prompt if self.mode == "paper" else atomic_answer_reference_prompt
        replies = yield from generate([prompt(query.text, p.reading) for p in passages], "atomic answer")
        answers = [reply.text[:LONGEST_ANSWER] for reply in replies]
        speaking = np.array([i for i, answer in enumerate(answers) if informative(answer)], dtype=int)
        said = [answers[i] for i in speaking]

        agreement, conflict = yield from self._entailment(query.text, said)
        cut = self._cut(agreement, conflict, speaking, len(passages))
        trusted = np.flatnonzero(cut.trusted)
        closeness = yield from self._closeness([said[i] for i in trusted])
        kept = trusted[self._coherent(closeness)]
        screening = self._decided(
            query, passages, answers, speaking, cut, speaking[kept].tolist(), speaking[trusted].tolist()
        )
        return screening, answers

    def _entailment(self, question: str, answers: list[str]) -> Flow[tuple[Matrix, Matrix]]:
        """M and C, Eq. 29 and 30: the geometric mean of both directions, shape (m, m).

        Only distinct ordered pairs of distinct answers are judged: equal answers agree and do not conflict.
        """
        same = [" ".join(answer.casefold().split()).rstrip(".") for answer in answers]
        distinct = list(dict.fromkeys(same))
        spoken = dict(zip(reversed(same), reversed(answers), strict=True))  # of equal answers, the first one's wording
        statements = [f"Question: {question} Answer: {spoken[key]}" for key in distinct]
        n = len(distinct)
        left, right = np.nonzero(~np.eye(n, dtype=bool))
        judged = yield from judge([(statements[i], statements[j]) for i, j in zip(left, right, strict=True)])
        entails, contradicts = np.eye(n), np.zeros((n, n))
        entails[left, right], contradicts[left, right] = judged[:, 0], judged[:, 2]
        place = [distinct.index(key) for key in same]
        everyone = np.ix_(place, place)
        return np.sqrt(entails * entails.T)[everyone], np.sqrt(contradicts * contradicts.T)[everyone]

    def _cut(self, agreement: Matrix, conflict: Matrix, speaking: NDArray[np.int64], k: int) -> Cut:
        """S and F, Eq. 6 and 7, and the exact minimum cut of Eq. 3; the larger source side where cuts tie."""
        agreement = np.where(conflict > self.contradiction_cut, 0.0, agreement)
        m = len(agreement)
        if m == 1:  # Eq. 36 and 7 are undefined for a single answer; the released code keeps it
            alone = np.array([0.9]), np.array([0.1])
            return Cut(agreement, conflict, np.ones(1), *alone, np.ones(1, dtype=np.int64))
        unanimous = self.mode == "paper" and m > 0 and np.ptp(power_iteration(agreement)) < UNANIMOUS
        v = np.ones(m) if unanimous else eigenvector_centrality(agreement)
        rank = speaking + (1 if self.mode == "paper" else 0)
        source = v * np.exp(-rank / k) if m else np.zeros(0)
        weight = v.sum() - v
        sink = np.divide(conflict @ v - np.diag(conflict) * v, weight, out=np.zeros(m), where=weight > 0)
        if self.mode == "reference":
            source, sink = _rescaled(source + 1e-8 * np.exp(-rank / k)), _rescaled(sink)
        return Cut(agreement, conflict, v, source, sink, min_cut(source, sink, agreement), bool(unanimous))

    def _closeness(self, answers: list[str]) -> Flow[Matrix]:
        """Mean cosine of each trusted answer to the other trusted ones, Eq. 39, shape (n,)."""
        n = len(answers)
        if n < 2:
            return np.ones(n)
        similarity = cosine((yield from encode(answers, "atomic answer")))
        return np.asarray((similarity.sum(axis=1) - np.diag(similarity)) / (n - 1))

    def _coherent(self, closeness: Matrix) -> NDArray[np.intp]:
        """Eq. 40: outliers go. Of two answers that are unlike, either is the other's outlier: the better rank stays."""
        if len(closeness) == 2 and closeness[0] < self.outlier and self.mode == "paper":
            return np.array([0])
        return np.flatnonzero(closeness >= self.outlier)

    def _decided(
        self,
        query: Query,
        passages: tuple[Passage, ...],
        answers: list[str],
        speaking: NDArray[np.int64],
        cut: Cut,
        kept: list[int],
        trusted: list[int],
    ) -> Screening:
        place = {int(i): m for m, i in enumerate(speaking)}
        reasons, scores = [], np.zeros(len(passages))
        for i, answer in enumerate(answers):
            if i not in place:
                reasons.append("its atomic answer is uninformative")
                continue
            m = place[i]
            scores[i] = cut.source[m] - cut.sink[m]
            said = answer if len(answer) <= 80 else f"{answer[:79]}…"
            side = "on the trusted side of the cut" if i in trusted else "cut off"
            outlier = ", but unlike the other trusted answers" if i in trusted and i not in kept else ""
            rival = int(cut.conflict[m].argmax())
            against = (
                f", conflict {cut.conflict[m, rival]:.2f} with passage {speaking[rival]}"
                if cut.conflict[m, rival] > 0
                else ""
            )
            reasons.append(
                f"answers {said!r}: support {cut.source[m]:.2f} against {cut.sink[m]:.2f}{against}; {side}{outlier}"
            )
        notes: tuple[str, ...] = ()
        if passages and not kept:
            notes = ("no passage gave an informative answer" if not place else "the cut trusts no passage",)
        elif cut.unanimous:
            notes = ("all answers are equally central: each counts as fully supported",)
        evidence = {
            "agreement": _spread(cut.agreement, speaking, len(passages)),
            "conflict": _spread(cut.conflict, speaking, len(passages)),
            "answering": speaking,
            "centrality": cut.centrality,
            "source": cut.source,
            "sink": cut.sink,
        }
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=kept,
            scores=scores,
            reasons=reasons,
            evidence=Evidence(evidence, notes, graph="agreement"),
        )


def _rescaled(values: Matrix) -> Matrix:
    """Min-max to [0, 1], clipped to [0.01, 0.99], as the released code does; 0.5 for values without spread."""
    spread = np.ptp(values) if len(values) else 0.0
    if spread == 0:
        return np.full(len(values), 0.5)
    return np.asarray(np.clip((values - values.min()) / spread, 0.01, 0.99))


def _spread(small: Matrix, where: NDArray[np.int64], k: int) -> Matrix:
    """The answering passages' matrix in the positions of all passages, zeros elsewhere."""
    whole = np.zeros((k, k))
    whole[np.ix_(where, where)] = small
    return whole
