"""HTML comments, tags and entities out of a text; code, formulas and angle brackets that are no HTML stay."""

from __future__ import annotations

import re
from html import unescape
from html.entities import html5

from unpoison.kernels.alignment import UNTRACED, Change, Edits
from unpoison.kernels.invisible import MESSAGE

__all__ = ["entities", "tags", "uncommented", "unmarkable"]

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
ENTITY = re.compile(r"&(?:#[0-9]{1,8};?|#[xX][0-9a-fA-F]{1,7};?|[A-Za-z][A-Za-z0-9]{1,31};)")
TAG = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]{0,10})"
    r"""((?:[\s/](?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+|[\s/][^<>]*+)?)>"""
)
COMMENT = re.compile("<!--")
SIGN = re.compile("[<&]")
DECLARED = re.compile(r"<!\[CDATA\[|\]\]>|<![A-Za-z][^<>]*+>|<\?[^<>]*+\?>")


def uncommented(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """A text without comments, the messages in them, and how many comments there were. Linear time.

    A comment that does not end loses its mark and stays: nothing behind it may go unread.
    """
    if "<!--" not in text:
        return text, [], 0
    changes, messages, offset, count = list[Change](), list[str](), 0, 0
    while (start := text.find("<!--", offset)) >= 0:
        end = text.find("-->", start + 4)
        if end < 0:
            changes += [(*mark.span(), "") for mark in COMMENT.finditer(text, start)]
            break
        messages += _messages(text, start + 4, end, edits)
        changes.append((start, end + 3, ""))
        offset, count = end + 3, count + 1
    return edits.put(text, changes), messages, count


def _messages(text: str, start: int, end: int, edits: Edits) -> list[str]:
    """What is said between two places where no reader looks."""
    messages = list(MESSAGE.finditer(text, start, end))
    for message in messages:
        edits.mark_message(range(*message.span()))
    return [message[0] for message in messages]


def tags(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """A text without HTML tags, the messages in their attributes, and how many stood inside words.

    Only names that HTML knows count, so `List<int>`, `a < b` and `<stdio.h>` stay; so does a tag in back quotes. A tag
    that begins or ends a block becomes a line break; `10<sup>2</sup>` becomes 10^2.
    """
    if "<" not in text:
        return text, [], 0
    messages: list[str] = []
    count = 0

    def resolved(match: re.Match[str]) -> str:
        nonlocal count
        whole, (closing, name, inside) = match[0], match.groups()
        before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
        if name.lower() not in KINDS or _meant(name, bare=not closing + inside.strip(" /"), before=before, after=after):
            return whole
        count += not KINDS[name.lower()] and before.isalpha() and (after == "<" or after.islower())
        messages.extend(_messages(match.string, *match.span(3), edits))
        if name.lower() == "sup" and not closing and (before.isalnum() or before in ")]") and after.isdigit():
            return "^"
        return KINDS[name.lower()]

    return edits.sub(TAG, resolved, edits.sub(DECLARED, "", text)), messages, count


def _meant(name: str, *, bare: bool, before: str, after: str) -> bool:
    """Whether what looks like a tag is code or a placeholder; `bare` is an opening one without attributes."""
    if before == after == "`":
        return True
    if not (name.islower() or name.isupper()):  # List<Object>, but not <Span>
        return before.isalnum() and bare and not after.isalnum()
    return name in WORDY and bare and (not before or before.isspace()) and not (after.isalnum() or after == "<")


def entities(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """A text with its entities resolved, and how many of them stood for a plain letter or digit, which needs none."""
    plain = 0

    def resolved(match: re.Match[str]) -> str:
        nonlocal plain
        entity = match[0]
        if entity[1] != "#" and entity[1:] not in html5:
            return entity
        meant = unescape(entity)
        plain += meant.isascii() and meant.isalnum()
        return meant

    return (edits.sub(ENTITY, resolved, text), plain) if "&" in text else (text, 0)


def unmarkable(text: str, edits: Edits = UNTRACED) -> str:
    """A text that can hold neither tag nor entity: what is nested more deeply than anybody writes loses its signs."""
    return edits.sub(SIGN, "", text)
