"""RADAR's memory: the answer of the step before as one more node of the graph (2026, Section 4.3, Algorithm 1).

Pure computation: the old belief comes in, the new one goes out with the answer. `radar.py` reads and writes beliefs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from unpoison.algorithms.mincut import min_cut
from unpoison.algorithms.ranking import best_first
from unpoison.core.belief import Belief, BeliefUpdate, Weights
from unpoison.defenses.base import abstention, add_notes, make_answer
from unpoison.defenses.isolation import MAX_ANSWER_CHARS, statements
from unpoison.defenses.radar_static import AtomicAnswers, Graph, Matrix, StaticRadar
from unpoison.defenses.radar_voices import one_voice_agreement
from unpoison.defenses.voices import Voice
from unpoison.models.prompts import informative
from unpoison.models.requests import Flow, generate, judge
from unpoison.types import Answer, Screening

__all__ = ["RememberingRadar", "posterior"]

LEAST, MOST = 0.01, 0.99
"""Priors are kept inside these bounds, as in the released code: one of 0 or 1 could never move again."""


class Recollection(NamedTuple):
    """What the memory node did at one step."""

    screening: Screening
    trusted: list[int]
    likelihood: Weights
    posterior: Weights
    kept: bool
    reason: str


class RememberingRadar(StaticRadar):
    """One time step with a memory node (RADAR, Section 4.3). The options stand at `Radar`."""

    def conclude(self, reading: AtomicAnswers, belief: Belief | None) -> Flow[Answer]:
        """One time step of Algorithm 1 after the passages were read (lines 6 to 23), as a flow.

        Args:
            reading: The atomic answers of this step.
            belief: What was remembered; None at the first step.

        Returns:
            The answer; its `belief` holds the new belief, which is the given one where nothing new is remembered.
        """
        if belief is None:
            first = "documents" if self.final == "documents" and self.mode == "paper" else "answers"
            answer = yield from self._answer(reading, first)
            change = BeliefUpdate(None, None, None, None, None, "nothing was remembered of this question", None)
            trusted, others = bool(answer.screening.kept), reading.informative
        else:
            recalled = yield from self._recall(reading, belief)
            answer = yield from self._synthesize(reading, belief, recalled)
            change = BeliefUpdate(
                belief.answer,
                belief.weights,
                recalled.likelihood,
                recalled.posterior,
                recalled.kept,
                recalled.reason,
                belief,
            )
            trusted = bool(recalled.trusted)
            others = [*reading.informative, belief.answer] if self.mode == "reference" else reading.informative
        if trusted and others and informative(answer.text):
            weights = yield from self._weights(reading.query.reading, answer.text[:MAX_ANSWER_CHARS], others)
            change = replace(change, belief=Belief(answer.text, *weights, reading.query.reading))
        return replace(answer, belief=change)

    def _recall(self, reading: AtomicAnswers, belief: Belief) -> Flow[Recollection]:
        """The cut with the memory node, which comes last (lines 6 to 13)."""
        m, answers = len(reading.speaking), [*reading.informative, belief.answer]
        agreement, conflict = yield from self._entailment(reading.query.reading, answers)
        speakers = [*(reading.voices[i] for i in reading.speaking), Voice("memory")] if reading.voices else []
        agreement = one_voice_agreement(agreement, speakers)
        likelihood = self._likelihood(agreement[m, :m], conflict[m, :m])
        after = Weights(*map(posterior, belief.weights, likelihood))
        graph = self._graph_of_documents(agreement, conflict, reading)
        source, sink = np.append(graph.source, after.support), np.append(graph.sink, after.conflict)
        trusted = np.flatnonzero(min_cut(source, sink, agreement))
        closeness = yield from self._closeness([answers[i] for i in trusted])
        # Of two that are unlike the stronger stays if one is the memory, which has no rank.
        preferred = int(best_first((source - sink)[trusted])[0]) if m in trusted else 0
        kept = trusted[self._coherent(closeness, preferred)]
        reason = _reason(after, informative=m > 0, in_cut=m in trusted, kept=m in kept)
        screening = self._build_screening(
            reading, graph, trusted[trusted < m], kept[kept < m], {"memory": np.array(after), "ties": agreement[m, :m]}
        )
        return Recollection(screening, kept.tolist(), likelihood, after, m in kept, reason)

    def _graph_of_documents(self, agreement: Matrix, conflict: Matrix, reading: AtomicAnswers) -> Graph:
        """Capacities of the documents: from this step's documents alone (line 7), in the released code from all."""
        m, k = len(reading.speaking), reading.places
        if self.mode == "paper":
            return self._graph(agreement[:m, :m], conflict[:m, :m], reading.ranks, k)
        whole = self._graph(agreement, conflict, np.append(reading.ranks, k), k + 1)
        return Graph(agreement[:m, :m], conflict[:m, :m], whole.centrality[:m], whole.source[:m], whole.sink[:m])

    def _likelihood(self, agreement: Matrix, conflict: Matrix) -> Weights:
        """Eq. 13 and 15 over the informative answers; where there are none, nothing is said for or against."""
        if not len(agreement):
            return Weights(0.5, 0.5) if self.mode == "paper" else Weights(1.0, 0.0)
        return Weights(float(agreement.mean()), float(conflict.mean()))

    def _synthesize(self, reading: AtomicAnswers, belief: Belief, recalled: Recollection) -> Flow[Answer]:
        """The answer from the trusted atomic answers and the previous one, if it is trusted (Eq. 17)."""
        answers, details = [*reading.informative, belief.answer], {"atomic_answers": reading.answers}
        previous = Answer(belief.answer, recalled.screening, details=details)
        if belief.cut:
            previous = add_notes(previous, "the previous answer was cut when it was remembered")
        if recalled.trusted == [len(reading.informative)]:
            return previous  # there is nothing to synthesize
        if not recalled.trusted and self.fallback == "previous":
            return add_notes(previous, "the previous answer is repeated")
        if not recalled.trusted and self.fallback == "abstain":
            return abstention(recalled.screening, details)
        question = reading.query.reading
        prompt = (
            self._synthesis(question, [answers[i] for i in recalled.trusted])
            if recalled.trusted
            else self._fallback_prompt(reading)
        )
        (reply,) = yield from generate([prompt], "final answer", recalled.screening)
        return make_answer(reply, recalled.screening, details)

    def _weights(self, question: str, answer: str, others: list[str]) -> Flow[Weights]:
        """Eq. 11 and 12: mean agreement and conflict of an answer with others, each in both directions."""
        distinct, positions = statements(question, [answer, *others])
        own, rest = distinct[0], distinct[1:]
        judged = yield from judge([pair for another in rest for pair in ((own, another), (another, own))])
        means = np.sqrt(judged[0::2] * judged[1::2])
        conflict = np.append(0.0, means[:, 2])
        agreement = np.where(conflict > self.contradiction_cut, 0.0, np.append(1.0, means[:, 0]))
        return Weights(float(agreement[positions[1:]].mean()), float(conflict[positions[1:]].mean()))


def posterior(prior: float, likelihood: float) -> float:
    """Bayes under the paper's symmetric likelihood (Eq. 14 and 16, Appendix C).

    Args:
        prior: In [0, 1], taken into [0.01, 0.99].
        likelihood: In [0, 1].

    Returns:
        In [0, 1]; the prior where the likelihood is 0.5.
    """
    before = min(max(prior, LEAST), MOST)
    supported = before * likelihood
    return supported / (supported + (1 - before) * (1 - likelihood))


def _reason(after: Weights, *, informative: bool, in_cut: bool, kept: bool) -> str:
    """Why the previous answer was kept or not."""
    balance = f"support {after.support:.2f} against {after.conflict:.2f}"
    if not informative and kept:
        return f"no passage is informative, so nothing speaks against it: {balance}"
    if in_cut and not kept:
        return f"it is unlike the other trusted answers, with {balance}"
    favoured = after.support >= after.conflict
    if kept:
        return balance if favoured else f"{balance}, but the trusted passages that agree with it hold it"
    return f"{balance}, but the passages that agree with it are cut off, and it with them" if favoured else balance
