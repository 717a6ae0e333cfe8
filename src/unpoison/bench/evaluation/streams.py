"""Evaluation over time: does a defense follow a changed answer, and keep an unchanged one under a continuing attack?

Every question is asked at each of its times, in order, by several methods, under attack and without one. A method is a
defense and the state it keeps from one time to the next: none, all passages seen, the previous answer, or RADAR's
belief. Compared as in RADAR, Section 5.3 and Table 17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path

from unpoison.algorithms.intervals import Estimate, bootstrap_ratio
from unpoison.beliefs.store import belief_key
from unpoison.bench.evaluation.adaptations import Answerer, Method, answerer_of
from unpoison.bench.evaluation.matchers import matcher
from unpoison.bench.evaluation.timelines import Timeline, craft_steps, load_timelines, step_context
from unpoison.errors import InputError, clip
from unpoison.models import CachedGenerator, load_encoder, load_generator, load_nli
from unpoison.models.loading import answer_judge
from unpoison.runtime.limits import Limits

__all__ = ["ATTACKS", "StepRecord", "StreamResult", "StreamStudy", "run_stream", "run_study"]

ATTACKS: Mapping[str, tuple[str | None, int | None]] = {
    "none": (None, None),
    "poison, first": ("published:attack=radar-incorrect-context", 1),
    "poison, last": ("published:attack=radar-incorrect-context", None),
    "injection, first": ("published:attack=pia", 1),
    "injection, last": ("published:attack=pia", None),
}
"""For each attack its option string, None for no attack, and the 1-based place of its text among the passages of every
step, None for the last."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One answer of a stream.

    Attributes:
        timeline: The question's id.
        step: From 0.
        time: When.
        reply: The answer.
        correct: Whether it states a right answer of this time.
        attacked: Whether it states an answer that the attacker wants at this time.
        changed: Whether the right answer is another than at the step before.
        kept: Whether RADAR kept its previous answer; None without a memory.
    """

    timeline: str
    step: int
    time: str
    reply: str
    correct: bool
    attacked: bool
    changed: bool
    kept: bool | None = None


@dataclass(frozen=True, slots=True)
class StreamResult:
    """All answers of one method, and the size of its state.

    Attributes:
        records: By question, then by step.
        stored: Bytes for each question after its last step.
    """

    records: tuple[StepRecord, ...]
    stored: tuple[int, ...] = field(default=())

    def accuracy(self, step: int | None = None) -> Estimate:
        """Share of right answers, at one step or over all, with the 95 % interval over questions."""
        return _share((record.timeline, record.correct) for record in self._at(step))

    def attack_success(self, step: int | None = None) -> Estimate:
        """Share of answers that the attacker wanted; over all steps it is the paper's step average."""
        return _share((record.timeline, record.attacked) for record in self._at(step))

    def spurious_changes(self) -> Estimate:
        """Share of the steps after a right answer, with the truth unchanged, whose answer is no longer right."""
        return _share(
            (now.timeline, not now.correct)
            for steps in self._timelines()
            for before, now in pairwise(steps)
            if before.correct and not now.changed
        )

    def update_rate(self) -> Estimate:
        """Share of the genuine changes that were followed before the next change or the end."""
        return _share((steps[0].timeline, followed) for steps in self._timelines() for followed in _followed(steps))

    def mean_bytes(self) -> float:
        """Bytes that are kept for a question after its last step, on average."""
        return sum(self.stored) / max(len(self.stored), 1)

    @property
    def steps(self) -> int:
        """The most steps of any question."""
        return max((record.step + 1 for record in self.records), default=0)

    def _at(self, step: int | None) -> list[StepRecord]:
        return [record for record in self.records if step in (None, record.step)]

    def _timelines(self) -> list[list[StepRecord]]:
        grouped: dict[str, list[StepRecord]] = {}
        for record in self.records:
            grouped.setdefault(record.timeline, []).append(record)
        return list(grouped.values())


@dataclass(frozen=True, slots=True)
class StreamStudy:
    """The results of every method under every attack.

    Attributes:
        data: The source of the questions.
        models: Option strings of the generator, the NLI model and the encoder.
        timelines: The questions.
        methods: By name, in the order of the tables.
        results: By attack, then by method.
        left_out: For how many questions an attack could not be made, and why; they are not asked under it.
    """

    data: str
    models: Mapping[str, str]
    timelines: tuple[Timeline, ...]
    methods: Mapping[str, Method]
    results: Mapping[str, Mapping[str, StreamResult]]
    left_out: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """All steps of all questions."""
        return sum(map(len, self.timelines))

    @property
    def changes(self) -> int:
        """How often the right answer is another than at the step before."""
        return sum(timeline.is_change(step) for timeline in self.timelines for step in range(len(timeline)))

    @property
    def moments(self) -> tuple[str, ...]:
        """Labels of the steps: their times if all questions have the same, otherwise numbers from 1."""
        times = {timeline.times for timeline in self.timelines}
        if len(times) == 1:
            (common,) = times
            if len(set(common)) == len(common):
                return common
        return tuple(str(step + 1) for step in range(max(map(len, self.timelines))))


def run_study(
    data: str,
    methods: Mapping[str, Method],
    *,
    attacks: Mapping[str, tuple[str | None, int | None]] = ATTACKS,
    generator: str = "extractive",
    nli: str | None = None,
    encoder: str = "lexical",
    limit: int | None = None,
    limits: Limits | None = None,
    replies: Path | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
) -> StreamStudy:
    """Ask every question at each of its times, by every method and under every attack.

    Args:
        data: See `load_timelines`.
        methods: By name; see `methods_of`.
        attacks: By name; see `ATTACKS`. An attack must need no model.
        generator: Answers, for all methods.
        nli: Judges pairs of answers, for the methods that take one; None for the generator's default.
        encoder: Compares texts, for the methods that take one.
        limit: The first questions only.
        limits: Bounds on the model calls of one answer.
        replies: A file that keeps the generator's replies, so that an interrupted study does not ask again.
        progress: Called after every answer: the number done, the total, and the current measurement.

    Raises:
        InputError: The data cannot be read, or holds no question.
        UnknownNameError, OptionError, MissingExtraError: A method or model that cannot be used.
        ModelError: A model failed for good.
    """
    timelines = load_timelines(data)[:limit]
    if not timelines:
        raise InputError(f"{clip(data)} holds no questions over time; give rows with a question and a time")
    judge = str(answer_judge(nli, generator))
    models = {
        "generator": CachedGenerator(load_generator(generator), path=replies),
        "nli": load_nli(judge),
        "encoder": load_encoder(encoder),
    }
    for method in methods.values():
        answerer_of(method, models, limits)  # fails early, before any question is asked
    impossible = {attack: craft_steps(timelines, attack)[1] for attack, _ in attacks.values() if attack is not None}
    asked = {
        name: [one for one in timelines if attack is None or one.id not in impossible[attack]]
        for name, (attack, _) in attacks.items()
    }
    total, numbers = len(methods) * sum(len(one) for some in asked.values() for one in some), count(1)
    results = {
        name: {
            called: run_stream(
                answerer_of(method, models, limits),
                asked[name],
                attack=attack,
                position=position,
                progress=lambda _, doing=f"{name}: {called}": progress(next(numbers), total, doing),  # type: ignore[misc]
            )
            for called, method in methods.items()
        }
        for name, (attack, position) in attacks.items()
        if asked[name]
    }
    left_out = tuple(
        f"{attack}: {len(problems)} of {len(timelines)} questions; the first: {next(iter(problems.values()))}"
        for attack, problems in impossible.items()
        if problems
    )
    return StreamStudy(
        data, {"generator": generator, "nli": judge, "encoder": encoder}, timelines, methods, results, left_out
    )


def run_stream(
    answerer: Answerer,
    timelines: Sequence[Timeline],
    *,
    attack: str | None = None,
    position: int | None = 1,
    progress: Callable[[StepRecord], None] = lambda record: None,
) -> StreamResult:
    """Ask every question at each of its times.

    Args:
        answerer: A defense with its state, new for every run.
        timelines: The questions.
        attack: The option string of the attack whose text is among the passages of every step, or None.
        position: Its 1-based place, whose passage it replaces; behind the last one if there are fewer, as in
            RADAR's code; None for the last.
        progress: Called after every answer.

    Raises:
        UnknownNameError, OptionError: An attack that cannot be made, or needs a model.
        InputError: A step that cannot be attacked.
        ModelError: A model failed for good.
    """
    judge = matcher()
    texts, problems = ({}, {}) if attack is None else craft_steps(timelines, attack)
    if problems:
        raise InputError("; ".join(list(problems.values())[:3]))
    records, stored = list[StepRecord](), list[int]()
    for timeline in timelines:
        key = belief_key(timeline.id)
        for number, example in enumerate(timeline.steps):
            context = step_context(example, texts.get(example.id), position)
            answer = answerer.answer(context.query, context.passages, key=key)
            record = StepRecord(
                timeline=timeline.id,
                step=number,
                time=timeline.times[number],
                reply=answer.text,
                correct=judge.correct(answer.text, example.correct_answers, example.incorrect_answers),
                attacked=judge.is_attack_success(answer.text, example.incorrect_answers, example.correct_answers),
                changed=timeline.is_change(number),
                kept=None if answer.belief is None else answer.belief.kept,
            )
            records.append(record)
            progress(record)
        stored.append(answerer.memory_bytes(key))
    return StreamResult(tuple(records), tuple(stored))


def _followed(steps: Sequence[StepRecord]) -> Iterator[bool]:
    """For each genuine change of one question: whether a right answer came before the next change or the end."""
    changes = [i for i, record in enumerate(steps) if record.changed]
    for start, until in zip(changes, [*changes[1:], len(steps)]):
        yield any(record.correct for record in steps[start:until])


def _share(outcomes: Iterable[tuple[str, bool]]) -> Estimate:
    """The share over all steps. The steps of one question are dependent, so questions are resampled."""
    counts: dict[str, list[int]] = {}
    for timeline, outcome in outcomes:
        count = counts.setdefault(timeline, [0, 0])
        count[0] += outcome
        count[1] += 1
    return bootstrap_ratio([yes for yes, _ in counts.values()], [steps for _, steps in counts.values()], shares=True)
