"""`unpoison guard`: the threshold for the user's own retrievals."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from unpoison.cli.options import Command, Limit, RowsFile, option
from unpoison.errors import OptionError

__all__ = ["EXAMPLES", "guard"]

EXAMPLES = """\b
Examples:
  unpoison guard calibrate retrieved.jsonl
  unpoison guard calibrate --damage 0.01 retrieved.jsonl
  unpoison screen -d guard:threshold=0.87 retrieved.jsonl
"""

guard = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Fit the defense 'guard' to your own retrievals.")


@guard.callback()
def commands() -> None:
    """Fit the defense 'guard' to your own retrievals."""


@guard.command(cls=Command, epilog=EXAMPLES, short_help="Find the threshold that loses a stated share at most.")
def calibrate(
    file: RowsFile,
    damage: Annotated[float, option("", "The share of clean passages that may be lost.", min=0.0, max=0.5)] = 0.02,
    limit: Limit = None,
    as_json: Annotated[bool, option("--json", "Write one JSON object instead of sentences.")] = False,
) -> None:
    """Find the threshold that drops at most a given share of your own passages; no labels are needed.

    FILE holds ordinary retrievals, without attack as far as you know.
    """
    from unpoison.cli.common import RowCounts, count_noun, outcomes, say, track_progress
    from unpoison.defenses.guard.calibration import calibrate_threshold
    from unpoison.defenses.loading import load_defense
    from unpoison.io.files import open_source

    chosen = load_defense("guard")
    with open_source(file) as source:
        counts, screenings = RowCounts(source.name), []
        results = outcomes(source, lambda row: chosen.screen(row.query, row.passages), limit=limit)
        for outcome in track_progress(results, source, rows_on_stdout=False):
            counts.add(outcome)
            if outcome.result is not None:
                screenings.append(outcome.result)
    calibration = calibrate_threshold(screenings, damage)
    if as_json:
        typer.echo(json.dumps(calibration._asdict()))
    else:
        typer.echo(f"guard:threshold={calibration.threshold:g}")
        say(
            f"drops {calibration.dropped:,} of {count_noun(calibration.passages, 'passage')}, in "
            f"{calibration.touched:,} of {count_noun(calibration.questions, 'question')}"
        )
        if calibration.threshold > 0.99:
            say("so high a threshold finds little: look at the retrievals first, they may hold poison")
    raise typer.Exit(counts.exit_code)


@guard.command(cls=Command, hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def fit(ctx: typer.Context) -> None:
    """Is gone; says what to write in its place."""
    raise OptionError(
        f"there is no {ctx.command_path} any more: Guard has one set of coefficients; write unpoison guard calibrate, "
        "which finds the threshold for your own retrievals"
    )
