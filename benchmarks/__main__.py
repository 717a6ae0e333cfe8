"""Run a benchmark by its name: `python -m benchmarks NAME ...`; without a name, the list of all.

`evaluation-data` and `evaluation-data/NAME.jsonl` are the folder that `data get` fills, and a file in it.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

from unpoison_lab.data_files import BUILT, data_folder

FOLDERS = ("data", "training", "quality", "speed")


def scripts() -> dict[str, Path]:
    """Every script that has a command line, by name."""
    here = Path(__file__).parent
    files = (file for folder in FOLDERS for file in sorted((here / folder).glob("*.py")))
    return {file.stem: file for file in files if '__name__ == "__main__"' in file.read_text(encoding="utf-8")}


def placed(word: str) -> str:
    """A word of the command line, with the folder of built evaluation files in the place of its name."""
    name, slash, rest = word.partition("/")
    return f"{data_folder(name)}{slash}{rest}" if name == BUILT else word


def main() -> int:
    """Hand over to the script; it reads the rest of the command line."""
    known = scripts()
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        for name, file in known.items():
            doc = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
            print(f"{file.parent.name:9} {name:22} {doc.splitlines()[0] if doc else ''}")
        return 0
    name = sys.argv[1]
    if name not in known:
        print(f"{name} is no benchmark; the names are {', '.join(known)}", file=sys.stderr)
        return 2
    sys.argv[:2] = [f"python -m benchmarks {name}"]
    sys.argv[1:] = [placed(word) for word in sys.argv[1:]]
    runpy.run_module(
        f"benchmarks.{known[name].parent.name}.{name}", run_name="__main__", alter_sys=True
    )  # workers import it by name
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
