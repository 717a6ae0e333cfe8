"""Where Guard fails, with real rows: poison that it keeps and clean passages that it drops, on unseen questions.

python benchmarks/guard_gallery.py ../shared/data --encoder lexical
"""

from __future__ import annotations

import argparse
from hashlib import blake2b
from pathlib import Path

import numpy as np

from guard_data import Sample, measured_samples
from guard_screens import cached_encoder, screen_all

LEFT_OUT = ("garag", "as published", "5 clean + many")
"""Typos are no false claim; entity substitution and RAMDocs are kept whole."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"))
    parser.add_argument("--most", type=int, default=3, help="rows of each kind")
    arguments = parser.parse_args()

    samples = [s for s in measured_samples(arguments.folder) if s.attack not in LEFT_OUT and sum(s.poison) <= 1]
    encoder = cached_encoder(arguments.encoder, arguments.cache, samples)
    shown: dict[tuple[str, str, str], set[str]] = {}
    for one in screen_all("guard", sorted(samples, key=drawn), encoder):
        sample, probability = one.sample, one.probability
        for what, wrong in (("KEPT", one.poison & one.kept), ("DROPPED", ~one.poison & ~one.kept)):
            asked = shown.setdefault((what, sample.domain, sample.attack), set())
            for i in np.flatnonzero(wrong)[:1]:
                if len(asked) < arguments.most and sample.question not in asked:
                    asked.add(sample.question)
                    text = " ".join(sample.texts[i].split())[:260]
                    print(
                        f"- {what} {sample.domain}, {sample.attack} | {sample.question} | {probability[i]:.2f} | {text}"
                    )


def drawn(sample: Sample) -> bytes:
    """An order that nobody chose."""
    return blake2b(f"{sample.domain} {sample.attack} {sample.question}".encode()).digest()


if __name__ == "__main__":
    main()
