"""Patterns of sources: `docs.example`, `*.docs.example`, `https://docs.example/hr/**`, `docs/hr/**`, `author:alice`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn
from urllib.parse import unquote

from unpoison.errors import OptionError, clip
from unpoison.sources.addresses import MAX_SOURCE_CHARS, Place, host_like, place_of, visible
from unpoison.sources.origins import place

__all__ = ["Pattern", "origin_place", "parse_pattern"]

MAX_STARS = 10
FIELD = re.compile(r"[A-Za-z_][\w. -]{0,99}:(?!//)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern. `*` stands for any text within a segment, `**` for any segments, also none.

    A pattern of a host alone means that host, and the origin of that name; `*.host` the hosts below it. One that begins
    with a scheme or a host matches addresses on the web only, another path files only; http and https are one.

    Attributes:
        text: As it was written.
        kind: `web`, `file`, or `name` for everything that is compared with the origin alone.
        host: Of an address; of a file, its root.
        below: Whether the hosts below it are meant, and not the host itself.
        segments: Of the path; None stands for `**`.
    """

    text: str
    kind: str
    host: str = ""
    segments: tuple[re.Pattern[str] | None, ...] = field(default=(), compare=False)
    below: bool = False

    @property
    def literal(self) -> int:
        """How long what is no star is: the longest pattern that matches counts."""
        return len(self.text.partition("://")[2] or self.text) - self.text.count("*")

    @property
    def key(self) -> str:
        """The one host or origin that it can match; "" where there may be several."""
        if self.kind == "web":
            return "" if self.below else self.host
        return self.text if self.kind == "name" and "*" not in self.text else ""

    def matches(self, source: str | None, origin: str) -> bool:
        """Whether it matches a source, or its origin."""
        if self.kind == "name":
            return not self.literal or (
                _glob(self.text).fullmatch(origin) is not None and (origin == self.text or not _is_address(origin))
            )
        found = None if source is None else place(source)
        if found is not None and self._fits(found):
            return True
        if not origin or (found is not None and "://" in self.text):
            return False  # an address is no more than itself, even where its owner has other hosts
        named = origin_place(origin)
        return named is not None and self._fits(named)

    def _fits(self, found: Place) -> bool:
        if self.kind == "web":
            here = found.host.endswith(f".{self.host}") if self.below else found.host == self.host
            return found.kind == "web" and here and self._path(found.segments)
        if found.kind != "file" or found.host != self.host:
            return False
        inside = not found.file or (self.segments and self.segments[-1] is None)  # a file hr is not in the folder hr
        return self._path(found.segments if inside else (*found.segments, found.file))

    def _path(self, segments: tuple[str, ...]) -> bool:
        """Whether the segments fit, one row of positions for each segment of the pattern."""
        at = {0}
        for want in self.segments:
            if want is None:
                at = set(range(min(at), len(segments) + 1)) if at else at
            else:
                at = {i + 1 for i in at if i < len(segments) and want.fullmatch(segments[i])}
        return len(segments) in at


def parse_pattern(text: object, where: str) -> Pattern:
    """Read a pattern.

    Raises:
        OptionError: It can match nothing; the message names the list.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > 500 or not text.isprintable():
        raise OptionError(
            f"{where} holds {clip(text)}, which is no pattern; write one such as docs.example or docs/hr/**"
        )
    pattern = text.strip().replace("\\", "/")
    if pattern.count("*") > MAX_STARS:
        raise OptionError(
            f"{where} holds {clip(text)}, which has more than {MAX_STARS} stars; write two patterns of it"
        )
    scheme, separated, rest = pattern.partition("://")
    if pattern.strip("*/") == "":
        if "*" in pattern:
            return Pattern(pattern, "name")  # everything
        _refuse(text, where)
    if separated and scheme.lower() in ("http", "https"):
        return _web(pattern, rest, text, where)
    if not separated and FIELD.match(pattern) and not re.match(r"[A-Za-z]:/", pattern) and not _has_port(pattern):
        return Pattern(pattern, "name")
    first, slash, _ = pattern.partition("/")
    if not separated and (
        host_like(_bare_host(first), alone=not slash) or (first.startswith("*.") and first.count("*") == 1)
    ):
        return _web(pattern, pattern, text, where)
    if not slash:
        return Pattern(pattern, "name")
    return _file(pattern, text, where)


def _web(pattern: str, rest: str, text: object, where: str) -> Pattern:
    written, _, path = rest.partition("/")
    below = written.startswith("*.")
    found = place_of(f"https://{written.removeprefix('*.')}/")
    if found is None or "@" in written or "*" in found.host or path.partition("?")[2]:
        _refuse(text, where)
    segments = tuple(unquote(part) for part in path.split("/") if part)
    if any(part in (".", "..") or "/" in part or "\\" in part for part in segments):
        _refuse(text, where)
    whole = segments or ("**",)
    return Pattern(pattern, "web", found.host, tuple(_segment(part) for part in whole), below)


def _file(pattern: str, text: object, where: str) -> Pattern:
    """Of a path, read as a file's path is."""
    found = place_of(pattern)
    if found is None or found.kind != "file" or ".." in found.segments:
        _refuse(text, where)
    segments = (*found.segments, found.file) if found.file else found.segments
    return Pattern(pattern, "file", found.host, tuple(_segment(part) for part in segments))


def _refuse(text: object, where: str) -> NoReturn:
    raise OptionError(
        f"{where} holds {clip(text)}, which can match nothing; write a host (docs.example, *.docs.example), an "
        "address (https://docs.example/hr/**), a folder (docs/hr/**) or a field (author:alice)"
    )


def _segment(part: str) -> re.Pattern[str] | None:
    return None if part == "**" else _glob(visible(part))


@lru_cache(maxsize=4096)
def _glob(text: str) -> re.Pattern[str]:
    """A text with stars, each for any text; atomic groups, so that no text takes long."""
    first, *rest = re.split(r"\*+", text)
    if not rest:
        return re.compile(re.escape(first))
    *middle, last = rest
    return re.compile(
        re.escape(first) + "".join(f"(?>.*?{re.escape(part)})" for part in middle) + f".*{re.escape(last)}", re.DOTALL
    )


def origin_place(origin: str) -> Place | None:
    """An origin, which has the form of an address without its scheme, of a folder, or of neither."""
    return _origin_place(origin) if len(origin) <= MAX_SOURCE_CHARS else None


@lru_cache(maxsize=4096)
def _origin_place(origin: str) -> Place | None:
    if FIELD.match(origin):
        return None
    if origin.endswith("/"):
        return place_of(origin)
    return place_of(f"https://{origin}")


def _is_address(origin: str) -> bool:
    found = place(origin)
    return found is not None and found.kind != "name"


def _bare_host(first: str) -> str:
    return re.sub(r":\d{1,5}\Z", "", first)


def _has_port(pattern: str) -> bool:
    return re.match(r"[^/:]+:\d{1,5}(?:/|\Z)", pattern) is not None
