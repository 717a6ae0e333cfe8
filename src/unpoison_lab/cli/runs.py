"""Chooses the scenarios of `unpoison evaluate`, runs them, and shows results and failures."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rich.table import Table

from unpoison.cli.common import progress, say
from unpoison.cli.display import report_table, show, text_table
from unpoison.errors import InputError, OptionError, UnpoisonError, clip
from unpoison.io.output import check_writable
from unpoison.models.loading import answer_judge, best_reader
from unpoison.report.document import check_suffix, write_text
from unpoison.runtime.driver import Limits
from unpoison.utils.files import load_yaml
from unpoison.utils.plain_text import count_noun
from unpoison_lab.evaluation.adaptations import methods_of
from unpoison_lab.evaluation.gates import Gate, MeasuredCell, check_gates, need_answers
from unpoison_lab.evaluation.grids import Grid, axis
from unpoison_lab.evaluation.llm_judge import GRADING, SCORING, judge_run
from unpoison_lab.evaluation.measures import MEASURES
from unpoison_lab.evaluation.presets import Preset, load_preset, load_stream_preset, preset_names, stream_preset_names
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.runs import Run, folder_name
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.streams import ATTACKS, run_study
from unpoison_lab.report import WRITERS, Report, as_json, over_time, write_report
from unpoison_lab.report.model import is_baseline
from unpoison_lab.report.tables import comparison_tables, guarantee_tables, rows_left_out, summary_tables

if TYPE_CHECKING:
    from unpoison.scan.documents import UnreadDocument

__all__ = ["Outputs", "choose", "conclude", "make_questions", "measure", "measure_over_time", "presets_table"]

RUNS = Path("unpoison-runs")
"""The default folder of runs; each run's folder is named by a hash of its scenarios."""

MAX_PROBLEMS = 20
"""Problems that are shown one by one."""

FOR_PRESETS = frozenset({"data", "encoder", "retriever", "generator", "nli", "seed", "limit"})
FOR_STREAMS = frozenset({"defense", "encoder", "generator", "nli", "limit"})
"""The options that go with --preset and with --stream."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run in a configuration file, beside its axes.

    Attributes:
        judge: Scores long answers.
        grader: Grades short answers.
        deadline: Seconds of one answer, at most.
    """

    judge: str | None = None
    grader: str | None = None
    deadline: float = 120.0

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Read the values.

        Raises:
            OptionError: A deadline that is not a number.
        """
        deadline = values.get("deadline", 120.0)
        if isinstance(deadline, bool) or not isinstance(deadline, (int, float)):
            raise OptionError(f"deadline must be a number of seconds, got {clip(deadline)}")
        return cls(values.get("judge"), values.get("grader"), float(deadline))


SETTINGS = tuple(RunSettings.__dataclass_fields__)


@dataclass(frozen=True)
class Chosen:
    """The scenarios, the settings, and the paper's table that is reproduced, if any."""

    scenarios: tuple[Scenario, ...]
    settings: RunSettings = field(default_factory=RunSettings)
    preset: Preset | None = None


@dataclass(frozen=True)
class Outputs:
    """Reports to write, gates to check, and whether standard output gets JSON instead of tables."""

    files: tuple[Path, ...]
    gates: tuple[Gate, ...]
    as_json: bool

    @classmethod
    def of(cls, files: Sequence[Path], fail_if: Sequence[str], *, as_json: bool) -> Self:
        """Check early that every file can be written and every gate read.

        Raises:
            OptionError, UnknownNameError: A suffix that names no form; no such gate.
            OSError: A file that cannot be written.
        """
        for path in files:
            check_suffix(path, WRITERS)
            check_writable(path)
        return cls(tuple(files), tuple(Gate.of(text, MEASURES) for text in fail_if), as_json)


def choose(given: dict[str, Any], config: Path | None, preset: str | None) -> Chosen:
    """The scenarios of the command line.

    Raises:
        OptionError: Options that exclude each other.
    """
    values: Any = {} if config is None else load_yaml(config)
    if not isinstance(values, dict):
        raise InputError(f"{config} must hold a mapping such as 'defense: [grada]', got {clip(values)}")
    settings = RunSettings.of(values)
    axes = {**{name: value for name, value in values.items() if name not in SETTINGS}, **given}
    if preset is None:
        grid = Grid.of({"data": ["sample"], "defense": ["guard"], **axes})
        return Chosen(grid.scenarios(), settings)
    if preset in stream_preset_names():
        raise OptionError(f"{preset} is measured over time; give its data as well, such as --stream timeline")
    _refuse(axes, FOR_PRESETS, "--preset")
    table = load_preset(preset, grader=settings.grader, **{name: _single(name, v) for name, v in axes.items()})
    for line in table.describe():
        say(line)
    if not table.scenarios:
        why = "; ".join(table.lacks) or "every row needs a generator; give one with -g, such as -g extractive"
        raise OptionError(f"nothing of {preset} can be measured here: {why}")
    return Chosen(table.scenarios, settings, table)


def _refuse(given: Sequence[str] | Mapping[str, Any], allowed: frozenset[str], owner: str) -> None:
    for name in given:
        if name not in allowed:
            raise OptionError(f"{owner} determines {name}; leave it out")


def _single(name: str, value: Any) -> Any:
    """The one value of an axis, as presets and streams take it; seeds may be several."""
    values = axis(name, value)
    if name != "seed" and len(values) > 1:
        raise OptionError(f"give one {name} here, got {clip(', '.join(map(str, values)))}")
    return values if name == "seed" else values[0]


def make_questions(given: Mapping[str, Any], count: int, folder: Path | None) -> list[str]:
    """Make questions from documents and write them beside the run, with the documents as passages to retrieve from.

    Returns:
        The file of questions, in place of the data.

    Raises:
        OptionError: Not one folder or file of documents.
        InputError: No question can be made of it.
    """
    from unpoison.scan.sources import read_documents
    from unpoison_lab.questions.question_set import document_of, make_questions, write_questions

    def left_out(failure: UnreadDocument) -> None:
        say(f"note: {failure.location}: {failure.error}")

    read = read_documents(_single("data", given.get("data", ())), left_out)
    texts = [document_of(one.id, one.passage.text, one.passage.title or "") for one in read]
    made = make_questions(texts, count)
    path = write_questions(made, (folder or RUNS) / "questions")
    say(f"{count_noun(len(made.questions), 'question')} are in {path}; read them before you trust a figure")
    return [str(path)]


def measure(chosen: Chosen, folder: Path | None, jobs: int, outputs: Outputs) -> int:
    """Measure, write and show the results; returns the exit code."""
    need_answers(outputs.gates, (scenario.generator for scenario in chosen.scenarios))
    run = _run(chosen, folder, jobs)
    report = Report.of(run, preset=chosen.preset)
    usable = sum(len(cell.usable) for cell in run.cells)
    attacked = [cell for cell in run.cells if not cell.scenario.clean] or run.cells
    if chosen.preset is not None and not any(cell.usable for cell in attacked):
        first = next((problem for summary in report.summaries for problem in summary.problems), "no question")
        raise InputError(
            f"no attack of {chosen.preset.name} can be measured on this data: {first}; give the paper's data, such as "
            "evaluation-data, which 'python -m benchmarks data get' builds in a checkout"
        )
    for path in outputs.files:
        write_report(report, path)
    if outputs.as_json:
        print(as_json(report), end="")  # noqa: T201  the output of the command
    else:
        show("Percent, with 95 % intervals. Clean: the same defense without an attack.", "")
        compared = (part for table in comparison_tables(report) for part in table.split(4))
        for table in (*summary_tables(report, short=True), *guarantee_tables(report), *compared):
            show(report_table(table), "")
    _say_problems(report)
    return conclude(outputs.gates, _measured_cells(report), _say_outcome(run, usable))


def _run(chosen: Chosen, folder: Path | None, jobs: int) -> Run:
    """Measure, then judge and grade the replies if a judge or grader is given."""
    settings = chosen.settings
    where = folder or RUNS / folder_name(chosen.scenarios)
    where.mkdir(parents=True, exist_ok=True)
    with progress() as advance:
        runner = Runner(
            where,
            chosen.scenarios,
            jobs=jobs,
            limits=Limits(deadline=settings.deadline),
            vectors=None if folder else RUNS / "vectors.db",
            progress=advance,
            command=sys.argv,
        )
        try:
            obstacles = runner.obstacles()
        except UnpoisonError:
            for empty in (where, where.parent):  # a refused command leaves no folder behind
                if empty.resolve() != Path.cwd() and not any(empty.iterdir()):
                    empty.rmdir()
            raise
        for problem in obstacles:
            say(f"cannot be measured: {problem}")
        try:
            run = runner.run()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"what was measured is saved in {where}, and the same command resumes") from None
        for spec, form in ((settings.judge, SCORING), (settings.grader, GRADING)):
            if spec is not None:
                run = judge_run(run, runner.bench.generator(spec), form, jobs=jobs, progress=advance)
    return run


def _measured_cells(report: Report) -> list[MeasuredCell]:
    return [
        MeasuredCell(
            f"{summary.scenario.defense}, {report.caption(summary.scenario)}",
            summary.figures,
            clean=summary.scenario.clean,
            baseline=is_baseline(summary.scenario.defense),
        )
        for summary in report.summaries
    ]


def _say_problems(report: Report) -> None:
    """Report rows left out, failures, and attacks that missed their goal, each once."""
    counts = Counter(problem for summary in report.summaries for problem in summary.problems)
    remarks = rows_left_out(report)
    remarks += [problem if n == 1 else f"{problem} (in {n} scenarios)" for problem, n in counts.items()]
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


def _say_outcome(run: Run, usable: int) -> int:
    """One line at the end, and the exit code: 0 all measured, 1 some failed, 2 nothing was measured."""
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


def presets_table() -> Table:
    """Every preset with its source."""
    rows = [(name, (preset := load_preset(name)).source, preset.title) for name in preset_names()]
    for name in stream_preset_names():
        over = load_stream_preset(name, generator="extractive", nli="lexical")
        rows.append((name, over.source, f"{over.title} (--stream)"))
    return text_table(("preset", "source", "what it shows"), rows, box=None)


def measure_over_time(
    data: str,
    given: Mapping[str, Any],
    plan: Mapping[str, Any],
    preset: str | None,
    folder: Path | None,
    outputs: Outputs,
) -> int:
    """Measure over time, write and show it; the exit code.

    Raises:
        OptionError: An option that means nothing over time or beside a preset, or several models of one kind.
        UnknownNameError: No such preset over time.
        InputError: Data that cannot be read.
        ModelError: A model failed for good.
    """
    _refuse([*given, *(name for name, value in plan.items() if value)], FOR_STREAMS, "--stream")
    writers = {path: over_time.WRITERS[check_suffix(path, over_time.WRITERS)] for path in outputs.files}
    models = {name: _single(name, given[name]) for name in ("generator", "nli", "encoder", "limit") if name in given}
    generator = models.setdefault("generator", best_reader())
    table = None
    if preset is not None:
        _refuse(given, FOR_STREAMS - {"defense"}, "--preset")
        nli = str(answer_judge(models.get("nli"), generator))
        table = load_stream_preset(preset, generator=generator, nli=nli)
        for line in table.describe():
            say(line)
    methods = methods_of(axis("defense", given.get("defense", "vanilla,radar"))) if table is None else table.methods
    where = folder or RUNS / "streams"
    where.mkdir(parents=True, exist_ok=True)
    with progress() as advance:
        study = run_study(
            data,
            methods,
            attacks=ATTACKS if table is None else table.attacks,
            limits=Limits(deadline=120.0),
            replies=where / "replies.db",
            progress=advance,
            **models,
        )
    for path, text_of in writers.items():
        write_text(path, text_of(study, table))
    if outputs.as_json:
        print(over_time.as_json(study, table), end="")  # noqa: T201  the output of the command
    else:
        show(over_time.study_summary(study), "Percent, with 95 % intervals.", "")
        for one in over_time.study_tables(study, table):
            show(report_table(one), "")
    for line in study.left_out:
        say(f"left out: {line}")
    answers = sum(len(result.records) for results in study.results.values() for result in results.values())
    say(f"measured {count_noun(answers, 'answer')} of {count_noun(len(methods), 'method')} over time")
    return 0


MAX_GATES = 20
"""Failed gates that are named."""


def conclude(gates: Sequence[Gate], cells: Sequence[MeasuredCell], code: int) -> int:
    """Check the gates of `--fail-if` and report failures.

    Returns:
        1 if a gate failed, 2 if anything else went wrong; without gates `code`.

    Raises:
        InputError: A gate that applies to nothing.
    """
    if not gates:
        return code
    results = check_gates(gates, cells)
    failed = [result for result in results if result.failed]
    for result in failed[:MAX_GATES]:
        say(f"gate failed: {result.rule}: {result.message}")
    if len(failed) > MAX_GATES:
        say(f"and {len(failed) - MAX_GATES:,} more")
    if not failed:
        say(f"all {len(results):,} checks passed")
    return 1 if failed else 2 if code else 0
