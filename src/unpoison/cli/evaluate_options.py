"""The options of `unpoison evaluate`, as types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.cli.options import from_here

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


Data = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA",
        help="Names of 'unpoison data list', files in the shared format, sample (built in), poisonedrag:FILE, "
        "robustrag:FILE, radar:FILE, ramdocs:FILE, beir:FOLDER, hub:NAME. With --preset: a folder of data sets "
        "(evaluation-data: those that 'unpoison data get' built), or one data set.",
    ),
]
Defense = Annotated[
    Texts,
    _axis(
        "--defense",
        "-d",
        metavar="NAME[:OPTIONS],...",
        help="What is measured; guard, your own as my_module:MyDefense.",
    ),
]
Attack = Annotated[
    Texts, _axis("--attack", "-a", metavar="NAME[:OPTIONS][+WRAPPER],...", help="See 'unpoison attack --list'.")
]
Poisons = Annotated[Texts, _axis("--poisons", metavar="N,...", help="Texts planted per question; 1.")]
Rate = Annotated[
    Texts, _axis("--rate", metavar="PAPER:AMOUNT,...", help="In place of --poisons: trustrag:0.4, ragdefender:2x5.")
]
Policy = Annotated[
    Texts,
    _axis(
        "--policy",
        metavar="POLICY,...",
        help="prepend, retrieve, corpus, replace-at, replace-last, middle, pool, or labelled (the file's own).",
    ),
]
Positions = Annotated[
    Texts, _axis("--positions", metavar="P,P+P,...", help="Places from 1 that poison takes, joined by +.")
]
Prefix = Annotated[
    bool | None,
    typer.Option(
        "--prefix/--no-prefix", help="Put the question before planted texts, or not.", rich_help_panel=PLANTED
    ),
]
Triggered = Annotated[
    bool | None,
    typer.Option(
        "--triggered/--untriggered",
        help="Ask with a trigger attack's trigger, or without.",
        rich_help_panel=PLANTED,
    ),
]
K = Annotated[Texts, _axis("--k", metavar="K,...", help="Passages per question; 10.")]
Retriever = Annotated[
    Texts,
    _axis("--retriever", metavar="ENCODER,...", help="For the policies retrieve and corpus: bm25, an encoder, hybrid."),
]
Encoder = Annotated[Texts, _axis("--encoder", "-e", metavar="ENCODER,...", help="lexical, minilm, st:NAME.")]
Generator = Annotated[
    Texts, _axis("--generator", "-g", metavar="GENERATOR,...", help="Answers; without one, screening only.")
]
Architecture = Annotated[
    Texts,
    _axis(
        "--architecture",
        metavar="NAME,...",
        help="Who answers from what is kept: plain, blended (hybrid retrieval), replug, self-rag.",
    ),
]
Style = Annotated[
    Texts, _axis("--style", metavar="STYLE,...", help="Prompts: safe, or plain as the papers' baselines ask.")
]
Nli = Annotated[Texts, _axis("--nli", metavar="NLI,...", help="lexical, cross:NAME or onnx:PATH.")]
NliNoise = Annotated[
    Texts, _axis("--nli-noise", metavar="P,...", help="Replace NLI outputs at random with this probability.")
]
Owned = Annotated[
    Texts,
    _axis(
        "--owned",
        metavar="WHO,...",
        help="Which sources the attacker holds: one (new, for all texts), each (a new one a text), page (on a host "
        "where anybody writes), known:N (N established ones), sleepers:N (N that were honest "
        "before). By default planted texts have no source.",
    ),
]
Sources = Annotated[
    Texts, _axis("--sources", metavar="FILE,...", help="A policy or history of sources for the defenses.")
]
History = Annotated[
    Texts,
    _axis(
        "--history",
        metavar="DATA,...",
        help="Defenses know sources from other questions: seen (of the data itself), or another data set.",
    ),
]
Vary = Annotated[
    Texts, _axis("--vary", metavar="OPTION=V,V", help="An option of the defenses that have it; may be repeated.")
]
Seed = Annotated[Texts, _axis("--seed", metavar="SEED,...", help="0.")]
Limit = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="The first N questions only.", rich_help_panel=PLANTED)
]
Corpus = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|none",
        help="Clean passages that fill contexts; corpus.jsonl beside the data.",
        rich_help_panel=PLANTED,
    ),
]
Baseline = Annotated[bool, typer.Option(help="Also measure no defense.", rich_help_panel=PLANTED)]
Clean = Annotated[bool, typer.Option(help="Also measure without an attack.", rich_help_panel=PLANTED)]
Certified = Annotated[
    bool,
    typer.Option(
        "--certify",
        help="Show how many questions are answered rightly and provably so whatever m of the passages become.",
        rich_help_panel=PLANTED,
    ),
]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A grid in YAML; options given here win.", rich_help_panel=PLANS)
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="A paper's table, published numbers beside; 'list' lists them.", rich_help_panel=PLANS
    ),
]
Stream = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="Measure over time instead, static against dynamic: timeline (built in), radar-dynamic:FILE, or a "
        "file whose rows have a time.",
        rich_help_panel=PLANS,
    ),
]
Manifest = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Repeat the run of this manifest.json exactly.", rich_help_panel=PLANS),
]
Folder = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help=f"Where the run is kept; {RUNS}/HASH by default.", rich_help_panel=RUNNING),
]
EncoderCache = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"Where vectors are kept; {RUNS}/vectors.db, or in the folder.",
        rich_help_panel=RUNNING,
    ),
]
Jobs = Annotated[
    int, typer.Option(min=1, max=64, metavar="N", help="Questions at the same time.", rich_help_panel=RUNNING)
]
Deadline = Annotated[
    float, typer.Option(metavar="SECONDS", help="The longest that one answer may take.", rich_help_panel=RUNNING)
]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Try again what failed before.", rich_help_panel=RUNNING)
]
Judge = Annotated[
    str | None,
    typer.Option(
        metavar="GENERATOR",
        help="Have a model score the answers from 1 to 10, for long answers.",
        rich_help_panel=ANSWERS,
    ),
]
Grader = Annotated[
    str | None,
    typer.Option(
        metavar="GENERATOR",
        help="Have a model grade short answers A, B or C, as RADAR counts accuracy.",
        rich_help_panel=ANSWERS,
    ),
]
Price = Annotated[
    Texts,
    typer.Option(metavar="MODEL=IN/OUT", help="Prices per million tokens; may be repeated.", rich_help_panel=ANSWERS),
]
Report = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Write .html (one page, works offline), .md, .csv or .json; may be repeated.",
        rich_help_panel=OUTPUT,
    ),
]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Write Markdown.", rich_help_panel=OUTPUT)]
Csv = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write CSV, one line per scenario.", rich_help_panel=OUTPUT)
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Write JSON to standard output instead of tables.", rich_help_panel=OUTPUT)
]
