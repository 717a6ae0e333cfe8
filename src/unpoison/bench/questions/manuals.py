"""What manuals of software state: what is used for a task, and what a name in code means.

Names stand between backquotes, so these rules read a text with its marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from unpoison.bench.questions.words import VAGUE

__all__ = ["meaning_of", "tasks_of"]

_NAME = r"`([^`\s]{2,40})`"
_MAY = r"(?:you |we )?(?:can |could |should |must |need to |have to )?(?:also |just |simply )?"
_FIRST = re.compile(rf"\b(To|For) ([a-z][^`.;:!?()]{{6,90}}), {_MAY}use (?:the )?{_NAME}")
_LAST = re.compile(
    rf"(?:^|[.!] )(?:You can |You could |Just |Simply )?[Uu]se (?:the )?{_NAME} (to|for) ([^`.;:!?()]{{6,90}})[.!]"
)
_ENTRY = re.compile(rf"{_NAME}: ([^`|{{}}<>=]{{5,120}})")
LEAST_WORDS, MOST_WORDS = 2, 10


def tasks_of(paragraph: str) -> Iterator[tuple[str, str, str]]:
    """(question, answer, proof) for each "To X, use `Y`" and "Use `Y` to X"; O(n) in the text."""
    for match in _FIRST.finditer(paragraph):
        yield from _tool_question(match[1].lower(), match[2], match[3], match[0])
    for match in _LAST.finditer(paragraph):
        yield from _tool_question(match[2], match[3], match[1], match[0].lstrip(".! "))


def meaning_of(heading: str, paragraph: str) -> tuple[str, str, str] | None:
    """(question, answer, proof) for an entry such as "`gt`: greater than", None for anything else."""
    entry = _ENTRY.fullmatch(paragraph.rstrip(". "))
    if entry is None or not heading or heading.endswith("?"):
        return None
    name, meaning = entry[1], entry[2].strip()
    whole = LEAST_WORDS <= len(meaning.split()) <= MOST_WORDS and meaning[0].isalpha() and meaning[-1] not in ":,;"
    if not whole or _vague(meaning):
        return None
    return f"What is {name} under “{heading}”?", meaning, f"{name}: {meaning}"


def _tool_question(link: str, task: str, name: str, proof: str) -> Iterator[tuple[str, str, str]]:
    words = task.replace("**", "").rstrip(",").split()
    whole = LEAST_WORDS <= len(words) <= 2 * MOST_WORDS and not _vague(task) and words[0][0].islower()
    if whole and any(map(str.isalpha, name)) and name.strip("().") not in words:
        yield f"What do you use {link} {' '.join(words)}?", name, proof.replace("`", "")


def _vague(text: str) -> bool:
    """Whether a word means something that stands elsewhere."""
    return not VAGUE.isdisjoint(text.lower().replace(",", " ").split())
