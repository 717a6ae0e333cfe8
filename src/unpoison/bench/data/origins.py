"""Where source files come from: the store, a folder of mirrors or files, or the public repositories by HTTPS."""

from __future__ import annotations

import errno
import hashlib
import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, Protocol
from urllib.parse import quote, urlsplit

from unpoison.bench.data.git_mirrors import Mirror
from unpoison.bench.data.recipes import SourceFile
from unpoison.bench.data.store import Store
from unpoison.errors import InputError, clip

__all__ = ["BASE", "Downloads", "Folder", "Kept", "Origin"]

BASE = "https://raw.githubusercontent.com"
"""What stands before `/owner/name/COMMIT/PATH`."""

TIMEOUT = 60.0
"""Seconds without a byte."""

TRIES = 4
"""Of one file; each goes on where the one before broke off."""

PIECE = 1 << 16

OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOTDIR)
"""Errors that another try would meet again."""


class Origin(Protocol):
    """Gives the content of source files."""

    def read(self, source: SourceFile) -> bytes:
        """The file's bytes, with the pinned hash.

        Raises:
            InputError: It cannot be had, or is another file; one sentence with the way out.
        """


def _is(content: bytes, source: SourceFile) -> bool:
    return len(content) == source.bytes and hashlib.sha256(content).hexdigest() == source.sha256


class Kept:
    """What was got before lies in the store; everything else comes from another origin and is put there.

    Args:
        store: Its `sources/`.
        origin: For what is not there, or no longer has its hash.
    """

    def __init__(self, store: Store, origin: Origin) -> None:
        self._store = store
        self._origin = origin

    def read(self, source: SourceFile) -> bytes:
        path = source_path(self._store.folder, source)
        with suppress(OSError):
            content = path.read_bytes()
            if _is(content, source):
                return content
        content = self._origin.read(source)
        self._store.write(path, content)
        return content


def source_path(folder: Path, source: SourceFile) -> Path:
    """Where the store has a source file."""
    return folder / "sources" / source.repository.replace("/", "+") / source.commit / PurePosixPath(source.path)


class Folder:
    """A folder of git directories, of checkouts, or of files, each under `owner/name`, `owner+name` or `name`.

    A mirror that has the pinned commit is asked for it; one of another commit may still have the very same file.

    Args:
        folder: Which.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not folder.is_dir():
            raise InputError(f"--from {folder}: no such folder; give one of mirrors, source files or built files")

    def read(self, source: SourceFile) -> bytes:
        owner, _, name = source.repository.partition("/")
        other = False
        mirror = Mirror.find(self.folder, source.repository)
        if mirror is not None:
            for commit in [source.commit] if mirror.has(source.commit) else ["HEAD"]:
                content = mirror.read(commit, source.path)
                if content is not None and _is(content, source):
                    return content
                other = True
        for called in (f"{owner}/{name}", f"{owner}+{name}", f"{owner}_{name}", name):
            path = self.folder / called / PurePosixPath(source.path)
            if path.is_file() and path.stat().st_size <= source.bytes:
                content = path.read_bytes()
                if _is(content, source):
                    return content
            other = other or path.is_file()
        if mirror is not None and not mirror.has(source.commit):
            raise InputError(
                f"the mirror of {source.repository} in {self.folder} does not have the commit {source.commit[:12]}, "
                f"and its {source.path} is not the pinned file; get it whole: "
                f"git -C {mirror.directory} pull origin {source.commit}"
            )
        what = "is not the pinned file" if other else "is not there"
        raise InputError(
            f"{source.path} of {source.repository} {what} in {self.folder}; put a mirror there: "
            f"git clone https://github.com/{source.repository} {self.folder}/{source.repository}"
        )


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows no redirect from HTTPS to anything else, nor to files."""

    def redirect_request(self, request: Any, *rest: Any) -> Any:
        if urlsplit(rest[-1]).scheme != urlsplit(request.full_url).scheme:
            raise InputError(f"{request.full_url} leads to {clip(rest[-1])}, which is not asked for")
        return super().redirect_request(request, *rest)


class Downloads:
    """Raw files of public repositories at pinned commits; never more bytes than are expected.

    What came before a connection broke is kept beside the file's place, and the next try asks for the rest.

    Args:
        store: Where the half-got files lie, as `.part`, which nothing else reads.
        base: What stands before `/owner/name/COMMIT/PATH`.
        pause: Waits so many seconds before another try.
    """

    def __init__(self, store: Store, base: str = BASE, pause: Callable[[float], object] = time.sleep) -> None:
        if urlsplit(base).scheme not in ("https", "http"):
            raise InputError(f"--mirror {clip(base)} is no address; give one such as {BASE}")
        self._folder = store.folder
        self._base = base.rstrip("/")
        self._pause = pause
        self._opener = urllib.request.build_opener(_SameScheme)

    def read(self, source: SourceFile) -> bytes:
        part = source_path(self._folder, source)
        part = part.with_name(f"{part.name}.part")
        url = f"{self._base}/{source.repository}/{source.commit}/{quote(source.path)}"
        trouble = ""
        for attempt in range(TRIES):
            if attempt:
                self._pause(2.0**attempt)
            try:
                content = self._attempt(url, part, source)
            except urllib.error.HTTPError as error:
                error.close()
                trouble = f"answers {error.code}"
                if error.code in (404, 410, 451):
                    raise InputError(
                        f"{url} is gone ({error.code}); where somebody has a copy: {_by_mirror(source)}"
                    ) from None
                if error.code == 416:
                    part.unlink(missing_ok=True)
                elif error.code < 500 and error.code != 429:
                    break
            except (OSError, http.client.HTTPException) as error:
                if getattr(error, "errno", None) in OF_THE_DISK:
                    raise InputError(f"{part} cannot be written ({error}); {source.bytes:,} bytes are needed") from None
                trouble = f"cannot be reached ({getattr(error, 'reason', error)})"
            else:
                if content is not None:
                    return content
                trouble = "broke off in the middle"
        host = urlsplit(url).netloc
        raise InputError(f"{host} {trouble}; try again, or on a machine with a network: {_by_mirror(source)}")

    def _attempt(self, url: str, part: Path, source: SourceFile) -> bytes | None:
        """The file; None where the connection ended too early."""
        have = part.stat().st_size if part.is_file() else 0
        if have >= source.bytes:
            part.unlink()
            have = 0
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
        with self._opener.open(request, timeout=TIMEOUT) as reply:
            part.parent.mkdir(parents=True, exist_ok=True)
            goes_on = have and reply.status == 206
            with part.open("ab" if goes_on else "wb") as stream:
                self._copy(reply, stream, source, have if goes_on else 0)
        content = part.read_bytes()
        if len(content) < source.bytes:
            return None
        part.unlink()
        if not _is(content, source):
            raise InputError(
                f"{url} is not the file that was pinned (its SHA-256 is another); nothing was built of it. Another "
                f"copy will do: {_by_mirror(source)}"
            )
        return content

    @staticmethod
    def _copy(reply: IO[bytes], stream: IO[bytes], source: SourceFile, have: int) -> None:
        """At most one byte more than is expected: enough to know that it is another file."""
        while have <= source.bytes and (piece := reply.read(min(PIECE, source.bytes + 1 - have))):
            stream.write(piece)
            have += len(piece)


def _by_mirror(source: SourceFile) -> str:
    return (
        f"git clone https://github.com/{source.repository} FOLDER/{source.repository}, then "
        "'unpoison data get NAME --from FOLDER'"
    )
