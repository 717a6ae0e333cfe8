"""`unpoison evaluate`: what each defense saves, what it damages, and what it costs."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpoison.cli.options import Against, FailIf, Junit, Sarif, argument, from_here, option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unpoison.bench.evaluation.runs import Run
    from unpoison.bench.report import Report
    from unpoison.cli.runs import Chosen

__all__ = ["EXAMPLES", "evaluate"]

RUNS = Path("unpoison-runs")
"""Where runs go whose folder is not named; the folder's name is a hash of what is measured."""

axis_option = partial(option, rich_help_panel="Axes (several values make a grid)")
data_option = partial(option, rich_help_panel="What else is measured, and on what")
plan_option = partial(option, rich_help_panel="A whole plan instead of axes")
run_option = partial(option, rich_help_panel="How it runs")
worth_option = partial(option, rich_help_panel="What answers are worth and cost")
output_option = partial(option, rich_help_panel="What is written")
"""The sections of the help, in which options stand together."""

Texts = list[str] | None

EXAMPLES = """\b
Examples:
  unpoison evaluate
  unpoison evaluate -d grada,ragdefender,trustrag sample
  unpoison evaluate -d grada:alpha=0.3,keep=5,trustrag -a poisonedrag,pia --poisons 1,3 data.jsonl --report report.html
  unpoison evaluate -d grada --vary alpha=0.2,0.4,0.6 -e minilm data.jsonl --csv sweep.csv
  unpoison evaluate -d trustrag,radar -g openai:gpt-4o-mini --price gpt-4o-mini=0.15/0.6 --jobs 8 data.jsonl
  unpoison evaluate -d vote,robustrag -g reader --k 50 --certify data.jsonl --report guarantees.html
  unpoison evaluate --config grid.yaml
  unpoison evaluate --preset grada-table-1 evaluation-data -e minilm
  unpoison evaluate --manifest unpoison-runs/1f0c.../manifest.json
  unpoison evaluate -d guard -g extractive --fail-if 'asr > 5%' --junit junit.xml sample
  unpoison evaluate --stream timeline -d radar,vanilla -g extractive --report over-time.html
  unpoison evaluate --stream timeline --preset radar-table-17 -g extractive

A run that was interrupted goes on where it stopped: give the same command again.
Exit status: 0 when everything was measured, 1 when some questions failed, 2 when nothing could be done; with --fail-if
or --against 1 when a gate failed, 2 for everything else.
"""


def evaluate(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        argument(
            "DATA",
            "Names of evaluation files, files in the shared format, sample (built in), poisonedrag:FILE, "
            "robustrag:FILE, radar:FILE, ramdocs:FILE, beir:FOLDER, hub:NAME. With --preset: a folder of data sets "
            "(evaluation-data: those that 'python -m benchmarks data get' built), or one data set.",
        ),
    ] = None,
    defense: Annotated[
        Texts,
        axis_option(
            "--defense -d NAME[:OPTIONS],...",
            "What is measured; guard, your own as my_module:MyDefense.",
            callback=from_here,
        ),
    ] = None,
    attack: Annotated[
        Texts,
        axis_option("--attack -a NAME[:OPTIONS],...", "See 'unpoison attack --list'.", callback=from_here),
    ] = None,
    poisons: Annotated[Texts, axis_option("N,...", "Texts planted per question; 1.")] = None,
    rate: Annotated[
        Texts, axis_option("PAPER:AMOUNT,...", "In place of --poisons: trustrag:0.4, ragdefender:2x5.")
    ] = None,
    policy: Annotated[
        Texts,
        axis_option(
            "POLICY,...",
            "prepend, retrieve, retrieve-batch, corpus, replace-at, replace-last, middle, pool, or labelled "
            "(the file's own).",
        ),
    ] = None,
    positions: Annotated[Texts, axis_option("P,P+P,...", "Places from 1 that poison takes, joined by +.")] = None,
    prefix: Annotated[
        bool | None, data_option("--prefix/--no-prefix", "Put the question before planted texts, or not.")
    ] = None,
    triggered: Annotated[
        bool | None, data_option("--triggered/--untriggered", "Ask with a trigger attack's trigger, or without.")
    ] = None,
    k: Annotated[Texts, axis_option("--k K,...", "Passages per question; 10.")] = None,
    retriever: Annotated[
        Texts, axis_option("ENCODER,...", "For the policies retrieve and corpus: bm25, an encoder, hybrid.")
    ] = None,
    encoder: Annotated[Texts, axis_option("--encoder -e ENCODER,...", "lexical, minilm, st:NAME.")] = None,
    generator: Annotated[
        Texts, axis_option("--generator -g GENERATOR,...", "Answers; without one, screening only.")
    ] = None,
    architecture: Annotated[
        Texts,
        axis_option("NAME,...", "Who answers from what is kept: plain, blended (hybrid retrieval), replug, self-rag."),
    ] = None,
    style: Annotated[Texts, axis_option("STYLE,...", "Prompts: safe, or plain as the papers' baselines ask.")] = None,
    nli: Annotated[Texts, axis_option("NLI,...", "lexical, cross:NAME or onnx:PATH.")] = None,
    nli_noise: Annotated[Texts, axis_option("P,...", "Replace NLI outputs at random with this probability.")] = None,
    owned: Annotated[
        Texts,
        axis_option(
            "WHO,...",
            "Which sources the attacker holds: one (new, for all texts), each (a new one a text), page (on a host "
            "where anybody writes), known:N (N established ones), sleepers:N (N that were honest "
            "before). By default planted texts have no source.",
        ),
    ] = None,
    sources: Annotated[Texts, axis_option("FILE,...", "A policy or history of sources for the defenses.")] = None,
    history: Annotated[
        Texts,
        axis_option(
            "DATA,...", "Defenses know sources from other questions: seen (of the data itself), or another data set."
        ),
    ] = None,
    vary: Annotated[
        Texts, axis_option("OPTION=V,V", "An option of the defenses that have it; may be repeated.")
    ] = None,
    seed: Annotated[Texts, axis_option("SEED,...", "0.")] = None,
    limit: Annotated[int | None, data_option("N", "The first N questions only.", min=1)] = None,
    corpus: Annotated[
        str | None, data_option("FILE|none", "Clean passages that fill contexts; corpus.jsonl beside the data.")
    ] = None,
    baseline: Annotated[bool, data_option("", "Also measure no defense.")] = True,
    clean: Annotated[bool, data_option("", "Also measure without an attack.")] = True,
    certified: Annotated[
        bool,
        data_option(
            "--certify",
            "Show how many questions are answered rightly and provably so whatever m of the passages become.",
        ),
    ] = False,
    config: Annotated[Path | None, plan_option("FILE", "A grid in YAML; options given here win.")] = None,
    preset: Annotated[
        str | None, plan_option("NAME", "A paper's table, published numbers beside; 'list' lists them.")
    ] = None,
    stream: Annotated[
        str | None,
        plan_option(
            "DATA",
            "Measure over time instead, static against dynamic: timeline (built in), radar-dynamic:FILE, or a "
            "file whose rows have a time.",
        ),
    ] = None,
    manifest: Annotated[Path | None, plan_option("FILE", "Repeat the run of this manifest.json exactly.")] = None,
    folder: Annotated[Path | None, run_option("FOLDER", f"Where the run is kept; {RUNS}/HASH by default.")] = None,
    encoder_cache: Annotated[
        Path | None, run_option("FILE", f"Where vectors are kept; {RUNS}/vectors.db, or in the folder.")
    ] = None,
    jobs: Annotated[int, run_option("N", "Questions at the same time.", min=1, max=64)] = 1,
    deadline: Annotated[float, run_option("SECONDS", "The longest that one answer may take.")] = 120.0,
    retry_failed: Annotated[bool, run_option("--retry-failed", "Try again what failed before.")] = False,
    judge: Annotated[
        str | None, worth_option("GENERATOR", "Have a model score the answers from 1 to 10, for long answers.")
    ] = None,
    grader: Annotated[
        str | None, worth_option("GENERATOR", "Have a model grade short answers A, B or C, as RADAR counts accuracy.")
    ] = None,
    price: Annotated[Texts, worth_option("MODEL=IN/OUT", "Prices per million tokens; may be repeated.")] = None,
    report: Annotated[
        list[Path] | None,
        output_option("FILE", "Write .html (one page, works offline), .md, .csv or .json; may be repeated."),
    ] = None,
    markdown: Annotated[Path | None, output_option("FILE", "Write Markdown.")] = None,
    csv: Annotated[Path | None, output_option("FILE", "Write CSV, one line per scenario.")] = None,
    tables: Annotated[
        Path | None,
        output_option("FOLDER", "Write every table as LaTeX (booktabs) and CSV, every picture as SVG."),
    ] = None,
    fail_if: FailIf = None,
    against: Against = None,
    junit: Junit = None,
    sarif: Sarif = None,
    as_json: Annotated[bool, output_option("--json", "Write JSON to standard output instead of tables.")] = False,
) -> None:
    """Measure defenses under attack and without one, with 95 % intervals; by default guard on the built-in sample.

    Every combination of the axes is one scenario. No defense, and every defense without an attack, are measured too,
    so that what a defense saves stands beside what it damages.
    """
    options = locals()
    from unpoison.bench.evaluation.grids import AXES
    from unpoison.bench.evaluation.measures import MEASURES
    from unpoison.bench.evaluation.specs import parse_variations
    from unpoison.bench.evaluation.summary import Price
    from unpoison.bench.report import Report
    from unpoison.bench.report import as_json as json_text
    from unpoison.cli import runs
    from unpoison.cli.display import show
    from unpoison.cli.gates import Checks, check_outputs, measured_cells
    from unpoison.errors import OptionError
    from unpoison.runtime.driver import Limits

    if stream is not None:
        from unpoison.cli.streams import evaluate_stream, options_on_command_line

        evaluate_stream(
            stream,
            options_on_command_line(context),
            defenses=defense,
            generator=generator,
            nli=nli,
            encoder=encoder,
            limit=limit,
            deadline=deadline,
            folder=folder or RUNS / "streams",
            preset=preset,
            reports=report or (),
            as_json=as_json,
        )
        return
    if preset == "list":
        show(runs.presets_table())
        return
    runs.check_certified(certified, clean)
    given = {name: value for name, value in options.items() if name in AXES and value not in (None, [])}
    given |= {"vary": parse_variations(vary)} if vary else {}
    given |= {name: False for name in ("baseline", "clean") if not options[name]}
    prices = dict(map(Price.of, price or ()))
    check_outputs(report or (), markdown, csv)
    if tables is not None and tables.exists() and not tables.is_dir():
        raise OptionError(f"--tables {tables} is a file; give a folder, which is made where there is none")
    checks = Checks.of(MEASURES, fail_if, against, junit, sarif)
    chosen = runs.choose(given, config, preset, manifest, grader=grader)
    checks.need_generator(chosen.scenarios)
    run = _run(
        chosen,
        folder,
        judge=judge,
        grader=grader,
        jobs=jobs,
        limits=Limits(deadline=deadline),
        retry_failed=retry_failed,
        vectors=encoder_cache or (None if folder else RUNS / "vectors.db"),
    )
    results = Report.of(run, prices=prices, preset=chosen.preset)
    _write_files(results, report or (), markdown, csv, tables)
    if as_json:
        print(json_text(results), end="")  # noqa: T201  this is what the command line is for
    else:
        runs.show_figures(results)
    runs.show_certified(results, wanted=certified, to_stdout=not as_json)
    runs.say_problems(results)
    problems = [problem for summary in results.summaries for problem in summary.problems]
    where = str(config) if config is not None else str((data or ["sample"])[0])
    raise typer.Exit(checks.conclude(measured_cells(results), problems, runs.say_outcome(run), where))


def _run(
    chosen: Chosen, folder: Path | None, *, judge: str | None, grader: str | None, jobs: int, **options: Any
) -> Run:
    """Measure what was chosen, then have the replies judged and graded where that is wanted; `options` of `Runner`."""
    from unpoison.bench.evaluation.llm_judge import grade_run, judge_run
    from unpoison.bench.evaluation.runner import Runner
    from unpoison.bench.evaluation.runs import folder_name
    from unpoison.cli.common import progress, say

    if folder is None:
        RUNS.mkdir(exist_ok=True)
        folder = RUNS / folder_name(chosen.scenarios)
    with progress() as advance:
        runner = Runner(folder, chosen.scenarios, jobs=jobs, progress=advance, command=sys.argv, **options)
        if chosen.manifest is not None:
            for difference in runner.check(chosen.manifest):
                say(f"note: {difference}")
        run = runner.run()
        if judge is not None:
            run = judge_run(run, runner.bench.generator(judge), jobs=jobs, progress=advance)
        if grader is not None:
            run = grade_run(run, runner.bench.generator(grader), jobs=jobs, progress=advance)
    return run


def _write_files(
    results: Report, reports: Sequence[Path], markdown: Path | None, csv: Path | None, tables: Path | None
) -> None:
    """The report in the form that each file's suffix names, as Markdown and CSV, and table by table."""
    from unpoison.bench.report import as_csv, as_markdown, write_report, write_tables
    from unpoison.cli.common import say

    for path in reports:
        write_report(results, path)
    for file, text_of in ((markdown, as_markdown), (csv, as_csv)):
        if file is not None:
            file.write_text(text_of(results), encoding="utf-8")
    if tables is not None:
        say(f"{len(write_tables(results, tables))} files of tables and pictures are in {tables}")
