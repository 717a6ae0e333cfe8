"""Locks between processes, which the system lets go of when a process ends, however it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["hold_lock", "lock_file"]


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
