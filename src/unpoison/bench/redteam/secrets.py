"""`${NAME}` from the environment, and out of everything that is shown or written."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote

from unpoison.errors import OptionError

__all__ = ["SENSITIVE", "VARIABLE", "Secrets"]

SENSITIVE = re.compile(r"auth|cookie|secret|passw|token|api.?key", re.IGNORECASE)
"""What names of headers, fields and variables hold that stand for a secret."""

LONG = 16
"""Any value of the environment with so many characters or more is taken for a secret."""

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")

_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")

MIN_LENGTH = 4
"""Shorter values are no secrets, and to take them out would tear every text."""


MAX_HIDDEN = 100
"""Values of a running test, such as tokens of logins, that are remembered at most; the oldest goes first."""


class _Search(NamedTuple):
    """What is looked for in a text.

    Attributes:
        pattern: Every value as servers repeat it.
        names: Each of these spellings to its name, in lower case.
        folded: Names and values as `_normalise_text` leaves them.
    """

    pattern: re.Pattern[str]
    names: Mapping[str, str]
    folded: tuple[tuple[str, str], ...]


class Secrets:
    """The environment as a configuration may name it, and what a running test must not show. Used by several threads.

    Args:
        environment: Values by name.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._used: dict[str, str] = {}  # the names by their values, replaced as a whole
        self._hidden: tuple[str, ...] = ()
        self._search: _Search | None = None
        self._lock = Lock()

    def value(self, name: str, *, secret: bool = True) -> str:
        """What stands for `${NAME}`; from here on it is masked.

        Args:
            name: The variable.
            secret: Whether it is one for sure, as in a header. Elsewhere it is one where it is long, or is called so:
                the name of a collection is none, and would be torn out of every answer.

        Raises:
            OptionError: It is not set.
        """
        value = self._environment.get(name)
        if not value:
            raise OptionError(f"${{{name}}} is not set; put it into the environment: export {name}=...")
        if secret or _looks_secret(name, value):
            self._add(name, value)
        return value

    def hide(self, name: str, value: str, *, secret: bool = False) -> None:
        """Mask a value that a reply gave, such as a token of a login, from here on; the last hundred are remembered.

        Args:
            name: What stands in its place, as `${name}`.
            value: It.
            secret: Whether it is one for sure; otherwise it is one where it is long, or is called so.
        """
        if secret or _looks_secret(name, value):
            self._add(name, value, hidden=True)

    def copy(self) -> Secrets:
        """The same, for what must be hidden for a while only, such as the cookies of one question."""
        copied = Secrets(self._environment)
        copied._used, copied._hidden, copied._search = self._used, self._hidden, self._search
        return copied

    def _add(self, name: str, value: str, *, hidden: bool = False) -> None:
        if value in self._used or len(value) < MIN_LENGTH or (value.isdigit() and len(value) < 6):  # a port is none
            return
        with self._lock:
            used = {**self._used, value: name}
            if hidden:
                for oldest in self._hidden[: 1 - MAX_HIDDEN]:
                    used.pop(oldest, None)
                self._hidden = (*self._hidden[1 - MAX_HIDDEN :], value)
            self._used, self._search = used, None

    def fill(self, text: str) -> str:
        """A text with its variables' values; values are not looked at again.

        Raises:
            OptionError: One is not set.
        """
        return VARIABLE.sub(lambda match: self.value(match[1]), text)

    def mask(self, value: Any) -> Any:
        """The same text, mapping or list without any secret that was used, plain or encoded; `${NAME}` stands there.

        Names in mappings stay: they are looked up, and whoever shows them masks the sentence.

        A text that repeats one in some other dress is left out whole.

        Linear in the size of the value. What a system under test splits or turns around is not recognised.
        """
        if not self._used:
            return value
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, Mapping):
            return {key: self.mask(member) for key, member in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.mask(member) for member in value]
        return value

    def _mask(self, text: str) -> str:
        search = self._search
        if search is None:
            with self._lock:
                search = self._search = _search_for(self._used)
        masked = search.pattern.sub(lambda match: f"${{{search.names.get(match[0].lower(), 'SECRET')}}}", text)
        folded = _normalise_text(masked)
        hidden = next((name for name, member in search.folded if member in folded), None)
        return masked if hidden is None else f"(a text that repeats ${{{hidden}}})"


def _looks_secret(name: str, value: str) -> bool:
    return len(value) >= LONG or SENSITIVE.search(name) is not None


def _search_for(used: Mapping[str, str]) -> _Search:
    names = {form.lower(): name for value, name in used.items() for form in _forms(value)}
    longest_first = sorted(names, key=len, reverse=True)
    folded = [(name, _normalise_text(value)) for value, name in used.items()]
    return _Search(
        re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE),
        names,
        tuple((name, value) for name, value in folded if len(value) >= MIN_LENGTH),
    )


def _normalise_text(text: str) -> str:
    """A text without the escapes that JSON, addresses and HTML know, nested twice, and without case."""
    for _ in range(2):
        text = html.unescape(unquote(_ESCAPED.sub(lambda match: chr(int(match[1], 16)), text), errors="replace"))
    return text.replace("\\", "").casefold()


def _forms(value: str) -> set[str]:
    """A value as servers repeat it: plain, in JSON, in an address, in Base64."""
    raw = value.encode("utf-8", "surrogateescape")
    spellings = {value, json.dumps(value)[1:-1], quote(raw, safe=""), quote_plus(raw), base64.b64encode(raw).decode()}
    return {form for form in spellings if len(form) >= MIN_LENGTH}
