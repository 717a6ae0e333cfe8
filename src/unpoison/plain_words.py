"""A defense's reason in words for who decides, and its numbers for who asks.

A reason such as "probability of poison 0.97: nobody else says what it says" is written for engineers. Here it becomes
two texts: "no other passage says so", and "probability of poison 0.97".
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["PlainReason", "in_plain_words"]


class PlainReason(NamedTuple):
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
        re.compile(r"place \d+ of \d+(, past the \d+ kept)?: near-duplicate of .*", re.DOTALL),
        "is nearly a copy of another text, and copies count once",
    ),
    (
        re.compile(r"place \d+ of \d+, past the \d+ kept: .*, no tie to any other passage", re.DOTALL),
        "has nothing in common with the other texts",
    ),
    (
        re.compile(r"place \d+ of \d+, past the \d+ kept: graph score .*", re.DOTALL),
        "has less in common with the other texts than those that were taken",
    ),
    (
        re.compile(r"place \d+ of \d+: .*, no tie to any other passage", re.DOTALL),
        "has nothing in common with the other texts, but no better one was left",
    ),
    (re.compile(r"place \d+ of \d+: graph score .*", re.DOTALL), "has much in common with the other texts"),
    # RAGDefender: suspects are the passages that stand out by their likeness
    (
        re.compile(r"suspect \d+ of \d+: .*", re.DOTALL),
        "resembles other texts so closely that they look written together",
    ),
    (re.compile(r"(pair frequency \S+ is below|no suspects; ).*", re.DOTALL), "is not part of a group of look-alikes"),
    (re.compile(r"fewer than \d+ passages: .*", re.DOTALL), "nothing was checked: there are too few texts to compare"),
    # TrustRAG, first stage: clusters
    (
        re.compile(r"one of \d+ passages that are too alike: .*", re.DOTALL),
        "belongs to a group of texts that say the same in nearly the same words",
    ),
    (
        re.compile(r"one of \d+ passages of (a dense|the denser) cluster: .*", re.DOTALL),
        "belongs to a group of texts that are too alike",
    ),
    (
        re.compile(r"alone in its cluster and as close .*", re.DOTALL),
        "is as much like a group of suspicious copies as they are like each other",
    ),
    (
        re.compile(r"alone in its cluster and not close .*", re.DOTALL),
        "stands alone and is not like the suspicious group",
    ),
    (re.compile(r"alone in its cluster", re.DOTALL), "stands alone, and nothing speaks against it"),
    (
        re.compile(r"one of \d+ dense passages with little shared wording: .*", re.DOTALL),
        "says about the same as others, but in words of its own",
    ),
    (re.compile(r"one of \d+ passages that are not dense: .*", re.DOTALL), "is not part of a group of look-alikes"),
    (
        re.compile(r"no two passages have a ROUGE-L above .*", re.DOTALL),
        "no two texts share enough of their wording to be suspicious",
    ),
    (
        re.compile(r"its cluster is dense, or it shares wording inside its cluster", re.DOTALL),
        "belongs to a group of texts that are too alike, or shares its wording with another",
    ),
    (
        re.compile(r"(both clusters are dense|all embeddings are equal).*", re.DOTALL),
        "all texts are too much alike to be trusted",
    ),
    (
        re.compile(r"the group is dense and the lone passage is like it: .*", re.DOTALL),
        "all texts are too much alike to be trusted",
    ),
    (
        re.compile(r"the group is dense and the lone passage is not like it: .*", re.DOTALL),
        "belongs to a group of texts that are too alike",
    ),
    (
        re.compile(r"the group is not dense, so the lone passage is dropped", re.DOTALL),
        "stands alone beside texts that agree",
    ),
    (re.compile(r"kept by the released code's rules", re.DOTALL), "nothing speaks against it"),
    (re.compile(r"clustering is switched off.*", re.DOTALL), "nothing was checked: this step is switched off"),
    (
        re.compile(r"all passages have the same embedding: .*", re.DOTALL),
        "all texts are alike: nothing tells them apart",
    ),
    (re.compile(r"the best ranked of equal passages", re.DOTALL), "stands for all its copies"),
    (re.compile(r"its source is blocked", re.DOTALL), "comes from a source that you have blocked"),
    (re.compile(r"a copy of passage \d+", re.DOTALL), "is a copy of another text"),
    # RADAR: what each passage answers, and the cut between those answers
    (re.compile(r"its atomic answer is uninformative", re.DOTALL), "does not answer the question"),
    (
        re.compile(r"answers .*; on the trusted side of the cut, but unlike the other trusted answers", re.DOTALL),
        "its answer is unlike the other trusted ones",
    ),
    (re.compile(r"answers .*; on the trusted side of the cut", re.DOTALL), "its answer fits those of the other texts"),
    (
        re.compile(r"answers .*, conflict \S+ with passage \d+; cut off", re.DOTALL),
        "its answer is contradicted by other texts more than it is supported",
    ),
    (re.compile(r"answers .*; cut off", re.DOTALL), "too few other texts support its answer"),
)
"""Whole reasons of the published methods, in order, and what they mean.

They are matched whole, for RADAR quotes answers, and an answer must not choose the words."""

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
"""Characters of a reason that are read."""


def in_plain_words(reason: str, *, kept: bool = False) -> PlainReason:
    """Translate a reason; one that is not known stays as it is.

    Args:
        reason: As the defense gave it.
        kept: Whether the passage was kept: what Guard weighed and found too light is not said against it.
    """
    numbers = _SPACES.sub(" ", reason[:LONGEST]).strip()
    start, _, clauses = numbers.partition(": ")
    if not start.startswith("probability of poison"):
        published = next((words for whole, words in PUBLISHED if whole.fullmatch(numbers)), None)
        published = published or next((words for sign, words in OTHERS if sign in numbers), numbers)
        return PlainReason(_sentence(published), numbers)
    if kept:
        return PlainReason(NOTHING if clauses == "nothing remarkable" else TOO_LITTLE, numbers)
    meanings = [_meaning(clause) for clause in clauses.split("; ")]
    parts = sorted(dict.fromkeys(filter(None, meanings)), key=lambda words: ORDER.index(words) if words in ORDER else 9)
    if not parts:
        return PlainReason(_sentence(clauses or numbers), numbers)
    if len(parts) > 1 and parts[0] == ORDER[0]:
        return PlainReason(_sentence(f"{parts[0]}: {_listed(parts[1:])}"), numbers)
    return PlainReason(_sentence(_listed(parts)), numbers)


def _meaning(clause: str) -> str:
    return next((words for start, words in MEANINGS.items() if clause.startswith(start)), "")


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
