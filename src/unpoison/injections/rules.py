"""The rules of the grammar of prompt injections: `data/injections.yaml` read, and each rule as a bounded pattern.

The file holds 34 languages and explains its syntax. A rule is compiled when a text first holds all its
classes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

__all__ = ["PREFIX", "Language", "Rule", "load_grammar", "plain_word"]

PREFIX = 3
"""Letters by which words with a "*" are indexed; such a word has at least as many."""

MAX_PHRASE_CHARS, MAX_WORD_GAP_CHARS = 80, 31
"""Maximal characters of a phrase of the grammar, and of a word in a gap."""

TURN = 400
"""Characters of the first sentence behind the sign of a chat turn, and behind an opening tag."""

_MARKS = {":": r"(?:[:=]|\s[-\u2013\u2014](?=\s))", ",": ",", "\uff1a": "\uff1a"}
_WORD = re.compile(r"[^\W_]+")
_WORD_GAP = r"(?:[^\w.!?:|\x00]{{1,3}}+[\w']{{1,24}}+){{0,{n}}}?"
_GAP_BEHIND_MARK = r"(?:[\w']{{1,24}}+[^\w.!?:|\x00]{{1,3}}+){{0,{n}}}?"
_APART = r"[^\w.!?:|\x00]{1,3}+"
_APART_OR_COLON = r"[^\w.!?|\x00]{1,3}+"
_BEGUN = r"(?<![^\n.!?>|*\"'-]\s)(?<![^\s.!?>|\"'])"
_GOES_ON = r"(?:[^\w\x00]{{1,6}}+[\w']{{1,24}}+){{0,{n}}}?[^\w\x00]{{1,6}}+"
_LOWER = (
    "a-z\u00df-\u00f6\u00f8-\u00ff\u03ac-\u03ce\u0430-\u045f"
    "\u0105\u0107\u010d\u0119\u011b\u0131\u0142\u0144\u0151\u0159\u015b\u015f\u0161\u016f\u017a\u017c\u017e"
)
_FIXED = rf"(?:\d|(?<=[\"'\u201c\u201e\u00ab\u2018\u300c])\w|(?<![^\W_])(?-i:(?![{_LOWER}])[^\W\d_]))[\w']{{0,24}}+"
_FIXED_INSIDE = _FIXED.replace(r"(?<![^\W_])", "")
_END = r"(?=[^.!?\n\x00]{0,40}(?:[.!?\n\x00|]|$))"
_LAST = r"(?=(?:[^\w.!?\n\x00]{1,2}\w{1,24})?[^\w.!?\n\x00]{0,2}(?:[.!?\n\x00|]|$))"
_ADDRESS = r"(?:https?://|[\w.+-]{1,40}@[\w-]{1,40}\.)\w"
_PLACE = r"(?:[?&/#=][\[{<%$][\w .-]{1,40}[\]}>%]?|=(?:[A-Z][A-Z_]{2,40}(?![a-z])|(?=[\s)\"'>]|$)))"
_LINK = r"https?://[^\s)\x00]{1,300}?" + _PLACE
_TOKENS = {"LINK": _LINK, "FIXED": _FIXED, "ADDRESS": _ADDRESS, "END": _END, "LAST": _LAST}
_IMAGE = r"!\[[^\]\n\x00]{0,80}\]\(\s{0,2}" + _LINK


@dataclass(frozen=True)
class Rule:
    """A row of parts of one language.

    Attributes:
        name: Of the group of rules.
        parts: As written in the grammar, without where it begins.
        language: Whose words they are.
        begins: "" anywhere, "^" at the start of a clause, "^^" at the start of a line or sentence.
    """

    name: str
    parts: tuple[str, ...]
    language: Language
    begins: str

    @cached_property
    def needed(self) -> frozenset[str]:
        """Classes and words of which a text must hold one."""
        return frozenset(p for p in self.parts if p[0] not in "./'!" and p[-1] != "?" and p not in _TOKENS)

    @cached_property
    def reaches(self) -> tuple[tuple[str, int], ...]:
        """Each class after the first, with the maximal distance in characters from the class before it."""
        found, reach = list[tuple[str, int]](), 0
        for part in self.parts:
            if part in self.needed:
                found.append((part, reach))
                reach = MAX_PHRASE_CHARS
            elif part[0] in "./":
                reach += MAX_WORD_GAP_CHARS * (int(part.lstrip("./") or 3) + 1)
            elif part[0] != "!":
                reach += MAX_PHRASE_CHARS
        return tuple(found[1:])

    @cached_property
    def is_cased(self) -> bool:
        """Whether it is case-sensitive."""
        return "FIXED" in self.parts

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("".join(_joined(self.parts, self.language)), re.IGNORECASE if self.is_cased else 0)


@dataclass
class Language:
    """Words and rules of one language.

    Attributes:
        words: By class, with "*" and "_" as in the grammar.
        negations: Words that turn an order into its opposite.
        unspaced: Whether words are not separated by spaces.
        rules: In the grammar's order.
    """

    name: str
    words: dict[str, tuple[str, ...]]
    negations: tuple[str, ...]
    unspaced: bool
    rules: list[Rule] = field(default_factory=list)

    def classes(self, text: str) -> list[tuple[tuple[str, ...], list[int]]]:
        """Of a language without spaces: each word that a text contains, its class, and where it begins."""
        return [
            ((name,), [match.start() for match in re.finditer(re.escape(word), text)])
            for name in {name for rule in self.rules for name in rule.needed}
            for word in map(plain_word, self.words.get(name, (name,)))
            if word in text
        ]

    @cached_property
    def negation(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """A negation right before an order, and inside of one."""
        words = "|".join(map(re.escape, map(plain_word, self.negations))) or r"(?!)"
        if self.unspaced:
            return re.compile(rf"(?:{words})$"), re.compile(rf"(?:{words})")
        return re.compile(rf"(?<!\w)(?:{words})(?:[^\w.!?:;]{{1,2}}\w{{1,12}})?[^\w.!?:;]{{1,2}}$"), re.compile(
            rf"(?<!\w)(?:{words})(?!\w)"
        )


class FirstWords(NamedTuple):
    """How the phrases of every class begin, in languages with spaces between words; a class has its language's number.

    Attributes:
        words: By a word, the classes with a phrase of that word alone.
        pairs: By two words in a row, the classes with a phrase that begins with them.
        stems: By the first letters of a word with a "*", that word and its class.
    """

    words: dict[str, list[tuple[int, str]]]
    pairs: dict[tuple[str, str], list[tuple[int, str]]]
    stems: dict[str, list[tuple[str, tuple[int, str]]]]


class Grammar(NamedTuple):
    """All languages, and the signs of chat templates, tags and links."""

    languages: tuple[Language, ...]
    first: FirstWords
    marks: tuple[str, ...]
    signs: tuple[tuple[str, re.Pattern[str]], ...]


@cache
def load_grammar() -> Grammar:
    """The grammar of this package, read once."""
    text = (files("unpoison") / "data" / "injections.yaml").read_text(encoding="utf-8")
    read: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    languages = []
    for name, own in read["languages"].items():
        words = {kind: tuple(_with_slips(listed.split())) for kind, listed in own["words"].items()}
        language = Language(name, words, tuple(str(own.get("not", "")).split()), bool(own.get("unspaced")))
        shared = {} if language.unspaced or name == "English" else read["shared"]
        for group, parts in (*_rows(own.get("rules", {})), *(row for row in _rows(shared) if _has_all(row[1], words))):
            begins = parts.pop(0) if parts[0] in ("^", "^^") else ""
            language.rules.append(Rule(group, tuple(parts), language, begins))
        languages.append(language)
    signs = read["signs"]
    roles = rf"{_any(signs['tokens'])}\s?{_any(signs['roles'])}(?:<\|\w{{1,24}}\|>)?"
    heading = _any(signs["headings"])
    marks = rf"{_BEGUN}(?:{_any(signs['alone'])}|###\s?{heading}:)|###\s?[(\[<]{heading}[)\]>]:?"
    alone = rf"(?:{marks})(?=\s{{0,2}}\w)"
    secret = _any(signs["secrets"]).replace("_", "[ _-]?")
    patterns = (
        ("roles", rf"(?:{roles}|{alone})(?:\s{{0,2}}[^\n.!?\x00]{{1,{TURN}}})?"),
        ("addressed to a model", rf"{_any(signs['tags'])}[^<\x00]{{0,{TURN}}}?(?<!\w){secret}(?!\w)"),
        ("leaks", _IMAGE),
    )
    return Grammar(
        tuple(languages), _index(languages), ("<", "[", "#"), tuple((name, re.compile(find)) for name, find in patterns)
    )


def _index(languages: Sequence[Language]) -> FirstWords:
    index = FirstWords({}, {}, {})
    for number, language in enumerate(languages):
        needed = () if language.unspaced else {name for rule in language.rules for name in rule.needed}
        for name in needed:
            key = number, name
            for phrase in language.words.get(name, (name,)):
                first, *more = _WORD.findall(plain_word(phrase))
                if more and not (phrase.endswith("*") and len(more) == 1):
                    index.pairs.setdefault((first, more[0]), []).append(key)
                elif phrase.endswith("*"):
                    index.stems.setdefault(first[:PREFIX], []).append((first, key))
                else:
                    index.words.setdefault(first, []).append(key)
    return index


def _rows(rules: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    """The parts of each rule, with the name of its group."""
    return ((group, row.split()) for group, rows in rules.items() for row in rows)


def _with_slips(words: Sequence[str]) -> Iterator[str]:
    """The words; for those with "~" also with one letter left out, doubled or swapped, or all apart."""
    for word in words:
        plain = word.removeprefix("~")
        yield plain
        if word != plain:
            yield "_".join(plain.replace("_", ""))
        for i in range(1, len(plain)) if word != plain else ():
            yield from {plain[:i] + plain[i + 1 :], plain[:i] + plain[i - 1] + plain[i:]}
            if plain[i : i + 2] != plain[i : i + 2][::-1]:
                yield plain[:i] + plain[i + 1 : i + 2] + plain[i] + plain[i + 2 :]


def _has_all(parts: Sequence[str], words: Mapping[str, Sequence[str]]) -> bool:
    """Whether a language has every class that a shared rule names."""
    return all(part.strip("!?") in words for part in parts if part[0] not in "^./'" and part not in _TOKENS)


def _joined(parts: Sequence[str], language: Language) -> Iterator[str]:
    """The pieces of a rule's pattern."""
    apart = r"[^.!?\n\x00\u3002\uff01\uff1f\u0964]{0,2}?" if language.unspaced else _APART
    separate, first = False, True
    for part in parts:
        between = apart if separate else ""
        if part.startswith("/"):
            yield r"[^\x00]{0,8}?" if language.unspaced else _GOES_ON.format(n=int(part[1:] or 3))
            separate = False
        elif part.startswith("..."):
            count = int(part[3:])
            unspaced = rf"[^.!?\n\x00\u3002\uff01\uff1f\u0964]{{0,{count}}}?"
            gap = _WORD_GAP if separate else _GAP_BEHIND_MARK
            yield unspaced if language.unspaced else gap.format(n=count)
            separate = separate and not language.unspaced
        elif part.startswith("!"):
            name, _, words_after = part[1:].partition("/")
            gap = (_WORD_GAP if separate else _GAP_BEHIND_MARK).format(n=int(words_after or 0))
            yield f"(?!{'' if language.unspaced else gap}{between}{_class(name, language)})"
        elif part.startswith("'"):
            literal = part.strip("'?").replace("_", " ")
            mark = _MARKS.get(literal)
            found = rf"\s{{0,2}}{mark}\s{{0,2}}" if mark else between + re.escape(literal)
            if part.endswith("?"):
                yield f"(?:{found}|{between})" if mark else f"(?:{found})?"
                separate = separate and not mark
            else:
                yield found
                separate = not mark
        elif part.endswith("?"):
            behind = apart if language.unspaced else _APART_OR_COLON
            yield between + rf"(?:{_class(part[:-1], language)}{behind})?"
            separate = False
        elif part in ("END", "LAST"):
            yield _TOKENS[part]
        else:
            words = _TOKENS[part] if part in _TOKENS else _class(part, language)
            if part == "FIXED" and language.unspaced:
                words = _FIXED_INSIDE
            if part == "FIXED" and "number" in language.words:
                words = f"(?:{words}|{_class('number', language)})"
            yield between + (f"(?P<first>{words})" if first else words)
            separate, first = True, False


def _class(name: str, language: Language) -> str:
    """A word of a class, or the word itself."""
    return "(?:" + "|".join(_form(word, language) for word in language.words.get(name, (name,))) + ")"


def _form(word: str, language: Language) -> str:
    plain = r"[^\w.!?|]{1,3}".join(map(re.escape, word.removesuffix("*").split("_")))
    if language.unspaced:
        return plain.replace(r"[^\w.!?|]{1,3}", r"\s?")
    start = r"(?<![^\W_])"
    return rf"{start}{plain}\w{{0,12}}+" if word.endswith("*") else rf"{start}{plain}(?!\w)"


def plain_word(word: str) -> str:
    """A word of the grammar as it stands in a text."""
    return word.removesuffix("*").replace("_", " ")


def _any(words: Sequence[str]) -> str:
    parts = "|".join("[ _-]".join(map(re.escape, word.split(" "))) for word in words)
    return f"(?:{parts})"
