"""One function carries out a plan of measurements, as `unpoison evaluate` does.

result = evaluate(EvaluationPlan({"defense": "guard,grada"}, folder=Path("runs/first")))
result.write(Path("report.html"))

A plan is a grid of scenarios, a paper's table, or a study over time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from unpoison.errors import InputError, OptionError, UnpoisonError, clip
from unpoison.models.loading import answer_judge, best_reader
from unpoison.report.document import Table, check_suffix, write_text
from unpoison.runtime.driver import Limits
from unpoison.scan.sources import all_documents
from unpoison.utils.files import load_yaml
from unpoison.utils.plain_text import count_noun
from unpoison_lab.evaluation.adaptations import Method, methods_of
from unpoison_lab.evaluation.gates import Gate, MeasuredCell, conclude, need_answers
from unpoison_lab.evaluation.grids import Grid, axis
from unpoison_lab.evaluation.llm_judge import GRADING, SCORING, judge_run
from unpoison_lab.evaluation.measures import MEASURES
from unpoison_lab.evaluation.presets import Preset, load_preset, load_stream_preset, stream_preset_names
from unpoison_lab.evaluation.runner import Runner
from unpoison_lab.evaluation.runs import Run, folder_name
from unpoison_lab.evaluation.scenarios import Scenario
from unpoison_lab.evaluation.streams import ATTACKS, run_study
from unpoison_lab.questions.question_set import document_of, make_questions, write_questions
from unpoison_lab.report import WRITERS, Report, over_time
from unpoison_lab.report.model import is_baseline
from unpoison_lab.report.tables import comparison_tables, guarantee_tables, rows_left_out, summary_tables

__all__ = ["EvaluationPlan", "evaluate"]

RUNS = Path("unpoison-runs")
"""The default folder of runs; each run's folder is named by a hash of its scenarios."""

FOR_PRESETS = frozenset({"data", "encoder", "retriever", "generator", "nli", "seed", "limit"})
FOR_STREAMS = frozenset({"defense", "encoder", "generator", "nli", "limit"})
"""The axes that go with a preset and with a study over time."""

SETTINGS = ("judge", "grader", "deadline")
"""What a configuration file sets beside the axes."""

Note = Callable[[str], None]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class EvaluationPlan:
    """What is measured, how, and where it is kept.

    Attributes:
        axes: Values of the axes of a grid (`evaluation.grids`): data, defense, attack, ...; guard on the sample by
            default.
        preset: A paper's table that determines the scenarios.
        stream: Data to measure over time.
        questions: Make so many questions of the documents that are given as data.
        judge: Scores long answers.
        grader: Grades short answers.
        deadline: Seconds of one answer, at most.
        folder: Where the run is kept; the same plan resumes there. None for one in `unpoison-runs`.
        jobs: Questions at the same time.
        fail_if: Gates.
    """

    axes: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    stream: str | None = None
    questions: int | None = None
    judge: str | None = None
    grader: str | None = None
    deadline: float = 120.0
    folder: Path | None = None
    jobs: int = 1
    fail_if: Sequence[str] = ()

    def with_file(self, path: Path) -> Self:
        """The plan with the axes and settings of a YAML file, over which the plan's own take precedence.

        Raises:
            InputError: The file holds no mapping.
            OptionError: A deadline that is not a number.
        """
        values: Any = load_yaml(path)
        if not isinstance(values, dict):
            raise InputError(f"{path} must hold a mapping such as 'defense: [grada]', got {clip(values)}")
        deadline = values.get("deadline", self.deadline)
        if isinstance(deadline, bool) or not isinstance(deadline, (int, float)):
            raise OptionError(f"deadline must be a number of seconds, got {clip(deadline)}")
        axes = {name: value for name, value in values.items() if name not in SETTINGS}
        settings = {name: values[name] for name in SETTINGS if name in values}
        return replace(self, axes={**axes, **self.axes}, **settings)


@dataclass(frozen=True)
class Evaluation:
    """What a plan gave.

    Attributes:
        heading: Lines above the tables.
        tables: To be shown.
        remarks: Sentences on what was left out or failed, and the outcome.
        status: 0 if everything was measured, 1 if some failed, 2 if nothing was measured; with gates 1 if one failed, 2
            for everything else.
        texts: Suffix of a file -> a function that makes its text.
        report: The figures of a grid; None for a study over time.
    """

    heading: tuple[str, ...]
    tables: tuple[Table, ...]
    remarks: tuple[str, ...]
    status: int
    texts: Mapping[str, Callable[[], str]]
    report: Report | None = None

    def write(self, path: Path) -> None:
        """Write it in the format that the suffix names.

        Raises:
            OptionError: Another suffix, or a place that cannot be written to.
        """
        write_text(path, self.texts[check_suffix(path, self.texts)]())

    def as_json(self) -> str:
        return self.texts[".json"]()


def evaluate(
    plan: EvaluationPlan,
    *,
    note: Note = lambda text: None,
    progress: Progress = lambda done, total, doing: None,
    command: Sequence[str] = (),
) -> Evaluation:
    """Carry out a plan.

    Args:
        plan: The plan.
        note: Called with what is worth knowing before it is measured.
        progress: Called after every finished unit.
        command: The command line, for the manifest.

    Raises:
        OptionError, UnknownNameError: A plan that cannot be carried out; nothing was measured.
        InputError: Data that cannot be read, or nothing of a preset that can be measured on it.
    """
    gates = tuple(Gate.of(text, MEASURES) for text in plan.fail_if)
    if plan.stream is not None:
        return _over_time(plan, plan.stream, note, progress)
    scenarios, table = _scenarios(plan, note)
    need_answers(gates, (scenario.generator for scenario in scenarios))
    report = Report.of(_run(plan, scenarios, note, progress, command), preset=table)
    attacked = [cell for cell in report.run.cells if not cell.scenario.clean] or report.run.cells
    if table is not None and not any(cell.usable for cell in attacked):
        first = next((problem for summary in report.summaries for problem in summary.problems), "no question")
        raise InputError(
            f"no attack of {table.name} can be measured on this data: {first}; give the paper's data, such as "
            "evaluation-data, which 'python -m benchmarks data get' builds in a checkout"
        )
    outcome, status = _outcome(report.run)
    checks, status = conclude(gates, _measured_cells(report), status)
    compared = (part for one in comparison_tables(report) for part in one.split(4))
    return Evaluation(
        ("Percent, with 95 % intervals. Clean: the same defense without an attack.",),
        (*summary_tables(report, short=True), *guarantee_tables(report), *compared),
        (*_problems(report), outcome, *checks),
        status,
        {suffix: lambda make=make: make(report) for suffix, make in WRITERS.items()},  # type: ignore[misc]
        report,
    )


def _scenarios(plan: EvaluationPlan, note: Note) -> tuple[tuple[Scenario, ...], Preset | None]:
    """The scenarios of a grid or a paper's table."""
    axes = dict(plan.axes)
    if plan.questions is not None:
        axes["data"] = [str(_make_questions(plan, plan.questions, note))]
    if plan.preset is None:
        return Grid.of({"data": ["sample"], "defense": ["guard"], **axes}).scenarios(), None
    if plan.preset in stream_preset_names():
        raise OptionError(f"{plan.preset} is measured over time; give its data as well, such as --stream timeline")
    _refuse(axes, FOR_PRESETS, "--preset")
    table = load_preset(plan.preset, grader=plan.grader, **{name: _single(name, v) for name, v in axes.items()})
    for line in table.describe():
        note(line)
    if not table.scenarios:
        model = axes.get("generator")
        needed = f"a language model, and {clip(model)} copies from passages" if model else "a generator"
        why = "; ".join(table.lacks) or f"every row needs {needed}; give one with -g, such as -g openai:MODEL"
        raise OptionError(f"nothing of {plan.preset} can be measured here: {why}")
    return table.scenarios, table


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


def _make_questions(plan: EvaluationPlan, count: int, note: Note) -> Path:
    """A file of questions made of documents, beside the run, with the documents as passages to retrieve from."""
    source = _single("data", plan.axes.get("data", ()))
    read, _ = all_documents(source, note)
    made = make_questions([document_of(one.id, one.passage.text, one.passage.title or "") for one in read], count)
    path = write_questions(made, (plan.folder or RUNS) / "questions")
    note(f"{count_noun(len(made.questions), 'question')} are in {path}; read them before you trust a figure")
    return path


def _run(
    plan: EvaluationPlan, scenarios: Sequence[Scenario], note: Note, progress: Progress, command: Sequence[str]
) -> Run:
    """Measure, then judge and grade the replies if a judge or grader is given."""
    where = plan.folder or RUNS / folder_name(scenarios)
    made = [path for path in (where, where.parent) if not path.exists()]
    where.mkdir(parents=True, exist_ok=True)
    limits, vectors = Limits(deadline=plan.deadline), None if plan.folder else RUNS / "vectors.db"
    runner = Runner(
        where, scenarios, jobs=plan.jobs, limits=limits, vectors=vectors, progress=progress, command=command
    )
    try:
        obstacles = runner.obstacles()
    except UnpoisonError:
        for folder in made:  # a refused plan leaves no folder behind
            if not any(folder.iterdir()):
                folder.rmdir()
        raise
    for problem in obstacles:
        note(f"cannot be measured: {problem}")
    try:
        run = runner.run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"what was measured is saved in {where}, and the same command resumes") from None
    for spec, form in ((plan.judge, SCORING), (plan.grader, GRADING)):
        if spec is not None:
            run = judge_run(run, runner.bench.generator(spec), form, jobs=plan.jobs, progress=progress)
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


MAX_PROBLEMS = 20
"""Problems that are said one by one."""

MAX_ALIKE = 5
"""Rows with one problem that are said one by one."""

_LINE = re.compile(r"line [\d,]+( \('[^']*'\))?: ")


def _problems(report: Report) -> list[str]:
    """Rows left out, failures, and attacks that missed their goal, each once."""
    counts = Counter(problem for summary in report.summaries for problem in summary.problems)
    remarks, alike = list[str](), Counter[str]()
    for remark in rows_left_out(report):
        alike[kind := _LINE.sub("", remark)] += 1
        remarks += [remark] if alike[kind] <= MAX_ALIKE else []
    remarks += [f"and {n - MAX_ALIKE:,} more rows: {kind}" for kind, n in alike.items() if n > MAX_ALIKE]
    remarks += [problem if n == 1 else f"{problem} (in {n} scenarios)" for problem, n in counts.items()]
    said = remarks[:MAX_PROBLEMS]
    if len(remarks) > MAX_PROBLEMS:
        said.append(f"and {len(remarks) - MAX_PROBLEMS:,} more; --json and --report list them")
    short = {
        (s.scenario.attack, s.scenario.poisons): s["reached"].value
        for s in report.summaries
        if s.applies("reached") and s["reached"].value < 1
    }
    return said + [
        f"note: {attack} x {poisons}: {100 * (1 - share):.0f} % of the planted texts missed the attack's own goal"
        for (attack, poisons), share in short.items()
    ]


def _outcome(run: Run) -> tuple[str, int]:
    """One sentence on what was measured, and the status."""
    usable = sum(len(cell.usable) for cell in run.cells)
    failed = sum(len(cell.failures) for cell in run.cells)
    broken = sum(cell.error is not None for cell in run.cells)
    resumed = run.manifest["resumed"]
    sentence = (
        f"measured {count_noun(usable, 'question')} in {count_noun(len(run.cells), 'scenario')}"
        + (f"; {resumed:,} were there already" if resumed else "")
        + (f"; {failed:,} failed" if failed else "")
        + (f"; {count_noun(broken, 'scenario')} could not begin" if broken else "")
        + f"; the run is in {run.folder}"
    )
    return sentence, 2 if not usable else 1 if failed or broken else 0


def _over_time(plan: EvaluationPlan, data: str, note: Note, progress: Progress) -> Evaluation:
    """A study over time: several methods on the same questions, step by step."""
    changed = [one.name for one in fields(plan) if getattr(plan, one.name) != getattr(EvaluationPlan(), one.name)]
    own = ("axes", "preset", "stream", "folder", "jobs")
    _refuse([*plan.axes, *(name for name in changed if name not in own)], FOR_STREAMS, "--stream")
    given = {name: _single(name, plan.axes[name]) for name in FOR_STREAMS - {"defense"} if name in plan.axes}
    models = {"generator": best_reader(), **given}
    methods: Mapping[str, Method] = methods_of(axis("defense", plan.axes.get("defense", "vanilla,radar")))
    attacks, table = ATTACKS, None
    if plan.preset is not None:
        _refuse(plan.axes, FOR_STREAMS - {"defense"}, "--preset")
        nli = str(answer_judge(models.get("nli"), models["generator"]))
        table = load_stream_preset(plan.preset, generator=models["generator"], nli=nli)
        methods, attacks = table.methods, table.attacks
        for line in table.describe():
            note(line)
    where = plan.folder or RUNS / "streams"
    where.mkdir(parents=True, exist_ok=True)
    study = run_study(
        data,
        methods,
        attacks=attacks,
        limits=Limits(deadline=plan.deadline),
        replies=where / "replies.db",
        progress=progress,
        **models,
    )
    answers = sum(len(result.records) for results in study.results.values() for result in results.values())
    return Evaluation(
        (over_time.study_summary(study), "Percent, with 95 % intervals."),
        tuple(over_time.study_tables(study, table)),
        (
            *(f"left out: {line}" for line in study.left_out),
            f"measured {count_noun(answers, 'answer')} of {count_noun(len(methods), 'method')} over time",
        ),
        0,
        {suffix: lambda make=make: make(study, table) for suffix, make in over_time.WRITERS.items()},  # type: ignore[misc]
    )
