"""Source policies in YAML: lists of patterns such as `*.docs.example` or `docs/hr/**`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, Self
from urllib.parse import unquote

from unpoison.errors import InputError, OptionError, clip, nearest
from unpoison.sources.addresses import MAX_SOURCE_CHARS, Place, host_like, place_of, visible
from unpoison.sources.origins import check_rule, place
from unpoison.sources.trust import Level
from unpoison.utils.files import load_yaml

__all__ = ["LISTS", "Pattern", "Policy", "is_exact", "parse_pattern"]

LISTS: tuple[Level, ...] = ("blocked", "open", "known", "trusted")
"""The lists of patterns; between patterns of equal length, the earlier list wins."""

KEYS = ("origin", "fresh", *LISTS, "allow", "history")

MAX_PATTERNS = 10_000

MAX_STARS = 10
FIELD = re.compile(r"[A-Za-z_][\w. -]{0,99}:(?!//)")
DRIVE_OR_PORT = re.compile(r"[A-Za-z]:/|[^/:]+:\d{1,5}(?:/|\Z)")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern. `*` matches any text within a segment, `**` any number of segments.

    A host alone matches that host and the origin of that name; `*.host` matches its subdomains. A pattern that begins
    with a scheme or a host matches only web addresses, any other path only files; http and https are equivalent.

    Attributes:
        text: The pattern as written.
        kind: `web`, `file`, or `name` for patterns that are compared with the origin only.
        host: The host of an address; of a file, its root.
        below: Whether subdomains match, and not the host itself.
        segments: The segments of the path; None is `**`.
    """

    text: str
    kind: str
    host: str = ""
    segments: tuple[re.Pattern[str] | None, ...] = field(default=(), compare=False)
    below: bool = False

    @property
    def literal(self) -> int:
        """Length without wildcards: the longest matching pattern wins."""
        return len(self.text.partition("://")[2] or self.text) - self.text.count("*")

    @property
    def key(self) -> str:
        """The only host or origin that can match; "" if there may be several."""
        if self.kind == "web":
            return "" if self.below else self.host
        return self.text if self.kind == "name" and "*" not in self.text else ""

    def matches(self, source: str | None, origin: str) -> bool:
        """Whether the pattern matches a source or its origin."""
        if self.kind == "name":
            return not self.literal or (
                _glob(self.text).fullmatch(origin) is not None and (origin == self.text or not _is_address(origin))
            )
        found = None if source is None else place(source)
        if found is not None and self._fits(found):
            return True
        if not origin or (found is not None and "://" in self.text):
            return False  # an address does not match other hosts of the same owner
        named = origin_place(origin)
        return named is not None and self._fits(named)

    def _fits(self, found: Place) -> bool:
        if self.kind == "web":
            here = found.host.endswith(f".{self.host}") if self.below else found.host == self.host
            return found.kind == "web" and here and self._path(found.segments)
        if found.kind != "file" or found.host != self.host:
            return False
        inside = not found.file or (self.segments and self.segments[-1] is None)  # a file hr is not in a folder hr
        return self._path(found.segments if inside else (*found.segments, found.file))

    def _path(self, segments: tuple[str, ...]) -> bool:
        """Match the segments, with the set of reachable positions for each segment of the pattern."""
        at = {0}
        for want in self.segments:
            if want is None:
                at = set(range(min(at), len(segments) + 1)) if at else at
            else:
                at = {i + 1 for i in at if i < len(segments) and want.fullmatch(segments[i])}
        return len(segments) in at


def parse_pattern(text: object, where: str) -> Pattern:
    """Parse a pattern.

    Raises:
        OptionError: It cannot match anything; the message names the list.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > 500 or not text.isprintable():
        raise OptionError(f"{where} contains {clip(text)}, which is not a pattern; write docs.example or docs/hr/**")
    pattern = visible(text.strip()).replace("\\", "/")
    if pattern.count("*") > MAX_STARS:
        raise OptionError(f"{where} contains {clip(text)}, which has more than {MAX_STARS} stars; split it in two")
    scheme, separated, rest = pattern.partition("://")
    if pattern.strip("*/") == "":
        if "*" in pattern:
            return Pattern(pattern, "name")  # everything
        _refuse(text, where)
    if separated and scheme.lower() in ("http", "https"):
        return _web(pattern, rest, text, where)
    if not separated and FIELD.match(pattern) and not DRIVE_OR_PORT.match(pattern):
        return Pattern(pattern, "name")
    first, slash, _ = pattern.partition("/")
    host, starred = re.sub(r":\d{1,5}\Z", "", first), first.startswith("*.") and first.count("*") == 1
    if not separated and (starred or host_like(host, alone=not slash)):
        return _web(pattern, pattern, text, where)
    return Pattern(pattern, "name") if not slash else _file(pattern, text, where)


def is_exact(origin: str) -> bool:
    """Whether an origin is a valid pattern that matches only itself: a document may call its source `*`."""
    try:
        parse_pattern(origin, "known")
    except OptionError:  # empty, or not expressible as a pattern
        return False
    return "*" not in origin


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
    """The pattern of a path, parsed like the path of a file."""
    found = place_of(pattern)
    if found is None or found.kind != "file" or ".." in found.segments:
        _refuse(text, where)
    segments = (*found.segments, found.file) if found.file else found.segments
    return Pattern(pattern, "file", found.host, tuple(_segment(part) for part in segments))


def _refuse(text: object, where: str) -> NoReturn:
    raise OptionError(
        f"{where} contains {clip(text)}, which cannot match anything; write a host (docs.example, *.docs.example), an "
        "address (https://docs.example/hr/**), a folder (docs/hr/**) or a field (author:alice)"
    )


def _segment(part: str) -> re.Pattern[str] | None:
    return None if part == "**" else _glob(visible(part))


@lru_cache(maxsize=4096)
def _glob(text: str) -> re.Pattern[str]:
    """A glob as a regular expression; atomic groups keep matching linear."""
    first, *rest = re.split(r"\*+", text)
    if not rest:
        return re.compile(re.escape(first))
    *middle, last = rest
    return re.compile(
        re.escape(first) + "".join(f"(?>.*?{re.escape(part)})" for part in middle) + f".*{re.escape(last)}", re.DOTALL
    )


def origin_place(origin: str) -> Place | None:
    """The place of an origin: an address without its scheme, or a folder; None for others."""
    return _origin_place(origin) if len(origin) <= MAX_SOURCE_CHARS else None


@lru_cache(maxsize=4096)
def _origin_place(origin: str) -> Place | None:
    if FIELD.match(origin):
        return None
    return place_of(origin) if origin.endswith("/") else place_of(f"https://{origin}")


def _is_address(origin: str) -> bool:
    found = place(origin)
    return found is not None and found.kind != "name"


Listed = tuple[Pattern, Level]


@dataclass(frozen=True, slots=True)
class Policy:
    """A validated source policy.

    Attributes:
        origin: The rule of origin: `domain`, `host`, `path:N`, `field:NAME`.
        fresh: Days for which an origin stays fresh after it was first seen; 0 for none.
        patterns: Each pattern with its list.
        allow: Passages exempt from the style check: ids, hashes, sources (`sources.allow.Allowed`).
        history: The file of the history, relative to the policy's file; None without one.
    """

    origin: str = "domain"
    fresh: int = 0
    patterns: tuple[Listed, ...] = field(default=(), repr=False)
    history: Path | None = None
    allow: tuple[str, ...] = ()
    _by_key: Mapping[str, Sequence[Listed]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_key: dict[str, list[Listed]] = {}
        for listed in self.patterns:
            by_key.setdefault(listed[0].key, []).append(listed)
        object.__setattr__(self, "_by_key", by_key)

    @classmethod
    def of(cls, value: Policy | str | Path | Mapping[str, Any] | None) -> Self | Policy:
        """A policy from a YAML file, or from a mapping with the same keys.

        Raises:
            OptionError: It cannot be read or used; the message says where, and how to correct it.
        """
        if isinstance(value, Policy):
            return value
        if value is None:
            return cls()
        if isinstance(value, Mapping):
            return cls._of(value, "the policy", None)
        if not isinstance(value, (str, Path)):
            raise OptionError(f"sources must be a file or a mapping such as {{'known': [...]}}, got {clip(value)}")
        path, where = Path(value), f"the policy {clip(str(value), 200)}"
        return cls._of(_read(path, where), where, path.parent)

    @classmethod
    def _of(cls, keys: Mapping[Any, Any], where: str, folder: Path | None) -> Self:
        for key in keys:
            if key not in KEYS:
                raise OptionError(f"{where} has no key {clip(key)}; {nearest(str(key), KEYS)}known: {', '.join(KEYS)}")
        try:
            rule = check_rule(keys.get("origin", "domain"))
        except OptionError as error:
            raise OptionError(f"{where}: {error}") from None
        fresh, history = _days(keys.get("fresh", 0), where), _history(keys.get("history"), where, folder)
        allow = tuple(map(str, _texts(keys.get("allow"), f"{where}: allow")))
        return cls(rule, fresh, _patterns(keys, where), history, allow)

    @property
    def informed(self) -> bool:
        """Whether it lists any trusted or known source."""
        return any(level in ("trusted", "known") for _, level in self.patterns)

    def matching(self, source: str | None, origin: str) -> list[Listed]:
        """The matching patterns, each with its list; the most specific one, which decides, first."""
        places = (None if source is None else place(source), origin_place(origin) if origin else None)
        keys = dict.fromkeys(("", origin, *(found.host for found in places if found is not None)))
        listed = [one for key in keys for one in self._by_key.get(key, ())]
        found = [(one, level) for one, level in listed if one.matches(source, origin)]
        return sorted(found, key=lambda one: (-one[0].literal, LISTS.index(one[1])))


def _read(path: Path, where: str) -> Mapping[Any, Any]:
    try:
        value = load_yaml(path)
    except InputError as error:
        raise OptionError(f"the policy {error}") from None
    if value is None:
        raise OptionError(f"{where} is empty; write keys with values, such as known: [docs.example], or omit the file")
    if not isinstance(value, Mapping):
        raise OptionError(f"{where} must contain keys with values, such as known: [docs.example], got {clip(value)}")
    return value


def _days(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100_000:
        raise OptionError(f"{where}: fresh must be a number of days such as 30, got {clip(value)}")
    return value


def _patterns(keys: Mapping[Any, Any], where: str) -> tuple[Listed, ...]:
    found: dict[str, Listed] = {}
    for level in LISTS:
        for text in _texts(keys.get(level), f"{where}: {level}"):
            pattern = parse_pattern(text, f"{where}: {level}")
            name = pattern.text.partition("://")[2].lower() or pattern.text.lower()
            before = found.get(name)
            if before is not None and before[1] != level:
                raise OptionError(f"{where}: {clip(text)} is in {before[1]} and in {level}; keep it in one of them")
            found[name] = (pattern, level)
    if len(found) > MAX_PATTERNS:
        raise OptionError(f"{where} has more than {MAX_PATTERNS:,} patterns; use * and **")
    return tuple(found.values())


def _texts(value: object, name: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise OptionError(f"{name} must be a list such as [docs.example], got {clip(value)}; put it in brackets")
    return list(value)


def _history(value: object, where: str, folder: Path | None) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, (str, Path)) or not str(value).strip() or "\0" in str(value):
        raise OptionError(f"{where}: history must be the path of a file, got {clip(value)}")
    return Path(value) if folder is None else folder / value
