"""From the figures of a run to its first page."""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from unpoison.evaluation.intervals import Estimate, wilson
from unpoison.evaluation.measures import MEASURES
from unpoison.evaluation.records import Cell, Record
from unpoison.evaluation.report.brief import ACTIONS, CASES, Brief, Case, KeyFigure, how_many, risks_of
from unpoison.evaluation.report.model import Report, attack_title, is_baseline, short_name
from unpoison.evaluation.staging import Staged
from unpoison.evaluation.summary import Summary
from unpoison.rendering import excerpt

__all__ = ["brief_of"]

WORRYING = 0.05
"""An attack that may win more often than this asks for more."""

FEW = 100
"""With fewer questions the intervals are wide, and this is told."""


class _Headline:
    """The one setting that the first page tells of: the fewest planted documents, and of these the worst attack.

    Attributes:
        open: The cell without a defense, None where none was measured.
        closed: The cell with the defense: guard where it was measured, else the best; None where none was measured.
        measure: "asr" where answers were asked for, else "poisoned".
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        attacked = [s for s in report.summaries if not s.scenario.clean and s.done > s.failed]
        self.measure = "asr" if any(s.applies("asr") for s in attacked) else "poisoned"
        usable = [s for s in attacked if s.applies(self.measure)]
        undefended = [s for s in usable if s.scenario.defense == "vanilla"] or [
            s for s in usable if is_baseline(s.scenario.defense)
        ]
        first = min(undefended or usable, key=lambda s: (s.scenario.poisons, -s[self.measure].value), default=None)
        self.any = first
        self.open = first if first in undefended else None
        group = next((g for _, g in report.groups() if first in g), [])
        defended = [s for s in group if s in usable and not is_baseline(s.scenario.defense)]
        named = [s for s in defended if s.scenario.defense.partition(":")[0] == "guard"]
        self.closed = min(named or defended, key=lambda s: s[self.measure].value, default=None)
        self.others = len(defended) - 1

    def won(self, summary: Summary | None) -> Estimate:
        """What the attack won there."""
        return wilson(0, 0) if summary is None else summary[self.measure]

    @property
    def name(self) -> str:
        return "" if self.closed is None else self.closed.scenario.defense


def brief_of(report: Report) -> Brief:
    """The first page of a run, finished or not."""
    head = _Headline(report)
    lost = _lost(head)
    figures = tuple(_figures(head, lost))
    return Brief(
        title="Poisoning test",
        facts=tuple(_facts(report)),
        verdict=_verdict(head, lost),
        setting=_setting(head),
        warning=_warning(report),
        figures=figures,
        cases=tuple(_cases(head)),
        actions=tuple(_actions(head, lost))[:ACTIONS],
        risks=risks_of(dict(_won(head))),
    )


def _won(head: _Headline) -> Iterator[tuple[str, Estimate]]:
    """What every attack won without a defense at its worst, or with the defense where nothing else was measured."""
    attacked = [summary for summary in head.report.summaries if not summary.scenario.clean]
    bare = [summary for summary in attacked if is_baseline(summary.scenario.defense)] or attacked
    for summary in sorted(bare, key=lambda s: -1.0 if isnan(s[head.measure].value) else s[head.measure].value):
        yield summary.scenario.attack, head.won(summary)


def _setting(head: _Headline) -> str:
    if head.any is None:
        return ""
    scenario = head.any.scenario
    others = f" {head.name} is one of {head.others + 1} defenses that were measured." if head.others > 0 else ""
    return f"The attack is {attack_title(scenario)}, the worst that was tried with so few documents.{others}"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    manifest, scenarios = report.run.manifest, [summary.scenario for summary in report.summaries]

    def listed(values: Iterator[str]) -> str:
        distinct = list(dict.fromkeys(values))
        return ", ".join(distinct[:6]) + (f" and {len(distinct) - 6} more" if len(distinct) > 6 else "")

    questions = max((summary.expected for summary in report.summaries), default=0)
    data = listed(short_name(s.data) for s in scenarios)
    yield "Tested", f"{questions:,} question{'' if questions == 1 else 's'} of {data}"
    yield "Attacks", listed(attack_title(s) for s in scenarios if not s.clean) or "none"
    yield "Defenses", listed(s.defense for s in scenarios if not is_baseline(s.defense)) or "none"
    yield "Answers by", listed(s.generator or "nobody: only which documents are read was measured" for s in scenarios)
    started, finished = str(manifest.get("started") or "?"), manifest.get("finished")
    end = _moment(str(finished)).removeprefix(f"{started[:10]} ") if finished else ""
    yield "When", f"{_moment(started).removesuffix(' UTC')} to {end}" if end else f"{_moment(started)}, not finished"
    yield "Version", f"unpoison {manifest.get('unpoison', '?')}, Python {manifest.get('python', '?')}"


def _moment(text: str) -> str:
    return text[:16].replace("T", " ") + (" UTC" if text[16:].endswith(("Z", "+00:00")) else "")


def _warning(report: Report) -> str:
    done, expected = report.questions
    failed = sum(summary.failed for summary in report.summaries)
    if report.run.complete and not failed:
        return ""
    missing = f"{expected - done:,} of {expected:,} measurements are missing" if done < expected else ""
    return f"This test is incomplete: {' and '.join(filter(None, (missing, f'{failed:,} failed' if failed else '')))}."


def _lost(head: _Headline) -> KeyFigure | None:
    """Questions that were answered rightly without attack and defense, and no longer are with the defense."""
    if head.closed is None:
        return None
    report = head.report
    clean = report.twin(head.closed)
    cell = None if clean is None else report.cells.get(clean.id)
    if clean is None or cell is None:
        return None
    before = None if head.open is None else report.twin(head.open)
    if before is not None and clean.applies("accuracy") and before.applies("accuracy"):
        right, still = _right(report.cells[before.id]), _right(cell)
        both = right.keys() & still.keys()
        gone = sum(right[name] and not still[name] for name in both)
        note = f"right without the defense and not with {head.name}, where nothing was planted"
        return KeyFigure("Honest answers lost", wilson(gone, len(both)), note)
    for name, title, note in (
        ("gold_lost", "Evidence lost", "questions that lost every passage with the answer, where nothing was planted"),
        ("emptied", "Nothing left to read", "questions that lost every passage, where nothing was planted"),
    ):
        if clean.applies(name):
            return KeyFigure(title, clean[name], note)
    return None


def _right(cell: Cell) -> dict[str, bool]:
    measured = {record.example: MEASURES["accuracy"].value(record) for record in cell.records if not record.failed}
    return {name: value == 1 for name, value in measured.items() if not isnan(value)}


def _figures(head: _Headline, lost: KeyFigure | None) -> Iterator[KeyFigure]:
    answers = head.measure == "asr"
    for summary, title, note in (
        (
            head.open,
            "Without a defense",
            "answers that became the attacker's" if answers else "questions whose model reads planted text",
        ),
        (head.closed, f"With {head.name}", f"the same questions, screened by {head.name}"),
    ):
        if summary is not None:
            yield KeyFigure(title, summary[head.measure], note)
    if lost is not None:
        yield lost


def _verdict(head: _Headline, lost: KeyFigure | None) -> str:
    if head.any is None:
        return "Nothing was planted in this test, or nothing was measured: it says nothing about an attack."
    planted = (
        how_many(head.any.scenario.poisons, "planted document") if head.any.scenario.poisons else "Planted documents"
    )
    won = head.won(head.open or head.closed)
    what = (
        f"changed {won.hits} of {won.count} answers"
        if head.measure == "asr"
        else f"reached the model in {won.hits} of {won.count} questions"
    )
    sentences = [f"{planted} {what}"]
    if head.open is None:
        sentences[0] += f" in spite of {head.name}"
    elif head.closed is not None:
        sentences.append(f"with {head.name} {head.won(head.closed).hits}")
    if lost is not None:
        sentences.append(f"{lost.title[0].lower()}{lost.title[1:]}: {lost.share.hits}")
    return "; ".join(sentences) + "."


def _cases(head: _Headline) -> Iterator[Case]:
    """Questions that the attack won in spite of the defense, then those that it won without."""
    report, shown = head.report, set[str]()
    closed = {} if head.closed is None else {r.example: r for r in report.cells[head.closed.id].records}
    for summary in filter(None, (head.closed, head.open)):
        cell = report.cells[summary.id]
        staged = report.run.staged(cell)
        won = [r for r in cell.records if not r.failed and MEASURES[head.measure].value(r) == 1]
        for record in sorted(won, key=lambda r: MEASURES["accuracy"].value(r) == 1):
            if len(shown) < CASES and record.example not in shown and record.example in staged:
                shown.add(record.example)
                yield _case(
                    head, record, closed.get(record.example), staged[record.example], through=summary is head.closed
                )


def _case(head: _Headline, record: Record, screened: Record | None, staged: Staged, *, through: bool) -> Case:
    stopped = not through and screened is not None and not screened.failed
    candidates = staged.context.candidates
    position = next((i for i in record.read if i in record.poison), next(iter(record.poison), None))
    judged = (
        None
        if position is None or screened is None or position >= len(screened.verdicts)
        else screened.verdicts[position]
    )
    outcome = (
        f"got past {head.name}" if through else f"stopped by {head.name}" if stopped else "nothing stood in its way"
    )
    return Case(
        question=excerpt(staged.context.query, 300),
        outcome=outcome,
        stopped=stopped,
        right=excerpt(" or ".join(record.correct[:3]), 200),
        wanted=excerpt(" or ".join(record.wanted[:2]), 200),
        reply=None if record.answer is None else excerpt(record.answer, 300),
        planted=""
        if position is None
        else excerpt(_behind(candidates[position].passage.text, staged.context.query), 300),
        why="" if judged is None else excerpt(judged.reason.plain, 300),
        numbers="" if judged is None or not judged.reason.code else excerpt(judged.reason, 300),
    )


def _behind(text: str, question: str) -> str:
    """A planted text without the question that it repeats so that it is found."""
    rest = text.removeprefix(question).lstrip(" .?!")
    return f"… {rest}" if rest and rest != text else text


def _actions(head: _Headline, lost: KeyFigure | None) -> Iterator[str]:
    if head.any is None:
        yield "Run the test with an attack: unpoison evaluate -d guard -a poisonedrag --poisons 1 DATA."
        return
    undefended, defended = head.won(head.open), head.won(head.closed)
    if head.report.run.manifest.get("finished") is None:
        yield "Finish the test: give the same command again; it goes on where it stopped."
    if head.closed is None:
        yield "Measure a defense on the same questions: add -d guard."
    elif head.open is not None and defended.hits < undefended.hits:
        yield (
            f"Put {head.name} between the search and the model. Let it only report for a week (monitor), calibrate it "
            "on your own documents, then let it drop passages (enforce)."
        )
    if head.closed is not None and head.closed[head.measure].high > WORRYING:
        yield (
            f"Do not rely on {head.name} alone: up to {100 * head.closed[head.measure].high:.0f} % of such attacks "
            "may still win. Limit who can add or change documents, and review new ones before they are searched."
        )
    if lost is not None and lost.share.hits:
        hits = lost.share.hits
        yield f"Look at the {hits} under “{lost.title}” before you enforce, and set the damage that you accept."
    if head.measure != "asr":
        yield "Measure the answers as well, not only what the model reads: add -g with your model, or -g reader."
    if max(undefended.count, defended.count) < FEW:
        yield f"Ask more questions: with fewer than {FEW} the figures are rough, as their intervals show."
    yield "Repeat this test when documents, model or search change, and let it fail the build: --fail-if 'asr > 5%'."
