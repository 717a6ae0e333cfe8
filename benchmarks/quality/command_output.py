"""Command output, listings, manuals and source code of the machine that measures: ordinary text of tools.

Nothing is kept and nothing is written down: the texts are made from what is installed, the same ones in the same order
on one machine. The fit of the injection model read such texts too, of other programs and other files
(`benchmarks/training/injection_machine.py`).
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path

__all__ = ["command_output"]

CHARS = 3_000
"""Characters of a text: whole lines from the beginning of an output or file."""

MOST = 50
"""Texts of one kind."""

LISTED = (
    "ls -l /usr/bin", "ls -l /etc", "ls -lR /usr/lib/python3", "ls -la /usr/share/doc", "ls /usr/include", "df",
    "df -h", "df -i", "du -d 1 -h /usr/share", "ps aux", "ps -ef", "mount", "env -i HOME=/root LANG=C.UTF-8 env",
    "uname -a", "id", "ip address", "ip route", "ss -tln", "netstat -tln", "cat /etc/services",
    "cat /etc/protocols", "cat /etc/passwd", "cat /etc/group", "cat /etc/fstab", "cat /proc/cpuinfo",
    "cat /proc/meminfo", "cat /proc/mounts", "git log -n 60", "git log --oneline -n 60", "git log --stat -n 20",
    "git log -p -n 2", "git status", "git branch -a", "git diff HEAD~1 --stat", "git show --stat",
    "git config --list", "dpkg -l", "dpkg -L coreutils", "dpkg -s curl", "apt-cache show curl", "apt-cache policy",
    "curl --version", "gcc --version", "openssl version -a", "openssl ciphers -v", "locale -a",
    "find /usr/share/zoneinfo -maxdepth 1", "find /etc -name *.conf", "file /usr/bin/env", "getent hosts",
    "pip list", "python3 -m site", "python3 -m this", "lsblk", "free -h", "uptime", "lscpu",
)  # fmt: skip
"""Commands whose output is read, a word an argument."""

HELPED = (
    "curl --help all", "curl --help", "tar --help", "openssl help", "openssl req -help", "gpg --help",
    "rsync --help", "docker --help", "node --help", "npm help", "cmake --help", "jq --help", "man --help",
    "less --help", "ps --help all", "ss --help", "mount --help", "git help -a", "git commit -h", "git push -h",
    "git rebase -h", "python3 -m pip install -h", "python3 -m json.tool -h", "python3 -m venv -h", "make -h",
    "ssh-keygen -h", "bash --help", "bash -c help", "wc --help", "tr --help", "cut --help", "uniq --help",
    "tee --help", "seq --help", "join --help", "paste --help", "ln --help", "mkdir --help", "mktemp --help",
    "timeout --help", "nohup --help", "base64 --help", "sha256sum --help", "g++ --help", "objdump --help",
    "nm --help", "strip --help", "ar --help", "apt --help", "dpkg-query --help", "systemctl --help",
    "journalctl --help", "ip -h", "getopt --help", "logger --help", "flock --help", "cal --help", "lsblk --help",
)  # fmt: skip

MANUALS = Path("/usr/share/man")
LANGUAGES = ("de", "es", "fr", "it", "ja", "nl", "pl", "pt_BR", "ru", "sv", "zh_CN")
OTHERS = {"test", "tests", "site-packages"}
FAMILY, SHORT = "gcloud_", 300
"""The beginning of the names of thousands of pages alike; bytes of a page that only names another."""

HEADERS, LIBRARY = Path("/usr/include"), Path(sysconfig.get_paths()["stdlib"])


def command_output() -> Iterator[tuple[str, str]]:
    """(kind, text) of all kinds: at most 300 texts."""
    per_language = MOST // len(LANGUAGES) + 1
    translated = (islice(_manuals(MANUALS / name / "man1"), per_language) for name in LANGUAGES)
    kinds: dict[str, Iterable[str]] = {
        "listings": map(_output, LISTED),
        "help": map(_output, HELPED),
        "manuals": _manuals(MANUALS / "man1"),
        "manuals in other languages": (text for texts in translated for text in texts),
        "headers": _files(HEADERS, "*"),
        "sources": _files(LIBRARY, "*.py"),
    }
    for kind, texts in kinds.items():
        parts = (_beginning(text) for text in texts)
        yield from ((kind, part) for part in islice((part for part in parts if len(part.split()) > 3), MOST))


def _output(command: str) -> str:
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PAGER": "cat", "GIT_PAGER": "cat", "MANWIDTH": "80"}
    words = command.split()
    try:
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, timeout=20, check=False, stdin=subprocess.DEVNULL, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout or done.stderr).decode("utf-8", "ignore")


def _manuals(folder: Path) -> Iterator[str]:
    """Pages of a manual as `man` shows them; most of one family are left out."""
    for file in _ranked(file for file in folder.glob("*.gz") if not file.name.startswith(FAMILY)):
        if not file.is_symlink() and file.stat().st_size > SHORT:
            yield _output(f"man --no-hyphenation --local-file {file}")


def _files(folder: Path, pattern: str) -> Iterator[str]:
    for file in _ranked(file for file in folder.rglob(pattern) if not set(file.parts) & OTHERS):
        if file.is_file() and file.suffix in ("", ".h", ".hpp", ".py"):
            yield file.read_text(encoding="utf-8", errors="ignore")


def _ranked(files: Iterable[Path]) -> list[Path]:
    """Files by a hash, from the end from which the fit did not read."""
    return sorted(files, key=lambda file: blake2b(str(file).encode(), digest_size=8).digest(), reverse=True)


def _beginning(text: str) -> str:
    """The whole lines that fit."""
    return text if len(text) <= CHARS else text[: text.rfind("\n", 0, CHARS) + 1] or text[:CHARS]
