"""`unpoison batch`: whole files, in parallel, resumable."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from unpoison.cli.options import (
    DefenseName,
    EncoderName,
    InjectionModel,
    Learn,
    Limit,
    NLIName,
    RowsFile,
    SourcesFile,
    argument,
    option,
)

__all__ = ["EXAMPLES", "batch"]

EXAMPLES = """\b
Examples:
  unpoison batch retrieved.jsonl screened.jsonl
  unpoison batch -d grada retrieved.parquet screened.parquet --engine ray --workers 16
  unpoison batch --answer -g openai:gpt-4o-mini --workers 16 retrieved.jsonl answered.parquet
  zcat retrieved.jsonl.gz | unpoison batch - - | gzip > screened.jsonl.gz

Killed or interrupted, the same command goes on where it was; what is done lies in OUTPUT.parts until then.

Exit status: 0 when every row was screened, 1 when some rows failed, 2 when none could be.
"""

MAX_REPORTED = 20
"""Failures that appear on standard error; the output has all of them."""


class Engine(StrEnum):
    """Where the work is done."""

    LOCAL = "local"
    RAY = "ray"


def batch(
    file: RowsFile,
    output: Annotated[
        str,
        argument(
            "OUTPUT",
            "JSON Lines, or Parquet if it ends in .parquet; appears when all is done. - writes JSON Lines to "
            "standard output as they are done.",
        ),
    ],
    defense: DefenseName = "guard",
    encoder: EncoderName = None,
    generator: Annotated[
        str | None,
        option(
            "--generator -g GENERATOR", "For --answer, and for defenses that ask a model; see 'unpoison ask --help'."
        ),
    ] = None,
    nli: NLIName = None,
    injection_model: InjectionModel = None,
    sources: SourcesFile = None,
    learn: Learn = False,
    answer: Annotated[bool, option("--answer", "Answer every row's question as well.")] = False,
    engine: Annotated[
        Engine, option("", "local: processes, or threads where models are asked over the network; ray: Ray Data.")
    ] = Engine.LOCAL,
    workers: Annotated[
        int | None,
        option("N", "Parts of the file at the same time; by default as many as suit the processors and models.", min=1),
    ] = None,
    in_flight: Annotated[int, option("N", "Model calls at the same time, over all workers.", min=1, max=1024)] = 32,
    deadline: Annotated[float, option("SECONDS", "The longest that one row may take.")] = 120.0,
    retries: Annotated[int, option("N", "Try a failed call again, up to N times.", min=0)] = 3,
    limit: Limit = None,
) -> None:
    """Screen a whole file into another, on several processors or on Ray, resumable and in order.

    Every row is written with its fields and "screening", with --answer also "answer" and "generator". A row that cannot
    be used does not stop the file: it is reported, counted, and written with "error".
    """
    from unpoison.batch import Progress, Screener, run
    from unpoison.cli.common import RowCounts, row_progress, say

    screener = Screener(
        defense=defense,
        encoder=encoder,
        generator=generator,
        nli=nli,
        injection_model=injection_model,
        sources=None if sources is None else str(sources),
        learn=learn,
        answer=answer,
        in_flight=in_flight,
        deadline=deadline,
        retries=retries,
    )
    counts = RowCounts(file, most=MAX_REPORTED)
    with row_progress(rows_on_stdout=output == "-") as show:

        def advance(step: Progress) -> None:
            counts.source = step.source
            counts.add_part(step.finished.rows, step.finished.failures, resumed=step.resumed)
            show(step.position, step.size, counts.done + counts.failed)

        run(file, output, screener, engine=engine.value, workers=workers, limit=limit, progress=advance)
    say(counts.summary("answered" if answer else "screened"))
    raise typer.Exit(counts.exit_code)
