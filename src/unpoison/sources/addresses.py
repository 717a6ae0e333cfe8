"""Parses sources: web addresses as browsers read them, paths of files, or bare names. No text raises."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

import idna

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

__all__ = ["MAX_SOURCE_CHARS", "Place", "host_like", "place_of", "registrable", "visible"]

MAX_SOURCE_CHARS = 2_048
"""Maximum characters of a source; a longer one is not parsed."""

WEB = frozenset({"http", "https", "ws", "wss", "ftp"})
"""Schemes in which a backslash is a slash, and any number of slashes may follow the colon."""

NOWHERE = frozenset({"javascript", "vbscript", "data", "blob", "about", "filesystem", "view-source"})
"""Schemes without a place."""

EXTENSIONS = frozenset(
    "ai app as bz cab cc dot inc md mk ml mm mov pl pm properties ps pub py rs sh so tf zip".split()  # noqa: SIM905
)
"""Public suffixes that are read as file extensions if the source has no scheme."""

INSIDE = frozenset({"md", "py", "rs", "sh", "zip"})
"""Extensions that may also end the name of a folder or an archive inside a path."""

RESERVED = frozenset({"example", "internal"})
"""Unregistered suffixes of addresses in manuals and companies."""

SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,31}):(?!\d{1,5}(?:[/?#]|$))", re.IGNORECASE)  # no host with a port
DRIVE = re.compile(r"([a-z]):(?=[/\\]|$)", re.IGNORECASE)
PORT = re.compile(r":\d{0,5}$")
FORBIDDEN = re.compile(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]")
"""Forbidden domain code points (WHATWG URL)."""
LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
EXTENSION = re.compile(r"[^.\s]+(?:\.[^.\s]+)*\.[a-z0-9]{1,10}\Z", re.IGNORECASE)


class Place(NamedTuple):
    """The place of a source.

    Attributes:
        kind: `web`, `file`, or `name` for a bare word, such as the name of a collection.
        host: Of a web address: lower case, ASCII, without port; of a file: its root ("", "/", "c:/", "s3://bucket/").
        segments: The path; of a file, its folders; of a name, only the name.
        file: The name of a file, "" for a folder.
    """

    kind: str
    host: str
    segments: tuple[str, ...]
    file: str = ""


def place_of(source: str) -> Place | None:
    """The place of a source; None if it is empty, too long, ambiguous, or has a scheme without a place."""
    if len(source) > MAX_SOURCE_CHARS:
        return None
    text = source.translate(_REMOVED).strip(_SPACE)
    if not text:
        return None
    if text.startswith("\\\\"):  # a Windows share
        return _file("//", text)
    if drive := DRIVE.match(text):
        return _file(f"{drive[1].lower()}:/", text[2:])
    if scheme := SCHEME.match(text):
        return _of_scheme(scheme[1].lower(), text[scheme.end() :])
    return _bare(text)


def _of_scheme(scheme: str, rest: str) -> Place | None:
    if scheme in WEB:
        return _web(rest.replace("\\", "/").lstrip("/"))
    if scheme in NOWHERE or not rest.replace("\\", "/").startswith("/"):
        return None  # such as mailto:
    path = unquote(rest.replace("\\", "/").partition("?")[0].partition("#")[0], errors="replace")
    if "%" in path:
        return None  # encoded twice
    if scheme == "file":
        local = path.removeprefix("//localhost") if path.startswith("//localhost/") else path
        if local.startswith("//") and not local.startswith("///"):
            return _file("//", local)
        drive = DRIVE.match(local.lstrip("/"))
        return _file(f"{drive[1].lower()}:/", local.lstrip("/")[2:]) if drive else _file("/", local)
    bucket, _, inner = path.lstrip("/").partition("/")
    if not path.startswith("//") or not bucket or "@" in bucket.partition(".")[0]:
        return None
    return _file(f"{scheme}://{visible(bucket.lower())}/", inner)


def _bare(text: str) -> Place | None:
    """The place of a source without a scheme: a web address, a path if it has slashes, else a name."""
    normal = text.replace("\\", "/")
    first = normal.lstrip("/").partition("/")[0] if normal.startswith("//") else normal.partition("/")[0]
    host = first.partition("?")[0].partition("#")[0]
    bare = PORT.sub("", host)
    if host_like(bare, alone=normal.strip("/") == first) or (bare != host and _host(bare) is not None):
        return _web(normal.lstrip("/"))
    if normal.startswith("//"):
        return _file("//", normal)
    if "/" in normal:
        return _file("/" if normal.startswith("/") else "", normal)
    if text in (".", ".."):
        return _file("", f"{text}/")
    if EXTENSION.match(text) and text.rpartition(".")[2].lower() not in RESERVED and not text.startswith("www."):
        return Place("file", "", (), visible(text))
    return Place("name", "", (visible(" ".join(text.split())),))


def _web(rest: str) -> Place | None:
    """The place of a web address without its scheme and leading slashes."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = _host(PORT.sub("", authority.rpartition("@")[2]))
    if host is None:
        return None
    path = rest[len(authority) :].partition("?")[0].partition("#")[0]
    segments = _resolve_path([unquote(part, errors="replace") for part in path.split("/")])
    return Place("web", host, segments if segments is not None and ".." not in segments else ())


def _file(root: str, path: str) -> Place | None:
    parts = path.replace("\\", "/").split("/")
    segments = _resolve_path(parts)
    if segments is None:
        return None
    if root:
        segments = tuple(part for part in segments if part != "..")
    named = parts[-1] not in ("", ".", "..") and bool(segments)
    if root == "//" and len(segments) < 2:
        named = False
    return Place("file", root, segments[:-1] if named else segments, segments[-1] if named else "")


def _resolve_path(parts: list[str]) -> tuple[str, ...] | None:
    """The parts of a path with empty ones, "." and ".." resolved; None if one of them hides an encoded slash or dots.

    Leading ".." that leave the start of the path are kept.
    """
    kept: list[str] = []
    for part in parts:
        again = unquote(part, errors="replace")
        if "/" in again or "\\" in again or (again != part and again.strip() in (".", "..")):
            return None
        if part in ("", "."):
            continue
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        else:
            kept.append(visible(part))
    return tuple(kept)


def _host(written: str) -> str | None:
    """A host in lower-case ASCII, as browsers send it; None if it is invalid or ambiguous."""
    if written.startswith("["):
        return _ipv6(written)
    text = unquote(written, errors="replace").rstrip(".")
    if not text.isascii():
        try:
            text = idna.encode(text, uts46=True, std3_rules=False).decode("ascii").rstrip(".")
        except (idna.IDNAError, UnicodeError, ValueError, IndexError):
            return None
    text = text.lower()
    labels = text.split(".")
    if not text or len(text) > 253 or FORBIDDEN.search(text) or not all(map(LABEL.match, labels)):
        return None
    return _ipv4(text) if re.match(r"(?:\d+|0x[0-9a-f]*)\Z", labels[-1]) else text


def _ipv4(text: str) -> str | None:
    """A dotted IPv4 address; octal, hexadecimal and shortened spellings are ambiguous, and have no place."""
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        return None


def _ipv6(written: str) -> str | None:
    inside, bracket, after = written[1:].partition("]")
    try:
        address = IPv6Address(inside.partition("%")[0]) if bracket and not after else None
    except AddressValueError:
        return None
    if address is None:
        return None
    return str(address.ipv4_mapped) if address.ipv4_mapped is not None else f"[{address.compressed}]"


def host_like(text: str, *, alone: bool = False) -> bool:
    """Whether a text without a scheme is a host, and not the name of a folder, a collection or (`alone`) a file."""
    if text.startswith("["):
        return _ipv6(text) is not None
    lowered = text.rstrip(".").lower()
    if "." not in lowered or (host := _host(text)) is None:
        return False
    last = host.rpartition(".")[2]
    if last.isdigit():
        return re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){3}", lowered) is not None
    if lowered.startswith("www.") or last in RESERVED:
        return True
    known = _suffixes().publicsuffix(host, accept_unknown=False) is not None
    return known and last not in (EXTENSIONS if alone else INSIDE)


def registrable(host: str) -> str:
    """The registrable domain, with private suffixes such as github.io; without one, the host itself."""
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        return host
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    """The public suffix list, loaded on first use: 0.1 seconds."""
    from publicsuffixlist import PublicSuffixList

    return PublicSuffixList()


def visible(text: str) -> str:
    """A text in NFC with invisible characters percent-encoded, so that no two look alike."""
    if text.isascii() and text.isprintable():
        return text
    composed = unicodedata.normalize("NFC", text)
    return "".join(
        "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
        if unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"
        else character
        for character in composed
    )


_REMOVED = dict.fromkeys(map(ord, "\t\n\r"))
_SPACE = "".join(map(chr, range(0x21)))
