"""Poison in characters or markup that a person, a browser and a language model read past, and a kernel may not.

After "Bad Characters" (Boucher et al., IEEE S&P 2022: invisible characters, homoglyphs) and hidden markup as in
"Not what you've signed up for" (Greshake et al., 2023, Section 4). A reader of canonical text gets every letter back.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Literal

import numpy as np

from unpoison.bench.attacks.base import Attack, Target
from unpoison.bench.attacks.wrapper import Wrapper
from unpoison.utils.checks import among

__all__ = ["KINDS", "Hide"]

Kind = Literal[
    "zero-width",
    "soft-hyphen",
    "word-joiner",
    "grapheme-joiner",
    "variation-selector",
    "accents",
    "look-alikes",
    "fullwidth",
    "bold",
    "tags",
    "comments",
    "entities",
    "case",
]

INSERTED = {
    "zero-width": "\u200b",
    "soft-hyphen": "\u00ad",
    "word-joiner": "\u2060",
    "grapheme-joiner": "\u034f",
    "variation-selector": "\ufe0f",
    "accents": "\u0301",
    "tags": "<b></b>",
    "comments": "<!-- -->",
}
"""What goes into every word of two letters or more, between two of its letters."""

_LETTERS = string.ascii_letters + string.digits
_LATIN = "ABCEHIJKMNOPSTXYZaceijopsxy"
_TWINS = (  # Cyrillic where it has the letter, else Greek
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u039d\u041e\u0420\u0405\u0422\u0425\u03a5\u0396"
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443"
)
LOOK_ALIKES = dict(zip(_LATIN, _TWINS, strict=True))
"""Latin letters and letters of another script that look the same."""

_BOLD = {
    ord(letter): chr(start + offset)
    for letters, start in (
        (string.ascii_uppercase, 0x1D400),
        (string.ascii_lowercase, 0x1D41A),
        (string.digits, 0x1D7CE),
    )
    for offset, letter in enumerate(letters)
}

MAPPED: dict[str, dict[int, str]] = {
    "fullwidth": {code: chr(code - 0x21 + 0xFF01) for code in range(0x21, 0x7F)},
    "bold": _BOLD,
    "entities": {ord(letter): f"&#{ord(letter)};" for letter in _LETTERS},
}
"""Tables for `str.translate`: every character that they know is replaced."""

_WORD = re.compile(r"[^\W_]{2,}")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")


def _mark_inserter(mark: str) -> Callable[[str, np.random.Generator], str]:
    def change(text: str, rng: np.random.Generator) -> str:
        def spoil(word: re.Match[str]) -> str:
            k = int(rng.integers(1, len(word[0])))
            return f"{word[0][:k]}{mark}{word[0][k:]}"

        return _WORD.sub(spoil, text)

    return change


def _mapping(table: dict[int, str]) -> Callable[[str, np.random.Generator], str]:
    return lambda text, _: text.translate(table)


def _swap_lookalikes(text: str, rng: np.random.Generator) -> str:
    """One letter of every word from another script, so that the word is no longer the word."""

    def spoil(word: re.Match[str]) -> str:
        positions = [k for k, letter in enumerate(word[0]) if letter in LOOK_ALIKES]
        if not positions:
            return word[0]
        k = positions[int(rng.integers(len(positions)))]
        return f"{word[0][:k]}{LOOK_ALIKES[word[0][k]]}{word[0][k + 1 :]}"

    return _LATIN_WORD.sub(spoil, text)


KINDS: dict[str, Callable[[str, np.random.Generator], str]] = {
    **{kind: _mark_inserter(mark) for kind, mark in INSERTED.items()},
    **{kind: _mapping(table) for kind, table in MAPPED.items()},
    "look-alikes": _swap_lookalikes,
    "case": lambda text, _: text.upper(),
}


class Hide(Wrapper):
    """Write the poison so that its words are no longer found as words. O(n) in the length of the text.

    Args:
        inner: The attack that crafts.
        kind: Inside every word `zero-width` (U+200B), `soft-hyphen` (U+00AD), `word-joiner` (U+2060),
            `grapheme-joiner` (U+034F), `variation-selector` (U+FE0F), `accents` (U+0301), HTML `tags` or `comments`;
            one letter of every word by `look-alikes` of another script; every letter `fullwidth`, mathematical `bold`,
            as numeric `entities`, or of the other `case` (capitals).
        seed: Chooses the places.

    Raises:
        OptionError: An unknown kind.
    """

    name = "hide"
    summary = "the poison's letters hidden, disguised or in markup"

    def __init__(self, inner: Attack, *, kind: Kind = "zero-width", seed: int = 0) -> None:
        super().__init__(inner, seed=seed, kind=among("kind", kind, tuple(KINDS)))
        self.kind = kind

    def change(self, text: str, target: Target, position: int) -> str:
        return KINDS[self.kind](text, self.rng(target, position))
