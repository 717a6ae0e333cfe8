"""A run on disk: its manifest, and the cells measured so far. It can be read while it runs or after it was killed.

::

    manifest.json          scenarios, versions, data
    contexts/ID.jsonl      the input of the defenses, shared by all scenarios with the same passages
    poisons/ID.jsonl       texts of the attacks
    records/ID.jsonl       one line per question of one scenario
    judgements/ID.jsonl    scores and grades of the answers
    vectors.db replies.db  caches of encoders and generators
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from unpoison.bench.evaluation.poisoning import Staged
from unpoison.bench.evaluation.records import Cell, Record
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.core.codec import from_row
from unpoison.errors import InputError, clip
from unpoison.io.journal import read_rows
from unpoison.utils.files import lock_file

__all__ = [
    "Run",
    "environment",
    "file_of",
    "folder_name",
    "lock_folder",
    "moment",
    "open_run",
    "read_cell",
    "read_manifest",
]

PACKAGES = ("numpy", "scipy", "rapidfuzz", "torch", "transformers", "sentence-transformers", "onnxruntime")
"""Their versions are in the manifest."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run, finished or not.

    Attributes:
        folder: Its folder.
        manifest: `scenarios`, `data` with digests and the rows left out, `versions`, `command`,
            `started`, `finished` (None when it was interrupted).
        cells: In the order of the scenarios.
    """

    folder: Path
    manifest: Mapping[str, Any] = field(repr=False)
    cells: tuple[Cell, ...] = field(repr=False)

    @property
    def complete(self) -> bool:
        """Whether every question of every scenario has a record."""
        return all(cell.complete for cell in self.cells)

    def read_contexts(self, cell: Cell) -> dict[str, Staged]:
        """The input of the defense, by the example's id; empty if that was not reached."""
        contexts = map(Staged.from_dict, read_rows(file_of(self.folder, "contexts", cell.contexts)))
        return {context.example: context for context in contexts}


def open_run(folder: str | Path) -> Run:
    """Read a run from its folder.

    Raises:
        InputError: No manifest there, or one that cannot be read.
    """
    path = Path(folder)
    manifest = read_manifest(path / "manifest.json")
    cells = [
        Cell(
            recorded["id"],
            Scenario.from_dict(recorded["scenario"]),
            recorded["contexts"],
            recorded["expected"],
            error=recorded["error"],
        )
        for recorded in manifest["cells"]
    ]
    return Run(path, manifest, tuple(read_cell(path, cell) for cell in cells))


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest.

    Raises:
        InputError: It cannot be read, or is not a run.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give the manifest.json of a run") from None
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}; give the manifest.json of a run") from None
    needed = {"id", "contexts", "expected", "error", "scenario"}
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) and needed <= cell.keys() for cell in cells):
        raise InputError(f"{path} is no manifest: it lists no cells, got {clip(content)}")
    return dict(content)


def read_cell(folder: Path, cell: Cell) -> Cell:
    """The cell with the records that are on disk; of two lines for one question the later counts."""
    records: dict[str, Record] = {}
    for row in read_rows(file_of(folder, "records", cell.id)):
        record = from_row(Record, row)
        records[record.example] = record
    return replace(cell, records=tuple(records.values()))


def file_of(folder: Path, kind: Literal["records", "contexts", "poisons", "judgements"], identifier: str) -> Path:
    """The path of one file of a run."""
    return folder / kind / f"{identifier}.jsonl"


def folder_name(scenarios: Iterable[Scenario]) -> str:
    """A short hash of the scenarios, for the folder of a run."""
    text = "\n".join(scenario.identifier() for scenario in scenarios)
    return blake2b(text.encode(), digest_size=6).hexdigest()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a run's folder against a second process; the operating system releases the lock when this process ends.

    Raises:
        InputError: Another process has the folder.
    """
    with (folder / "lock").open("ab") as file:
        if not lock_file(file.fileno()):
            raise InputError(f"another process runs in {folder}; wait for it, or give another --folder")
        yield


def environment() -> dict[str, Any]:
    """The versions and the machine, for a manifest."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "versions": {name: installed for name in PACKAGES if (installed := _version(name)) is not None},
    }


def moment() -> str:
    """Now, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
