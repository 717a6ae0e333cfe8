"""`unpoison data`: the evaluation files by name, rebuilt from public sources."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.options import Command

if TYPE_CHECKING:
    from unpoison.bench.data.catalogue import DataFile, Licence

__all__ = ["data"]

LIST_EXAMPLES = """\b
Examples:
  unpoison data list
"""

GET_EXAMPLES = """\b
Examples:
  unpoison data get ramdocs
  unpoison data get nq_poisoned --accept-licence none,msmarco
  unpoison data get all --accept-licence all
  unpoison data get all --from mirrors/
  unpoison evaluate -d guard -g extractive -a poisonedrag nq_poisoned

A built file has the very bytes that the documented tables were measured on: its SHA-256 is compared. UNPOISON_DATA
names the folder of built files; by default it is in the user's cache.
"""

CHECK_EXAMPLES = """\b
Examples:
  unpoison data check
  unpoison data check --from data/
  unpoison data check --training
"""

From = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="FOLDER",
        help="Use no network: a folder of git mirrors or checkouts, of source files, or of files already built.",
    ),
]

data = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Get the evaluation files by name.")


@data.command("list", cls=Command, epilog=LIST_EXAMPLES)
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON Lines, one file each.")] = False,
) -> None:
    """List the evaluation files: which are here, their licences, and why one cannot be rebuilt."""
    import json

    from unpoison.bench.data.catalogue import catalogue, licences
    from unpoison.bench.data.store import Store

    store = Store()
    for file in catalogue().values():
        here = store.has(file)
        terms = [licences()[slug].title for slug in file.licences]
        if as_json:
            row = {"name": file.name, "what": file.what, "bytes": file.bytes, "rows": file.rows, "sha256": file.sha256}
            row |= {"here": here, "download": file.download, "licences": terms, "unavailable": file.unavailable}
            typer.echo(json.dumps({**row, "repositories": file.repositories}, ensure_ascii=False))
            continue
        state = "here" if here else "no recipe" if file.unavailable else f"get {_megabytes(file.download)}"
        typer.echo(f"{file.name:<21}{_megabytes(file.bytes):>8}  {state:<12}{file.what}  [{', '.join(terms)}]")
        if file.unavailable:
            typer.echo(f"{'':<31}cannot be rebuilt: {file.unavailable}")
    if not as_json:
        built, sources = store.sizes()
        typer.echo(f"{store.folder}: {_megabytes(built)} built, {_megabytes(sources)} of sources")


@data.command(cls=Command, epilog=GET_EXAMPLES)
def get(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Files of 'unpoison data list', or all.")],
    given: From = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept-licence",
            metavar="LICENCE",
            help="Accept these terms, several with commas, or all that are shown.",
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where raw files of the repositories are, as /OWNER/NAME/COMMIT/PATH."),
    ] = None,
) -> None:
    """Rebuild evaluation files from their public sources, byte for byte."""
    from unpoison.bench.data.build import Terms, build, origin_of, with_companions
    from unpoison.bench.data.catalogue import catalogue, licences
    from unpoison.bench.data.origins import BASE, Downloads
    from unpoison.bench.data.store import Store
    from unpoison.cli.common import progress, say
    from unpoison.errors import OptionError

    store = Store()
    wanted = names
    if names == ["all"]:
        ready = given or store.folder
        wanted = [
            name for name, file in catalogue().items() if not file.unavailable or (ready / f"{name}.jsonl").is_file()
        ]
    given_terms = [slug for name in accept or () for slug in name.split(",") if slug]
    if stray := [name for name in names if name in licences() and name not in catalogue()]:
        raise OptionError(
            f"{stray[0]} is a licence and no evaluation file; give several with commas: "
            f"--accept-licence {','.join([*given_terms, *stray])}"
        )
    files = with_companions(wanted)
    terms = Terms(store, _ask if sys.stdin.isatty() and sys.stderr.isatty() else None)
    shown = sorted({slug for file in files for slug in file.licences})
    for slug in shown:
        say(f"licence: {licences()[slug]}")
    terms.accept([slug for name in given_terms for slug in (shown if name == "all" else [name])])
    terms.check(files)
    origin = origin_of(store, given, lambda: Downloads(store, mirror or BASE))
    for file in files:
        with progress() as show:
            done = build(file, store, origin, given, show)
        typer.echo(_line(file, store.path(file), "built" if done else "here already"))


@data.command(cls=Command, epilog=CHECK_EXAMPLES)
def check(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="By default all that are here.")] = None,
    given: Annotated[Path | None, typer.Option("--from", metavar="FOLDER", help="A folder of built files.")] = None,
    training: Annotated[
        bool,
        typer.Option(
            "--training", help="Instead see that nothing shipped was fitted on a text that is only tested on."
        ),
    ] = False,
) -> None:
    """Compare the built files with the hashes of what the documented tables were measured on."""
    if training:
        _check_training()
        return
    from unpoison.bench.data.build import check_folder
    from unpoison.bench.data.catalogue import catalogue, data_file
    from unpoison.bench.data.store import Store
    from unpoison.errors import InputError

    folder = given or Store().folder
    files = [data_file(name) for name in names] if names else list(catalogue().values())
    said = check_folder(files, folder)
    for name in names or ():
        said.setdefault(data_file(name).name, "is not there")
    if not said:
        raise InputError(f"{folder} holds no evaluation file; get one: unpoison data get NAME")
    for name, wrong in said.items():
        typer.echo(f"{name}: {wrong or 'the file that the tables were measured on'}")
    if any(said.values()):
        raise typer.Exit(1)


def _check_training() -> None:
    from unpoison.bench.data.disjoint import check_disjoint

    found = check_disjoint()
    for fitted, texts, tested, shared in found:
        typer.echo(
            f"{fitted}: fitted on {texts:,} texts, {shared:,} of them among the {tested:,} that are only tested on"
        )
    if any(one.shared for one in found):
        raise typer.Exit(1)


def _ask(licence: Licence, names: Sequence[str]) -> bool:
    return typer.confirm(f"{', '.join(names)}: {licence}. Accept?", err=True)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _line(file: DataFile, path: Path, state: str) -> str:
    return (
        f"{file.name}: {state}, {file.rows:,} rows, {file.bytes:,} bytes, SHA-256 {file.sha256[:16]}..., the file that "
        f"the tables were measured on: {path}"
    )
