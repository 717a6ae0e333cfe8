"""What a short answer says, for rules that compare answers: its words, quantities, bounds, lists and denials."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from unpoison.text.folding import Token, fold_text, tokens, word_set
from unpoison.text.quantities import Figure, Moment, quantities
from unpoison.text.stopwords import ENGLISH_318
from unpoison.text.units import Count

__all__ = ["DENYING", "AnswerType", "ParsedAnswer", "answer_type", "read_answer"]


class AnswerType(NamedTuple):
    """What the rules look at in a question."""

    stems: frozenset[str]
    date: bool
    number: bool
    polar: bool


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """What the rules look at in an answer.

    Attributes:
        words: All its words, numbers and signs in order, folded, without articles, lead-in and punctuation.
        stems: The stems that are neither function words nor numbers.
        content: Those of them that are not the question's; all where it only repeats these.
        dates, counts: What it dates and counts, in order.
        bounds: Whether it negates, bounds or places in an era or season what it says, as `_BOUNDS` names it.
        signs: The signs outside of numbers that are no punctuation.
        yes: Whether it affirms or denies, None where it does neither.
        bare: Whether it only affirms or denies.
        items: The parts of a list; one for a single answer.
        letters: Its content words as one string, in order.
        owners: Whose something it names ("Curie's husband").
        denied: The stems of what it says it is not ("Paris, not London").
        initials: First letters of its capitalised words.
        capitals: All its letters in lower case if it is nothing but capitals.
    """

    words: tuple[str, ...]
    stems: frozenset[str]
    content: frozenset[str]
    dates: tuple[Moment, ...]
    counts: tuple[Count | Figure, ...]
    bounds: frozenset[str]
    signs: tuple[str, ...]
    yes: bool | None
    bare: bool
    items: tuple[frozenset[str], ...]
    letters: str
    owners: frozenset[str]
    denied: frozenset[str]
    initials: str
    capitals: str


_LEAD = re.compile(
    r"^(?:(?:the|an?|my) )?(?:(?:correct |final )?answer(?: is|:)|it (?:is|was)|they (?:are|were)|in|on|by"
    r"|at(?! (?:least|most)))\s+"
)
_CONTRAST = re.compile(r"(?:[,;(]\s?(?:and |but )?not|\brather than|\binstead of|\bas opposed to)\s")
_NEGATIONS = frozenset(("no", "not", "never", "none", "neither", "nor", "without", "cannot"))
_BOUNDS = {
    word: bound
    for bound, words in {
        "before": "before prior preceding", "until": "until till", "after": "after following", "since": "since",
        "more": "more over above exceeding greater > beyond", "less": "less under below fewer <",
        "least": "minimum ≥ upwards", "most": "maximum ≤", "bc": "bc bce", "ad": "ad ce",
        "spring": "spring", "summer": "summer", "autumn": "autumn fall", "winter": "winter",
        "early": "early", "mid": "mid", "late": "late",
    }.items()
    for word in words.split()
}  # fmt: skip
_POLAR = {"yes": True, "yeah": True, "true": True, "no": False, "nope": False, "false": False}
_EMPTY = (ENGLISH_318 | {"according", "called", "named", "known"}) - word_set(
    "bill fire mill mine system cry full empty front back top bottom side interest serious sincere thick thin no not "
    "never nobody nothing none i may but except"
)
DENYING = frozenset(("no", "not", "never"))
_PUNCTUATION = frozenset(".,:;!?\"'()[]{}*_`~|/\\-\u201c\u201d\u2018\u00ab\u00bb\u2026\u3001\u3002\u300c\u300d")
_DIVIDERS = frozenset((",", ";", "/", "and", "or"))
_ASKS_DATE = re.compile(r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century|decade)\b")
_ASKS_NUMBER = re.compile(r"\bhow (?:many|much|long|old|far|tall|big|high|deep|fast|often|heavy|large|wide|cold|hot)\b"
                          r"|\b(?:number|percentage|population|price|cost|length|height|weight|age) of\b")  # fmt: skip
_ASKS_WHETHER = re.compile(
    r"(?:is|are|was|were|am|do|does|did|can|could|has|have|had|will|would|should|shall|may|might|must)\b"
)


@lru_cache(maxsize=256)
def answer_type(question: str) -> AnswerType:
    """What a question asks for. Linear time; the last 256 are kept, so cut long questions before.

    Args:
        question: Any text.
    """
    text = fold_text(question)
    stem = Stemmer.Stemmer("english", 0).stemWord
    stems = frozenset(stem(word) for word in (_bare(t.text) for t in tokens(text)) if _speaks(word))
    return AnswerType(stems, bool(_ASKS_DATE.search(text)), bool(_ASKS_NUMBER.search(text)),
                  bool(_ASKS_WHETHER.match(text)))  # fmt: skip


@lru_cache(maxsize=256)
def read_answer(text: str, expected: AnswerType) -> ParsedAnswer:
    """What an answer says. Linear time; the last 256 are kept, so cut long answers before.

    Args:
        text: Any text; of "Paris, not London" the head is read, and the tail as `denied`.
        expected: Of the question, whose words count for nothing, and decide whether "1875" is a year.
    """
    whole = fold_text(text)
    plain = _LEAD.sub("", whole) or whole
    contrast = _CONTRAST.search(plain)
    head = plain[: contrast.start()].strip() if contrast and contrast.start() else ""
    stem = Stemmer.Stemmer("english", 0).stemWord

    def stems(answer_tokens: Sequence[Token]) -> frozenset[str]:
        return frozenset(stem(word) for word in (_bare(t.text) for t in answer_tokens) if _speaks(word))

    denied = stems(tokens(plain[contrast.end() :])) if head and contrast else frozenset[str]()
    all_tokens = tokens(plain)
    answer_tokens = tokens(head) if head else all_tokens
    dates, counts, rest = quantities(answer_tokens, date=expected.date, number=expected.number)
    words = [_bare(t.text) for t in answer_tokens]
    bounds = _bounds(words, bool(dates or counts))
    if dates or counts:
        rest = tuple(t for t in rest if t.text not in _BOUNDS and t.text not in DENYING)
    marks = [t.text for t in rest]
    listed = marks.count(",") > 1 or not (_DIVIDERS - {","}).isdisjoint(marks)
    parts = [stems(part) for part in (_split_parts(rest) if listed else [list(rest)])]  # "Tampa, Florida" is one place
    stems_said = frozenset[str]().union(*parts)
    fresh = [part - expected.stems for part in parts]
    if not any(fresh) and not dates and not counts:  # it only repeats the question's words: they are all it says
        fresh = parts if stems_said else [frozenset(words)]
    yes = _POLAR.get(words[0]) if words else None
    if yes is not None and not (expected.polar or words[1:2] in ([], [","], ["."], ["!"], [";"])):
        yes = None  # No Country for Old Men
    if words[1:2] == ["."] and words[2:3] and words[2][0].isdecimal():
        yes = None  # No. 1
    letters = "".join(c for c in text if c.isalpha())
    return ParsedAnswer(
        _plain_words(all_tokens) or (whole,),
        stems_said,
        frozenset[str]().union(*fresh),
        dates,
        counts,
        bounds,
        tuple(sorted(t.text for t in rest if _is_sign(t.text))),
        yes,
        yes is not None and not any(_speaks(word) for word in words[1:]),
        tuple(part for part in fresh if part),
        " ".join(word for word in map(_bare, marks) if word not in _EMPTY and word not in _PUNCTUATION),
        frozenset(stem(_bare(t.text)) for t in answer_tokens if t.text.endswith("'s")),
        denied - stems_said,
        "".join(word[0] for word in re.findall(r"\b[A-Z][\w.]*", text)).lower(),
        letters.removeprefix("The").removeprefix("the").lower()
        if letters.removeprefix("The").removeprefix("the").isupper()
        else "",
    )


def _plain_words(tokens: Sequence[Token]) -> tuple[str, ...]:
    """What is compared for identity: an article may be left out unless it ends the text ("vitamin A")."""
    words = []
    for at, token in enumerate(tokens):
        joined = at + 1 < len(tokens) and tokens[at + 1].glued
        article = token.text in ("the", "a", "an") and at + 1 < len(tokens) and not joined  # A$5 has none
        negative = token.text == "-" and not token.glued and joined
        if negative or not (article or token.text in _PUNCTUATION):
            words.append(token.text)
    return tuple(words)


def _bounds(words: Sequence[str], counting: bool) -> frozenset[str]:
    """The bounds that a text sets: "no more than" is at most, "not less than" at least."""
    bounds = set()
    negated = any(word in _NEGATIONS or word.endswith("n't") for word in words)
    pairs = list(zip(["", *words], words, strict=False))
    for before, word in pairs:
        bound = _BOUNDS.get(word)
        if before == "at" and word in ("least", "most"):
            bound = word
        elif before == "up" and word == "to":
            bound = "most"
        elif before in ("no", "not") and bound in ("more", "less"):
            bound, negated = {"more": "most", "less": "least"}[bound], False
        elif bound in ("spring", "autumn", "more", "ad", "early", "late", "mid") and not counting:
            bound = None
        elif word == "than" and before in ("later", "earlier"):
            bound = {"later": "after", "earlier": "before"}[before]
        if bound:
            bounds.add(bound)
    if "from" in words:
        bounds.discard("until")  # a range
    return frozenset(bounds | {"not"} if negated else bounds)


def _split_parts(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text in _DIVIDERS:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _bare(word: str) -> str:
    return word.removesuffix("'s")


def _is_sign(word: str) -> bool:
    return not word[0].isalnum() and len(word) == 1 and word.isascii() and word not in _PUNCTUATION


def _speaks(word: str) -> bool:
    return bool(word) and word not in _EMPTY and not word[0].isdecimal() and word not in _PUNCTUATION and (
        len(word) > 1 or word[0].isalpha() or not word.isascii()
    )  # fmt: skip
