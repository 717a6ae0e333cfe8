"""Get the evaluation files by name, rebuilt byte for byte from public repositories at pinned commits.

    python -m benchmarks data list
    python -m benchmarks data get nq_poisoned corpus --accept-licence none,msmarco
    python -m benchmarks data get all --from MIRRORS

A built file has the very bytes that the documented tables were measured on: its SHA-256 is compared. UNPOISON_DATA
names the folder of built files; by default it is in the user's cache.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data.recipes import Recipe, SourceFile, strings_of
from benchmarks.data.sources import read_source
from unpoison_lab.data_files import built_folder

HERE = Path(__file__).parent

Entry = Mapping[str, Any]
"""An evaluation file in `catalogue.json`: `what`, `bytes`, `sha256`, `rows`, `licences`, `repositories`, ..."""


def catalogue() -> tuple[dict[str, Entry], dict[str, Entry]]:
    """The evaluation files by name, and the licences of their sources by slug."""
    content = json.loads((HERE / "catalogue.json").read_text(encoding="utf-8"))
    return content["files"], content["licences"]


def recipe(name: str) -> Recipe:
    """The recipe of an evaluation file."""
    return Recipe((HERE / "recipes" / f"{name}.json.xz").read_bytes())


def is_built(path: Path, entry: Entry) -> bool:
    """Whether a file has the bytes that the documented tables were measured on."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == entry["sha256"]


def list_files() -> None:
    """Print the evaluation files: which are here, their licences, and why one cannot be rebuilt."""
    files, licences = catalogue()
    folder = built_folder()
    for name, entry in files.items():
        terms = ", ".join(licences[slug]["title"] for slug in entry.get("licences", ()))
        why = entry.get("unavailable", "")
        state = "here" if (folder / f"{name}.jsonl").is_file() else f"cannot be rebuilt: {why}" if why else "get"
        print(f"{name:<28}{entry['bytes'] / 1e6:>6.1f} MB  {state:<6} {entry['what']}  [{terms}]")


def get(names: Sequence[str], accepted: set[str], mirrors: Path | None) -> None:
    """Build files that are not there yet, and those that belong to them.

    Raises:
        SystemExit: An unknown name, terms that are not accepted, a source that cannot be had.
    """
    files, licences = catalogue()
    wanted = [name for name, entry in files.items() if not entry.get("unavailable")] if names == ["all"] else names
    if unknown := [name for name in wanted if name not in files]:
        raise SystemExit(f"no evaluation file is named {unknown[0]}; the names are {', '.join(files)}")
    wanted = list(dict.fromkeys([*wanted, *(other for name in wanted for other in files[name].get("companions", ()))]))
    terms = {slug for name in wanted for slug in files[name].get("licences", ())}
    for slug in sorted(terms):
        print(f"licence: {licences[slug]['title']}: {licences[slug]['note']}".removesuffix(": "))
    refused = sorted(slug for slug in terms - accepted if licences[slug]["accept"])
    if refused and "all" not in accepted:
        raise SystemExit(f"nothing was downloaded; accept the terms above first: --accept-licence {','.join(refused)}")
    for name in wanted:
        print(f"{name}: {build(name, files[name], mirrors)}", flush=True)


def build(name: str, entry: Entry, mirrors: Path | None) -> Path:
    """Build one file and compare it with its hash.

    Raises:
        SystemExit: A source cannot be had, or what comes out is another file.
    """
    path = built_folder() / f"{name}.jsonl"
    if is_built(path, entry):
        return path
    ready = mirrors / f"{name}.jsonl" if mirrors else path
    if is_built(ready, entry):
        content = ready.read_bytes()
    elif entry.get("unavailable"):
        raise SystemExit(f"{name} cannot be rebuilt: {entry['unavailable']}; where you have the file: --from FOLDER")
    else:
        made = recipe(name)
        with ThreadPoolExecutor(8) as threads:
            content = made.rebuild(list(threads.map(partial(_strings, mirrors=mirrors), made.sources)))
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise SystemExit(f"{name}: what the sources give is another file; this is a defect, please report it")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_bytes(content)
    os.replace(draft, path)
    return path


def _strings(source: SourceFile, mirrors: Path | None) -> list[str]:
    return list(strings_of(read_source(source, mirrors, built_folder() / "sources"), source.path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the evaluation files, and which are here")
    getting = commands.add_parser("get", help="build files that are not here yet")
    getting.add_argument("names", nargs="+", metavar="NAME", help="files of the list, or all")
    getting.add_argument("--accept-licence", default="", metavar="LICENCES", help="several with commas, or all")
    getting.add_argument("--from", dest="mirrors", type=Path, help="no network: mirrors, checkouts or built files")
    given = parser.parse_args()
    if given.command == "list":
        list_files()
    else:
        get(given.names, set(filter(None, given.accept_licence.split(","))), given.mirrors)


if __name__ == "__main__":
    main()
