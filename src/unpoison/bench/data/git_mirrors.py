"""Files of a git directory at one commit: bare mirrors and checkouts, nothing is checked out or run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from unpoison.errors import InputError

__all__ = ["Mirror"]

TIMEOUT = 60
"""Seconds of one call of git: a file is megabytes, the disk is local."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """A git directory.

    Attributes:
        directory: With `HEAD` and `objects`.
    """

    directory: Path

    @classmethod
    def find(cls, folder: Path, repository: str) -> Self | None:
        """The mirror of `owner/name` in a folder: `owner/name`, `owner+name`, `name`, each bare or with `.git`."""
        owner, _, name = repository.partition("/")
        for called in (f"{owner}/{name}", f"{owner}+{name}", f"{owner}_{name}", name):
            for inner in ("", ".git", "repo", "repo/.git"):
                directory = folder / called / inner
                if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
                    return cls(directory)
            bare = folder / f"{called}.git"
            if (bare / "HEAD").is_file():
                return cls(bare)
        return None

    def newest(self) -> str:
        """The commit that its HEAD names, as 40 hex digits."""
        return self._git("rev-parse", "HEAD").decode().strip()

    def paths(self, commit: str) -> list[str]:
        """All paths of a commit, in git's order."""
        return [path for path in self._git("ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0") if path]

    def sizes(self, commit: str) -> list[tuple[str, int]]:
        """The paths of all files of a commit whose content is there, and their bytes."""
        lines = self._git("ls-tree", "-r", "-z", "-l", commit).decode().split("\0")
        entries = [(line.partition("\t")[2], line.partition("\t")[0].split()) for line in lines if line]
        return [(path, int(size)) for path, (_, kind, _, size) in entries if kind == "blob" and size.isdigit()]

    def has(self, commit: str) -> bool:
        """Whether the commit is there."""
        return self._run("cat-file", "-e", f"{commit}^{{commit}}").returncode == 0

    def read(self, commit: str, path: str) -> bytes | None:
        """A file's bytes; None where the commit has none of that path, or the mirror lacks its content."""
        done = self._run("cat-file", "blob", f"{commit}:{path}")
        return done.stdout if done.returncode == 0 else None

    def _git(self, *arguments: str) -> bytes:
        done = self._run(*arguments)
        if done.returncode:
            raise InputError(f"{self.directory}: git {arguments[0]} failed: {done.stderr.decode('utf-8', 'replace')}")
        return done.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {"PATH": os.environ.get("PATH", ""), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        environment |= {"HOME": os.devnull, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
        command = ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", f"--git-dir={self.directory}"]
        try:
            return subprocess.run(  # noqa: S603  git and our own words; paths stand behind a commit
                [*command, *arguments], capture_output=True, timeout=TIMEOUT, env=environment, check=False
            )
        except FileNotFoundError:
            raise InputError("git is not installed; install it, or give a folder of the files themselves") from None
        except subprocess.TimeoutExpired:
            raise InputError(f"{self.directory}: git {arguments[0]} took more than {TIMEOUT} seconds") from None
