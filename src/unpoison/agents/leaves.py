"""The texts in a value as JSON has them: its strings, the strings of JSON that is itself a text, and long keys.

Texts are judged one by one, and put back one by one, so that whatever else a value holds stays as it is. JSON that is a
text keeps its own layout: only the string that changes is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from unpoison.agents.policy import Bounds
from unpoison.errors import InputError, clip

__all__ = ["Leaf", "Leaves", "Path", "TooMuchError", "is_label", "put_texts", "show_path", "texts_of"]

Path = tuple[str | int, ...]

Skip = Callable[[Path, Mapping[str, Any], str], bool]

_STRING = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?', re.DOTALL)
"""A string of JSON, and whether it is a key."""
_LABEL = re.compile(r"[\w.,:/@+\-]*+(?: [\w.,:/@+\-]*+)?+", re.ASCII)
_WORD = re.compile(r"[A-Za-z]{2}")
_NAME = re.compile(r"[\w$@:/\-]{1,40}")
MAX_LABEL_CHARS, MAX_SHORT_CHARS = 40, 100


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


class Leaves(NamedTuple):
    """The strings of a value, each in its order.

    Attributes:
        texts: Those that may say something by themselves.
        binary: The bytes objects, which nobody looks into.
        labels: Strings of at most two short words, such as names and dates, which say something only together.
        short: Labels and short texts.
        keys: Keys that are labels, each once; none where they are all of one word.
    """

    texts: list[Leaf]
    binary: list[Path]
    labels: list[Leaf]
    short: list[Leaf]
    keys: list[Leaf]


def texts_of(value: object, bounds: Bounds, skip: Skip | None = None) -> Leaves:
    """The strings of a value that hold a word.

    Args:
        value: Strings, numbers, lists, tuples and mappings.
        bounds: How much is read.
        skip: Whether what stands at a key of a mapping, at a path, is no text to anybody.

    Raises:
        TooMuchError: There is more than may be read.
        InputError: Something else stands in it, so that nobody can say what it holds.

    Complexity: O(n) time for n characters and values.
    """
    found, size, keys = Leaves([], [], [], [], []), 0, dict[str, Leaf]()
    for path, text, key in _strings(value, bounds, skip, found.binary):
        size += len(text)
        if size > bounds.characters:
            raise TooMuchError(f"it has more than {bounds.characters:,} characters of text")
        inner = None if key else _inner_strings(text)
        own = [(text, (0, 0), key)] if inner is None else inner
        for said, span, is_key in own:
            leaf = Leaf(path, said, *span, is_key)
            if not is_label(said):
                found.texts.append(leaf)
            elif is_key:
                keys.setdefault(said, leaf)
            elif _WORD.search(said):
                found.labels.append(leaf)
            if not is_key and len(said) <= MAX_SHORT_CHARS and _WORD.search(said):
                found.short.append(leaf)
        if len(found.texts) > bounds.leaves:
            raise TooMuchError(f"it has more than {bounds.leaves:,} texts")
    if any(" " in said for said in keys):  # names of fields have none
        found.keys.extend(leaf for said, leaf in keys.items() if _WORD.search(said))
    return found


def is_label(text: str) -> bool:
    """Whether a text is too little to say anything: at most two words of ASCII, together at most 40 characters."""
    return len(text) <= MAX_LABEL_CHARS and _LABEL.fullmatch(text) is not None


def put_texts(value: Any, changes: Sequence[tuple[Leaf, str]]) -> Any:
    """The value with other texts in the place of some; every part without a change is the same object."""
    by_path: dict[Path, list[tuple[Leaf, str]]] = {}
    for leaf, text in changes:
        by_path.setdefault(leaf.path, []).append((leaf, text))
    for path, own in sorted(by_path.items(), key=lambda item: -len(item[0])):  # keys change behind what they lead to
        value = _put(value, path, own)
    return value


def show_path(path: Path) -> str:
    """A path as JSONPath writes it, such as `$.content[0].text`; keys that are more than a name as a star."""
    steps = (step if isinstance(step, int) or _NAME.fullmatch(step) else "*" for step in path)
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _strings(value: object, bounds: Bounds, skip: Skip | None, binary: list[Path]) -> Iterator[tuple[Path, str, bool]]:
    """Every string and key with its path; without recursion, for depth is hostile."""
    stack: list[tuple[Path, object]] = [((), value)]
    count = 0
    while stack:
        path, here = stack.pop()
        count += 1
        if count > 20 * bounds.leaves:
            raise TooMuchError(f"it has more than {20 * bounds.leaves:,} values")
        if isinstance(here, str):
            yield path, here, False
        elif isinstance(here, (bytes, bytearray, memoryview)):
            binary.append(path)
        elif here is None or isinstance(here, (bool, int, float)):
            continue
        elif len(path) >= bounds.depth:
            raise TooMuchError(f"it has more than {bounds.depth} levels")
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
        if not rest and changes[0][0].key:
            return {changes[0][1] if key == step else key: held for key, held in value.items()}
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
