"""The texts in a value: its strings, the strings of JSON embedded in a string, and keys that hold text.

A value is what JSON has, a dataclass or a pydantic model; any other object is read as its `str`.
Texts are judged and replaced one by one, so that the rest of a value stays unchanged. JSON inside a text keeps its
layout: only the changed string is rewritten.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from unpoison.text.decoding import CODES, of_codes, spelled
from unpoison.text.files import BASE64, MEDIA, MIN_CHARS, TEXT, File, file_of, text_of

__all__ = ["UNREAD", "Leaf", "Path", "TooMuchError", "put_texts", "scalars", "show_path", "texts_of", "words_of"]

Path = tuple[Any, ...]
"""Keys, names of fields, and positions."""

Skip = Callable[[Path, Mapping[Any, Any], Any], bool]

_STRING = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?', re.DOTALL)
"""A string of JSON, and whether it is a key."""
_WORD = re.compile(r"[^\W\d_]|&#|[%=\\]\d|(?:[\d.-]{1,9}+[\s,;:/|+]{1,3}+){24}")
"""A letter, or a character that may encode letters."""
_NAME = re.compile(r"[\w$@:/\-]{1,40}")

_JOINTS = re.compile(r"[_\-./$]+|(?<=[a-z])(?=[A-Z])")

MIMES = ("mimeType", "mime_type", "media_type", "mimetype", "content_type")
ENCODED, FIELDS = ("blob", "base64", "file_data"), ("blob", "base64", "file_data", "data", "bytes")
"""Fields with the type of a file, fields that hold a file, and fields that may hold one."""

UNREAD = "[unpoison] A file of a type that is not screened was removed."

MIN_WORDS = 4
"""Minimum words of a name that is read as a sentence, such as `ignore_previous_orders_and`."""

LAST_KEYS = 8
"""Repeated sequences of keys that are read once: rows of a table repeat their keys."""

MAX_CHARS, MAX_VALUES, MAX_DEPTH = 2_000_000, 1_000_000, 64
"""Maximum characters, values and nesting levels of one result."""


class TooMuchError(ValueError):
    """A value that cannot be screened whole: it exceeds a limit, or can be read only once; the message says which."""


class Leaf(NamedTuple):
    """A text in a value.

    Attributes:
        path: Keys and positions that lead to it.
        text: Its content.
        start, end: Its position in the JSON text at this path; both 0 if it is the whole text.
        key: Whether it is the key at the end of the path instead of the value.
        name: The key or field that it is the value of; empty in a list.
        file: The file in which it stands.
        whole: Whether it is one of several readings of a text; a finding in one removes all of them.
    """

    path: Path
    text: str
    start: int = 0
    end: int = 0
    key: bool = False
    name: str = ""
    file: File | None = None
    whole: bool = False

    @property
    def kind(self) -> str:
        """The type of its file."""
        return TEXT if self.file is None else self.file.kind

    @property
    def sentence(self) -> bool:
        """Whether it may be read as a sentence, unlike a name of few words."""
        return not self.text.isascii() or len(self.text.split()) >= MIN_WORDS

    @property
    def fixed(self) -> bool:
        """Whether nothing can be cut out of it: a key, or a binary file."""
        return self.key or self.kind != TEXT


def texts_of(value: object, skip: Skip | None = None) -> tuple[list[Leaf], list[Leaf]]:
    """The strings and keys of a value that contain a letter, and the binary files, which are not screened.

    A key stands before its value; those that came in the same order before are left out. Text in a file (`text.files`)
    is a text too.

    Args:
        value: Any.
        skip: Whether to ignore the value of a key or field, given path, holder and key.

    Raises:
        TooMuchError: The value exceeds a limit.

    Complexity: O(n) time for n characters and values.
    """
    binary, size, found = list[Leaf](), 0, list[Leaf]()
    last, keys = deque[str](maxlen=LAST_KEYS), set[int]()
    for path, text, key, file in _strings(value, skip):
        size = _bounded(size + sum(map(len, _said(text, file))))
        inner = None if key or file is not None else _inner_strings(text)
        name = str(path[-1]) if path and not isinstance(path[-1], int) else ""
        for said, span, is_key in [(text, (0, 0), key)] if inner is None else inner:
            if inner is not None and is_key:
                name = said
            if is_key:
                last.append(said)
                if (row := hash(tuple(last))) in keys:
                    continue
                keys.add(row)
            read = words_of(said) if is_key and " " not in said else said
            own = file if inner is None or is_key else file_of(said, None)
            texts = _said(read, own)
            size = _bounded(size + (0 if inner is None else sum(map(len, texts)) - len(read)))
            leaf = Leaf(path, read, *span, is_key, "" if is_key else name, own, len(texts) > 1)
            if leaf.kind != TEXT:
                binary.append(leaf)
            for one in texts:
                if _WORD.search(one) or not one.isascii():
                    found.append(leaf._replace(text=one, file=own if one is not read or (own and own.named) else None))
    return found, binary


def words_of(name: str) -> str:
    """A name as a sentence."""
    return _JOINTS.sub(" ", name)


def _said(text: str, file: File | None) -> list[str]:
    """The texts of a string: itself, and those of the file that it holds."""
    return [text] if file is None else [*([text] if file.plain else []), *file.texts]


def _bounded(size: int) -> int:
    if size > MAX_CHARS:
        raise TooMuchError(f"it has more than {MAX_CHARS:,} characters of text")
    return size


def scalars(value: object) -> Iterator[tuple[Path, str]]:
    """Every string, number and key of a value with its path; of files their texts.

    Raises:
        TooMuchError: The value exceeds a limit.
    """
    size = 0
    for path, text, _, file in _strings(value, None, numbers=True):
        for said in _said(text, file):
            size = _bounded(size + len(said))
            yield path, said


def _said_of(holder: Mapping[Any, Any], key: object) -> str | None:
    """The declared type of the file in a field, "" without one; None if the field need not hold a file."""
    value, kind = holder[key], str(holder.get("type")).removeprefix("input_")
    if key not in FIELDS or not isinstance(value, (str, bytes, bytearray, memoryview)):
        return None
    mime = next(
        (held.partition(";")[0].strip().lower() for name in MIMES if isinstance(held := holder.get(name), str)), None
    )
    if kind in MEDIA:
        return kind
    if key in ENCODED and (mime is not None or "uri" in holder or kind == "file" or len(value) > 2 * MIN_CHARS):
        return mime or ""
    sure = not isinstance(value, str) or (len(value) >= MIN_CHARS and BASE64.fullmatch(value))
    return (mime or ("" if kind == "file" else None)) if sure else None


def put_texts(value: Any, changes: Sequence[tuple[Leaf, str]], depth: int = 0) -> Any:
    """The value with some texts replaced; unchanged parts stay the same objects."""
    if any(len(leaf.path) == depth for leaf, _ in changes):
        if isinstance(value, (bytes, bytearray, memoryview)):
            return type(value)(_rewrite(str(text_of(bytes(value))), changes).encode())
        return _rewrite(value if isinstance(value, str) else str(value), changes)
    by_step: dict[Any, list[tuple[Leaf, str]]] = {}
    for leaf, text in changes:
        by_step.setdefault(leaf.path[depth], []).append((leaf, text))
    children = _children(value) or {}
    new = {step: put_texts(children[step], own, depth + 1) for step, own in by_step.items()}
    if isinstance(value, Mapping):
        return {**value, **new}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [*{**children, **new}.values()]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value.model_copy(update=new) if hasattr(value, "model_copy") else replace(value, **new)


def show_path(path: Path) -> str:
    """A path in JSONPath, such as `$.content[0].text`; keys with other characters become `*`."""
    steps = (step if isinstance(step, int) or _NAME.fullmatch(str(step)) else "*" for step in path)
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _strings(
    value: object, skip: Skip | None, *, numbers: bool = False
) -> Iterator[tuple[Path, str, bool, File | None]]:
    """Every string, the file that it holds, and before it its key, with its path; iterative: nesting may be deep."""
    stack: list[tuple[Path, object, str | None, bool]] = [((), value, None, False)]
    count = 0
    while stack:
        path, here, said, keyed = stack.pop()
        if keyed:
            yield path, str(path[-1]), True, None
        count += 1
        if count > MAX_VALUES:
            raise TooMuchError(f"it has more than {MAX_VALUES:,} values")
        if isinstance(here, str):
            yield path, here, False, file_of(here, said)
        elif isinstance(here, (bytes, bytearray, memoryview)):
            file, text = file_of(bytes(here), said), text_of(bytes(here))
            yield path, text or "", False, None if file is not None and (text,) == file.texts else file
        elif isinstance(here, (Iterator, AsyncIterator)):
            raise TooMuchError(f"there is an iterator at {show_path(path)}, which can be read only once; pass a list")
        elif here is None or isinstance(here, (bool, int, float)):
            if numbers and isinstance(here, (int, float)) and not isinstance(here, bool):
                yield path, str(here).removesuffix(".0"), False, None
        elif isinstance(here, (list, tuple)) and (spell := spelled(here)):
            yield path, spell, False, None
        elif (children := _children(here)) is None:
            yield path, str(here), False, None
        elif len(path) >= MAX_DEPTH:
            raise TooMuchError(f"it has more than {MAX_DEPTH} levels")
        else:
            stack.extend(reversed(list(_members(path, here, children, skip))))


def _members(
    path: Path, holder: object, children: Mapping[Any, Any], skip: Skip | None
) -> Iterator[tuple[Path, object, str | None, bool]]:
    """Each member of a container: its path, itself, the type of file that is said of it, and whether it has a key."""
    named = not isinstance(holder, (list, tuple, set, frozenset))
    for step, held in children.items():
        left_out = named and skip is not None and skip(path, children, step)
        said = _said_of(children, step) if named else None
        yield (*path, step), None if left_out else held, said, isinstance(holder, Mapping)


def _children(value: object) -> Mapping[Any, Any] | None:
    """The members of a value by key, position or field name; None if it is not a container."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return dict(enumerate(value))
    if isinstance(value, type):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if hasattr(value, field.name)}
    named = getattr(type(value), "model_fields", None)  # pydantic's
    if not isinstance(named, dict):
        return None
    return {**{name: getattr(value, name) for name in named}, **(getattr(value, "model_extra", None) or {})}


def _inner_strings(text: str) -> list[tuple[str, tuple[int, int], bool]] | None:
    """The strings of a JSON or JSON Lines text with their position and whether they are keys; None for other texts."""
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
    bare = _STRING.sub(lambda match: " " * len(match[0]), text)
    return found + [(said, match.span(), False) for match in CODES.finditer(bare) if (said := of_codes(match[0]))]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        raise TooMuchError("it holds JSON that is nested too deep") from None
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        return len(lines) > 1 and all(line.lstrip()[:1] in ("{", "[") and _is_json(line) for line in lines)
    return True


def _rewrite(text: str, changes: Sequence[tuple[Leaf, str]]) -> str:
    """The new text, or the JSON text with some strings replaced."""
    if changes[0][0].end == 0:
        return changes[0][1]
    first = {leaf.start: (leaf, new) for leaf, new in reversed(changes)}
    for leaf, new in sorted(first.values(), key=lambda change: -change[0].start):
        written = json.dumps(new, ensure_ascii=text[leaf.start : leaf.end].isascii())
        text = text[: leaf.start] + written + text[leaf.end :]
    return text
