"""Removes HTML comments, tags and entities from a text, but no code, formulas and other angle brackets."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from html import unescape
from html.entities import html5

from unpoison.text.alignment import ASIDE, UNTRACED, Change, Edits, Region
from unpoison.text.invisible import MESSAGE, MIN_WORDS
from unpoison.text.tokens import word_list

__all__ = ["KINDS", "entities", "strip_comments", "tags", "unmarkable", "without_code_tags"]

KINDS = dict.fromkeys(word_list("html_block"), "\n") | dict.fromkeys(word_list("html_box"), " ")
KINDS |= dict.fromkeys(word_list("html_inline"), "")
"""The replacement of a tag, by its name."""

LONE = frozenset(("br", "hr", "wbr"))
"""Elements that need neither an attribute nor an end tag."""
UNENDED = frozenset("p li dt dd tr td th thead tbody tfoot option optgroup colgroup rp rt".split())  # noqa: SIM905
"""Elements with an optional end tag."""

ENTITY = re.compile(
    r"&(?:amp;)*(?:#(?=[0-9])0*+([0-9]{0,8});?|#[xX](?=[0-9a-fA-F])0*+([0-9a-fA-F]{0,7});?|([A-Za-z][A-Za-z0-9]{1,31};))"
)
"""A number with leading zeros, or a name; also if its ampersand is encoded, repeatedly."""
TAG = re.compile(
    r"<(/?)([A-Za-z][A-Za-z0-9]{0,10})"
    r"""((?:[\s/](?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+|[\s/][^<>]*+)?)>"""
)
ATTRIBUTES = re.compile(
    r"(?:[\s/]*+(?:"
    r"""[a-z_:@*#(\[][\w:.()\[\]*@-]*+\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'<>]++)|[a-z]++(?:-[a-z0-9]++)++|"""
    rf"(?:{'|'.join(sorted(word_list('bare_attributes')))})(?![\w-])))*+[\s/]*+",
    re.IGNORECASE,
)
"""Well-formed attributes: with a value, or HTML's own without one. `<b and c>` has others: it is a comparison."""
VALUE = re.compile(
    r"""(?:alt|title|content|label|placeholder|summary|value|(?:aria|data)-[\w-]{1,40}+)\s*+=\s*(?:"([^"]*+)"|'([^']*+)')""",
    re.IGNORECASE,
)
"""An attribute whose value may be text for a person or a program."""
COMMENT = re.compile("<!--")
COMMENT_END = re.compile("--!?>")
SIGN = re.compile("[<&]")
BLANK = " \t\u00a0"
DECLARED = re.compile(r"<!\[CDATA\[|\]\]>|<![A-Za-z]++([^<>]*+)>")
BOGUS = re.compile(
    r"(?<=[^\W_])<(?:[!?][^<>]*+|/(?:[^A-Za-z<>][^<>]*+)?)>(?=[.,]?[^\W_])"
    rf"|(?<=[^\W\d_])</(?!(?i:{'|'.join(KINDS)})[\s>])[A-Za-z][\w:.-]*+\s*+>(?=[^\W\d_])"
)
"""Markup inside a word that a browser ignores; elsewhere it may be code: PHP, XML, the end of a fragment."""


NEXT_LETTER = re.compile(r"(?:<[^<>]{0,400}+>){0,50}+([^\W\d_]|<(?=[A-Za-z/]))")
"""The letter behind some tags; of too many, the next."""
FENCE = re.compile(r"(?ms)^[ \t>]{0,20}+(`{3,9}+|~{3,9}+)[^`\n]{0,200}+\n(.*?)(?:^[ \t>]{0,20}+\1|\Z)")
"""Code between two lines of Markdown, which its reader sees with its tags."""


def strip_comments(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """Remove comments from a text; also returns the messages in them, and their number. Linear time.

    Of a comment without an end, only the mark is removed, so that the text after it is read.
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


def _messages(text: str, regions: Sequence[Region], edits: Edits, kept: str = "") -> list[str]:
    """The messages in comments and tags; a text too short for a message may continue in the next region.

    Those that are a line of the text that is kept are left out: an earlier round appended them.
    """
    if all(begin == until for begin, until in regions):
        return []
    said, places = list[str](), list[int]()
    for begin, until in regions:
        piece = text[begin:until].strip()
        start = text.find(piece, begin)
        end = start + len(piece)
        said += piece, "\n" if len(piece.split()) >= MIN_WORDS else " "
        places += *range(start, end), max(end - 1, start)
    # A mark that every word contains, such as <!-- x -->, is no message.
    lines, found = {*kept.split("\n")}, MESSAGE.finditer("".join(said))
    messages = [one for one in found if len(set(one[0].split())) > 2 and one[0] not in lines]
    for message in messages:
        edits.mark_message(places[message.start() : message.end()], ASIDE)
    return [message[0] for message in messages]


def tags(text: str, edits: Edits = UNTRACED) -> tuple[str, list[str], int]:
    """Remove HTML tags from a text; also returns the messages in their attributes, and the number of tags inside words.

    Only HTML's own names with well-formed attributes are tags, so `List<int>`, `a<b and c>d` and `<stdio.h>` are kept.
    So is a tag that is only mentioned (`_is_mention`), and those of code between two lines of Markdown, unless one is
    inside a word. A tag that begins or ends a block becomes a line break; `10<sup>2</sup>` becomes 10^2. This does not
    use `html.parser`, which reads broken markup differently in each release of Python and takes quadratic time.
    Linear time.
    """
    if "<" not in text:
        return text, [], 0
    declared = list(DECLARED.finditer(text))
    messages = _messages(text, [one.span(1) for one in declared if one[1]], edits)
    text = edits.put(text, [(*one.span(), "") for one in declared])
    count = len(BOGUS.findall(text))
    text = edits.sub(BOGUS, "", text)
    changes, inside = list[Change](), list[Region]()
    elements = [(tag, _inside_word(tag)) for tag in _elements(text)]
    splitting = [tag.start() for tag, letter in elements if letter]
    code = [fence.span(2) for fence in FENCE.finditer(text)]
    code = [one for one in code if bisect_left(splitting, one[0]) == bisect_left(splitting, one[1])]
    for tag, letter in elements:
        inside += _values(tag)
        nearest = bisect_right(code, (tag.start(), len(text))) - 1
        if nearest >= 0 and tag.start() < code[nearest][1]:
            continue
        closing, name, _ = tag.groups()
        kind = KINDS[name.lower()]
        before, after = text[tag.start() - 1 : tag.start()], text[tag.end() : tag.end() + 1]
        count += letter == "<" or letter.islower()
        power = name.lower() == "sup" and not closing and (before.isalnum() or before in ")]") and after.isdigit()
        changes.append((*tag.span(), "^" if power else kind))
    messages += _messages(text, inside, edits, UNTRACED.put(text, changes) if code else "")
    return edits.put(text, changes), messages, count


def without_code_tags(text: str) -> str:
    """The text with blanks for the tags in its code, but not for their attributes; as long as the text."""

    def blank(tag: re.Match[str]) -> str:
        return f" {' ' * len(tag[1] + tag[2])}{tag[3]} "

    return FENCE.sub(lambda code: TAG.sub(blank, code[0]), text) if "<" in text else text


def _inside_word(tag: re.Match[str]) -> str:
    """The letter with which a word goes on behind an inline tag and those next to it; "" if none does."""
    goes_on = not KINDS[tag[2].lower()] and tag.string[tag.start() - 1 : tag.start()].isalpha()
    found = NEXT_LETTER.match(tag.string, tag.end()) if goes_on else None
    return found[1] if found else ""


def _elements(text: str) -> Iterator[re.Match[str]]:
    """The tags of a text, without mentions."""
    found = [tag for tag in TAG.finditer(text) if tag[2].lower() in KINDS and ATTRIBUTES.fullmatch(tag[3])]
    opened, closed = dict[str, int](), dict[str, int]()
    for tag in found:
        if tag[1]:
            closed[tag[2].lower()] = tag.start()
        else:
            opened.setdefault(tag[2].lower(), tag.start())
    edges = [0, *(edge for tag in found for edge in tag.span()), len(text)]
    for tag, begin, end in zip(found, edges[::2], edges[3::2]):
        name = tag[2].lower()
        paired = opened.get(name, len(text)) < tag.start() if tag[1] else closed.get(name, -1) > tag.start()
        if not _is_mention(tag, text[begin : tag.start()], text[tag.end() : end], paired):
            yield tag


def _is_mention(tag: re.Match[str], left: str, right: str, paired: bool) -> bool:
    """Whether a tag is a name in code or prose, as in "the <script> tag".

    A mention has no attribute, and is between back quotes, after a name (`List<Object>`), or alone between words of
    one line; at the start or end of a line only if its counterpart is missing.

    Args:
        tag: The tag of a known element.
        left: The text between the previous tag and this one.
        right: The text between this tag and the next one.
        paired: Whether the text contains its counterpart.
    """
    before, after, name = left[-1:], right[:1], tag[2]
    if before == after == "`":
        return True
    if not (name.islower() or name.isupper()):
        return before.isalnum() and not (tag[1] or tag[3].strip(" /") or after.isalnum())
    apart = (not before.strip() or before in "([") and (not after.strip() or after in ".,;:!?)]")
    if not apart or tag[3].strip(" /") or name.lower() in LONE:
        return False
    last, first = left.rstrip(BLANK)[-1:], right.lstrip(BLANK)[:1]
    if not (last or tag.start() == len(left)) or not (first or tag.end() + len(right) == len(tag.string)):
        return False  # next to another tag
    return True if last.strip() and first.strip() else not paired and name.lower() not in UNENDED


def _values(tag: re.Match[str]) -> list[Region]:
    """The regions of a tag's attributes to search for messages: all attributes, or the values of single ones."""
    start, end = tag.span(3)
    if start == end or MESSAGE.search(tag.string, start, end):
        return [(start, end)]
    return [value.span(value.lastindex or 0) for value in VALUE.finditer(tag.string, start, end)]


def entities(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """Resolve the entities of a text, and count those for a plain letter or digit, which needs none."""
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
    """Remove the signs of tags and entities from a text, for texts nested more deeply than honest ones."""
    return edits.sub(SIGN, "", text)
