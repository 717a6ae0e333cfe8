"""What `screen` and `ask` share: rows through a piece of work, in order, failures as data, with a progress bar."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from unpoison import registry
from unpoison.cli.files import Record, Source
from unpoison.defenses.base import Defense
from unpoison.errors import InputError, ModelError, OptionError
from unpoison.models.loading import load_encoder, load_generator
from unpoison.models.protocols import Encoder, Generator
from unpoison.rendering import plain
from unpoison.rows import Row

__all__ = [
    "Outcome",
    "Tally",
    "cached_generator",
    "counted",
    "make_defense",
    "make_encoder",
    "outcomes",
    "say",
    "tracked",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """What became of one record: a result, or the reason why there is none."""

    record: Record
    result: T | None
    error: str | None = None

    @property
    def failed_fields(self) -> dict[str, Any]:
        """What the output says of a failed record: its own fields, or its line where it has none, and the error."""
        return {**(self.record.fields or {"line": self.record.number}), "error": self.error}


def outcomes(
    source: Source,
    work: Callable[[Row], T],
    *,
    limit: int | None = None,
    at_once: int = 1,
    failures: tuple[type[Exception], ...] = (InputError, ModelError),
) -> Iterator[Outcome[T]]:
    """Do the work on every record, `at_once` side by side, and yield in the order of the source.

    At most `2 * at_once` records are in memory. An exception that is none of `failures` ends everything.
    """

    def outcome(record: Record) -> Outcome[T]:
        if record.error is not None:
            return Outcome(record, None, record.error)
        try:
            return Outcome(record, work(Row.of(record.fields)))
        except failures as error:
            return Outcome(record, None, str(error))

    records = islice(source, limit)
    if at_once == 1:
        yield from map(outcome, records)
        return
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="unpoison-row")
    waiting: deque[Future[Outcome[T]]] = deque()
    try:
        for record in records:
            waiting.append(pool.submit(outcome, record))
            if len(waiting) == 2 * at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def tracked(outcomes: Iterable[Outcome[T]], source: Source, *, rows_on_stdout: bool) -> Iterator[Outcome[T]]:
    """The same outcomes, with a progress bar on standard error where a person can see it.

    There is none when standard error is no terminal, or when the rows themselves appear on the same terminal.
    """
    if not sys.stderr.isatty() or (rows_on_stdout and sys.stdout.isatty()):
        yield from outcomes
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.fields[rows]} rows"))
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=source.size, rows=0)
        for rows, outcome in enumerate(outcomes, 1):
            bar.update(task, completed=outcome.record.position, rows=rows)
            yield outcome


class Tally:
    """Counts outcomes and reports every failure where it happens."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.done = 0
        self.failed = 0

    def add(self, outcome: Outcome[Any]) -> None:
        if outcome.error is None:
            self.done += 1
        else:
            self.failed += 1
            say(f"{self.source}:{outcome.record.number}: {outcome.error}")

    def summary(self, verb: str) -> str:
        """Such as "screened 3 rows; 1 failed"."""
        return f"{verb} {counted(self.done, 'row')}" + (f"; {self.failed:,} failed" if self.failed else "")

    @property
    def exit_code(self) -> int:
        """0 when nothing failed, 1 when some rows did, 2 when all did."""
        return 0 if not self.failed else 1 if self.done else 2


def counted(number: int, noun: str) -> str:
    """Such as "1 row" or "1,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(message: str) -> None:
    """One line on standard error."""
    print(plain(message), file=sys.stderr)  # noqa: T201  this is what the command line is for


def make_encoder(spec: str | None, cache: Path | None) -> Encoder | str | None:
    """The encoder of `--encoder`, remembering its vectors in `cache` where one is given."""
    if cache is None:
        return spec
    from unpoison.models.cache import CachedEncoder

    return CachedEncoder(load_encoder(spec or "lexical"), path=cache)


def cached_generator(spec: str, cache: str) -> Generator:
    """The generator of `--generator`, remembering its replies as `--cache` says: a file, `memory` or `off`."""
    generator = load_generator(spec)
    if cache == "off":
        return generator
    from unpoison.models.cache import CachedGenerator

    return CachedGenerator(generator, path=None if cache == "memory" else cache)


def make_defense(spec: str, **given: Any) -> Defense:
    """The defense that an option string names, with the models of the other options.

    Raises:
        UnknownNameError: No such defense.
        OptionError: An unknown option, a model that this defense does not take, or one that it needs.
    """
    name, _ = registry.parse(spec)
    accepted = inspect.signature(registry.find("defenses", name)).parameters
    for option in ("encoder", "nli", "beliefs"):
        if given.get(option) is not None and option not in accepted:
            raise OptionError(f"{name} takes no --{option}; leave it out")
    defense: Defense = registry.create("defenses", spec, **given)
    for model in defense.needs:
        if getattr(defense.models, model) is None:
            option = f"--{model}" if model in given else f"-d {name}:{model}=..."
            raise OptionError(f"{name} needs a {model.replace('_', ' ')}; give one with {option}")
    return defense
