"""Replaces homoglyphs: letters of other scripts that look like Latin ones, and the reverse.

`TWINS` are pairs of Unicode's confusables (UTS 39; see NOTICE for its licence), for scripts with letters that resemble
Latin ones, and small capitals; `NEAR` are ours.
"""

from __future__ import annotations

import re
from operator import ne

from unpoison.text.alignment import UNTRACED, Edits
from unpoison.text.tokens import word_list
from unpoison.utils.assets import read_data

__all__ = ["one_script"]

TWINS = word_list("twins")
"""Pairs of a letter and the ASCII letter that it looks like."""

NEAR = word_list("near_twins")
"""Letters that resemble these in the middle of a Latin word, without being identical."""

_RANGES = read_data("characters.json")
STRANGE = _RANGES["strange"]
PHONETIC = r"\u0250-\u02af\u1d00-\u1d2b\ua730\ua731"
LATIN = r"A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"

STRICT = {ord(pair[0]): pair[1] for pair in TWINS}
STRICT[ord("І")] = STRICT[ord("Ӏ")] = "I"
STRICT[ord("г")] = "r"
LOOSE = {**{ord(pair[0]): pair[1] for pair in NEAR}, **STRICT}
BACK = {name: dict(zip(map(ord, latin), letters)) for name, (latin, letters) in _RANGES["twins"].items()}

FOREIGN = re.compile(rf"[{STRANGE}{PHONETIC}]")
ANY_LATIN = re.compile(rf"[{LATIN}]")
_TWINS = "".join(map(chr, STRICT))
OWN = re.compile(rf"(?![{_TWINS}])[{STRANGE}{PHONETIC}]")
"""Letters that do not resemble Latin ones."""
SPELT = re.compile(rf"(?![{_TWINS}])[{PHONETIC}]|[\u02c8\u02cc\u02d0]")
"""Phonetic letters and marks without a Latin lookalike: the word is a phonetic transcription."""
PLAIN_LATIN = re.compile(r"[bdfghijklmnqrstuvwzDFGIJLNQRSUVWZ]")
"""Latin letters without a Cyrillic twin."""
GREEK = re.compile(r"[\u0370-\u03ff]")
CYRILLIC = re.compile(r"[\u0400-\u052f\ua640-\ua69d\u1c80-\u1c8a]")
AMID = re.compile(r"(?<=[a-z])[\u03b1-\u03c9](?=[a-z])")
WORD = re.compile(rf"[{LATIN}{STRANGE}{PHONETIC}0-9\u02c8\u02cc\u02d0]+")


def one_script(text: str, edits: Edits = UNTRACED) -> tuple[str, int]:
    """Unify the script of each word that mixes scripts by homoglyphs; returns the text and the number of changes.

    - A word with Latin letters whose other letters all have Latin twins becomes Latin; in a Cyrillic or Greek text it
      becomes Cyrillic or Greek, if the Latin letters all have twins there.
    - A Latin word with letters that merely resemble Latin ones (a Cyrillic ka for k, a Greek alpha for a) becomes Latin
      if they are a minority. Greek ones must be between small letters, because a word that begins or ends with one is
      a formula or the name of a protein. Phonetic transcriptions stay.
    - A word of twins only becomes Latin in a Latin text without unmistakable letters of another script; a single Greek
      letter stays, because it is a formula.
    - A Latin stem with a Cyrillic ending stays in a Cyrillic text.

    Linear time.
    """
    if text.isascii() or not FOREIGN.search(text) or not ANY_LATIN.search(text):
        return text, 0
    own, plain = _count(OWN, text), _count(PLAIN_LATIN, text)
    settled_words: dict[str, str] = {}

    def unify_word(match: re.Match[str]) -> str:
        word = match[0]
        if word.isascii():
            return word
        if word not in settled_words:
            settled_words[word] = _unify_script(word, latin=plain >= own, pure=own == 0)
        return settled_words[word]

    new = edits.sub(WORD, unify_word, text)
    return new, sum(map(ne, text, new))  # letters are replaced one by one


def _unify_script(word: str, *, latin: bool, pure: bool) -> str:
    """Unify one word; `latin`: the text is Latin; `pure`: it has no unmistakable letter of another script."""
    if not FOREIGN.search(word) or SPELT.search(word):
        return word
    own = OWN.search(word)
    if not ANY_LATIN.search(word):
        alone = len(word) == 1 and GREEK.match(word)
        return word.translate(STRICT) if latin and pure and not own and not alone else word
    home = "Greek" if GREEK.search(word) and not CYRILLIC.search(word) else "Cyrillic"
    if not latin and not PLAIN_LATIN.search(word):
        back = word.translate(BACK[home])
        return word if ANY_LATIN.search(back) else back
    if not own:
        return word.translate(STRICT)
    if not latin:
        return word
    new = word.translate(LOOSE if AMID.search(word) or not GREEK.search(word) else STRICT)
    strange = _count(FOREIGN, word)
    return new if strange < len(word) - strange else word


def _count(pattern: re.Pattern[str], text: str) -> int:
    return len(text) - len(pattern.sub("", text))
