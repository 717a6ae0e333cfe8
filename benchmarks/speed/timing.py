"""Medians of calls that take turns, so that a noisy moment of the machine hits all of them."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TypeVar

__all__ = ["COMPUTING", "LONGEST", "SIZES", "Results", "digits", "measure", "medians", "note", "table"]

SIZES = (5, 10, 50, 200, 1000)
"""Passages of a question."""

LONGEST = 4.0
"""Seconds: what would take longer for one call, going by the size before, is left out."""

FEWEST, MOST = 3, 500
"""Calls of each contender."""

TURN = 0.03
"""Seconds that a contender goes on before the next one has its turn."""

T = TypeVar("T")
Results = dict[tuple[str, str, int], float]
"""Median seconds by row, contender and number of passages."""

COMPUTING = ", computing"
"""Ends the name of a contender's processor time, which is less than its time where other programs got in the way."""

_BEGIN = time.monotonic()


def note(text: str) -> None:
    """Progress, for people who wait."""
    print(f"[{time.monotonic() - _BEGIN:4.0f} s] {text}", file=sys.stderr, flush=True)


def medians(
    contenders: Mapping[str, Callable[[T], object]], inputs: Sequence[T], seconds: float
) -> dict[str, tuple[float, float]]:
    """Median seconds, and seconds of the processor, of each contender over the inputs, after one call to warm up.

    Whoever has used the least time goes next. A turn lasts for several calls where they are quick, so that these are
    not always the first after a slow one, with cold caches and the machine's patience used up.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    computing: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call(inputs[0])
    gc.collect()
    while waiting := [n for n, t in taken.items() if len(t) < FEWEST or (sum(t) < seconds and len(t) < MOST)]:
        name = min(waiting, key=lambda name: sum(taken[name]))
        end = time.perf_counter() + TURN
        while time.perf_counter() < end:
            case = inputs[len(taken[name]) % len(inputs)]
            begin, busy = time.perf_counter(), time.process_time()
            contenders[name](case)
            computing[name].append(time.process_time() - busy)
            taken[name].append(time.perf_counter() - begin)
    return {name: (median(times), median(computing[name])) for name, times in taken.items()}


def measure(
    results: Results,
    row: str,
    contenders: Mapping[str, Callable[[T], object]],
    inputs: Mapping[int, Sequence[T]],
    seconds: float,
    *,
    growth: int = 2,
) -> None:
    """Measure one row at every size, leaving out contenders that have become too slow.

    `growth` is the power of the number of passages with which the time is expected to grow, at least.
    """
    last: dict[str, tuple[int, float]] = {}
    for k, cases in inputs.items():
        able = {
            n: c for n, c in contenders.items() if n not in last or last[n][1] * (k / last[n][0]) ** growth <= LONGEST
        }
        note(f"{row}, k = {k}: {', '.join(able)}")
        for name, (value, computing) in medians(able, cases, seconds).items():
            results[row, name, k], results[row, name + COMPUTING, k] = value, computing
            last[name] = k, value


def table(results: Results, rows: Sequence[str], sizes: Sequence[int], head: str) -> str:
    """Milliseconds as a Markdown table: a line for every row and contender, the first contender's gain in brackets."""
    lines = [
        f"| {head} | | {' | '.join(f'k = {k}' for k in sizes)} |",
        f"|---|---|{'---:|' * len(sizes)}",
    ]
    for row in rows:
        contenders = dict.fromkeys(name for found, name, _ in results if found == row and not name.endswith(COMPUTING))
        for place, name in enumerate(contenders):
            cells = [_cell(results, row, name, k, own=place == 0) for k in sizes]
            lines.append(f"| {row if place == 0 else ''} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(results: Results, row: str, name: str, k: int, *, own: bool) -> str:
    value = results.get((row, name, k))
    if value is None:
        return "-"
    ours = next(seconds for (found, _, size), seconds in results.items() if found == row and size == k)
    return digits(value) if own else f"{digits(value)} ({value / ours:.3g}x)"


def digits(seconds: float) -> str:
    """Milliseconds with three significant digits."""
    value = seconds * 1000
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
