"""The audit log: retrieved and dropped documents by question, in a file of JSON Lines with mode 600.

A line contains the texts of question, passages, reasons and answer, or keyed hashes of them, by which the same question
and document are recognised.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from unpoison import __version__
from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import PROMPT_INJECTION
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Verdict
from unpoison.errors import InputError, clip
from unpoison.io.file_rows import json_line
from unpoison.io.output import is_last_line_ended, write_all
from unpoison.utils.checks import among
from unpoison.utils.files import Closing, hold_lock, named_errors, private
from unpoison.utils.plain_text import digest_text

__all__ = ["REMOVED", "VERSION", "AuditLog", "detail", "entry"]

VERSION = 1
"""Version of the format; readers ignore unknown fields of newer versions."""

REMOVED = frozenset((PROMPT_INJECTION, f"{PROMPT_INJECTION}.cut"))
"""Codes of a passage that was dropped for an injection, and of one that was kept without it."""

MAX_NAME = 512
"""Maximum characters of an id, a source or an author in a line."""


def entry(
    result: Screening | Answer,
    *,
    texts: bool,
    time: datetime | None = None,
    action: str | None = None,
    request: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """The line of a screening or an answer, as JSON-ready values.

    Args:
        result: The result of a defense.
        texts: Whether to write texts; otherwise hashes.
        time: The time; now by default.
        action: The action on dropped documents: "drop", "demote", or "monitor" if they were passed on.
        request: Fields of the request, such as its id and the client's address.
    """
    screening = result.screening if isinstance(result, Answer) else result
    question = Query(screening.query).reading
    fields: dict[str, Any] = {
        "audit": VERSION,
        "time": (time or datetime.now(UTC)).isoformat(timespec="milliseconds"),
        "version": __version__,
        "defense": screening.defense,
        "action": action,
        "request": dict(request) if request else None,
        "query": screening.query if texts else None,
        "query_hash": digest_text("query", question),
        "passages": [_passage(screening, verdict, texts=texts) for verdict in screening.verdicts],
    }
    if isinstance(result, Answer):
        fields["answer"] = _answer(result, texts=texts)
    return {name: value for name, value in fields.items() if value is not None}


def detail(passage: Passage, name: str) -> str | None:
    """A text of a passage's metadata, such as author or added_at; None without one."""
    value = passage.metadata.get(name)
    return value[:MAX_NAME] if isinstance(value, str) and value.strip() else None


def _passage(screening: Screening, verdict: Verdict, *, texts: bool) -> dict[str, Any]:
    passage = screening.passages[verdict.index]
    probability = screening.evidence.get("probability")
    fields: dict[str, Any] = {
        **{name: value[:MAX_NAME] for name in ("id", "source") if (value := getattr(passage, name))},
        **{name: value for name in ("author", "added_at") if (value := detail(passage, name))},
        "hash": digest_text("passage", passage.reading),
        "kept": verdict.kept,
        "score": _round(verdict.score),
        "code": verdict.reason.code or None,
        "probability": None if probability is None else _round(float(probability[verdict.index])),
        "injection": True if REMOVED.intersection(verdict.reason.codes) else None,
    }
    if texts:
        fields |= {"text": passage.text, "title": passage.title, "reason": str(verdict.reason)}
    return {name: value for name, value in fields.items() if value is not None}


def _answer(answer: Answer, *, texts: bool) -> dict[str, Any]:
    fields = {"abstained": answer.abstained, "hash": digest_text("answer", answer.text)}
    return {**fields, "text": answer.text} if texts else fields


def _round(value: float) -> float | None:
    return round(value, 6) if np.isfinite(value) else None


class AuditLog(Closing):
    """Appends one line for every screening or answer.

        with AuditLog("audit.jsonl") as log:
            log.record(Guard().screen(query, passages))

    A line is written atomically, so threads and processes may share a file. A truncated line, after a full disk or a
    killed process, is terminated by the next one, and the audit counts it as unreadable. A file that was moved away, as
    by logrotate, is created anew. Lines are not synced to disk.

    Args:
        path: The file; lines are appended.
        texts: `hash` writes keyed hashes instead of questions, texts, reasons and answers; ids, sources and authors are
            written in full. `keep` writes the texts. Hashes of several machines agree if they share
            UNPOISON_FENCE_KEY.

    Raises:
        OptionError: An option out of its range.
        InputError: The file cannot be opened.
    """

    def __init__(self, path: str | PathLike[str], *, texts: Literal["hash", "keep"] = "hash") -> None:
        self.path = Path(path)
        self.texts = among("texts", texts, ("hash", "keep"))
        self._lock = Lock()
        try:
            self._open()
        except OSError as error:
            raise InputError(
                f"the audit log {clip(str(path), 200)} cannot be opened ({error.strerror}); give a file in a folder "
                "that exists and can be written"
            ) from None

    def record(
        self,
        result: Screening | Answer,
        *,
        time: datetime | None = None,
        action: str | None = None,
        request: Mapping[str, str | None] | None = None,
    ) -> None:
        """Append a line; see `entry`.

        Raises:
            OSError: It could not be written.
        """
        self.append(entry(result, texts=self.texts == "keep", time=time, action=action, request=request))

    def append(self, fields: Mapping[str, Any]) -> None:
        """Append a line of other fields.

        Raises:
            OSError: It could not be written.
        """
        line = json_line(fields)
        with self._lock:
            self._reopen_if_moved()
            # A truncated line cannot be removed, because another process may have appended to it: it is terminated.
            # Without the lock, a line that another process is writing would seem truncated.
            with named_errors(self.path), hold_lock(self._file):
                write_all(self._file, line if is_last_line_ended(self._file) else b"\n" + line)

    def close(self) -> None:
        """Close the file; later calls of `record` fail."""
        with self._lock:
            os.close(self._file)

    def _open(self) -> None:
        private(self.path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)

    def _reopen_if_moved(self) -> None:
        own = os.fstat(self._file)
        with suppress(FileNotFoundError):
            there = self.path.stat()
            if (there.st_ino, there.st_dev) == (own.st_ino, own.st_dev):
                return
        old = self._file
        self._open()
        os.close(old)
