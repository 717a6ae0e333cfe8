"""Source files of the recipes: from a folder of git mirrors or checkouts, else by HTTPS."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

from benchmarks.data.recipes import SourceFile

BASE = "https://raw.githubusercontent.com"
"""What stands before `/OWNER/NAME/COMMIT/PATH`."""

TRIES = 4
"""Of one download."""


def is_pinned(content: bytes, source: SourceFile) -> bool:
    """Whether these are the bytes that a recipe was made of."""
    return len(content) == source.bytes and hashlib.sha256(content).hexdigest() == source.sha256


def read_source(source: SourceFile, folder: Path | None, kept: Path) -> bytes:
    """The bytes of a source file.

    Args:
        source: Which.
        folder: A folder of mirrors or checkouts, and no network; None downloads.
        kept: Where downloads are kept.

    Raises:
        SystemExit: The file cannot be had, or is another one; the message says how to get it.
    """
    if folder is not None:
        for content in _in_folder(folder, source):
            if is_pinned(content, source):
                return content
        raise SystemExit(
            f"{source.path} of {source.repository} at {source.commit[:12]} is not in {folder}; get it: "
            f"git clone https://github.com/{source.repository} {folder}/{source.repository}"
        )
    path = kept / source.repository / source.commit / source.path
    if path.is_file() and is_pinned(content := path.read_bytes(), source):
        return content
    content = _download(source)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return content


def _download(source: SourceFile) -> bytes:
    url = f"{BASE}/{source.repository}/{source.commit}/{quote(source.path)}"
    trouble = ""
    for attempt in range(TRIES):
        time.sleep(2.0**attempt if attempt else 0)
        try:
            with urllib.request.urlopen(url, timeout=60) as reply:  # noqa: S310  an address that begins with BASE
                content: bytes = reply.read(source.bytes + 1)
        except (urllib.error.URLError, OSError) as error:
            trouble = str(error)
            continue
        if is_pinned(content, source):
            return content
        trouble = "is not the file that was pinned"
    raise SystemExit(f"{url}: {trouble}; try again, or give --from FOLDER with a mirror of {source.repository}")


def _in_folder(folder: Path, source: SourceFile) -> list[bytes]:
    owner, _, name = source.repository.partition("/")
    places = [folder / called / source.path for called in (f"{owner}/{name}", f"{owner}+{name}", name)]
    found = [path.read_bytes() for path in places if path.is_file()]
    mirror = find_mirror(folder, source.repository)
    read = [read_mirror(mirror, commit, source.path) for commit in (source.commit, "HEAD")] if mirror else []
    return found + [content for content in read if content is not None]


def find_mirror(folder: Path, repository: str) -> Path | None:
    """The git directory of `owner/name` in a folder: `owner/name`, `owner+name` or `name`, bare or with `.git`."""
    owner, _, name = repository.partition("/")
    for called in (f"{owner}/{name}", f"{owner}+{name}", name):
        for directory in (folder / called, folder / called / ".git", folder / f"{called}.git"):
            if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
                return directory
    return None


def read_mirror(mirror: Path, commit: str, path: str) -> bytes | None:
    """A file's bytes at a commit, None where it has none; nothing is checked out, fetched or run."""
    environment = {"PATH": os.environ.get("PATH", ""), "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    command = ["git", "-c", "safe.directory=*", f"--git-dir={mirror}", "cat-file", "blob", f"{commit}:{path}"]
    done = subprocess.run(command, capture_output=True, timeout=60, env=environment, check=False)  # noqa: S603
    return done.stdout if done.returncode == 0 else None
