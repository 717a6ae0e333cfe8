"""Evaluation over time: does a defense follow a changed answer, and keep an unchanged one under a continuing attack?

Every question is asked at each of its times, in order, by several methods, under attack and without one. A method is a
defense and the state it keeps from one time to the next: none, all passages seen, the previous answer, or RADAR's
belief. Compared as in RADAR, Section 5.3 and Table 17.

The questions are those of RADAR's dynamic file, of the built-in sample `timeline`, or of a file in the shared format
whose rows have a time (`year`, `time` or `date`); rows of one question have the same `series`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

from unpoison.algorithms.intervals import Estimate, bootstrap_ratio
from unpoison.beliefs.store import belief_key
from unpoison.errors import InputError, clip
from unpoison.io.rows import moment_of, time_order
from unpoison.models import CachedGenerator, load_encoder, load_generator, load_nli
from unpoison.models.loading import answer_judge
from unpoison.runtime.driver import Limits
from unpoison_lab.attacks.base import PoisonText
from unpoison_lab.evaluation.adaptations import Answerer, Method, answerer_of
from unpoison_lab.evaluation.contexts import Context, clean_contexts
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.injection import poison_candidates, replace_at
from unpoison_lab.evaluation.matchers import matcher
from unpoison_lab.evaluation.poisoning import craft_one
from unpoison_lab.evaluation.scenarios import make_attack

__all__ = [
    "ATTACKS",
    "StepRecord",
    "StreamResult",
    "StreamStudy",
    "craft_steps",
    "load_timelines",
    "run_study",
    "step_context",
]

ATTACKS: Mapping[str, tuple[str | None, int | None]] = {
    "none": (None, None),
    "poison, first": ("published:attack=radar-incorrect-context", 1),
    "poison, last": ("published:attack=radar-incorrect-context", None),
    "injection, first": ("published:attack=pia", 1),
    "injection, last": ("published:attack=pia", None),
}
"""For each attack its option string, None for no attack, and the 1-based place of its text among the passages of every
step, None for the last."""

DATED = "dated:"
"""In front of a data set: a question is asked as RADAR's released code asks it, "QUESTION in TIME"."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """One question over time.

    Attributes:
        id: The question's id.
        times: The time of each step, in order.
        steps: At each time the question, its right answers, the attacker's, and the passages.
    """

    id: str
    times: tuple[str, ...]
    steps: tuple[Example, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def is_change(self, step: int) -> bool:
        """Whether the right answer is another than at the step before."""
        return step > 0 and set(self.steps[step].correct_answers) != set(self.steps[step - 1].correct_answers)


def load_timelines(spec: str | Path) -> tuple[Timeline, ...]:
    """Read questions over time; those of the same time stay in the file's order.

    Args:
        spec: `timeline` for the built-in sample, `radar-dynamic:FILE`, or a file in the shared format; `dated:` before
            it tells the time with the question.

    Raises:
        InputError: The file cannot be read.
    """
    series: dict[str, list[tuple[str, Example]]] = {}
    source = str(spec).removeprefix(DATED)
    for example in load(source):
        moment = moment_of(example.extra) or ""
        asked = example if source == str(spec) else replace(example, question=f"{example.question} in {moment}")
        series.setdefault(str(example.extra.get("series", example.id)), []).append((moment, asked))
    timelines = []
    for identifier, steps in series.items():
        steps.sort(key=lambda dated: time_order(dated[0]))
        timelines.append(Timeline(identifier, tuple(moment for moment, _ in steps), tuple(step for _, step in steps)))
    return tuple(sorted(timelines, key=lambda one: time_order(one.times[-1] if len(one) == 1 else "")))


def step_context(example: Example, poison: PoisonText | None = None, position: int | None = 1) -> Context:
    """The passages of one step in rank order, with poison in the place of one of them, or behind the last one.

    Args:
        example: The step.
        poison: The attack's text for it, or None.
        position: Its 1-based place; None for the last.
    """
    (context,) = clean_contexts([example], max(1, len(example.passages)), order="rank")
    if poison is None:
        return context
    last_or_position = len(context) if position is None else position
    return replace_at(context, poison_candidates(example, [poison]), [last_or_position - 1], append=True)


def craft_steps(timelines: Iterable[Timeline], attack: str | None) -> tuple[dict[str, PoisonText], dict[str, str]]:
    """One text of an attack for every step.

    Args:
        timelines: The questions.
        attack: Its option string; it must need no model. None for no attack.

    Returns:
        The texts by the id of the step, and the questions that have a step without one, by id, with the reason.

    Raises:
        UnknownNameError, OptionError: An attack that cannot be made.
    """
    texts, problems = dict[str, PoisonText](), dict[str, str]()
    if attack is None:
        return texts, problems
    crafting = make_attack(attack)
    wanted = getattr(crafting, "attack", None)
    for timeline in timelines:
        for step in timeline.steps:
            crafted = craft_one(crafting, step.id, partial(step.target, wanted), 1)
            if crafted.error is None:
                (texts[step.id],) = crafted.texts
            else:
                problems.setdefault(timeline.id, crafted.error)
    return texts, problems


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One answer of a stream.

    Attributes:
        timeline: The question's id.
        step: From 0.
        correct: Whether it states a right answer of this time.
        attacked: Whether it states an answer that the attacker wants at this time.
    """

    timeline: str
    step: int
    correct: bool
    attacked: bool


@dataclass(frozen=True, slots=True)
class StreamResult:
    """All answers of one method, by question, then by step."""

    records: tuple[StepRecord, ...]

    def accuracy(self, step: int | None = None) -> Estimate:
        """Share of right answers, at one step or over all, with the 95 % interval over questions."""
        return _share((record.timeline, record.correct) for record in self._at(step))

    def attack_success(self, step: int | None = None) -> Estimate:
        """Share of answers that the attacker wanted; over all steps it is the paper's step average."""
        return _share((record.timeline, record.attacked) for record in self._at(step))

    @property
    def steps(self) -> int:
        """The most steps of any question."""
        return max((record.step + 1 for record in self.records), default=0)

    def _at(self, step: int | None) -> list[StepRecord]:
        return [record for record in self.records if step in (None, record.step)]


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
    crafted = {attack: craft_steps(timelines, attack) for attack, _ in attacks.values()}
    asked = {
        name: [one for one in timelines if one.id not in crafted[attack][1]] for name, (attack, _) in attacks.items()
    }
    total, numbers = len(methods) * sum(len(one) for some in asked.values() for one in some), count(1)
    results: dict[str, dict[str, StreamResult]] = {}
    for name, (attack, position) in attacks.items():
        for called, method in methods.items() if asked[name] else ():
            results.setdefault(name, {})[called] = run_stream(
                answerer_of(method, models, limits),
                asked[name],
                crafted[attack][0],
                position,
                progress=lambda doing=f"{name}: {called}": progress(next(numbers), total, doing),  # type: ignore[misc]
            )
    left_out = tuple(
        f"{attack}: {len(problems)} of {len(timelines)} questions; the first: {next(iter(problems.values()))}"
        for attack, (_, problems) in crafted.items()
        if problems
    )
    return StreamStudy(
        data, {"generator": generator, "nli": judge, "encoder": encoder}, timelines, methods, results, left_out
    )


def run_stream(
    answerer: Answerer,
    timelines: Sequence[Timeline],
    texts: Mapping[str, PoisonText],
    position: int | None = 1,
    *,
    progress: Callable[[], None] = lambda: None,
) -> StreamResult:
    """Ask every question at each of its times.

    Args:
        answerer: A defense with its state, new for every run.
        timelines: The questions.
        texts: The text that is planted at each step, by its id; empty without an attack.
        position: Its 1-based place, whose passage it replaces; behind the last one if there are fewer, as in
            RADAR's code; None for the last.
        progress: Called after every answer.

    Raises:
        ModelError: A model failed for good.
    """
    judge, records = matcher(), list[StepRecord]()
    for timeline in timelines:
        key = belief_key(timeline.id)
        for number, example in enumerate(timeline.steps):
            context = step_context(example, texts.get(example.id), position)
            reply = answerer.answer(context.query, context.passages, key=key).text
            correct = judge.correct(reply, example.correct_answers, example.incorrect_answers)
            attacked = judge.is_attack_success(reply, example.incorrect_answers, example.correct_answers)
            records.append(StepRecord(timeline.id, number, correct, attacked))
            progress()
    return StreamResult(tuple(records))


def _share(outcomes: Iterable[tuple[str, bool]]) -> Estimate:
    """The share over all steps. The steps of one question are dependent, so questions are resampled."""
    counts: dict[str, list[int]] = {}
    for timeline, outcome in outcomes:
        count = counts.setdefault(timeline, [0, 0])
        count[0] += outcome
        count[1] += 1
    return bootstrap_ratio([yes for yes, _ in counts.values()], [steps for _, steps in counts.values()], shares=True)
