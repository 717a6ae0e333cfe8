"""HTML comments, tags and entities out of a text; code, formulas and angle brackets that are no HTML stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from html.entities import html5

from unpoison.text.alignment import UNTRACED, Change, Edits, Region
from unpoison.text.invisible import MESSAGE, MIN_WORDS

__all__ = ["entities", "escape_open_tags", "strip_comments", "tags", "unmarkable"]

BLOCK = """address article aside blockquote body br caption center col colgroup dd details dialog dir div dl dt
    fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main
    menu nav ol optgroup option p pre section summary table tbody td tfoot th thead title tr ul"""
INLINE = """a abbr acronym area audio b base bdi bdo big blink button canvas cite code data del dfn em embed font i
    iframe img input ins kbd label link map mark meta meter nobr noscript object output param picture progress q rb rp
    rt rtc ruby s samp script select slot small source span strike strong style sub sup svg template textarea time
    track tt u var video wbr"""
WORDS = """address article area audio base body button caption center data details dialog figure footer form frame
    head header input label legend link main map menu meter object option output param picture progress section select
    slot source summary table template time title track video"""
"""Names of tags that are words too: in `git clone <source>` and `#include <map>` they are no tags."""

KINDS = dict.fromkeys(BLOCK.split(), "\n") | dict.fromkeys(INLINE.split(), "")
"""What takes the place of a tag, by its name."""

WORDY = frozenset(WORDS.split())
ENTITY = re.compile(
    r"&(?:amp;)*(?:#(?=[0-9])0*+([0-9]{0,8});?|#[xX](?=[0-9a-fA-F])0*+([0-9a-fA-F]{0,7});?|([A-Za-z][A-Za-z0-9]{1,31};))"
)
"""A number with any zeros in front, or a name; however often its own sign was encoded."""
TAG = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]{0,10})"
    r"""((?:[\s/](?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+|[\s/][^<>]*+)?)>"""
)
VALUE = re.compile(
    r"""(?:alt|title|content|label|placeholder|summary|value|(?:aria|data)-[\w-]{1,40}+)\s*+=\s*(?:"([^"]*+)"|'([^']*+)')""",
    re.IGNORECASE,
)
"""An attribute that holds words for a person or a program, and these."""
COMMENT = re.compile("<!--")
COMMENT_END = re.compile("--!?>")
SIGN = re.compile("[<&]")
DECLARED = re.compile(r"<!\[CDATA\[|\]\]>|<![A-Za-z]++([^<>]*+)>")
BOGUS = re.compile(
    r"(?<=[^\W_])<(?:[!?][^<>]*+|/(?:[^A-Za-z<>][^<>]*+)?)>(?=[.,]?[^\W_])"
    r"|(?<=[^\W\d_])</[A-Za-z][\w:.-]*+\s*+>(?=[^\W\d_])"
)
"""What a browser drops without a trace, inside a word; elsewhere it may be code: PHP, XML, the end of a fragment."""


def strip_comments(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """A text without comments, the messages in them, and how many comments there were. Linear time.

    A comment that does not end loses its mark and stays: nothing behind it may go unread.
    """
    if "<!--" not in text:
        return text, [], 0
    changes, inside, offset = list[Change](), list[Region](), 0
    while (start := text.find("<!--", offset)) >= 0:
        end = COMMENT_END.search(text, start + 2)
        if end is None:
            changes += [(*mark.span(), "") for mark in COMMENT.finditer(text, start)]
            break
        inside.append((start + 4, end.start()))
        changes.append((start, end.end(), ""))
        offset = end.end()
    messages = _messages(text, inside, edits)
    return edits.put(text, changes), messages, len(inside)


def _messages(text: str, regions: Sequence[Region], edits: Edits) -> list[str]:
    """What is said in places where no reader looks; what is too short for a message goes on in the next place."""
    if all(begin == until for begin, until in regions):
        return []
    said, places = list[str](), list[int]()
    for begin, until in regions:
        piece = text[begin:until].strip()
        start = text.find(piece, begin)
        end = start + len(piece)
        said += piece, "\n" if len(piece.split()) >= MIN_WORDS else " "
        places += *range(start, end), max(end - 1, start)
    # A mark that stands in every word, such as <!-- x -->, is no message.
    messages = [one for one in MESSAGE.finditer("".join(said)) if len(set(one[0].split())) > 2]
    for message in messages:
        edits.mark_message(places[message.start() : message.end()])
    return [message[0] for message in messages]


def tags(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """A text without HTML tags, the messages in their attributes, and how many stood inside words.

    Only names that HTML knows count, so `List<int>`, `a < b` and `<stdio.h>` stay; so does a tag in back quotes. A tag
    that begins or ends a block becomes a line break; `10<sup>2</sup>` becomes 10^2.
    """
    if "<" not in text:
        return text, [], 0
    declared = list(DECLARED.finditer(text))
    messages = _messages(text, [one.span(1) for one in declared if one[1]], edits)
    text = edits.put(text, [(*one.span(), "") for one in declared])
    count = len(BOGUS.findall(text))
    text = edits.sub(BOGUS, "", text)
    changes, inside = list[Change](), list[Region]()
    for tag in TAG.finditer(text):
        closing, name, attributes = tag.groups()
        kind = KINDS.get(name.lower())
        before, after = text[tag.start() - 1 : tag.start()], text[tag.end() : tag.end() + 1]
        bare = not closing + attributes.strip(" /")
        if kind is None or _is_code(name, bare=bare, before=before, after=after):
            continue
        count += not kind and before.isalpha() and (after == "<" or after.islower())
        inside += _values(tag)
        power = name.lower() == "sup" and not closing and (before.isalnum() or before in ")]") and after.isdigit()
        changes.append((*tag.span(), "^" if power else kind))
    messages += _messages(text, inside, edits)
    return edits.put(text, changes), messages, count


def _values(tag: re.Match[str]) -> list[Region]:
    """Where a tag's attributes may say something: all of them, or what is too short for a message by itself."""
    start, end = tag.span(3)
    if start == end or MESSAGE.search(tag.string, start, end):
        return [(start, end)]
    return [value.span(value.lastindex or 0) for value in VALUE.finditer(tag.string, start, end)]


def _is_code(name: str, *, bare: bool, before: str, after: str) -> bool:
    """Whether what looks like a tag is code or a placeholder; `bare` is an opening one without attributes."""
    if before == after == "`":
        return True
    if not (name.islower() or name.isupper()):  # List<Object>, but not <Span>
        return before.isalnum() and bare and not after.isalnum()
    return name in WORDY and bare and (not before or before.isspace()) and not (after.isalnum() or after == "<")


def entities(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """A text with its entities resolved, and how many of them stood for a plain letter or digit, which needs none."""
    plain = 0

    def resolve(match: re.Match[str]) -> str:
        nonlocal plain
        number, code, name = match.groups()
        if name is not None and name not in html5:
            return f"&{name}"
        meant = unescape(
            f"&{name}" if name is not None else f"&#{number or 0};" if code is None else f"&#x{code or 0};"
        )
        plain += meant.isascii() and meant.isalnum()
        return meant

    return (edits.sub(ENTITY, resolve, text), plain) if "&" in text else (text, 0)


def unmarkable(text: str, edits: Edits = UNTRACED) -> str:
    """A text that can hold neither tag nor entity: what is nested more deeply than anybody writes loses its signs."""
    return edits.sub(SIGN, "", text)


def escape_open_tags(markup: str) -> str:
    """The page, with `<` as a letter where no tag and no comment that begins there ever ends.

    The parser would look for the end from each of them anew, which takes hours for a megabyte; and it raises at some
    `<![`, which for HTML begins a comment like any other `<!`.
    """
    markup = markup.replace("<![", "<! [")
    last = markup.rfind("-->") + 1
    markup = markup[:last] + markup[last:].replace("<!--", "&lt;!--")
    last = markup.rfind(">") + 1
    return markup[:last] + markup[last:].replace("<", "&lt;")
