"""The content of a report: figures and comparisons of a run, and its scenarios in groups."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from unpoison.core.registry import parse
from unpoison.models.loading import can_write
from unpoison_lab.evaluation.presets import Preset
from unpoison_lab.evaluation.runs import Cell, Run, open_run
from unpoison_lab.evaluation.scenarios import Scenario, stand_in, wording
from unpoison_lab.evaluation.summary import Comparison, Summary, compare, summarise

__all__ = ["Report", "is_baseline"]

BASELINE = "vanilla"
"""The baseline defense of all comparisons."""

SETTINGS = tuple(field.name for field in fields(Scenario) if field.name not in ("corpus", "defense"))
"""The fields of a scenario that a caption may name, in its order."""


@dataclass(frozen=True)
class Report:
    """A run and everything computed from it.

    Attributes:
        run: Finished or not.
        summaries: One per cell, in the order of the run.
        comparisons: Every two defenses of equal scenarios.
        preset: The paper's table that was run again, None for other grids.
    """

    run: Run
    summaries: tuple[Summary, ...]
    comparisons: tuple[Comparison, ...]
    preset: Preset | None = None

    @classmethod
    def of(
        cls,
        run: Run | str | Path,
        *,
        preset: Preset | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> Self:
        """Compute the figures of a run, or of a folder that holds one.

        Raises:
            InputError: The folder holds no run.
        """
        opened = run if isinstance(run, Run) else open_run(run)
        figures = summarise(opened.cells, level=level, seed=seed)
        return cls(opened, tuple(figures), tuple(compare(opened.cells, level=level, seed=seed)), preset)

    @cached_property
    def defenses(self) -> dict[str, int]:
        """Every defense and its place, the baseline first; the place is its colour in every picture."""
        names = dict.fromkeys(summary.scenario.defense for summary in self.summaries)
        return {name: number for number, name in enumerate(sorted(names, key=lambda name: not is_baseline(name)))}

    @cached_property
    def by_scenario(self) -> dict[Scenario, Summary]:
        return {summary.scenario: summary for summary in self.summaries}

    @cached_property
    def by_id(self) -> dict[str, Summary]:
        return {summary.id: summary for summary in self.summaries}

    @cached_property
    def cells(self) -> dict[str, Cell]:
        return {cell.id: cell for cell in self.run.cells}

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """The fields in which scenarios differ, apart from the defense."""
        return tuple(name for name in SETTINGS if len({getattr(s.scenario, name) for s in self.summaries}) > 1)

    @property
    def questions(self) -> tuple[int, int]:
        """Questions with a record and questions asked for, over all cells."""
        return sum(summary.done for summary in self.summaries), sum(summary.expected for summary in self.summaries)

    def twin(self, summary: Summary) -> Summary | None:
        """The cell without an attack, itself if it is one."""
        return summary if summary.scenario.clean else self.by_id.get(summary.twin or "")

    def caption(self, scenario: Scenario, *leave_out: str) -> str:
        """A scenario in words: data, attack, and further differences within the run."""
        parts = [short_name(scenario.data)] if "data" not in leave_out else []
        if scenario.clean:
            parts.append("no attack")
        elif "attack" not in leave_out:
            times = f" x {scenario.poisons}" if scenario.poisons and "poisons" not in leave_out else ""
            parts.append(f"{attack_title(scenario)}{times}")
        for name in self.varying:
            if name not in ("data", "attack", "poisons", *leave_out):
                value = getattr(scenario, name)
                if value not in (None, ()):
                    parts.append(f"{name.replace('_', ' ')} {setting(value)}")
        if scenario.generator is not None and "generator" not in self.varying and is_stand_in(scenario.generator):
            parts.append(f"answers by {scenario.generator}")
        return ", ".join(parts)

    @staticmethod
    def note(scenario: Scenario) -> str:
        """The note of a table whose answers come from a stand-in; "" otherwise."""
        if scenario.generator is None or not is_stand_in(scenario.generator):
            return ""
        return (
            f"{scenario.generator} stands in for a language model: it copies words out of the passages, so rates of "
            "answers say nothing about a real system."
        )

    def groups(self, *ignoring: str) -> list[tuple[Scenario, list[Summary]]]:
        """Cells that differ in the defense only, and in further fields that are ignored; the baseline first.

        The scenario of a group has the ignored fields of its first cell.
        """
        groups: dict[tuple[Any, ...], list[Summary]] = {}
        for summary in self.summaries:
            groups.setdefault(_key(summary.scenario, *ignoring), []).append(summary)
        return [
            (group[0].scenario, sorted(group, key=lambda s: self.defenses[s.scenario.defense]))
            for group in groups.values()
        ]


def attack_title(scenario: Scenario) -> str:
    """An attack's name in tables, with the origin of its wording and the stand-in for its language model, if any."""
    if not scenario.attacked:
        return scenario.attack
    instead = stand_in(scenario)
    notes = [*filter(None, [wording(scenario.attack)]), *([f"stand-in: {instead}"] if instead else [])]
    return f"{scenario.attack} ({'; '.join(notes)})" if notes else scenario.attack


def is_stand_in(generator: str) -> bool:
    """Whether answers come from a reader, which only copies, and not from a language model."""
    return not can_write(generator)


def is_baseline(defense: str) -> bool:
    """Whether this is the measurement without a defense."""
    return parse(defense)[0] == BASELINE


def short_name(data: str) -> str:
    """A data set without its folder."""
    return Path(data).name.removesuffix(".jsonl") or data


def setting(value: object) -> float | str:
    """The value of a field as a number or as a word."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "default"}[value]
    if isinstance(value, (int, float)):
        return value
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _key(scenario: Scenario, *ignoring: str) -> tuple[Any, ...]:
    return tuple(getattr(scenario, name) for name in (*SETTINGS, "corpus") if name not in ignoring)
