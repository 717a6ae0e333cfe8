"""What a batch costs: rows per second against `unpoison screen`, and memory by the length of the file.

    python -m benchmarks batch
    python -m benchmarks batch evaluation-data/nq_poisoned.jsonl --rows 630

Every figure is of a whole command, its start included: rows per second in the best of three runs and, in brackets, the
processor's milliseconds for a row, which do not depend on what else the machine is doing (Ray's are not counted).
Without a file the rows are made from a seed, ten passages each; a file is repeated until there are enough. Memory is
the most that any one process of the command held.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from benchmarks.speed.inputs import cases
from benchmarks.speed.timing import note

DEFENSES = ("guard", "grada")
LENGTHS = (1_000, 10_000, 100_000)
PASSAGES, DIFFERENT, RUNS = 10, 500, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="JSON Lines to take the rows from")
    parser.add_argument("--rows", type=int, default=3_000, help="rows of the first table")
    parser.add_argument("--skip-ray", action="store_true")
    parser.add_argument("--skip-memory", action="store_true")
    options = parser.parse_args()
    lines = generated() if options.file is None else options.file.read_bytes().splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        speed(folder, lines, options.rows, ray=not options.skip_ray)
        if not options.skip_memory:
            memory(folder, lines)


def generated() -> list[bytes]:
    made = cases(PASSAGES, DIFFERENT)
    return [json.dumps({"query": case.question, "passages": case.texts}).encode() + b"\n" for case in made]


def speed(folder: Path, lines: list[bytes], rows: int, *, ray: bool) -> None:
    source, output = written(folder / "rows.jsonl", lines, rows), folder / "out.jsonl"
    commands = {
        "unpoison screen": ("screen", source, "-o", output),
        "unpoison batch, 1 worker": ("batch", source, output, "--workers", 1),
        "unpoison batch, 2 workers": ("batch", source, output, "--workers", 2),
    }
    if ray:
        commands["unpoison batch, Ray, 2 workers"] = ("batch", source, output, "--engine", "ray", "--workers", 2)
    print(f"| rows/s, {rows:,} rows | {' | '.join(DEFENSES)} |\n|---|{'---:|' * len(DEFENSES)}")
    for name, command in commands.items():
        found = []
        for defense in DEFENSES:
            note(f"{name}, {defense}")
            seconds, busy, _ = min(measured(*command, "-d", defense) for _ in range(RUNS))
            cost = "" if "Ray" in name else f" ({1000 * busy / rows:.2f})"
            found.append(f"{rows / seconds:.0f}{cost}")
        print(f"| {name} | {' | '.join(found)} |", flush=True)


def memory(folder: Path, lines: list[bytes]) -> None:
    print("\n| rows | file | seconds | most memory of a process, JSON Lines | the same, JSON Lines to Parquet |")
    print("|---:|---:|---:|---:|---:|")
    for rows in LENGTHS:
        note(f"memory, {rows:,} rows")
        source = written(folder / "rows.jsonl", lines, rows)
        seconds, _, most = measured("batch", "-d", "vanilla", "--workers", 2, source, folder / "out.jsonl")
        *_, table = measured("batch", "-d", "vanilla", "--workers", 2, source, folder / "out.parquet")
        size = source.stat().st_size / 2**20
        print(f"| {rows:,} | {size:.0f} MiB | {seconds:.0f} | {most:.0f} MiB | {table:.0f} MiB |", flush=True)


def written(path: Path, lines: list[bytes], rows: int) -> Path:
    with path.open("wb") as file:
        file.writelines(islice(cycle(lines), rows))
    return path


def measured(*arguments: object) -> tuple[float, float, float]:
    """Seconds of a command, those of the processor, and the most MiB that one of its processes held."""
    began = time.perf_counter()
    command = [sys.executable, "-c", "from unpoison.cli import main; main()", *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command[3:])} failed")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 2**10


if __name__ == "__main__":
    main()
