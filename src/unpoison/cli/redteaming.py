"""What `unpoison redteam` shows and says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path

from rich.table import Table
from rich.text import Text

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.gates import Alert
from unpoison.bench.redteam import Cleaned, Results, Secrets
from unpoison.bench.redteam.results import MEASURES, Cell
from unpoison.cli.display import show
from unpoison.cli.running import count_noun, say
from unpoison.errors import TargetError, UnpoisonError
from unpoison.report.rendering import excerpt, plain

__all__ = [
    "MAX_SHOWN",
    "alerts",
    "exit_code",
    "mask_secrets",
    "problems",
    "report_removal",
    "say_cleaned",
    "show_requests",
    "show_results",
]

MAX_SHOWN = 20
"""Items of a list that are named."""


@contextmanager
def mask_secrets(secrets: Secrets) -> Iterator[None]:
    """Errors without secrets: whatever fails inside, no message shows one."""
    try:
        yield
    except UnpoisonError as error:
        message = str(error)
        hidden = str(secrets.mask(message))
        if hidden == message:
            raise
        raise TargetError(hidden) from None


@contextmanager
def report_removal(journal: Path) -> Iterator[None]:
    """Say after Ctrl-C whether anything is left."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted; what was planted is taken back, or else: unpoison redteam clean {journal}")
        raise


def show_requests(requests: Sequence[str]) -> None:
    """What a dry run shows: every line of every request."""
    for request in requests:
        show(*(excerpt(line, 2000) for line in request.splitlines()))
    say("nothing was sent")


def show_results(results: Results) -> None:
    """One column per attack, one line per figure, with intervals."""
    table = Table(box=None, padding=(0, 1), title_justify="left")
    title = f"{results.run.get('name', '')}: {count_noun(results.examples, 'question')}, 95 % intervals"
    table.title = Text(plain(title), style="bold")
    table.add_column("figure", overflow="fold")
    cells = results.table()
    for cell in cells:
        heading = plain(cell.title if cell.poisons else "nothing planted")
        table.add_column(Text(heading), justify="right", overflow="fold")
    for name, measure in MEASURES.items():
        estimates = [cell.figures[name] for cell in cells]
        if any(not isnan(figure.value) for figure in estimates) and name != "failed":
            unit = "%" if measure.unit == "share" else "s"
            table.add_row(f"{measure.title}, {unit}", *(_figure(figure, measure.unit) for figure in estimates))
    show(table, "")


def _figure(estimate: Estimate, unit: str) -> str:
    if isnan(estimate.value):
        return "-"
    if unit == "share":
        return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f} to {100 * estimate.high:.0f}]"
    interval = "" if isnan(estimate.low) else f" [{estimate.low:.2f} to {estimate.high:.2f}]"
    return f"{estimate.value:.2f}{interval}"


def problems(results: Results) -> list[str]:
    """What went wrong, as sentences."""
    sentences = [*results.problems, *(f"{cell.id}: {problem}" for cell in results.table() for problem in cell.problems)]
    missing = results.examples * len(results.cells) - len(results.trials)
    if missing:
        sentences.append(f"{count_noun(missing, 'question')} not asked; give the same command again to go on")
    if results.accepted:
        sentences.append(_unseen(results.accepted))
    return sentences + [f"the document {canary} may remain: {reason}" for canary, reason in results.remaining]


def _unseen(count: int) -> str:
    return (
        f"the removal of {count_noun(count, 'document')} was accepted, and nobody could look whether they are gone; "
        "give target.find, a search for {canary}"
    )


def exit_code(results: Results) -> int:
    """0 all measured, 1 some failed or something remains, 2 nothing was measured."""
    if not any(not trial.failed for trial in results.trials):
        return 2
    return 0 if results.complete else 1


def alerts(results: Results) -> list[Alert]:
    """An alert for every answer that was the attacker's, and for every document that may remain."""
    raised = [_alert(cell, number) for cell in results.table() if cell.poisons for number in range(len(cell.trials))]
    remaining = [
        Alert("document-remains", "error", f"the document {canary} may remain: {reason}", canary)
        for canary, reason in results.remaining
    ]
    return [*remaining, *(alert for alert in raised if alert is not None)]


def _alert(cell: Cell, number: int) -> Alert | None:
    trial = cell.trials[number]
    if not trial.is_attacked(trial.answer):
        return None
    message = (
        f"with {count_noun(cell.poisons, 'planted document')} ({cell.attack}) the answer to "
        f"{excerpt(trial.question, 200)!r} became {excerpt(trial.answer or '', 200)!r}"
    )
    return Alert("poisoned-answer", "warning", message, f"{cell.id}|{trial.example}")


def say_cleaned(cleaned: Cleaned, journal: Path) -> None:
    """What cleaning came to."""
    for note in cleaned.notes:
        say(note)
    for canary, reason in cleaned.remaining:
        say(f"the document {canary} may remain: {reason}")
    for number in cleaned.damaged[:MAX_SHOWN]:
        say(f"{journal}:{number}: cannot be read; a document that was named there may remain")
    if cleaned.accepted:
        say(_unseen(cleaned.accepted))
    left = f"; {count_noun(len(cleaned.remaining), 'document')} may remain" if cleaned.remaining else ""
    say(
        f"removed {count_noun(cleaned.removed, 'document')}{left}"
        if cleaned.removed or cleaned.accepted or left
        else "nothing was left to remove"
    )
