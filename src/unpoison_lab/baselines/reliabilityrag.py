"""ReliabilityRAG: the largest set of passages that do not contradict each other (Shen et al., 2025).

Each passage is read alone. An NLI model judges which answers contradict each other; of the maximum independent sets of
that graph, the one with the best-ranked passages gives the answer. For many passages, small samples weighted by rank
are read instead of single passages, and the vertices of the graph are samples.

Rank decides every tie: an attacker in first place wins against an equal number of honest passages.

The NLI model sees "Question: ... Answer: ...", as in RADAR; the released code writes an equivalent sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, add_sentences, quotable
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense, ShellOptions, make_answer
from unpoison.defenses.voices import MAX_ANSWER_CHARS, contradictions, read_alone
from unpoison.models.loading import answer_judge
from unpoison.models.prompts import answer_alone_prompt, answer_prompt, atomic_answer_reference_prompt
from unpoison.models.protocols import Generator, NLIModel
from unpoison.models.requests import Flow, generate
from unpoison.text.replies import informative
from unpoison.utils.checks import among, at_least, within

__all__ = ["ReliabilityRag", "SampledReliabilityRag", "maximum_independent_set", "rank_weights"]

add_sentences({
    "reliabilityrag.consistent": "answers {answer!r}: in the largest set of {size} without contradiction",
    "reliabilityrag.contradicts": "answers {answer!r}: contradicts passage {passages} of the largest set without "
    "contradiction",
    "reliabilityrag.sampled": "in {consistent} of the consistent samples, of {samples} that contain it",
    "reliabilityrag.unsampled": "in no sample",
})  # fmt: skip

Fallback = Literal["all", "memory", "abstain"]

INEXACT = "the search for the largest consistent set was cut short: a large one was taken"


class _Consistent(NamedTuple):
    """The answers read, and the passages to answer from, in display order."""

    answers: list[str]
    shown: list[int]
    screening: Screening


class ReliabilityRag(Defense):
    """Answer from a maximum independent set of the contradiction graph (ReliabilityRAG).

    Args:
        generator: Reads each passage, and answers from the chosen ones; `screen` needs it as well.
        nli: Judges pairs of answers, in one direction; the built-in lexical judge by default.
        contradiction: The minimum P(contradiction) at which two answers contradict each other, in [0, 1].
        fallback: If no answer is informative: answer from `all` passages as the paper does, undefended; from
            `memory`; or `abstain`.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "reliabilityrag"
    needs = ("generator",)
    summary = "reads each passage alone and keeps the largest set whose answers do not contradict each other"
    calls = "k + 1"
    source = "Shen et al., 2025"

    def __init__(
        self,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        *,
        contradiction: float = 0.5,
        fallback: Fallback = "all",
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, nli=answer_judge(nli, generator), **shell)
        self.contradiction = within("contradiction", contradiction, 0.0, 1.0)
        self.fallback: Fallback = among("fallback", fallback, ("all", "memory", "abstain"))

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Isolated answers, the contradiction graph, its maximum independent set."""
        return (yield from self._reading(query, passages)).screening

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The final answer from the chosen passages."""
        reading = yield from self._reading(query, passages)
        details = {"atomic_answers": reading.answers}
        texts = [passages[i].reading for i in reading.shown]
        if passages and not texts and self.fallback == "abstain":
            return Answer.abstention(reading.screening, details)
        prompt = answer_prompt(query.reading, texts) if texts else answer_alone_prompt(query.reading)
        (reply,) = yield from generate([prompt], "final answer", reading.screening)
        return make_answer(reply, reading.screening, details)

    def _reading(self, query: Query, passages: tuple[Passage, ...]) -> Flow[_Consistent]:
        answers = yield from read_alone(query, passages, atomic_answer_reference_prompt)
        chosen, conflict, notes = yield from self._consistent(query.reading, answers)
        kept = chosen
        if not chosen:
            kept = list(range(len(passages))) if self.fallback == "all" else []
            notes += (_fallback_note(self.fallback),) if passages else ()
        reasons = [self._reason(i, answers, chosen, conflict) for i in range(len(passages))]
        evidence = Evidence({"contradiction": conflict}, (*notes, *self.source_notes), graph="contradiction")
        scores = [-sum(conflict[i]) for i in range(len(passages))]
        screening = Screening.decided(
            self.name, query, passages, kept=kept, scores=scores, reasons=reasons, evidence=evidence
        )
        return _Consistent(answers, kept, screening)

    def _consistent(
        self, question: str, answers: Sequence[str]
    ) -> Flow[tuple[list[int], NDArray[np.float64], tuple[str, ...]]]:
        """The informative answers of the maximum independent set, P(contradiction) of all, (n, n), and notes."""
        informative_ones = [i for i, answer in enumerate(answers) if informative(answer)]
        small = yield from contradictions(question, [answers[i] for i in informative_ones])
        conflict = np.zeros((len(answers), len(answers)))
        conflict[np.ix_(informative_ones, informative_ones)] = small
        largest = maximum_independent_set(small >= self.contradiction)
        chosen = [informative_ones[i] for i in largest.members]
        return chosen, conflict, () if largest.exact else (INEXACT,)

    def _reason(self, i: int, answers: Sequence[str], chosen: Sequence[int], conflict: NDArray[np.float64]) -> Reason:
        if not informative(answers[i]):
            return Reason.of("answer.uninformative")
        answer = quotable(answers[i])
        if i in chosen:
            return Reason.of("reliabilityrag.consistent", answer=answer, size=len(chosen))
        rivals = [j for j in chosen if conflict[i, j] >= self.contradiction]
        return Reason.of("reliabilityrag.contradicts", answer=answer, passages=rivals[:5])


class SampledReliabilityRag(ReliabilityRag):
    """ReliabilityRAG for many passages: weighted sample and aggregate.

    Args:
        generator: Reads each sample, and answers from the chosen passages; `screen` needs it as well.
        nli: Judges pairs of answers, in one direction; the built-in lexical judge by default.
        samples: The number of samples to read (the paper's T), at least 1.
        size: Passages in a sample, drawn with replacement (the paper's m), at least 1.
        gamma: The passage of rank i is drawn with weight gamma^i, in [0, 1]; 0 for linearly falling weights.
        seed: Of the random draw.
        contradiction: The minimum P(contradiction) at which two answers contradict each other, in [0, 1].
        fallback: If no answer is informative: answer from `memory` as the released code does, from `all` passages,
            undefended, or `abstain`.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "reliabilityrag-sampled"
    summary = "reads small samples of the passages and keeps those of the largest set without contradiction"
    calls = "samples + 1, independent of k"

    def __init__(
        self,
        generator: Generator | str | None = None,
        nli: NLIModel | str | None = None,
        *,
        samples: int = 20,
        size: int = 2,
        gamma: float = 0.9,
        seed: int = 0,
        contradiction: float = 0.5,
        fallback: Fallback = "memory",
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator, nli, contradiction=contradiction, fallback=fallback, **shell)
        self.samples = at_least("samples", samples, 1, 10_000)
        self.size = at_least("size", size, 1)
        self.gamma = within("gamma", gamma, 0.0, 1.0)
        self.seed = at_least("seed", seed, 0)

    def _reading(self, query: Query, passages: tuple[Passage, ...]) -> Flow[_Consistent]:
        draw = np.random.default_rng(self.seed)
        weights = rank_weights(len(passages), self.gamma)
        count = self.samples if passages else 0
        drawn = [sorted(draw.choice(len(passages), self.size, p=weights).tolist()) for _ in range(count)]
        order = sorted(range(count), key=lambda s: (drawn[s], s))  # ties go to the samples of better rank
        drawn = [drawn[s] for s in order]
        # The best passage comes last in a sample.
        prompts = [answer_prompt(query.reading, [passages[i].reading for i in reversed(sample)]) for sample in drawn]
        replies = yield from generate(prompts, "sample answer")
        answers = [reply.text[:MAX_ANSWER_CHARS] for reply in replies]
        chosen, conflict, notes = yield from self._consistent(query.reading, answers)

        shown = [i for s in sorted(chosen, key=order.__getitem__) for i in drawn[s]]
        if not shown:
            shown = list(range(len(passages))) if self.fallback == "all" else []
            notes += (_fallback_note(self.fallback),) if passages else ()
        arrays = {"samples": np.array(drawn, dtype=int).reshape(count, self.size), "contradiction": conflict}
        screening = Screening.decided(
            self.name,
            query,
            passages,
            kept=list(dict.fromkeys(shown)),
            scores=[float(shown.count(i)) for i in range(len(passages))],
            reasons=[_sample_reason(i, drawn, chosen) for i in range(len(passages))],
            evidence=Evidence(arrays, (*notes, *self.source_notes)),
        )
        return _Consistent(answers, shown, screening)


def rank_weights(k: int, gamma: float) -> NDArray[np.float64]:
    """The probability of drawing each rank: gamma^i, or 1 - i/k for gamma = 0, scaled to sum 1; shape (k,)."""
    ranks = np.arange(k)
    weights = gamma**ranks if gamma else 1 - ranks / max(k, 1)
    return np.asarray(weights / weights.sum() if k else np.zeros(0))


def _sample_reason(i: int, drawn: Sequence[Sequence[int]], chosen: Sequence[int]) -> Reason:
    among_all = sum(i in sample for sample in drawn)
    if not among_all:
        return Reason.of("reliabilityrag.unsampled")
    consistent = sum(i in drawn[s] for s in chosen)
    return Reason.of("reliabilityrag.sampled", consistent=consistent, samples=among_all)


def _fallback_note(fallback: str) -> str:
    what = {"all": "all passages are kept, undefended", "memory": "answered from memory", "abstain": "abstained"}
    return f"no informative answer: {what[fallback]}"


class IndependentSet(NamedTuple):
    """The result of the search.

    Attributes:
        members: Vertices without an edge between them, ascending, shape (m,).
        exact: Whether it is proved that no larger set exists, nor an equally large one that precedes it.
    """

    members: NDArray[np.intp]
    exact: bool


def maximum_independent_set(edges: ArrayLike, *, work: int = 3_000_000) -> IndependentSet:
    """The largest independent set; among equally large ones the lexicographically smallest sorted tuple of vertices.

    Branch and bound that visits sets in lexicographic order, so that only a strictly larger set replaces the best one.
    The bound adds at most one vertex of each clique of a greedy clique cover. Vertices with the same neighbours are all
    in or all out, and are searched as one.

    Args:
        edges: Shape (k, k), true if two vertices exclude each other; symmetric, the diagonal is ignored.
        work: Maximum number of vertices that the bounds visit, about 2 million a second. After that, the result is the
            largest set found so far, never smaller than the greedy one by position.

    Returns:
        The set, and whether it is proved to be the largest.

    Raises:
        ValueError: The shape is wrong or the matrix is not symmetric.

    Complexity: exponential in the worst case; milliseconds for k = 20, and for larger k if the graph is dense or
    consists of groups. O(k^2) memory.
    """
    matrix = np.asarray(edges, dtype=bool)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (matrix != matrix.T).any():
        raise ValueError(f"edges must be a symmetric matrix of shape (k, k), got shape {matrix.shape}")
    groups = _twins(matrix & ~np.eye(len(matrix), dtype=bool))
    first = [members[0] for members in groups]
    sizes = [len(members) for members in groups]
    neighbours = [_mask(np.flatnonzero(row)) for row in matrix[np.ix_(first, first)] & ~np.eye(len(first), dtype=bool)]

    best, largest, spent = 0, -1, 0
    waiting = [(0, 0, (1 << len(groups)) - 1)]  # chosen vertices, their number, available vertices
    while waiting and (spent <= work or largest < 0):
        chosen, size, available = waiting.pop()
        spent += available.bit_count() + 1
        if size + _bound(available, neighbours, sizes) <= largest:
            continue
        if not available:
            best, largest = chosen, size
            continue
        lowest = available & -available
        vertex = lowest.bit_length() - 1
        rest = available ^ lowest
        if neighbours[vertex] & rest:
            waiting.append((chosen, size, rest))
        waiting.append((chosen | lowest, size + sizes[vertex], rest & ~neighbours[vertex]))
    vertices = [vertex for bit, members in enumerate(groups) if best >> bit & 1 for vertex in members]
    return IndependentSet(np.array(sorted(vertices), dtype=np.intp), exact=not waiting)


def _twins(matrix: NDArray[np.bool_]) -> list[list[int]]:
    """Groups of vertices with the same neighbours (hence without an edge between them), by their first vertex."""
    groups: dict[bytes, list[int]] = {}
    for vertex, row in enumerate(matrix):
        groups.setdefault(row.tobytes(), []).append(vertex)
    return list(groups.values())


def _mask(vertices: NDArray[np.intp]) -> int:
    return sum(1 << int(vertex) for vertex in vertices)


def _bound(available: int, neighbours: Sequence[int], sizes: Sequence[int]) -> int:
    """An upper bound of vertices that can be added: the largest of each clique of a greedy clique cover."""
    total = 0
    while available:
        lowest = available & -available
        vertex = lowest.bit_length() - 1
        available ^= lowest
        most, clique = sizes[vertex], neighbours[vertex] & available
        while clique:
            lowest = clique & -clique
            vertex = lowest.bit_length() - 1
            available ^= lowest
            clique &= neighbours[vertex]
            most = max(most, sizes[vertex])
        total += most
    return total
