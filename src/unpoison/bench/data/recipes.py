"""An evaluation file as a recipe: its rows without the texts, and where each text stands in public files.

A recipe holds no passage and no question. Its rows have `null` where a text belongs; every text is a list of parts,
each a stretch of one string of a source file, with at most a few characters of ours between them. What is rebuilt is
compared with the hash of the file that the documented tables were measured on.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unpoison.bench.data.readers import FORMS
from unpoison.errors import InputError

__all__ = [
    "MAX_LITERAL",
    "MAX_RUN",
    "Part",
    "Recipe",
    "SourceFile",
    "decode",
    "derive_ids",
    "encode",
    "longest_run",
    "rebuild",
]

MAX_LITERAL = 24
"""Characters that a recipe may hold of a text itself: joints between stretches, and answers such as "yes"."""

MAX_RUN = 96
"""Characters of literals that stand behind each other: a row of figures or of keys, never a sentence."""

Strings = Sequence[Sequence[str]]
"""The strings of each source of a recipe, in the recipe's order of sources."""


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """One file of a public repository at a pinned commit.

    Attributes:
        repository: `owner/name`.
        commit: 40 hex digits.
        path: Its path there.
        bytes, sha256: Of its content; the hash in 64 hex digits.
    """

    repository: str
    commit: str
    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a source's string, or a few characters of ours.

    Attributes:
        source: Which of the recipe's sources, or -1 for a literal.
        number: Which of its strings, or which literal.
        form: A key of `FORMS`, done to the string before it is cut.
        start, stop: The stretch; `stop` 0 is the string's end.
    """

    source: int
    number: int
    form: str = ""
    start: int = 0
    stop: int = 0


@dataclass(frozen=True)
class Recipe:
    """What a recipe's file holds.

    Attributes:
        sources: The files that hold the texts.
        rows: The rows with None in the place of every text, in the file's order.
        texts: For each None, in order, which text of `parts` stands there.
        parts: What each text is made of.
        literals: Characters of ours, at most `MAX_LITERAL` each.
        ids: How ids are made: `{"prefix", "of", "length"}`, the SHA-256 of the fields `of`; None where rows have them.
    """

    sources: Sequence[SourceFile]
    rows: Sequence[Any]
    texts: Sequence[int]
    parts: Sequence[Sequence[Part]]
    literals: Sequence[str]
    ids: Mapping[str, Any] | None = None


def longest_run(recipe: Recipe) -> int:
    """The most characters of literals that stand behind each other in a text."""
    longest = 0
    for text in recipe.parts:
        run = 0
        for part in text:
            run = run + len(recipe.literals[part.number]) if part.source < 0 else 0
            longest = max(longest, run)
    return longest


def rebuild(recipe: Recipe, strings: Strings) -> Iterator[str]:
    """The lines of the evaluation file, without their ends.

    Raises:
        InputError: The sources do not have a string that the recipe names.
    """
    numbers = iter(recipe.texts)
    made: dict[int, str] = {}

    def text() -> str:
        number = next(numbers)
        if number not in made:
            made[number] = "".join(_part(part, recipe, strings) for part in recipe.parts[number])
        return made[number]

    for row in recipe.rows:
        yield json.dumps(derive_ids(_filled(row, text), recipe.ids), ensure_ascii=False)


def _filled(value: Any, text: Any) -> Any:
    if value is None:
        return text()
    if isinstance(value, dict):
        return {key: _filled(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, text) for inner in value]
    return value


def derive_ids(row: dict[str, Any], rule: Mapping[str, Any] | None) -> dict[str, Any]:
    """The row with the ids that follow from others: its own by the rule, and `ID#0`, `ID#1`, ... of its passages.

    An id that follows is "" in a recipe.
    """
    if row.get("id") == "" and rule is not None:
        digest = hashlib.sha256("".join(row[field] for field in rule["of"]).encode()).hexdigest()
        row["id"] = f"{rule['prefix']}{digest[: rule['length']]}"
    for position, passage in enumerate(row.get("passages", ())):
        if passage.get("id") == "":
            passage["id"] = f"{row['id']}#{position}"
    return row


def _part(part: Part, recipe: Recipe, strings: Strings) -> str:
    try:
        if part.source < 0:
            return recipe.literals[part.number]
        text = FORMS[part.form](strings[part.source][part.number])
    except (IndexError, KeyError):
        raise InputError("a source file has fewer strings than the recipe names; get it again") from None
    return text[part.start : part.stop or None]


def encode(recipe: Recipe) -> bytes:
    """A recipe as packed JSON, the same bytes for the same recipe: numbers as differences, which are small."""
    parts = [part for text in recipe.parts for part in text]
    commits = {source.repository: source.commit for source in recipe.sources}
    content = {
        "commits": commits,
        "files": [
            [list(commits).index(file.repository), file.path, file.bytes, file.sha256] for file in recipe.sources
        ],
        "rows": recipe.rows,
        "ids": recipe.ids,
        "literals": recipe.literals,
        "texts": _backward(recipe.texts),
        "lengths": [len(text) for text in recipe.parts],
        "sources": _differences(part.source for part in parts),
        "numbers": _differences(part.number for part in parts),
        "forms": [list(FORMS).index(part.form) for part in parts],
        "starts": [part.start for part in parts],
        "stops": [part.stop and part.stop - part.start for part in parts],
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return lzma.compress(text.encode(), preset=6 | lzma.PRESET_EXTREME)


def decode(data: bytes) -> Recipe:
    """The recipe that `encode` packed; our own file, so what is wrong with it is a defect."""
    content = json.loads(lzma.decompress(data))
    forms = list(FORMS)
    columns = zip(
        _sums(content["sources"]),
        _sums(content["numbers"]),
        content["forms"],
        content["starts"],
        content["stops"],
        strict=True,
    )
    parts = (
        Part(source, number, forms[form], start, length and start + length)
        for source, number, form, start, length in columns
    )
    texts = [tuple(next(parts) for _ in range(length)) for length in content["lengths"]]
    commits = list(content["commits"].items())
    sources = [SourceFile(*commits[number], *rest) for number, *rest in content["files"]]
    return Recipe(sources, content["rows"], _forward(content["texts"]), texts, content["literals"], content["ids"])


def _backward(texts: Iterable[int]) -> list[int]:
    """0 for the next text that was not met before, else how many texts back it is."""
    steps, met = [], 0
    for number in texts:
        steps.append(0 if number == met else met - number)
        met = max(met, number + 1)
    return steps


def _forward(steps: Iterable[int]) -> list[int]:
    texts, met = [], 0
    for step in steps:
        texts.append(met - step)
        met = max(met, texts[-1] + 1)
    return texts


def _differences(numbers: Iterable[int]) -> list[int]:
    last, differences = 0, []
    for number in numbers:
        differences.append(number - last)
        last = number
    return differences


def _sums(differences: Iterable[int]) -> list[int]:
    total, numbers = 0, []
    for difference in differences:
        total += difference
        numbers.append(total)
    return numbers
