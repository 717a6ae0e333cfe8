"""The few files of a repository that hold some texts, of the thousands that it has; for `build_data_recipes.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from unpoison.bench.data.git_mirrors import Mirror
from unpoison.bench.data.readers import strings
from unpoison.errors import InputError

LARGEST = 2_500_000
"""Bytes of a file that is looked into."""

SUFFIXES = (
    ".md", ".mdx", ".txt", ".json", ".jsonl", ".yaml", ".yml", ".py", ".ts", ".tsx", ".js", ".jsx", ".csv", ".ftl",
    ".properties", ".html", ".mdc", ".rst", ".ipynb", ".toml", ".prompt", ".jinja", ".jinja2", ".j2", ".po",
    ".cursorrules", ".tsv", ".vue", ".njk", ".erb", ".liquid", ".xml", ".cfg", ".patch",
)  # fmt: skip

LINE = 20
"""Characters of a line that tells its file."""

ANCHOR = re.compile(r"[A-Za-z0-9 ,.:$/_()-]{16}")


def narrow(mirror: Mirror, commit: str, texts: Sequence[str]) -> list[str]:
    """Paths whose files together hold every line of the texts, or else stretches of what is left.

    Lines first, by a greedy cover; then, for what is left of the texts, short stretches, the smallest files first.
    """
    files = sorted((len(content), path, content) for path, content in _files(mirror, commit))
    by_line: dict[str, set[int]] = {}
    for number, text in enumerate(texts):
        for line in _lines(text) or {_one(text)}:
            by_line.setdefault(line, set()).add(number)
    found = {path: _all_lines(content, path) & by_line.keys() for _, path, content in files}
    left, chosen = set(by_line), list[str]()
    while left:
        path = max(found, key=lambda path: len(found[path] & left))
        if not found[path] & left:
            break
        chosen.append(path)
        left -= found[path]
    anchors = {anchor for line in left for number in by_line[line] for anchor in ANCHOR.findall(texts[number])}
    for path in chosen:
        anchors = _without(anchors, next(content for _, other, content in files if other == path), path)
    for _, path, content in files:
        if anchors and path not in chosen:
            rest = _without(anchors, content, path)
            if len(rest) < len(anchors):
                chosen.append(path)
            anchors = rest
    return chosen


def _files(mirror: Mirror, commit: str) -> Iterator[tuple[str, bytes]]:
    for path, size in mirror.sizes(commit):
        if size <= LARGEST and (path.endswith(SUFFIXES) or "." not in path.rpartition("/")[2]):
            content = mirror.read(commit, path)
            if content is not None:
                yield path, content


def _one(text: str) -> str:
    return " ".join(text.split())


def _lines(text: str) -> set[str]:
    return {line for line in map(_one, text.split("\n")) if len(line) >= LINE}


def _strings(content: bytes, path: str) -> list[str]:
    try:
        return strings(content, path)
    except InputError:
        return [content.decode("utf-8", "replace")]


def _all_lines(content: bytes, path: str) -> set[str]:
    return {line for text in _strings(content, path) for line in (_lines(text) if len(text) >= LINE else {_one(text)})}


def _without(anchors: set[str], content: bytes, path: str) -> set[str]:
    text = "\n".join(_strings(content, path))
    return {anchor for anchor in anchors if anchor not in text}
