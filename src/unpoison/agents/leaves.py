"""The texts in a JSON value: its strings, the strings of JSON embedded in a string, and keys that hold text.

Texts are judged one by one, and put back one by one, so that whatever else a value holds stays as it is. JSON that is a
text keeps its own layout: only the string that changes is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unpoison.errors import InputError, clip

__all__ = ["MAX_DEPTH", "MAX_VALUES", "Leaf", "Path", "TooMuchError", "put_texts", "show_path", "texts_of"]

Path = tuple[str | int, ...]

Skip = Callable[[Path, Mapping[str, Any], str], bool]

_STRING = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?', re.DOTALL)
"""A string of JSON, and whether it is a key."""
_WORD = re.compile(r"[^\W\d_]")
_NAME = re.compile(r"[\w$@:/\-]{1,40}")

MAX_CHARS, MAX_VALUES, MAX_DEPTH = 2_000_000, 1_000_000, 64
"""Characters of all texts of one result, its values, and levels of lists and objects; what has more is refused."""


class TooMuchError(ValueError):
    """A value of more texts, characters or levels than may be read; the message says which."""


class Leaf(NamedTuple):
    """A text in a value.

    Attributes:
        path: Keys and positions that lead to it.
        text: What it says.
        start, end: Where it stands in the JSON that is a text at this path; both 0 where it is all of that text.
        key: Whether it is the key at the end of the path, not what stands there.
    """

    path: Path
    text: str
    start: int = 0
    end: int = 0
    key: bool = False


def texts_of(value: object, skip: Skip | None = None) -> tuple[list[Leaf], list[Path]]:
    """The strings of a value that hold a letter, and where bytes stand, which nobody looks into.

    A key is a text where it is more than a name: of several words, or in other letters. Each is given once.

    Args:
        value: Strings, numbers, lists, tuples and mappings.
        skip: Whether what stands at a key of a mapping, at a path, is no text to anybody.

    Raises:
        TooMuchError: There is more than may be read.
        InputError: Something else stands in it, so that nobody can say what it holds.

    Complexity: O(n) time for n characters and values.
    """
    binary, size, keys, found = list[Path](), 0, set[str](), list[Leaf]()
    for path, text, key in _strings(value, skip, binary):
        size += len(text)
        if size > MAX_CHARS:
            raise TooMuchError(f"it has more than {MAX_CHARS:,} characters of text")
        inner = None if key else _inner_strings(text)
        for said, span, is_key in [(text, (0, 0), key)] if inner is None else inner:
            if is_key and (said in keys or (said.isascii() and " " not in said)):
                continue
            if is_key:
                keys.add(said)
            if _WORD.search(said) or not said.isascii():
                found.append(Leaf(path, said, *span, is_key))
    return found, binary


def put_texts(value: Any, changes: Sequence[tuple[Leaf, str]]) -> Any:
    """The value with other texts in the place of some; every part without a change is the same object."""
    by_path: dict[Path, list[tuple[Leaf, str]]] = {}
    for leaf, text in changes:
        by_path.setdefault(leaf.path, []).append((leaf, text))
    for path, own in by_path.items():
        value = _put(value, path, own)
    return value


def show_path(path: Path) -> str:
    """A path as JSONPath writes it, such as `$.content[0].text`; keys that are more than a name as a star."""
    steps = (step if isinstance(step, int) or _NAME.fullmatch(step) else "*" for step in path)
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _strings(value: object, skip: Skip | None, binary: list[Path]) -> Iterator[tuple[Path, str, bool]]:
    """Every string and key with its path; without recursion, for depth is hostile."""
    stack: list[tuple[Path, object]] = [((), value)]
    count = 0
    while stack:
        path, here = stack.pop()
        count += 1
        if count > MAX_VALUES:
            raise TooMuchError(f"it has more than {MAX_VALUES:,} values")
        if isinstance(here, str):
            yield path, here, False
        elif isinstance(here, (bytes, bytearray, memoryview)):
            binary.append(path)
        elif here is None or isinstance(here, (bool, int, float)):
            continue
        elif len(path) >= MAX_DEPTH:
            raise TooMuchError(f"it has more than {MAX_DEPTH} levels")
        elif isinstance(here, Mapping):
            for key in here:
                if not isinstance(key, str):
                    raise InputError(f"a key of a tool's result must be a string, got {clip(key)}; convert it")
                yield (*path, key), key, True
            inside = [((*path, key), held) for key, held in here.items() if skip is None or not skip(path, here, key)]
            stack.extend(reversed(inside))
        elif isinstance(here, (list, tuple)):
            stack.extend(((*path, i), here[i]) for i in range(len(here) - 1, -1, -1))
        else:
            raise InputError(
                f"a tool's result holds {clip(here)} ({type(here).__name__}), in which no text can be looked for; pass "
                "strings, numbers, lists and dicts, such as its .model_dump()"
            )


def _inner_strings(text: str) -> list[tuple[str, tuple[int, int], bool]] | None:
    """The strings of a text that is JSON, or a line of JSON after the other: what they say, where, whether keys."""
    if text.lstrip()[:1] not in ("{", "[") or '"' not in text or not _is_json(text):
        return None
    found = []
    for match in _STRING.finditer(text):
        written = match[1]
        try:
            said = json.loads(written) if "\\" in written else written[1:-1]
        except ValueError:
            return None
        found.append((said, match.span(1), match[2] is not None))
    return found


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        raise TooMuchError("it holds JSON that is nested too deep") from None
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        return len(lines) > 1 and all(map(_is_object, lines))
    return True


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False


def _put(value: Any, path: Path, changes: list[tuple[Leaf, str]]) -> Any:
    if not path:
        return _rewrite(value, changes)
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {key: _put(held, rest, changes) if key == step else held for key, held in value.items()}
    parts = [_put(held, rest, changes) if i == step else held for i, held in enumerate(value)]
    return tuple(parts) if isinstance(value, tuple) else parts


def _rewrite(text: str, changes: list[tuple[Leaf, str]]) -> str:
    """A text with another one in its place, or with some of its JSON strings written anew."""
    if changes[0][0].end == 0:
        return changes[0][1]
    for leaf, new in sorted(changes, key=lambda change: -change[0].start):
        written = json.dumps(new, ensure_ascii=text[leaf.start : leaf.end].isascii())
        text = text[: leaf.start] + written + text[leaf.end :]
    return text
