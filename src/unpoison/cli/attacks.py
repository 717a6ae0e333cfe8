"""What `unpoison attack` does around the planting: rows in and out, what was reached, what it cost."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from unpoison.bench.attacks.base import Budget, PoisonText
from unpoison.bench.evaluation.poisoned_data import Planted, plant, total
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.workbench import Workbench
from unpoison.cli.running import count_noun, say
from unpoison.core import registry
from unpoison.errors import InputError, OptionError
from unpoison.io.journal import Journal, read_rows
from unpoison.io.output import check_output, check_rows_name
from unpoison.report.rendering import excerpt, plain

__all__ = ["CraftedTexts", "attack_rows", "attacks_table"]

SHOWN = 20
"""So many planted texts are shown one by one."""


def attack_rows(
    scenario: Scenario,
    output: Path | None,
    *,
    to_stdout: bool,
    restart: bool,
    jobs: int,
    progress: Callable[[int, int, str], None],
) -> Iterator[Planted]:
    """Attack what the output does not hold yet, and write each row when it is done.

    Raises:
        InputError: Data without a usable question.
        OptionError: An output that holds something else, or is the input.
    """
    with ExitStack() as stack:
        bench = Workbench(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unpoison-"))))
        data, digests = bench.data(scenario.data), bench.digests(scenario)
        for problem in data.problems:
            say(f"{scenario.data}: {problem}")
        examples = bench.examples(scenario)
        if not examples:
            raise InputError(f"{scenario.data} holds no usable question")
        run = replace(scenario, limit=None).identifier(digests)
        done = set[str]()
        journal = None
        if output is not None:
            check_rows_name(output)
            check_output(output, scenario.data.rpartition(":")[2])
            if restart:
                output.write_bytes(b"")
            done = _already(output, run)
            journal = stack.enter_context(Journal(output))
            if done:
                say(f"{output}: {count_noun(len(done), 'row')} were there already")
        crafted = 0

        def step() -> None:
            nonlocal crafted
            crafted += 1
            progress(crafted, len(examples) - len(done), f"crafting {scenario.attack}")

        for planted in plant(scenario, bench, done=done, jobs=jobs, step=step):
            if planted.error is None:
                row = {**planted.row, "planted": {**planted.row["planted"], "run": run}}
                if journal is not None:
                    journal.append(row)
                if to_stdout:
                    _print(row)
            yield planted


def _already(output: Path, run: str) -> set[str]:
    """The ids of the rows that are in the output.

    Raises:
        OptionError: They were made in another way.
    """
    rows = read_rows(output)
    if any(not isinstance(row.get("planted"), dict) or row["planted"].get("run") != run for row in rows):
        raise OptionError(f"{output} holds rows that were made otherwise; give --restart, or another file")
    return {str(row.get("id")) for row in rows}


def _print(row: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(row, ensure_ascii=True) + "\n")
    sys.stdout.flush()


class CraftedTexts:
    """Counts questions and texts, and remembers the first texts for the table."""

    def __init__(self) -> None:
        self.attacked = self.failed = self.texts = self.missed = 0
        self.budget = Budget()
        self._shown: list[PoisonText] = []

    def add(self, planted: Planted) -> None:
        if planted.error is not None:
            self.failed += 1
            say(f"{planted.example}: {planted.error}")
            return
        self.attacked += 1
        self.texts += len(planted.texts)
        self.missed += len(planted.missed)
        self.budget = total([PoisonText("", "", "", "", budget=self.budget), *planted.texts])
        self._shown += planted.texts[: max(0, SHOWN - len(self._shown))]

    def table(self) -> Table:
        """The first texts: whether each reached its goal, and what it cost."""
        spent = [name for name, number in self.budget.to_dict().items() if number]
        table = Table(box=None)
        for heading in ("question", "planted text", "goal", *(name.replace("_", " ") for name in spent)):
            table.add_column(heading, overflow="fold")
        for text in self._shown:
            goal = "reached" if text.reached else f"missed: {text.meta.get('reason', '')}"
            costs = [str(getattr(text.budget, name)) for name in spent]
            whole = text.text if text.title is None else f"{text.title} / {text.text}"
            table.add_row(*map(Text, (plain(text.target_id), excerpt(whole, 120), excerpt(goal), *costs)))
        if self.texts > len(self._shown):
            table.caption = Text(f"and {self.texts - len(self._shown):,} more")
        return table

    def summary(self) -> str:
        """Such as "planted 3 texts for 3 questions, 1 missed its goal; 2 model calls"."""
        spent = {name.replace("_", " "): number for name, number in self.budget.to_dict().items() if number}
        return (
            f"planted {count_noun(self.texts, 'text')} for {count_noun(self.attacked, 'question')}"
            + (f"; {self.missed:,} missed the attack's own goal" if self.missed else "")
            + (f"; {count_noun(self.failed, 'question')} failed" if self.failed else "")
            + "".join(f"; {number:,} {name}" for name, number in spent.items())
        )

    @property
    def exit_code(self) -> int:
        """0 when nothing failed, 1 when some questions did, 2 when all did."""
        return 0 if not self.failed else 1 if self.attacked else 2


WORDING = {"ours": "ours", "published": "as published", "data": "the data's, else ours"}
"""Whose words an attack plants, in a column."""


def attacks_table() -> Table:
    """Every attack, and every wrapper (`+name`): what it does, its options, needs, and wording."""
    table = Table(show_lines=True)
    for heading in ("name", "what it does", "options", "needs", "of the data", "wording"):
        table.add_column(heading, overflow="fold")
    kinds = [(kind, name) for kind in ("attacks", "wrappers") for name in registry.names(kind)]
    for kind, name in kinds:
        shown = name if kind == "attacks" else f"+{name}"
        try:
            target = registry.find(kind, name)
            options = "\n".join(option.described for option in registry.options(target))
        except Exception as error:  # somebody else's broken package must not hide the others
            table.add_row(*map(Text, (shown, f"cannot be loaded: {plain(str(error))}", "", "", "", "")))
            continue
        needs = ", ".join(target.needs) or "nothing"
        of_data = ", ".join(target.requires) or "nothing"
        words = WORDING[target.wording] if kind == "attacks" else ""
        table.add_row(*map(Text, (shown, target.summary, options, needs, of_data, words)))
    return table
