"""Shared by several commands: processing rows in order, failures as data, progress bars and messages."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from unpoison.defenses.base import Defense
from unpoison.errors import InputError
from unpoison.io.files import open_source
from unpoison.models.loading import can_write, load_generator
from unpoison.models.protocols import Generator
from unpoison.sources.sources import Sources
from unpoison.utils.files import path_names
from unpoison.utils.plain_text import count_noun, excerpt, first_of, plain

__all__ = [
    "RowCounts", "cache_replies", "progress", "row_progress", "say", "say_unmatched", "status_of_sources",
    "usable_rows",
]  # fmt: skip


T = TypeVar("T")


def status_of_sources(defense: Defense, status: int) -> int:
    """The exit status; 1 with a warning if the history of sources could not be used."""
    if defense.sources is None:
        return status
    say_unmatched(defense.sources, every=False)
    for note in defense.sources.notes:
        say(f"warning: {note}")
    return status or int(bool(defense.sources.notes))


def say_unmatched(sources: Sources, files: Iterable[str] = (), *, every: bool = True) -> None:
    """Name the patterns of a policy that no source matched, and such a source; unless `every`, only if none did.

    Both names of the folders and files that were read count as sources: a policy may list the one that is not used.
    """
    for path in map(Path, files):
        for name in path_names(path):
            sources.blocks({"source": f"{name}/" if path.is_dir() else name})
    unused, patterns = sources.unmatched(), sources.policy.patterns
    if sources.met and unused and (every or len(unused) == len(patterns)):
        named = first_of([excerpt(pattern) for pattern in unused], NAMED)
        say(f"patterns without a match: {named}; sources are named here as {excerpt(sources.met)}")


NAMED = 3
"""Patterns named in a sentence."""


@contextmanager
def row_progress(*, rows_on_stdout: bool) -> Iterator[Callable[[int, int | None, int], None]]:
    """A progress bar for the rows of a file, on standard error; yields a function of position, size and rows.

    Hidden if standard error is not a terminal, or if the rows themselves appear on the same terminal.
    """
    hidden = rows_on_stdout and sys.stdout.isatty()
    with _bar("{task.fields[rows]} rows", rows=0, counted=False, hidden=hidden) as update:
        yield lambda position, size, rows: update(completed=position, total=size, rows=rows)


@contextmanager
def progress() -> Iterator[Callable[[int, int | None, str], None]]:
    """A progress bar for counted work, on standard error; yields a function of done, total if known, and label."""
    with _bar("{task.description}", counted=True) as update:
        yield lambda done, total, doing: update(completed=done, total=total, description=plain(doing))


@contextmanager
def _bar(remark: str, *, counted: bool, hidden: bool = False, **fields: Any) -> Iterator[Callable[..., None]]:
    """A progress bar with the remaining time on standard error; yields its update function."""
    if hidden or not sys.stderr.isatty():
        yield lambda **_: None
        return
    from rich import progress as rich
    from rich.console import Console

    share = rich.MofNCompleteColumn() if counted else rich.TaskProgressColumn()
    columns = (rich.BarColumn(), share, rich.TimeRemainingColumn(), rich.TextColumn(remark, markup=False))
    with rich.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield partial(bar.update, bar.add_task("", total=None, **fields))


ALIKE = 5
"""Failures of one kind that are reported one by one."""


class RowCounts:
    """Counts outcomes and reports every failure as it happens, or only the first `most`.

    Identical failures are reported `ALIKE` times, then only counted.
    """

    def __init__(self, source: str, most: int | None = None) -> None:
        self.source, self.most = source, most
        self.done = self.failed = self.resumed = 0
        self._alike: Counter[str] = Counter()

    def add(self, number: int, error: str | None = None) -> None:
        """Count one row, by its number, which failed if there is an error."""
        self.add_part(1, [] if error is None else [(number, error)], resumed=False)

    def add_part(self, rows: int, failures: Sequence[tuple[int, str]], *, resumed: bool) -> None:
        """Count many rows at once, of which some failed."""
        self.done += rows - len(failures)
        self.resumed += rows if resumed else 0
        for number, error in failures:
            self._fail(number, error)

    def _fail(self, number: int, error: str) -> None:
        self.failed += 1
        if len(self._alike) < 1000:  # many different ones are no pattern
            self._alike[error] += 1
        alike = self._alike[error]
        if alike > ALIKE:
            if alike == ALIKE + 1:
                say(f"{self.source}:{number}: the same error; further rows with it are only counted")
        elif self.most is None or self.failed <= self.most:
            say(f"{self.source}:{number}: {error}")
        elif self.failed == self.most + 1:
            say("more rows failed; each has its error in the output")

    @property
    def rows(self) -> int:
        """All rows so far."""
        return self.done + self.failed

    def require_rows(self) -> None:
        """Raise an `InputError` if there was none, usually a mistake of the program that wrote the file."""
        if not self.rows:
            raise InputError(f"{self.source} holds no rows; give a file with a question and passages on each line")

    def summary(self, verb: str) -> str:
        """Such as "screened 3 rows; 1 failed"."""
        failed = f"; {self.failed:,} failed" if self.failed else ""
        resumed = f"; {count_noun(self.resumed, 'row')} of them in an earlier run" if self.resumed else ""
        return f"{verb} {count_noun(self.done, 'row')}{failed}{resumed}"

    @property
    def exit_code(self) -> int:
        """0 when nothing failed, 1 when some rows did, 2 when all did."""
        return 0 if not self.failed else 1 if self.done else 2


def usable_rows(files: Iterable[str], counts: RowCounts, read: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    """What `read` makes of the rows of every file; unusable rows are reported."""
    for file in files:
        with open_source(file) as source, row_progress(rows_on_stdout=False) as show:
            counts.source = source.name
            for number, record in enumerate(source, 1):
                if number % 100 == 0:
                    show(record.position, source.size, number)
                try:
                    if record.error is not None:
                        raise InputError(record.error)
                    found = read(record.fields)
                except InputError as error:
                    counts.add(record.number, str(error))
                else:
                    counts.add(record.number)
                    yield found


def say(message: str) -> None:
    """One line on standard error."""
    print(plain(message), file=sys.stderr)  # noqa: T201  the output of the command


def cache_replies(spec: str, cache: str) -> Generator:
    """The generator of `--generator`, remembering its replies as `--cache` says: a file, `memory` or `off`."""
    generator = load_generator(spec)
    if cache == "off" or (cache == "memory" and not can_write(generator)):
        return generator  # a reader remembers by itself, and reads best many at once
    from unpoison.models.cache import CachedGenerator

    return CachedGenerator(generator, path=None if cache == "memory" else cache)
