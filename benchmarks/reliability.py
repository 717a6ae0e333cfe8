"""Draws Guard's reliability diagram from the tables that benchmarks/guard_tables.py printed.

    python benchmarks/reliability.py docs/results/guard.md docs/results/guard-reliability.svg

Across: what Guard says, the middle of each tenth of probability. Up: how often that was poison, clean and poison
weighing the same. A calibrated model follows the diagonal; below it, Guard is too sure.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

SIDE, EDGE = 360, 48
COLOURS = {"lexical": "#0969da", "minilm": "#bc4c00"}
ROW = re.compile(r"^\| (0\.\d) to [01]\.\d \| \d+ \| ([01]\.\d+) \|$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, help="what guard_tables.py printed, a section `## ENCODER: ...` for each")
    parser.add_argument("picture", type=Path, help="the SVG to write")
    options = parser.parse_args()
    found = {}
    for section in options.tables.read_text(encoding="utf-8").split("\n## ")[1:]:
        points = [(float(low) + 0.05, float(share)) for low, share in ROW.findall(section)]
        if points:
            found[section.partition(":")[0]] = points
    options.picture.write_text(drawn(found), encoding="utf-8")


def drawn(found: dict[str, list[tuple[float, float]]]) -> str:
    """One line with markers for each encoder, the diagonal dashed."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE + 2 * EDGE} {SIDE + 2 * EDGE}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Reliability of Guard">',
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIDE}" height="{SIDE}" fill="#fff" stroke="#57606a"/>',
        f'<path d="M{place(0, 0)} L{place(1, 1)}" stroke="#8c959f" stroke-dasharray="4 4"/>',
        f'<text x="{EDGE + SIDE / 2}" y="{SIDE + 2 * EDGE - 10}" text-anchor="middle">what Guard gives</text>',
        f'<text transform="translate(14 {EDGE + SIDE / 2}) rotate(-90)" text-anchor="middle">share of poison</text>',
    ]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = EDGE + SIDE * tick, EDGE + SIDE * (1 - tick)
        parts.append(f'<text x="{x}" y="{EDGE + SIDE + 18}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{EDGE - 6}" y="{y + 4}" text-anchor="end">{tick:g}</text>')
    for row, (name, points) in enumerate(found.items()):
        colour = COLOURS.get(name, "#1f2328")
        path = " L".join(place(x, y) for x, y in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y in points:
            left, top = place(x, y).split(" ")
            parts.append(f'<circle cx="{left}" cy="{top}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{EDGE + 12}" y="{EDGE + 22 + 18 * row}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


def place(x: float, y: float) -> str:
    return f"{EDGE + SIDE * x:.1f} {EDGE + SIDE * (1 - y):.1f}"


if __name__ == "__main__":
    main()
