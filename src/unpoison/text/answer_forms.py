"""Parses short answers, and gives all spellings of an answer one form.

`read_answer` finds words, quantities, bounds, lists and denials, for the rules that compare answers (`text.answers`).
`form` is for counting votes, which needs classes. Similarity of answers is not transitive, and a planted answer could
be similar to two rivals. So the form of an answer is a function of the question and of this answer alone: other answers
cannot change its class.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import Stemmer

from unpoison.text.normalisation import Token, fold_text, tokens, word_set
from unpoison.text.quantities import Figure, Moment, quantities
from unpoison.text.questions import MAX_QUESTION_CHARS, ParsedQuestion, read_question
from unpoison.text.tokens import ENGLISH_318
from unpoison.text.units import MEASURES, Quantity, single

__all__ = [
    "DENYING",
    "MAX_ANSWER_CHARS",
    "ParsedAnswer",
    "form",
    "read_answer",
]

MAX_ANSWER_CHARS = 400
"""Maximum characters of an answer that are read."""


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """A parsed answer.

    Attributes:
        words: All words, numbers and signs in order, folded, without articles, lead-in and punctuation.
        stems: The stems that are neither function words nor numbers.
        content: The stems that are not in the question; all stems if it only repeats the question.
        dates, counts: Dates and quantities, in order.
        bounds: Negations, bounds, eras and seasons, by their names in `_BOUNDS`.
        signs: Signs outside of numbers that are not punctuation.
        yes: Whether it affirms or denies; None if neither.
        bare: Whether it only affirms or denies.
        items: The parts of a list; one for a single answer.
        letters: Its content words as one string, in order.
        owners: Possessive nouns ("Curie's husband").
        denied: The stems of excluded answers ("Paris, not London").
        initials: First letters of its capitalised words.
        capitals: All its letters in lower case, if it is in capitals.
    """

    words: tuple[str, ...]
    stems: frozenset[str]
    content: frozenset[str]
    dates: tuple[Moment, ...]
    counts: tuple[Quantity | Figure, ...]
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


@lru_cache(maxsize=256)
def read_answer(text: str, expected: ParsedQuestion) -> ParsedAnswer:
    """Parse an answer. Linear time; the last 256 results are cached, so cut long answers before.

    Args:
        text: Any text; of "Paris, not London" the head is parsed, and the tail is `denied`.
        expected: The parsed question, whose words carry no information, and which decides whether "1875" is a year.
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
    dates, counts, rest = quantities(answer_tokens, date=expected.kind == "date", number=expected.kind == "number")
    words = [_bare(t.text) for t in answer_tokens]
    bounds = _bounds(words, bool(dates or counts))
    if dates or counts:
        rest = tuple(t for t in rest if t.text not in _BOUNDS and t.text not in DENYING)
    marks = [t.text for t in rest]
    listed = marks.count(",") > 1 or not (_DIVIDERS - {","}).isdisjoint(marks)
    parts = [stems(part) for part in (_split_parts(rest) if listed else [list(rest)])]  # "Tampa, Florida" is one place
    stems_said = frozenset[str]().union(*parts)
    fresh = [part - expected.content for part in parts]
    if not any(fresh) and not dates and not counts:  # it only repeats the question's words, so these are its content
        fresh = parts if stems_said else [frozenset(words)]
    yes = _POLAR.get(words[0]) if words else None
    if yes is not None and not (expected.kind == "polar" or words[1:2] in ([], [","], ["."], ["!"], [";"])):
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
    """The words to compare for identity, without articles, unless one ends the text ("vitamin A")."""
    words = []
    for at, token in enumerate(tokens):
        joined = at + 1 < len(tokens) and tokens[at + 1].glued
        article = token.text in ("the", "a", "an") and at + 1 < len(tokens) and not joined  # A$5 has none
        negative = token.text == "-" and not token.glued and joined
        if negative or not (article or token.text in _PUNCTUATION):
            words.append(token.text)
    return tuple(words)


def _bounds(words: Sequence[str], counting: bool) -> frozenset[str]:
    """The bounds in a text: "no more than" is at most, "not less than" is at least."""
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


_COPULA = re.compile(r"\s(?:is|was|are|were)\s")
_HOW_MANY = re.compile(r"\bhow many ([a-z]+)\b")

_ALIASES = {
    name: names.split(", ")[0]
    for names in (
        "united states, us, usa, united states of america", "united kingdom, uk", "european union, eu",
        "united nations, un", "united arab emirates, uae", "soviet union, ussr, union of soviet socialist republics",
        "new york city, nyc", "washington dc, washington d c, washington district of columbia",
        "nato, north atlantic treaty organization, north atlantic treaty organisation",
        "world health organization, world health organisation", "federal bureau of investigation, fbi",
        "central intelligence agency, cia", "european central bank, ecb", "international monetary fund, imf",
        "national aeronautics and space administration, nasa", "chinese communist party, ccp",
        "european space agency, esa", "prc, peoples republic of china, people's republic of china",
    )
    for name in names.split(", ")
}  # fmt: skip
"""Names and their abbreviations, by the first of them; for whole answers only."""


def form(question: str, text: str) -> str:
    """The class of an answer, in words; "" for an empty text.

    Two answers have the same form if they differ only in case, accents on Latin letters, punctuation, articles, a
    lead-in ("It was"), the question's own words around "is" or "was", or a final possessive; in the spelling of a
    number, date or unit (17, seventeen; 4 May 2010, 2010-05-04; km, kilometres), or in a unit that the question asks
    for ("how many days"); or if they are two of a few well-known names of one thing. Denied, bounded and signed answers
    have forms of their own. Units are not converted, and containment does not count.

    Args:
        question: Any text; the first 2,000 characters are read.
        text: Any text; the first 400 characters are read.

    Complexity: linear time.
    """
    expected = read_question(question)
    bare = _without_question(text[:MAX_ANSWER_CHARS], expected)
    answer = read_answer(bare, expected)
    if expected.kind == "polar" and answer.yes is not None:
        return "yes" if answer.yes else "no"
    words_beside = answer.stems - expected.content or answer.signs or answer.denied or answer.yes is not None
    if (answer.dates or answer.counts) and not words_beside:
        return _quantity(answer, expected, question)
    words = " ".join(answer.words).removesuffix("'s").removesuffix("'").strip()
    return _ALIASES.get(words, words)


def _without_question(text: str, expected: ParsedQuestion) -> str:
    """A statement without the repeated question: "Paris" of "The capital of France is Paris"."""
    if expected.kind == "polar" or (copula := _COPULA.search(text)) is None:
        return text
    before, after = text[: copula.start()], text[copula.end() :]
    for repeated, left in ((before, after), (after, before)):
        words = read_answer(repeated, expected)
        plain = not (words.dates or words.counts or words.signs or words.bounds)
        if words.stems and plain and words.stems <= expected.content and left.strip():
            return left
    return text


def _quantity(answer: ParsedAnswer, expected: ParsedQuestion, question: str) -> str:
    wanted = _HOW_MANY.search(fold_text(question[:MAX_QUESTION_CHARS]))
    parts = [_date(moment) for moment in answer.dates]
    parts += [_count(count, expected, single(wanted[1]) if wanted else "") for count in answer.counts]
    return " ".join([*sorted(answer.bounds), *parts])


def _date(moment: Moment) -> str:
    """Such as 2010-05-04, --05-04 or 2010; a day and month of unknown order are marked."""
    year = "-" if moment.year is None else f"{moment.year:04d}"
    month = "" if moment.month is None else f"-{moment.month:02d}"
    day = "" if moment.day is None else f"-{moment.day:02d}" if month else f"--{moment.day:02d}"
    return f"{year}{month}{day}{'?' * moment.swapped}"


def _count(count: Quantity | Figure, expected: ParsedQuestion, wanted: str) -> str:
    """A number with the canonical name of its unit; if it has none, with the unit that is asked for."""
    if isinstance(count, Figure):
        parts = "-".join(map(str, count.parts))
        return (
            f"{parts} {count.unit}".strip() if count.kind == "range" else f"{count.kind} {parts} {count.unit}".strip()
        )
    unit = count.unit or (wanted if wanted in MEASURES else "")
    if unit in MEASURES:
        unit = _UNITS[MEASURES[unit]]
    elif read_question(unit).content <= expected.content:
        unit = ""
    return " ".join(filter(None, (str(count.value), unit, count.written)))


_UNITS = {measure: name for name, measure in reversed(MEASURES.items())}
"""The canonical name of each unit."""
