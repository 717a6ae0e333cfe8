"""A grammar of prompt injections in 34 languages: common wordings, described by their parts.

`data/injections.yaml` holds the grammar and explains its syntax. One pass over the words of a text finds the classes
that it contains; only rules whose classes all occur are matched, and a rule is compiled the first time that this
happens. Every gap is bounded, so matching takes time linear in the text. The linear model of `text.prompt_injection`
finds other wordings.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from itertools import accumulate, zip_longest
from typing import Any, NamedTuple

import yaml

__all__ = ["GrammarMatch", "find_injections", "load_grammar"]

BETWEEN = "\n.\x00\n\n"
"""Separates texts; no rule matches across it."""

PREFIX = 3
"""Letters by which words with a "*" are indexed; such a word has at least as many."""

BEFORE = 24
"""Characters before an order that are read to decide whether it begins a clause."""

MAX_PHRASE_CHARS, MAX_WORD_GAP_CHARS = 80, 31
"""Maximal characters of a phrase of the grammar, and of a word in a gap."""

TURN = 400
"""Characters of the first sentence behind the sign of a chat turn, and behind an opening tag."""

MAX_NEGATION_CHARS = 14
"""Characters before an order in which "not" turns it into its opposite."""

LEADS = (
    "please|plz|pls|kindly|and|so|now|must|should|then|just|also|simply|immediately|you to|need to|have to|as to|"
    "you (?:must|can|may|could)|(?:can|could|would|will) you"
)
"""Words behind which an order may begin inside a sentence, as a pattern."""

POLITE = "please|plz|pls|kindly|and|now|then|so|just|simply|also|instead|immediately"
"""Words that may precede an order at the start of a sentence."""

_MARKS = {":": r"(?:[:=]|\s[-\u2013\u2014](?=\s))", ",": ",", "\uff1a": "\uff1a"}
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u0900-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE = r"(?:^|\x00\n\n|[\n.!?>|\"\u201c(\[*#-]\s?|(?:^|[\s(])'|[\u3002\uff01\uff1f\uff0c\u300c\u3001\u8bf7\u8acb])"
_LINE = re.compile(rf"{_SENTENCE}(?:(?:{POLITE})[^\w.!?]{{1,2}}){{0,2}}$")
_CLAUSE = re.compile(rf"{_SENTENCE}$|\w_$|[,;:] $|[,;:(\u2018\u2014\u2013]$|(?<!\w)(?:{LEADS})[^\w.]{{1,3}}$")
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


class GrammarMatch(NamedTuple):
    """One injection that a rule found.

    Attributes:
        rule: The name of the rule, such as "override" or "leaks".
        start, end: Where it stands in the text, from the first word of the order to the last that the rule names.
    """

    rule: str
    start: int
    end: int


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
            for word in map(_plain, self.words.get(name, (name,)))
            if word in text
        ]

    @cached_property
    def negation(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """A negation right before an order, and inside of one."""
        words = "|".join(map(re.escape, map(_plain, self.negations))) or r"(?!)"
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
        rest = rest.replace(_plain(word), "")
    return bool(inside.search(rest))


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
                first, *more = _WORD.findall(_plain(phrase))
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


def _plain(word: str) -> str:
    return word.removesuffix("*").replace("_", " ")


def _any(words: Sequence[str]) -> str:
    parts = "|".join("[ _-]".join(map(re.escape, word.split(" "))) for word in words)
    return f"(?:{parts})"
