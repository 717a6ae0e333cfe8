"""Measure every number of the front page, with the shipped objects, and put them where they stand.

    python -m benchmarks headlines                     # everything, evaluation-data; some minutes
    python -m benchmarks headlines --only sample-      # claims whose names begin so; the sample needs no data
    python -m benchmarks headlines --pages             # only put the numbers of the file into the pages

Every claim of `headline_claims.py` goes through `screen` of the defense that a user creates, no option set, and into
docs/results/headlines.json with its interval, command, commit and date; pages show what stands there, between
`<!-- headline NAME -->` and `<!-- end NAME -->` (`headline_pages.py`). The tests compare pages and file, and measure
the first questions of each claim again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality.headline_claims import CLAIMS, Claim, Groups, of_data, of_sample
from benchmarks.quality.headline_pages import FILE, ROOT, bring_up_to_date, load_headlines
from benchmarks.training.guard_data import Sample
from unpoison import Guard, __version__
from unpoison.core.registry import create
from unpoison.core.screenings import Screening
from unpoison.defenses.base import Defense
from unpoison.models import load_encoder
from unpoison_lab.evaluation.runs import CellTally, tally

FEW = 8
"""Questions of each claim that are measured again by the tests."""

Entry = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--only", default="", help="claims whose names begin so")
    parser.add_argument("--limit", type=int, help="at most so many questions of a clean set, spread over all of it")
    parser.add_argument("--pages", action="store_true", help="measure nothing, only bring the pages up to date")
    arguments = parser.parse_args()
    if not arguments.pages:
        claims = {name: claim for name, claim in CLAIMS.items() if name.startswith(arguments.only)}
        groups = {
            name: spread(samples, arguments.limit) if name.startswith("clean, ") and arguments.limit else samples
            for name, samples in groups_of(claims, arguments.folder).items()
        }
        standing = load_headlines() if FILE.exists() else {}
        for name, entry in measure(claims, groups):
            if arguments.limit:
                entry["command"] += f" --limit {arguments.limit}"
            standing[name] = entry
            print(f"{name}: {entry['value']} [{entry['low']}, {entry['high']}], n = {entry['n']}", flush=True)
            write(standing)
    bring_up_to_date()


def write(standing: Mapping[str, Entry]) -> None:
    """Keep the numbers of the claims that there are."""
    text = json.dumps({name: standing[name] for name in sorted(standing) if name in CLAIMS}, indent=1)
    FILE.write_text(text + "\n", encoding="utf-8")


def groups_of(claims: Mapping[str, Claim], folder: Path) -> dict[str, list[Sample]]:
    """The samples of all groups that are counted on."""
    groups = of_sample()
    if any(claim.needs_data for claim in claims.values()):
        groups |= of_data(folder)
    return {name: groups[name] for name in dict.fromkeys(claim.group for claim in claims.values())}


def measure(claims: Mapping[str, Claim], groups: Groups) -> Iterator[tuple[str, Entry]]:
    """Each claim's name and what is written of it."""
    counts: dict[tuple[str, str], list[CellTally]] = {}
    stamp = {"commit": commit(), "date": datetime.now(UTC).date().isoformat(), **state()}
    for name, claim in claims.items():
        key = (claim.defense, claim.group)
        if key not in counts:
            counts[key] = tallies(claim.defense, groups[claim.group])
        yield name, {**entry(name, claim, counts[key]), **stamp}


def tallies(defense: str, samples: Sequence[Sample]) -> list[CellTally]:
    return [screened.tally for screened in screen_all(defense, samples)]


def entry(name: str, claim: Claim, counts: Sequence[CellTally]) -> Entry:
    """A claim's number, in percent, and how to get it."""
    found = claim.measure(counts)
    few = claim.measure(spread(counts, FEW)).value if claim.repeatable else None
    return {
        "says": claim.says,
        "value": percent(found.value),
        "low": percent(found.low),
        "high": percent(found.high),
        "n": len(counts),
        "rows": claim.group,
        "configuration": f"{claim.defense}, everything by default",
        "command": f"python -m benchmarks headlines --only {name}",
        "few": None if few is None else percent(few),
    }


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, evenly from all."""
    return [items[k * len(items) // most] for k in range(most)] if len(items) > most else list(items)


def percent(share: float) -> float:
    return round(100 * share, 1)


def state() -> dict[str, str]:
    """What a number becomes stale with: this package's version and the coefficients that Guard judges by."""
    screening = Guard().screen("who", ["One text.", "Another text."])
    return {"version": __version__, "coefficients": str(screening.evidence["calibration"])}


def commit() -> str:
    return subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, text=True).strip()  # noqa: S607


@dataclass(frozen=True)
class Screened:
    """A sample, and what the defense said of its passages through `screen`, with orders and titles.

    The functions inside a defense, which fits use, skip a part of that way.

    Attributes:
        sample: The question with its labelled passages.
        screening: The defense's.
    """

    sample: Sample
    screening: Screening

    @property
    def poison(self) -> NDArray[np.bool_]:
        return np.array(self.sample.poison)

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which passages a model would read, shape (k,)."""
        return np.array([verdict.kept for verdict in self.screening.verdicts])

    @property
    def probability(self) -> NDArray[np.float64]:
        """Of poison, as Guard says it; 1 for orders. Shape (k,)."""
        return np.asarray(self.screening.evidence["probability"], dtype=np.float64)

    @property
    def tally(self) -> CellTally:
        """The passages counted by what they are and what became of them."""
        poison, gold = (set(np.flatnonzero(labels).tolist()) for labels in (self.sample.poison, self.sample.gold))
        return tally(len(self.sample.poison), self.screening.kept_indices, poison, gold)


def screen_all(defense: Defense | str, samples: Sequence[Sample]) -> list[Screened]:
    """Every sample through the defense's `screen`."""
    made = create("defenses", defense, encoder=load_encoder("lexical")) if isinstance(defense, str) else defense
    return [Screened(sample, made.screen(sample.question, sample.passages)) for sample in samples]


if __name__ == "__main__":
    main()
