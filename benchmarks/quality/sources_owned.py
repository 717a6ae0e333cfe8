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
from unpoison.report.charts import Lines, Series, svg

QUESTIONS = 46
OWNED = (0, 1, 2, 3, 5)

SUCCESSES = {
    "no defense": (40,) * 5,
    "Guard, sources unread": (33,) * 5,
    "Guard with a history of sources": (1, 5, 6, 7, 16),
}
"""Of 46 answers, by the number of known sources owned; who does not read sources has the same at any number."""

TITLE = (
    "Attack success against the number of known sources owned: without a defense 87 %, Guard without sources 72 %, "
    "whatever the sources; Guard with a history 2 % where none is owned, 11 % with one, 13 % with two, 15 % with "
    "three, 35 % with five"
)

STYLE = """\
.back{fill:#fbfaf8;stroke:#dcdfe2}text{fill:#5f6b76;font-size:12px;text-anchor:middle;dominant-baseline:central}text.end{text-anchor:end}
text.axis{fill:#1d2329}text.name{text-anchor:start;font-weight:600;fill:currentColor}
.grid{stroke:#dcdfe2}polyline{fill:none;stroke:currentColor;stroke-width:2}
.whisker{fill:none;stroke:currentColor;stroke-width:1.5;opacity:.55}.mark{fill:currentColor}
.hue0{color:#5f6b76}.hue1{color:#b3261e}.hue2{color:#1b7f4d}
@media(prefers-color-scheme:dark){.back{fill:#14181c;stroke:#323a42}text{fill:#9aa6b1}text.axis{fill:#e6e9ec}
.grid{stroke:#323a42}.hue0{color:#aab5c0}.hue1{color:#ff8a80}.hue2{color:#5fcf97}}"""

MARKERS = "●■◆"
"""As `charts` draws the first three series."""

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
    chart = svg(Lines(TITLE, "known sources owned, of five planted texts", "answers that say the attacker's, %", lines))
    names = "".join(
        f'<g class="hue{hue}"><text class="name" x="{x}" y="-12">{MARKERS[hue]} {name}</text></g>'
        for hue, (name, x) in enumerate(zip(SUCCESSES, NAMES_AT, strict=True))
    )
    opening, drawn = chart.split(">", 1)
    opening = opening.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ').replace(
        "0 0 640 340", "0 -36 640 376"
    )
    back = '<rect class="back" x=".5" y="-35.5" width="639" height="375" rx="12"/>'
    return f'{opening} font-family="system-ui, sans-serif"><style>{STYLE}</style>{back}{names}{drawn}\n'


if __name__ == "__main__":
    main()
