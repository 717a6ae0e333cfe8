"""`unpoison screen`: which passages to trust, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.own import from_here

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

RowsFile = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="JSON Lines, CSV or Parquet with 'query' (or 'question') and 'passages' in every row; - reads JSON Lines "
        "from standard input.",
    ),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        "-e",
        metavar="ENCODER",
        help="lexical (built in), minilm, st:NAME_OR_PATH, onnx:FOLDER or openai:MODEL.",
    ),
]
EncoderCache = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Keep the encoder's vectors in this file, for the next run.")
]
GeneratorName = Annotated[
    str | None,
    typer.Option(
        "--generator",
        "-g",
        metavar="GENERATOR",
        help="openai:MODEL, anthropic:MODEL, hf:NAME_OR_PATH; or without a language model reader (extra 'reader'), "
        "qa:NAME_OR_PATH or extractive (built in). [default: reader where it is installed, else extractive]",
    ),
]
NLIName = Annotated[
    str | None,
    typer.Option(
        "--nli",
        metavar="NLI",
        help="lexical (built in), reader or answers, cross:NAME_OR_PATH or onnx:PATH. [default: what suits -g]",
    ),
]
DefenseName = Annotated[
    str,
    typer.Option(
        "--defense",
        "-d",
        metavar="NAME[:OPTIONS]",
        callback=from_here,
        help="guard, or such as grada:alpha=0.3,keep=5; see 'unpoison defenses'. One of your own: my_module:MyDefense.",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Read the first N rows only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON Lines to standard output: every row with its fields.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the JSON Lines to this file.")
]


def screen(
    file: RowsFile,
    defense: DefenseName = "guard",
    encoder: EncoderName = None,
    encoder_cache: EncoderCache = None,
    generator: Annotated[
        str | None,
        typer.Option(
            "--generator", "-g", metavar="GENERATOR", help="For defenses that ask a model; see 'unpoison ask --help'."
        ),
    ] = None,
    nli: NLIName = None,
    limit: Limit = None,
    as_json: AsJson = False,
    output: Output = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help=f"Also write one page with pictures of the first {MAX_PAGES} similarity graphs."
        ),
    ] = None,
) -> None:
    """Say which retrieved passages to trust, and why.

    Shows a table per row, or adds "screening" to every row and writes JSON Lines. A row that cannot be used does not
    stop the file: it is reported with its line number, counted, and written with "error".
    """
    from unpoison.cli.display import screening_table, show
    from unpoison.cli.running import Tally, make_encoder, outcomes, say, tracked
    from unpoison.defenses.loading import load_defense
    from unpoison.files import Writer, check_output, open_source
    from unpoison.rendering import page
    from unpoison.rows import with_results
    from unpoison.types import Screening

    chosen = load_defense(
        defense,
        encoder=make_encoder(encoder, encoder_cache),
        generator=generator,
        nli=nli,
    )
    if html is not None:
        check_output(html, file)
    drawn, pairs = list[Screening](), 0
    with open_source(file) as source, Writer(output, file, to_stdout=as_json) as writer:
        tally = Tally(source.name)
        results = outcomes(source, lambda row: chosen.screen(row.query, row.passages), limit=limit)
        for outcome in tracked(results, source, rows_on_stdout=output is None):
            tally.add(outcome)
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
        remark = f"The first {len(drawn)} of {tally.done} screenings." if len(drawn) < tally.done else ""
        html.write_text(page(drawn, remark), encoding="utf-8")
        say(f"wrote {html}. {remark}")
    say(tally.summary("screened"))
    raise typer.Exit(tally.exit_code)
