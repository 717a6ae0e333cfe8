"""Static against dynamic: several methods over the same questions and times, under attack and without one.

A method is a defense and what it carries from one time to the next: nothing, all passages seen, the previous answer,
or RADAR's belief. Compared as in RADAR, Section 5.3 and Table 17.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from unpoison import registry
from unpoison.beliefs import MemoryBeliefs
from unpoison.defenses.base import Defense
from unpoison.driver import Limits
from unpoison.errors import InputError, OptionError, shown
from unpoison.evaluation.adaptations import Answerer, CumulativeSnapshot, EachStep, LightweightHistory, Remembering
from unpoison.evaluation.crafting import takes
from unpoison.evaluation.specs import check_spec
from unpoison.evaluation.streams import StepRecord, StreamResult, run_stream
from unpoison.evaluation.timelines import Timeline, load_timelines
from unpoison.models import CachedGenerator, load_encoder, load_generator, load_nli
from unpoison.models.loading import answer_judge

__all__ = ["ATTACKS", "CARRIED", "Method", "StreamStudy", "methods_of", "run_study"]

ATTACKS: Mapping[str, tuple[str | None, int | None]] = {
    "none": (None, None),
    "poison, first": ("radar-incorrect-context", 1),
    "poison, last": ("radar-incorrect-context", None),
    "injection, first": ("pia", 1),
    "injection, last": ("pia", None),
}
"""Whose text stands among the passages at every step, and in the place of which one; None is the last."""

Carried = Literal["nothing", "passages", "answer", "beliefs"]

CARRIED: Mapping[Carried, str] = {
    "nothing": "static",
    "passages": "cumulative",
    "answer": "history",
    "beliefs": "dynamic",
}
"""What a method carries, and what it is called for it."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to answer again and again.

    Attributes:
        defense: Its option string.
        carries: What it takes along from one time to the next.
    """

    defense: str
    carries: Carried


@dataclass(frozen=True, slots=True)
class StreamStudy:
    """What every method did under every attack.

    Attributes:
        data: Where the questions are from.
        models: Option strings of the generator, the NLI model and the encoder.
        timelines: The questions.
        methods: By name, in the order of the tables.
        results: By attack, then by method.
        left_out: Attacks that could not be made, and why.
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
        return sum(timeline.changed(step) for timeline in self.timelines for step in range(len(timeline)))

    @property
    def moments(self) -> tuple[str, ...]:
        """What each step is called: its time, where all questions have the same times, or else its number from 1."""
        times = {timeline.times for timeline in self.timelines}
        if len(times) == 1:
            (common,) = times
            if len(set(common)) == len(common):
                return common
        return tuple(str(step + 1) for step in range(max(map(len, self.timelines))))


def methods_of(defenses: Iterable[str]) -> dict[str, Method]:
    """Every defense with everything that it can carry, by name.

    Args:
        defenses: Option strings, such as `radar:mode=reference`.

    Raises:
        UnknownNameError: No such defense or option.
        OptionError: A belief store: every run has a fresh one of its own.
    """
    found = {}
    for spec in defenses:
        check_spec("defenses", spec)
        if "beliefs" in registry.parse(spec)[1]:
            raise OptionError(f"{shown(spec)}: every method starts with an empty memory of its own; leave beliefs out")
        for carries, called in CARRIED.items():
            if carries != "beliefs" or takes("defenses", spec, "beliefs"):
                found[f"{spec}, {called}"] = Method(spec, carries)
    return found


def run_study(
    data: str,
    methods: Mapping[str, Method],
    *,
    attacks: Mapping[str, tuple[str | None, int | None]] = ATTACKS,
    generator: str = "extractive",
    nli: str | None = None,
    encoder: str = "lexical",
    limit: int | None = None,
    with_date: bool = False,
    limits: Limits | None = None,
    replies: Path | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, doing: None,
) -> StreamStudy:
    """Ask every question at each of its times, by every method and under every attack.

    Args:
        data: See `load_timelines`.
        methods: By name; see `methods_of`.
        attacks: By name; see `ATTACKS`.
        generator: Answers, for all methods.
        nli: Judges pairs of answers, for the methods that take one; None for what suits the generator.
        encoder: Compares texts, for the methods that take one.
        limit: The first questions only.
        with_date: Tell the time of a question, as RADAR's released code does.
        limits: Bounds on the model calls of one answer.
        replies: A file that keeps the generator's replies, so that an interrupted study does not ask again.
        progress: Told of every answer: how many are done, of how many, and what is being measured.

    Raises:
        InputError: The data cannot be read, or holds no question.
        UnknownNameError, OptionError, MissingExtraError: A method or model that cannot be used.
        ModelError: A model failed for good.
    """
    timelines = load_timelines(data)[:limit]
    if not timelines:
        raise InputError(f"{shown(data)} holds no questions over time; give rows with a question and a time")
    judge = str(answer_judge(nli, generator))
    models = {
        "generator": CachedGenerator(load_generator(generator), path=replies),
        "nli": load_nli(judge),
        "encoder": load_encoder(encoder),
    }
    for method in methods.values():
        _answerer(method, models, limits)  # what cannot be made is told before anything is asked
    short = {attack: _lacking(timelines, attack) for attack, _ in attacks.values() if attack is not None}
    made = {name: planted for name, planted in attacks.items() if not short.get(planted[0] or "")}
    told = _counting(progress, len(made) * len(methods) * sum(map(len, timelines)))
    results = {
        attack: {
            name: run_stream(
                _answerer(method, models, limits),
                timelines,
                attack=planted,
                position=position,
                with_date=with_date,
                progress=told(f"{attack}: {name}"),
            )
            for name, method in methods.items()
        }
        for attack, (planted, position) in made.items()
    }
    left_out = tuple(
        f"{attack}: {count} of {sum(map(len, timelines))} steps bring no text of it"
        for attack, count in short.items()
        if count
    )
    return StreamStudy(
        data, {"generator": generator, "nli": judge, "encoder": encoder}, timelines, methods, results, left_out
    )


def _answerer(method: Method, models: Mapping[str, Any], limits: Limits | None) -> Answerer:
    """The method with an empty memory."""
    beliefs = MemoryBeliefs() if method.carries == "beliefs" else None
    defense: Defense = registry.create("defenses", method.defense, **models, beliefs=beliefs, limits=limits)
    for model in defense.needs:
        if getattr(defense.models, model) is None:
            raise OptionError(f"the defense {defense.name} needs a {model.replace('_', ' ')} and was given none")
    match method.carries:
        case "nothing":
            return EachStep(defense)
        case "passages":
            return CumulativeSnapshot(defense)
        case "answer":
            return LightweightHistory(defense)
        case "beliefs":
            return Remembering(defense)


def _lacking(timelines: Iterable[Timeline], attack: str) -> int:
    """Steps without a text of that attack."""
    return sum(not step.poisons(attack) for timeline in timelines for step in timeline.steps)


def _counting(progress: Callable[[int, int, str], None], total: int) -> Callable[[str], Callable[[StepRecord], None]]:
    """Answers counted over all runs."""
    numbers: Iterator[int] = iter(range(1, total + 1))
    return lambda doing: lambda record: progress(next(numbers), total, doing)
