"""Time of every kernel and every defense, beside the published procedures: `python -m benchmarks speed`.

Markdown goes to stdout, progress to stderr. Everything runs on one thread; contenders take turns on the same inputs;
figures are medians. The procedures of `naive.py` and the package ragdefender take part where the packages of the
parity group are installed.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import platform
import sys
from importlib.metadata import version
from math import log
from pathlib import Path

from benchmarks.speed.inputs import Case, cases, real_cases
from benchmarks.speed.speed_calls import LATENCY, measure_answers
from benchmarks.speed.speed_check import disagreements
from benchmarks.speed.speed_defenses import (
    FORMS,
    measure_encoded,
    measure_forms,
    measure_given,
    measure_radar_cuts,
    needed,
)
from benchmarks.speed.speed_kernels import KERNELS, measure_kernels
from benchmarks.speed.speed_start import import_seconds, installed_megabytes, uninvited
from benchmarks.speed.timing import COMPUTING, SIZES, Results, digits, table

__all__: list[str] = []

SECTIONS = ("start", "defenses", "encoders", "forms", "radar", "answers", "kernels")

CUTS = (10, 50, 200, 500)

TARGETS: dict[tuple[str, int], float] = {
    ("GRADA HRSIM", 10): 1.5e-3,
    ("GRADA HRSIM", 50): 12e-3,
    ("GRADA HRSIM", 1000): 5.0,
    ("RAGDefender single-hop", 10): 1e-3,
    ("RAGDefender single-hop", 50): 3e-3,
    ("RAGDefender single-hop", 1000): 1.0,
    ("TrustRAG stage 1", 10): 3e-3,
    ("TrustRAG stage 1", 50): 30e-3,
    ("Guard", 10): 3e-3,
    ("Guard", 50): 25e-3,
    **{
        (f"scores and cut, the answers {how}", k): seconds
        for how in ("agree", "divide")
        for k, seconds in zip(CUTS, (0.4e-3, 1e-3, 10e-3, 80e-3))
    },
    ("RADAR, answer", 10): 0.7,
    ("RADAR, answer", 50): 3.0,
    ("TrustRAG, answer", 10): 3 * LATENCY + 0.05,
    ("import unpoison", 0): 0.3,
}
"""Seconds that a whole call may take, by row and number of passages."""

MOST_MEGABYTES = 220


def main() -> int:
    arguments = _arguments()
    if arguments.check:
        found = disagreements()
        print("\n".join(found) or "unpoison and the naive procedures decide alike on every case")
        return 1 if found else 0
    report = "\n\n".join([_heading(arguments.data), *_sections(arguments)])
    print(report)
    if arguments.markdown:
        arguments.markdown.write_text(report + "\n", encoding="utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the speed of unpoison.")
    parser.add_argument("--quick", action="store_true", help="up to 50 passages, fewer repetitions")
    parser.add_argument(
        "--only", default="", metavar="NAME", help=f"one section ({', '.join(SECTIONS)}) or rows by name"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there as well")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="measure on its search results instead of made texts"
    )
    parser.add_argument("--check", action="store_true", help="compare decisions with the naive procedures and stop")
    return parser.parse_args()


def _inputs(data: Path | None, sizes: tuple[int, ...]) -> dict[int, list[Case]]:
    return {k: real_cases(data, k, 5) if data else cases(k, 5 if k <= 50 else 2) for k in sizes}


def _sections(arguments: argparse.Namespace) -> list[str]:
    only = arguments.only.lower()
    wanted = (only,) if only in SECTIONS else SECTIONS
    rows = "" if only in SECTIONS else only
    sizes = tuple(k for k in SIZES if k <= 50) if arguments.quick else SIZES
    seconds = 0.15 if arguments.quick else 0.5
    inputs, results, parts = _inputs(arguments.data, sizes), Results(), []

    def part(section: str, title: str, found: list[str], columns: tuple[int, ...] = sizes) -> None:
        if found:
            parts.append(f"### {title}\n\n{table(results, found, columns, 'ms')}")

    if "start" in wanted and not rows:
        parts.append(_start(results))
    if "defenses" in wanted:
        part("defenses", "Whole `screen` call, embeddings given", measure_given(results, inputs, rows, seconds))
    if "encoders" in wanted:
        part("encoders", "Whole `screen` call, texts alone", measure_encoded(results, inputs, rows, seconds))
    if "forms" in wanted and not rows:
        measure_forms(results, inputs, seconds)
        part("forms", "What the form of the input costs", [FORMS], (10,))
    if "radar" in wanted:
        cuts = CUTS[:2] if arguments.quick else CUTS
        part(
            "radar",
            "RADAR's scores and minimum cut, dense graphs",
            measure_radar_cuts(results, cuts, rows, seconds),
            cuts,
        )
    if "answers" in wanted and needed("openai"):
        few = {k: inputs[k] for k in (10, 50)}
        title = f"Whole answers, a server that replies after {LATENCY * 1000:.0f} ms, at most 32 calls in flight"
        part("answers", title, measure_answers(results, few, rows, seconds), (10, 50))
    if "kernels" in wanted:
        part("kernels", "Kernels", measure_kernels(results, inputs, rows, seconds / 2))
    return [*parts, *_growth(results), _verdicts(results)]


def _heading(data: Path | None) -> str:
    texts = "search results of `realtimeqa.jsonl`" if data else "made texts of 48 words, a fifth of them poisons"
    packages = ", ".join(f"{name} {version(name)}" for name in ("unpoison", "numpy", "scipy", "rapidfuzz"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, one thread used; Python {platform.python_version()}"
    return (
        f"## Speed\n\nMedians on {machine}, {packages}; {texts}. The first line of a row is this package; behind the "
        "others' time stands what it is to ours. A dash: would take longer than 4 s, or is not installed."
    )


def _start(results: Results) -> str:
    statements = ("import unpoison", "from unpoison import Grada, RagDefender, Radar, TrustRag")
    lines = ["| statement | seconds | heavy modules that it loads |", "|---|---:|---|"]
    for statement in statements:
        seconds = results[statement, "unpoison", 0] = import_seconds(statement)
        lines.append(f"| `{statement}` | {seconds:.3f} | {', '.join(uninvited(statement)) or 'none'} |")
    sizes = installed_megabytes()
    total = sum(sizes.values())
    largest = ", ".join(f"{name} {size:.0f}" for name, size in sizes.items() if size >= 1)
    verdict = "below" if total < MOST_MEGABYTES else "ABOVE"
    bound = f"{verdict} the bound of {MOST_MEGABYTES} MB; compiled bytecode not counted"
    size = f"The core with all that it requires: {total:.0f} MB ({largest}), {bound}."
    return "### Start\n\n" + "\n".join(lines) + f"\n\n{size}"


def _growth(results: Results) -> list[str]:
    """With which power of k whole calls grow between the two largest sizes; 2 is all pairs of passages."""
    small, large = SIZES[-2:]
    powers = []
    for row, who, k in results:
        small_time = results.get((row, who, small))
        if who == "unpoison" and k == large and small_time and row not in KERNELS:
            power = log(results[row, who, large] / small_time) / log(large / small)
            powers.append(f"{row} {power:.1f}")
    return [f"Growth from k = {small} to {large}, as a power of k: {'; '.join(powers)}."] if powers else []


def _verdicts(results: Results) -> str:
    lines = [
        "### Targets",
        "",
        "| | k | at most, ms | measured, ms | of it computing | met |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for (row, k), bound in TARGETS.items():
        value = results.get((row, "unpoison", k))
        if value is not None:
            computing = results.get((row, "unpoison" + COMPUTING, k), value)
            met = f"yes, {bound / value:.1f}x" if value <= bound else "NO"
            figures = " | ".join(digits(seconds) for seconds in (bound, value, computing))
            lines.append(f"| {row} | {k or ''} | {figures} | {met} |")
    lines.append("\nWhere computing is much less than measured, other programs were using the machine.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
