"""Detects texts in languages other than English, by script and function words.

Only evidence for another language counts: names, numbers, tables and code have no function words, and count as English.
Short texts such as questions work too; for a text in two languages the more frequent one is returned.
"""

from __future__ import annotations

import re
from functools import cache

from unpoison.text.tokens import word_list

__all__ = ["FUNCTION_WORDS", "other_language"]

MAX_CHARS = 4000
"""Maximum characters that are read: the first thousand words reveal the language."""

ENGLISH = word_list("english")
"""Function words of questions and running text, but not of lists of names. "in", "an" and "a" are also German."""

LISTED = ("de", "es", "fr", "it", "pt", "nl", "sv", "da", "pl", "cs", "tr", "id")
FUNCTION_WORDS = {name: word_list(f"in_{name}") for name in LISTED}
"""Frequent words by language, of two letters or more: single letters are initials and formulas in English.

Danish covers Norwegian.
"""

PARTICLES = word_list("particles")
"""Foreign words in names that are common in English texts: they count only together with others."""

ASKING = word_list("asking")
"""Words of the lists that begin a question: one of them suffices."""

WORD = re.compile(r"[^\W\d_]+|[¿¡]")

QUOTED = re.compile(
    r"""["\u201c\u201e\u00ab][^"\u201c\u201d\u00bb\n]{1,80}["\u201c\u201d\u00bb]"""
    r"""|(?<!\w)['\u2018\u201a][^'\u2018\u2019\n]{1,80}['\u2018\u2019](?!\w)"""
)
"""A short quotation: an English question may quote German."""

LATIN = re.compile("[A-Za-zªº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]+")

SCRIPTS = {
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"),
    "ja": re.compile("[\u3040-\u30ff]+"),
    "ko": re.compile("[\u1100-\u11ff\uac00-\ud7af]+"),
    "und-Cyrl": re.compile("[\u0400-\u052f]+"),
    "und-Arab": re.compile("[\u0600-\u06ff\u0750-\u077f]+"),
}

RUN = re.compile(r"[^\W\d_]{2,}")

MIN_WORDS, SHARE = 12, 0.15
"""For an unlisted language: minimum lower-case words, and the minimum share with letters that English lacks."""


def other_language(text: str) -> str | None:
    """The language of a text that is not English, as a BCP 47 tag.

    "de"; "und-Cyrl" if only the script is known; "und" for an unlisted language. None for English, and without evidence
    for another language. O(n) time for the first `MAX_CHARS` characters.

    >>> other_language("Wer hat den Brief geschrieben?"), other_language("who wrote the letter to Ada de la Cruz")
    ('de', None)
    """
    text = text[:MAX_CHARS]
    unquoted = WORD.findall(QUOTED.sub(" ", text))
    written = unquoted if len(unquoted) > 1 else WORD.findall(text)
    return (None if text.isascii() else _script(text)) or _language(written)


def _script(text: str) -> str | None:
    """The script of most letters, unless it is Latin; single letters belong to formulas."""
    rest = LATIN.sub(" ", text)
    counts = {name: sum(map(len, letters.findall(rest))) for name, letters in SCRIPTS.items()}
    dense = counts["zh"] + counts["ja"] + counts["ko"]
    if dense + sum(map(len, RUN.findall(rest))) <= sum(map(len, LATIN.findall(text))):
        return None
    if counts["ja"] * 8 > dense:
        return "ja"
    name = max(counts, key=lambda script: counts[script])
    return name if counts[name] else "und"


def _language(written: list[str]) -> str | None:
    """The language whose function words clearly outnumber those of English, and are not only parts of names."""
    words = [word.lower() for word in written]
    english = sum(word in ENGLISH for word in words)
    if not words or 4 * english >= len(words):
        return None
    lists = _lists()
    counts = {name: sum(word in known for word in words) for name, known in lists.items()}
    name = max(counts, key=lambda language: counts[language])
    needed = 1 if words[0] in ASKING or words[:1] == ["¿"] else 2
    if counts[name] >= needed and 2 * counts[name] > 3 * english and 8 * counts[name] >= len(words):
        certain = lists[name] - PARTICLES
        return name if any(word in certain for word in words) else None
    plain = [word for word in written if word[0].islower()]
    accented = sum(not word.isascii() for word in plain)
    enough = len(plain) >= MIN_WORDS and accented >= SHARE * len(plain)
    return "und" if enough and 20 * english < len(words) else None


@cache
def _lists() -> dict[str, frozenset[str]]:
    return {name: listed - ENGLISH for name, listed in FUNCTION_WORDS.items()}
