"""The changelog's entry of a version, for the release of a tag.

    python tools/release_notes.py 0.1.0

Leaves with 1 where the package has another version, or the entry is missing or has no date yet.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(wanted: str) -> int:
    version, date, text = newest_entry((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    package = re.search(r'^__version__ = "([^"]+)"', (ROOT / "src/unpoison/__init__.py").read_text(), re.MULTILINE)
    if package is None or not wanted == package[1] == version:
        print(f"the tag says {wanted}, the package {package and package[1]}, the changelog {version}", file=sys.stderr)
        return 1
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        print(f"the changelog's entry of {version} has no date but {date!r}", file=sys.stderr)
        return 1
    print(text)
    return 0


def newest_entry(changelog: str) -> tuple[str, str, str]:
    """The version, the date and the text of the first entry."""
    _, heading, text, *_ = re.split(r"^## (.+)$", changelog, flags=re.MULTILINE)
    version, _, date = heading.partition(" - ")
    return version.strip(), date.strip(), text.strip()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
