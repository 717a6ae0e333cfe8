"""Clean retrievals of kinds that no question set has: manuals, guides, articles, mail, tables, other languages.

Made of the harmless texts of `injections.jsonl`, all freely licensed, cut into chunks. A question is a heading of a
text or the first words of a sentence, its passages are what BM25 finds among the chunks of the same language.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.training.guard_data import Sample, drawn_sample
from benchmarks.training.split import rows, share_of
from unpoison.core.passages import Passage
from unpoison_lab.evaluation.contexts import nearest

__all__ = ["harmless_texts", "manual_samples"]

ASIDE = ("prompt or agent instruction file",)
"""Kinds that are not certainly harmless."""

WORDS = 110
"""Of a chunk."""

FEWEST = 20
"""Chunks of a language."""

MOST = 500
"""Questions in all."""

HEADING = re.compile(r"(?m)^#{1,4} (.{8,90})$")
HOW = ("how do I {}?", "{}", "what about {}", "{}?", "how to {}")


@cache
def _chunks(folder: Path) -> dict[str, list[str]]:
    """The chunks of each language, other languages than the common ones together."""
    made = defaultdict(list)
    for row in rows(folder / "injections.jsonl"):
        if row["label"] == "benign" and row["kind"] not in ASIDE:
            parts, size = list[str](), 0
            for line in re.split(r"(?<=[.!?\n])\s+", row["text"]):
                parts.append(line)
                size += len(line.split())
                if size >= WORDS:
                    made[row["language"]].append(" ".join(parts))
                    parts, size = [], 0
            if size >= WORDS / 4 or not made[row["language"]]:
                made[row["language"]].append(" ".join(parts))
    return {language: list(dict.fromkeys(chunks)) for language, chunks in made.items() if len(chunks) >= FEWEST}


def harmless_texts(folder: Path) -> list[tuple[str, str]]:
    """The texts whole, with the name of their kind: English or other."""
    return [
        (row["text"], f"harmless, {'English' if row['language'] == 'en' else 'other'}")
        for row in rows(folder / "injections.jsonl")
        if row["label"] == "benign" and row["kind"] not in ASIDE
    ]


def manual_samples(folder: Path) -> Iterator[Sample]:
    """Clean samples of the domain `manuals`."""
    for question, chunks in _asked(folder):
        if len(chunks) >= 3:
            rng = np.random.default_rng(int(share_of(f"manuals {question}") * 2**53))
            yield drawn_sample("manuals", "none", question, [(chunk, False) for chunk in chunks], [], rng)


def _asked(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Questions with the forty nearest chunks; the same in every run."""
    asked: list[tuple[str, str]] = []
    for language, chunks in _chunks(folder).items():
        for chunk in chunks:
            share = share_of(chunk)
            heading = HEADING.search(chunk)
            first = re.findall(r"[^\W_]+(?:['-][^\W_]+)*", chunk)
            subject = heading[1] if heading else " ".join(first[: 4 + int(share * 6)])
            if len(subject) > 8:
                asked.append((language, HOW[int(share * 1000) % len(HOW)].format(subject)))
    asked = sorted(dict.fromkeys(asked), key=lambda pair: share_of(pair[1]))[:MOST]
    for language in sorted({language for language, _ in asked}):
        own = [question for name, question in asked if name == language]
        chunks = _chunks(folder)[language]
        corpus = [Passage(chunk) for chunk in chunks]
        for question, positions in zip(own, nearest(own, corpus, 40)):
            yield question, [chunks[i] for i in positions]
