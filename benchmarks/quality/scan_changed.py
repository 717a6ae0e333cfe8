"""How often a scan finds a number or name that was changed in a copy of a document, and what it reports of clean ones.

    python -m benchmarks scan_changed ../shared/data
    python -m benchmarks scan_changed ../shared/data --sets nq,msmarco

Each document that holds a number (or a name within a sentence) is copied once with one of them changed, and the copy
planted beside it, `TOGETHER` of them at a time. What Guard says is left out: it is most of the time, and not what
finds these. The rules of `text.changed_words` were written with the `clean_` collections in view, not the others.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.scan import CLEAN, corpus_of, rows
from unpoison.scan.changed import Change, changes
from unpoison.scan.collection import collect_documents

SEED = 31
TOGETHER = 5
"""Copies that are planted at the same time."""

MOST = 40
"""Copies of one kind in one collection."""

MIN_WORDS = 12
"""Words of a document that is copied."""

NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,6}(?:[.,]\d{1,3})?(?![\w/:-]|[.,]\d)")
REFERENCE = re.compile(r"\[[^\]]*\Z")
"""Numbers of references stand for no fact."""

NAME = re.compile(r"(?<=[a-zà-ÿ,] )[A-ZÀ-Þ][a-zà-ÿ]{3,}\b(?! [A-ZÀ-Þ])")


class Copy(NamedTuple):
    """A copy with one thing changed."""

    original: int
    text: str
    old: str
    new: str


def texts_of(folder: Path, name: str) -> list[str]:
    """The documents of a collection, each once."""
    if name not in CLEAN:
        return list(dict.fromkeys(row["text"] for row in corpus_of(folder, name)))
    return list(dict.fromkeys(p["text"] for row in rows(folder, f"clean_{name}") for p in row["passages"]))


def another_number(number: str, rng: Random) -> str:
    """One of as many digits."""
    while True:
        digits = "".join(str(rng.randrange(10)) if c.isdigit() else c for c in number)
        if digits != number and (digits[0] != "0" or number[0] == "0"):
            return digits


def copies(texts: Sequence[str], kind: str, rng: Random) -> Iterator[Copy]:
    names = sorted({name for text in texts for name in NAME.findall(text)})
    for i, text in enumerate(texts):
        places = list((NUMBER if kind == "number" else NAME).finditer(text))
        places = [place for place in places if not REFERENCE.search(text, max(place.start() - 200, 0), place.start())]
        if len(text.split()) < MIN_WORDS or not places or (kind == "name" and len(names) < 2):
            continue
        place = rng.choice(places)
        old = place[0]
        new = another_number(old, rng) if kind == "number" else rng.choice([name for name in names if name != old])
        yield Copy(i, text[: place.start()] + new + text[place.end() :], old, new)


def documents(texts: Sequence[str], planted: Sequence[Copy], known: str) -> list[dict[str, Any]]:
    """A collection with copies, whose originals are older, or stand there twice."""
    held = [{"id": f"page-{i}", "text": text} for i, text in enumerate(texts)]
    held += [{"id": f"copy-{copy.original}", "text": copy.text} for copy in planted]
    if known == "dates":
        return [{**row, "added_at": "2026-05-01" if row["id"][0] == "c" else "2024-05-01"} for row in held]
    if known == "company":
        held += [{"id": f"mirror-{copy.original}", "text": texts[copy.original]} for copy in planted]
    return held


def changes_of(held: list[dict[str, Any]]) -> dict[str, Change]:
    collection = collect_documents(held)
    found = changes(collection, np.ones(len(collection.units), bool)).by_unit
    return {collection.documents[collection.owner[unit]].id: change for unit, change in found.items()}


def rates(texts: Sequence[str], planted: Sequence[Copy], known: str, missed: list[str]) -> tuple[int, int, int]:
    """Copies that are reported with both values, that are the suspect, and originals that are."""
    reported = suspects = originals = 0
    for start in range(0, len(planted), TOGETHER):
        some = planted[start : start + TOGETHER]
        said = changes_of(documents(texts, some, known))
        for copy in some:
            change, original = said.get(f"copy-{copy.original}"), said.get(f"page-{copy.original}")
            told = change is not None and any(copy.new in one.ours and copy.old in one.theirs for one in change.words)
            reported += told
            suspects += change is not None and told and change.suspect
            originals += original is not None and original.suspect
            if not told:
                at = texts[copy.original].find(copy.old)
                missed.append(f"{copy.old} / {copy.new}: {texts[copy.original][max(at - 60, 0) : at + 60]!r} {change}")
    return reported, suspects, originals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(CLEAN))
    parser.add_argument("--missed", action="store_true", help="also print what was missed")
    given = parser.parse_args()
    print(
        "| collection | documents | reported of clean | changed | planted | reported | suspect by age | by company | "
        "originals suspect |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    for name in given.sets.split(","):
        texts = texts_of(given.folder, name)
        clean = len(changes_of([{"id": str(i), "text": text} for i, text in enumerate(texts)]))
        for kind in ("number", "name"):
            every = list(copies(texts, kind, Random(SEED)))
            planted = Random(SEED).sample(every, min(len(every), MOST))
            missed: list[str] = []
            if planted:
                found = [rates(texts, planted, known, missed) for known in ("nothing", "dates", "company")]
                cells = (
                    name, f"{len(texts):,}", clean, kind, len(planted), found[0][0], found[1][1], found[2][1],
                    max(originals for _, _, originals in found),
                )  # fmt: skip
                print(f"| {' | '.join(map(str, cells))} |", flush=True)
            if given.missed:
                print(*dict.fromkeys(missed), sep="\n")


if __name__ == "__main__":
    main()
