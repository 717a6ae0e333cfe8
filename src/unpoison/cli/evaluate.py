"""`unpoison evaluate`: what each defense saves, what it damages, and what it costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.options import Against, FailIf, Junit, Sarif
from unpoison.cli.own import from_here

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
  unpoison evaluate --preset grada-table-1 ../shared/data -e minilm
  unpoison evaluate --manifest unpoison-runs/1f0c.../manifest.json
  unpoison evaluate -d guard -g extractive --fail-if 'asr > 5%' --junit junit.xml sample
  unpoison evaluate --stream timeline -d radar,vanilla -g extractive --report over-time.html
  unpoison evaluate --stream timeline --preset radar-table-17 -g extractive

A run that was interrupted goes on where it stopped: give the same command again.
Exit status: 0 when everything was measured, 1 when some questions failed, 2 when nothing could be done; with --fail-if
or --against 1 when a gate failed, 2 for everything else.
"""

RUNS = Path("unpoison-runs")
"""Where runs go whose folder is not named; the folder's name is a hash of what is measured."""

AXES = "Axes (several values make a grid)"
PLANTED = "What else is measured, and on what"
PLANS = "A whole plan instead of axes"
ANSWERS = "What answers are worth and cost"
RUNNING = "How it runs"
OUTPUT = "What is written"
"""The sections of the help, in which options stand together."""

Texts = list[str] | None


def _axis(*names: str, metavar: str, help: str) -> Any:
    own = from_here if names[0] in ("--defense", "--attack") else None
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=AXES, callback=own)


def evaluate(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA",
            help="Files in the shared format, sample (built in), poisonedrag:FILE, robustrag:FILE, radar:FILE, "
            "ramdocs:FILE, beir:FOLDER, hub:NAME. With --preset: a folder of data sets, or one data set.",
        ),
    ] = None,
    defense: Annotated[
        Texts,
        _axis(
            "--defense",
            "-d",
            metavar="NAME[:OPTIONS],...",
            help="What is measured; guard, your own as my_module:MyDefense.",
        ),
    ] = None,
    attack: Annotated[
        Texts, _axis("--attack", "-a", metavar="NAME[:OPTIONS][+WRAPPER],...", help="See 'unpoison attack --list'.")
    ] = None,
    poisons: Annotated[Texts, _axis("--poisons", metavar="N,...", help="Texts planted per question; 1.")] = None,
    rate: Annotated[
        Texts, _axis("--rate", metavar="PAPER:AMOUNT,...", help="In place of --poisons: trustrag:0.4, ragdefender:2x5.")
    ] = None,
    policy: Annotated[
        Texts,
        _axis(
            "--policy",
            metavar="POLICY,...",
            help="prepend, retrieve, corpus, replace-at, replace-last, middle, pool, or labelled (the file's own).",
        ),
    ] = None,
    positions: Annotated[
        Texts, _axis("--positions", metavar="P,P+P,...", help="Places from 1 that poison takes, joined by +.")
    ] = None,
    prefix: Annotated[
        bool | None,
        typer.Option(
            "--prefix/--no-prefix", help="Put the question before planted texts, or not.", rich_help_panel=PLANTED
        ),
    ] = None,
    triggered: Annotated[
        bool | None,
        typer.Option(
            "--triggered/--untriggered",
            help="Ask with a trigger attack's trigger, or without.",
            rich_help_panel=PLANTED,
        ),
    ] = None,
    k: Annotated[Texts, _axis("--k", metavar="K,...", help="Passages per question; 10.")] = None,
    retriever: Annotated[
        Texts,
        _axis(
            "--retriever", metavar="ENCODER,...", help="For the policies retrieve and corpus: bm25, an encoder, hybrid."
        ),
    ] = None,
    encoder: Annotated[Texts, _axis("--encoder", "-e", metavar="ENCODER,...", help="lexical, minilm, st:NAME.")] = None,
    generator: Annotated[
        Texts, _axis("--generator", "-g", metavar="GENERATOR,...", help="Answers; without one, screening only.")
    ] = None,
    architecture: Annotated[
        Texts,
        _axis(
            "--architecture",
            metavar="NAME,...",
            help="Who answers from what is kept: plain, blended (hybrid retrieval), replug, self-rag.",
        ),
    ] = None,
    style: Annotated[
        Texts, _axis("--style", metavar="STYLE,...", help="Prompts: safe, or plain as the papers' baselines ask.")
    ] = None,
    nli: Annotated[Texts, _axis("--nli", metavar="NLI,...", help="lexical, cross:NAME or onnx:PATH.")] = None,
    nli_noise: Annotated[
        Texts, _axis("--nli-noise", metavar="P,...", help="Replace NLI outputs at random with this probability.")
    ] = None,
    vary: Annotated[
        Texts, _axis("--vary", metavar="OPTION=V,V", help="An option of the defenses that have it; may be repeated.")
    ] = None,
    seed: Annotated[Texts, _axis("--seed", metavar="SEED,...", help="0.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The first N questions only.", rich_help_panel=PLANTED)
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|none",
            help="Clean passages that fill contexts; corpus.jsonl beside the data.",
            rich_help_panel=PLANTED,
        ),
    ] = None,
    baseline: Annotated[bool, typer.Option(help="Also measure no defense.", rich_help_panel=PLANTED)] = True,
    clean: Annotated[bool, typer.Option(help="Also measure without an attack.", rich_help_panel=PLANTED)] = True,
    certified: Annotated[
        bool,
        typer.Option(
            "--certify",
            help="Show how many questions are answered rightly and provably so whatever m of the passages become.",
            rich_help_panel=PLANTED,
        ),
    ] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A grid in YAML; options given here win.", rich_help_panel=PLANS)
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A paper's table, published numbers beside; 'list' lists them.", rich_help_panel=PLANS
        ),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Measure over time instead, static against dynamic: timeline (built in), radar-dynamic:FILE, or a "
            "file whose rows have a time.",
            rich_help_panel=PLANS,
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Repeat the run of this manifest.json exactly.", rich_help_panel=PLANS),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help=f"Where the run is kept; {RUNS}/HASH by default.", rich_help_panel=RUNNING),
    ] = None,
    encoder_cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Where vectors are kept; {RUNS}/vectors.db, or in the folder.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=64, metavar="N", help="Questions at the same time.", rich_help_panel=RUNNING)
    ] = 1,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="The longest that one answer may take.", rich_help_panel=RUNNING)
    ] = 120.0,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed before.", rich_help_panel=RUNNING)
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="GENERATOR",
            help="Have a model score the answers from 1 to 10, for long answers.",
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    grader: Annotated[
        str | None,
        typer.Option(
            metavar="GENERATOR",
            help="Have a model grade short answers A, B or C, as RADAR counts accuracy.",
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    price: Annotated[
        Texts,
        typer.Option(
            metavar="MODEL=IN/OUT", help="Prices per million tokens; may be repeated.", rich_help_panel=ANSWERS
        ),
    ] = None,
    report: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Write .html (one page, works offline), .md, .csv or .json; may be repeated.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write Markdown.", rich_help_panel=OUTPUT)
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write CSV, one line per scenario.", rich_help_panel=OUTPUT)
    ] = None,
    fail_if: FailIf = None,
    against: Against = None,
    junit: Junit = None,
    sarif: Sarif = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write JSON to standard output instead of tables.", rich_help_panel=OUTPUT)
    ] = False,
) -> None:
    """Measure defenses under attack and without one, with 95 % intervals; by default guard on the built-in sample.

    Every combination of the axes is one scenario. No defense, and every defense without an attack, are measured too,
    so that what a defense saves stands beside what it damages.
    """
    from unpoison.cli import runs
    from unpoison.cli.display import show
    from unpoison.cli.gates import Checks, measured_of
    from unpoison.cli.running import say
    from unpoison.driver import Limits
    from unpoison.evaluation.judging import grade_run, judge_run
    from unpoison.evaluation.measures import MEASURES
    from unpoison.evaluation.report import Report, as_csv, as_markdown, write_report
    from unpoison.evaluation.report import as_json as json_text
    from unpoison.evaluation.runner import Runner
    from unpoison.evaluation.runs import folder_name
    from unpoison.evaluation.specs import varied_options
    from unpoison.evaluation.summary import Price

    if stream is not None:
        from unpoison.cli.evaluate_streams import evaluate_stream, given_options

        evaluate_stream(
            stream,
            given_options(context),
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
        "vary": varied_options(vary or ()),
        "seed": seed,
        "limit": limit,
        "corpus": corpus,
        "baseline": None if baseline else False,
        "clean": None if clean else False,
    }
    runs.check_certified(certified, clean)
    given = {name: value for name, value in axes.items() if value not in (None, [], {})}
    prices = dict(map(Price.of, price or ()))
    runs.check_outputs(report or (), markdown, csv)
    checks = Checks.of(MEASURES, fail_if, against, junit, sarif)
    chosen = runs.choose(given, config, preset, manifest, grader=grader)
    checks.need_generator(chosen.scenarios)
    if folder is None:
        RUNS.mkdir(exist_ok=True)
    with runs.progress() as advance:
        runner = Runner(
            folder or RUNS / folder_name(chosen.scenarios),
            chosen.scenarios,
            jobs=jobs,
            limits=Limits(deadline=deadline),
            retry_failed=retry_failed,
            vectors=encoder_cache or (None if folder else RUNS / "vectors.db"),
            progress=advance,
            command=sys.argv,
        )
        if chosen.manifest is not None:
            for difference in runner.check(chosen.manifest):
                say(f"note: {difference}")
        run = runner.run()
        if judge is not None:
            run = judge_run(run, runner.bench.generator(judge), jobs=jobs, progress=advance)
        if grader is not None:
            run = grade_run(run, runner.bench.generator(grader), jobs=jobs, progress=advance)
    results = Report.of(run, prices=prices, preset=chosen.preset)
    for path in report or ():
        write_report(results, path)
    for file, text_of in ((markdown, as_markdown), (csv, as_csv)):
        if file is not None:
            file.write_text(text_of(results), encoding="utf-8")
    if as_json:
        print(json_text(results), end="")  # noqa: T201  this is what the command line is for
    else:
        runs.show_figures(results)
    runs.show_certified(results, wanted=certified, to_stdout=not as_json)
    runs.say_problems(results)
    problems = [problem for summary in results.summaries for problem in summary.problems]
    where = str(config) if config is not None else str((data or ["sample"])[0])
    raise typer.Exit(checks.concluded(measured_of(results), problems, runs.say_outcome(run), where))
