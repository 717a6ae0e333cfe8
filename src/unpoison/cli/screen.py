"""`unpoison screen`: which passages to trust, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.options import (
    AsJson,
    DefenseName,
    EncoderCache,
    EncoderName,
    InjectionModel,
    Learn,
    Limit,
    MaxPassages,
    NLIName,
    Output,
    RowsFile,
    SourcesFile,
    option,
)

__all__ = ["EXAMPLES", "screen"]

MAX_PAGES = 50
"""So many screenings go on one HTML page."""

MAX_PAIRS = 10_000_000
"""Screenings on the page hold their graphs in memory: no more than this many pairs of passages together."""

EXAMPLES = """\b
Examples:
  unpoison screen retrieved.jsonl
  unpoison screen -d grada:alpha=0.3,keep=3 retrieved.jsonl
  unpoison screen -d ragdefender -e minilm --json retrieved.parquet > screened.jsonl
  retrieve "who is it" | unpoison screen -d trustrag --html page.html -

Exit status: 0 when every row was screened, 1 when some rows failed, 2 when none could be.
"""


def screen(
    file: RowsFile,
    defense: DefenseName = "guard",
    encoder: EncoderName = None,
    encoder_cache: EncoderCache = None,
    generator: Annotated[
        str | None, option("--generator -g GENERATOR", "For defenses that ask a model; see 'unpoison ask --help'.")
    ] = None,
    nli: NLIName = None,
    injection_model: InjectionModel = None,
    sources: SourcesFile = None,
    learn: Learn = False,
    limit: Limit = None,
    max_passages: MaxPassages = 1000,
    as_json: AsJson = False,
    output: Output = None,
    html: Annotated[
        Path | None, option("FILE", f"Also write one page with pictures of the first {MAX_PAGES} similarity graphs.")
    ] = None,
) -> None:
    """Say which retrieved passages to trust, and why.

    Shows a table per row, or adds "screening" to every row and writes JSON Lines. A row that cannot be used does not
    stop the file: it is reported with its line number, counted, and written with "error".
    """
    from unpoison.cli.common import RowCounts, learn_sources, make_encoder, outcomes, say, track_progress
    from unpoison.cli.display import screening_table, show
    from unpoison.defenses.loading import load_defense
    from unpoison.io.files import open_source
    from unpoison.io.output import Writer, check_output
    from unpoison.io.rows import with_results
    from unpoison.report.rendering import page
    from unpoison.types import Screening

    chosen = load_defense(
        defense,
        encoder=make_encoder(encoder, encoder_cache),
        generator=generator,
        nli=nli,
        injection_model=injection_model,
        sources=sources,
    )
    learn_sources(chosen, learn)
    if html is not None:
        check_output(html, file)
    drawn, pairs = list[Screening](), 0
    with open_source(file) as source, Writer(output, file, to_stdout=as_json) as writer:
        counts = RowCounts(source.name)
        results = outcomes(source, lambda row: chosen.screen(row.query, row.passages), limit=limit, most=max_passages)
        for outcome in track_progress(results, source, rows_on_stdout=output is None):
            counts.add(outcome)
            if outcome.result is None:
                writer.write(outcome.failed_fields)
                continue
            writer.write(with_results(outcome.record.fields, screening=outcome.result.summary()))
            if not writer.active:
                show(screening_table(outcome.result), "")
            pairs += len(outcome.result.passages) ** 2
            if html is not None and len(drawn) < MAX_PAGES and pairs <= MAX_PAIRS:
                drawn.append(outcome.result)
    if html is not None:
        remark = f"The first {len(drawn)} of {counts.done} screenings." if len(drawn) < counts.done else ""
        html.write_text(page(drawn, remark), encoding="utf-8")
        say(f"wrote {html}. {remark}")
    say(counts.summary("screened"))
    raise typer.Exit(counts.exit_code)
