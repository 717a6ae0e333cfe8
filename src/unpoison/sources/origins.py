"""Origins: the party behind a source, such as a registrable domain, a user on a shared host, or a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, NoReturn

from unpoison.errors import OptionError, clip
from unpoison.sources.addresses import MAX_SOURCE_CHARS, Place, host_like, place_of, registrable, visible
from unpoison.utils.assets import read_data

__all__ = [
    "EMPTY", "MAX_ORIGIN_CHARS", "Metadata", "check_rule", "is_shared", "metadata_of", "origin_of", "place",
    "source_in", "source_of",
]  # fmt: skip

MAX_ORIGIN_CHARS = 300
"""Maximum characters of an origin; the end of a longer one is replaced by its hash."""

MAX_SEGMENTS = 16
"""Maximum N of a rule `path:N`."""

ADDRESS_FIELDS = ("url", "uri", "link")
"""Metadata fields with the web address of a passage."""


class _Tables(NamedTuple):
    """Hosts with user content.

    Attributes:
        users: From a host and the beginning of a path, in which each `*` is one name, to the name of the user; "" keeps
            the text that matched. The longest match is used. `*.host` is a user with a subdomain.
        plain: Paths that look like a user and are not one.
        cased: Hosts with case-sensitive names; on others, names are lower-cased.
        archives: Prefixes of archives and proxies, with the number of segments before the address that they show.
        shared: The hosts of `users`: an address there without a user may be written by anybody.
    """

    users: dict[str, str]
    plain: frozenset[str]
    cased: frozenset[str]
    archives: dict[str, int]
    shared: frozenset[str]


@cache
def _tables() -> _Tables:
    """The tables of `data/user_hosts.json`."""
    read = read_data("user_hosts.json")
    plain, cased = (frozenset(read[name].split()) for name in ("plain", "cased"))
    return _Tables(read["users"], plain, cased, read["archives"], frozenset(map(_host_of, read["users"])))


def origin_of(source: str | None, rule: str = "domain", metadata: Mapping[str, object] | None = None) -> str:
    """The party behind a source.

    The origin of a web address is its registrable domain (public suffix list with the private section) or, on hosts
    with user content, the user: `github.com/alice`. The origin of a file is its folder with a trailing slash, which is
    never equal to a domain. A bare word, such as the name of a collection, is its own origin.

    Args:
        source: An address, a path or the name of a collection; None without one.
        rule: `domain` as above; `host`: the whole host; `path:N`: the host and N segments of the path, or the first N
            folders; `field:NAME`: the metadata field NAME, as `NAME:value`.
        metadata: The metadata of the passage.

    Returns:
        At most 300 characters without control characters. "" if unknown: no source, one of more than 2,048 characters,
        `javascript:`, `data:`, an ambiguous address, a missing field.

    Raises:
        OptionError: An unknown rule. No source raises.
    """
    kind, _, argument = check_rule(rule).partition(":")
    if kind == "field":
        return _field(argument, (metadata or {}).get(argument))
    if not isinstance(source, str) or len(source) > MAX_SOURCE_CHARS:
        return ""
    return _origin(source, kind, int(argument or 0))


def source_of(source: str | None, metadata: Mapping[str, object]) -> str | None:
    """The text to read an origin from: the source or, if that is only a name, an address in the metadata.

    A source that is an address or a path takes precedence, because metadata may come from the document itself.
    """
    if metadata:
        for name in ADDRESS_FIELDS:
            address = metadata.get(name)
            if (
                isinstance(address, str)
                and address != source
                and address[:8].lower().startswith(("http://", "https://"))
            ):
                found = None if source is None else place(source)
                return address if source is None or (found is not None and found.kind == "name") else source
    return source


def place(source: str) -> Place | None:
    """`place_of` with a cache; sources that are too long have no place and are not cached."""
    return _place(source) if len(source) <= MAX_SOURCE_CHARS else None


@lru_cache(maxsize=4096)
def _place(source: str) -> Place | None:
    return place_of(source)


@lru_cache(maxsize=256)
def check_rule(rule: str) -> str:
    """Check a rule of origin, and return it.

    Raises:
        OptionError: An unknown rule.
    """
    kind, colon, argument = rule.partition(":") if isinstance(rule, str) else ("", "", "")
    if kind in ("domain", "host") and not colon:
        return rule
    if kind == "path" and argument.isascii() and argument.isdigit() and 1 <= int(argument[:4]) <= MAX_SEGMENTS:
        return rule
    if kind == "field" and argument and len(argument) <= 100 and argument.isprintable():
        return rule
    raise OptionError(f"origin must be domain, host, path:N (N: 1 to {MAX_SEGMENTS}) or field:NAME, got {clip(rule)}")


def _field(name: str, value: object) -> str:
    if value is None or isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    text = str(value)
    words = " ".join(text.split()) if len(text) <= MAX_SOURCE_CHARS else ""
    return _shorten_origin(f"{name}:{visible(words)}") if words else ""


@lru_cache(maxsize=4096)
def _origin(source: str, kind: str, segments: int) -> str:
    found = place(source)
    if found is None:
        return ""
    if found.kind == "name":
        return _shorten_origin(found.segments[0])
    if found.kind == "file":
        folders = found.segments[:segments] if kind == "path" else found.segments
        return _shorten_origin(found.host + "".join(f"{folder}/" for folder in folders) or "./")
    if kind == "host":
        return found.host
    if kind == "path":
        return _shorten_origin("/".join((found.host, *found.segments[:segments])))
    return _shorten_origin(_party(found))


def _party(found: Place) -> str:
    """The registrable domain; on a host with user content, the user, or that host if no user is named."""
    domain = registrable(found.host)
    hosts = [found.host]
    while hosts[-1] != domain and "." in hosts[-1]:
        hosts.append(hosts[-1].partition(".")[2])
    for host in hosts:
        for prefix, skipped in _tables().archives.items():
            begin = tuple(prefix.split("/"))
            behind = len(begin) - 1 + skipped
            if (host, *found.segments[: len(begin) - 1]) == begin and len(found.segments) > behind:
                return _archive_origin(host, found.segments[behind:])
    for host in hosts:
        user = _user(host, found)
        if user:
            return user
    return next((host for host in hosts if is_shared(host)), domain)


def is_shared(host: str) -> bool:
    """Whether a host has user content."""
    return host in _tables().shared


def _archive_origin(host: str, inner: tuple[str, ...]) -> str:
    """The origin of an archived or proxied page: the archive and the original domain."""
    rest = "/".join(inner)
    for scheme in ("http:/", "https:/"):
        rest = rest.removeprefix(scheme)
    first = rest.partition("/")[0]
    return f"{host}/{registrable(shown_host)}" if host_like(first) and (shown_host := _web_host(first)) else host


def _web_host(text: str) -> str:
    found = place(f"https://{text}/")
    return "" if found is None else found.host


def _user(host: str, found: Place) -> str:
    """The user of the longest matching entry of the table; "" without one."""
    if found.segments and f"{host}/{found.segments[0]}" in _tables().plain:
        return ""
    best, name = "", ""
    for pattern, called in _entries(host):
        wanted = pattern.split("/")[1:]
        if pattern.startswith("*."):
            above = found.host.removesuffix("." + pattern[2:])
            names = [above.rpartition(".")[2]] if above not in ("", "www", found.host) else []
        elif len(found.segments) >= len(wanted) and all(
            want in ("*", part) for want, part in zip(wanted, found.segments)
        ):
            names = [part for want, part in zip(wanted, found.segments) if want == "*"]
        else:
            continue
        if names and (pattern.startswith("*."), len(pattern)) > (best.startswith("*."), len(best)):
            best, name = pattern, _fill_stars(called or pattern, names)
    return name if host in _tables().cased else name.lower()


@lru_cache(maxsize=1024)
def _entries(host: str) -> tuple[tuple[str, str], ...]:
    return tuple((pattern, called) for pattern, called in _tables().users.items() if _host_of(pattern) == host)


def _host_of(pattern: str) -> str:
    return pattern.partition("/")[0].removeprefix("*.")


def _fill_stars(called: str, names: list[str]) -> str:
    """The name of an entry with its stars replaced by the last names."""
    first, *rest = called.split("*")
    return first + "".join(name + piece for name, piece in zip(names[len(names) - len(rest) :], rest))


def _shorten_origin(origin: str) -> str:
    if len(origin) <= MAX_ORIGIN_CHARS:
        return origin
    digest = blake2b(origin.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{origin[:270]}…{digest}{'/' if origin.endswith('/') else ''}"


Scalar = str | int | float

MAX_FIELDS = 32
MAX_VALUE_CHARS = 1_000
"""Maximum characters of a name and of a value; the rest is cut."""

MAX_NUMBER = 2**63
"""Larger numbers, infinity and NaN are left out."""

SOURCE_FIELDS = ("source", "url", "uri", "link", "file_path")
"""Fields with the source; the first one present is used."""

METADATA_SOURCES = ("source", "url", "uri", "link", "file_path", "file_name")
"""The same in the metadata of LangChain, LlamaIndex and Haystack documents."""

OWN = frozenset(
    "text content page_content id title source score embedding metadata meta label attack".split()  # noqa: SIM905
)
"""Fields that are not metadata: attributes of a passage and evaluation labels."""


class Metadata(dict[str, Scalar]):
    """A read-only dictionary."""

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the metadata of a passage is read-only; create a new passage")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[Metadata], tuple[dict[str, Scalar]]]:
        return Metadata, (dict(self),)


EMPTY = Metadata()


def metadata_of(fields: Mapping[Any, object], more: object = None) -> Metadata:
    """The numbers, texts and dates among fields: at most 32, texts cut to 1,000 characters, finite numbers only.

    Args:
        fields: The fields of a passage; its attributes (`text`, `id`, ...) are left out.
        more: Its `metadata` or `meta`, if that is a mapping; `fields` take precedence.
    """
    found = dict(_scalars(fields.items(), OWN))
    if isinstance(more, Mapping) and more:
        for name, value in _scalars(more.items(), frozenset()):
            if len(found) >= MAX_FIELDS:
                break
            found.setdefault(name, value)
    return Metadata(found) if found else EMPTY


def _scalars(items: Iterable[tuple[Any, object]], but: frozenset[str]) -> list[tuple[str, Scalar]]:
    found: list[tuple[str, Scalar]] = []
    for name, value in items:
        if not isinstance(name, str) or name in but:
            continue
        if isinstance(value, str):
            found.append((name[:MAX_VALUE_CHARS], value[:MAX_VALUE_CHARS]))
        elif isinstance(value, date):
            found.append((name[:MAX_VALUE_CHARS], value.isoformat()))
        elif isinstance(value, (int, float)) and -MAX_NUMBER < value < MAX_NUMBER:
            found.append((name[:MAX_VALUE_CHARS], value))
        else:
            continue
        if len(found) == MAX_FIELDS:
            break
    return found


def source_in(fields: Mapping[Any, object], more: object = None) -> Any:
    """The source in a passage's fields, else in its metadata; None without one.

    A value of `source` itself is returned unchecked, so that the caller can report a wrong type.
    """
    if fields.get("source") is not None:
        return fields["source"]
    for holder, names in ((fields, SOURCE_FIELDS), (more, METADATA_SOURCES)):
        if isinstance(holder, Mapping):
            for name in names:
                value = holder.get(name)
                if isinstance(value, str) and value.strip():
                    return value
    return None
