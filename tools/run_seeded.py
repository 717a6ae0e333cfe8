"""Run the tests marked `seeded` as other processors would: `python tools/run_seeded.py`.

OpenBLAS adds in another order on each kind of processor and with each number of threads, so the last bits of a sum
differ. What a seed decides, and what is printed, stored or compared, must not. Each kernel runs once with one thread
and once with two; one that this processor cannot run is left out, and that is said.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = {"Haswell": "Haswell", "SkylakeX": "SkylakeX", "Prescott": "Prescott|Katmai"}
"""What OpenBLAS is asked for, and what it then calls itself."""

THREADS = (1, 2)

PROBE = """
import numpy as np
for kind in (np.float32, np.float64):
    square = np.ones((64, 64), kind)
    assert ((square @ square @ square[0]) == 4096).all()
"""


def environment(kernel: str, threads: int) -> dict[str, str]:
    return {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads)}


def runs(kernel: str) -> bool:
    """Whether numpy's BLAS really takes this kernel here, and the processor has its instructions."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        env={**environment(kernel, 1), "OPENBLAS_VERBOSE": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        done.returncode == 0
        and re.search(rf"^Core: ({KERNELS[kernel]})$", done.stdout + done.stderr, re.MULTILINE) is not None
    )


def marked() -> list[str]:
    """The files that hold such tests; to collect all the others would take longer than to run these."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return [str(path) for path in files if "pytest.mark.seeded" in path.read_text(encoding="utf-8")]


def main() -> None:
    failed, able = list[str](), [kernel for kernel in KERNELS if runs(kernel)]
    for kernel in KERNELS:
        if kernel not in able:
            print(f"{kernel}: left out, this processor or this numpy cannot run it", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "seeded", "-p", "no:cacheprovider", *marked()]
    for kernel in able:
        for threads in THREADS:
            print(f"{kernel}, {threads} thread{'s'[: threads - 1]}:", flush=True)
            if subprocess.run(command, cwd=ROOT, env=environment(kernel, threads), check=False).returncode:
                failed.append(f"{kernel} with {threads}")
    if failed or not able:
        sys.exit(f"seeded tests failed on {', '.join(failed)}" if failed else "no kernel could be chosen")


if __name__ == "__main__":
    main()
