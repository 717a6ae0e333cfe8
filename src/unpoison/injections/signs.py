"""Certain signs of a prompt injection: chat templates, and instructions to ignore the previous ones.

`data/injections.yaml` holds the words of 34 languages. It lists only signs that are certain in any text of that
language; everything else is left to the transformer. Every gap is bounded, so matching takes time linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from unpoison.text.alignment import Region
from unpoison.utils.assets import read_data

__all__ = ["find_signs"]

TURN = 400
"""Maximum characters after the sign of a chat turn, and after an opening tag, that are part of the match."""

BEFORE = 30
"""Characters read before a match, to see whether it begins a clause and whether it is negated."""

PREFIX = 3
"""Letters by which stems (words with a "*") are indexed; a stem has at least as many."""

LEADS: str = read_data("orders.json")["leads"]
"""Words after which an imperative may begin inside a sentence, as a pattern."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0900-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CLAUSE = re.compile(
    r"(?:^\s?|[\n.!?>|\"\u201c`(\[{*#~=_\u2022\u2026-]\s?|(?:^|[\s(])'"
    r"|[\u3002\uff01\uff1f\uff0c\u300c\u3001\u8bf7\u8acb])$"
    rf"|[,;:] {{1,3}}$|[,;:(\u2018\u2014\u2013]$|(?<!\w)(?:{LEADS})[^\w.]{{1,3}}$"
)
_BEGUN = r"(?<![^\n.!?>|*\"'-]\s)(?<![^\s.!?>|\"'])"
_APART = r"[^\w.!?|]{1,3}+"
_OPENED = r"(?:[\[{<$]|%(?:24|3[cC]|5[bB]|7[bB]|(?=[A-Za-z_]{3,40}%)))"
"""What opens a placeholder, also escaped; other escapes, such as "%40", are plain characters."""
_PLACE = rf"(?:[?&/#=]{_OPENED}[\w .-]{{1,40}}[\]}}>%]?|=(?:[A-Z][A-Z_]{{2,40}}(?![a-z])|(?=[\s)\"'>]|$)))"
_IMAGE = re.compile(r"!\[[^\]\n]{0,80}\]\(\s{0,2}https?://[^\s)]{1,300}?" + _PLACE)
"""An image whose URL has a placeholder: loading it sends the filled-in text to its host."""


class Language(NamedTuple):
    """The words of one language.

    Attributes:
        classes: Words for ignoring (`void`), for previous (`before`) and for instructions (`rules`); "*" ends a stem.
        unspaced: Whether words are not separated by spaces.
        override: The pattern "ignore previous instructions".
        negation: Patterns of a negation: directly before the match, and inside it.
    """

    classes: Mapping[str, Sequence[str]]
    unspaced: bool
    override: str
    negation: tuple[str, str]


class Grammar(NamedTuple):
    """All languages, and the patterns of chat templates and tags."""

    languages: tuple[Language, ...]
    words: Mapping[str, frozenset[tuple[int, str]]]
    stems: Mapping[str, Sequence[tuple[str, tuple[int, str]]]]
    templates: tuple[re.Pattern[str], ...]
    tries: re.Pattern[str]


def find_signs(text: str) -> list[Region]:
    """The regions of certain signs in a text, ascending. O(n) time for n characters."""
    plain = text.replace("\u0130", "i").replace("\u2019", "'")
    lowered = plain.lower()
    if len(lowered) != len(text):  # a letter whose lower case is two characters stays as it is
        lowered = "".join(c if len(c.lower()) != 1 else c.lower() for c in plain)
    found = list(_overrides(lowered))
    if any(word in lowered for word in PREFILTER):
        tried = load_grammar().tries.finditer(lowered)
        found += [one.span() for one in tried if _CLAUSE.search(lowered[max(0, one.start() - BEFORE) : one.start()])]
    if any(mark in lowered for mark in "<[#"):
        found += [match.span() for pattern in load_grammar().templates for match in pattern.finditer(lowered)]
        found += [match.span() for match in _IMAGE.finditer(text)]
    return sorted(found)


def _overrides(text: str) -> Iterator[Region]:
    for language in _likely(text):
        denied, undone = map(_compiled, language.negation)
        for match in _compiled(language.override).finditer(text):
            start = match.start()
            before, rest = text[max(0, start - BEFORE) : start], match[0]
            begins = match["last"] is not None or _CLAUSE.search(before)
            for word in language.classes["void"]:  # some of these hold a "not" of their own
                rest = rest.replace(word.replace("_", " ").removesuffix("*"), "")
            if begins and not (denied.search(before) or undone.search(rest)):
                yield match.span()


def _likely(text: str) -> list[Language]:
    """The languages of which a text has a word of each class."""
    grammar = load_grammar()
    present = set[tuple[int, str]]().union(*map(_classes_of, {word[:40] for word in _WORD.findall(text)}))
    if _UNSPACED.search(text):
        classes = ((n, *own) for n, one in enumerate(grammar.languages) if one.unspaced for own in one.classes.items())
        present |= {(n, name) for n, name, words in classes if any(word.replace("_", " ") in text for word in words)}
    found = Counter(n for n, _ in present)
    return [grammar.languages[n] for n, count in sorted(found.items()) if count == len(CLASSES)]


@lru_cache(maxsize=20_000)
def _classes_of(word: str) -> frozenset[tuple[int, str]]:
    """The languages and classes with a phrase that begins with this word."""
    grammar = load_grammar()
    stems = {key for stem, key in grammar.stems.get(word[:PREFIX], ()) if word.startswith(stem)}
    return grammar.words.get(word, frozenset()) | stems


PREFILTER = ("system ", "ignor", "disregard", "forget", "you are now", "new instruction", "new task", "asked",
             "assistant", "vergiss", "flag", "report", "omit", "skip", "before ", ".env", ".ssh", ".aws", "id_rsa",
             ".netrc", ".npmrc")  # fmt: skip
"""Prefilter: each pattern in `tries` contains one of these."""

CLASSES = ("void", "before", "rules")


@cache
def load_grammar() -> Grammar:
    """The compiled grammar, cached."""
    read = read_data("injections.yaml")
    languages = tuple(_language(own) for own in read["languages"].values())
    words: dict[str, frozenset[tuple[int, str]]] = {}
    stems: dict[str, list[tuple[str, tuple[int, str]]]] = {}
    for number, language in enumerate(languages):
        for name, phrases in () if language.unspaced else language.classes.items():
            for phrase in phrases:
                first, *more = _WORD.findall(phrase.replace("_", " "))
                if phrase.endswith("*") and not more:
                    stems.setdefault(first[:PREFIX], []).append((first, (number, name)))
                else:
                    words[first] = words.get(first, frozenset()) | {(number, name)}
    tries = "|".join(one.replace(" ?", r"\s{0,3}").replace(" ", r"\s{1,3}") for one in read["tries"])
    return Grammar(languages, words, stems, tuple(_templates(read["signs"])), re.compile(rf"(?<![^\W_])(?:{tries})"))


def _language(own: Mapping[str, Any]) -> Language:
    unspaced = bool(own.get("unspaced"))
    classes = {name: tuple(own[name].split()) for name in CLASSES}
    void, before, rules = (f"(?:{'|'.join(_form(word, unspaced) for word in classes[name])})" for name in CLASSES)
    if unspaced:
        gap, apart = r"[^.!?\n\u3002\uff01\uff1f\u0964]{0,20}?", ""
        later = wide = gap
    else:
        gap, apart = r"(?:[^\w.!?:|]{1,3}+[\w']{1,24}+){0,3}?", _APART
        later, wide = gap, gap.replace("0,3", "0,4")
    forms = [rf"{void}{wide}{apart}{before}{later}{apart}{rules}", rf"{void}{wide}{apart}{rules}{later}{apart}{before}"]
    named = rf"(?:{before}{gap}{apart}{rules}|{rules}{gap}{apart}{before})"
    last = rf"(?P<last>{named}{wide}{apart}{void})"
    negations = "|".join(re.escape(word) for word in str(own.get("not", "")).split()) or r"(?!)"
    near = (rf"(?:{negations})$", rf"(?:{negations})") if unspaced else (
        rf"(?<!\w)(?:{negations})(?:[^\w.!?:;]{{1,2}}\w{{1,12}})?[^\w.!?:;]{{1,2}}$",
        rf"(?<!\w)(?:{negations})(?!\w)",
    )  # fmt: skip
    return Language(classes, unspaced, "|".join([*forms, last]), near)


_compiled = cache(re.compile)
"""Compiles a language's pattern on first use; compiling all takes a tenth of a second."""


def _templates(signs: Mapping[str, Sequence[str]]) -> Iterator[re.Pattern[str]]:
    roles = rf"{_any(signs['tokens'])}\s?{_any(signs['roles'])}(?:<\|\w{{1,24}}\|>)?"
    heading = _any(signs["headings"])
    alone = rf"{_any(signs['alone'])}(?=\s{{0,2}}\w)(?!\s[\w.-]{{1,40}}\s?=)"  # a section
    marks = rf"(?:{roles}|{alone}|###\s?{heading}:(?=\s{{0,2}}\w))"
    bracketed = rf"###\s?[(\[<]{heading}[)\]>]:?(?=\s{{0,2}}\w)"
    yield re.compile(rf"(?:{_BEGUN}{marks}|{bracketed})(?:\s{{0,2}}[^\n.!?]{{1,{TURN}}})?")
    secret = _any(signs["secrets"]).replace("_", "[ _-]?")
    yield re.compile(rf"{_any(signs['tags'])}[^<]{{0,{TURN}}}?(?<!\w){secret}(?!\w)")


def _form(word: str, unspaced: bool) -> str:
    between = r"\s?" if unspaced else r"[^\w.!?|]{1,3}"
    plain = between.join(map(re.escape, word.removesuffix("*").split("_")))
    if unspaced:
        return plain
    return rf"(?<![^\W_]){plain}\w{{0,12}}+" if word.endswith("*") else rf"(?<![^\W_]){plain}(?!\w)"


def _any(words: Sequence[str]) -> str:
    return "(?:" + "|".join("[ _-]".join(map(re.escape, word.split(" "))) for word in words) + ")"
