"""Textbook injections: what everybody passes around, by a list of words in fifteen languages (`data/injections.json`).

A wording is a row of slots, each a choice of words, with a few other words between them: a verb that voids, a word such
as "previous" and one such as "instructions". Beside them stand the tokens of chat templates and the headings of
instruction data, each with the first sentence of its turn, and tags around an order that names a secret. A language is
looked at only where one of its nouns and one of its verbs stand in the texts.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from json import loads
from typing import NamedTuple

from unpoison.text.alignment import Region

__all__ = ["textbook_injections"]

BETWEEN = "\n.\x00\n\n"
"""Between texts; no wording goes on behind it, and whatever stands behind it opens a line."""

WORD_GAP = 4
"""Words that may stand between two slots."""

NEAR = 120
"""Characters around a noun in which the rest of its wording stands."""

FIRST = r"(?<![^\n.!?>\"']\s)(?<![^\s.!?>\"'])"
"""Before whatever opens a line or a sentence."""

MAX_NEGATION_CHARS = 12
"""Characters of the longest word that bids the opposite, and of what may stand behind it."""

SIGNS = "<[#"
"""Every sign has one of these."""

TURN = 400
"""Characters behind the sign of a turn that its first sentence may have."""

TAGGED = 400
"""Characters behind an opening tag in which a secret is named."""


class _List(NamedTuple):
    """This package's list.

    Attributes:
        gates: Parts of words to look for first, as few as there can be.
        wordings: Rows of words.
        signs: Of a chat's template; of a tag around a secret.
        negations: Words that bid the opposite, as they end a text.
        negation: The same inside a wording.
    """

    gates: tuple[str, ...]
    wordings: tuple[_Wording, ...]
    signs: tuple[re.Pattern[str], re.Pattern[str]]
    negations: re.Pattern[str]
    negation: re.Pattern[str]


class _Wording(NamedTuple):
    """One way to say it.

    Attributes:
        gates: Where none of these is in a text, it is not; of `_List.gates`.
        anchors: Of these words one is in it; in lower case.
        needed: Of each of these choices too.
        pattern: The whole of it.
        voids: Whether "not" before it or in it makes it bid the opposite.
    """

    gates: frozenset[str]
    anchors: tuple[str, ...]
    needed: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    voids: bool


def textbook_injections(texts: Sequence[str]) -> dict[int, Region]:
    """Where the first textbook injection of each text stands, by the text's place; only of those that hold one.

    Args:
        texts: Canonical.

    Complexity: O(n) time for n characters.
    """
    joined = BETWEEN.join(texts).replace("\u0130", "i").replace("\u2019", "'").lower()  # as long as the texts
    begin = [0, *accumulate(len(text) + len(BETWEEN) for text in texts)]
    found = dict[int, Region]()
    for start, end in sorted(_all(joined)):
        text = bisect_right(begin, start) - 1
        found.setdefault(text, (start - begin[text], end - begin[text]))
    return found


def _all(text: str) -> Iterator[Region]:
    """Every textbook injection."""
    known = _list()
    seen = {word for word in known.gates if word in text}
    for wording in known.wordings:
        if seen.isdisjoint(wording.gates) or not all(any(word in text for word in words) for words in wording.needed):
            continue
        for start, end in _around(text, wording.anchors):
            yield from (
                m.span()
                for m in wording.pattern.finditer(text, start, end)
                if not (wording.voids and _is_negated(m, known))
            )
    if any(mark in text for mark in SIGNS):
        for pattern in known.signs:
            yield from (match.span() for match in pattern.finditer(text))


def _is_negated(match: re.Match[str], known: _List) -> bool:
    """Whether "never", "not" or the like stands right before a wording or inside it: it bids the opposite."""
    before = match.string[max(0, match.start() - MAX_NEGATION_CHARS) : match.start()]
    return bool(known.negations.search(before) or known.negation.search(match.string, *match.span()))


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))


def _around(text: str, words: Sequence[str]) -> Iterator[Region]:
    """What stands around any of some words, without an overlap."""
    places = sorted(place for word in words for place in _places(text, word))
    start = end = 0
    for place in places:
        if place - NEAR > end:
            if end:
                yield start, end
            start = max(0, place - NEAR)
        end = place + NEAR
    if end:
        yield start, min(end, len(text))


@cache
def _list() -> _List:
    read = loads((files("unpoison") / "data" / "injections.json").read_text(encoding="utf-8"))
    rows = list[tuple[list[list[str]], list[str], int, bool]]()
    for language in read["voiding"].values():
        slots = {name: language[name].split() for name in ("void", "which", "what")}
        for order in language["orders"].split():
            rows.append(([slots[name] for name in order.split("-")], slots["what"], int(language.get("gap", 0)), True))
    for phrase in read["phrases"]:
        row = [slot.split() for slot in phrase.split(" | ")]
        rows.append((row, row[0], 0, False))
    anchors = {_plain(word) for _, words, _, _ in rows for word in words}
    gates = tuple(sorted(word for word in anchors if not any(other in word for other in anchors - {word})))
    words = {name: read[name].split() for name in read if isinstance(read[name], str)}
    spaced, unspaced = (_any(words[name]) for name in ("not", "not before"))
    opened = rf"{_any(words['tokens'])}\s?{_any(words['roles'])}(?:<\|\w{{1,24}}\|>)?"
    alone = rf"{FIRST}(?:{_any(words['alone'])}|###\s?{_any(words['headings'])}:)(?=\s{{0,2}}\w)"
    chat = rf"(?:{opened}|{alone})(?:\s{{0,2}}[^\n.!?\x00]{{1,{TURN}}})?"
    secret = _any(words["secrets"]).replace("_", "[ _-]?")
    tag = rf"{_any(words['tags'])}[^<\x00]{{0,{TAGGED}}}?(?<!\w){secret}(?!\w)"
    return _List(
        gates,
        tuple(_wording(*row, gates) for row in rows),
        (re.compile(chat), re.compile(tag)),
        re.compile(rf"(?<!\w){spaced}[^\w.!?,:;]{{1,2}}$|{unspaced}$"),
        re.compile(rf"(?<!\w){spaced}(?!\w)"),
    )


def _any(words: Sequence[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, words))})"


def _wording(row: list[list[str]], anchors: list[str], gap: int, voids: bool, gates: Sequence[str]) -> _Wording:
    """A row of slots with words between, or with so many characters where words have no spaces."""
    if gap:
        between = rf"[^.!?\n\u3002\uff01\uff1f\u0964]{{0,{gap}}}?"
        slots = ["|".join(re.escape(_plain(form)) for form in slot) for slot in row]
    else:
        between = rf"(?:[^\w.!?:|]{{1,3}}+[\w'\u2019-]{{1,24}}+){{0,{WORD_GAP}}}?[^\w.!?:|]{{1,3}}+"
        slots = ["|".join(map(_form, slot)) for slot in row]
    pattern = re.compile(between.join(f"(?:{slot})" for slot in slots))
    words = tuple(map(_plain, anchors))
    first = frozenset(gate for gate in gates if any(gate in word for word in words))
    return _Wording(first, words, tuple(tuple(map(_plain, slot)) for slot in row), pattern, voids)


def _plain(form: str) -> str:
    return form.removesuffix("*").replace("_", " ")


def _form(form: str) -> str:
    """A word, or with an asterisk whatever begins so."""
    word = re.escape(_plain(form))
    return rf"(?<!\w){word}\w{{0,12}}+" if form.endswith("*") else rf"(?<!\w){word}(?!\w)"
