"""Hash the texts that are only ever tested on: `python tools/hash_test_texts.py FOLDER`.

FOLDER has one JSON Lines file for each published family, with `poison`, a list of texts, and for some `gibberish`, the
part of them that was made by gradients. What comes out, `src/unpoison/data/test-only.npz`, holds hashes and no text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from unpoison.bench.data.disjoint import save_hashes, text_hashes

OUTPUT = Path(__file__).parents[1] / "src" / "unpoison" / "data" / "test-only.npz"


def texts_of(file: Path) -> Iterator[str]:
    """The texts of one family."""
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for field in ("poison", "gibberish"):
                value = row.get(field) or []
                yield from [value] if isinstance(value, str) else value


def main() -> None:
    found = {file.stem: text_hashes(texts_of(file)) for file in sorted(Path(sys.argv[1]).glob("*.jsonl"))}
    save_hashes(OUTPUT, found)
    print({name: len(hashes) for name, hashes in found.items()}, f"{OUTPUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
