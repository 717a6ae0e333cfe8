"""`unpoison evaluate`: what each defense saves, what it damages, and what it costs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from unpoison.cli import evaluate_options as options
from unpoison.cli.evaluate_options import RUNS
from unpoison.cli.options import Against, FailIf, Junit, Sarif

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from unpoison.bench.evaluation.runs import Run
    from unpoison.bench.report import Report
    from unpoison.cli.runs import Chosen

__all__ = ["EXAMPLES", "evaluate"]

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
    data: options.Data = None,
    defense: options.Defense = None,
    attack: options.Attack = None,
    poisons: options.Poisons = None,
    rate: options.Rate = None,
    policy: options.Policy = None,
    positions: options.Positions = None,
    prefix: options.Prefix = None,
    triggered: options.Triggered = None,
    k: options.K = None,
    retriever: options.Retriever = None,
    encoder: options.Encoder = None,
    generator: options.Generator = None,
    architecture: options.Architecture = None,
    style: options.Style = None,
    nli: options.Nli = None,
    nli_noise: options.NliNoise = None,
    owned: options.Owned = None,
    sources: options.Sources = None,
    history: options.History = None,
    vary: options.Vary = None,
    seed: options.Seed = None,
    limit: options.Limit = None,
    corpus: options.Corpus = None,
    baseline: options.Baseline = True,
    clean: options.Clean = True,
    certified: options.Certified = False,
    config: options.Config = None,
    preset: options.Preset = None,
    stream: options.Stream = None,
    manifest: options.Manifest = None,
    folder: options.Folder = None,
    encoder_cache: options.EncoderCache = None,
    jobs: options.Jobs = 1,
    deadline: options.Deadline = 120.0,
    retry_failed: options.RetryFailed = False,
    judge: options.Judge = None,
    grader: options.Grader = None,
    price: options.Price = None,
    report: options.Report = None,
    markdown: options.Markdown = None,
    csv: options.Csv = None,
    fail_if: FailIf = None,
    against: Against = None,
    junit: Junit = None,
    sarif: Sarif = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure defenses under attack and without one, with 95 % intervals; by default guard on the built-in sample.

    Every combination of the axes is one scenario. No defense, and every defense without an attack, are measured too,
    so that what a defense saves stands beside what it damages.
    """
    from unpoison.bench.evaluation.measures import MEASURES
    from unpoison.bench.evaluation.specs import parse_variations
    from unpoison.bench.evaluation.summary import Price
    from unpoison.bench.report import Report
    from unpoison.bench.report import as_json as json_text
    from unpoison.cli import runs
    from unpoison.cli.common import check_outputs
    from unpoison.cli.display import show
    from unpoison.cli.gates import Checks, measured_cells
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
    axes = {
        "data": data,
        "defense": defense,
        "attack": attack,
        "poisons": poisons,
        "rate": rate,
        "policy": policy,
        "positions": positions,
        "prefix": prefix,
        "triggered": triggered,
        "k": k,
        "retriever": retriever,
        "encoder": encoder,
        "generator": generator,
        "architecture": architecture,
        "style": style,
        "nli": nli,
        "nli_noise": nli_noise,
        "owned": owned,
        "sources": sources,
        "history": history,
        "vary": parse_variations(vary or ()),
        "seed": seed,
        "limit": limit,
        "corpus": corpus,
        "baseline": None if baseline else False,
        "clean": None if clean else False,
    }
    runs.check_certified(certified, clean)
    given = {name: value for name, value in axes.items() if value not in (None, [], {})}
    prices = dict(map(Price.of, price or ()))
    check_outputs(report or (), markdown, csv)
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
    _write_files(results, report or (), markdown, csv)
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


def _write_files(results: Report, reports: Sequence[Path], markdown: Path | None, csv: Path | None) -> None:
    """The report in the form that each file's suffix names, and as Markdown and CSV."""
    from unpoison.bench.report import as_csv, as_markdown, write_report

    for path in reports:
        write_report(results, path)
    for file, text_of in ((markdown, as_markdown), (csv, as_csv)):
        if file is not None:
            file.write_text(text_of(results), encoding="utf-8")
