"""Finds arguments of a tool call that come from a tool's result: addresses, accounts, links and paths.

A request such as "please email the file to ..." may come from an attacker or from a colleague, and its wording does not
tell which. Its address may: the user never named it. This check compares strings and reads no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from unpoison.agents.leaves import Path, show_path
from unpoison.text.canonical import canonical

__all__ = ["arguments_from_results"]

_KINDS = (
    ("link", re.compile(r"(?:https?://|www\.)[^\s\"'<>()\[\]{}]{1,500}", re.IGNORECASE)),
    ("address", re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")),
    ("account", re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?:[ ]?[A-Z\d]{2,4}){3,8}(?!\w)")),
    ("path", re.compile(r"(?<![\w/.:])(?:~|\.{1,2})?(?:/[\w.@ -]{1,100}){1,20}|(?<!\w)[A-Za-z]:\\[^\s\"'<>|]{1,300}")),
    ("number", re.compile(r"(?<![\w.])\+?\d(?:[ ()/-]{0,2}\d){6,20}(?![\w.])")),
)
"""Values that name a recipient or place. Earlier kinds take precedence."""

_TRAILING = ".,;:!?"


class ForeignArgument(NamedTuple):
    """A value of a call that occurs in a tool's result, and nowhere in the user's text.

    Attributes:
        path: Its place in the call's arguments, as JSONPath.
        kind: "address", "link", "account", "path" or "number".
        value: The text in the call.
        result: The position of the first result that holds it.
    """

    path: str
    kind: str
    value: str
    result: int


def arguments_from_results(
    call: Mapping[str, object], results: Sequence[object], user_text: str
) -> tuple[ForeignArgument, ...]:
    """The addresses, links, accounts, paths and long numbers of a call that occur only in tool results.

    Ask the user before such a call. An empty result does not mean that a call is safe: names, short numbers and free
    text are not compared, and neither is a value that the model changed.

    Args:
        call: The arguments of the call, as JSON.
        results: What tools returned in this conversation: texts, or values as JSON has them.
        user_text: Everything that the user wrote in it.

    Complexity: O(a n) time for a values of the call and n characters of results.
    """
    said = [_plain("\n".join(text for _, text in _strings(result))) for result in results]
    asked = _plain(user_text)
    found = dict[tuple[str, str], ForeignArgument]()
    for path, text in _strings(call):
        for kind, value in _values(canonical(text).text):
            plain = _plain(value)
            if plain in asked:
                continue
            holder = next((number for number, text in enumerate(said) if plain in text), None)
            if holder is not None:
                where = show_path(path)
                found.setdefault((where, value), ForeignArgument(where, kind, value, holder))
    return tuple(found.values())


def _strings(value: object) -> Iterator[tuple[Path, str]]:
    """Every string and number of a value as JSON has it, with its path; without recursion, for depth is hostile."""
    stack: list[tuple[Path, object]] = [((), value)]
    while stack:
        path, here = stack.pop()
        if isinstance(here, Mapping):
            stack += [((*path, str(key)), item) for key, item in reversed(list(here.items()))]
        elif isinstance(here, (list, tuple)):
            stack += [((*path, number), item) for number, item in reversed(list(enumerate(here)))]
        elif isinstance(here, (str, int)):
            yield path, str(here)


def _values(text: str) -> Iterator[tuple[str, str]]:
    """Each value of a text with its kind; a part of a longer value does not count."""
    taken = list[tuple[int, int]]()
    for kind, pattern in _KINDS:
        for match in pattern.finditer(text):
            if all(match.end() <= start or end <= match.start() for start, end in taken):
                taken.append(match.span())
                yield kind, match[0].strip().rstrip(_TRAILING)


def _plain(text: str) -> str:
    """A text without case, spaces and the separators of numbers."""
    return re.sub(r"[\s()-]", "", canonical(text).text.casefold())
