"""Every regular expression of the package on 8,192 hostile characters: none may take long, for `re` holds the GIL.

The texts are made for each pattern from its own parse: a way in, then one of its repetitions over and over, then a
character that the rest refuses. That is how a text is made on which a pattern backtracks.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]  # the only parse there is
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import unpoison
from unpoison.agents.memory import claim_patterns
from unpoison.text.questions import _forms
from unpoison.text.sentences import _WITHIN
from unpoison.text.value_reader import _SHAPES

ROOT = Path(unpoison.__file__).parents[1]
METHODS = ("compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub")
SIZES = (24, 8192)
"""Characters: exponential time shows at the first, quadratic time at the second."""

SECONDS = 0.2
REFUSED = ("", "\x00")

MADE_WHEN_RUN = {
    "unpoison_lab/evaluation/llm_judge.py": "an escaped name, then a bounded repetition",
    "unpoison_lab/attacks/claims.py": "an escaped answer",
    "unpoison/text/values.py": "rows of one table, each repetition bounded; a megabyte of digits: tests/text",
    "unpoison/defenses/guard/statements.py": "an escaped answer",
    "unpoison/text/questions.py": "rows of one table of words, tried at the beginning of a word only",
    "unpoison/text/languages.py": "bounded numbers, and our own words, escaped",
    "unpoison/text/units.py": "our own words in a word of at most 60 characters",
    "unpoison/text/sentences.py": "rows of a table, which are tried below",
    "unpoison/text/value_reader.py": "rows of a table, which are tried below",
    "unpoison/agents/memory.py": "rows of a table, which are tried below",
    "unpoison/injections/signs.py": "our own words, each repetition bounded; runs of them are tried beside it",
    "unpoison/text/invisible.py": "classes of marks; a megabyte of each is tried in kernels/test_canonical.py",
    "unpoison/text/replies.py": "our own words, each repetition bounded; hostile replies: tests/text/test_replies.py",
    "unpoison/sources/policy.py": "escaped parts of a policy's own pattern, each in an atomic group",
    "unpoison_lab/redteam/http_client.py": "escaped values, joined",
    "unpoison/models/transformers.py": "names, and escaped marks, joined",
}
"""Files with patterns that only exist while running: literal texts, with nothing unbounded around them."""


@cache
def texts() -> dict[Path, str]:
    """Every file of the package, read once."""
    return {path: path.read_text() for path in sorted(ROOT.rglob("*.py"))}


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for path, text in texts().items():
        yield path, ast.parse(text)


def calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            value = node.func.value
            if isinstance(value, ast.Name) and value.id == "re":
                yield node


def patterns() -> Iterator[Any]:
    """(pattern, the method it is tried by) of all of the package, each once."""
    seen = set[tuple[Any, int, str]]()
    for path, tree in sources():
        place = str(path.relative_to(ROOT))
        for call in calls(tree):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            expression = ast.unparse(call.args[0])
            try:
                known = eval(expression, dict(vars(import_module(module))))  # noqa: S307  our own source
            except NameError:
                assert place in MADE_WHEN_RUN, f"{place}:{call.lineno}: give {expression} a test, or compile it once"
                continue
            except ImportError:
                continue
            named = [text for text in map(ast.unparse, call.args[1:]) if re.match(r"re\.[A-Z]", text)]
            pattern = re.compile(known, eval(named[0], {"re": re}) if named else 0)  # noqa: S307
            method = _method(tree, call, path)
            if (pattern.pattern, pattern.flags, method) not in seen:
                seen.add((pattern.pattern, pattern.flags, method))
                yield pytest.param(pattern, method, id=f"{place}:{call.lineno}")


def _method(tree: ast.Module, call: ast.Call, path: Path) -> str:
    """`match` or `fullmatch` where a pattern is used by these alone; else `sub`, which searches from every place."""
    used = {call.func.attr} - {"compile"}  # type: ignore[attr-defined]
    if not used:
        assigned = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and node.value is call)
        name = next((ast.unparse(node.targets[0]) for node in assigned), "")
        public = not name.startswith("_") and "." not in name
        places = texts().values() if public else [texts()[path]]
        used = {m for text in places for m in re.findall(rf"(?<!\w){re.escape(name)}\.(\w+)\(", text)} & set(METHODS)
    return min(used) if used and used <= {"match", "fullmatch"} else "sub"


def example(parsed: Any, alternative: int = 0) -> str:
    """A text that the parse matches, or nearly: the shortest, by one of the alternatives."""
    text_made = ""
    for kind, value in parsed:
        if kind is kinds.LITERAL:
            text_made += chr(value)
        elif kind is kinds.NOT_LITERAL:
            text_made += "a" if value != ord("a") else "b"
        elif kind is kinds.ANY:
            text_made += "a"
        elif kind is kinds.IN:
            text_made += member(value)
        elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
            low, _, inner = value
            text_made += example(inner, alternative) * low
        elif kind is kinds.BRANCH:
            text_made += example(value[1][alternative % len(value[1])], alternative)
        elif kind is kinds.SUBPATTERN:
            text_made += example(value[-1], alternative)
    return text_made


def member(items: Any) -> str:
    """A character of a set."""
    pattern = parser.SubPattern(parser.State(), [(kinds.IN, items)])
    one = re._compiler.compile(pattern)  # type: ignore[attr-defined]
    usual = chain(b"a A1.,:-'?\n<[", range(1, 0x3100), (0x4E00, 0xD800), range(0x3100, 0x110000))
    return next(c for c in map(chr, usual) if one.fullmatch(c))


def members(items: Any) -> list[str]:
    """Characters of a set that other parts of a pattern may match too."""
    pattern = parser.SubPattern(parser.State(), [(kinds.IN, items)])
    one = re._compiler.compile(pattern)  # type: ignore[attr-defined]
    return [c for c in " aA1.,:-'" if one.fullmatch(c)] or [member(items)]


def pumps(parsed: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(a way in, what to repeat there) of every repetition."""
    for kind, value in parsed:
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
            _, high, inner = value
            if high > 32:
                simple = inner[0][1] if len(inner) == 1 and inner[0][0] is kinds.IN else None
                if len(inner) == 1 and inner[0][0] in (kinds.ANY, kinds.NOT_LITERAL):
                    yield from ((before, c) for c in (" ", "a", ",", before or "b"))
                for text in members(simple) if simple else [example(inner), example(inner, 1)]:
                    yield from ((before, text), (f"{before}x", text), (before, before + text))
            yield from pumps(inner, before)
        elif kind is kinds.BRANCH:
            for alternative in value[1]:
                yield from pumps(alternative, before)
        elif kind is kinds.SUBPATTERN:
            yield from pumps(value[-1], before)
        before += example([(kind, value)])


TABLES = (*_WITHIN.values(), *_SHAPES.values(), *_forms("polar").values(), *_forms("foreign").values())
PATTERNS = [
    *patterns(),
    *((pattern, "search") for pattern in claim_patterns().values()),
    *((pattern, "sub") for pattern in TABLES),
]


def seconds(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    """The processor's time that a pattern takes for a text."""
    began = time.thread_time()
    if method == "sub":
        pattern.sub(text[:0], text)
    else:
        getattr(pattern, method)(text)
    return time.thread_time() - began


@pytest.mark.parametrize(("pattern", "method"), PATTERNS)
def test_no_pattern_is_slow_on_hostile_text(pattern: re.Pattern[Any], method: str) -> None:
    ways = dict.fromkeys(pumps(parser.parse(pattern.pattern, pattern.flags)))
    for (way_in, pump), refused, size in product(ways, REFUSED, SIZES):
        text: Any = (way_in + pump * (size // max(1, len(pump))))[:size] + refused
        text = text.encode() if isinstance(pattern.pattern, bytes) else text
        took = seconds(pattern, method, text)
        if took > SECONDS:  # once more, for a busy machine
            took = seconds(pattern, method, text)
        assert took < SECONDS, f"{took:.2f} s for {way_in!r} + {pump!r} * n + {refused!r}, {size:,} characters"


def test_every_pattern_is_found() -> None:
    assert len(PATTERNS) > 50
