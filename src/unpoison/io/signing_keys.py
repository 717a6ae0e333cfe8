"""Ed25519 keys in PEM, as openssl makes them: who signs, and who checks."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from unpoison.errors import InputError, OptionError
from unpoison.utils.extras import require

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

__all__ = ["fingerprint", "parse_public_key", "public_pem", "read_private_key", "read_public_key"]

MAX_KEY_BYTES = 1 << 16
"""Of a file with a key."""

NEW_KEY = "openssl genpkey -algorithm ed25519 -out key.pem"


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """The key that signs, in PEM (PKCS #8), as openssl makes it.

    Raises:
        InputError: It cannot be read.
        OptionError: It is no private Ed25519 key, or one behind a passphrase.
        MissingExtraError: The library is not installed.
    """
    keys = require("cryptography.hazmat.primitives.serialization", "signing")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    content = _read_key(path)
    try:
        key = keys.load_pem_private_key(content, password=None)
    except TypeError:
        raise OptionError(
            f"{path} is behind a passphrase; write it without: openssl pkey -in {path} -out plain.pem"
        ) from None
    except Exception:  # the library has several kinds, and new ones
        raise OptionError(f"{path} holds no private key{_what(content)}; make one: {NEW_KEY}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise OptionError(f"{path} holds a key of another kind than Ed25519; make one: {NEW_KEY}")
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """The key that checks a signature, in PEM.

    Raises:
        InputError: It cannot be read.
        OptionError: It is no public Ed25519 key.
        MissingExtraError: The library is not installed.
    """
    return parse_public_key(_read_key(path), str(path))


def parse_public_key(content: bytes, owner: str) -> Ed25519PublicKey:
    """The key in a PEM text; `owner` is what errors call it.

    Raises:
        OptionError, MissingExtraError: As for `read_public_key`.
    """
    keys = require("cryptography.hazmat.primitives.serialization", "checking a signature")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    advice = "give the public one: openssl pkey -in key.pem -pubout -out public.pem"
    try:
        key = keys.load_pem_public_key(content)
    except Exception:  # the library has several kinds, and new ones
        raise OptionError(f"{owner} holds no public key{_what(content)}; {advice}") from None
    if not isinstance(key, Ed25519PublicKey):
        raise OptionError(f"{owner} holds a key of another kind than Ed25519; {advice}")
    return key


def _read_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEY_BYTES + 1)
    except OSError as error:
        raise InputError(f"the key {path} cannot be read: {error.strerror}; give a PEM file") from None
    if len(content) > MAX_KEY_BYTES:
        raise InputError(f"the key {path} is larger than {MAX_KEY_BYTES:,} bytes; give a PEM file")
    return content


def _what(content: bytes) -> str:
    """What a PEM file calls itself, where it is not what was wanted."""
    label = re.match(r"\s{0,100}-----BEGIN ([A-Z0-9 ]{1,40})-----", content[:200].decode("latin-1"))
    return f" but a {label[1].lower()}" if label else ""


def public_pem(key: Ed25519PublicKey) -> bytes:
    """The key in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: Ed25519PublicKey) -> str:
    """The SHA-256 of the key in DER, as `openssl pkey -pubin -in public.pem -outform DER | sha256sum` prints it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
