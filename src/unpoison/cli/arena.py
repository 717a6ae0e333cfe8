"""`unpoison arena`: measure defenses on the fixed tasks, look at results, check them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import Command

if TYPE_CHECKING:
    from unpoison.bench.arena import Data

__all__ = ["arena"]

RUN_EXAMPLES = """\b
Examples:
  unpoison arena run --quick
  unpoison arena run --track screening -d guard -d my_module:MyDefense
  unpoison arena run --data ../data --results arena/results

A run that was killed goes on where it was. Tasks whose data are absent are named, and count nowhere. Exit status: 0
when every task was measured, 1 when some were not, 2 when nothing could be done.
"""

TABLE_EXAMPLES = """\b
Examples:
  unpoison arena table
  unpoison arena table arena/results --page docs/arena.md
"""

arena = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Measure defenses on tasks that are the same for everybody."
)

DataOption = Annotated[
    Path | None,
    typer.Option("--data", metavar="FOLDER", help="Where the evaluation files are; by default what 'data get' made."),
]


@arena.command(cls=Command, epilog=RUN_EXAMPLES)
def run(
    defense: Annotated[
        list[str] | None,
        typer.Option("--defense", "-d", metavar="ENTRY", help="An entry of the table, or a defense with options."),
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(metavar="TRACK", help="screening, answers, injection or at-rest; by default all."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few questions of each task: for minutes.")] = False,
    data: DataOption = None,
    folder: Annotated[Path, typer.Option("--runs", metavar="FOLDER", help="What is measured, for going on.")] = Path(
        "arena/runs"
    ),
    results: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the result files go.")] = Path("arena/results"),
) -> None:
    """Measure defenses on the tasks of the arena, and write one result file for each."""
    from unpoison.bench.arena import SIZES, TRACKS, entries_of, run_entry, write_result
    from unpoison.bench.arena.leaderboard import text_table
    from unpoison.cli.common import progress, say
    from unpoison.errors import InputError, OptionError, clip

    chosen = [name for name in TRACKS if not track or name in track]
    if unknown := [name for name in track or () if name not in TRACKS]:
        raise OptionError(f"--track must be one of {', '.join(TRACKS)}, got {clip(unknown[0])}")
    entries, found, size = entries_of(tuple(defense or ())), _data(data), SIZES["quick" if quick else "whole"]
    made = []
    for entry in entries:
        with progress() as update:
            result = run_entry(entry, chosen, found, folder, size, update)
        if result["tracks"]:
            say(f"{entry.name}: {write_result(result, results)}")
            made.append(result)
    if not made:
        raise InputError("nothing was measured: " + next(iter(result["absent"].values()), "no entry takes part"))
    typer.echo(text_table(made))
    if any(result["absent"] for result in made):
        raise typer.Exit(1)


@arena.command(cls=Command, epilog=TABLE_EXAMPLES)
def table(
    results: Annotated[Path, typer.Argument(metavar="FOLDER", help="Result files.")] = Path("arena/results"),
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the page as Markdown, with picture, feed and badge beside it."),
    ] = None,
) -> None:
    """Show results as tables, or write the page of the leaderboard."""
    from unpoison.bench.arena import read_results
    from unpoison.bench.arena.leaderboard import text_table, write_page
    from unpoison.cli.common import say
    from unpoison.errors import InputError

    read = read_results(results)
    if not read:
        raise InputError(f"{results} holds no result files; make some with: unpoison arena run --quick")
    if page is None:
        typer.echo(text_table(read))
        return
    for path in write_page(read, page):
        say(str(path))


@arena.command(cls=Command)
def check(
    results: Annotated[Path, typer.Argument(metavar="FOLDER", help="Result files.")] = Path("arena/results"),
) -> None:
    """Check result files, and that nothing shipped was fitted on a text that may only be tested on."""
    from unpoison.bench.arena import read_results
    from unpoison.bench.data.disjoint import check_disjoint
    from unpoison.errors import InputError

    read = read_results(results)
    if not read:
        raise InputError(f"{results} holds no result files; make some with: unpoison arena run --quick")
    typer.echo(f"{len(read)} results of this version, every one as it was written")
    overlaps = check_disjoint()
    for overlap in overlaps:
        typer.echo(f"{overlap.fitted}: {overlap.shared} of its {overlap.texts:,} texts may only be tested on")
    if any(overlap.shared for overlap in overlaps):
        raise typer.Exit(1)


def _data(folder: Path | None) -> Data:
    from unpoison.bench.arena import Data
    from unpoison.bench.data.store import data_path

    return Data(data_path if folder is None else lambda name: folder / f"{name}.jsonl")
