"""`unpoison evaluate`: the benefit, harm and cost of each defense.

Examples:
  unpoison evaluate
  unpoison evaluate -d grada:alpha=0.3,keep=5,trustrag -a poisonedrag,pia --poisons 1,3 sample --report report.html
  unpoison evaluate -d trustrag,radar -g openai:my-model,base_url=http://127.0.0.1:8000/v1 --jobs 8 sample
  unpoison evaluate docs/ --questions 100 -d guard -g reader --report report.html
  unpoison evaluate --preset grada-table-1 -e minilm sample
  unpoison evaluate --stream timeline --preset radar-table-17 -g extractive
  unpoison evaluate --config grid.yaml
  unpoison evaluate -d guard -g extractive --fail-if 'asr > 5%' --report report.html sample

Further settings in the YAML file of --config: positions, prefix, triggered, architecture, style, nli_noise, owned,
sources, history, corpus, baseline, clean, judge, grader, deadline. The same command resumes an interrupted run and
measures failed questions again.
Exit status: 0 when everything was measured, 1 when some questions failed, 2 when nothing could be done; with
--fail-if 1 when a gate failed, 2 for everything else.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.common import progress, say
from unpoison.cli.display import report_table, show, show_listing
from unpoison.cli.options import argument, from_here, option
from unpoison.errors import OptionError
from unpoison.io.output import check_writable
from unpoison.report.document import check_suffix
from unpoison_lab.evaluate import EvaluationPlan
from unpoison_lab.evaluate import evaluate as carry_out
from unpoison_lab.evaluation.presets import load_preset, load_stream_preset, preset_names, stream_preset_names
from unpoison_lab.report import WRITERS

__all__ = ["evaluate"]

axis_option = partial(option, rich_help_panel="Scenarios (several values make a grid)")
plan_option = partial(option, rich_help_panel="Plans")
run_option = partial(option, rich_help_panel="Run and output")
"""The sections of the help."""

Texts = list[str] | None


def evaluate(
    context: typer.Context,
    data: Annotated[
        Texts,
        argument(
            "DATA",
            "Files in the shared format, sample (built in), poisonedrag:FILE, robustrag:FILE, radar:FILE, "
            "ramdocs:FILE. With --preset: a folder of data sets (evaluation-data: those that "
            "'python -m benchmarks data get' built), or one. With --questions: your documents.",
        ),
    ] = None,
    defense: Annotated[
        Texts,
        axis_option("--defense -d NAME[:OPTIONS],...", "Defenses; your own: my_module:My.", callback=from_here),
    ] = None,
    attack: Annotated[
        Texts,
        axis_option("--attack -a NAME[:OPTIONS],...", "See 'unpoison attack --list'.", callback=from_here),
    ] = None,
    poisons: Annotated[Texts, axis_option("N,...", "Texts planted per question; 1.")] = None,
    policy: Annotated[
        Texts,
        axis_option(
            "POLICY,...",
            "prepend, retrieve, retrieve-batch, corpus, replace-last, middle, pool, or labelled (the file's own).",
        ),
    ] = None,
    k: Annotated[Texts, axis_option("--k K,...", "Passages per question; 10.")] = None,
    retriever: Annotated[
        Texts, axis_option("ENCODER,...", "For the policies that retrieve: bm25, an encoder, hybrid.")
    ] = None,
    encoder: Annotated[Texts, axis_option("--encoder -e ENCODER,...", "lexical, minilm, st:NAME, openai:MODEL")] = None,
    generator: Annotated[
        Texts, axis_option("--generator -g GENERATOR,...", "Answers; without one, screening only.")
    ] = None,
    nli: Annotated[Texts, axis_option("NLI,...", "lexical or cross:NAME.")] = None,
    seed: Annotated[Texts, axis_option("SEED,...", "0.")] = None,
    limit: Annotated[int | None, axis_option("N", "The first N questions only.", min=1)] = None,
    questions: Annotated[
        int | None, plan_option("N", "Make N questions from your own documents (DATA) and measure them.", min=1)
    ] = None,
    config: Annotated[Path | None, plan_option("FILE", "A grid in YAML; options given here take precedence.")] = None,
    preset: Annotated[
        str | None, plan_option("NAME", "A paper's table, published numbers beside; 'list' lists them.")
    ] = None,
    stream: Annotated[
        str | None,
        plan_option(
            "DATA",
            "Measure over time, static and dynamic: timeline (built in), radar-dynamic:FILE, or rows with a time.",
        ),
    ] = None,
    folder: Annotated[Path | None, run_option("FOLDER", "Where the run is kept; unpoison-runs/HASH.")] = None,
    jobs: Annotated[int, run_option("N", "Questions at the same time.", min=1, max=64)] = 1,
    fail_if: Annotated[
        Texts,
        run_option(
            "--fail-if GATE",
            "Exit with 1 if it holds: 'asr > 5%', 'upper(asr) > 10%', 'clean(accuracy) < 30%'; may be repeated.",
        ),
    ] = None,
    report: Annotated[
        list[Path] | None,
        run_option("FILE", "Write .html, .md or .json; may be repeated."),
    ] = None,
    as_json: Annotated[bool, run_option("--json", "Write JSON to standard output instead of tables.")] = False,
) -> None:
    """Measure defenses under attack and without one, with 95 % intervals; by default guard on the built-in sample.

    Every combination of the values is one scenario. No defense, and every defense without an attack, are measured too,
    so that the benefit of a defense can be compared with its harm.
    """
    if preset == "list":
        show_listing(_presets(), as_json=as_json)
        return
    for path in report or ():
        check_suffix(path, WRITERS)
        check_writable(path)
    names = ("data", "defense", "attack", "poisons", "policy", "k", "retriever", "encoder", "generator", "nli", "seed")
    given = {name: value for name in (*names, "limit") if (value := context.params[name]) not in (None, [], ())}
    plan = EvaluationPlan(given, preset, stream, questions, folder=folder, jobs=jobs, fail_if=fail_if or ())
    if config is not None:
        if stream is not None:
            raise OptionError("--stream determines config; leave it out")
        plan = plan.with_file(config)
    with progress() as advance:
        result = carry_out(plan, note=say, progress=advance, command=sys.argv)
    for path in report or ():
        result.write(path)
    if as_json:
        print(result.as_json(), end="")  # noqa: T201  the output of the command
    else:
        show(*result.heading, "")
        for table in result.tables:
            show(report_table(table), "")
    for line in result.remarks:
        say(line)
    raise typer.Exit(result.status)


SAMPLE_POISONS = 5
"""Planted texts of a question of the built-in sample."""


def _presets() -> list[dict[str, str]]:
    """Every preset with its source, and whether the built-in sample can stand in for its data."""
    rows = []
    for name in preset_names():
        preset = load_preset(name)
        rows.append(
            {"preset": name, "source": preset.source, "what it shows": preset.title, "sample": _on_sample(name)}
        )
    for name in stream_preset_names():
        over = load_stream_preset(name, generator="extractive", nli="lexical")
        title = f"{over.title} (--stream)"
        rows.append({"preset": name, "source": over.source, "what it shows": title, "sample": "with --stream timeline"})
    return rows


def _on_sample(name: str) -> str:
    scenarios = load_preset(name).scenarios
    with_model = scenarios or load_preset(name, generator="extractive").scenarios
    if not with_model:
        return "no"
    fitting = [one.poisons <= SAMPLE_POISONS for one in with_model if one.attacked] or [True]
    if not any(fitting):
        return "no, too few poisons"
    return f"{'runs' if all(fitting) else 'in part'}{'' if scenarios else ', with -g'}"
