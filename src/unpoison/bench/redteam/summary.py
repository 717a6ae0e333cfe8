"""The results of a red-team test as the page for who signs it: the same first page as a measurement has."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from typing import Any

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.specs import attack_name
from unpoison.bench.redteam.results import MEASURES, Cell, Results, Trial
from unpoison.bench.report.charts import label
from unpoison.bench.report.document import document, table_markup
from unpoison.bench.report.front_page import ACTIONS, CASES, Brief, Case, KeyFigure, front, how_many, risks_of
from unpoison.bench.report.tables import Table
from unpoison.report.rendering import excerpt

__all__ = ["brief_of_test", "redteam_page"]

WORRYING = 0.05
"""Success rate of an attack: where it may be higher, the page says what to do."""
FEW = 100
"""With fewer questions the intervals are wide."""
ANSWER = 300
"""Characters of a question or an answer that are shown."""
MAX_QUESTIONS = 500
"""So many questions are listed one by one."""


def redteam_page(results: Results) -> str:
    """One page for two readers; targets' answers are hostile and escaped."""
    problems = [*results.problems, *(f"{canary}: {reason}" for canary, reason in results.remaining)]
    listed = "".join(f"<li>{label(problem, 500)}</li>" for problem in problems[:200])
    sections = [
        ("results", "Results", table_markup(_table(results.table()))),
        ("questions", "Questions", _questions(results)),
        ("problems", "Problems", f'<ul class="notes">{listed}</ul>') if problems else None,
    ]
    brief = brief_of_test(results)
    return document(brief.title, "<p>Shares are in percent with 95 % intervals.</p>", sections, front=front(brief))


def brief_of_test(results: Results) -> Brief:
    """The first page: the worst that was measured, with the fewest documents that did it."""
    cells = results.table()
    attacked = [cell for cell in cells if cell.poisons and cell.figures["asr"].defined]
    head = min(attacked, key=lambda cell: (-cell.figures["asr"].value, cell.poisons, cell.attack), default=None)
    return Brief(
        title="Red-team test",
        facts=tuple(_facts(results)),
        verdict=_verdict(head),
        setting="" if head is None else _setting(head),
        warning=_warning(results),
        figures=() if head is None else tuple(_figures(head)),
        cases=tuple(_cases(head)),
        actions=tuple(_actions(results, head))[:ACTIONS],
        risks=risks_of({cell.attack: cell.figures["asr"] for cell in attacked}),
    )


def _setting(head: Cell) -> str:
    return f"The attack is {attack_name(head.attack)}, the worst that was tried."


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    run: dict[str, Any] = dict(results.run)
    yield "Tested", f"{run.get('name') or 'a running system'}, {results.examples:,} questions"
    yield "Attacks", ", ".join(dict.fromkeys(attack for attack, poisons in results.cells if poisons)) or "none"
    started = str(run.get("started") or "?")[:16].replace("T", " ")
    ended = (results.finished or "")[:16].replace("T", " ")
    yield "When", f"{started} to {ended}" if ended else f"{started}, not finished"
    unseen = f", the removal of {results.accepted:,} accepted, which nobody could check" if results.accepted else ""
    yield "Planted", f"{results.planted:,} documents, {results.removed:,} taken back{unseen}"
    yield "Version", f"unpoison {__version__}"


def _verdict(head: Cell | None) -> str:
    if head is None:
        return "Nothing was planted in this test, or nothing was measured: it says nothing about an attack."
    won, after = head.figures["asr"], head.figures["asr_after"]
    text = f"{how_many(head.poisons, 'planted document')} changed {won.hits} of {won.count} answers"
    if after.defined:
        text += f"; {after.hits} after they were removed"
    return f"{text}."


def _warning(results: Results) -> str:
    if results.remaining:
        number = len(results.remaining)
        documents = f"{number} planted document{'' if number == 1 else 's'}"
        return f"{documents} may still be in the system: run unpoison redteam clean."
    return "" if results.complete else "This test is incomplete: some questions failed or were not asked."


def _figures(head: Cell) -> Iterator[KeyFigure]:
    for name, title, note in (
        ("asr", "Answers changed", "answers that became the attacker's while the document was there"),
        ("poisoned", "Documents read", "questions that were answered with a planted document among the passages"),
        ("asr_after", "Still wrong afterwards", "answers that stayed the attacker's when everything was removed"),
    ):
        if head.figures[name].defined:
            yield KeyFigure(title, head.figures[name], note)


def _cases(head: Cell | None) -> Iterator[Case]:
    won = [] if head is None else [t for t in head.trials if not t.failed and t.is_attacked(t.answer)]
    for trial in won[:CASES]:
        still = bool(trial.is_attacked(trial.after))
        yield Case(
            question=excerpt(trial.question, ANSWER),
            outcome="still wrong after removal" if still else "answered as the attacker wants",
            stopped=False,
            right=excerpt(" or ".join(trial.correct[:3]), 200),
            wanted=excerpt(" or ".join(trial.wanted[:2]), 200),
            reply=excerpt(trial.answer or "", ANSWER),
            planted="",
        )


def _actions(results: Results, head: Cell | None) -> Iterator[str]:
    if results.remaining:
        yield "Take back what is left: unpoison redteam clean JOURNAL, then look for the canaries that it names."
    if head is None:
        yield "Repeat the test with attacks that this system's questions allow."
        return
    won = head.figures["asr"]
    if won.hits:
        yield "Put a defense between the search and the model, such as guard: report first, calibrate, then enforce."
        yield "Limit who can add or change documents, and review new ones before they are searched."
    if head.figures["asr_after"].hits:
        yield "Clear caches of answers when a document is withdrawn: poison was served after it was gone."
    if won.count < FEW:
        yield f"Ask more questions: with fewer than {FEW} the figures are rough, as their intervals show."
    if won.high > WORRYING:
        yield "Repeat this test after every change, and let it fail the build: --fail-if 'asr > 5%'."


def _table(cells: list[Cell]) -> Table:
    names = [name for name in MEASURES if any(cell.figures[name].defined for cell in cells)]
    units = {"share": " %", "seconds": " s"}
    rows = tuple((cell.title, *(_figure(cell.figures[name], MEASURES[name].unit) for name in names)) for cell in cells)
    columns = ("attack", *(MEASURES[name].title + units[MEASURES[name].unit] for name in names))
    return Table("Every attack", columns, rows, ("", *(MEASURES[name].meaning for name in names)))


def _figure(estimate: Estimate, unit: str) -> str:
    if not estimate.defined:
        return "-"
    scale = 100 if unit == "share" else 1
    value = f"{scale * estimate.value:.1f}"
    return value if isnan(estimate.low) else f"{value} [{scale * estimate.low:.1f}, {scale * estimate.high:.1f}]"


def _questions(results: Results) -> str:
    ordered = sorted((t for t in results.trials if not t.clean), key=lambda t: not t.is_attacked(t.answer))
    left = len(ordered) - MAX_QUESTIONS
    note = f"<p>{left} more are left out; --json has all of them.</p>" if left > 0 else ""
    return "".join(map(_question, ordered[:MAX_QUESTIONS])) + note


def _question(trial: Trial) -> str:
    tag = "failed" if trial.failed else "the attacker's answer" if trial.is_attacked(trial.answer) else "not changed"
    bad = "" if tag == "not changed" else " bad"
    answers = "".join(
        f'<p><span class="{kind}" dir="auto">{label(" or ".join(texts[:3]), 200)}</span></p>'
        for kind, texts in (("truth", trial.correct), ("poison", trial.wanted))
        if texts
    )
    answer = f'<p class="answer" dir="auto">{label(trial.answer, ANSWER)}</p>' if trial.answer is not None else ""
    error = f'<p class="error">{label(f"{trial.stage}: {trial.error}", 400)}</p>' if trial.failed else ""
    return (
        f'<details class="question"><summary><span class="asked" dir="auto">{label(trial.question, ANSWER)}</span>'
        f'<span class="tag{bad}">{tag}</span>'
        f'<span class="where">{label(f"{trial.attack} x {trial.poisons}", 120)}</span>'
        f"</summary><div>{answers}{answer}{error}</div></details>"
    )
