"""Draws attack success against the number of known sources that the attacker owns.

    python -m benchmarks sources_owned docs/pictures/sources-owned.svg

The shares are measured: RealtimeQA, 46 questions, ten passages, five published poisons, the small reader; how many
answers say what the attacker wants. The history knows the addresses of the other questions. The five poisons stand at
so many known sources in turn, with none owned each at a new one. docs/sources.md has the commands.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from unpoison.algorithms.intervals import wilson
from unpoison.report.charts import LineChart, Series, svg

QUESTIONS = 46
OWNED = (0, 1, 2, 3, 5)

SUCCESSES = {
    "no defense": (40,) * 5,
    "Guard, sources unread": (33,) * 5,
    "Guard with a history of sources": (1, 6, 7, 9, 19),
}
"""Of 46 answers, by the number of known sources owned; who does not read sources has the same at any number."""

TITLE = (
    "Attack success against the number of known sources owned: without a defense 87 %, Guard without sources 72 %, "
    "whatever the sources; Guard with a history 2 % where none is owned, 13 % with one, 15 % with two, 20 % with "
    "three, 41 % with five"
)

NAMES_AT = (76, 210, 400)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path, help="the SVG to write")
    parser.parse_args().picture.write_text(picture(), encoding="utf-8")


def picture() -> str:
    """The chart of a report as a file of its own, with the names of the lines above it."""
    lines = tuple(
        Series(name, hue, tuple((owned, wilson(hits, QUESTIONS)) for owned, hits in zip(OWNED, counts, strict=True)))
        for hue, (name, counts) in enumerate(SUCCESSES.items())
    )
    figure = LineChart(TITLE, "known sources owned, of five planted texts", "answers that say the attacker's, %", lines)
    return svg(figure)


if __name__ == "__main__":
    main()
