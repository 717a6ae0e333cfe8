"""Files for their owner alone, and locks between processes, which the system lets go of however a process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["hold_lock", "lock_file", "private"]


def private(path: Path) -> None:
    """Make a file with questions, passages or replies (mode 600) where there is none; what is there is left as it is.

    Whoever opens it next reports what stands in the way.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def hold_lock(descriptor: int) -> Iterator[None]:
    """Wait until no other process has an open file locked, and have it locked inside. Not for two threads at once."""
    lock_file(descriptor, wait=True)
    try:
        yield
    finally:
        try:
            import fcntl
        except ImportError:  # Windows
            pass
        else:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def lock_file(descriptor: int, *, wait: bool = False) -> bool:
    """Lock an open file until it is closed.

    Args:
        descriptor: Of the file.
        wait: Wait until no other process has it.

    Returns:
        Whether it is locked; without waiting False where another process has it. True where the system has no locks.
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
