"""A text as its reader reads it: each value, item and cell a sentence of its own, folded lines whole, marks left out.

The reading is as long as the text, so that what is found in it has its place. Values of JSON and YAML are read without
their keys, each as a text of its own (`WALL`), and with them, where only strong evidence counts: "llm_directive: ..."
is an order by its key. A text in an unusual spelling is read in its normal spelling too (`text.respelling`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.injections.blocks import NAME, NEXT_ENTRY, is_keyed
from unpoison.text.alignment import Region
from unpoison.text.analysis import analysis
from unpoison.text.markup import without_code_tags
from unpoison.text.respelling import is_english, respell
from unpoison.text.sentences import sentences
from unpoison.utils.assets import read_data

__all__ = ["WALL", "TextVariant", "is_for_machines", "variants"]

WALL = "\x1e"
"""Stands between two values, of which none is read in the surroundings of another; no canonical text has it."""

MIN_MARKED = 4
"""Words in a row that the same mark joins, or alone on a line, from which the marks or line ends are left out."""

MAX_FRAGMENT, MAX_WORD = 4, 12
"""Words of a sentence that is a fragment, and their characters on average: more are words without spaces."""

MIN_NEW = 2
"""Words of a respelled text that the text itself does not have; with fewer, only its layout is unusual."""

_WORD = re.compile(r"[^\W\d_]+")

_SOFT_BREAK = re.compile(r"(?<=[^\s.!?:;|>}\]])\n(?=[^\W\d_A-Z]|['\"(\d])(?!\d{1,4}[-/:.]\d{1,2}[-/:.]\d)")
"""A line end behind which a sentence goes on: no mark before it, no capital behind it, nor the time of a log's line."""

_SHOUTED = re.compile(r"(?<![A-Za-z])(?:[(\"]?[A-Z][A-Z',;:()/&\"-]{0,20}\s){5,400}[(\"]?[A-Z]{1,20}(?![a-z])")
"""Words in capitals, as in the conditions of a licence: the transformer takes them for a shout."""

_COMMENT = re.compile(r"(?m)(?<=[^\s.!?:;|>}\]])\n[^\S\n]{0,40}(?:#|//| \*)[^\S\n]{1,3}(?=[^\W\d_A-Z])")
"""A line end inside a comment of source code, with the mark of the next line."""

_FOLDED = re.compile(r"\\\n[ ]*\\?|(?<=[^\s.!?:;|>}\]])\n[ ]+(?=[^\W\d_A-Z]+[ ,.;:!?'])(?![\w ]{1,40}:\s)")
"""A line end inside a value as YAML folds it: behind a backslash, or before an indented line that goes on."""

_STRUCTURE = re.compile(r"(?<!\\)[\"'][^\"'\n]{0,400}\\[n\"]")
_ESCAPE = re.compile(r"(?<!\\)\\++(?:(n)|[\"'])")
"""A quoted value with a line end or a mark written out, as JSON, YAML and Python write one."""

_NESTED = re.compile(r'"\s{0,80}(?:[{\[]\s{0,80}){1,9}\\"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_NESTED_MARK = re.compile(r'(?<!\\)\\++(?=")')
"""JSON in a string of JSON, and what stands before a mark of it."""

_KEY = re.compile(r"([\"'])[\w.$@-]{1,40}\s{0,8}\1\s{0,2}:(?=\s|[\"'\[{\d]|[-\w])")
_LISTED = re.compile(r"(?:[\[{]\s{0,80}|,)[\"']")
"""Where a text begins a value of a list, of which no key says so; in prose a space stands behind a comma."""

_OPENED = re.compile(r"[\[{,]\s{0,80}(?=[\"'][^\"'\n]{1,60}[\"']\s{0,2}:|\{|\[)|[\[,]\s{0,80}(?=[\"'])")
"""What stands before a member of JSON, which begins a sentence of its own, with its key."""

_JSON_MARKS = re.compile(r"[\[\]{}]|(?<!\\)\"")
_QUOTED = re.compile(
    rf"(?ms)^([^\S\n]{{0,40}}(?:- )?{NAME}(?: {NAME}){{0,2}}(?:: |[ \t]?=[ \t]?))([\"'])(.{{0,600}}?)\2(?=[^\S\n]*$)"
)
_SETS = re.compile(r"(?:: |= ?)[\"']")
"""Marks of JSON, and the quotation marks around a value of YAML: they would make an order look like a quotation."""

_NAME = re.compile(rf"\s{{0,4}}({NAME})\s{{0,9}}(?::\s{{1,9}}|=\s{{0,9}})")
"""A key of JSON, whose quotation marks are left out, of YAML or of settings; words with spaces may be the order."""

_PARENT = re.compile(
    rf"(?m)^[^\S\n]{{0,40}}(?:(?:- )?({NAME}):|\[({NAME})\])[^\S\n]*$|[\"']({NAME})[\"']\s{{0,9}}:\s{{0,9}}(?=[\[{{])"
)
_BRACKET = re.compile(r"[\[{]|([\]}])")
_SECTION = re.compile(r"(?m)^[^\S\n]*+()\[")
_OUTER = re.compile(r"(?m)^([^\S\n]*+)(?!- |\n|\Z)")
"""A key of YAML, a section of settings or a key of JSON that holds other values; brackets, which end the last, the next
section, and lines other than items, with their indent."""

_MACHINE = re.compile(read_data("orders.json")["machine"], re.IGNORECASE)

_ITEM = re.compile(
    r"(?:(?:[-*+\u2022>#|]{1,3}|\d{1,3}[.)])\s{1,4})?(?:(?:\[[ xX]\]|[\u2610-\u2612\u2713\u2714])\s{1,4})?"
)
_CELL_END = re.compile(r"\s{0,4}\|\Z")
"""The mark of an item with its box, and the mark behind the last cell of a row, which are in no sentence."""

_CELL = re.compile(r"(?m)(?<=[^\s|])[ \t]*\|(?=[^|\n])")
_STOPPED = re.compile(r"(?<![^\s.!?]\s)(?<!\S)(?:[^\W\d_][\w'\u2019-]{1,24}[.!?]\s{1,3}){4,1000}")
"""Sentences of one word, of which a model makes one."""
_LONE = r"[^\S\n]{0,12}(?:[-*+\u2022>#|]{1,3}|\d{1,3}[.)])?[^\S\n]{0,3}[^\W_][\w'\u2019-]{0,24}[.,:;!?]?[^\S\n]{0,3}\|?"
_LINES = re.compile(rf"(?m)^(?:{_LONE}[^\S\n]{{0,3}}\n{{1,2}}){{{MIN_MARKED},1000}}(?:{_LONE})?")
"""One word a line, or one an item."""

_LINE_MARKS = re.compile(r"[\n|]|(?m:^[^\S\n]{0,12}(?:[-*+\u2022>#]{1,3}|\d{1,3}[.)])(?=\s))")
_LETTERS = r"[\"'(]?[^\W\d_]{1,24}+[,;:.!?\"')]{0,2}"
_JOINED = re.compile(
    rf"(?<![^\s\"'(\[*=]){_LETTERS}([^\w\s]{{1,3}}|_{{1,3}}){_LETTERS}"
    rf"(?:\1(?:{_LETTERS}|\d{{1,12}})){{{MIN_MARKED - 1},200}}(?!\w)"
)
_JOINT = re.compile(r"[^\w]|_")
"""Words joined by the same mark, more than a name in code has."""


_PACKED = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{40,}+")
_WORDY = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}")
_UNLIKE_WORDS = re.compile(r"(?<=[A-Z\d+/])[A-Z\d+/]")
"""A run such as a line of base64, what is like a word in it, and two characters that are not: the transformer takes
lines of a signature for orders, and a minute for a megabyte. "PutItInTheBox" has none of the last."""

_UP, _LOW = ("".join(filter(is_case, map(chr, range(0x41, 0x588)))) for is_case in (str.isupper, str.islower))
"""The letters of Latin, Greek, Cyrillic and Armenian."""

_GLUED = re.compile(rf"(?:(?<=[{_LOW}\d][{_LOW}\d)\]])|(?<=[{_UP}]{{2}}))(?=[{_UP}][{_LOW}]{{2,20}},? [{_LOW}])")
"""Where a capital stands inside a word or behind its bracket, as a line end was lost: "USAIgnore previous ..."."""


class TextVariant(NamedTuple):
    """A form in which a text is scored: as laid out, without keys, or respelled.

    Attributes:
        text: The text of this form.
        sentences: The positions of its sentences.
        evidence: What counts in it: anything, only the strong, or only what is close to certain.
        start, end: The source of each character in the text, shape (n,); None where it is as long as the text.
    """

    text: str
    sentences: list[Region]
    evidence: Literal["any", "strong", "sure"] = "any"
    start: NDArray[np.int64] | None = None
    end: NDArray[np.int64] | None = None

    def source(self, start: int, end: int) -> Region:
        """The position of a part of the variant in the original text."""
        if self.start is None or self.end is None:
            return start, end
        return int(self.start[start]), int(self.end[end - 1])


def variants(text: str) -> list[TextVariant]:
    """The variants of a canonical text: as it is laid out, and in its normal spelling or layout if its own is unusual.

    The normal spelling is that of English: in another language it loses letters, so only signs are looked for there.
    A layout that hides no word is found in honest texts too, so only evidence close to
    certain counts in what it hides.
    """
    plain = _laid_out(text)
    parts = [part for part in (_bare(plain, region) for region in _sentences(plain)) if part]
    found = [TextVariant(plain, parts)]
    if WALL in plain:
        named = [(start, end, _NAME.match(plain, start, end)) for start, end in parts]
        values = [(name.end() if name else start, end) for start, end, name in named]
        for_machines = [(start, end) for start, end, name in named if name and is_for_machines(name[1])]
        found = [
            TextVariant(plain, [(start, end) for start, end in values if start < end]),
            TextVariant(plain, for_machines, "strong"),
            *_composed(plain, _for_machines(text, [(start, end) for start, end in values if start < end])),
        ]
    glued = [part for region in parts for part in _behind_glue(plain, region)]
    found += [TextVariant(plain, glued, "strong")] if glued else []
    found += _composed(plain, _fragments(plain, parts))
    respelled = analysis(plain).part(respell)
    if respelled is not None:
        words = _WORD.findall(respelled.text.lower())
        only_laid_out = len({*words}.difference(_WORD.findall(plain.lower()))) < MIN_NEW
        english = is_english(respelled.text)
        own = sentences(respelled.text)
        own = [one for one in own if only_laid_out or (english and _is_plain(respelled.text[slice(*one)]))]
        evidence: Literal["any", "sure"] = "sure" if only_laid_out else "any"
        found.append(TextVariant(respelled.text, own, evidence, respelled.start, respelled.end))
    return found


def is_for_machines(key: str) -> bool:
    """Whether a key is named for a machine that acts, so that its value may be an order that no other key makes one."""
    return _MACHINE.search(key) is not None


def _composed(plain: str, lines: Sequence[Sequence[tuple[str, Region]]]) -> Iterator[TextVariant]:
    """A variant of which each sentence is made of parts of the text, with something before each."""
    read, sentences, places, size = list[str](), list[Region](), list[NDArray[np.int64]](), 0
    for line in lines:
        first = size
        for before, (start, stop) in line:
            read.append(before + plain[start:stop])
            places.append(np.maximum(np.arange(len(read[-1])) - len(before), 0) + start)
            size += len(read[-1])
        sentences.append((first, size))
        read.append(WALL)
        places.append(places[-1][-1:])
        size += 1
    if lines:
        sources = np.concatenate(places)
        yield TextVariant("".join(read), sentences, "strong", sources, sources + 1)


def _for_machines(text: str, values: Sequence[Region]) -> list[list[tuple[str, Region]]]:
    """The values in lists, maps and sections named for a machine, each behind that name."""
    starts = [start for start, _ in values]
    return [
        [(f"{name}: ", one)]
        for name, begin, end in _machine_parents(text)
        for one in values[bisect_left(starts, begin) : bisect_left(starts, end)]
    ]


def _fragments(plain: str, parts: Sequence[Region]) -> list[list[tuple[str, Region]]]:
    """Runs of sentences, lines or items of few words, each run as one sentence without their last marks."""
    runs, last = [list[tuple[str, Region]]()], 0
    for start, end in parts:
        bare = plain[start:end].rstrip(".!?\u2026\u3002 ")
        words = len(bare.split())
        if not 0 < len(bare) <= words * MAX_WORD or words > MAX_FRAGMENT or WALL in plain[last:start]:
            runs.append([])
        if 0 < words <= MAX_FRAGMENT and len(bare) <= words * MAX_WORD:
            runs[-1].append((" " * bool(runs[-1]), (start, start + len(bare))))
        last = end
    return [run for run in runs if len(run) >= MIN_MARKED]


def _machine_parents(text: str) -> Iterator[tuple[str, int, int]]:
    """Each key and section named for a machine that holds other values, and where these begin and end. O(n) time."""
    close = 0
    for key in _PARENT.finditer(text):
        name = key[1] or key[2] or key[3]
        if key.start() < close or not is_for_machines(name):
            continue
        indent = key.start(1) - text.rfind("\n", 0, key.start(1)) - 1 if key[1] else 0
        depth = 0
        if key[3]:
            ends = (
                one.end() for one in _BRACKET.finditer(text, key.end()) if not (depth := depth + (-1 if one[1] else 1))
            )
        else:
            lines = (_OUTER if key[1] else _SECTION).finditer(text, key.end())
            ends = (line.start() for line in lines if len(line[1]) <= indent)
        close = next(ends, len(text))
        yield name, key.end(), close


def _is_plain(sentence: str) -> bool:
    """Whether all letters of a respelled sentence are those of English, as they are not in another language."""
    return sentence.isascii() or not any(letter.isalpha() and not letter.isascii() for letter in sentence)


def _sentences(text: str) -> list[Region]:
    """The sentences, which end at a wall."""
    found, place = list[Region](), 0
    for part in text.split(WALL):
        found += [(place + start, place + end) for start, end in sentences(part)]
        place += len(part) + 1
    return found


def _bare(text: str, region: Region) -> Region | None:
    """A sentence without the marks of its item or cell; None if there is nothing else."""
    start, end = region
    mark, last = _ITEM.match(text, start, end), _CELL_END.search(text, max(start, end - 6), end)
    start, end = mark.end() if mark else start, last.start() if last else end
    return (start, end) if start < end else None


def _behind_glue(text: str, region: Region) -> list[Region]:
    """The parts of a sentence that are glued to the word before; names such as "JavaScript" begin one too."""
    starts = [match.start() for match in _GLUED.finditer(text, *region)]
    return list(zip(starts, [*starts[1:], region[1]]))


def _laid_out(text: str) -> str:
    text = without_code_tags(text)
    has_escapes = "\\" in text and _STRUCTURE.search(text)
    if has_escapes:
        text = _NESTED.sub(lambda match: _NESTED_MARK.sub(_blank, match[0]), text)
    if _LISTED.search(text) or (":" in text and _KEY.search(text)):
        is_json = text.lstrip()[:1] in ("[", "{")
        text = _OPENED.sub(partial(_blank, last=WALL if is_json else "\n"), text)
        if is_json:
            text = _JSON_MARKS.sub(" ", text)
    elif _SETS.search(text):
        text = _QUOTED.sub(r"\1 \3 ", text)
    if has_escapes:
        text = _ESCAPE.sub(lambda match: _blank(match, "\n" if match[1] else match[0][-1]), text)
    text = _LINES.sub(lambda match: _LINE_MARKS.sub(_blank, match[0]), text) if "\n" in text else text
    if is_keyed(text):
        text = NEXT_ENTRY.sub(WALL, text)
    if "|" in text:
        text = _CELL.sub(partial(_blank, last="\n"), text)
    text = _STOPPED.sub(lambda match: re.sub(r"[.!?]", " ", match[0]), text)
    text = _JOINED.sub(lambda match: _JOINT.sub(" ", match[0]), text)
    text = _SHOUTED.sub(lambda match: match[0].lower(), text)
    if "\n" in text:
        text = _SOFT_BREAK.sub(" ", _COMMENT.sub(_blank, _FOLDED.sub(_blank, text)))
    return _PACKED.sub(_without_words, text)


def _blank(match: re.Match[str], last: str = " ") -> str:
    return " " * (len(match[0]) - 1) + last


def _without_words(match: re.Match[str]) -> str:
    """A blank for a run that holds few words, and in which capitals, digits and signs follow each other."""
    size, words = len(match[0]), sum(map(len, _WORDY.findall(match[0])))
    return _blank(match) if 2 * words <= size <= 8 * len(_UNLIKE_WORDS.findall(match[0])) else match[0]
