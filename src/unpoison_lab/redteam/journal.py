"""Records every document on disk before it is planted: JSON Lines, readable by the owner only.

::

    {"event": "run", "version": 1, "target": {...}, "wait": {...}, "started": "..."}
    {"event": "planting", "canary": "unpoison-...", "question": "q1", "attack": "poisonedrag", "handles": []}
    {"event": "planted", "canary": "unpoison-...", "handles": ["17"]}
    {"event": "refused", "canary": "unpoison-..."}                the target certainly planted nothing
    {"event": "removing", "canary": "unpoison-..."}
    {"event": "kept", "canary": "unpoison-...", "reason": "..."}   the removal did not succeed
    {"event": "removed", "canary": "unpoison-...", "deleted": true, "confirmed": true}

`handles` of `planting` are ids that we chose; `confirmed` says that the system was asked and no longer read the
document. The target's description holds `${NAME}` in place of secrets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from unpoison.errors import InputError
from unpoison.io import output as json_lines
from unpoison.utils.files import Closing

__all__ = ["PlantRecord", "RunJournal"]

VERSION = 1
"""Version of the format; other versions are rejected."""


@dataclass(slots=True)
class PlantRecord:
    """One planted document in the journal.

    Attributes:
        canary: Its mark.
        question, attack: The question and the attack it was planted for.
        own: Ids that we chose; known even if the reply was lost.
        handles: Ids that the target gave; None if no reply is known.
        refused: The target certainly did not plant it.
        interrupted: A removal was started and its result is unknown.
        removed: The target has accepted its removal.
        confirmed: The target was asked and no longer read it.
    """

    canary: str
    question: str = ""
    attack: str = ""
    own: tuple[str, ...] = ()
    handles: tuple[str, ...] | None = None
    refused: bool = False
    interrupted: bool = False
    removed: bool = False
    confirmed: bool = False

    @property
    def open(self) -> bool:
        """Whether it may still be there."""
        return not (self.removed or self.refused)


@dataclass(slots=True)
class RunHistory:
    """The contents of a journal.

    Attributes:
        run: The first line; None for an empty journal.
        plants: By canary, in order.
        deleted: Whether the target ever said that it deleted something.
        damaged: Lines that cannot be read.
    """

    run: dict[str, Any] | None = None
    plants: dict[str, PlantRecord] = field(default_factory=dict)
    deleted: bool = False
    damaged: list[int] = field(default_factory=list)

    @property
    def open(self) -> list[PlantRecord]:
        """Documents that may still be planted, in order."""
        return [plant for plant in self.plants.values() if plant.open]

    @property
    def planted(self) -> list[PlantRecord]:
        """All documents in order, without those that the target refused."""
        return [plant for plant in self.plants.values() if not plant.refused]

    def ambiguous_handles(self) -> frozenset[str]:
        """Ids that the target returned for more than one document."""
        seen, shared = set[str](), set[str]()
        for plant in self.plants.values():
            for handle in {*plant.own, *(plant.handles or ())}:
                (shared if handle in seen else seen).add(handle)
        return frozenset(shared)

    def add(self, row: Mapping[str, Any]) -> None:
        """Apply one line.

        Raises:
            KeyError, TypeError, ValueError: It is not a line of a journal.
        """
        event = row["event"]
        if event == "run":
            if row["version"] != VERSION or not isinstance(row["target"], Mapping):
                raise ValueError(event)
            self.run = dict(row)
            return
        canary = row["canary"]
        if not isinstance(canary, str):
            raise TypeError(canary)
        if event == "planting":
            own = _handles(row.get("handles", []))
            self.plants[canary] = PlantRecord(canary, str(row["question"]), str(row["attack"]), own)
            return
        plant = self.plants[canary]
        if event == "planted":
            plant.handles = _handles(row["handles"])
        elif event == "refused":
            plant.refused = True
        elif event == "removing":
            plant.interrupted = True
        elif event == "kept":
            plant.interrupted = plant.removed = plant.confirmed = False
        elif event == "removed":
            plant.removed, plant.confirmed = True, row.get("confirmed") is True
            self.deleted |= row["deleted"] is True
        else:
            raise ValueError(event)


def _handles(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError(values)
    return tuple(values)


_ON_DISK = frozenset(("run", "planting", "planted"))


class RunJournal(Closing):
    """Appends events. One process at a time has a journal.

    Args:
        path: Created with mode 600. A torn last line is cut off: a document is planted only after its line is whole.

    Raises:
        InputError: Another process has it, or it is not a journal.
        OSError: It cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.history = path, RunHistory()
        self._lock = Lock()
        self._lines = json_lines.Journal(path, private_file=True, exclusive=True, check=self._load_history)

    @classmethod
    def begin(cls, path: Path, **run: Any) -> RunJournal:
        """A new journal in place of an earlier one.

        Args:
            path: The file.
            **run: The fields of its first line.

        Raises:
            InputError: Documents of an earlier run may still be planted, or it is not a journal.
        """
        if path.exists():
            with cls(path) as earlier:
                left = len(earlier.history.open) + len(earlier.history.damaged)
            if left:
                raise InputError(
                    f"{path} holds {left} documents that may still be planted; first run: unpoison redteam clean "
                    f"{path}, or remove them by hand, by their canaries, and delete the file"
                )
            path.unlink()
        journal = cls(path)
        try:
            journal.append("run", version=VERSION, **run)
        except BaseException:
            journal.close()
            raise
        return journal

    def append(self, event: str, **fields: Any) -> None:
        """Write one event durably: it survives a killed process.

        Planned documents and their ids are synced to disk and survive a power cut; if other events are lost, a document
        is removed twice.

        Raises:
            OSError: It could not be written whole.
        """
        row = {"event": event, **fields}
        with self._lock:
            self._lines.append(row, sync=event in _ON_DISK)
            self.history.add(row)

    def ambiguous_handles(self) -> frozenset[str]:
        """`RunHistory.ambiguous_handles`, while others append."""
        with self._lock:
            return self.history.ambiguous_handles()

    def _load_history(self) -> None:
        lines = 0
        for lines, line in json_lines.read_lines(self.path):
            try:
                self.history.add(json.loads(line))
            except (KeyError, TypeError, ValueError, RecursionError):
                self.history.damaged.append(lines)
        with self.path.open("rb") as file:
            begun = b'{"event": "run"'.startswith(file.read(15))  # a torn first line, or nothing yet
        if self.history.run is None and (lines or not begun):
            raise InputError(f"{self.path} is no journal of unpoison redteam; nothing is written to it or read from it")

    def close(self) -> None:
        self._lines.close()
