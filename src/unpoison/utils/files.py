"""Files: closed by "with", with mode 600, locked (the system releases locks of a process), replaced; lists; YAML."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from operator import eq
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any, Self, TypeVar
from uuid import uuid4

import numpy as np
import yaml

from unpoison.errors import InputError, clip

__all__ = [
    "Closing", "Spilled", "hold_lock", "load_yaml", "lock_file", "named_errors", "path_names", "private", "read_small",
    "write_file",
]  # fmt: skip


class Closing:
    """A context manager that calls `close`."""

    __slots__ = ()

    def close(self) -> None:
        """Close files and connections; does nothing by default."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


T = TypeVar("T")

MAX_HELD = 4 * 2**20
"""Bytes of a list of `Spilled` that are held in memory."""


class Spilled(Sequence[T]):
    """A list of any length in little memory: beyond `MAX_HELD` its items stand in a nameless temporary file.

    They stand there as JSON: texts, numbers, dates and arrays, and what this package and Python make of these. Each
    access makes a new object; an item that holds anything else is held as it is. Not for two threads at once.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._file = SpooledTemporaryFile(MAX_HELD)  # noqa: SIM115  closed with this object
        self._ends, self._odd, self._kinds = array("q", [0]), dict[int, T](), dict[Any, int]()
        self._makers = list[Callable[[list[Any]], Any]]()
        for item in items:
            self.append(item)

    def append(self, item: T) -> None:
        """Add an item."""
        try:
            content = json.dumps(self._plain(item)).encode()
        except (TypeError, ValueError, RecursionError):  # metadata of a framework may hold anything
            content, self._odd[len(self)] = b"", item
        self._file.seek(self._ends[-1])
        self._file.write(content)
        self._ends.append(self._ends[-1] + len(content))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, at: Any) -> Any:
        places = range(len(self))[at]
        if isinstance(places, range):
            return [self[i] for i in places]
        if places in self._odd:
            return self._odd[places]
        self._file.seek(self._ends[places])
        return self._made(json.loads(self._file.read(self._ends[places + 1] - self._ends[places]).decode()))

    def _plain(self, value: Any) -> Any:
        """A text, a number or None is itself; all else a list, the number of its kind and its parts."""
        kind = type(value)
        if value is None or kind in (str, bool, int, float):
            return value
        ours = kind.__module__.startswith("unpoison.")
        if kind is np.ndarray and not value.dtype.hasobject:
            parts = [value.dtype.str, json.dumps(value.tolist())]
        elif kind is datetime or isinstance(value, np.generic):
            parts = [value.isoformat() if kind is datetime else value.item()]
        elif kind is dict or (ours and isinstance(value, dict)):
            parts = [self._plain(part) for entry in value.items() for part in entry]
        elif kind in (tuple, list) or (ours and isinstance(value, tuple)):
            parts = [self._plain(part) for part in value]
        elif ours and is_dataclass(kind):
            parts = [self._plain(getattr(value, one.name)) for one in fields(kind) if one.init]
        else:
            raise TypeError(f"{kind.__name__} stays in memory")
        if kind not in self._kinds:
            self._kinds[kind] = len(self._kinds)
            self._makers.append(_maker(kind))
        return [self._kinds[kind], *parts]

    def _made(self, plain: Any) -> Any:
        """The value that `_plain` wrote."""
        if type(plain) is not list:
            return plain
        return self._makers[plain[0]]([self._made(part) for part in plain[1:]])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spilled) and len(self) == len(other) and all(map(eq, self, other))

    def __del__(self) -> None:
        self._file.close()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Spilled, (list(self),)


def _maker(kind: Any) -> Callable[[list[Any]], Any]:
    """What makes a value of a kind from its parts."""
    if kind is np.ndarray:
        return lambda parts: np.array(json.loads(parts[1]), parts[0])
    if kind is datetime:
        return lambda parts: datetime.fromisoformat(parts[0])
    if issubclass(kind, dict):
        return lambda parts: kind(zip(parts[::2], parts[1::2]))
    if is_dataclass(kind):
        names = [one.name for one in fields(kind) if one.init]
        return lambda parts: kind(**dict(zip(names, parts)))  # type: ignore[operator]
    return kind if kind in (tuple, list) else lambda parts: kind(*parts)


MAX_YAML_BYTES = 1_000_000
"""Maximum size of a YAML file."""

YAML_FIXES = {
    "duplicate key": "give it once",
    "\\t": "indent with spaces",
    "mapping values": "quote texts that hold a colon and a space",
    "expected <block end>": "check the indentation, and the quotes, above that line",
}
"""What a parser says, and how to mend it; else a text begins with a sign that YAML reads."""


def private(path: Path) -> None:
    """Create a file with mode 600 if it does not exist.

    Errors are ignored here; opening the file reports them.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def hold_lock(descriptor: int) -> Iterator[None]:
    """Hold an exclusive lock on an open file. Not for two threads at once."""
    lock_file(descriptor, wait=True)
    try:
        yield
    finally:
        with suppress(ImportError):  # Windows
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock_file(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file until it is closed.

    Args:
        descriptor: Of the file.
        wait: Wait for the lock.

    Returns:
        Whether it is locked; False if another process holds it and `wait` is not set. True if the system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if wait:
            raise
        return False
    return True


def write_file(path: Path, content: Iterable[bytes], *, mode: int | None = None, time: float | None = None) -> None:
    """Write a file atomically: sync a draft beside it, then replace it.

    Raises:
        OSError: It cannot be written, and stays as it was; the error names it.
    """
    draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with (
            named_errors(path),
            open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600), "wb") as file,
        ):
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            draft.chmod(mode)
        if time is not None:
            os.utime(draft, (time, time))
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Errors of the system say which file they are about; those of a write do not by themselves."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def read_small(path: Path, most: int, fix: str, missing: bytes | None = None) -> bytes:
    """The content of a file of at most so many bytes.

    Args:
        path: The file.
        most: Bytes.
        fix: What to do if it cannot be read, for the error.
        missing: What a file that does not exist counts as; None to refuse it.

    Raises:
        InputError: It cannot be read, or is larger.
    """
    name = clip(str(path), 200)
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:  # the latter for a name with a NUL
        if missing is not None and isinstance(error, FileNotFoundError):
            return missing
        raise InputError(f"{name} cannot be read ({getattr(error, 'strerror', None) or error}); {fix}") from None
    if len(content) > most:
        raise InputError(f"{name} has more than {most:,} bytes; give a shorter file")
    return content


def load_yaml(path: str | Path) -> Any:
    """The content of a YAML file.

    Raises:
        InputError: The file cannot be read, is too large, is not YAML in UTF-8, or has an anchor or a duplicate key.
    """
    name = clip(str(path), 200)
    content = read_small(Path(path), MAX_YAML_BYTES, "give the path of a YAML file")
    try:
        return yaml.load(content.decode("utf-8"), _Loader)  # noqa: S506  a SafeLoader
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text; save it as UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0] or type(error).__name__
        fixes = (fix for said, fix in YAML_FIXES.items() if said in problem)
        fix = next(fixes, "quote texts that begin with *, &, @ or another sign")
        raise InputError(f"{name} is not valid YAML ({line}{problem[:120]}); {fix}") from None


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses anchors (a few lines can expand without limit) and duplicate keys."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.constructor.ConstructorError(None, None, "anchors are not supported", event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys: set[str] = set()
        for key, _ in node.value:
            if key.value in keys if isinstance(key.value, str) else False:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value}", key.start_mark)
            keys.add(str(key.value))
        return super().construct_mapping(node, deep)


def path_names(path: Path) -> tuple[str, ...]:
    """Names of a folder or file that loaders use: the path as typed, and the absolute path."""
    full, typed = path.resolve().as_posix(), path.as_posix()
    return (full,) if path.is_absolute() or typed.startswith(".") else (typed, full)
