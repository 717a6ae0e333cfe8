"""What machines write and no model is told by: headers, sources, help texts, listings, logs of a version control.

Read on the machine that runs the fit, from the C headers and the languages that are installed there; what is missing is
left out. No text of it is kept.
"""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

__all__ = ["machine_texts"]

HEADERS, PERL = Path("/usr/include"), Path("/usr/share/perl")

MOST = 350
"""Texts of one kind."""

CHARS = 700
"""Characters of a text."""

HELPED = ("ls", "cp", "mv", "rm", "sort", "find", "grep", "sed", "tar", "gzip", "git", "gcc", "ld", "python3", "pip3",
          "curl", "wget", "ssh", "make", "awk", "diff", "patch", "perl", "install", "chmod", "date", "dd", "df", "du",
          "env", "head", "tail", "split", "stat", "touch", "xargs", "apt-get", "dpkg", "bash", "openssl")  # fmt: skip
"""Programs asked for their help."""

LISTED = (("ls", "-la", "/usr/bin"), ("ls", "-laR", "/usr/lib/python3"), ("dpkg", "-l"), ("df", "-h"),
          ("git", "log", "--stat", "-n", "60"), ("find", "/usr/share/zoneinfo", "-maxdepth", "2"))  # fmt: skip
"""Commands whose output is read."""


@cache
def machine_texts() -> tuple[tuple[str, str], ...]:
    """(kind, text) of all kinds; the same on one machine."""
    library = Path(sysconfig.get_paths()["stdlib"])
    kinds = {
        "headers": _files(HEADERS, "*.h", 300),
        "sources": _files(library, "*.py", 300),
        "other sources": _files(PERL, "*.pm", 60),
        "help": (_output((name, "--help")) for name in HELPED),
        "listings": (_output(command) for command in LISTED),
    }
    return tuple((kind, part) for kind, texts in kinds.items() for part in _chosen(texts))


def _files(folder: Path, pattern: str, most: int) -> Iterator[str]:
    files = sorted((f for f in folder.rglob(pattern) if "test" not in str(f)), key=lambda file: _rank(str(file)))
    for file in files[:most]:
        yield file.read_text(encoding="utf-8", errors="ignore")[:40_000]


def _output(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=10, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr)[:60_000]


def _chosen(texts: Iterator[str]) -> list[str]:
    """Parts of whole lines, some of them chosen by a hash."""
    parts = list[str]()
    for text in texts:
        part = ""
        for line in text.splitlines(keepends=True):
            if len(part) + len(line) > CHARS and part.strip():
                parts.append(part)
                part = ""
            part += line[:CHARS]
        parts += [part] if part.strip() else []
    return sorted(parts, key=_rank)[:MOST]


def _rank(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
