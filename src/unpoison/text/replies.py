"""Replies as models write them: reasoning before the answer is removed, and a reply that declines is recognised.

The markers of reasoning are those of current models and servers. The words for declining stand in
`data/refusals.yaml`, a list for each language.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from unpoison.utils.assets import read_data

__all__ = ["ReasoningFilter", "informative", "without_reasoning"]

REASONING: dict[str, str] = read_data("reasoning.json")
"""Where reasoning begins a reply, and where it ends, in lower case. An empty end: the marker alone is removed."""

_BARE = re.compile(r"analysis(?=[A-Z])")
"""A channel whose marks the server has removed: "analysisThe user asks ...assistantfinalParis"."""
_BARE_END = "assistantfinal"
_AFTER = ("<|return|>", "<|end|>", "<|end_of_solution|>", "<|END_RESPONSE|>")


class ReasoningFilter:
    """Removes leading reasoning from a reply that comes in pieces; linear time.

    It holds back only what may still become a marker. Where a chat template has written the opening marker, a stream
    shows the reasoning as it comes, because nothing marks its beginning.
    """

    def __init__(self) -> None:
        self._held = ""
        self._end: str | None = None
        self._leading, self._marked = True, False

    @property
    def unclosed(self) -> bool:
        """Whether the reply is inside a block that has not ended."""
        return self._end is not None

    def feed(self, piece: str) -> str:
        """The part of the reply that can be shown after this piece."""
        if not self._leading:
            return piece
        self._held += piece
        while self._leading:
            if self._end is not None:
                before, found, rest = _partition(self._held, self._end)
                if not found:
                    self._held = before[-len(self._end) :]
                    return ""
                self._held, self._end = rest, None
                continue
            text = self._held.lstrip()
            opening, end = _opening(text)
            if opening:
                self._held, self._end, self._marked = text[len(opening) :], end or None, True
                continue
            if _may_open(text):
                return ""
            self._leading = False
        return self.close()

    def close(self) -> str:
        """What was held back, at the end of the reply; nothing of an unclosed block."""
        held, self._held = "" if self.unclosed else self._held, ""
        return held.lstrip() if self._marked else held


def _partition(text: str, mark: str) -> tuple[str, bool, str]:
    found = re.search(re.escape(mark), text, re.IGNORECASE)
    return (text, False, "") if found is None else (text[: found.start()], True, text[found.end() :])


def _opening(text: str) -> tuple[str, str | None]:
    head = text[:40].lower()
    for start, end in REASONING.items():
        if head.startswith(start):
            return start, end
    return ("analysis", _BARE_END) if _BARE.match(text) else ("", None)


def _may_open(text: str) -> bool:
    head = text.lower()
    return any(len(text) < len(start) and start.startswith(head) for start in REASONING) or "analysis".startswith(text)


def without_reasoning(text: str) -> tuple[str, bool]:
    """A whole reply without the reasoning before it, and whether it was cut off inside that.

    If only the end of a block stands in the reply, because the chat template had opened it, what follows counts.

    >>> without_reasoning("<think>I don't know yet.</think>Stockholm"), without_reasoning("<think>I wonder")
    (('Stockholm', False), ('', True))
    """
    reader = ReasoningFilter()
    shown = reader.feed(text) + reader.close()
    if reader.unclosed:
        return "", True
    low = shown.lower()
    for start, end in REASONING.items():
        if end and end in low and start not in low and shown.isascii() == low.isascii():
            shown = shown[low.rindex(end) + len(end) :].lstrip()
            break
    if shown == text:
        return text, False
    for mark in _AFTER:
        shown = shown.removesuffix(mark)
    return shown, False


class _Words(NamedTuple):
    """The words of all languages: who does not know, where the passages are silent, and where a reply concludes."""

    own: re.Pattern[str]
    silent: re.Pattern[str]
    concludes: re.Pattern[str]
    whole: frozenset[str]
    filler: re.Pattern[str]
    contrast: re.Pattern[str]


@cache
def _words() -> _Words:
    read: dict[str, Any] = read_data("refusals.yaml")
    parts, languages = read["parts"], read["languages"].values()

    def joined(kind: str) -> re.Pattern[str]:
        rules = [rule for language in languages for rule in language.get(kind, ())]
        for name, words in parts.items():
            rules = [rule.replace(f"<{name}>", words) for rule in rules]
        return re.compile("|".join(f"(?:{rule})" for rule in rules))

    whole = frozenset(word for language in languages for word in language.get("whole", ()))
    return _Words(joined("own"), joined("silent"), joined("concludes"), whole, joined("filler"), joined("contrast"))


_JUDGES = re.compile(r"\bi (?:don'?t|do not) (?:find|trust|believe|consider)\b[^:]*$")
"""Distrust of the sources: "I don't find the sources reliable" judges them and may still answer."""

_CONCEDES = re.compile(r"\b(?:although|though|while|whereas|even if|obwohl|bien que|aunque|sebbene|embora|hoewel)\b")
_LOOKED_AT = 10_000
"""Maximum characters of a reply that are read; a model may return a megabyte."""
_CLAUSE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[\u3002\uff01\uff1f\uff1b])|\n+|, (?=so |but |therefore |thus |hence )")
_MARKS = " .,!?\"'`*_()\u3002\uff01\u00a1\u00bf\u0964"


def informative(reply: str) -> bool:
    """Whether a reply answers: it is not empty, and if it declines, it states "the answer" in another clause.

    "I don't know" counts in any clause; that the passages do not say counts only in the first, because a model may
    answer and then say what else is missing. Case and the form of apostrophes do not matter. Distrust of the sources
    is not an abstention if anything else follows.
    """
    words = _words()
    text = unicodedata.normalize("NFC", reply[:_LOOKED_AT]).replace("\u2019", "'").casefold().strip()
    clauses = [clause for part in _CLAUSE_END.split(text) if (clause := " ".join(part.strip("*_` ").split()))]
    if text.strip(_MARKS) in words.whole or not text.strip(_MARKS) or not clauses:
        return False
    first = next((i for i, clause in enumerate(clauses) if not _skipped(clause, words)), 0)
    declines = [i for i, clause in enumerate(clauses) if words.own.search(clause)]
    stated = [clause for i, clause in enumerate(clauses) if i not in declines]
    if declines:
        return any(map(words.concludes.search, stated))
    if words.silent.search(_CONCEDES.split(clauses[first])[0]):
        rest = [clause for clause in clauses[first + 1 :] if not words.silent.search(clause)]
        return any(words.concludes.search(clause) or words.contrast.match(clause) for clause in rest)
    return not all(map(_JUDGES.search, stated))


def _skipped(clause: str, words: _Words) -> bool:
    """Whether a clause says nothing itself: the question repeated, or an introduction."""
    return clause.endswith("?") or bool(words.filler.fullmatch(clause))
