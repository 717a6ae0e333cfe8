"""Which questions and texts are learnt from and which are measured on: no question, and no document, on both sides.

Questions are the same where their words are, whatever the case and the punctuation. Questions that share an annotated
passage (a run of twelve words in common), and TimeQA's questions of one entity, are one group, and a group is on one
side. So a model that is measured has read neither the question nor the document that answers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

__all__ = ["QUESTION_FILES", "held_out", "overlaps", "rows", "runs", "share_of", "words"]

QUESTION_FILES = ("nq_poisoned", "hotpotqa_poisoned", "nq_large_poisoned", "nq_retrieved", "hotpotqa_distractor",
                  "ramdocs", "timeqa", "realtimeqa", "rgb_counterfactual", "msmarco_poisoned")  # fmt: skip

RUN = 12
"""Words in a row that two texts of one document share and two documents hardly ever do."""


def words(text: str) -> str:
    """The words of a text, in lower case and with one space between them."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def runs(text: str) -> Iterator[int]:
    """A number for every run of words of a text; for a shorter text, one for the whole."""
    parts = words(text).split()
    for start in range(max(1, len(parts) - RUN + 1)):
        yield hash(tuple(parts[start : start + RUN]))


def overlaps(text: str, read: frozenset[int] | set[int]) -> bool:
    """Whether a text has a run of words among those of other texts."""
    return any(run in read for run in runs(text))


def held_out(folder: Path, question: str, share: float) -> bool:
    """Whether a question is measured on and never learnt from; what a small share holds out, a larger one does too."""
    return share_of(_groups(folder).get(words(question), words(question))) < share


def share_of(key: str) -> float:
    """A number in [0, 1), the same in every run, from a text."""
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") / 2**64


@cache
def _groups(folder: Path) -> dict[str, str]:
    """Each question's group, named by its first question."""
    parent: dict[str | int, str | int] = {}

    def root(node: str | int) -> str | int:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    questions: dict[str, None] = {}
    for question, links in _linked(folder):
        questions[question] = None
        for link in links:
            parent[root(link)] = root(question)
    members: dict[str | int, list[str]] = {}
    for question in questions:
        members.setdefault(root(question), []).append(question)
    return {question: min(group) for group in members.values() for question in group}


def _linked(folder: Path) -> Iterator[tuple[str, Iterable[str | int]]]:
    """Every question with what it must not share with the other side: its annotated texts, its entity."""
    for row in rows(folder / "qa_spans.jsonl"):
        if row["answers"]:
            yield words(row["question"]), runs(row["passage"])
    for name in QUESTION_FILES:
        for row in rows(folder / f"{name}.jsonl"):
            question = words(row["question"])
            yield question, [f"entity {row['entity']}"] if "entity" in row else []
            for passage in row["passages"]:
                if passage["label"] == "gold":
                    yield question, runs(passage["text"])


def rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON Lines."""
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
