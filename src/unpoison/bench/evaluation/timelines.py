"""Questions whose answers change: one question at several times, each with the passages of that time.

Read from RADAR's dynamic file, from the built-in sample `timeline`, and from files in the shared format whose rows say
when they hold: `series` with `year`, `time` or `date`; `timeline` (SituatedQA, answers by year without passages);
`entity` and `relation` (TimeQA, whose questions name their years); or `date` alone (RealtimeQA's weekly quizzes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from unpoison.bench.attacks.base import PoisonText
from unpoison.bench.evaluation.contexts import Context, clean_contexts
from unpoison.bench.evaluation.datasets import load
from unpoison.bench.evaluation.examples import Example
from unpoison.bench.evaluation.injection import poison_candidates, replace_at
from unpoison.bench.evaluation.matchers import contains_either
from unpoison.bench.evaluation.poisoning import craft_one
from unpoison.bench.evaluation.specs import make_attack
from unpoison.io.stream_rows import moment_of

__all__ = ["DATED", "Timeline", "craft_steps", "load_timelines", "step_context"]

DATED = "dated:"
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")


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
        spec: `timeline` for the built-in sample, `radar-dynamic:FILE`, or a file in the shared format.

    With `dated:` in front, a question is asked as RADAR's released code asks it, "QUESTION in TIME".

    Raises:
        InputError: The file cannot be read.
    """
    series: dict[str, list[tuple[str, Example]]] = {}
    source = str(spec).removeprefix(DATED)
    for example in load(source):
        for identifier, moment, step in _steps(example):
            told = step if source == str(spec) else replace(step, question=f"{step.question} in {moment}")
            series.setdefault(identifier, []).append((moment, told))
    timelines = []
    for identifier, steps in series.items():
        steps.sort(key=lambda dated: dated[0])
        timelines.append(Timeline(identifier, tuple(moment for moment, _ in steps), tuple(step for _, step in steps)))
    return tuple(sorted(timelines, key=lambda timeline: timeline.times[-1] if len(timeline) == 1 else ""))


def _steps(example: Example) -> Iterable[tuple[str, str, Example]]:
    """(series, time, example) of one row."""
    extra = example.extra
    if "timeline" in extra:
        return _yearly_steps(example, extra["timeline"])
    if "entity" in extra and "relation" in extra:
        years = _YEAR.findall(example.question)
        return [(f"{extra['entity']}/{extra['relation']}", min(years, default=""), example)]
    return [(str(extra.get("series", example.id)), moment_of(extra) or "", example)]


def _yearly_steps(example: Example, years: Any) -> Iterable[tuple[str, str, Example]]:
    """One step a year; answers of other years that cannot be confused with this year's are stale, and wrong."""
    by_year = [(str(step["year"]), tuple(dict.fromkeys(step["answers"]))) for step in years]
    for year, answers in by_year:
        all_answers = dict.fromkeys(answer for _, answers_then in by_year for answer in answers_then)
        stale = tuple(answer for answer in all_answers if not any(contains_either(answer, right) for right in answers))
        step = replace(example, id=f"{example.id}@{year}", correct_answers=answers, incorrect_answers=stale)
        yield example.id, year, step


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


def craft_steps(timelines: Iterable[Timeline], attack: str) -> tuple[dict[str, PoisonText], dict[str, str]]:
    """One text of an attack for every step.

    Args:
        timelines: The questions.
        attack: Its option string; it must need no model.

    Returns:
        The texts by the id of the step, and the questions that have a step without one, by id, with the reason.

    Raises:
        UnknownNameError, OptionError: An attack that cannot be made.
    """
    crafting = make_attack(attack)
    wanted = getattr(crafting, "attack", None)
    texts, problems = dict[str, PoisonText](), dict[str, str]()
    for timeline in timelines:
        for step in timeline.steps:
            crafted = craft_one(crafting, step.id, partial(step.target, wanted), 1)
            if crafted.error is None:
                (texts[step.id],) = crafted.texts
            else:
                problems.setdefault(timeline.id, crafted.error)
    return texts, problems
