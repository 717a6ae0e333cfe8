"""A grammar of prompt injections in 34 languages finds common wordings; its rules are in `injections.rules`.

One pass over the words of a text finds the classes that it contains; only rules whose classes all occur are matched.
Every gap is bounded, so matching takes time linear in the text. The linear model of `text.prompt_injection` finds other
wordings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import NamedTuple

from unpoison.injections.rules import PREFIX, Language, Rule, load_grammar, plain_word

__all__ = ["find_injections"]

BETWEEN = "\n.\x00\n\n"
"""Separates texts; no rule matches across it."""

BEFORE = 24
"""Characters before an order that are read to decide whether it begins a clause."""

MAX_NEGATION_CHARS = 14
"""Characters before an order in which "not" turns it into its opposite."""

LEADS = (
    "please|plz|pls|kindly|and|so|now|must|should|then|just|also|simply|immediately|you to|need to|have to|as to|"
    "you (?:must|can|may|could)|(?:can|could|would|will) you"
)
"""Words behind which an order may begin inside a sentence, as a pattern."""

POLITE = "please|plz|pls|kindly|and|now|then|so|just|simply|also|instead|immediately"
"""Words that may precede an order at the start of a sentence."""

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0900-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE = (
    r"(?:^\s?|\x00\n\n|[\n.!?>|\"\u201c(\[*#-]\s?|(?:^|[\s(])'|[\u3002\uff01\uff1f\uff0c\u300c\u3001\u8bf7\u8acb])"
)
_LINE = re.compile(rf"{_SENTENCE}(?:(?:{POLITE})[^\w.!?]{{1,2}}){{0,2}}$")
_CLAUSE = re.compile(rf"{_SENTENCE}$|\w_$|[,;:] $|[,;:(\u2018\u2014\u2013]$|(?<!\w)(?:{LEADS})[^\w.]{{1,3}}$")


class GrammarMatch(NamedTuple):
    """One injection that a rule found.

    Attributes:
        rule: The name of the rule, such as "override" or "leaks".
        start, end: Where it stands in the text, from the first word of the order to the last that the rule names.
    """

    rule: str
    start: int
    end: int


def find_injections(texts: Sequence[str]) -> dict[int, list[GrammarMatch]]:
    """The injections of each text that the grammar describes, in order, by the text's position.

    Args:
        texts: Canonical.

    Returns:
        Only texts that hold one.

    Complexity: O(n) time for n characters, for every pattern is bounded.
    """
    whole = BETWEEN.join(texts)
    plain = whole.replace("\u0130", "i").replace("\u2019", "'")
    lowered = plain.lower()
    if len(lowered) != len(whole):  # a letter that becomes two, which lower-casing changes in no other case
        lowered = "".join(c if len(c.lower()) != 1 else c.lower() for c in plain)
    begin = [0, *accumulate(len(text) + len(BETWEEN) for text in texts)]
    found: dict[int, set[GrammarMatch]] = {}
    for rule, start, end in (*_ruled(plain, lowered), *_signed(whole, lowered)):
        number = bisect_right(begin, start) - 1
        limit = begin[number] + len(texts[number])
        if start < limit:
            place = GrammarMatch(rule, start - begin[number], min(end, limit) - begin[number])
            found.setdefault(number, set()).add(place)
    return {number: sorted(own, key=lambda match: match[1:]) for number, own in sorted(found.items())}


def _ruled(plain: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    begun: dict[tuple[str, int], bool] = {}
    for rule, places in _possible(lowered):
        text = plain if rule.is_cased else lowered
        for place in places[rule.parts[0]]:
            if not all(_follow(rule, place, places)):
                continue
            key = rule.begins, place
            if rule.begins and key not in begun:
                begun[key] = _begins(*key, lowered)
            if (
                (not rule.begins or begun[key])
                and (match := rule.pattern.match(text, place))
                and (rule.name == "hush" or not _is_negated(match, lowered, rule.language))
            ):
                yield rule.name, *match.span()


def _follow(rule: Rule, place: int, places: Mapping[str, Sequence[int]]) -> Iterator[bool]:
    """For each class after the first, whether one of its words is near enough; cheaper than matching the pattern."""
    farthest = place
    for name, reach in rule.reaches:
        own = places[name]
        last = bisect_right(own, farthest + reach) - 1
        yield last >= 0 and own[last] > place
        farthest = own[last]


def _possible(text: str) -> Iterator[tuple[Rule, Mapping[str, list[int]]]]:
    """The rules whose classes all occur in a text, with the rising positions of each class."""
    languages, first = load_grammar()[:2]
    begun: dict[str | tuple[str, str], list[int]] = {}
    matches = list(_WORD.finditer(text))
    for match, following in zip_longest(matches, matches[1:]):
        begun.setdefault(match[0], []).append(match.start())
        if following and (pair := (match[0], following[0])) in first.pairs:
            begun.setdefault(pair, []).append(match.start())
    found: dict[int, list[tuple[tuple[str, ...], list[int]]]] = {}
    for beginning, places in begun.items():
        for number, names in _begun_by(beginning[:40]):  # no phrase begins with a longer word; a cache holds none
            found.setdefault(number, []).append((names, places))
    if _UNSPACED.search(text):
        found |= {number: each.classes(text) for number, each in enumerate(languages) if each.unspaced}
    for number, own in found.items():
        present = frozenset[str]().union(*(names for names, _ in own))
        rules = [rule for rule in languages[number].rules if rule.needed <= present]
        wanted: dict[str, list[int]] = {name: [] for rule in rules for name in rule.needed}
        for names, places in own if rules else ():
            for name in wanted.keys() & names:
                wanted[name] += places
        for places in wanted.values():
            places.sort()
        yield from ((rule, wanted) for rule in rules)


@lru_cache(maxsize=20_000)
def _begun_by(beginning: str | tuple[str, str]) -> list[tuple[int, tuple[str, ...]]]:
    """For each language, by number, the classes with a phrase that begins with this word or pair of words."""
    words, pairs, stems = load_grammar().first
    if isinstance(beginning, tuple):
        keys = pairs[beginning]
    else:
        stemmed = (key for stem, key in stems.get(beginning[:PREFIX], ()) if beginning.startswith(stem))
        keys = [*words.get(beginning, ()), *stemmed]
    names: dict[int, set[str]] = {}
    for number, name in keys:
        names.setdefault(number, set()).add(name)
    return [(number, tuple(own)) for number, own in names.items()]


def _begins(where: str, place: int, text: str) -> bool:
    before = text[max(0, place - BEFORE) : place]
    return bool((_LINE if where == "^^" else _CLAUSE).search(before))


def _signed(whole: str, lowered: str) -> Iterator[tuple[str, int, int]]:
    grammar = load_grammar()
    if any(mark in lowered for mark in grammar.marks):
        for name, pattern in grammar.signs:
            for match in pattern.finditer(whole if name == "leaks" else lowered):
                yield name, *match.span()


def _is_negated(match: re.Match[str], text: str, language: Language) -> bool:
    """Whether a negation stands right before an order, or inside it after its first part."""
    before, inside = language.negation
    start = match.start()
    if before.search(text[max(0, start - MAX_NEGATION_CHARS) : start]):
        return True
    rest = text[match.end("first") : match.end()]
    for word in language.words["void"] if language.unspaced else ():  # some of these hold a "not" of their own
        rest = rest.replace(plain_word(word), "")
    return bool(inside.search(rest))
