"""Reference documentation: what Python's standard library and installed packages say of their functions.

Free to use (PSF, BSD, Apache and MIT licences), and on every machine that can run the fits: no text of it is kept.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

__all__ = ["REFERENCE", "REFERENCE_ASIDE", "SHORTEST_PARAGRAPH", "Paragraph", "documentation_of", "questions"]

REFERENCE = (*sorted(sys.stdlib_module_names), "numpy", "scipy", "sklearn", "torch", "transformers",
             "sentence_transformers")  # fmt: skip
REFERENCE_ASIDE = ("openai", "anthropic", "mcp", "haystack", "langchain_core", "llama_index")
"""Packages that are only measured."""

SHARE = 0.25
"""A quarter of the modules is enough."""

SHORTEST_PARAGRAPH = 80
"""Characters."""

TESTS = frozenset({"test", "tests", "testing", "idlelib"})
"""Folders of modules that nobody asks about."""

ASKED = (r"returns? (?P<what>[a-z][^.,:;()`]{10,70})\b", "what returns {what}"), (
    r"(?P<what>(?:compute|create|convert|check|read|write|parse|open|set|get|find|apply|load|run|remove|add|send|wait)"
    r"s? [a-z][^.,:;()`]{10,70})\b", "how to {what}")  # fmt: skip
"""How first sentences of docstrings begin, and what somebody asks who wants what they promise."""


class Paragraph(NamedTuple):
    """A part of a docstring.

    Attributes:
        name: What is documented: a module, class or function.
        text: The part.
        first: Whether it is the first of its docstring.
    """

    name: str
    text: str
    first: bool


@cache
def documentation_of(package: str) -> tuple[Paragraph, ...]:
    """The paragraphs of a quarter of a package's modules; says so where it is not installed."""
    spec = find_spec(package)
    if spec is None:
        if package not in sys.stdlib_module_names:  # some of these are there on other systems only
            print(f"{package} is not installed: its docstrings are left out")
        return ()
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    files = sorted({file for place in places for file in place.rglob("*.py")}) or [Path(spec.origin or "")]
    files = [f for f in files if not TESTS.intersection(part.lower() for part in f.parts)]
    some = [f for f in files if f.suffix == ".py" and _share(f"{package} {f.stem} {f.parent.stem}") < SHARE]
    return tuple(dict.fromkeys(part for file in some for part in _paragraphs(file)))


def questions(paragraphs: tuple[Paragraph, ...]) -> Iterator[str]:
    """What the first sentences of docstrings answer."""
    for part in paragraphs:
        sentence = part.text.split(". ")[0].lower() if part.first else ""
        for pattern, wording in ASKED:
            if asked := re.match(pattern, " ".join(sentence.split())):
                yield wording.format(what=re.sub(r"^(\w+?)s\b", r"\1", asked["what"]))
                break


def _paragraphs(file: Path) -> Iterator[Paragraph]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except (SyntaxError, ValueError):
        return  # files that test the parser
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = file.stem if isinstance(node, ast.Module) else node.name
            for i, part in enumerate((ast.get_docstring(node) or "").split("\n\n")):
                if len(part) > SHORTEST_PARAGRAPH:
                    yield Paragraph(name, part, i == 0)


def _share(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") / 2**64
