"""The canonical text: what a text says to a reader, without what only machines see.

A language model reads through zero-width characters, look-alike letters and tags inside words; whatever counts words
or letters does not. So every defense reads this text, and so does every prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from operator import add, attrgetter
from sys import getsizeof

import numpy as np
from numpy.typing import NDArray

from unpoison.text.alignment import UNTRACED, Change, Edits, Region, Trace
from unpoison.text.decoding import decode_text
from unpoison.text.homoglyphs import one_script
from unpoison.text.invisible import blanks, compose_nfkc, hidden_words, invisible, strip_marks
from unpoison.text.markup import entities, strip_comments, tags, unmarkable

__all__ = [
    "MARK",
    "MAX_TEXT_CHARS",
    "Canonical",
    "Hidden",
    "canonical",
    "canonical_lines",
    "redact_text",
    "redact_with_trace",
]

MAX_TEXT_CHARS = 1_000_000
"""Characters of one raw text that are read; what lies beyond is neither judged nor sent to a model by us."""

ROUNDS = 8
"""What hides in what is hidden is looked for again, this often; deeper nesting loses its signs."""

PLAIN_CHARACTERS = (
    r"!-%'-;=-~\u00a1-\u00a7\u00ab\u00b0-\u00b3\u00b7\u00b9\u00bb-\u0131\u0134-\u013e\u0141-\u0148\u014a-\u017e"
    r"\u2013\u2014\u2018-\u201e\u2022\u2026"
)
TIDY = re.compile(rf"[{PLAIN_CHARACTERS}]++(?:[ \n][{PLAIN_CHARACTERS}]++)*+")
"""Most texts: Latin letters and usual marks, single white space, neither tags nor entities."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """What was hidden in a text; all zero for an honest one.

    Attributes:
        invisible: Invisible characters inside words. Byte order marks, soft hyphens at line ends and joiners where a
            script or an emoji needs them are not counted.
        look_alikes: Letters of another script in the place of letters that look the same.
        styled: Fullwidth, mathematical, circled or squared letters.
        marks: Combining marks that make no letter with what they stand on.
        tags: HTML tags inside words.
        comments: HTML comments.
        entities: Entities that stand for plain letters.
        encoded: Stretches in base64, in escapes, with letters apart, backwards or in ROT13; they are read in plain.
        messages: Messages of five words or more where no reader sees them: in comments, attributes, tag characters.
            They are read after the rest.
        unread: Characters beyond `MAX_TEXT_CHARS`, which are not read.
    """

    invisible: int = 0
    look_alikes: int = 0
    styled: int = 0
    marks: int = 0
    tags: int = 0
    comments: int = 0
    entities: int = 0
    encoded: int = 0
    messages: int = 0
    unread: int = 0

    def __bool__(self) -> bool:
        return self is not NOTHING and any(_COUNTS(self))

    def __add__(self, other: Hidden) -> Hidden:
        return self if other is NOTHING else Hidden(*map(add, _COUNTS(self), _COUNTS(other)))

    def __str__(self) -> str:
        """In words, such as "37 invisible characters inside words, 2 HTML comments"; empty for nothing."""
        counts = [
            f"{count:,} {singular if count == 1 else plural}"
            for name, (singular, plural) in WORDS.items()
            if (count := getattr(self, name))
        ]
        return ", ".join(counts)


WORDS = {
    "invisible": ("invisible character inside a word", "invisible characters inside words"),
    "look_alikes": ("look-alike letter of another script", "look-alike letters of another script"),
    "styled": ("fullwidth, mathematical or circled letter", "fullwidth, mathematical or circled letters"),
    "marks": ("stray combining mark", "stray combining marks"),
    "tags": ("HTML tag inside a word", "HTML tags inside words"),
    "comments": ("HTML comment", "HTML comments"),
    "entities": ("entity for a plain letter", "entities for plain letters"),
    "encoded": ("encoded stretch", "encoded stretches"),
    "messages": ("message where no reader looks", "messages where no reader looks"),
    "unread": ("character beyond what is read", "characters beyond what is read"),
}


_COUNTS = attrgetter(*(field.name for field in fields(Hidden)))
NOTHING = Hidden()
"""What is hidden in most texts."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A canonical text, and what was hidden in the raw one."""

    text: str
    hidden: Hidden

    def __sizeof__(self) -> int:
        return 400 + getsizeof(self.text)


def canonical(text: str, *, markup: bool = True, edits: Edits = UNTRACED) -> Canonical:
    """What a text says to a reader.

    In this order, until nothing changes: what is encoded (`text.decoding`);
    comments, tags and entities resolved (`text.markup`); invisible characters
    out where they mean nothing; NFKC, except where it would change a meaning; marks that make no letter with their base
    out (`text.invisible`); look-alikes inside words back to one script (`text.homoglyphs`); white space
    collapsed to one space or one line break. Messages of five words and more in comments, attributes and tag characters
    are not lost: they follow at the end, each on a line of its own, for a model that gets the raw text reads them.

    What stays: accents, scripts, emoji, code, formulas, quotation marks and dashes as written. What is given up, in the
    reading only: indentation, blank lines, variants of ideographs, tone marks that make no letter with their consonant.

    Args:
        text: Any text, also one that is no valid Unicode.
        markup: False keeps tags, comments and entities, for questions, which may be about them.
        edits: A `text.alignment.Trace` of the text, to know afterwards what each character was made of.

    Returns:
        The canonical text and what was hidden. `canonical(canonical(text).text).text` is the same text.

    Complexity: O(n) time and memory for n characters, of which at most `MAX_TEXT_CHARS` are read.
    """
    unread = max(len(text) - MAX_TEXT_CHARS, 0)
    text = edits.cut(text, 0, MAX_TEXT_CHARS)
    hidden = Hidden(unread=unread) if unread else NOTHING
    for count in range(2 * ROUNDS):
        before = text
        text, encoded = decode_text(text, edits) if markup else (text, 0)
        hidden += Hidden(encoded=encoded) if encoded else NOTHING
        if text == before and TIDY.fullmatch(text):
            break
        text = unmarkable(text, edits) if markup and count == ROUNDS else text
        text, found_hidden = _round(edits.cut(text, 0, MAX_TEXT_CHARS), markup, edits)
        hidden += found_hidden
        if text == before:
            break
    return Canonical(text, hidden)


def canonical_lines(texts: Sequence[str]) -> frozenset[str]:
    """Texts of one line that are their own canonical text, found out together; others may be so too.

    Nothing reaches over a line here: letters apart need two spaces or a tab to be words, which no tidy line has.
    Complexity: O(n) time for n characters, a fraction of that of `canonical` for many short texts.
    """
    tidy = [text for text in texts if "\n" not in text and TIDY.fullmatch(text)]
    decoded = decode_text("\n".join(tidy))[0].split("\n")
    if len(decoded) != len(tidy):
        return frozenset()
    return frozenset(text for text, plain in zip(tidy, decoded, strict=True) if text == plain)


def _round(text: str, markup: bool, edits: Edits) -> tuple[str, Hidden]:
    """One round: the text, and what was found hidden."""
    comments = inside = plain = 0
    text, messages, smuggled = hidden_words(text, edits)
    if markup:
        text, commented, comments = strip_comments(text, edits)
        text, attributes, inside = tags(text, edits)
        text, plain = entities(text, edits)
        messages += [*commented, *attributes]
    text, unseen = invisible(text, edits)
    text, styled = compose_nfkc(text, edits)
    text, marks = strip_marks(text, edits)
    text, letters = one_script(text, edits)
    text = blanks(edits.append_messages(text, messages), edits)
    return text, Hidden(unseen + smuggled, letters, styled, marks, inside, comments, plain, messages=len(messages))


MARK = "[removed]"
"""What a model is shown where something was cut."""


def redact_with_trace(text: str, regions: Sequence[Region] = ()) -> tuple[Canonical, Trace]:
    """`redact_text`, and where its characters come from."""
    trace = Trace(text)
    whole = canonical(text, edits=trace)
    if not regions:
        return whole, trace
    left = trace.put(whole.text, list(_cuts(whole.text, trace, regions, "")))
    return Canonical(canonical(left, edits=trace).text, whole.hidden), trace


def redact_text(text: str, regions: Sequence[Region], mark: str = "") -> Canonical:
    """The canonical text without what was made of some stretches of the raw one, and what was hidden in the raw one.

    Args:
        text: Raw.
        regions: Stretches of it, in any order.
        mark: What stands where something was cut; nothing where it was hidden, for nobody misses that.

    Returns:
        `canonical` of its text is the same text: what is left is read again, so that no cut can make a tag.

    Complexity: O(n log n) time, O(n) memory for n characters.
    """
    trace = Trace(text)
    whole = canonical(text, edits=trace)
    left = trace.put(whole.text, list(_cuts(whole.text, trace, regions, mark)))
    return Canonical(canonical(left).text, whole.hidden)


def _cuts(text: str, trace: Trace, regions: Sequence[Region], mark: str) -> Iterator[Change]:
    """What to take out of a canonical text; cuts with nothing but white space between them are one."""
    gone = trace.within(regions)
    words = np.cumsum(np.concatenate([[0], ~gone & ~_blank(text)]))  # how many letters stay before each position
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]]).astype(np.int8)))
    stretches: list[Region] = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stretches and words[stretches[-1][1]] == words[start]:
            stretches[-1] = stretches[-1][0], end
        else:
            stretches.append((start, end))
    for start, end in stretches:
        shown = mark if mark and not trace.hidden[start:end].all() else ""
        before = " " if text[start - 1 : start].strip() else ""
        after = " " if text[end : end + 1].strip() else ""
        yield start, end, f"{before}{shown}{after}" if shown else before and after


def _blank(text: str) -> NDArray[np.bool_]:
    return np.fromiter(map(str.isspace, text), bool, len(text))
