"""Draw docs/architecture.svg: the folders of the package in the layers of the import contract, top to bottom.

    python tools/draw_house.py          # writes the picture
    python tools/draw_house.py --check  # fails where the picture is not what the contract says

The layers come from `pyproject.toml`, which `make imports` holds the code to; what stands in a box is the first
sentence of the folder's docstring, up to its colon.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "architecture.svg"
PACKAGE = ROOT / "src" / "unpoison"
LAB = ROOT / "src" / "unpoison_lab"

WIDTH, ROW, GAP = 760, 46, 8
LINE = 100
"""Characters of a purpose on one line of a box as wide as the picture."""

STYLE = """
    .room { fill: #f6f8fa; stroke: #57606a; } text { fill: #1f2328; } .purpose { font-size: 12px; fill: #57606a; }
    @media (prefers-color-scheme: dark) {
      .room { fill: #21262d; stroke: #8b949e; } text { fill: #e6edf3; } .purpose { fill: #8b949e; }
    }"""


def layers() -> list[list[str]]:
    """The folders of each layer, from the surfaces down."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    named = [[name.strip().removeprefix("unpoison.") for name in row.split(":")] for row in rows]
    return [[LAB.name], *(rooms for row in named if (rooms := [room for room in row if (PACKAGE / room).is_dir()]))]


def purpose(room: str) -> str:
    """What a folder is for, in the words of its docstring."""
    home = LAB if room == LAB.name else PACKAGE / room
    doc = ast.get_docstring(ast.parse((home / "__init__.py").read_text(encoding="utf-8"))) or ""
    return doc.split("\n")[0].rstrip(".")


def picture() -> str:
    """The SVG."""
    boxes, top = [], GAP
    for rooms in layers():
        width = (WIDTH - GAP * (len(rooms) + 1)) / len(rooms)
        texts = [wrap(purpose(room), LINE // len(rooms)) for room in rooms]
        height = ROW + 15 * (max(map(len, texts)) - 1)
        for column, (room, lines) in enumerate(zip(rooms, texts, strict=True)):
            left = GAP + column * (width + GAP)
            middle = left + width / 2
            boxes.append(f'<rect class="room" x="{left:g}" y="{top}" width="{width:g}" height="{height}" rx="6"/>')
            boxes.append(f'<text x="{middle:g}" y="{top + 19}">{escape(room)}</text>')
            boxes += [
                f'<text class="purpose" x="{middle:g}" y="{top + 36 + 15 * number}">{escape(line)}</text>'
                for number, line in enumerate(lines)
            ]
        top += height + GAP
    body = "\n    ".join(boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" font-family="system-ui, sans-serif" '
        'font-size="14" role="img" aria-label="The folders of unpoison: each imports only what stands below it">\n'
        f'  <style>{STYLE}\n  </style>\n  <g text-anchor="middle">\n    {body}\n  </g>\n</svg>\n'
    )


def main() -> int:
    if "--check" in sys.argv:
        if PICTURE.read_text(encoding="utf-8") == picture():
            return 0
        print("docs/architecture.svg is not what pyproject.toml says: run python tools/draw_house.py")
        return 1
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
