"""What `pip install unpoison` downloads of ours, and what it puts on a disk with all that the core depends on.

    python tools/installed_size.py dist/unpoison-*.whl

Installs the wheel into an empty folder and adds up the bytes, without compiled bytecode.
Leaves with 1 above the bounds.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

WHEEL, ALL = 3_000_000, 220_000_000
"""Bytes that we promise to stay under: our wheel, and everything on the disk."""


def main(wheel: str) -> int:
    with TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", scratch, wheel]
        subprocess.run(command, check=True)
        sizes = {place.name: size(place) for place in Path(scratch).iterdir()}
    ours = sum(number for name, number in sizes.items() if name.startswith("unpoison"))
    for name, number in sorted(sizes.items(), key=lambda one: -one[1])[:8]:
        print(f"{number / 1e6:8.1f} MB  {name}")
    download, everything = Path(wheel).stat().st_size, sum(sizes.values())
    print(f"{ours / 1e6:8.1f} MB  ours on the disk; {download / 1e6:.1f} MB to download, at most {WHEEL / 1e6:g}")
    print(f"{everything / 1e6:8.1f} MB  all on the disk, at most {ALL / 1e6:g}")
    return int(download > WHEEL or everything > ALL)


def size(place: Path) -> int:
    """Bytes of a file or of all files of a folder."""
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
