"""What is done to a part, in whichever process, and what is left of it: a few lines of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Self

from unpoison import __version__
from unpoison.batch.parts import Part
from unpoison.batch.screener import RowResults, Screener
from unpoison.core.registry import own_code
from unpoison.errors import InputError
from unpoison.io.file_rows import FileRow, json_line
from unpoison.io.rows import with_results

__all__ = ["Finished", "PartWork"]


@dataclass(frozen=True, slots=True)
class Finished:
    """The output rows of one part.

    Attributes:
        rows: How many.
        failures: Line or row numbers of those that failed, each with its error.
        transient: How many of them are not to blame themselves.
        lines: The rows as JSON Lines.
    """

    rows: int
    failures: tuple[tuple[int, str], ...]
    transient: int
    lines: bytes

    def to_bytes(self) -> bytes:
        """What a process hands over and a shard holds: a heading, and the lines."""
        heading = {"rows": self.rows, "failures": self.failures, "transient": self.transient, "bytes": len(self.lines)}
        return json.dumps(heading).encode() + b"\n" + self.lines

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read what `to_bytes` wrote.

        Raises:
            InputError: Something else, or not all of it.
        """
        heading, _, lines = content.partition(b"\n")
        try:
            values = json.loads(heading)
            failures = tuple((int(number), str(error)) for number, error in values["failures"])
            finished = cls(int(values["rows"]), failures, int(values["transient"]), lines)
            whole = values["bytes"] == len(lines)
        except (ValueError, TypeError, KeyError):
            whole = False
        if not whole:
            raise InputError("not a finished part of a batch; delete it")
        return finished


@dataclass(frozen=True, slots=True)
class PartWork:
    """What every engine does with a part: screen its rows.

    Attributes:
        screener: What is done to each row.
        results_only: Leave out the fields of the input, for an output that takes them from there.
    """

    screener: Screener
    results_only: bool = False

    @property
    def purpose(self) -> str:
        """All that decides the output of a given row, as text."""
        it = self.screener
        code = own_code(it.defense)
        settings = [__version__, it.defense, it.encoder, it.generator, it.nli, it.answer, self.results_only]
        if it.injection_model is not None:
            settings.append(it.injection_model)
        if it.sources is not None:
            settings += [it.sources, it.learn, sha256(Path(it.sources).read_bytes()).hexdigest()]
        return json.dumps([*settings, code] if code else settings)

    def per_worker(self, workers: int) -> PartWork:
        """The same work for each of several workers, which share the bound on model calls."""
        screener = self.screener
        return replace(self, screener=replace(screener, in_flight=max(1, screener.in_flight // workers)))

    def __call__(self, part: Part) -> bytes:
        """Read a part and do it.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: The defense cannot be made; no row is to blame.
        """
        lines, failures, transient = list[bytes](), list[tuple[int, str]](), 0
        for record in part.records():
            line, outcome = self._process_row(record)
            lines.append(line)
            if outcome.error is not None:
                failures.append((record.number, outcome.error))
                transient += outcome.transient
        return Finished(len(lines), tuple(failures), transient, b"".join(lines)).to_bytes()

    def _process_row(self, record: FileRow) -> tuple[bytes, RowResults]:
        line = {"line": record.number}
        if record.error is not None:
            outcome = self.screener.failure(record.error)
            return json_line(with_results(line, **outcome.results)), outcome
        outcome = self.screener.outcome(record.fields)
        kept = {} if self.results_only else record.fields or line
        try:
            return json_line(with_results(kept, **outcome.results)), outcome
        except (TypeError, ValueError, RecursionError) as error:  # a defense of somebody else's, or a bottomless row
            outcome = self.screener.failure(f"the result cannot be written as JSON: {error}")
            return json_line(with_results({} if self.results_only else line, **outcome.results)), outcome
