"""A zip of files with their SHA-256 sums and an Ed25519 signature of the sums, and the check of one from a stranger.

::

    FILE ...           what is signed, stored without compression and without dates: equal contents give equal bytes
    public.pem         the key that checks the signature; its sum is among the sums
    SHA256SUMS         a line for each of these, as `sha256sum` writes them
    SHA256SUMS.sig     64 bytes, the Ed25519 signature (RFC 8032) of the bytes of SHA256SUMS

So `sha256sum -c SHA256SUMS` and `openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in SHA256SUMS -sigfile
SHA256SUMS.sig` check the same without this package.
"""

from __future__ import annotations

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from unpoison.errors import InputError, OptionError, clip
from unpoison.io.signing_keys import fingerprint, parse_public_key, public_pem
from unpoison.utils.files import private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["Verification", "pack", "verify", "write_pack"]

SUMS, SIGNATURE, PUBLIC = "SHA256SUMS", "SHA256SUMS.sig", "public.pem"

MAX_BYTES = 64 << 20
"""Of a zip, and of all that is in it; larger ones are refused."""
MAX_MEMBERS = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Of a member: no folder, no way out of one."""
_SUM = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]{0,99})")
_ENTRY = b"PK\x01\x02"
"""What every entry of a zip's directory begins with."""


def pack(members: Mapping[str, bytes], key: Ed25519PrivateKey | None = None) -> bytes:
    """A zip of these files with their sums, signed where there is a key.

    Args:
        members: Contents by name, at most 100 with 64 MiB in all.
        key: What signs.

    Raises:
        InputError: A name that a reader would refuse, or too much.
    """
    whole = dict(members)
    if key is not None:
        whole[PUBLIC] = public_pem(key.public_key())
    for name in members:
        if not _NAME.fullmatch(name) or name in (SUMS, SIGNATURE, PUBLIC):
            raise InputError(f"a member of a pack cannot be named {clip(name)}; use letters, digits, '.', '_' and '-'")
    if len(members) > MAX_MEMBERS - 3 or sum(map(len, whole.values())) > MAX_BYTES - (1 << 16):
        raise InputError(f"a pack holds at most {MAX_MEMBERS - 3} files and {MAX_BYTES:,} bytes; leave something out")
    sums = "".join(f"{sha256(content).hexdigest()}  {name}\n" for name, content in whole.items()).encode()
    whole[SUMS] = sums
    if key is not None:
        whole[SIGNATURE] = key.sign(sums)
    return _zip(whole)


def write_pack(path: Path, members: Mapping[str, bytes], key: Ed25519PrivateKey | None = None) -> None:
    """Write `pack` to a file for its owner alone, whole or not at all.

    Raises:
        InputError: As for `pack`.
        OSError: It cannot be written.
    """
    content = pack(members, key)
    draft = path.with_name(f"{path.name}.part")
    private(draft)
    draft.write_bytes(content)
    os.replace(draft, path)


def _zip(members: Mapping[str, bytes]) -> bytes:
    """The same bytes for the same contents, on every machine: no dates, no compression."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # 1980-01-01
            info.create_system, info.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, content)
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Verification:
    """What the check of a pack has found.

    Attributes:
        signer: The SHA-256 of the key that signed it, in hexadecimal; None where no valid signature was found.
        problems: What was changed, is missing or was added, or what is wrong with the signature.
        notes: What a reader should know although nothing is wrong.
        members: The contents that are as they were signed, by name.
    """

    signer: str | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    members: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def valid(self) -> bool:
        """Whether it is signed, by the key that was asked for, and nothing was changed."""
        return self.signer is not None and not self.problems


def verify(path: Path, key: Ed25519PublicKey | None = None) -> Verification:
    """Check a pack: every sum, and the signature.

    Args:
        path: The zip; it may be hostile.
        key: Who must have signed it. Without one it is checked with the key inside, which says only that whoever
            holds that key has signed: compare its SHA-256 with the one that the signer tells.

    Raises:
        InputError: It is no zip, or one that no honest program has written: too large, with two members of a name,
            links, folders, paths that lead elsewhere.
        MissingExtraError: It is signed, and the library that checks signatures is not installed.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; give the zip of --evidence") from None
    if len(raw) > MAX_BYTES:
        raise InputError(f"{path} is larger than {MAX_BYTES:,} bytes, which no evidence pack is")
    members = _read_zip(raw, path)
    whole = {name: content for name, content in members.items() if content is not None}
    problems = list(_compare(members, whole))
    signer, wrong = _check_signature(whole, key)
    notes = []
    if len(whole) == len(members) and _zip(whole) != raw:
        notes.append("the zip was packed again or holds bytes beside its members: only the members are vouched for")
    if signer is not None and key is None:
        notes.append("the key is the one inside the pack; to be sure whose it is, give --key with the signer's own")
    sound = {} if wrong or signer is None else {name: whole[name] for name in whole if name not in _named(problems)}
    return Verification(signer, (*wrong, *problems), tuple(notes), sound)


def _named(problems: list[str]) -> set[str]:
    return {problem.partition(":")[0] for problem in problems}


def _read_zip(raw: bytes, path: Path) -> dict[str, bytes | None]:
    """The members by name; None stands for one whose bytes do not fit the zip's own checksum.

    Raises:
        InputError: See `verify`.
    """
    if raw.count(_ENTRY) > MAX_MEMBERS:  # before millions of them take the memory
        raise InputError(f"{path} has more than {MAX_MEMBERS} members, which no evidence pack has")
    try:
        archive = zipfile.ZipFile(io.BytesIO(raw))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise InputError(f"{path} is no zip that can be read ({error}); give the zip of --evidence") from None
    members: dict[str, bytes | None] = {}
    left = MAX_BYTES
    with archive:
        for info in archive.infolist():
            _check_member(info, members, path)
            try:
                with archive.open(info) as file:
                    content = file.read(left + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError):
                members[info.filename] = None
                continue
            except (NotImplementedError, RuntimeError, ValueError, struct.error, OSError) as error:
                raise InputError(f"{path}: the member {clip(info.filename)} cannot be read: {error}") from None
            left -= len(content)
            if left < 0:
                raise InputError(f"{path} unpacks to more than {MAX_BYTES:,} bytes, which no evidence pack does")
            members[info.filename] = content
    return members


def _check_member(info: zipfile.ZipInfo, seen: Mapping[str, object], path: Path) -> None:
    """Refuse what would surprise whoever unpacks it."""
    name = info.orig_filename
    wrong = (
        "lies in a folder or outside, or has a name with odd characters"
        if not _NAME.fullmatch(name) or name != info.filename
        else "is there twice"
        if name.lower() in (known.lower() for known in seen)  # for some systems these are one file
        else "is a link or a device"
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG)
        else "is encrypted"
        if info.flag_bits & 1
        else "is compressed in an unusual way"
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        else ""
    )
    if wrong:
        raise InputError(f"{path}: the member {clip(name)} {wrong}; no evidence pack holds such a member")


def _compare(members: Mapping[str, bytes | None], whole: Mapping[str, bytes]) -> Iterator[str]:
    """What was changed, is missing, or was added."""
    yield from (f"{name}: changed, its bytes do not even fit the zip's own checksum" for name in members.keys() - whole)
    if SUMS not in members:
        yield f"{SUMS}: missing, so nothing says what the members should be"
    if SUMS not in whole:
        return
    listed: dict[str, str] = {}
    for number, line in enumerate(whole[SUMS].decode("utf-8", "replace").splitlines()[: 2 * MAX_MEMBERS], 1):
        match = _SUM.fullmatch(line)
        if match is None or match[2] in listed:
            yield f"{SUMS}: changed, line {number} is no sum of a member, or names one again"
        else:
            listed[match[2]] = match[1]
    yield from (f"{name}: missing" for name in listed if name not in members)
    yield from (
        f"{name}: changed" for name in listed if name in whole and sha256(whole[name]).hexdigest() != listed[name]
    )
    yield from (f"{name}: added, no sum names it" for name in members if name not in listed | {SUMS: "", SIGNATURE: ""})


def _check_signature(members: Mapping[str, bytes], key: Ed25519PublicKey | None) -> tuple[str | None, list[str]]:
    """The key that signed, and what is wrong."""
    absent = next((name for name in (SUMS, SIGNATURE) if name not in members), None)
    if absent is not None:
        return None, [f"not signed: there is no {absent} that can be read, so anybody can have written the pack"]
    keys = [] if key is None else [key]
    with suppress(OptionError):  # a key that was changed: its sum says so
        keys.append(parse_public_key(members.get(PUBLIC, b""), f"the pack's {PUBLIC}"))
    for one in keys:
        if _signed_by(one, members[SIGNATURE], members[SUMS]):
            if key is not None and public_pem(one) != public_pem(key):
                return fingerprint(one), [f"signed by another key than that of --key, which is {fingerprint(key)}"]
            return fingerprint(one), []
    return None, [f"the signature does not fit: {SUMS}, {SIGNATURE} or {PUBLIC} was changed, or another key has signed"]


def _signed_by(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True
