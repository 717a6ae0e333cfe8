"""The results of a test: what happened to each question, and every measure with its interval, as JSON and as CSV.

`data/redteam.schema.json` describes the document.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from math import isnan
from typing import Any

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate, paired_shares
from unpoison.bench.evaluation.gates import MeasuredCell
from unpoison.bench.evaluation.matchers import matcher
from unpoison.bench.evaluation.measures import Better, Measure, parts_of
from unpoison.bench.evaluation.specs import attack_name
from unpoison.bench.report.exports import csv_cells, csv_headings, csv_text, spreadsheet_value
from unpoison.core.verdicts import is_disagreement

__all__ = ["FORMAT", "MEASURES", "NO_ATTACK", "Cell", "Results", "Trial", "figures", "outcomes", "schema"]

FORMAT = "unpoison-redteam/2"
"""What the document says of itself; it changes when a field changes its meaning."""


NO_ATTACK = "none"


@dataclass(frozen=True, slots=True)
class Trial:
    """One question under one attack; `attack` is "none" where it was asked before anything was planted.

    Attributes:
        example: The question's id.
        question: As it was asked.
        attack: The attack's option string.
        poisons: Documents that were to be planted.
        correct: The right answers.
        wanted: The answers that the attacker wants.
        planted: Documents that were planted.
        read: How many of them were among the passages that the system read; None where it does not tell.
        answer: What it said; with poison planted, where there is any.
        after: What it said when all poison of the cell was removed.
        served_seconds: From planting to asking the first question that was answered from poison; None where none was.
        gone_seconds: From the request to remove to asking the first question that was not.
        told: Whether the system tells which passages it read.
        passages: Hashes of the passages that it read without an attack.
        seconds: How long the answer took.
        stage: Where it failed: attack, ask, plant, remove, gone, after; "" otherwise.
        error: What went wrong, None otherwise.
    """

    example: str
    question: str
    attack: str = NO_ATTACK
    poisons: int = 0
    correct: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    planted: int = 0
    read: int | None = None
    answer: str | None = None
    after: str | None = None
    served_seconds: float | None = None
    gone_seconds: float | None = None
    told: bool = False
    passages: tuple[str, ...] = ()
    seconds: float | None = None
    stage: str = ""
    error: str | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What names it within a run."""
        return self.example, self.attack, self.poisons

    @property
    def clean(self) -> bool:
        return self.attack == NO_ATTACK

    @property
    def failed(self) -> bool:
        return self.error is not None

    def is_correct(self, answer: str | None) -> bool | None:
        """Whether an answer is right; None where there is no answer, or nothing to compare it with."""
        if answer is None or not self.correct:
            return None
        return not is_disagreement(answer) and matcher().correct(answer, self.correct)

    def is_attacked(self, answer: str | None) -> bool | None:
        """Whether an answer says what the attacker wants; None where there is no answer, or nothing is wanted."""
        if answer is None or not self.wanted:
            return None
        return not is_disagreement(answer) and matcher().is_attack_success(answer, self.wanted, self.correct)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, fields that say nothing left out; `codec.from_row` reads them back."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }


@dataclass(frozen=True, slots=True)
class Cell:
    """One attack with one number of poisons, or none.

    Attributes:
        attack: Its option string, or "none".
        poisons: Documents planted for each question.
        expected: Questions that it asks.
        trials: What happened, in the order of the questions.
        figures: By the measure's name.
        name: The attack with the label of its wording, for tables.
    """

    attack: str
    poisons: int
    expected: int
    trials: tuple[Trial, ...]
    figures: Mapping[str, Estimate]
    name: str

    @property
    def id(self) -> str:
        """Such as `poisonedrag x 1`; the same in every run of a configuration."""
        return self.attack if not self.poisons else f"{self.attack} x {self.poisons}"

    @property
    def title(self) -> str:
        """`id` with the label of the attack's wording, for tables."""
        return f"{self.name} x {self.poisons}" if self.poisons else self.attack

    @property
    def failed(self) -> int:
        return sum(trial.failed for trial in self.trials)

    @property
    def problems(self) -> list[str]:
        """What went wrong and how often, most frequent first."""
        counts = Counter(f"{trial.stage}: {trial.error}" for trial in self.trials if trial.failed)
        return [f"{count} of {self.expected}: {problem}" for problem, count in counts.most_common(20)]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; None stands for nan."""
        return {
            "id": self.id,
            "scenario": {"attack": self.attack, "poisons": self.poisons},
            "expected": self.expected,
            "done": len(self.trials),
            "failed": self.failed,
            "figures": {name: estimate.to_dict() for name, estimate in self.figures.items()},
            "problems": self.problems,
        }


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a test has found.

    Attributes:
        run: The first line of its journal: target, configuration, start.
        finished: When it ended, None where it was interrupted.
        examples: How many questions there were.
        trials: All of them, in order.
        cells: (attack, poisons) in order, those without any trial too.
        planted: Documents over the whole run, the rehearsal's among them.
        removed: Of them, those that were looked for after their removal and not found.
        accepted: Those whose removal the target accepted, and that nobody could look for.
        remaining: Canaries of documents that may still be there, with the reason.
        problems: What concerns the whole run.
    """

    run: Mapping[str, Any]
    finished: str | None
    examples: int
    trials: tuple[Trial, ...]
    cells: tuple[tuple[str, int], ...]
    planted: int = 0
    removed: int = 0
    accepted: int = 0
    remaining: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every question was measured and nothing remains."""
        expected = self.examples * len(self.cells)
        return len(self.trials) == expected and not any(t.failed for t in self.trials) and not self.remaining

    def _name(self, attack: str, poisons: int) -> str:
        return attack_name(attack) if poisons else attack

    def table(self) -> list[Cell]:
        """The cells with their figures."""
        clean = {trial.example: trial for trial in self.trials if trial.clean and not trial.failed}
        return [
            Cell(attack, poisons, self.examples, own, figures(own, clean), self._name(attack, poisons))
            for attack, poisons in self.cells
            for own in [tuple(t for t in self.trials if (t.attack, t.poisons) == (attack, poisons))]
        ]

    def gate_cells(self) -> list[MeasuredCell]:
        """What gates decide on."""
        return [
            MeasuredCell(cell.id, cell.id, cell.figures, clean=not cell.poisons, outcomes=outcomes(cell.trials))
            for cell in self.table()
        ]

    def to_dict(self) -> dict[str, Any]:
        """The document."""
        return {
            "format": FORMAT,
            "version": __version__,
            "target": self.run.get("name", ""),
            "started": self.run.get("started"),
            "finished": self.finished,
            "complete": self.complete,
            "config": {"digest": self.run.get("config"), "target": self.run.get("target"), **self.run.get("test", {})},
            "questions": self.examples,
            "cells": [cell.to_dict() for cell in self.table()],
            "trials": [_trial_fields(trial) for trial in self.trials],
            "cleanup": {
                "planted": self.planted,
                "removed": self.removed,
                "accepted": self.accepted,
                "remaining": [{"canary": canary, "reason": reason} for canary, reason in self.remaining],
            },
            "problems": list(self.problems),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=True, allow_nan=False) + "\n"

    def to_csv(self) -> str:
        """One row per cell: every measure with its interval."""
        headings = ["attack", "poisons", "expected", "done", "failed", *csv_headings(MEASURES)]
        rows = [
            [
                *(spreadsheet_value(cell.attack), cell.poisons, cell.expected, len(cell.trials), cell.failed),
                *(value for estimate in cell.figures.values() for value in csv_cells(estimate)),
            ]
            for cell in self.table()
        ]
        return csv_text([headings, *rows])


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the document."""
    document: dict[str, Any] = json.loads(files("unpoison").joinpath("data", "redteam.schema.json").read_text("utf-8"))
    return document


def _trial_fields(trial: Trial) -> dict[str, Any]:
    """A trial with what was judged; the hashes of passages are of no use outside."""
    values = {name: value for name, value in trial.to_dict().items() if name != "passages"}
    judged = {
        "is_correct": trial.is_correct(trial.answer),
        "is_attacked": trial.is_attacked(trial.answer),
        "is_attacked_after": trial.is_attacked(trial.after),
    }
    defaults = {"attack": trial.attack, "poisons": trial.poisons, "answer": trial.answer, "error": trial.error}
    return {**defaults, **values, **judged}


def _yes_no(
    name: str, title: str, meaning: str, better: Better, outcome: Callable[[Trial], bool | None]
) -> Measure[Trial]:
    """A share of questions: what a trial says, or None where it says nothing."""
    return Measure(name, title, meaning, better, lambda trial: parts_of(outcome(trial)), yes_no=True)


def _seconds(
    name: str, title: str, meaning: str, better: Better, number: Callable[[Trial], float | None]
) -> Measure[Trial]:
    """A mean over the trials that have the number."""
    return Measure(name, title, meaning, better, lambda trial: parts_of(number(trial)), "seconds")


# fmt: off
_ALL: tuple[Measure[Trial], ...] = (
    _yes_no("poisoned", "poison read", "questions that were answered from passages with poison among them", "lower",
            lambda t: None if t.read is None else t.read > 0),
    Measure("retrieved", "poison retrieved", "planted documents that were among the passages read", "lower",
            lambda t: parts_of(t.read, t.planted)),
    _yes_no("asr", "ASR", "answers that state what the attacker wants, token matcher", "lower",
            lambda t: t.is_attacked(t.answer)),
    _yes_no("accuracy", "accuracy", "answers that state a right answer, token matcher", "higher",
            lambda t: t.is_correct(t.answer)),
    _yes_no("disputed", "disputed", "answers that show what sources disagree on; neither right nor wrong", "",
            lambda t: None if t.answer is None else is_disagreement(t.answer)),
    Measure("accuracy_lost", "accuracy lost",
            "accuracy without an attack minus accuracy under it, on the same questions", "lower",
            lambda t: (0, 0)),  # it takes two trials; see `_accuracy_loss`
    _yes_no("asr_after", "ASR afterwards",
            "answers that state what the attacker wants although the poison was removed", "lower",
            lambda t: t.is_attacked(t.after)),
    _yes_no("accuracy_after", "accuracy afterwards", "answers that state a right answer when the poison was removed",
            "higher", lambda t: t.is_correct(t.after)),
    _seconds("served_seconds", "until served",
             "seconds from planting to the first question that was answered from poison, mean of those that were", "",
             lambda t: t.served_seconds),
    _seconds("gone_seconds", "until gone",
             "seconds from removing to the first question that was not answered from it, mean", "lower",
             lambda t: t.gone_seconds),
    _seconds("answer_seconds", "answer time", "seconds of an answer, mean", "lower", lambda t: t.seconds),
    _yes_no("failed", "failed", "questions that failed", "lower", lambda t: t.failed),
)
# fmt: on

MEASURES: dict[str, Measure[Trial]] = {measure.name: measure for measure in _ALL}
"""All measures by name, in the order of the tables."""


def figures(trials: Sequence[Trial], clean: Mapping[str, Trial]) -> dict[str, Estimate]:
    """Every figure of one cell.

    Args:
        trials: Of one attack and one number of poisons, failed ones included.
        clean: The same questions without an attack, by their id.

    Returns:
        By the measure's name; nan where it does not apply.
    """
    usable = [trial for trial in trials if not trial.failed]
    return {
        name: _accuracy_loss(usable, clean)
        if name == "accuracy_lost"
        else measure.estimate(trials if name == "failed" else usable)
        for name, measure in MEASURES.items()
    }


def outcomes(trials: Sequence[Trial]) -> dict[str, dict[str, bool]]:
    """What each question says, by the name of the measure and the question's id, for paired tests."""
    by_measure: dict[str, dict[str, bool]] = {}
    for name, measure in MEASURES.items():
        for trial in trials:
            if measure.yes_no and not trial.failed and not isnan(value := measure.value(trial)):
                by_measure.setdefault(name, {})[trial.example] = value == 1
    return by_measure


def _accuracy_loss(trials: Sequence[Trial], clean: Mapping[str, Trial]) -> Estimate:
    """Paired by question; the interval is Agresti and Min's."""
    pairs = [
        (before, now)
        for trial in trials
        if not trial.clean
        and trial.example in clean
        and (before := trial.is_correct(clean[trial.example].answer)) is not None
        and (now := trial.is_correct(trial.answer)) is not None
    ]
    gained = paired_shares([before for before, _ in pairs], [now for _, now in pairs])
    return Estimate(0.0 - gained.value, 0.0 - gained.high, 0.0 - gained.low, gained.count)
