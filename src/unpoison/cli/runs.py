"""What `unpoison evaluate` does around a run: choose what is measured, print figures, say what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.grids import Grid, axis
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.presets import Preset, load_preset, preset_names
from unpoison.bench.evaluation.runs import Run, read_manifest
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.stream_presets import load_stream_preset, stream_preset_names
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report import Report
from unpoison.bench.report.certification import guarantee_tables
from unpoison.bench.report.paper_comparison import format_measurement
from unpoison.bench.report.tables import heading
from unpoison.cli.common import count_noun, say
from unpoison.cli.display import report_table, show, text_table
from unpoison.errors import OptionError
from unpoison.report.rendering import plain

__all__ = [
    "Chosen",
    "check_certified",
    "choose",
    "presets_table",
    "say_outcome",
    "say_problems",
    "show_certified",
    "show_figures",
]

SHOWN = ("poisoned", "asr", "accuracy")
CLEAN = ("gold_lost", "clean_kept", "accuracy")
"""What a defense does where nothing is planted."""

MAX_PROBLEMS = 20
"""So many rows left out, and so many failures, are told one by one."""

_FOR_PRESETS = frozenset({"data", "encoder", "retriever", "generator", "nli", "seed", "limit"})


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is measured.

    Attributes:
        scenarios: The cells.
        preset: The paper's table that is run again, if any.
        manifest: The manifest of the run that is repeated, if any.
    """

    scenarios: tuple[Scenario, ...]
    preset: Preset | None = None
    manifest: Mapping[str, Any] | None = None


def choose(
    given: dict[str, Any],
    config: Path | None,
    preset: str | None,
    manifest: Path | None,
    grader: str | None = None,
) -> Chosen:
    """The scenarios of the command line.

    Raises:
        OptionError: Options that exclude each other.
    """
    if sum(recorded is not None for recorded in (config, preset, manifest)) > 1:
        raise OptionError("--config, --preset and --manifest exclude each other; give one of them")
    if manifest is not None:
        _refuse(given, frozenset(), "--manifest")
        recorded = read_manifest(manifest)
        return Chosen(tuple(Scenario.from_dict(cell["scenario"]) for cell in recorded["cells"]), manifest=recorded)
    if preset is not None:
        if preset in stream_preset_names():
            raise OptionError(f"{preset} is measured over time; give its data as well, such as --stream timeline")
        _refuse(given, _FOR_PRESETS, "--preset")
        table = load_preset(preset, grader=grader, **{name: _single(name, value) for name, value in given.items()})
        for line in table.describe().splitlines():
            say(line)
        if not table.scenarios:
            raise OptionError(f"nothing of {preset} can be measured here: {'; '.join(table.lacks)}")
        return Chosen(table.scenarios, preset=table)
    if config is not None:
        return Chosen(Grid.load(config, **given).scenarios())
    return Chosen(Grid.of({"data": ["sample"], "defense": ["guard"], **given}).scenarios())


def _refuse(given: Mapping[str, Any], allowed: frozenset[str], option: str) -> None:
    for name in given:
        if name not in allowed:
            raise OptionError(f"{option} says what is measured; leave --{name.replace('_', '-')} out")


def _single(name: str, value: Any) -> Any:
    """The one value of an axis, as a preset takes it; seeds may be several."""
    if not isinstance(value, list):
        return value
    if name == "seed":
        return axis("seed", value)
    if len(value) > 1 or (name != "data" and "," in value[0]):
        raise OptionError(f"--preset takes one {name}, got {', '.join(value)}")
    return value[0]


def show_figures(report: Report) -> None:
    """Every table on standard output, the preset's last."""
    show("Percent, with 95 % intervals. Clean: the same defense without an attack.", "")
    for table in figures_tables(report):
        show(table, "")
    if report.preset is not None:
        show(comparison_table(report, report.preset))


def check_certified(certified: bool, clean: bool) -> None:
    """See early that there will be something to certify.

    Raises:
        OptionError: Answers without an attack are not measured.
    """
    if certified and not clean:
        raise OptionError("--certify counts answers given without an attack; leave out --no-clean")


def show_certified(report: Report, *, wanted: bool, to_stdout: bool) -> None:
    """Certified accuracy, or why there is none, where it is wanted."""
    if not wanted:
        return
    tables = guarantee_tables(report)
    if not tables:
        say("nothing is certified: no defense here proves its answers; give -d vote (or robustrag) and -g reader")
    for certified in tables if to_stdout else ():
        show(report_table(certified), "")


def figures_tables(report: Report) -> Iterator[Table]:
    """One table for each scenario, defenses below one another; beside each what it does without an attack."""
    shown = [name for name in SHOWN if any(summary.applies(name) for summary in report.summaries)]
    beside = [name for name in CLEAN if name not in SHOWN or name in shown]
    for scenario, group in report.groups():
        table = Table(box=None, padding=(0, 1), title_justify="left")
        table.title = Text(plain(report.caption(scenario)), style="bold")
        table.add_column("defense", overflow="fold")
        for name in shown:
            table.add_column(heading(MEASURES[name]), justify="right")
        clean = [name for name in beside if not (scenario.clean and name in shown)]
        for name in clean:
            title = heading(MEASURES[name])
            table.add_column(title if scenario.clean else f"clean: {title}", justify="right")
        for summary in group:
            twin = report.twin(summary)
            own = [_with_interval(summary[name]) for name in shown]
            table.add_row(Text(plain(summary.scenario.defense)), *own, *(_bare(twin, name) for name in clean))
        yield table


def _with_interval(estimate: Estimate) -> str:
    """Such as "63.2 [51-74]", in percent; short, for a terminal has 80 columns."""
    return (
        "-"
        if isnan(estimate.value)
        else f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}-{100 * estimate.high:.0f}]"
    )


def _bare(summary: Summary | None, name: str) -> str:
    return "-" if summary is None or not summary.applies(name) else f"{100 * summary[name].value:.1f}"


def comparison_table(report: Report, preset: Preset) -> Table:
    """The paper's numbers and the measured ones, each measurement once; letters lead to what is not the paper's."""
    table = Table(title=Text(f"{preset.source}: published and measured"), title_justify="left", caption_justify="left")
    for name in ("model", "row", "column", "measure"):
        table.add_column(name, overflow="fold")
    for name in ("published %", "measured %"):
        table.add_column(name, justify="right")
    table.add_column("differs in")
    by_scenario = {summary.scenario: summary for summary in report.summaries}
    letters: dict[str, str] = {}
    shown = set[tuple[Scenario | None, str]]()
    for entry in preset.published:
        key = (entry.scenario, entry.measure)
        ours = "as above" if key in shown else format_measurement(preset, entry, by_scenario)
        if ours and entry.scenario is not None:
            shown.add(key)
        differs = [letters.setdefault(t, _letter(len(letters))) for t in (*entry.row_differs, *entry.column_differs)]
        cells = (plain(entry.table), plain(entry.label), plain(entry.column), entry.measure, entry.printed)
        table.add_row(*map(Text, (*cells, ours, " ".join(differs))))
    table.caption = Text("\n".join(f"{letter}  {plain(sentence)}" for sentence, letter in letters.items()))
    return table


def _letter(number: int) -> str:
    """A to z, then aa, ab, ..."""
    return (chr(96 + number // 26) if number >= 26 else "") + chr(97 + number % 26)


def presets_table() -> Table:
    """Every preset with its source."""
    rows = [(name, (preset := load_preset(name)).source, preset.title) for name in preset_names()]
    for name in stream_preset_names():
        over_time = load_stream_preset(name, generator="extractive", nli="lexical")
        rows.append((name, over_time.source, f"{over_time.title} (--stream)"))
    return text_table(("preset", "source", "what it shows"), rows, box=None)


def say_problems(report: Report) -> None:
    """Tell what was left out, what could not begin, what failed, and which attacks fell short."""
    remarks = [
        f"{source}: {row}"
        for source, source_report in report.run.manifest["data"].items()
        for row in source_report["left_out"]
    ]
    for summary in report.summaries:
        caption = f"{summary.scenario.defense}, {report.caption(summary.scenario)}"
        remarks += [f"{caption}: {problem}" for problem in summary.problems]
    for line in remarks[:MAX_PROBLEMS]:
        say(line)
    if len(remarks) > MAX_PROBLEMS:
        say(f"and {len(remarks) - MAX_PROBLEMS:,} more; --json and --report list them")
    short = {
        (s.scenario.attack, s.scenario.poisons): s["reached"].value
        for s in report.summaries
        if s.applies("reached") and s["reached"].value < 1
    }
    for (attack, poisons), share in short.items():
        say(f"note: {attack} x {poisons}: {100 * (1 - share):.0f} % of the planted texts missed the attack's own goal")


def say_outcome(run: Run) -> int:
    """One line at the end, and the exit code: 0 all measured, 1 some failed, 2 nothing was measured."""
    usable = sum(len(cell.usable) for cell in run.cells)
    failed = sum(len(cell.failures) for cell in run.cells)
    broken = sum(cell.error is not None for cell in run.cells)
    resumed = run.manifest["resumed"]
    say(
        f"measured {count_noun(usable, 'question')} in {count_noun(len(run.cells), 'scenario')}"
        + (f"; {resumed:,} were there already" if resumed else "")
        + (f"; {failed:,} failed" if failed else "")
        + (f"; {count_noun(broken, 'scenario')} could not begin" if broken else "")
        + f"; the run is in {run.folder}"
    )
    return 2 if not usable else 1 if failed or broken else 0
