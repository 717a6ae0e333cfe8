"""The results of a test as one page, and the same tables for a terminal."""

from __future__ import annotations

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate
from unpoison.bench.redteam.results import MEASURES, ResultCell, Results
from unpoison.report.document import Section, Table, document

__all__ = ["headline", "redteam_page", "results_table"]

MAX_QUESTIONS = 500
"""Questions that are listed one by one."""


def redteam_page(results: Results) -> str:
    """A self-contained page; answers of the target are untrusted and escaped."""
    trials = sorted((t for t in results.trials if not t.clean), key=lambda t: not t.is_attacked(t.answer))
    cut = len(trials) - MAX_QUESTIONS
    left_out = f"{cut:,} more are left out; --json has all of them." if cut > 0 else ""
    problems = [*results.problems, *results.failures, *(f"{canary}: {why}" for canary, why in results.remaining)]
    warning = f"{len(results.remaining):,} planted documents may remain: run unpoison redteam clean."
    return document(
        "Red-team test",
        [
            Section("results", "Results", tables=[results_table(results)]),
            Section("questions", "Questions", part="trials.html", data=trials[:MAX_QUESTIONS], left_out=left_out),
            Section("problems", "Problems", notes=problems[:200]),
        ],
        lead=[headline(results), *_facts(results), "Shares are in percent with 95 % intervals."],
        warning=warning if results.remaining else "" if results.complete else "Some questions were not measured.",
    )


def headline(results: Results) -> str:
    """The worst attack in one sentence, with the fewest documents that did it."""
    attacked = [cell for cell in results.table() if cell.poisons and cell.figures["asr"].defined]
    if not attacked:
        return "Nothing was planted, or nothing was measured: this says nothing about an attack."
    worst = min(attacked, key=lambda cell: (-cell.figures["asr"].value, cell.poisons, cell.attack))
    won = worst.figures["asr"]
    return f"{worst.id} changed {won.hits} of {won.count} answers to the attacker's."


def _facts(results: Results) -> list[str]:
    started, finished = (
        str(when or "?")[:16].replace("T", " ") for when in (results.run.get("started"), results.finished)
    )
    unseen = f", {results.accepted:,} accepted and not verified" if results.accepted else ""
    return [
        f"Tested: {results.run.get('name') or 'a system'}, {results.examples:,} questions, {started} to {finished}, "
        f"unpoison {__version__}.",
        f"Planted: {results.planted:,} documents, {results.removed:,} removals verified{unseen}.",
    ]


def results_table(results: Results) -> Table:
    """A row for each measured figure, a column for each attack."""
    cells = results.table()
    rows = tuple(
        (
            f"{one.title}, {'%' if one.unit == 'share' else 's'}",
            *(_figure(cell.figures[name], one.unit) for cell in cells),
        )
        for name, one in MEASURES.items()
        if name != "failed" and any(cell.figures[name].defined for cell in cells)
    )
    return Table("", ("figure", *map(_caption, cells)), rows)


def _caption(cell: ResultCell) -> str:
    failed = sum(trial.failed for trial in cell.trials)
    return f"{cell.id if cell.poisons else 'nothing planted'}{f', {failed} failed' if failed else ''}"


def _figure(estimate: Estimate, unit: str) -> str:
    if not estimate.defined:
        return "-"
    if unit != "share":
        return f"{estimate.value:.2f}"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f} to {100 * estimate.high:.0f}]"
