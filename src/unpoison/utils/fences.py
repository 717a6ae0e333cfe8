"""The marker that fences hostile texts in a prompt: nobody who wrote one of them can compute it.

It is keyed with a secret of this installation and with all the texts of the prompt, so it is the same for the same
prompt here, and caches of replies find it again. A marker derived from the texts alone could be computed by whoever
knows them: the question is known to the attacker, and a note may be his own words.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

__all__ = ["KEY", "digest_text", "key_file", "marker"]

KEY = "UNPOISON_FENCE_KEY"
"""The environment variable with the secret, for several machines that share a cache of replies."""


def key_file() -> Path:
    """Where this installation keeps its secret, if `KEY` gives none.

    Raises:
        RuntimeError: There is no home.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state, "unpoison", "fence-key")


def marker(texts: Sequence[str]) -> str:
    """Twelve hexadecimal digits that stand in none of the texts; the same for the same texts on this installation."""
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
    """Sixteen hexadecimal digits that stand for a text where the text itself must not be written.

    The same for the same text on this installation, and on all that share the secret; nobody without it can try out
    what a text was. `purpose`, of 16 characters at most, keeps those of different uses apart.
    """
    data, key = text.encode("utf-8", "surrogatepass"), _secret(os.environ.get(KEY))
    return blake2b(data, digest_size=8, key=key, person=purpose.encode()).hexdigest()


@cache
def _secret(given: str | None) -> bytes:
    """What the environment gives, else this installation's own, else one for this process."""
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
                os.link(draft, path)  # of several processes the first wins, and none reads half a key
            finally:
                draft.unlink()
        secret = path.read_bytes()
        if len(secret) == 32:
            return secret
    return secrets.token_bytes(32)
