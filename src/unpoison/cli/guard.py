"""`unpoison guard`: the threshold for the user's own retrievals, or a Guard of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.help import Command
from unpoison.cli.options import EncoderCache, EncoderName, Limit, RowsFile

__all__ = ["EXAMPLES", "guard"]

EXAMPLES = """\b
Examples:
  unpoison guard calibrate retrieved.jsonl
  unpoison guard calibrate --damage 0.01 -e minilm retrieved.jsonl
  unpoison screen -d guard:threshold=0.87 retrieved.jsonl
"""

FIT_EXAMPLES = """\b
Examples:
  UNPOISON_GUARD_SEED=$(openssl rand -hex 16) unpoison guard fit clean.jsonl -o mine.json
  unpoison guard fit -e minilm --seed "$SECRET" clean.jsonl -o mine.json
  unpoison screen -d guard:coefficients=mine.json retrieved.jsonl
"""

guard = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Fit the defense 'guard' to your own retrievals.")


@guard.callback()
def commands() -> None:
    """Fit the defense 'guard' to your own retrievals."""


@guard.command(cls=Command, epilog=EXAMPLES, short_help="Find the threshold that loses a stated share at most.")
def calibrate(
    file: RowsFile,
    damage: Annotated[
        float, typer.Option(min=0.0, max=0.5, help="The share of clean passages that may be lost.")
    ] = 0.02,
    encoder: EncoderName = None,
    encoder_cache: EncoderCache = None,
    limit: Limit = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object instead of sentences.")] = False,
) -> None:
    """Find the threshold that drops at most a given share of your own passages; no labels are needed.

    FILE holds ordinary retrievals, without attack as far as you know. Screen them with the encoder that you will use.
    """
    from unpoison.cli.running import RowCounts, counted, make_encoder, outcomes, say, tracked
    from unpoison.defenses.guard.calibration import calibrated
    from unpoison.defenses.loading import load_defense
    from unpoison.files import open_source

    chosen = load_defense("guard", encoder=make_encoder(encoder, encoder_cache))
    with open_source(file) as source:
        counts, screenings = RowCounts(source.name), []
        results = outcomes(source, lambda row: chosen.screen(row.query, row.passages), limit=limit)
        for outcome in tracked(results, source, rows_on_stdout=False):
            counts.add(outcome)
            if outcome.result is not None:
                screenings.append(outcome.result)
    calibration = calibrated(screenings, damage)
    if as_json:
        typer.echo(json.dumps(calibration._asdict()))
    else:
        typer.echo(f"guard:threshold={calibration.threshold:g}")
        say(
            f"drops {calibration.dropped:,} of {counted(calibration.passages, 'passage')}, in "
            f"{calibration.touched:,} of {counted(calibration.questions, 'question')}"
        )
        if calibration.threshold > 0.99:
            say("so high a threshold finds little: look at the retrievals first, they may hold poison")
    raise typer.Exit(counts.exit_code)


@guard.command(epilog=FIT_EXAMPLES, short_help="Fit a Guard of your own, with a secret.")
def fit(
    file: RowsFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The coefficients, readable by you alone.")
    ],
    seed: Annotated[
        str,
        typer.Option(
            metavar="SECRET",
            envvar="UNPOISON_GUARD_SEED",
            help="At least 16 bytes that nobody knows; they choose what your Guard looks at.",
        ),
    ],
    encoder: EncoderName = None,
    encoder_cache: EncoderCache = None,
    limit: Limit = None,
) -> None:
    """Fit Guard anew, with your own clean retrievals and with evidence that a secret chooses.

    FILE holds ordinary retrievals, without attack as far as you know. Use the encoder that you will screen with. Who
    knows the shipped Guard can search for texts that it keeps; yours looks at other evidence. Needs the extra 'fit'.
    """
    from unpoison.cli.running import RowCounts, counted, make_encoder, outcomes, say, tracked
    from unpoison.defenses.guard import Guard
    from unpoison.defenses.guard.file import check_new, write
    from unpoison.defenses.guard.fit import Retrieval, fitted
    from unpoison.defenses.guard.retrieval import one_kind, retrieved
    from unpoison.files import open_source

    check_new(output)
    chosen = Guard(encoder=make_encoder(encoder, encoder_cache))
    retrievals: list[tuple[Retrieval, str]] = []
    with open_source(file) as source:
        counts = RowCounts(source.name)
        results = outcomes(source, lambda row: retrieved(chosen, row.query, row.passages), limit=limit)
        for outcome in tracked(results, source, rows_on_stdout=False):
            counts.add(outcome)
            if outcome.result is not None:
                retrievals.append(outcome.result)
    kind = one_kind([kind for _, kind in retrievals])
    data = fitted([retrieval for retrieval, _ in retrievals], seed, kind, lambda step: say(f"{step} ..."))
    write(data, output)
    say(f"fitted with {counted(data['passages'], 'passage')} of {counted(data['questions'], 'question')}")
    typer.echo(f"guard:coefficients={output}")
    raise typer.Exit(counts.exit_code)
