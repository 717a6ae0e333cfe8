"""RADAR: an exact min-cut over atomic answers, with a memory between time steps (2026).

Each passage is read alone, which gives one atomic answer. A natural language inference (NLI) model judges which answers
entail or contradict each other. Agreement ties passages together, conflict with the consensus pulls them to the sink,
and the minimum s-t cut of that graph is the most consistent set: the source side is trusted (`radar_static.py`).

With a belief store, the previous answer is an additional node (Section 4.3, Algorithm 1). Its ties to source and sink
are Bayesian posteriors. The two priors are its support and its contradiction when it was given; the likelihoods come
from the passages of this step. So it resists a few poisoned passages and gives way to changed evidence.

The majority wins, even if it is malicious. Reading costs one model call per passage, all concurrent.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Iterable
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Unpack

import numpy as np

from unpoison.algorithms.cosine import best_first
from unpoison.algorithms.mincut import min_cut
from unpoison.beliefs import open_beliefs
from unpoison.beliefs.store import BeliefStore, belief_key, check_key
from unpoison.core.answers import Answer, Belief, BeliefUpdate, Weights
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.defenses.base import ShellOptions, make_answer
from unpoison.defenses.radar_static import RELEASED, AnswerGraph, AtomicAnswers, Matrix, StaticRadar
from unpoison.defenses.voices import MAX_ANSWER_CHARS
from unpoison.errors import StoreError
from unpoison.models.loading import answer_judge
from unpoison.models.prompts import answer_prompt
from unpoison.models.protocols import Encoder, Generator, NLIModel
from unpoison.models.requests import Flow, generate, judge
from unpoison.text.replies import informative
from unpoison.utils.checks import among, at_least, within

if TYPE_CHECKING:
    from unpoison.screener.screener import Event

__all__ = ["Radar", "posterior"]

MIN_PRIOR, MAX_PRIOR = 0.01, 0.99
"""Priors are kept inside these bounds, as in the released code: one of 0 or 1 could never move again."""


class Recollection(NamedTuple):
    """The effect of the memory node at one step."""

    screening: Screening
    trusted: list[int]
    likelihood: Weights
    posterior: Weights
    kept: bool
    reason: str


ATTEMPTS = 5
"""Maximum number of attempts when other workers change the belief meanwhile."""


class Radar(StaticRadar):
    """Trust the source side of the min-cut over atomic answers (RADAR, Sections 4.1 to 4.3, Algorithm 1).

    Without `beliefs` every question is answered independently (the paper's static method). With it, `answer` and
    `aanswer` read the belief of the question, answer, and write the new belief unless another worker wrote one
    meanwhile; then they conclude again from the newer belief, without reading the passages again. `screen` neither
    reads nor writes beliefs.

    Args:
        generator: Reads each passage and gives the final answer; `screen` needs it as well.
        nli: Judges pairs of answers; by default the reader's own judge with a reader, else the built-in lexical one.
        beliefs: The belief store: a store of `unpoison.beliefs`, or a string such as `sqlite:FILE`.
        mode: `paper`, or `reference` for the released code: S and F rescaled to [0.01, 0.99], ranks from 0, strong
            conflict sets agreement to 0, equal answers are judged like any others, its prompts and its fallback. It
            keeps nothing in most unanimous sets. With beliefs, the previous answer also enters centrality, rescaling
            and the priors of its own successor, and every answer is remembered.
        outlier: The mean cosine to the other trusted answers below which one is an outlier (the paper's lambda), in
            [-1, 1].
        contradiction_cut: The mean conflict above which the agreement of a pair counts as 0, in [0, 1]; None for the
            mode's default (`paper`: never, `reference`: 0.8).
        final: The basis of the final answer without a stored belief: the trusted `documents` (Section 4.2) or their
            atomic `answers` (Appendix G), with the strict synthesis prompt of Appendix H. With beliefs, later steps use
            the atomic answers, and `reference` mode uses them at every step.
        lenient_below: When answering from atomic answers, allow the model its own knowledge if fewer than this are
            trusted; 0 never. None for the mode's default (`paper`: 0, `reference`: 3).
        fallback: If nothing is trusted: repeat the `previous` answer if there is one, else abstain; always `abstain`;
            answer from `all` passages; or answer from the model's `memory` alone. In `paper` mode the belief stays
            unchanged. None for the mode's default: `paper` uses `previous`; `reference` answers from all passages if
            none is informative and else from memory; with beliefs, from the informative passages.
        encoder: Compares the trusted answers; the built-in lexical encoder by default.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
        StoreError: `beliefs` is a string, and that store cannot be reached.
    """

    key: str | None = None

    def __init__(
        self,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        beliefs: BeliefStore | str | None = None,
        *,
        mode: Literal["paper", "reference"] = "paper",
        outlier: float = 0.3,
        contradiction_cut: float | None = None,
        final: Literal["documents", "answers"] = "documents",
        lenient_below: int | None = None,
        fallback: Literal["previous", "abstain", "all", "memory"] | None = None,
        encoder: Encoder | str | None = None,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(encoder=encoder or "lexical", generator=generator, nli=answer_judge(nli, generator), **shell)
        self.beliefs = open_beliefs(beliefs) if isinstance(beliefs, str) else beliefs
        self.mode = among("mode", mode, ("paper", "reference"))
        self.outlier = within("outlier", outlier, -1.0, 1.0)
        if contradiction_cut is None:
            contradiction_cut = 1.0 if mode == "paper" else 0.8
        self.contradiction_cut = within("contradiction_cut", contradiction_cut, 0.0, 1.0)
        self.final = among("final", final, ("documents", "answers"))
        below = 0 if mode == "paper" else 3
        self.lenient_below = below if lenient_below is None else at_least("lenient_below", lenient_below, 0)
        self.fallback = "previous" if mode == "paper" else RELEASED
        if fallback is not None:
            self.fallback = among("fallback", fallback, ("previous", "abstain", "all", "memory"))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Read the belief, answer, compare and set; conclude again if another worker was faster.

        `driver.arun` runs the steps of a flow on threads, so the store may block.
        """
        store = self.beliefs
        if store is None:
            return (yield from super().answering(query, passages))
        name = belief_key(query.text) if self.key is None else self.key
        belief = store.get(name)
        reading = yield from self.read(query, passages)
        for _ in range(ATTEMPTS):
            answer = yield from self.conclude(reading, belief)
            change: BeliefUpdate = answer.belief  # type: ignore[assignment]  # every conclusion has one
            if change.belief is None or change.belief is belief:
                return replace(answer, belief=replace(change, saved=belief is not None))
            if store.put(name, change.belief, expected="" if belief is None else belief.version):
                return replace(answer, belief=replace(change, saved=True))
            belief = store.get(name)
        raise StoreError(f"other workers changed the belief {name} at each of {ATTEMPTS} attempts; ask again")

    def answer(self, query: str | Query, passages: Iterable[Any], *, key: str | None = None) -> Answer:
        """Answer from the passages and the stored belief, and update the belief.

        Args:
            query: The user's question.
            passages: Strings, dicts, framework documents or `Passage`, in retrieval order.
            key: The key of the belief; that of the normalised question by default.

        Returns:
            The answer, the screening behind it, every model call, and in `belief` the effect of the memory.

        Raises:
            InputError: An unusable query, passage or key, or unusable content of the store.
            OptionError: No generator was given.
            ModelError: A model failed after all retries.
            DeadlineError: The deadline passed.
            StoreError: The store cannot be reached, or other workers changed the belief at every attempt.
        """
        return self._with_key(key).shell.answer(query, passages)

    async def aanswer(self, query: str | Query, passages: Iterable[Any], *, key: str | None = None) -> Answer:
        """`answer` for asyncio."""
        return await self._with_key(key).shell.aanswer(query, passages)

    def aanswer_stream(self, query: str | Query, passages: Iterable[Any]) -> AsyncIterator[Event]:
        """Stream `aanswer`; with beliefs all at the end, because another worker's belief may change the answer."""
        if self.beliefs is None:
            return super().aanswer_stream(query, passages)
        return _whole(self.aanswer(query, passages))

    def _with_key(self, key: str | None) -> Self:
        if key is None:
            return self
        keyed = copy(self)
        keyed.key = check_key(key)
        return keyed

    def conclude(self, reading: AtomicAnswers, belief: Belief | None) -> Flow[Answer]:
        """One time step of Algorithm 1 after reading the passages (lines 6 to 23), as a flow.

        Args:
            reading: The atomic answers of this step.
            belief: The stored belief; None at the first step.

        Returns:
            The answer; its `belief` holds the new belief, or the given one if it is unchanged.
        """
        if self.mode == "reference":
            return (yield from self._released_step(reading, belief))
        if belief is None:
            answer = yield from self._answer(reading, self.final)
            change, trusted = _first_step(), bool(answer.screening.kept)
        else:
            recalled = yield from self._recall(reading, belief)
            answer = yield from self._synthesize(reading, belief, recalled)
            change, trusted = _later_step(belief, recalled), bool(recalled.trusted)
        if trusted and reading.informative and informative(answer.text):
            weights = yield from self._weights(reading.query.reading, answer.text, reading.informative)
            change = replace(change, belief=Belief(answer.text, *weights, reading.query.reading))
        return replace(answer, belief=change)

    def _released_step(self, reading: AtomicAnswers, belief: Belief | None) -> Flow[Answer]:
        """One time step of the released code (`Dynamic/src/defense.py`, `dynamic_query`).

        Unlike Algorithm 1 it always synthesizes; if nothing is selected, it synthesizes from the passages themselves
        and remembers that answer too. An uninformative answer is remembered, but ignored at the next step.
        """
        question, pool = reading.query.reading, reading.informative
        change, screening, kept = _first_step(), None, list[int]()
        if belief is not None and belief.answer and self._informs(belief.answer):
            recalled = yield from self._recall(reading, belief)
            change, screening, kept = _later_step(belief, recalled), recalled.screening, recalled.trusted
            pool = [*pool, belief.answer]
        else:
            screening = yield from self.select(reading, len(reading.passages) + bool(belief and belief.answer))
            kept = [m for m, i in enumerate(reading.speaking) if screening.verdicts[i].kept]
        if not pool:
            prompt = answer_prompt(question, [passage.reading for passage in reading.passages])
        elif kept:
            prompt = self._synthesis(question, [pool[i] for i in kept])
        else:
            texts = [reading.passages[i].reading for i in reading.speaking]
            remembered = [f"Previous reliable conclusion: {answer}" for answer in pool[len(texts) :]]
            prompt = self._synthesis(question, [*texts, *remembered])
        (reply,) = yield from generate([prompt], "final answer", screening)
        answer = make_answer(reply, screening, {"atomic_answers": reading.answers})
        weights = Weights(1.0, 0.0) if belief is None else belief.weights
        if pool and self._informs(answer.text):
            weights = yield from self._weights(question, answer.text, pool)
        elif pool:
            weights = Weights(0.0, 0.0)
        return replace(answer, belief=replace(change, belief=Belief(answer.text, *weights, question)))

    def _recall(self, reading: AtomicAnswers, belief: Belief) -> Flow[Recollection]:
        """The cut with the memory node as the last node (lines 6 to 13)."""
        m, answers = len(reading.speaking), [*reading.informative, belief.answer]
        agreement, conflict = yield from self._entailment(reading.query.reading, answers)
        likelihood = self._likelihood(agreement[m, :m], conflict[m, :m])
        after = Weights(*map(posterior, belief.weights, likelihood))
        graph = self._graph_of_documents(agreement, conflict, reading)
        source, sink = np.append(graph.source, after.support), np.append(graph.sink, after.conflict)
        trusted = np.flatnonzero(min_cut(source, sink, agreement))
        closeness = yield from self._closeness([answers[i] for i in trusted])
        # Of two dissimilar nodes the stronger stays if one is the memory, which has no rank.
        preferred = int(best_first((source - sink)[trusted])[0]) if m in trusted else 0
        kept = trusted[self._coherent(closeness, preferred)]
        reason = _reason(after, informative=m > 0, in_cut=m in trusted, kept=m in kept)
        screening = self._build_screening(
            reading, graph, trusted[trusted < m], kept[kept < m], {"memory": np.array(after), "ties": agreement[m, :m]}
        )
        return Recollection(screening, kept.tolist(), likelihood, after, m in kept, reason)

    def _graph_of_documents(self, agreement: Matrix, conflict: Matrix, reading: AtomicAnswers) -> AnswerGraph:
        """The documents' capacities: from this step's documents alone (line 7); in the released code from all nodes."""
        m, k = len(reading.speaking), len(reading.passages)
        if self.mode == "paper":
            return self._graph(agreement[:m, :m], conflict[:m, :m], reading.speaking, k)
        whole = self._graph(agreement, conflict, np.append(reading.speaking, k), k + 1)
        return AnswerGraph(agreement[:m, :m], conflict[:m, :m], whole.centrality[:m], whole.source[:m], whole.sink[:m])

    def _likelihood(self, agreement: Matrix, conflict: Matrix) -> Weights:
        """Eq. 13 and 15 over the informative answers; without any, no evidence for or against."""
        if not len(agreement):
            return Weights(0.5, 0.5) if self.mode == "paper" else Weights(1.0, 0.0)
        return Weights(float(agreement.mean()), float(conflict.mean()))

    def _synthesize(self, reading: AtomicAnswers, belief: Belief, recalled: Recollection) -> Flow[Answer]:
        """The answer from the trusted atomic answers and, if trusted, the previous answer (Eq. 17)."""
        answers, details = [*reading.informative, belief.answer], {"atomic_answers": reading.answers}
        previous = Answer(belief.answer, recalled.screening, details=details)
        if belief.cut:
            previous = previous.with_notes("the previous answer was truncated when it was stored")
        if recalled.trusted == [len(reading.informative)]:
            return previous  # there is nothing to synthesize
        if not recalled.trusted and self.fallback == "previous":
            return previous.with_notes("the previous answer is repeated")
        if not recalled.trusted and self.fallback == "abstain":
            return Answer.abstention(recalled.screening, details)
        question = reading.query.reading
        prompt = (
            self._synthesis(question, [answers[i] for i in recalled.trusted])
            if recalled.trusted
            else self._fallback_prompt(reading)
        )
        (reply,) = yield from generate([prompt], "final answer", recalled.screening)
        return make_answer(reply, recalled.screening, details)

    def _weights(self, question: str, answer: str, others: list[str]) -> Flow[Weights]:
        """Eq. 11 and 12: the mean agreement and conflict of an answer with the others, in both directions."""
        distinct, positions = self._statements(question, [answer[:MAX_ANSWER_CHARS], *others])
        own, rest = distinct[0], distinct[1:]
        judged = yield from judge([pair for another in rest for pair in ((own, another), (another, own))])
        means = np.sqrt(judged[0::2] * judged[1::2])
        conflict = np.append(0.0, means[:, 2])
        agreement = np.where(conflict > self.contradiction_cut, 0.0, np.append(1.0, means[:, 0]))
        return Weights(float(agreement[positions[1:]].mean()), float(conflict[positions[1:]].mean()))


def _first_step() -> BeliefUpdate:
    return BeliefUpdate(None, None, None, None, None, "no belief was stored for this question", None)


def _later_step(belief: Belief, recalled: Recollection) -> BeliefUpdate:
    return BeliefUpdate(
        belief.answer, belief.weights, recalled.likelihood, recalled.posterior, recalled.kept, recalled.reason, belief
    )


def posterior(prior: float, likelihood: float) -> float:
    """Bayes under the paper's symmetric likelihood (Eq. 14 and 16, Appendix C).

    Args:
        prior: In [0, 1], clipped to [0.01, 0.99].
        likelihood: In [0, 1].

    Returns:
        In [0, 1]; the prior if the likelihood is 0.5.
    """
    before = min(max(prior, MIN_PRIOR), MAX_PRIOR)
    supported = before * likelihood
    return supported / (supported + (1 - before) * (1 - likelihood))


def _reason(after: Weights, *, informative: bool, in_cut: bool, kept: bool) -> str:
    """Why the previous answer was kept or not."""
    balance = f"support {after.support:.2f} against {after.conflict:.2f}"
    if not informative and kept:
        return f"no passage is informative, so there is no evidence against it: {balance}"
    if in_cut and not kept:
        return f"it is unlike the other trusted answers, with {balance}"
    favoured = after.support >= after.conflict
    if kept:
        return balance if favoured else f"{balance}, but trusted passages agree with it"
    return f"{balance}, but the passages that agree with it are cut off, and it with them" if favoured else balance


async def _whole(answering: Awaitable[Answer]) -> AsyncIterator[Event]:
    """The events of an answer that is not final before its end: all of them then."""
    answer = await answering
    yield answer.screening
    yield answer.text
    yield answer
