"""The delimiter around untrusted texts in a prompt, which their authors cannot predict.

It is a keyed hash of all texts of the prompt, with a secret of this installation: the same prompt gets the same
delimiter, so that reply caches work. Without the key an attacker who knows the question and the passages could compute
it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

__all__ = ["KEY", "digest_text", "marker"]

KEY = "UNPOISON_FENCE_KEY"
"""The environment variable with the secret, for machines that share a reply cache."""


def key_file() -> Path:
    """The file with this installation's secret, used if `KEY` is not set.

    Raises:
        RuntimeError: There is no home directory.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "unpoison", "fence-key")


def marker(texts: Sequence[str]) -> str:
    """Twelve hexadecimal digits that occur in none of the texts; deterministic on this installation."""
    whole = chr(0).join(texts).encode("utf-8", "surrogatepass")
    salt = 0
    while True:
        digest = blake2b(
            str(salt).encode() + b"\0" + whole, digest_size=6, key=_secret(os.environ.get(KEY))
        ).hexdigest()
        if not any(digest in text for text in texts):
            return digest
        salt += 1


def digest_text(purpose: str, text: str) -> str:
    """A keyed hash of 16 hexadecimal digits, for logs that must not contain the text.

    Deterministic on all installations that share the secret; without the secret nobody can test guesses of the text.
    `purpose`, of 16 characters at most, separates uses.
    """
    data, key = text.encode("utf-8", "surrogatepass"), _secret(os.environ.get(KEY))
    return blake2b(data, digest_size=8, key=key, person=purpose.encode()).hexdigest()


@cache
def _secret(given: str | None) -> bytes:
    """The secret of the environment, else of this installation, else of this process."""
    if given:
        return blake2b(given.encode("utf-8", "surrogateescape"), digest_size=32).digest()
    with suppress(OSError, RuntimeError):
        path = key_file()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
            draft.touch(mode=0o600, exist_ok=False)
            draft.write_bytes(secrets.token_bytes(32))
            try:
                os.link(draft, path)  # atomic: the first process wins
            finally:
                draft.unlink()
        secret = path.read_bytes()
        if len(secret) == 32:
            return secret
    return secrets.token_bytes(32)
