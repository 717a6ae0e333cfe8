"""A reading of a text without disguises in its spelling and layout.

A mark inside every word, digits for letters, a link after each word, or a line break after every third do not keep a
language model from understanding a text, but a check that counts words or sentences finds none. Unlike the canonical
text, this reading is never displayed. It is only judged, in addition to the canonical one, so errors in it hide
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from unpoison.text.alignment import UNTRACED, Change, Region
from unpoison.text.gibberish import are_frequent
from unpoison.text.homoglyphs import LOOSE
from unpoison.text.tokens import ENGLISH_318, word_list

__all__ = ["is_english", "respell"]

KNOWN = ENGLISH_318 | word_list("injections")
"""Words to recognise after marks inside them are removed: words of injections, and function words."""

BLOCK = 160
"""Characters in a block, judged alone, so that surrounding text cannot dilute the rate of changes."""

TOGETHER = 8
"""Maximum number of adjacent blocks with split words that are joined."""

CHANGED = 0.2
"""Minimum number of changes per word in a block to respell it; changes inside words count twice."""

SPELLING, DENSE, WORN = 2, 6, 2
"""If one in this number of words contains a mark, or for the last has one around it, all marks are removed."""

MIN_MARKS = 4
"""Minimum number of marks inside words for that."""

ACCENTS = 0.25
"""Minimum number of accented letters per word to remove the accents."""

ENGLISH = 0.25
"""The share of `KNOWN` words from which a respelled text is one that was disguised."""

MAX_WORD_LETTERS = 13
"""Maximum letters of a word in `KNOWN`."""

MARKUP = re.compile(
    r"<[^<>]{0,200}>|\[(?=[^\[\]\n]{1,80}\]\()|\]\([^()\s]{0,400}\)|(?:https?://|www\.)\S{1,400}"
    r"|\[/[a-z]{1,8}\]|\[([a-z]{1,8})\](?=[^\[\]]{0,200}\[/\1\])"
    r"|(?<!\\)\\[A-Za-z]{1,20}[0-9]{0,5}(?=[\s{\\~])"
)
"""Tags of any name, marks and targets of links, addresses, tags of forums, and commands of TeX and RTF."""

LETTER = r"[^\W\d_]"
FOLDED = {
    **LOOSE,
    **dict(zip(map(ord, "đħłŧøƀǥɨʉƶıɓƈɗƒɠɦƙɱɲŋƥɋɽʂƭʋⱳƴʐɫ"), "dhltobgiuzibcdfghkmnnpqrstvwyzl")),
    **dict(zip(map(ord, "ƅʝǀɾʈɖɭɳɐɔǝɟƃɥᴉʞɯɹʇʌʍʎ"), "bjlrtdlnacefghikmrtvwy")),
    **dict.fromkeys(map(ord, "\u0640\u02b0\u02bb\u02bc\u02bd\u02be\u02bf\u02cf\ua78b\ua78c"), ""),
}
"""Letters with a bar or a hook, look-alikes, and modifiers that are no letters."""
STRANGE = re.compile(f"[{''.join(map(chr, FOLDED))}]")

DIGITS = dict(zip(map(ord, "0134578@$!|"), "oieastbasil"))
DISGUISED = re.compile(r"(?<![^\s\"'(\[])(?=[^\s0-9@$!|]{0,24}[013-578@$!|])[\w@$!|]{1,24}(?![\w@$|])")

HUMPS = re.compile(r"(?<![^\W_])[A-Za-z](?:[a-z]{0,23}[A-Z]){3,}[a-z]{0,23}(?![^\W_])")
HUMP = re.compile(r"(?<=[a-z])[A-Z]+(?![a-z])|(?<=[A-Za-z])[A-Z](?=[a-z])")
"""The capitals with which a word begins that is written without a space before it."""

PROSE = 3
"""If one in this number of such words is a function word, they are a sentence and no name or title."""

BREAK = re.compile(rf"(?<={LETTER})-\n(?={LETTER})")
JOINT = re.compile(rf"(?<={LETTER})(?:[^\w\s]{{1,3}}|_{{1,3}})(?={LETTER})")
CHAIN = re.compile(rf"(?<!{LETTER}){LETTER}++(?:(?:[^\w\s]{{1,3}}|_{{1,3}}){LETTER}++)++")
EDGE = re.compile(r"(?<!\S)[^\w\s]{1,8}(?![^\w\s])|(?<=\w)[^\w\s]{0,8}[^\w\s.,;:!?][^\w\s]{0,8}(?!\S)")
"""Marks around a word, without those behind it that end a clause."""
PIECE = re.compile(f"{LETTER}+")
NUMBER = re.compile(r"(?<![\w.])[\[(#]?\d[\d:.,/%+-]*[\])>.:]?(?!\w)|\[\d{1,4}\]|(?m:^[#>*+|/-]{1,3} )")
WORD = re.compile(r"[^\W_]+")
ACCENTED = re.compile("[\u00c0-\u00d6\u00d9-\u00f6\u00f9-\u010f\u0112-\u017e\u01cd-\u01dc\u01e6-\u0233\u1e00-\u1ef9]")
SPELT = re.compile(  # most letters are passed over at once
    rf"[^a-z\s](?:(?<={LETTER}[^\w\s])[^\w\s]{{0,2}}(?={LETTER})|(?<=[_@$|])|(?<=!)(?=\w)|(?<=\d)(?={LETTER})"
    rf"|(?<={LETTER}\d)|(?<=[a-z][A-Z])|(?<={STRANGE.pattern}))"
)
LAID = re.compile(r"\d+|[\n<\\\x1e]|://|\]\(|(?m:^[#>*+|/-])|(?<!\S)[^\w\s]")
"""Every possible change involves one of these, so a block with few of them is skipped."""

SPACE, SPACES, LINES = re.compile(r"\s"), re.compile(r" {2,}"), re.compile(r" ?[\n\x1e] ?")


class Respelled(NamedTuple):
    """The respelled blocks of a text.

    Attributes:
        text: The blocks as respelled, with a line break between those that are not adjacent.
        start, end: The source of each character in the original text, shape (n,).
    """

    text: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]


def respell(text: str) -> Respelled | None:
    """Respell the disguised blocks of a text.

    This removes tags of any name, addresses, commands, numbers and numbering; white space inside words, and accents of
    English, if there are many; marks around words, if there are many, and inside them, if there are many or the word
    without the mark is in `KNOWN`. Line breaks become spaces; digits and signs for letters become plain letters, and in
    English letters with bars or hooks and look-alikes. Such changes also apply to a few words of honest texts, so only
    blocks with at least `CHANGED` changes per word are respelled, whatever surrounds them.

    Args:
        text: The canonical text.

    Returns:
        The respelled blocks; None if there are none.

    Complexity: O(n) time for n characters.
    """
    parts, starts, ends, reached = list[str](), list[NDArray[np.int64]](), list[NDArray[np.int64]](), 0
    blocks: dict[str, Respelled | None] = {}  # repeated blocks are read once
    for first, last in _blocks(text):
        block = text[first:last]
        if block not in blocks:
            blocks[block] = _respell_block(block)
        meant = blocks[block]
        if meant is None:
            continue
        if parts and reached < first:
            parts.append("\n")
            starts.append(np.array([first]))
            ends.append(np.array([first]))
        parts.append(meant.text)
        starts.append(meant.start + first)
        ends.append(meant.end + first)
        reached = last
    return Respelled("".join(parts), np.concatenate(starts), np.concatenate(ends)) if parts else None


def _respell_block(block: str) -> Respelled | None:
    """Respell a block; None if too little changes."""
    enough = CHANGED * (block.count(" ") + 1)
    signs = len(LAID.findall(block)) + SPELLING * (len(SPELT.findall(block)) + len(ACCENTED.findall(block)))
    if _crowded(block):
        signs += SPELLING * len(_split_words(block))
    if signs < enough:
        return None
    new, origins, share = _respell_stretch(block)
    return Respelled(new, *np.array(origins, np.int64).reshape(-1, 2).T) if share >= CHANGED else None


def _blocks(text: str) -> Iterator[Region]:
    """Split a text into blocks of about `BLOCK` characters that end with a space, or of `2 * BLOCK` without one.

    Up to `TOGETHER` blocks with split words are joined, because a block may end inside a word.
    """
    start = 0
    while start < len(text):
        end = first = _block_end(text, start)
        if _crowded(text[start:first]) and _crowded(text[first : first + BLOCK]) and _split_words(text[start:first]):
            while end < min(start + TOGETHER * BLOCK, len(text)) and _crowded(text[end : end + BLOCK]):
                end = _block_end(text, end)
        yield start, end
        start = end


def _block_end(text: str, start: int) -> int:
    space = SPACE.search(text, start + BLOCK, start + 2 * BLOCK)
    return space.end() if space else min(start + 2 * BLOCK, len(text))


def _respell_stretch(block: str) -> tuple[str, list[Region], float]:
    """A respelled block, where its characters come from, and the number of changes per word."""
    text, origins, changes = block, [(i, i + 1) for i in range(len(block))], 0
    words = len(WORD.findall(MARKUP.sub(" ", text))) or 1

    def put(found: Sequence[Change], weight: int = SPELLING) -> None:
        nonlocal text, origins, changes
        if found:
            changes += weight * len(found)
            text, origins = UNTRACED.put(text, found), _moved(origins, found)

    put(_split_words(text) if _crowded(text) else ())
    put([(*m.span(), "" if _inside(m) else " ") for m in MARKUP.finditer(text)], weight=1)
    if not text.isascii():
        worn = {m.start(): normalize("NFD", m[0])[0] for m in ACCENTED.finditer(text)}
        plain = worn if len(worn) >= ACCENTS * words else {}
        plain |= {m.start(): FOLDED[ord(m[0])] for m in STRANGE.finditer(text)}
        folded = [(at, at + 1, letter) for at, letter in sorted(plain.items())]
        put(folded if is_english(JOINT.sub("", UNTRACED.put(text, folded))) else ())
    put(_restore_letters(text, words))
    put([change for name in HUMPS.finditer(text) for change in _word_gaps(name)])
    put([(*m.span(), "") for m in BREAK.finditer(text)])
    joints = list(JOINT.finditer(text))
    if len(joints) >= max(MIN_MARKS, words / DENSE):
        put([(*m.span(), "") for m in joints])
    elif joints:
        put([gap for chain in CHAIN.finditer(text) for gap in _gaps(chain)])
    put([(*m.span(), " ") for m in NUMBER.finditer(text)], weight=1)
    edges = [(*m.span(), "") for m in EDGE.finditer(text)]
    put(edges if len(edges) >= max(MIN_MARKS, words / WORN) else (), weight=1)
    put([(*m.span(), " ") for m in SPACES.finditer(text)], weight=0)
    put([(*m.span(), " ") for m in LINES.finditer(text)], weight=1)
    return text, origins, changes / words


def _moved(origins: list[Region], changes: Sequence[Change]) -> list[Region]:
    """Where characters come from after changes, as a `Trace` has it: its arrays pay for longer texts than a block."""
    moved, place = list[Region](), 0
    for start, end, new in changes:
        alike = len(new) == end - start  # replaced character by character
        moved += origins[place : end if alike else start]
        moved += [] if alike else [(origins[start][0], origins[max(end - 1, start)][1])] * len(new)
        place = end
    return moved + origins[place:]


def is_english(text: str) -> bool:
    """Whether a text has so many of the words to recognise that English is meant."""
    found = PIECE.findall(text.lower())
    return sum(word in KNOWN for word in found) >= ENGLISH * len(found)


def _inside(match: re.Match[str]) -> bool:
    before, behind = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return before.isalpha() and behind.isalpha()


def _restore_letters(text: str, words: int) -> list[Change]:
    """Words with digits or signs for letters, converted to letters; only known words, unless there are many."""
    found = [(*m.span(), m[0], sum(map(str.isalpha, m[0]))) for m in DISGUISED.finditer(text)]
    dense = sum(0 < letters < len(word.rstrip("!")) for _, _, word, letters in found) >= max(MIN_MARKS, words / DENSE)
    changes = list[Change]()
    for start, _, word, letters in found:
        core = word.rstrip("!")
        plain = core.translate(DIGITS).lower()
        if plain not in KNOWN and "1" in core:
            other = core.replace("1", "l").translate(DIGITS).lower()
            plain = other if other in KNOWN or "!" in core else plain
        if letters < len(core) and plain.isalpha() and (dense or (letters and plain in KNOWN)):
            changes.append((start, start + len(core), plain))
    return changes


def _word_gaps(name: re.Match[str]) -> list[Change]:
    """Spaces between words that are written without; a capital inside a sentence would make it a title."""
    words = HUMP.sub(r" \g<0>", name[0]).lower().split()
    lower = PROSE * sum(word in ENGLISH_318 for word in words) >= len(words)
    humps = HUMP.finditer(name.string, *name.span())
    return [(*hump.span(), " " + (hump[0].lower() if lower and len(hump[0]) == 1 else hump[0])) for hump in humps]


def _gaps(chain: re.Match[str]) -> list[Change]:
    """The marks inside known words of a chain, the longest words first; a sequence of known words is not joined."""
    pieces = [piece.span() for piece in PIECE.finditer(chain.string, *chain.span())]
    gaps, i = list[Change](), 0
    while i < len(pieces):
        last, word = i, chain.string[slice(*pieces[i])].lower()
        whole = word in KNOWN
        for j in range(i + 1, len(pieces)):
            piece = chain.string[slice(*pieces[j])].lower()
            word, whole = word + piece, whole and piece in KNOWN
            if len(word) > MAX_WORD_LETTERS:
                break
            if not whole and word in KNOWN:
                last = j
        gaps += [(pieces[j][1], pieces[j + 1][0], "") for j in range(i, last)]
        i = last + 1
    return gaps


# White space inside words.

LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f"
RUN = re.compile(rf"(?<![^\W_])[{LATIN}]++(?:[ \n][{LATIN}]++)++(?![^\W_])")
"""Words or pieces of words, separated by white space only."""
SPLIT_PIECE = re.compile(r"\S+")

CROWDED = 5.0
"""Average characters per white space below which words may be split: English has six, or three if split in halves."""

LONGEST = 16
"""Maximum letters of a joined word."""

KNOWN_COST, WORD_COST = 1.0, (9.0, 2.6, 2.2, 1.5)
"""The cost of a word of `KNOWN`, and of a frequent word with one, two, three or more letters."""

BEGIN_COST, LETTER_COST, LONG, BEYOND_COST = 1.5, 0.7, 11, 1.0
"""The cost of beginning an unknown word, of each of its letters, and of each letter after the eleventh in addition."""

ENDINGS = frozenset(("s", "d", "ed", "es", "er", "ers", "ing", "ly", "al", "ment", "ness", "tion"))
"""Endings, which are joined to the word before them."""

ATTACHED = re.compile(r"(?<=[^\W_]) (?=[.,;:!?)\u2019'])|(?<= ['\u2019]) (?=[std] )|(?<=[^\W_]) - (?=[^\W_])")
"""White space next to a mark that has none in normal texts."""

FEWEST = 4
"""Minimum number of split words."""

SHARE = 0.4
"""Minimum share of pieces that belong to known split words."""


def _crowded(text: str) -> bool:
    """Whether there is so much white space that some may be inside words."""
    return CROWDED * (text.count(" ") + text.count("\n")) > len(text)


@lru_cache(maxsize=4)  # called up to three times in a row with the same block
def _split_words(text: str) -> tuple[Change, ...]:
    """The white space inside words, as in "po ison", "p o i s o n" or "poi<br>son"; empty if few words are split.

    Pieces are joined to known words at minimal cost; pieces between these form one unknown word, up to the next capital
    letter.

    Complexity: O(n) time for n characters, times `LONGEST`.
    """
    runs = [[piece.span() for piece in SPLIT_PIECE.finditer(text, *run.span())] for run in RUN.finditer(text)]
    found, split, count = list[Change](), list[int](), sum(map(len, runs))
    for pieces, known in zip(runs, _frequent(text, runs)):
        for first, last, whole in _words(text, pieces, known):
            found += [(pieces[i][1], pieces[i + 1][0], "") for i in range(first, last - 1)]
            if whole and not all(text[slice(*pieces[i])].lower() in KNOWN for i in range(first, last)):
                split.append(last - first)
    if len(split) < FEWEST or sum(split) < SHARE * count:
        return ()
    marks = [(*m.span(), m[0].strip()) for m in ATTACHED.finditer(text)]
    return tuple(sorted({start: (start, end, new) for start, end, new in (*found, *marks)}.values()))


def _words(text: str, pieces: list[Region], known: dict[int, list[int]]) -> list[tuple[int, int, bool]]:
    """The words of several pieces: first piece, last piece (exclusive), and whether the word is known."""
    count = len(pieces)
    cost, before, familiar = [0.0] * (count + 1), [0] * (count + 1), [False] * (count + 1)
    strange, begun, long = 0.0, 0, 0  # the current unknown word: its cost, first piece and length
    lowered = [text[start:end].lower() for start, end in pieces]
    for last, (start, end) in enumerate(pieces, 1):
        size = end - start
        anew = cost[last - 1] + BEGIN_COST + LETTER_COST * size + BEYOND_COST * max(0, size - LONG)
        on = strange + LETTER_COST * size + BEYOND_COST * max(0, min(long + size - LONG, size))
        capital = last > 1 and text[start].isupper() and text[start - 2].islower()
        if capital or long == 0 or anew < on:
            strange, begun, long = anew, last - 1, size
        else:
            strange, long = on, long + size
        cost[last], before[last] = strange, begun
        for first in known.get(last, ()):
            word = "".join(lowered[first:last])
            price = cost[first] + (KNOWN_COST if word in KNOWN else WORD_COST[min(len(word), len(WORD_COST)) - 1])
            if price < cost[last]:
                cost[last], before[last], familiar[last] = price, first, True
    words, last = list[tuple[int, int, bool]](), count
    while last > 0:
        words.append((before[last], last, familiar[last]))
        last = before[last]
    return [word for word in _with_endings(lowered, words[::-1]) if word[1] - word[0] > 1]


def _with_endings(lowered: list[str], words: list[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Words, joined with endings that follow them."""
    whole = list[tuple[int, int, bool]]()
    for first, last, known in words:
        word = "".join(lowered[first:last])
        if whole and word in ENDINGS and word not in KNOWN:
            whole[-1] = (whole[-1][0], last, whole[-1][2])
        else:
            whole.append((first, last, known))
    return whole


def _frequent(text: str, runs: list[list[Region]]) -> list[dict[int, list[int]]]:
    """For each run, the known words: by their end (exclusive), their first pieces, the nearest first."""
    pieces = [piece for run in runs for piece in run]
    if not pieces:
        return []
    edge = np.cumsum([0, *(end - start for start, end in pieces)])
    size = [len(run) for run in runs]
    close = np.repeat(np.cumsum(size), size)
    count = np.arange(len(pieces))
    reach = np.minimum(np.searchsorted(edge, edge[:-1] + LONGEST, side="right") - 1, close) - count
    begin = np.repeat(count, np.maximum(reach, 0))
    until = begin + 1 + np.arange(len(begin)) - np.searchsorted(begin, begin)
    hit = are_frequent("".join(text[slice(*piece)] for piece in pieces), edge[begin], edge[until])
    owner = np.repeat(np.arange(len(runs)), size)[begin[hit]]
    offset = (close - np.repeat(size, size))[begin[hit]]
    found = [dict[int, list[int]]() for _ in runs]
    for run, start, end in np.column_stack([owner, begin[hit] - offset, until[hit] - offset])[::-1].tolist():
        found[run].setdefault(end, []).append(start)
    return found
