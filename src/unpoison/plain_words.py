"""A defense's reason in words for who decides, and its numbers for who asks.

A reason such as "probability of poison 0.97: nobody else says what it says" is written for engineers. Here it becomes
two texts: "no other passage says so", and "probability of poison 0.97".
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Told", "in_plain_words"]


class Told(NamedTuple):
    """A reason for two readers.

    Attributes:
        words: A sentence without numbers.
        numbers: The reason as the defense gave it.
    """

    words: str
    numbers: str


MEANINGS = {
    "it answers the question more directly than its neighbours": "states the answer head-on",
    "it repeats the question": "repeats the question word for word, as a text made to be found does",
    "it resembles passage": "is nearly a copy of another suspicious text",
    "it shares telling words with passage": "uses the same unusual words as another text",
    "nobody else says what it says": "no other passage says so",
    "it resembles passages that are suspicious themselves": "resembles other suspicious texts",
    "its wording is that of a written claim, not of its neighbours": "reads like an invented claim",
    "a sentence of it states an answer as invented claims do": "reads like an invented claim",
    "its length and form differ from its neighbours'": "is built differently from the other texts",
    "it gives orders to its reader": "gives orders to the system instead of information",
    "by many small signs together": "differs from the other texts in tone, length and wording at once",
    "nothing remarkable": "nothing speaks against it",
}
"""How clauses of Guard begin, and what they mean."""

NOTHING, TOO_LITTLE = "Nothing speaks against it", "Too little speaks against it"

ORDER = (
    "reads like an invented claim",
    "gives orders to the system instead of information",
    "states the answer head-on",
    "no other passage says so",
)
"""What is said first: the kind of text, then what it does."""


PUBLISHED = (
    # GRADA: places in the graph of who resembles whom
    (
        r"place \d+ of \d+(, past the \d+ kept)?: near-duplicate of .*",
        "is nearly a copy of another text, and copies count once",
    ),
    (
        r"place \d+ of \d+, past the \d+ kept: .*, no tie to any other passage",
        "has nothing in common with the other texts",
    ),
    (
        r"place \d+ of \d+, past the \d+ kept: graph score .*",
        "has less in common with the other texts than those that were taken",
    ),
    (
        r"place \d+ of \d+: .*, no tie to any other passage",
        "has nothing in common with the other texts, but no better one was left",
    ),
    (r"place \d+ of \d+: graph score .*", "has much in common with the other texts"),
    # RAGDefender: suspects are the passages that stand out by their likeness
    (r"suspect \d+ of \d+: .*", "resembles other texts so closely that they look written together"),
    (r"(pair frequency \S+ is below|no suspects; ).*", "is not part of a group of look-alikes"),
    (r"fewer than \d+ passages: .*", "nothing was checked: there are too few texts to compare"),
    # TrustRAG, first stage: clusters
    (
        r"one of \d+ passages that are too alike: .*",
        "belongs to a group of texts that say the same in nearly the same words",
    ),
    (r"one of \d+ passages of (a dense|the denser) cluster: .*", "belongs to a group of texts that are too alike"),
    (
        r"alone in its cluster and as close .*",
        "is as much like a group of suspicious copies as they are like each other",
    ),
    (r"alone in its cluster and not close .*", "stands alone and is not like the suspicious group"),
    (r"alone in its cluster", "stands alone, and nothing speaks against it"),
    (
        r"one of \d+ dense passages with little shared wording: .*",
        "says about the same as others, but in words of its own",
    ),
    (r"one of \d+ passages that are not dense: .*", "is not part of a group of look-alikes"),
    (r"no two passages have a ROUGE-L above .*", "no two texts share enough of their wording to be suspicious"),
    (
        r"its cluster is dense, or it shares wording inside its cluster",
        "belongs to a group of texts that are too alike, or shares its wording with another",
    ),
    (r"(both clusters are dense|all embeddings are equal).*", "all texts are too much alike to be trusted"),
    (r"the group is dense and the lone passage is like it: .*", "all texts are too much alike to be trusted"),
    (r"the group is dense and the lone passage is not like it: .*", "belongs to a group of texts that are too alike"),
    (r"the group is not dense, so the lone passage is dropped", "stands alone beside texts that agree"),
    (r"kept by the released code's rules", "nothing speaks against it"),
    (r"clustering is switched off.*", "nothing was checked: this step is switched off"),
    (r"all passages have the same embedding: .*", "all texts are alike: nothing tells them apart"),
    (r"the best ranked of equal passages", "stands for all its copies"),
    (r"a copy of passage \d+", "is a copy of another text"),
    # RADAR: what each passage answers, and the cut between those answers
    (r"its atomic answer is uninformative", "does not answer the question"),
    (
        r"answers .*; on the trusted side of the cut, but unlike the other trusted answers",
        "its answer is unlike the other trusted ones",
    ),
    (r"answers .*; on the trusted side of the cut", "its answer fits those of the other texts"),
    (
        r"answers .*, conflict \S+ with passage \d+; cut off",
        "its answer is contradicted by other texts more than it is supported",
    ),
    (r"answers .*; cut off", "too few other texts support its answer"),
)
"""Whole reasons of the published methods, in order, and what they mean.

They are matched whole, for RADAR quotes answers, and an answer must not choose the words."""

_PUBLISHED = tuple((re.compile(reason, re.DOTALL), words) for reason, words in PUBLISHED)

OTHERS = (
    ("gives an order to the model", "gives an order to the model instead of information"),
    ("gives orders", "gives an order to the model instead of information"),
    (", past the", "others were judged more useful"),
    ("retrieval rank", "nothing was checked: it was taken as the search returned it"),
    ("retrieval is switched off", "no document is read at all"),
    ("in the suspicious cluster", "belongs to a group of texts that are too alike"),
)
_SPACES = re.compile(r"\s+")
LONGEST = 1000


def in_plain_words(reason: str, *, kept: bool = False) -> Told:
    """Translate a reason; one that is not known stays as it is.

    Args:
        reason: As the defense gave it.
        kept: Whether the passage was kept: what Guard weighed and found too light is not said against it.
    """
    numbers = _SPACES.sub(" ", reason[:LONGEST]).strip()
    start, _, clauses = numbers.partition(": ")
    if not start.startswith("probability of poison"):
        known = next((words for whole, words in _PUBLISHED if whole.fullmatch(numbers)), None)
        known = known or next((words for sign, words in OTHERS if sign in numbers), numbers)
        return Told(_sentence(known), numbers)
    if kept:
        return Told(NOTHING if clauses == "nothing remarkable" else TOO_LITTLE, numbers)
    found = [_meaning(clause) for clause in clauses.split("; ")]
    told = sorted(dict.fromkeys(filter(None, found)), key=lambda words: ORDER.index(words) if words in ORDER else 9)
    if not told:
        return Told(_sentence(clauses or numbers), numbers)
    if len(told) > 1 and told[0] == ORDER[0]:
        return Told(_sentence(f"{told[0]}: {_listed(told[1:])}"), numbers)
    return Told(_sentence(_listed(told)), numbers)


def _meaning(clause: str) -> str:
    return next((words for start, words in MEANINGS.items() if clause.startswith(start)), "")


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
