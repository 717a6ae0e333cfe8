"""Files with mode 600, and file locks, which the system releases when a process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["hold_lock", "lock_file", "private"]


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
