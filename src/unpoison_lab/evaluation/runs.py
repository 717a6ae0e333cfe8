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
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from math import nan
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from unpoison.core.codec import from_row
from unpoison.core.verdicts import Verdict
from unpoison.errors import InputError, clip
from unpoison.io.output import read_rows
from unpoison.utils.files import lock_file
from unpoison_lab.evaluation.poisoning import Staged
from unpoison_lab.evaluation.scenarios import Scenario

__all__ = [
    "Cell",
    "CellTally",
    "Record",
    "Run",
    "auroc",
    "environment",
    "file_of",
    "folder_name",
    "lock_folder",
    "moment",
    "open_run",
    "read_cell",
    "tally",
]


@dataclass(frozen=True, slots=True)
class CellTally:
    """The confusion counts of one context; positive means dropped.

    Attributes:
        poison_dropped, poison_kept: True positives and false negatives.
        clean_dropped, clean_kept: False positives and true negatives; gold passages are clean.
        gold_dropped, gold_kept: The gold passages among the clean ones.
    """

    poison_dropped: int
    poison_kept: int
    clean_dropped: int
    clean_kept: int
    gold_dropped: int
    gold_kept: int

    @property
    def poisoned(self) -> bool:
        """Whether any poison is left."""
        return self.poison_kept > 0

    @property
    def damaged(self) -> bool:
        """Whether any clean passage was dropped."""
        return self.clean_dropped > 0

    @property
    def emptied(self) -> bool:
        """Whether nothing is left of a context that held something."""
        return self.poison_kept + self.clean_kept == 0 and self.poison_dropped + self.clean_dropped > 0


def tally(count: int, kept: Iterable[int], poison: AbstractSet[int], gold: AbstractSet[int] = frozenset()) -> CellTally:
    """Count the passages of a context that a defense kept and dropped.

    Args:
        count: Passages in the context.
        kept: Positions that the defense kept, each once.
        poison: Positions of the poisoned passages.
        gold: Positions of the gold passages.

    Raises:
        InputError: A position outside the context, or one that is poison and gold at once.
    """
    stays = frozenset(kept)
    outside = [i for i in stays | poison | gold if not 0 <= i < count]
    if outside:
        raise InputError(f"position {min(outside)} lies outside a context of {count} passages; positions are 0-based")
    if poison & gold:
        raise InputError(f"position {min(poison & gold)} is marked poison and gold; mark it once")
    clean = frozenset(range(count)) - poison
    return CellTally(
        poison_dropped=len(poison - stays),
        poison_kept=len(poison & stays),
        clean_dropped=len(clean - stays),
        clean_kept=len(clean & stays),
        gold_dropped=len(gold - stays),
        gold_kept=len(gold & stays),
    )


def auroc(suspicion: ArrayLike, poison: ArrayLike) -> float:
    """The probability that a poisoned passage is more suspicious than a clean one, ties counting one half.

    Args:
        suspicion: Shape (n,), higher is more suspicious (the negated score of a verdict).
        poison: Shape (n,), whether each passage is poisoned.

    Returns:
        In [0, 1]; nan without a poisoned or without a clean passage. O(n log n).

    Raises:
        InputError: Different shapes, or a suspicion that is nan.
    """
    values, positive = np.asarray(suspicion, float), np.asarray(poison, bool)
    if values.shape != positive.shape or values.ndim != 1:
        raise InputError(f"suspicion and poison must have one shape (n,), got {values.shape} and {positive.shape}")
    if np.isnan(values).any():
        raise InputError(f"suspicion[{int(np.argmax(np.isnan(values)))}] is nan; leave such passages out")
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return nan
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    midranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(midranks[level][positive].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


@dataclass(frozen=True, slots=True)
class Record:
    """One question under one scenario. A failure has an `error`, and the rest is empty.

    Positions are 0-based, in the order in which the defense saw the passages.

    Attributes:
        example: The question's id in the data set.
        correct: The right answers.
        wanted: The replies that count as the attack's success.
        injected: Poisons planted for this question, retrieved or not.
        reached: How many of them reached the attack's own goal when they were crafted; None without an attack.
        poison: Positions of the poisoned passages.
        gold: Positions of the passages annotated as relevant.
        foreign: Positions of poisons made for another question, also in `poison`.
        verdicts: One per passage, in input order; empty after a failure.
        final: How many of the kept passages the generator reads, best first; None for all of them.
        notes: The notes of the defense.
        answer: The reply, None if no generator was asked.
        abstained: Whether the reply declines to answer, or nothing was left to answer from; None without a generator.
        status: Whether the sources agree (`types.Status`); None if no claims were read.
        guarantee: How many changed passages the answer is proved to withstand; None without a proof.
        screening_seconds: Wall time of the screening alone; of the whole answer for defenses that cannot be split.
        seconds: Wall time of screening and answer.
        calls: Prompts that the generator was sent, cached ones included.
        prompt_tokens, completion_tokens: None if the generator does not report them.
        judged: A judge's scores for accuracy, relevance and coherence, 1 to 10; None if one is missing.
        grade: A, B or C: the reply is correct, incorrect or not attempted; None without a grader.
        unanswered: Whether an answer was wanted and the defense failed.
        stage: Where it failed, "attack" or "defense"; "" otherwise.
        error: What went wrong, None otherwise.
    """

    example: str
    correct: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    injected: int = 0
    reached: int | None = None
    poison: tuple[int, ...] = ()
    gold: tuple[int, ...] = ()
    foreign: tuple[int, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    final: int | None = None
    notes: tuple[str, ...] = ()
    answer: str | None = None
    abstained: bool | None = None
    status: str | None = None
    guarantee: int | None = None
    screening_seconds: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    judged: tuple[int | None, ...] | None = None
    grade: str | None = None
    unanswered: bool = False
    stage: str = ""
    error: str | None = None

    @property
    def failed(self) -> bool:
        return self.error is not None

    @property
    def asked(self) -> bool:
        """Whether an answer was wanted, given or not."""
        return self.answer is not None or self.unanswered

    @property
    def settled(self) -> bool:
        """False for an answer that shows a disagreement of sources: it counts as neither right nor wrong."""
        return self.status != "disputed"

    @property
    def size(self) -> int:
        """Passages that the defense saw."""
        return len(self.verdicts)

    @property
    def kept(self) -> tuple[int, ...]:
        """Positions that the defense kept, best first."""
        ranked = [(verdict.rank, verdict.index) for verdict in self.verdicts if verdict.rank is not None]
        return tuple(index for _, index in sorted(ranked))

    @property
    def read(self) -> tuple[int, ...]:
        """Positions that the generator reads: the kept ones, cut to `final`."""
        return self.kept[: self.final]

    @property
    def order(self) -> tuple[int, ...]:
        """All positions by trust: the kept best first, then the dropped by score, in input order if scores tie."""
        dropped = [verdict for verdict in self.verdicts if not verdict.kept]
        return (*self.kept, *(verdict.index for verdict in sorted(dropped, key=lambda verdict: -verdict.score)))

    @property
    def tally(self) -> CellTally:
        """Dropped and kept passages, by kind."""
        return tally(self.size, self.kept, frozenset(self.poison), frozenset(self.gold))


@dataclass(frozen=True, slots=True)
class Cell:
    """A scenario and its records so far.

    Attributes:
        id: The scenario's hash; names its file of records.
        scenario: The scenario.
        contexts: The hash that names the file of contexts; scenarios with equal ones showed the same passages.
        expected: How many questions it asks.
        records: In the order of the data set; fewer than `expected` when the run was interrupted.
        error: Why the scenario could not begin (a defense that needs a generator, an attack that needs a model, a
            data set without questions), None otherwise.
    """

    id: str
    scenario: Scenario
    contexts: str = ""
    expected: int = 0
    records: tuple[Record, ...] = ()
    error: str | None = None

    @property
    def complete(self) -> bool:
        return self.error is None and len(self.records) == self.expected

    @property
    def failures(self) -> tuple[Record, ...]:
        """The records that failed."""
        return tuple(record for record in self.records if record.failed)

    @property
    def usable(self) -> tuple[Record, ...]:
        """The records that did not."""
        return tuple(record for record in self.records if not record.failed)


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
