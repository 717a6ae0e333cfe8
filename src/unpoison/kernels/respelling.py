"""What a text says to somebody who reads past its spelling and its layout.

A mark inside every word, digits for letters, a link behind each word or a line for every three are no hindrance to a
language model, and leave no word and no sentence for whoever counts these. Unlike the canonical text this reading is
no text to show: it is only judged, beside the other one, so a mistake in it hides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Container

from unpoison.kernels.alignment import UNTRACED, Change, Edits
from unpoison.kernels.look_alikes import LOOSE

__all__ = ["respelled"]

DENSE = 6
"""Where every so manieth word has a mark inside, the marks are no words' own."""

FEWEST = 4
"""So many marks inside words at least are said to be dense."""

LONGEST = 13
"""Letters of a word that is known."""

MARKUP = re.compile(
    r"<[^<>]{0,200}>|\]\([^()\s]{0,400}\)|(?:https?://|www\.)\S{1,400}"
    r"|(?<!\\)\\[A-Za-z]{1,20}[0-9]{0,5}(?=[\s{\\~])"
)
"""Tags of any name, the targets of links, addresses, the commands of TeX and RTF."""

LETTER = r"[^\W\d_]"
FOLDED = {
    **LOOSE,
    **dict(zip(map(ord, "đħłŧøƀǥɨʉƶıɓƈɗƒɠɦƙɱɲŋƥɋɽʂƭʋⱳƴʐɫ"), "dhltobgiuzibcdfghkmnnpqrstvwyzl")),
    **dict(zip(map(ord, "ƅʝǀɾʈɖɭɳɐɔǝɟƃɥᴉʞɯɹʇʌʍʎ"), "bjlrtdlnacefghikmrtvwy")),
    **dict.fromkeys(map(ord, "\u0640\u02b0\u02bb\u02bc\u02bd\u02be\u02bf\u02cf\ua78b\ua78c"), ""),
}
"""Letters with a bar or a hook, and look-alikes anywhere; modifiers that are no letter of a word."""
STRANGE = re.compile(f"[{''.join(map(chr, FOLDED))}]")

DIGITS = dict(zip(map(ord, "0134578@$!|"), "oieastbasil"))
DISGUISED = re.compile(r"(?<![^\s\"'(\[])(?=[^\s0-9@$!|]{0,24}[013-578@$!|])[\w@$!|]{1,24}(?![\w@$|])")

BREAK = re.compile(rf"(?<={LETTER})-\n(?={LETTER})")
JOINT = re.compile(rf"(?<={LETTER})(?:[^\w\s]{{1,3}}|_{{1,3}})(?={LETTER})")
CHAIN = re.compile(rf"{LETTER}+(?:(?:[^\w\s]{{1,3}}|_{{1,3}}){LETTER}+)+")
PIECE = re.compile(f"{LETTER}+")
NUMBER = re.compile(r"(?<![\w.])[\[(#]?\d[\d:.,/%+-]*[\])>.:]?(?!\w)|\[\d{1,4}\]|(?m:^[#>*+|/-]{1,3} )")
WORD = re.compile(r"[^\W_]+")
LINES = re.compile(r"\s*\n\s*")
SPACES = re.compile(r" {2,}")


def respelled(text: str, known: Container[str], edits: Edits = UNTRACED) -> tuple[str, float]:
    """A text without what stands inside its words and between its lines, and how much was changed.

    Out go tags of any name, addresses, commands, numbers and numbering; marks inside words where many words have one,
    elsewhere where the word without it is known; line breaks become spaces. Digits and signs that stand for letters,
    letters with bars or hooks and look-alikes become letters.

    Args:
        text: Canonical.
        known: Words in lower case that are whole without a mark.
        edits: A `kernels.alignment.Trace` of the text.

    Returns:
        The text, and the share of changes among its words.

    Complexity: O(n) time for n characters.
    """
    words = len(WORD.findall(text)) or 1
    changes = 0

    def put(found: list[Change]) -> None:
        nonlocal text, changes
        if found:
            changes += len(found)
            text = edits.put(text, found)

    put([(*m.span(), "" if _inside(m) else " ") for m in MARKUP.finditer(text)])
    if not text.isascii():
        put([(*m.span(), FOLDED[ord(m[0])]) for m in STRANGE.finditer(text)])
    put(_lettered(text, known, words))
    put([(*m.span(), "") for m in BREAK.finditer(text)])
    joints = list(JOINT.finditer(text))
    if len(joints) >= max(FEWEST, words / DENSE):
        put([(*m.span(), "") for m in joints])
    elif joints:
        put([gap for chain in CHAIN.finditer(text) for gap in _gaps(chain, known)])
    put([(*m.span(), " ") for m in NUMBER.finditer(text)])
    put([(*m.span(), " ") for m in LINES.finditer(text)])
    return edits.sub(SPACES, " ", text), changes / words


def _inside(match: re.Match[str]) -> bool:
    return match.string[match.start() - 1 : match.start()].isalpha() and match.string[match.end() :][:1].isalpha()


def _lettered(text: str, known: Container[str], words: int) -> list[Change]:
    """Words with digits or signs among their letters, all letters; where they are dense, words of digits too."""
    found = [(*m.span(), m[0], sum(map(str.isalpha, m[0]))) for m in DISGUISED.finditer(text)]
    mixed = sum(0 < letters < len(word.rstrip("!")) for _, _, word, letters in found)
    least = 0 if mixed >= max(FEWEST, words / DENSE) else 1
    changes = list[Change]()
    for start, end, word, letters in found:
        core = word.rstrip("!")
        plain = core.translate(DIGITS).lower()
        if plain not in known and "1" in core:
            other = core.replace("1", "l").translate(DIGITS).lower()
            plain = other if other in known or "!" in core else plain
        if letters < len(core) and letters >= least * (len(core) - 1) / 2 and plain.isalpha():
            changes.append((start, start + len(core), plain))
    return changes


def _gaps(chain: re.Match[str], known: Container[str]) -> list[Change]:
    """The marks in a chain of pieces that part a known word, the longest first; pieces that are all known stay apart."""
    pieces = [piece.span() for piece in PIECE.finditer(chain.string, *chain.span())]
    gaps, i = list[Change](), 0
    while i < len(pieces):
        last, word = i, chain.string[slice(*pieces[i])].lower()
        whole = word in known
        for j in range(i + 1, len(pieces)):
            piece = chain.string[slice(*pieces[j])].lower()
            word, whole = word + piece, whole and piece in known
            if len(word) > LONGEST:
                break
            if not whole and word in known:
                last = j
        gaps += [(pieces[j][1], pieces[j + 1][0], "") for j in range(i, last)]
        i = last + 1
    return gaps
