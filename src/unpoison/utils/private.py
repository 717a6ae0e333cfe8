"""Files that hold questions, passages and replies: for their owner alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["private"]


def private(path: Path) -> None:
    """Make a file for its owner alone (mode 600) where there is none; what is there is left as it is.

    Whoever opens it next reports what stands in the way.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
