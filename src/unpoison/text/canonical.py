"""The canonical text: a text as a person reads it, without encodings and invisible characters.

A language model understands words with zero-width characters, look-alike letters or tags inside; a check that counts
words or letters does not. So all defenses read the canonical text, and all prompts contain it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from operator import add, attrgetter
from sys import getsizeof

import numpy as np

from unpoison.text.alignment import ASIDE, UNTRACED, Change, Edits, Region, Trace
from unpoison.text.decoding import decode_text
from unpoison.text.homoglyphs import one_script
from unpoison.text.invisible import blanks, compose_nfkc, hidden_words, invisible, strip_marks
from unpoison.text.markup import entities, strip_comments, tags, unmarkable
from unpoison.utils.assets import read_data

__all__ = [
    "MARK", "MAX_TEXT_CHARS", "Canonical", "Hidden", "canonical", "canonical_lines", "redact_text", "redact_with_trace",
    "shown_text",
]  # fmt: skip

MAX_TEXT_CHARS = 1_000_000
"""Maximum characters of a raw text that are read; the rest is neither judged nor sent to a model."""

ROUNDS = 8
"""Maximum rounds for nested encodings; after them, the signs of tags and entities are removed."""

PLAIN_CHARACTERS = read_data("characters.json")["plain"]
TIDY = re.compile(rf"[{PLAIN_CHARACTERS}]++(?:[ \n][{PLAIN_CHARACTERS}]++)*+")
"""Most texts: Latin letters and usual marks, single white space, neither tags nor entities."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The number of hidden parts of a text, by kind; all zero for an honest text.

    Attributes:
        invisible: Invisible characters inside words, without byte order marks, soft hyphens at line ends, and joiners
            that a script or an emoji needs.
        look_alikes: Letters of another script that replace letters of the same look.
        styled: Fullwidth, mathematical, circled or squared letters.
        marks: Combining marks that form no letter with their base.
        tags: HTML tags inside words.
        comments: HTML comments.
        entities: Entities for plain letters.
        encoded: Passages in base64, in escapes, with spaced letters, backwards or in ROT13; they are read decoded.
        messages: Messages of five or more words in tag characters, which no reader sees. They are read after the rest.
        unread: Characters after `MAX_TEXT_CHARS`, which are not read.
        asides: Messages of five or more words in comments and tags. They are read after the rest too, but not shown to
            a model; honest pages have them, so they count as nothing hidden.
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
    asides: int = 0

    def __bool__(self) -> bool:
        return self is not NOTHING and any(_SIGNS(self))

    @property
    def any(self) -> bool:
        """Whether the raw text has other words than are shown, so that its embedding may say something else."""
        return any(_COUNTS(self))

    def __add__(self, other: Hidden) -> Hidden:
        return self if other is NOTHING else Hidden(*map(add, _COUNTS(self), _COUNTS(other)))

    def __str__(self) -> str:
        """The counts in words, such as "37 invisible characters inside words, 2 HTML comments"; "" if all are 0."""
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
"""One and several hidden parts of a kind."""

_COUNTS, _SIGNS = attrgetter(*(field.name for field in fields(Hidden))), attrgetter(*WORDS)
NOTHING = Hidden()
"""Nothing is hidden, as in most texts."""


@dataclass(frozen=True, slots=True)
class Canonical:
    """A canonical text, and what was hidden in the raw text."""

    text: str
    hidden: Hidden

    def __sizeof__(self) -> int:
        return 400 + getsizeof(self.text)


def canonical(text: str, *, markup: bool = True, edits: Edits = UNTRACED) -> Canonical:
    """Convert a text to its canonical form.

    In this order, until nothing changes: decodes encoded parts (`text.decoding`); resolves comments, tags and entities
    (`text.markup`); removes invisible characters without meaning; applies NFKC, except where it would change a meaning;
    removes marks that form no letter with their base (`text.invisible`); replaces look-alikes inside words by letters
    of one script (`text.homoglyphs`); collapses white space to one space or one line break. Messages of five or more
    words in comments, attributes and tag characters are appended, each on a separate line, because a model that gets
    the raw text reads them.

    Accents, scripts, emoji, code, formulas, quotation marks and dashes are unchanged. Indentation, blank lines,
    variants of ideographs, and tone marks that form no letter with their consonant are lost.

    Args:
        text: Any text, including invalid Unicode.
        markup: False keeps tags, comments and entities, for questions, which may be about them.
        edits: A `text.alignment.Trace` of the text, which maps each character to its source.

    Returns:
        The canonical text and what was hidden. Idempotent: `canonical(canonical(text).text).text` is the same text.

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
    """The one-line texts that are certainly equal to their canonical text, checked together.

    No rule spans several lines here: spaced letters need two spaces or a tab between words, which no tidy line has.
    Complexity: O(n) time for n characters, a fraction of that of `canonical` for many short texts.
    """
    tidy = [text for text in texts if "\n" not in text and TIDY.fullmatch(text)]
    decoded = decode_text("\n".join(tidy))[0].split("\n")
    if len(decoded) != len(tidy):
        return frozenset()
    return frozenset(text for text, plain in zip(tidy, decoded, strict=True) if text == plain)


def _round(text: str, markup: bool, edits: Edits) -> tuple[str, Hidden]:
    """One round of conversion: the new text, and what was hidden."""
    comments = inside = plain = 0
    asides = list[str]()
    text, messages, smuggled = hidden_words(text, edits)
    if markup:
        text, commented, comments = strip_comments(text, edits)
        text, tagged, inside = tags(text, edits)
        asides = commented + tagged
        text, plain = entities(text, edits)
    text, unseen = invisible(text, edits)
    text, styled = compose_nfkc(text, edits)
    text, marks = strip_marks(text, edits)
    text, letters = one_script(text, edits)
    text = blanks(edits.append_messages(text, [*messages, *asides]), edits)
    told = Hidden(messages=len(messages), asides=len(asides))
    return text, told + Hidden(unseen + smuggled, letters, styled, marks, inside, comments, plain)


INDENTED, LINE_START = re.compile(r"\n[ \t]"), re.compile(r"(?m)^(?=.)")
MAX_INDENT = 80
"""Maximum characters of an indentation that is shown."""

MARK = "[removed]"
"""Replaces removed text in prompts."""


def redact_text(text: str, regions: Sequence[Region], mark: str = "") -> Canonical:
    """The canonical text without some regions of the raw text, and what was hidden in the raw text.

    Args:
        text: The raw text.
        regions: Regions to remove, in any order.
        mark: Replaces removed text that was visible.

    Returns:
        The rest, in canonical form again, so that no cut can form a tag.

    Complexity: O(n log n) time, O(n) memory for n characters.
    """
    return redact_with_trace(text, regions, mark)[0]


def shown_text(text: str, regions: Sequence[Region] = ()) -> str:
    """The text for a model: canonical, with `MARK` in place of regions, indented as it was, without asides.

    Args:
        text: The raw text.
        regions: Regions to remove, in any order.

    Complexity: O(n log n) time, O(n) memory for n characters; several times that of `canonical`.
    """
    whole, trace = redact_with_trace(text, regions, MARK)
    changes = [(start, end, "") for start, end in trace.messages(ASIDE)]
    for at in (line.start() for line in LINE_START.finditer(whole.text if "\n" in whole.text else "")):
        origin = int(trace.start[at])
        before = text[max(origin - MAX_INDENT, 0) : origin]
        indent = before[before.rfind("\n") + 1 :]
        if indent and not indent.strip(" \t") and not trace.hidden[at] and trace.end[at] > origin:
            changes.append((at, at, indent))
    return UNTRACED.put(whole.text, sorted(changes)).rstrip()


def redact_with_trace(text: str, regions: Sequence[Region] = (), mark: str = "") -> tuple[Canonical, Trace]:
    """`redact_text`, and the source of its characters."""
    trace = Trace(text)
    whole = canonical(text, edits=trace)
    if not regions:
        return whole, trace
    left = trace.put(whole.text, list(_cuts(whole.text, trace, regions, mark)))
    return Canonical(canonical(left, edits=trace).text, whole.hidden), trace


def _cuts(text: str, trace: Trace, regions: Sequence[Region], mark: str) -> Iterator[Change]:
    """The removals in a canonical text; those with only white space between them are joined."""
    gone = trace.within(regions)
    blank = np.fromiter(map(str.isspace, text), bool, len(text))
    words = np.cumsum(np.concatenate([[0], ~gone & ~blank]))  # number of remaining letters before each position
    edges = np.flatnonzero(np.diff(np.concatenate([[False], gone, [False]]).astype(np.int8)))
    stretches: list[Region] = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stretches and words[stretches[-1][1]] == words[start]:
            stretches[-1] = stretches[-1][0], end
        else:
            stretches.append((start, end))
    for start, end in stretches:
        visible = gone[start:end] & ~blank[start:end] & (trace.hidden[start:end] == 0)
        shown = mark if mark and visible.any() else ""
        before = " " if text[start - 1 : start].strip() else ""
        after = " " if text[end : end + 1].strip() else ""
        yield start, end, f"{before}{shown}{after}" if shown else before and after
