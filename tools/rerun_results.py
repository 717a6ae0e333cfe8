"""Measure the entries of result files again, quickly: `python tools/rerun_results.py arena/results/NAME.json ...`.

For the workflow that looks at a pull request. The results go into `build/arena`; modules of `examples/arena` are found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from unpoison.bench.arena import ENTRIES, Entry, read_result

ROOT = Path(__file__).parents[1]
NOT_ALL = 1
"""The exit status of `arena run` where tasks lack their data or an extra."""


def specs(files: list[Path]) -> list[str]:
    """What `arena run -d` takes for these: the name of an entry of the first table, else the defense; each once."""
    entries = [Entry.from_dict(read_result(file)["entry"]) for file in files]
    return list(dict.fromkeys(entry.name if entry in ENTRIES else entry.defense for entry in entries))


def main() -> int:
    files = [Path(word) for word in sys.argv[1:]]
    if not files:
        print("no result was added")
        return 0
    command = [sys.executable, "-m", "unpoison", "arena", "run", "--quick"]
    command += ["--runs", "build/arena/runs", "--results", "build/arena/results"]
    command += [f"--defense={spec}" for spec in specs(files)]
    paths = [str(ROOT / "examples" / "arena"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}, check=False)
    return 0 if done.returncode in (0, NOT_ALL) else done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
