"""Keywords and key phrases of a short answer, without a model (RobustRAG, keyword aggregation)."""

from __future__ import annotations

import re

from unpoison.text.tokens import ENGLISH_318

__all__ = ["empty", "keywords"]

_CONTENT = frozenset(
    """
    amount bill bottom cry eight eleven fifteen fifty fire five forty four front hundred interest mill mine nine no
    nobody nothing part show side six sixty system ten third three top twelve twenty two un us
    """.split()  # noqa: SIM905 - a list literal of this length is unreadable
)
"""Stop words that can be an answer, or part of a name."""

_VERBS = frozenset(
    """
    became become becomes began begin begins born called came come comes contain contains did died does doing gave
    gives goes going gone got had happen happens has have held hold holds include includes kept knew know known knows
    lies made make makes mean means met named plays put refers run runs said says sang sat saw say seen sold spoke
    stand stands states stood take taken takes taught tell tells thought told took went won wrote written
    """.split()  # noqa: SIM905
)
"""Verbs of typical answers; others are recognised by their ending."""

_FUNCTION = ENGLISH_318 - _CONTENT
_BREAKS = _FUNCTION | _VERBS

_PAST = re.compile(r"[a-z]{2,}[^e\W\d]ed|[a-z]{4,}ing")
"""Lower-case verb forms: recorded, directing; not speed, ring or Reading."""

_TOKEN = re.compile(
    r"\d+(?:[.,:/]\d+)*(?:st|nd|rd|th|%)?"  # 1990, 1,300, 3.5, 4th, 2%
    r"|(?:[^\W\d_]\.){2,}"  # U.S.
    r"|[^\W_]+(?:['\u2019\-][^\W_]+)*"  # Paris, O'Neill, semi-final
    r"|\S"  # anything else breaks a phrase
)


def keywords(answer: str) -> frozenset[str]:
    """The phrases and single words of an answer, and the whole answer.

    The paper tags parts of speech and takes maximal runs without verbs, function words and punctuation, as lemmas. Here
    function words and frequent verbs come from lists, other verbs are recognised by -ed and -ing, and words are not
    lemmatised: "city" and "cities" are two keywords. An unrecognised verb stays inside its phrase; the single words of
    the phrase are keywords anyway. A capitalised list word inside an answer belongs to a name ("It was The Who"), and
    an answer of list words only is a keyword without its final period ("Taken.").

    Args:
        answer: A short answer, in any language; function words are known in English only.

    Returns:
        Each keyword once, with case. Linear time, up to the length of phrases.
    """
    phrases: set[str] = set()
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(answer):
        if _breaks(token[0], first=token.start() == 0):
            phrases |= _phrase(answer, run)
            run = []
        else:
            run.append(token)
    phrases |= _phrase(answer, run)
    whole = " ".join(answer.split())
    bare = set() if phrases else {whole.rstrip(".!") or whole}
    return frozenset(phrases | bare | {whole} if whole else phrases)


def empty(keyword: str) -> bool:
    """Whether a keyword is uninformative: no letter or digit, or only function words that are not part of a name."""
    words = [token for token in _TOKEN.findall(keyword) if token[0].isalnum()]
    return all(word.lower() in _FUNCTION and (i == 0 or not word[0].isupper()) for i, word in enumerate(words))


def _breaks(token: str, *, first: bool) -> bool:
    if not token[0].isalnum():
        return True
    named = token[0].isupper() and not first and len(token) > 1
    return (token.lower() in _BREAKS and not named) or _PAST.fullmatch(token) is not None


def _phrase(answer: str, run: list[re.Match[str]]) -> set[str]:
    if not run:
        return set()
    return {" ".join(answer[run[0].start() : run[-1].end()].split()), *(token[0] for token in run)}
