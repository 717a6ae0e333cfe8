"""`--stream` of `ask`: rows in the order of time, and what a defense carries from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path

from unpoison.beliefs import belief_key
from unpoison.bench.evaluation.adaptations import Answerer
from unpoison.bench.evaluation.timelines import stream_rows
from unpoison.cli.options import Carry
from unpoison.defenses.base import Defense
from unpoison.defenses.radar import Radar
from unpoison.errors import InputError, OptionError, clip
from unpoison.io.file_rows import FileRow, Source
from unpoison.io.files import open_source
from unpoison.io.rows import QUERY_FIELDS

__all__ = ["open_stream", "with_carry"]

BUILT_IN = "timeline"
"""The name of the built-in sample, where no file is called so."""


class StreamSource:
    """The steps of another source, each a record of its own with `time`; never back in time for the same question."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.name = source.name
        self.size = source.size
        self._latest: dict[str, str] = {}

    def __iter__(self) -> Iterator[FileRow]:
        for record in self._source:
            if record.error is not None:
                yield record
                continue
            try:
                steps = stream_rows(record.fields, record.number, Path(self.name).stem)
            except InputError as error:
                yield FileRow(record.number, record.fields, str(error), record.position)
                continue
            for step in steps:
                yield FileRow(record.number, step, self._late(step), record.position)

    def _late(self, step: dict[str, object]) -> str | None:
        """Why a step comes too late, or None."""
        question, time = next((step[name] for name in QUERY_FIELDS if step.get(name)), None), str(step["time"])
        if not isinstance(question, str):
            return None  # reported where the row is read
        latest = self._latest.setdefault(belief_key(question), time)
        if time < latest:
            return f"time {clip(time)} lies before {clip(latest)}, when the question was asked last; sort the file"
        self._latest[belief_key(question)] = time
        return None


@contextmanager
def open_stream(path: str) -> Iterator[Source]:
    """Open a question file as a stream; `timeline` is the built-in sample.

    Raises:
        OSError: The file cannot be opened.
        InputError: Not a Parquet file.
    """
    if path == BUILT_IN and not Path(path).exists():
        with as_file(files("unpoison").joinpath("data", f"{BUILT_IN}.jsonl")) as sample, open_source(str(sample)) as it:
            it.name = BUILT_IN
            yield StreamSource(it)
    else:
        with open_source(path) as source:
            yield StreamSource(source)


def with_carry(defense: Defense, carry: Carry) -> Defense | Answerer:
    """The defense with what it carries.

    Raises:
        OptionError: A defense that remembers by itself.
    """
    if carry is Carry.NOTHING:
        return defense
    if isinstance(defense, Radar) and defense.beliefs is not None:
        raise OptionError(f"radar remembers by itself; leave out --carry {carry}, or give -d radar without --beliefs")
    return Answerer(defense, "passages" if carry is Carry.PASSAGES else "answer")
