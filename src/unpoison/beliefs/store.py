"""What every belief store offers, and what can be done with any of them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from secrets import token_hex
from typing import Any, Protocol, runtime_checkable

from unpoison.core.belief import Belief
from unpoison.errors import InputError, OptionError, StoreError, clip
from unpoison.utils.checks import within

__all__ = [
    "BeliefStore",
    "belief_key",
    "check_key",
    "check_namespace",
    "check_ttl",
    "export_line",
    "export_lines",
    "fresh_version",
    "import_lines",
    "times",
    "update",
]

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY = re.compile(r"[^\s\x00-\x1f\x7f]{1,128}")


def belief_key(query: str) -> str:
    """32 hexadecimal digits of the normalised query.

    Normalised means: compatible characters unified (NFKC), case folded, white space as single spaces, and no full
    stops, question or exclamation marks at the end.
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", query).casefold())
    line = " ".join(text.split()).rstrip(".?!\u3002 ")
    return blake2b(line.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def check_key(key: str) -> str:
    """The key, if every store can hold it.

    Raises:
        InputError: Empty, longer than 128 characters, or with white space or control characters.
    """
    if not isinstance(key, str) or not _KEY.fullmatch(key) or not key.isprintable():
        raise InputError(
            f"a belief's key must be 1 to 128 visible characters, got {clip(key)}; belief_key(query) makes one"
        )
    return key


def check_namespace(namespace: str) -> str:
    """The namespace, if every store can hold it.

    Raises:
        OptionError: Not 1 to 64 letters, digits, dots, hyphens and underscores.
    """
    if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
        raise OptionError(
            f"namespace must be 1 to 64 letters, digits, dots, hyphens or underscores, got {clip(namespace)}"
        )
    return namespace


ATTEMPTS = 10_000
"""So often `update` starts again; somebody makes progress each time, so this only ends a store that never agrees."""

MAX_TTL = 1e10
"""Seconds; three centuries."""


@runtime_checkable
class BeliefStore(Protocol):
    """Beliefs by key, within one namespace. Safe for threads; all stores but memory, for processes and machines.

    Every method raises StoreError when the store cannot be reached, and InputError when it holds something that no
    version of this package wrote.

    Attributes:
        namespace: Stores of different namespaces in one place do not see each other.
    """

    namespace: str

    def get(self, key: str) -> Belief | None:
        """The belief, with its `version` and times; None if there is none or it has expired."""

    def put(self, key: str, belief: Belief, *, expected: str | None = None, keep_times: bool = False) -> bool:
        """Write a belief, in one atomic step.

        Args:
            key: 1 to 128 visible characters.
            belief: Its own version is not looked at.
            expected: Write only while the stored version is this one; "" while there is none; None always.
            keep_times: Keep the belief's own times, as an import does.

        Returns:
            Whether it was written. False means that another worker was faster: read again.
        """

    def items(self) -> Iterator[tuple[str, Belief]]:
        """All beliefs of the namespace that have not expired, by key."""

    def forget(self, key: str) -> bool:
        """Delete one belief; whether there was one."""

    def forget_all(self) -> int:
        """Delete all beliefs of the namespace; how many there were."""

    def close(self) -> None:
        """Let go of files and connections; the store opens them again when it is used again."""


def update(store: BeliefStore, key: str, change: Callable[[Belief | None], Belief]) -> Belief:
    """Read, change, and write back unless somebody wrote meanwhile; then again. No update is lost.

    Args:
        store: Where.
        key: Which.
        change: From the belief as it is now, or None, to the new one; called once per attempt.

    Returns:
        What was written.

    Raises:
        StoreError: The store cannot be reached, or did not agree in 10,000 attempts.
    """
    for _ in range(ATTEMPTS):
        before = store.get(key)
        after = change(before)
        if store.put(key, after, expected="" if before is None else before.version):
            return after
    raise StoreError(f"the belief {clip(key)} was changed by others {ATTEMPTS:,} times while it was being written")


def export_lines(store: BeliefStore) -> Iterator[str]:
    """One JSON object per belief: key, answer, support, conflict, query and times."""
    for key, belief in store.items():
        yield export_line(key, belief)


def export_line(key: str, belief: Belief) -> str:
    """One line of an export."""
    return json.dumps({"key": key, **belief.to_dict()}, ensure_ascii=False)


def import_lines(store: BeliefStore, lines: Iterable[str]) -> int:
    """Write what `export_lines` wrote, times included; what the store has under these keys is replaced.

    Returns:
        How many.

    Raises:
        InputError: A line is no belief; the message names it. Those before it are written.
    """
    count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
            if not isinstance(values, dict):
                raise InputError(f"must be a JSON object, got {clip(values)}")
            key, belief = check_key(values.get("key", "")), Belief.from_dict(values)
        except (ValueError, RecursionError) as error:  # InputError is a ValueError
            raise InputError(f"line {number}: {error}") from None
        store.put(key, belief, keep_times=True)
        count += 1
    return count


def check_ttl(ttl: float | None) -> float | None:
    """Seconds until a belief expires that is not written again, or None for never."""
    if ttl is None:
        return None
    seconds = within("ttl", ttl, 0.0, MAX_TTL)
    if seconds == 0:
        raise OptionError("ttl must be positive seconds or None for no expiry, got 0")
    return float(seconds)


def fresh_version() -> str:
    """A version that no other write has, not even one before a deletion."""
    return token_hex(8)


def times(belief: Belief, now: float, ttl: float | None, *, keep: bool) -> dict[str, Any]:
    """created, updated and expires of a belief that is being written."""
    fresh = {"created": now, "updated": now, "expires": None if ttl is None else now + ttl}
    own = {name: value for name in fresh if (value := getattr(belief, name)) is not None} if keep else {}
    return {**fresh, **own}
