"""Static RADAR: an exact min-cut over atomic answers (2026); `radar.py` adds the memory between time steps.

Each passage is read alone, which gives one atomic answer. A natural language inference (NLI) model judges which answers
entail or contradict each other. Agreement ties passages together, conflict with the consensus pulls them to the sink,
and the minimum s-t cut of that graph is the most consistent set: the source side is trusted.

The majority wins, even if it is malicious. Reading costs one model call per passage, all concurrent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.centrality import DELTA, ROUNDING, eigenvector_centrality, power_iteration
from unpoison.algorithms.cosine import cosine
from unpoison.algorithms.mincut import min_cut
from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, make_answer
from unpoison.defenses.voices import as_statements, read_alone
from unpoison.models import prompts
from unpoison.models.requests import Flow, encode, generate, judge
from unpoison.text.replies import informative

__all__ = ["AnswerGraph", "AtomicAnswers", "Matrix", "StaticRadar"]

Matrix = NDArray[np.float64]

UNANIMOUS = 1e-6
"""Eq. 36 maps equal centralities to 0, so unanimous agreement would count as no support. Below this spread every answer
is fully central instead, unless some contradict each other: then neither side is supported, and 0 is right."""


RELEASED = "released"
"""The fallback of the released code: all passages if no answer is informative, else none."""


class AtomicAnswers(NamedTuple):
    """The answers of the passages, each read alone.

    Attributes:
        query, passages: The input.
        answers: The atomic answer of every passage.
        speaking: Positions of the informative answers, shape (m,); these are also their ranks, from 0.
    """

    query: Query
    passages: tuple[Passage, ...]
    answers: list[str]
    speaking: NDArray[np.int64]

    @property
    def informative(self) -> list[str]:
        """The informative answers."""
        return [self.answers[i] for i in self.speaking]


class AnswerGraph(NamedTuple):
    """The graph over the m informative answers, all of shape (m,) or (m, m)."""

    agreement: Matrix
    conflict: Matrix
    centrality: Matrix
    source: Matrix
    sink: Matrix
    note: str = ""


class StaticRadar(Defense):
    """Trust the source side of the min-cut over atomic answers (RADAR, Sections 4.1 and 4.2, Appendices D to G).

    `Radar` is the public class and documents the options.
    """

    name = "radar"
    needs = ("generator",)
    summary = "reads each passage alone and keeps the most consistent answers by an exact min-cut"
    calls = "k + 1"
    source = "Chen et al., 2026"

    mode: str
    outlier: float
    contradiction_cut: float
    final: str
    lenient_below: int
    fallback: str

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Atomic answers, then the cut, then the outlier filter."""
        reading = yield from self.read(query, passages)
        return (yield from self.select(reading))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The final answer from the trusted passages."""
        reading = yield from self.read(query, passages)
        return (yield from self._answer(reading, self.final))

    def read(self, query: Query, passages: tuple[Passage, ...]) -> Flow[AtomicAnswers]:
        """The atomic answer of every passage, one call each."""
        prompt = prompts.atomic_answer_prompt if self.mode == "paper" else prompts.atomic_answer_reference_prompt
        answers = yield from read_alone(query, passages, prompt)
        speaking = np.array([i for i, answer in enumerate(answers) if self._informs(answer)], dtype=int)
        return AtomicAnswers(query, passages, answers, speaking)

    def _informs(self, reply: str) -> bool:
        return informative(reply) if self.mode == "paper" else "I don't know" not in reply

    def select(self, reading: AtomicAnswers, places: int | None = None) -> Flow[Screening]:
        """The cut over the atomic answers, then the outlier filter; `places` is k of the rank decay."""
        agreement, conflict = yield from self._entailment(reading.query.reading, reading.informative)
        graph = self._graph(agreement, conflict, reading.speaking, len(reading.passages) if places is None else places)
        trusted = np.flatnonzero(min_cut(graph.source, graph.sink, graph.agreement))
        closeness = yield from self._closeness([reading.informative[i] for i in trusted])
        return self._build_screening(reading, graph, trusted, trusted[self._coherent(closeness)])

    def _answer(self, reading: AtomicAnswers, final: str) -> Flow[Answer]:
        screening = yield from self.select(reading)
        trusted = screening.kept_indices
        details = {"atomic_answers": reading.answers}
        if reading.passages and not trusted and self.fallback in ("previous", "abstain"):
            return Answer.abstention(screening, details)
        if trusted and final == "answers":
            prompt = self._synthesis(reading.query.reading, [reading.answers[i] for i in trusted])
        elif trusted:
            prompt = prompts.answer_prompt(reading.query.reading, [reading.passages[i].reading for i in trusted])
        else:
            prompt = self._fallback_prompt(reading)
        (reply,) = yield from generate([prompt], "final answer", screening)
        return make_answer(reply, screening, details)

    def _synthesis(self, question: str, answers: list[str]) -> prompts.Prompt:
        return (prompts.lenient_synthesis_prompt if len(answers) < self.lenient_below else prompts.synthesis_prompt)(
            question, answers
        )

    def _fallback_prompt(self, reading: AtomicAnswers) -> prompts.Prompt:
        """The prompt when nothing is trusted and the caller does not want to abstain."""
        show_all = self.fallback == "all" or (self.fallback == RELEASED and not reading.informative)
        texts = [passage.reading for passage in reading.passages] if show_all else []
        return (
            prompts.answer_prompt(reading.query.reading, texts)
            if texts
            else prompts.answer_alone_prompt(reading.query.reading)
        )

    def _statements(self, question: str, answers: Sequence[str]) -> tuple[list[str], NDArray[np.intp]]:
        """The answers as NLI statements. The released code judges equal answers like any others."""
        if self.mode == "paper":
            return as_statements(question, answers)
        return [f"Question: {question} Answer: {answer}" for answer in answers], np.arange(len(answers))

    def _entailment(self, question: str, answers: list[str]) -> Flow[tuple[Matrix, Matrix]]:
        """M and C, Eq. 29 and 30: the geometric mean of both directions, shape (m, m).

        In `paper` mode only distinct answers are judged: equal answers agree and do not conflict.
        """
        distinct, positions = self._statements(question, answers)
        n = len(distinct)
        left, right = np.nonzero(~np.eye(n, dtype=bool))
        judged = yield from judge([(distinct[i], distinct[j]) for i, j in zip(left, right, strict=True)])
        entails, contradicts = np.eye(n), np.zeros((n, n))
        entails[left, right], contradicts[left, right] = judged[:, 0], judged[:, 2]
        everyone = np.ix_(positions, positions)
        agreement, conflict = np.sqrt(entails * entails.T)[everyone], np.sqrt(contradicts * contradicts.T)[everyone]
        return np.where(conflict > self.contradiction_cut, 0.0, agreement), conflict

    def _graph(self, agreement: Matrix, conflict: Matrix, ranks: NDArray[np.int64], k: int) -> AnswerGraph:
        """S and F, Eq. 6 and 7; the capacities of Eq. 3."""
        m = len(agreement)
        if m == 1:  # Eq. 36 and 7 are undefined for a single answer; the released code keeps it
            alone = np.array([0.9]), np.array([0.1])
            return AnswerGraph(agreement, conflict, np.ones(1), *alone)
        v, note = eigenvector_centrality(agreement), ""
        if self.mode == "paper" and m > 0 and np.ptp(power_iteration(agreement)) < UNANIMOUS:
            v, effect = np.ones(m), ": each counts as fully supported"
            if (conflict > agreement + ROUNDING).any():
                v, effect = np.zeros(m), " and some contradict each other: the cut cannot decide between them"
            note = f"all answers are equally central{effect}"
        rank = ranks + (1 if self.mode == "paper" else 0)
        source = v * np.exp(-rank / k) if m else np.zeros(0)
        sink = conflict @ v / (v.sum() - v + DELTA)  # no answer conflicts with itself
        if self.mode == "reference":
            source, sink = _rescale(source + 1e-8 * np.exp(-rank / k)), _rescale(sink)
        return AnswerGraph(agreement, conflict, v, source, sink, note)

    def _closeness(self, answers: list[str]) -> Flow[Matrix]:
        """Mean cosine of each trusted answer to the other trusted ones, Eq. 39, shape (n,)."""
        n = len(answers)
        if n < 2:
            return np.ones(n)
        similarity = cosine((yield from encode(answers, "atomic answer")))
        return np.asarray((similarity.sum(axis=1) - np.diag(similarity)) / (n - 1))

    def _coherent(self, closeness: Matrix, preferred: int = 0) -> NDArray[np.intp]:
        """Eq. 40: drop outliers. Of two dissimilar answers each is the other's outlier: the preferred one stays."""
        if len(closeness) == 2 and closeness[0] < self.outlier and self.mode == "paper":
            return np.array([preferred])
        return np.flatnonzero(closeness >= self.outlier)

    def _build_screening(
        self,
        reading: AtomicAnswers,
        graph: AnswerGraph,
        trusted: NDArray[np.intp],
        kept: NDArray[np.intp],
        further: Mapping[str, Matrix] | None = None,
    ) -> Screening:
        """The screening; `trusted` and `kept` index the informative answers, `further` is additional evidence."""
        count = len(reading.passages)
        reasons = [Reason.of("radar.uninformative")] * count
        scores = np.zeros(count)
        for m, i in enumerate(reading.speaking):
            scores[i] = graph.source[m] - graph.sink[m]
            rival = int(graph.conflict[m].argmax())
            conflict = graph.conflict[m, rival]
            if m in trusted:
                code = "radar.trusted" if m in kept else "radar.outlier"
            else:
                code = "radar.contradicted" if graph.sink[m] > graph.source[m] else "radar.unsupported"
            clash = Reason.of("radar.conflict", conflict=conflict, passage=reading.speaking[rival])
            said = {"answer": quotable(reading.answers[i]), "support": graph.source[m], "against": graph.sink[m]}
            reasons[i] = Reason.of(code, **said, clauses=[clash] if conflict > 0 else [])
        notes: tuple[str, ...] = ()
        if count and not len(kept):
            notes = ("the cut trusts no passage" if len(reading.speaking) else "no passage gave an informative answer",)
        elif graph.note:
            notes = (graph.note,)
        notes = (*notes, *self.source_notes)
        ties, clashes = (_spread(own, reading.speaking, count) for own in (graph.agreement, graph.conflict))
        arrays: dict[str, NDArray[Any]] = {"agreement": ties, "conflict": clashes, "answering": reading.speaking}
        arrays |= {"centrality": graph.centrality, "source": graph.source, "sink": graph.sink, **(further or {})}
        found, chosen = Evidence(arrays, notes, graph="agreement"), sorted(reading.speaking[kept].tolist())
        return Screening.decided(
            self.name, reading.query, reading.passages, kept=chosen, scores=scores, reasons=reasons, evidence=found
        )


def _rescale(values: Matrix) -> Matrix:
    """Min-max to [0, 1], clipped to [0.01, 0.99], as the released code does; 0.5 for values without spread."""
    spread = np.ptp(values) if len(values) else 0.0
    if spread <= ROUNDING * np.abs(values).max(initial=0.0):
        return np.full(len(values), 0.5)
    return np.asarray(np.clip((values - values.min()) / spread, 0.01, 0.99))


def _spread(small: Matrix, where: NDArray[np.int64], k: int) -> Matrix:
    """The matrix of the answering passages in the positions of all passages, zeros elsewhere."""
    whole = np.zeros((k, k))
    whole[np.ix_(where, where)] = small
    return whole
