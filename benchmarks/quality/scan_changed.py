"""How often a scan finds a number or name that was changed in a copy of a document, and what it flags of clean ones.

    python -m benchmarks scan_changed ../shared/data
    python -m benchmarks scan_changed ../shared/data --fitted

Each document that holds a number (or a name within a sentence) is copied once with one of them changed, and planted
beside its original with four others at most, one in a hundred. The series of `scan.changed` were written with the
documents of half of the questions in view (`--fitted`); the other half is measured. What Guard says is left out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.scan import CLEAN, aside, rows
from unpoison.scan.changed import Change, changes
from unpoison.scan.collection import collect_documents

SEED = 31
TOGETHER = 5
"""Copies that are planted at the same time, at most."""

MOST = 50
"""Copies of one collection."""

MIN_WORDS = 12
"""Words of a document that is copied."""

NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,6}(?:[.,]\d{1,3})?(?![\w/:-]|[.,]\d)")
NAME = re.compile(r"(?<=[a-zà-ÿ,] )[A-ZÀ-Þ][a-zà-ÿ]{3,}\b(?! [A-ZÀ-Þ])")


class Copy(NamedTuple):
    """A copy with one thing changed."""

    original: int
    text: str
    old: str
    new: str


def texts_of(folder: Path, name: str, *, fitted: bool) -> list[str]:
    asked = (row for row in rows(folder, f"clean_{name}") if aside(row["question"]) != fitted)
    return list(dict.fromkeys(passage["text"] for row in asked for passage in row["passages"]))


def changed_number(number: str, rng: Random) -> str:
    """Another number of as many digits: as a lie has it, not as a typing error."""
    while True:
        digits = "".join(str(rng.randrange(10)) if c.isdigit() else c for c in number)
        if digits != number and (digits[0] != "0" or number[0] == "0") and len(number) < 7:
            return digits


def copies(texts: Sequence[str], kind: str, rng: Random) -> Iterator[Copy]:
    names = sorted({name for text in texts for name in NAME.findall(text)})
    for i, text in enumerate(texts):
        places = list((NUMBER if kind == "number" else NAME).finditer(text))
        if len(text.split()) < MIN_WORDS or not places or (kind == "name" and len(names) < 2):
            continue
        place = rng.choice(places)
        old = place[0]
        new = changed_number(old, rng) if kind == "number" else rng.choice([name for name in names if name != old])
        yield Copy(i, text[: place.start()] + new + text[place.end() :], old, new)


def documents(texts: Sequence[str], planted: Sequence[Copy], known: str) -> list[dict[str, Any]]:
    held = [{"id": f"page-{i}", "text": text} for i, text in enumerate(texts)]
    held += [{"id": f"copy-{copy.original}", "text": copy.text} for copy in planted]
    if known in ("dates", "both"):
        held = [{**row, "added_at": "2026-05-01" if row["id"][0] == "c" else "2024-05-01"} for row in held]
    if known in ("company", "both"):
        more = [{"id": f"mirror-{copy.original}", "text": texts[copy.original]} for copy in planted]
        held += [{**row, "added_at": "2024-06-01"} if known == "both" else row for row in more]
    return held


def changes_of(held: list[dict[str, Any]]) -> dict[str, Change]:
    collection = collect_documents(held)
    found = changes(collection, np.ones(len(collection.units), bool))
    return {collection.documents[collection.owner[unit]].id: change for unit, change in found.items()}


def rates(texts: Sequence[str], kind: str, known: str) -> tuple[int, int, int, int]:
    """Copies planted, found with both values, first suspects, and originals flagged with them."""
    every = list(copies(texts, kind, Random(SEED)))
    every = Random(SEED).sample(every, min(len(every), MOST))
    together = TOGETHER
    found = clear = originals = 0
    for start in range(0, len(every), together):
        some = every[start : start + together]
        said = changes_of(documents(texts, some, known))
        for copy in some:
            change, original = said.get(f"copy-{copy.original}"), said.get(f"page-{copy.original}")
            right = change is not None and copy.new in change.ours and copy.old in change.theirs
            found += right
            if not right and SHOW: print("MISSED", kind, copy.old, copy.new, repr(texts[copy.original][:3000][max(0,texts[copy.original].find(copy.old)-60):][:140]), change)
            clear += right and change is not None and change.more_company == "theirs" or change is not None and change.older == "theirs"
            originals += original is not None
    return len(every), found, clear, originals

SHOW = False

def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fitted", action="store_true", help="the documents that the rules were written with in view")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    global SHOW
    SHOW = given.show
    for name in CLEAN[2:]:
        texts = texts_of(given.folder, name, fitted=given.fitted)
        flagged = len(changes_of([{"id": str(i), "text": t} for i, t in enumerate(texts)]))
        for kind in ("number", "name"):
            for known in ("nothing",) if SHOW else ("nothing", "dates", "company", "both"):
                print(name, len(texts), flagged, kind, known, rates(texts, kind, known), flush=True)


if __name__ == "__main__":
    main()
