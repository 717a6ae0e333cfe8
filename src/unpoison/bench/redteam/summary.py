"""The results of a red-team test as the page for who signs it: the same first page as a measurement has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from unpoison import __version__
from unpoison.bench.evaluation.specs import attack_name
from unpoison.bench.redteam.results import MEASURES, Cell, Results
from unpoison.bench.report.front_page import ACTIONS, CASES, Brief, Case, KeyFigure, how_many, risks_of
from unpoison.bench.report.tables import with_interval
from unpoison.report.document import Section, Table, document
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


def redteam_page(results: Results, more: Sequence[Section] = ()) -> str:
    """One page for two readers; targets' answers are hostile and escaped. `more` stands before the figures."""
    problems = [*results.problems, *(f"{canary}: {reason}" for canary, reason in results.remaining)]
    trials = sorted((t for t in results.trials if not t.clean), key=lambda t: not t.is_attacked(t.answer))
    cut = len(trials) - MAX_QUESTIONS
    left_out = f"{cut} more are left out; --json has all of them." if cut > 0 else ""
    sections = [
        *more,
        Section("results", "Results", tables=[_table(results.table())]),
        Section("questions", "Questions", part="trials.html", data=trials[:MAX_QUESTIONS], left_out=left_out),
        Section("problems", "Problems", notes=problems[:200]),
    ]
    brief = brief_of_test(results)
    return document(brief.title, sections, lead=["Shares are in percent with 95 % intervals."], brief=brief)


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
    units, scale = {"share": " %", "seconds": " s"}, {"share": 100, "seconds": 1}

    def figures(cell: Cell) -> Iterator[str]:
        for name in names:
            estimate = cell.figures[name]
            yield with_interval(estimate, scale[MEASURES[name].unit]) if estimate.defined else "-"

    rows = tuple((cell.title, *figures(cell)) for cell in cells)
    columns = ("attack", *(MEASURES[name].title + units[MEASURES[name].unit] for name in names))
    return Table("Every attack", columns, rows, ("", *(MEASURES[name].meaning for name in names)))
