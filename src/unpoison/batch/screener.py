"""Parts of a question file, and the screening of their rows on any engine; a failure becomes a row with an error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from unpoison import __version__
from unpoison.core.answers import Answer
from unpoison.core.registry import own_code
from unpoison.core.screenings import Screening
from unpoison.defenses import load_defense
from unpoison.defenses.base import Defense
from unpoison.errors import MissingExtraError, ModelError, OptionError, StoreError, UnpoisonError
from unpoison.io.file_rows import FileRow, Source, json_line
from unpoison.io.rows import Row, answer_fields, with_results
from unpoison.models.protocols import Generator
from unpoison.runtime.driver import Limits

__all__ = ["MAX_ROWS", "BatchPart", "BatchScreener", "Finished", "cut"]

MAX_ROWS = 64
"""Rows of one part."""

MAX_BYTES = 8 * 2**20
"""Bytes after which a part ends."""


@dataclass(frozen=True, slots=True)
class BatchPart:
    """Consecutive rows of a file.

    Attributes:
        lines: A row each, as JSON: its number, its fields, and why it could not be read.
        position: How far the file is read at its end, in the unit of `Source.size`.
    """

    lines: tuple[bytes, ...]
    position: int

    def rows(self) -> Iterator[FileRow]:
        """The rows, as reading the whole file would give them."""
        for line in self.lines:
            number, fields, error = json.loads(line)
            yield FileRow(number, fields, error, self.position)

    def key(self, purpose: str) -> str:
        """A hash of the part and of the work on it."""
        return blake2b(b"\n".join((purpose.encode(), *self.lines)), digest_size=16).hexdigest()

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return sum(map(len, self.lines))


def cut(source: Source, *, most: int = MAX_ROWS, limit: int | None = None) -> Iterator[BatchPart]:
    """Cut a source into parts of at most `most` rows, and of at most `limit` rows together.

    The cuts depend on the file and these two numbers only; one part is in memory at a time.

    Raises:
        InputError: The file is damaged, or not what its name says.
    """
    lines, size, position = list[bytes](), 0, 0
    for row in islice(source, limit):
        lines.append(_line(row))
        size, position = size + len(lines[-1]), row.position
        if len(lines) == most or size >= MAX_BYTES:
            yield BatchPart(tuple(lines), position)
            lines, size = [], 0
    if lines:
        yield BatchPart(tuple(lines), position)


def _line(row: FileRow) -> bytes:
    try:
        return json.dumps((row.number, row.fields, row.error)).encode()
    except RecursionError:
        return json.dumps((row.number, {}, "no usable JSON: nested too deeply")).encode()


class Finished(NamedTuple):
    """The output rows of one part.

    Attributes:
        lines: The rows as JSON Lines.
        rows: Number of rows.
        failures: Line or row numbers of failed rows, each with its error.
        transient: Number of failures that may succeed later.
    """

    lines: bytes
    rows: int
    failures: Sequence[tuple[int, str]]
    transient: int


MAX_ERROR = 500
"""Maximum characters of a foreign error message."""


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of one row: a screening or an answer, or an error.

    Attributes:
        result: None if the row failed.
        error: None if it did not.
        transient: Whether a retry may succeed, because a model or a store failed.
    """

    result: Screening | Answer | None
    error: str | None = None
    transient: bool = False


@dataclass(frozen=True)
class BatchScreener:
    """A defense that can be sent to workers: it holds strings and numbers, and loads its models where it runs.

    `BatchScreener("guard")(rows)` takes rows of `unpoison screen` as mappings and returns one output row each, in
    order: the row's fields with `screening`, or with `error`. The input rows are not changed.

    Attributes:
        defense: A defense's name with options, such as `grada:alpha=0.3`.
        encoder, generator, nli: Model strings as on the command line; None for the defense's default.
        sources: The file of a policy or history of sources; None for none.
        learn: Whether to update the history; results then depend on earlier rows.
        in_flight: Concurrent model calls of one row.
        deadline: Time limit of one answer in seconds, None for none.
        retries: Retries of a model call.
        part: Rows of a part; by default few with model calls, so that an interruption loses few paid ones.
        threads: Whether workers are threads, whatever the models.

    Raises:
        OptionError: `learn` without `sources`.
    """

    defense: str = "guard"
    encoder: str | None = None
    generator: str | None = None
    nli: str | None = None
    sources: str | None = None
    learn: bool = False
    in_flight: int = 32
    deadline: float | None = 120.0
    retries: int = 3
    part: ClassVar[int] = 0
    threads: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.learn and self.sources is None:
            raise OptionError("--learn writes into the history of --sources; give that file as well")

    def __call__(self, rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One output row for each row, in order.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: The defense cannot be created.
        """
        return [self.output(row, self.outcome(row)) for row in rows]

    def outcome(self, row: Mapping[str, Any], defense: Defense | None = None) -> RowOutcome:
        """Screen one row. A failure affects this row alone.

        Args:
            row: A mapping.
            defense: From `load`; None for `loaded`.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: The defense cannot be created.
        """
        chosen = defense or self.loaded
        try:
            return RowOutcome(self.result(chosen, Row.of(row)))
        except (OptionError, MissingExtraError):
            raise
        except UnpoisonError as error:
            return RowOutcome(None, str(error), isinstance(error, (ModelError, StoreError)))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"[:MAX_ERROR]
            return RowOutcome(None, f"{problem}; this is a bug, please report it", transient=True)

    def result(self, defense: Defense, row: Row) -> Screening | Answer:
        """What the defense makes of a row."""
        return defense.screen(row.query, row.passages)

    def output(self, row: Mapping[str, Any], outcome: RowOutcome) -> dict[str, Any]:
        """The output row: the row's fields with `screening`, perhaps `answer` and `generator`, or with `error`."""
        named = {} if self.answers_with is None else {"generator": self.answers_with}
        if outcome.result is None:
            return with_results(row, error=outcome.error, **named)
        if isinstance(outcome.result, Screening):
            return with_results(row, screening=outcome.result.summary(), **named)
        return with_results(row, **answer_fields(outcome.result, named["generator"]))

    @property
    def model(self) -> Generator | str | None:
        """What the defense asks."""
        return self.generator

    @property
    def answers_with(self) -> str | None:
        """The model that answers, which every row names; None without answers."""
        return None

    def shared_by(self, workers: int) -> BatchScreener:
        """The same for each of several workers, which share the bound on model calls."""
        return self if workers == 1 else replace(self, in_flight=max(1, self.in_flight // workers))

    def screen_part(self, part: BatchPart) -> Finished:
        """Screen the rows of a part.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: The defense cannot be created; no row is to blame.
        """
        lines, failures, transient = list[bytes](), list[tuple[int, str]](), 0
        for record in part.rows():
            line, outcome = self._line_of(record)
            lines.append(line)
            if outcome.error is not None:
                failures.append((record.number, outcome.error))
                transient += outcome.transient
        return Finished(b"".join(lines), len(lines), failures, transient)

    def screen_record(
        self, record: FileRow, defense: Defense | None = None
    ) -> tuple[FileRow, dict[str, Any], RowOutcome]:
        """A record, its output row and its outcome; a record without fields is named by its line."""
        outcome = RowOutcome(None, record.error) if record.error is not None else self.outcome(record.fields, defense)
        return record, self.output(record.fields or {"line": record.number}, outcome), outcome

    def _line_of(self, record: FileRow) -> tuple[bytes, RowOutcome]:
        _, row, outcome = self.screen_record(record)
        try:
            return json_line(row), outcome
        except (TypeError, ValueError, RecursionError) as error:  # a third party's defense, or a deeply nested row
            outcome = RowOutcome(None, f"the result cannot be written as JSON: {error}")
            return json_line(self.output({"line": record.number}, outcome)), outcome

    @property
    def purpose(self) -> str:
        """Everything that determines the output of a row, as text."""
        models = (self.encoder, self.generator, self.nli)
        settings: list[object] = [__version__, self.defense, *models, own_code(self.defense)]
        if self.sources is not None:
            settings += [self.sources, self.learn, sha256(Path(self.sources).read_bytes()).hexdigest()]
        return json.dumps(settings)

    def load(self, **more: Any) -> Defense:
        """The defense with its models, and with more options.

        Raises:
            OptionError, UnknownNameError, MissingExtraError: As `loaded`.
        """
        if self.sources is not None:
            more = {"sources": self.sources, "learn": self.learn, **more}
        more = {"limits": Limits(in_flight=self.in_flight, deadline=self.deadline, retries=self.retries), **more}
        return load_defense(self.defense, encoder=self.encoder, generator=self.model, nli=self.nli, **more)

    @cached_property
    def loaded(self) -> Defense:
        """The defense with its models, loaded on first use.

        Raises:
            OptionError: An invalid option, or a defense with beliefs.
            UnknownNameError: No such defense.
            MissingExtraError: A model needs an extra that is not installed.
        """
        defense = self.load()
        if getattr(defense, "beliefs", None) is not None:
            raise OptionError(
                "a batch answers its rows in any order, and beliefs need the order of time; leave out beliefs, or use "
                "unpoison ask --stream"
            )
        return defense

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
