"""Whether two answers to a question are equivalent, contradictory, or compatible. Rules, no model.

Numbers, dates, units, bounds, yes and no are compared by rules without world knowledge. If one name contains the other,
is spelled similarly or consists of its initials, or if no rule applies, the result is a guess (`sure` is false) that a
model can improve: it takes world knowledge that Holland is the Netherlands, or that Sudan is not South Sudan.
Equivalence is sure only if no part of the answers differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rapidfuzz.distance import Levenshtein

from unpoison.text.answer_forms import MAX_ANSWER_CHARS, ParsedAnswer, denies, denying, read_answer
from unpoison.text.languages import fold, other_language, phrases, pieces
from unpoison.text.questions import ParsedQuestion, asked_language, read_question, wanted
from unpoison.text.tokens import word_list, word_set
from unpoison.text.values import Verdict, agree, compare_all, one_of_each, several

__all__ = [
    "COMPATIBLE", "LIKELY", "RIVAL", "SAME", "Related", "Relation", "affirms", "goes_with", "group_equivalent",
    "relation", "relation_by_value",
]  # fmt: skip

CLOSE = 0.88
"""Minimum share of equal letters in two spellings of one name."""

MIN_LETTERS = 6
"""Minimum letters of names compared by spelling; shorter names that differ by a letter are different names."""

SHORT = 6
"""Maximum content words of an answer that is a name or phrase, rather than an explanation."""


QUALIFIERS = 3
"""Maximum content words, a third of all, of an answer that is a value with what qualifies it, and no sentence."""

_NEUTRAL = word_set("the of in on at by is are was were it its they that this be been and as")
"""Words that do not change the meaning if left out."""

_OPPOSED = word_list("opposed")
"""Words that change the meaning if only one of two answers has them."""

_MODIFIERS = word_list("modifiers")
"""Words that turn a name into a different name."""

_ROMANS = word_set("i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx")


class Relation(NamedTuple):
    """The relation of two answers, as probabilities that sum to 1.

    Attributes:
        same: They are equivalent.
        rival: They cannot both be right.
        compatible: They differ, and both can be right.
        sure: Whether a rule decided; otherwise the figures are a guess from shared words.
    """

    same: float
    rival: float
    compatible: float
    sure: bool = True


SAME = Relation(0.96, 0.02, 0.02)
RIVAL = Relation(0.03, 0.94, 0.03)
PARTIAL = Relation(0.70, 0.05, 0.25)
COMPATIBLE = Relation(0.15, 0.10, 0.75)
CONTAINED = Relation(0.80, 0.14, 0.06, sure=False)
SPELT = Relation(0.70, 0.24, 0.06, sure=False)
NEARLY = Relation(0.60, 0.30, 0.10, sure=False)
REORDERED = Relation(0.42, 0.46, 0.12, sure=False)
RISKY = Relation(0.20, 0.70, 0.10, sure=False)
QUALIFIED = Relation(0.19, 0.70, 0.11, sure=False)
OTHER_NAME = Relation(0.10, 0.77, 0.13, sure=False)
UNRELATED = Relation(0.10, 0.40, 0.50, sure=False)

BY_VALUES: dict[Verdict, Relation] = {
    "equal": SAME, "compatible": PARTIAL, "open": UNRELATED, "risky": RISKY, "rival": RIVAL,
}  # fmt: skip
"""The relation of answers whose values are so related."""

ALIKE = 0.6
"""Minimum share of common words at which two answers, each with words of its own, are more likely one than two."""


def relation(question: str, left: str, right: str) -> Relation:
    """Compare two answers to a question; symmetric and reflexive.

    Args:
        question: Its words carry no information in an answer, and it shows whether a date or number is asked for. The
            first 2,000 characters are read.
        left: An answer; the first `MAX_ANSWER_CHARS` characters are read.
        right: Another answer, read in the same way.

    Returns:
        The result of the first rule that applies; each figure is in [0, 1]. Linear time, except for the edit distance
        of names, quadratic in at most `MAX_ANSWER_CHARS` characters.
    """
    expected = read_question(question)
    first, second = read_answer(left[:MAX_ANSWER_CHARS], expected), read_answer(right[:MAX_ANSWER_CHARS], expected)
    if first.words == second.words:
        return SAME
    for rule in _RULES:
        if (by_rule := rule(first, second, expected)) is not None:
            return by_rule
    if first.bounds != second.bounds or first.signs != second.signs:
        return RISKY if _is_nested(first, second) else OTHER_NAME
    if first.stems & second.stems and len(first.stems & second.stems) >= ALIKE * len(first.stems | second.stems):
        return RISKY if _is_other_name(first, second) else NEARLY
    return OTHER_NAME if min(len(first.content), len(second.content)) <= SHORT else UNRELATED


def _is_nested(first: ParsedAnswer, second: ParsedAnswer) -> bool:
    """Whether the words beside the numbers of one answer contain those of the other."""
    return not (first.content and second.content) or first.content <= second.content or second.content <= first.content


def _is_other_name(first: ParsedAnswer, second: ParsedAnswer) -> bool:
    """Whether the words of only one answer are known to turn a name into a different one."""
    extra = set(first.letters.split()) ^ set(second.letters.split())
    return (
        any(word in _MODIFIERS or len(word) == 1 or word[0].isdigit() for word in extra)
        or first.owners != second.owners
        or first.signs != second.signs
        or bool(first.values) != bool(second.values)
    )


def _contrasts(first: ParsedAnswer, second: ParsedAnswer, _: ParsedQuestion) -> Relation | None:
    """One answer is what the other excludes."""
    for excluding, affirming in ((first, second), (second, first)):
        if excluding.denied and affirming.stems and affirming.stems <= excluding.denied:
            return RIVAL
    return None


_LACKING = word_set("without ohne sans sin senza sem zonder bez без")
"""Words that deny a thing and not a statement: "parking is allowed without a card"."""

SIDES_APART = 3
"""Maximum stems that only one of two answers has, for a pair of opposites to make them rivals."""


def _opposites(first: ParsedAnswer, second: ParsedAnswer, _: ParsedQuestion) -> Relation | None:
    """Of two alike, one has a word of one side ("before meals"), the other of the other; with both, one says none."""
    (mine, said), (theirs, also) = _sides(first.words), _sides(second.words)
    if len(first.stems ^ second.stems) > max(SIDES_APART, said + also):
        return None
    matters = [name for name in mine.keys() & theirs.keys() if len(mine[name]) == len(theirs[name]) == 1]
    return RIVAL if any(mine[name] != theirs[name] for name in matters) else None


def _sides(said: Sequence[str]) -> tuple[dict[str, set[str]], int]:
    """The matters of which words name a side, with the sides, and the number of words that name them."""
    words = [*map(fold, said), *[""] * 8]
    found = [(phrase, at) for at in range(len(said)) if (phrase := phrases("opposites").at(words, at))]
    sides: dict[str, set[str]] = {}
    for ((matter, side), _), _ in found:
        sides.setdefault(matter, set()).add(side)
    return sides, sum(end - at for (_, end), at in found)


def affirms(words: Sequence[str], question: ParsedQuestion) -> bool:
    """Whether a statement that is about a question for yes or no affirms: it neither denies nor names the other side.

    Args:
        words: The words of the statement, in lower case.
        question: "May I smoke?" asks whether it is allowed, so that "forbidden" denies, and "not forbidden" affirms.
    """
    language, words = asked_language(question.text) or other_language(" ".join(words)), [*map(fold, words)]
    denied = any(denies(word, language) for word in words if word not in _LACKING)
    asked = {"rule": {"allowed"}} | _sides([piece.text for piece in pieces(fold(question.text))])[0]
    said, _ = _sides(words)
    turned = (asked[name].isdisjoint(said[name]) for name in asked.keys() & said.keys())
    return denied == any(turned)


def _verdicts(first: ParsedAnswer, second: ParsedAnswer, expected: ParsedQuestion) -> Relation | None:
    """Yes and no, also against a statement about the question."""
    if expected.kind == "polar":
        for bare, other in ((first, second), (second, first)):
            if bare.bare and other.yes is None and other.content:
                return PARTIAL if affirms(other.words, expected) == bare.yes else RIVAL
    if first.yes is None or second.yes is None:
        return None
    if first.yes != second.yes:
        return RIVAL
    return SAME if expected.kind == "polar" or first.bare or second.bare else None


def _values(first: ParsedAnswer, second: ParsedAnswer, expected: ParsedQuestion) -> Relation | None:
    """Typed values: equivalent if all agree, rivals if any differs in any part."""
    verdict = compare_all(first.values, second.values)
    kind = wanted(expected.text).kind
    asked = expected.kind in ("date", "number") or (kind and one_of_each(first.values) and one_of_each(second.values))
    if verdict is None or not (asked or _is_nested(first, second)):
        return None
    few = all(len(one.stems) <= QUALIFIERS and len(one.words) <= 3 * QUALIFIERS for one in (first, second))
    if verdict in ("rival", "risky", "open"):
        return QUALIFIED if few and verdict == "risky" else BY_VALUES[verdict]
    if ("not" in first.bounds) != ("not" in second.bounds):
        return RIVAL
    if first.bounds != second.bounds:
        return RISKY
    if not _is_nested(first, second):  # each with words of its own: a value for adults, and one for children
        return QUALIFIED if few else NEARLY if expected.kind == "date" else REORDERED
    if first.signs != second.signs or _is_other_name(first, second):
        return RISKY
    if verdict == "compatible":
        return PARTIAL
    return SAME if kind or expected.kind in ("date", "number") or first.content == second.content else CONTAINED


def _denials(first: ParsedAnswer, second: ParsedAnswer, expected: ParsedQuestion) -> Relation | None:
    """The same statement, affirmed and denied."""
    if ("not" in first.bounds) == ("not" in second.bounds):
        return None
    denials = denying(other_language(expected.text))
    plain_first, plain_second = ((one.content - denials) or (one.stems - denials) for one in (first, second))
    if not plain_first & plain_second:
        return None
    return RIVAL if plain_first == plain_second else RISKY


def _lists(first: ParsedAnswer, second: ParsedAnswer, _: ParsedQuestion) -> Relation | None:
    """Lists: if one contains items of the other, both can be right."""
    alone = len(first.items) == len(second.items) == 1
    if alone or not (first.items and second.items) or _is_other_name(first, second):
        return None
    few, many = sorted((first.items, second.items), key=len)
    if frozenset(few) == frozenset(many):
        alike = first.bounds == second.bounds and first.stems == second.stems
        return SAME if len(few) == len(many) and alike else CONTAINED
    if first.content == second.content:
        return REORDERED  # Bill Gates and Paul Allen are not Paul Gates and Bill Allen
    matching = sum(any(part <= counterpart or counterpart <= part for counterpart in many) for part in few)
    if matching < len(few):
        return COMPATIBLE if matching else None
    return CONTAINED if len(few) == len(many) else COMPATIBLE


def _names(first: ParsedAnswer, second: ParsedAnswer, _: ParsedQuestion) -> Relation | None:
    """Names that contain each other, initials, or similar spellings: likely one name, never sure."""
    if not (first.content and second.content) or first.bounds != second.bounds:
        return None
    if first.content <= second.content or second.content <= first.content:
        if first.values and second.values:
            return None
        if _is_other_name(first, second):
            return RISKY
        if first.stems == second.stems:
            if first.letters != second.letters:
                return REORDERED
            extra = (set(first.words) ^ set(second.words)) - _NEUTRAL
            return SAME if not extra else RISKY if extra & _OPPOSED else CONTAINED
        return CONTAINED if first.stems <= second.stems or second.stems <= first.stems else RISKY
    for short, long in ((first, second), (second, first)):
        if 2 <= len(short.capitals) <= 6 and short.capitals == long.initials and first.values == second.values:
            return CONTAINED
    if min(len(first.letters), len(second.letters)) >= MIN_LETTERS and not _is_other_name(first, second):
        if Levenshtein.normalized_similarity(first.letters, second.letters, score_cutoff=CLOSE) < CLOSE:
            return None
        extra = set(first.letters.split()) ^ set(second.letters.split())
        return RISKY if extra & _ROMANS or any(len(word) < MIN_LETTERS for word in extra) else SPELT
    return None


_RULES = (_contrasts, _opposites, _verdicts, _values, _denials, _lists, _names)


LIKELY = 0.5
"""Minimum probability at which two answers are the same, or rivals."""

Related: TypeAlias = Mapping[frozenset[str], Relation]
"""The relation between each two of several answers, by their names."""


def relation_by_value(question: str, left: str, right: str, guess: Relation) -> Relation:
    """The relation of two answers by their values: one value among several of the other is no contradiction."""
    kind = wanted(question).kind
    verdict = agree(left, right, kind, question)
    agrees = verdict in ("equal", "compatible")
    if agrees and (several(left, kind, question) or several(right, kind, question) or guess.sure):
        return guess if guess.same >= LIKELY or guess == RIVAL else COMPATIBLE
    return guess if guess.sure or guess == QUALIFIED or verdict is None else BY_VALUES[verdict]


def group_equivalent(ranked: Sequence[str], related: Related) -> dict[str, list[str]]:
    """Answers by the first of them with the same meaning, unless a rule says that it contradicts another of the group.

    "7 pm" goes with "Tuesday at 7 pm", and "Thursday at 7 pm" then does not.
    """
    groups: dict[str, list[str]] = {}
    for name in ranked:
        lead = next((lead for lead, group in groups.items() if _joins(name, lead, group, related)), name)
        groups.setdefault(lead, []).append(name)
    return groups


def _joins(name: str, lead: str, group: Sequence[str], related: Related) -> bool:
    against = (related[frozenset((name, other))] for other in group)
    return goes_with(name, lead, related) and not any(one.sure and one.rival >= LIKELY for one in against)


def goes_with(name: str, other: str, related: Related) -> bool:
    """Whether two answers mean the same."""
    return related[frozenset((name, other))].same >= LIKELY
