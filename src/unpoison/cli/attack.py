"""`unpoison attack`: add a published attack's poison to every question of a data set."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import argument, from_here, option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from unpoison.bench.attacks.base import PoisonText
    from unpoison.bench.evaluation.poisoned_data import Planted
    from unpoison.bench.evaluation.scenarios import Scenario

__all__ = ["EXAMPLES", "attack"]

AXES = tuple("policy prefix k corpus retriever encoder generator defense seed limit owned".split())  # noqa: SIM905
"""The options that a scenario has too."""
SHOWN = 20
"""Planted texts that are shown one by one."""


WORDING = {"ours": "ours", "published": "as published", "data": "the data's, else ours"}
"""Origin of the planted words, for a column."""


EXAMPLES = """\b
Examples:
  unpoison attack --list
  unpoison attack -a poisonedrag --count 3 sample -o attacked.jsonl
  unpoison attack -a pia --policy replace-last --k 5 sample --json | unpoison screen -d trustrag -
  unpoison attack -a hotflip -e minilm --policy retrieve sample -o searched.jsonl
  unpoison evaluate -a published -d grada attacked.jsonl

An interrupted command resumes: rows that the output already holds are not crafted again.
Exit status: 0 when every question was attacked, 1 when some failed, 2 when nothing could be done.
"""


def attack(
    context: typer.Context,
    data: Annotated[str | None, argument("DATA", "A data file, 'sample', or any data that 'evaluate' takes.")] = None,
    name: Annotated[
        str, option("--attack -a NAME[:OPTIONS]", "The attack; --list shows all.", callback=from_here)
    ] = "poisonedrag",
    count: Annotated[int, option("N", "Poisoned texts for each question.", min=1)] = 1,
    policy: Annotated[
        str | None,
        option(
            "POLICY",
            "Where the texts go: prepend (the default), retrieve, corpus, replace-at, replace-last, middle or pool.",
        ),
    ] = None,
    position: Annotated[str, option("P+P", "For replace-at: a place from 1 for each text, joined by +.")] = "",
    prefix: Annotated[
        bool | None,
        option(
            "--prefix/--no-prefix",
            "Whether the question stands before each text. [default: as the attack's paper has it]",
        ),
    ] = None,
    k: Annotated[int, option("--k K", "Passages per question.", min=1)] = 10,
    corpus: Annotated[
        str | None, option("FILE|none", "Clean passages that fill up contexts. [default: corpus.jsonl beside the data]")
    ] = None,
    retriever: Annotated[str, option("ENCODER", "bm25 or an encoder, for the policies retrieve and corpus.")] = "bm25",
    encoder: Annotated[str, option("--encoder -e ENCODER", "For attacks that use an encoder.")] = "lexical",
    generator: Annotated[
        str | None, option("--generator -g GENERATOR", "The language model of attacks that use one.")
    ] = None,
    defense: Annotated[
        str, option("--defense -d NAME[:OPTIONS]", "The defense that adaptive attacks know.", callback=from_here)
    ] = "grada",
    owned: Annotated[
        str | None,
        option("WHO", "Sources that the attacker controls: one, each, page or known:N; see docs/sources.md."),
    ] = None,
    seed: Annotated[int, option("SEED", "Random seed of the attack.", min=0)] = 0,
    limit: Annotated[int | None, option("N", "Use the first N questions only.", min=1)] = None,
    jobs: Annotated[int, option("N", "Attack N questions at the same time.", min=1, max=64)] = 1,
    output: Annotated[Path | None, option("--output -o FILE", "Write the attacked rows to this file.")] = None,
    restart: Annotated[bool, option("--restart", "Overwrite the output instead of resuming.")] = False,
    as_json: Annotated[bool, option("--json", "Write the attacked rows to standard output.")] = False,
    listing: Annotated[bool, option("--list", "List the attacks with their options and requirements.")] = False,
) -> None:
    """Add the poisoned passages of a published attack to every question.

    Writes rows with the passages in the order that a defense sees, poison marked. Reports how many texts reached the
    goal of the attack and what they cost. A text that misses the goal is planted too, and counted.
    """
    from unpoison.bench.evaluation.grids import Grid
    from unpoison.cli.common import progress, say
    from unpoison.cli.display import show
    from unpoison.errors import OptionError

    if listing:
        show(_attacks_table())
        return
    if data is None:
        raise OptionError("name the data to attack: a file, or 'sample'; --list lists the attacks")
    axes = {axis: context.params[axis] for axis in AXES} | {"data": [data], "attack": name}
    axes |= {"positions": position} if position else {"poisons": count}
    if position and count not in (1, len(position.split("+"))):
        raise OptionError(f"--count {count} needs {count} places, got --position {position}")
    scenarios = Grid.of({**axes, "baseline": False, "clean": False}).scenarios()
    if len(scenarios) != 1 or not scenarios[0].attacked:
        raise OptionError(
            f"'attack' plants one attack in one way; -a {name}{f' --policy {policy}' if policy else ''} is not that"
        )
    accounts = _CraftedTexts()
    with progress() as advance:
        rows = _attack_rows(scenarios[0], output, to_stdout=as_json, restart=restart, jobs=jobs, progress=advance)
        for planted in rows:
            accounts.add(planted)
    if accounts.texts and not as_json:
        show(accounts.table())
    say(accounts.summary())
    raise typer.Exit(accounts.exit_code)


def _attack_rows(
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
    import tempfile
    from contextlib import ExitStack
    from dataclasses import replace

    from unpoison.bench.evaluation.poisoned_data import plant
    from unpoison.bench.evaluation.workbench import Workbench
    from unpoison.cli.common import say
    from unpoison.errors import InputError
    from unpoison.io.journal import Journal
    from unpoison.io.output import check_output, check_rows_name
    from unpoison.utils.plain_text import count_noun

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
    from unpoison.errors import OptionError
    from unpoison.io.journal import read_rows

    rows = read_rows(output)
    if any(not isinstance(row.get("planted"), dict) or row["planted"].get("run") != run for row in rows):
        raise OptionError(f"{output} holds rows that were made otherwise; give --restart, or another file")
    return {str(row.get("id")) for row in rows}


def _print(row: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(row, ensure_ascii=True) + "\n")
    sys.stdout.flush()


class _CraftedTexts:
    """Counts questions and texts, and remembers the first texts for the table."""

    def __init__(self) -> None:
        from unpoison.bench.attacks.base import Budget

        self.attacked = self.failed = self.texts = self.missed = 0
        self.budget = Budget()
        self._shown: list[PoisonText] = []

    def add(self, planted: Planted) -> None:
        from unpoison.bench.attacks.base import PoisonText
        from unpoison.bench.evaluation.poisoned_data import total
        from unpoison.cli.common import say

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
        from unpoison.cli.display import text_table
        from unpoison.report.rendering import excerpt

        spent = [name for name, number in self.budget.to_dict().items() if number]
        rows = []
        for text in self._shown:
            goal = "reached" if text.reached else f"missed: {text.meta.get('reason', '')}"
            costs = [str(getattr(text.budget, name)) for name in spent]
            whole = text.text if text.title is None else f"{text.title} / {text.text}"
            rows.append((text.target_id, excerpt(whole, 120), excerpt(goal), *costs))
        more = self.texts - len(self._shown)
        columns = ("question", "planted text", "goal", *(name.replace("_", " ") for name in spent))
        return text_table(columns, rows, box=None, caption=f"and {more:,} more" if more else None)

    def summary(self) -> str:
        """Such as "planted 3 texts for 3 questions, 1 missed its goal; 2 model calls"."""
        from unpoison.utils.plain_text import count_noun

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


def _attacks_table() -> Table:
    """Every attack: what it does, its options, needs, and wording."""
    from unpoison.cli.display import text_table
    from unpoison.core import registry

    rows = []
    for name in registry.names("attacks"):
        try:
            target = registry.find("attacks", name)
            options = "\n".join(option.described for option in registry.options(target))
        except Exception as error:  # somebody else's broken package must not hide the others
            rows.append((name, f"cannot be loaded: {error}", "", "", "", ""))
            continue
        needs = ", ".join(target.needs) or "nothing"
        of_data = ", ".join(target.requires) or "nothing"
        rows.append((name, target.summary, options, needs, of_data, WORDING[target.wording]))
    return text_table(("name", "what it does", "options", "needs", "of the data", "wording"), rows, show_lines=True)
