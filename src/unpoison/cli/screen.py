"""`unpoison screen`: decide which passages a model may read, and why.

Examples:
  unpoison screen retrieved.jsonl
  unpoison screen --workers 8 --output screened.jsonl retrieved.parquet
  unpoison screen --calibrate 0.02 retrieved.jsonl
  unpoison screen -d grada:alpha=0.3,keep=3 retrieved.jsonl
  unpoison screen -d ragdefender -e minilm --json retrieved.parquet > screened.jsonl
  retrieve "who is it" | unpoison screen -d trustrag -

With --output a file is screened in parts, in order. After an interruption the same command resumes; finished parts are
in OUTPUT.part until then. With --learn it begins anew.

Exit status: 0 when every row was screened, 1 when some rows failed, 2 when none could be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.batch import BatchScreener, Progress, run
from unpoison.batch.screener import RowOutcome
from unpoison.cli import options
from unpoison.cli.common import RowCounts, row_progress, say, status_of_sources
from unpoison.cli.display import screening_table, show
from unpoison.cli.options import option
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.defenses.guard.checks import calibrate_threshold
from unpoison.errors import OptionError
from unpoison.io.file_rows import Source
from unpoison.io.files import open_source
from unpoison.io.output import Writer
from unpoison.utils.plain_text import count_noun
from unpoison.utils.threads import parallel_map

MAX_REPORTED = 20
"""Failures of a file in parts that appear on standard error; the output has all of them."""


class EngineChoice(StrEnum):
    """How the parts of a file are run."""

    LOCAL = "local"
    RAY = "ray"


def screen(
    file: options.RowsFile,
    defense: options.DefenseName = "guard",
    encoder: options.EncoderName = None,
    generator: Annotated[
        str | None, option("--generator -g GENERATOR", "For defenses that ask a model; see 'unpoison ask --help'.")
    ] = None,
    nli: options.NLIName = None,
    sources: options.SourcesFile = None,
    learn: options.Learn = False,
    limit: options.Limit = None,
    as_json: options.AsJson = False,
    output: options.Output = None,
    workers: Annotated[int | None, option("N", "Screen N parts of the file concurrently.", min=1)] = None,
    engine: Annotated[
        EngineChoice, option("", "local: processes, or threads where models are asked over the network; ray: Ray Data.")
    ] = EngineChoice.LOCAL,
    calibrate: Annotated[
        float | None,
        option(
            "SHARE", "Find the threshold of guard that loses at most this share of FILE's passages.", min=0.0, max=0.5
        ),
    ] = None,
) -> None:
    """Decide which retrieved passages a model may read, and why.

    Shows a table per row, or adds "screening" to every row and writes JSON Lines. A row that cannot be used does not
    stop the file: it is reported with its line number, counted, and written with "error".
    """
    divided = workers is not None or engine is not EngineChoice.LOCAL
    if divided and calibrate is not None:
        raise OptionError("--calibrate needs one process; leave out --workers and --engine")
    screener = BatchScreener(defense, encoder, generator, nli, None if sources is None else str(sources), learn)
    if divided or (is_file(output) and calibrate is None and not learn and "beliefs=" not in defense):
        many = workers if divided else 1
        raise typer.Exit(in_parts(file, output, screener, engine=engine.value, workers=many, limit=limit))
    chosen = screener.load()
    with open_source(file) as source, Writer(output, file, to_stdout=as_json and calibrate is None) as writer:
        counts, screenings = RowCounts(source.name), list[Screening]()
        for row, outcome in one_by_one(screener, chosen, source, counts, limit=limit, rows_on_stdout=output is None):
            if calibrate is not None and isinstance(outcome.result, Screening):
                screenings.append(outcome.result)
                continue
            writer.write(row)
            if isinstance(outcome.result, Screening) and not writer.active:
                show(screening_table(outcome.result), "")
    if calibrate is not None:
        _show_threshold(screenings, calibrate, as_json=as_json)
        raise typer.Exit(counts.exit_code)
    say(counts.summary("screened"))
    raise typer.Exit(status_of_sources(chosen, counts.exit_code))


def is_file(output: Path | None) -> bool:
    """Whether the output is a file, or will be, and no device and no pipe."""
    return output is not None and (output.is_file() or not output.exists())


def one_by_one(
    screener: BatchScreener,
    defense: Defense,
    source: Source,
    counts: RowCounts,
    *,
    limit: int | None,
    rows: int = 1,
    rows_on_stdout: bool,
) -> Iterator[tuple[dict[str, Any], RowOutcome]]:
    """The output row and the outcome of every row, in order, of which `rows` are worked on concurrently."""
    work = partial(screener.screen_record, defense=defense)
    with row_progress(rows_on_stdout=rows_on_stdout) as show:
        for record, row, outcome in parallel_map(work, islice(source, limit), rows, "unpoison-row"):
            counts.add(record.number, outcome.error)
            show(record.position, source.size, counts.rows)
            yield row, outcome
    counts.require_rows()


def in_parts(
    file: str, output: Path | None, screener: BatchScreener, *, engine: str, workers: int | None, limit: int | None
) -> int:
    """Screen or answer a file in parts, resumable and in order; the exit status."""
    model, counts = screener.answers_with, RowCounts(file, most=MAX_REPORTED)
    verb = "screened" if model is None else f"answered with {model}:"
    with row_progress(rows_on_stdout=output is None) as show:

        def advance(step: Progress) -> None:
            counts.source = step.source
            counts.add_part(step.finished.rows, step.finished.failures, resumed=step.resumed)
            show(step.position, step.size, counts.rows)

        target = "-" if output is None else str(output)
        try:
            run(file, target, screener, engine=engine, workers=workers, limit=limit, progress=advance)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            done = count_noun(counts.rows, "row")
            resumes = "; the same command goes on behind them" if output is not None else ""
            raise KeyboardInterrupt(f"{done} {verb.partition(' ')[0]}{resumes}") from None
    counts.require_rows()
    say(counts.summary(verb))
    watched = engine == "local" and workers == 1
    return status_of_sources(screener.loaded, counts.exit_code) if watched else counts.exit_code


def _show_threshold(screenings: list[Screening], damage: float, *, as_json: bool) -> None:
    """The default threshold and the one that loses at most a share of clean passages; the higher one is suggested.

    A lower threshold would drop more than the default.
    """
    found = calibrate_threshold(screenings, damage)
    suggested = max(found.threshold, found.default)
    if as_json:
        typer.echo(json.dumps({**found._asdict(), "suggested": suggested}))
    else:
        typer.echo(f"guard:threshold={suggested:g}")
    total, questions = count_noun(found.passages, "passage"), count_noun(found.questions, "question")
    say(
        f"default {found.default:g}: drops {found.default_dropped:,} of {total}, "
        f"in {found.default_touched:,} of {questions}"
    )
    name = "suggested " if suggested > found.default else "possible"
    say(f"{name} {found.threshold:g}: drops {found.dropped:,} of {total}, in {found.touched:,} of {questions}")
    if suggested == found.default:
        say(f"the default already loses at most {damage:g} of the passages: keep it")
    if suggested > 0.99:
        say("a threshold this high finds little: inspect the retrievals first, they may hold poison")
