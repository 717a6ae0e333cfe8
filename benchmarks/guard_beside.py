"""Guard beside the published screening defenses, cell by cell, on questions that it was not fitted on.

    python benchmarks/guard_beside.py ../shared/data --encoder minilm > beside.md

Per cell: contexts with any poison left and clean passages kept, in percent, of Guard and of the defense that leaves
least poison; and whether any defense beats Guard, leaving no more poison at no more clean damage, one of them better.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from guard_data import Sample, measured_samples
from guard_screens import cached_encoder, screen_all
from quality import DEFENSES
from unpoison.defenses.base import Defense
from unpoison.models.protocols import Encoder
from unpoison.registry import create

Cell = tuple[str, str, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"))
    arguments = parser.parse_args()

    samples = measured_samples(arguments.folder)
    encoder = cached_encoder(arguments.encoder, arguments.cache, samples)
    specs = {**{name: spec for name, spec in DEFENSES.items() if spec}, "guard": "guard"}
    defenses = {name: create("defenses", spec, encoder=encoder) for name, spec in specs.items()}
    by = defaultdict[Cell, list[Sample]](list)
    for sample in samples:
        by[sample.domain, sample.attack, sum(sample.poison)].append(sample)

    print("| set | attack | poisons | n | guard | least poison by another | beaten by |\n|---|---|---|---|---|---|---|")
    beaten = attacked = 0
    for (domain, attack, count), contexts in by.items():
        if attack in ("none", "as published"):
            continue
        found = {name: measured(defense, contexts, encoder) for name, defense in defenses.items()}
        left, kept = found.pop("guard")
        better = [n for n, (a, b) in found.items() if a <= left and b >= kept and (a, b) != (left, kept)]
        rival = min(found, key=lambda name: (found[name][0], -found[name][1]))
        attacked, beaten = attacked + 1, beaten + bool(better)
        print(f"| {domain} | {attack} | {count} | {len(contexts)} | {left:.0f} / {kept:.1f} | {rival}: "
              f"{found[rival][0]:.0f} / {found[rival][1]:.1f} | {', '.join(better)} |", flush=True)  # fmt: skip
    print(f"\nBeaten in {beaten} of {attacked} attacked cells.")


def measured(defense: Defense, contexts: Sequence[Sample], encoder: Encoder) -> tuple[float, float]:
    """Contexts with any poison left and clean passages kept, in percent."""
    tallies = [one.tally for one in screen_all(defense, contexts, encoder)]
    kept, lost = sum(t.clean_kept for t in tallies), sum(t.clean_dropped for t in tallies)
    return 100 * sum(t.poisoned for t in tallies) / len(tallies), 100 * kept / max(kept + lost, 1)


if __name__ == "__main__":
    main()
