"""Count the words of prose in the documentation: every page of `docs` and the Markdown files of the root.

Tables, code blocks, HTML comments and pictures are left out; a link counts by its text. `python tools/count_words.py`
prints the pages with the most words and the sum; `--most 60000` exits with 1 when the sum is above that many.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_PROSE = (
    re.compile(r"\A---\n.*?\n---\n", re.DOTALL),  # front matter
    re.compile(r"^([ ]*)(`{3,}|~{3,}).*?^\1\2[ ]*$", re.DOTALL | re.MULTILINE),  # code
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^[ ]*\|.*$", re.MULTILINE),  # tables
    re.compile(r"!\[[^\]]*\]\([^)]*\)"),  # pictures
    re.compile(r"(?<=\])\([^)\s]*\)"),  # where links lead
)
WORD = re.compile(r"\S*\w\S*")


def prose_words(markdown: str) -> int:
    """How many words a page has without its tables, code blocks, comments and pictures."""
    for pattern in NO_PROSE:
        markdown = pattern.sub("", markdown)
    return len(WORD.findall(markdown))


def count_pages(root: Path) -> dict[str, int]:
    """Words of prose by page, the page with the most first."""
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    counts = {page.relative_to(root).as_posix(): prose_words(page.read_text(encoding="utf-8")) for page in pages}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the words of prose in the documentation.")
    parser.add_argument("--pages", type=int, default=20, help="how many pages to name (default 20)")
    parser.add_argument("--most", type=int, help="exit with 1 when all pages together have more words")
    options = parser.parse_args()
    counts = count_pages(ROOT)
    for page, count in list(counts.items())[: options.pages]:
        print(f"{count:7,}  {page}")
    total = sum(counts.values())
    print(f"{total:7,}  words of prose in {len(counts)} pages")
    return int(options.most is not None and total > options.most)


if __name__ == "__main__":
    sys.exit(main())
