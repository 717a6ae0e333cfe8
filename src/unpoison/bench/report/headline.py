"""From the figures of a run to its first page: every attack at its worst, and of these the worst of all.

What counts is what an attack wins behind the recommended defense; without one in the run, what it wins at all. Nothing
here depends on the order in which attacks, defenses or cells were named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.evaluation.measures import MEASURES
from unpoison.bench.evaluation.poisoning import Staged
from unpoison.bench.evaluation.records import Cell, Record
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report.front_page import ACTIONS, CASES, Brief, Case, KeyFigure, how_many, risks_of
from unpoison.bench.report.model import Report, attack_title, is_baseline, short_name
from unpoison.report.document import Table
from unpoison.report.rendering import excerpt

__all__ = ["Headline", "Pair", "brief_of"]


class Pair(NamedTuple):
    """One attacked scenario.

    Attributes:
        scenario: With any of its defenses.
        open: Its cell without a defense, None where it was not measured.
        closed: Its cell with the recommended defense, None where it was not measured.
    """

    scenario: Scenario
    open: Summary | None
    closed: Summary | None

    @property
    def counted(self) -> Summary | None:
        """The cell whose figure says how bad it is; None where only other defenses were measured."""
        return self.closed or self.open


class Headline:
    """The figures of the first page.

    Attributes:
        measure: "asr" where answers were asked for, else "poisoned".
        name: The recommended defense: a guard where one was measured, else any; of several the one whose worst cell is
            the best, among those that were measured on most scenarios. "" where none was measured.
        pairs: Every attacked scenario, the worst first; those without the recommended defense stand last.
        attacks: Of each attack its first pair, in the same order.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        attacked = [s for s in report.summaries if not s.scenario.clean and s.done > s.failed]
        self.measure = "asr" if any(s.applies("asr") for s in attacked) else "poisoned"
        usable = {s.id: s for s in attacked if s.applies(self.measure)}
        groups = [[s for s in group if s.id in usable] for _, group in report.groups()]
        groups = [group for group in groups if group]
        self.others = sorted({s.scenario.defense for s in usable.values() if not is_baseline(s.scenario.defense)})
        guards = [name for name in self.others if name.partition(":")[0] == "guard"]
        self.name = min(guards or self.others, key=lambda name: self._rank_key(name, usable.values()), default="")
        pairs = [Pair(_first(group).scenario, _baseline(group), _find_defense(group, self.name)) for group in groups]
        self.pairs = sorted(pairs, key=self._badness)
        by_attack: dict[str, Pair] = {}
        for pair in self.pairs:
            by_attack.setdefault(attack_title(pair.scenario), pair)
        self.attacks = by_attack

    def attack_success(self, summary: Summary | None) -> Estimate | None:
        """What the attack won in a cell."""
        return None if summary is None else summary[self.measure]

    @property
    def worst(self) -> Pair | None:
        """The setting that the first page tells of."""
        return self.pairs[0] if self.pairs else None

    def _rank_key(self, name: str, cells: Iterable[Summary]) -> tuple[int, float, str]:
        values = [cell[self.measure].value for cell in cells if cell.scenario.defense == name]
        return -len(values), max(values), name

    def _badness(self, pair: Pair) -> tuple[bool, float, int, str, str]:
        missing = bool(self.name) and pair.closed is None
        value = 0.0 if pair.counted is None else pair.counted[self.measure].value
        return missing, -value, pair.scenario.poisons, pair.scenario.attack, repr(pair.scenario)


def _first(group: Iterable[Summary]) -> Summary:
    return min(group, key=lambda s: s.scenario.defense)


def _find_defense(group: Iterable[Summary], name: str) -> Summary | None:
    return next((s for s in group if s.scenario.defense == name), None)


def _baseline(group: Iterable[Summary]) -> Summary | None:
    """The cell without a defense: what reads everything, where that was measured."""
    bare = [s for s in group if is_baseline(s.scenario.defense)]
    return min(bare, key=lambda s: (s.scenario.defense != "vanilla", s.scenario.defense), default=None)


WORRYING = 0.05
"""An attack that may win more often than this asks for more."""

ROWS = 30
"""Attacks in the table; all stand among the results."""

COSTS = ("Honest answers lost", "Evidence lost", "Nothing left to read")
"""What a defense may cost, what matters most first."""

FEW = 100
"""With fewer questions the intervals are wide, and this is told."""


def brief_of(report: Report) -> Brief:
    """The first page of a run, finished or not."""
    head = Headline(report)
    lost = _worst_cost(head)
    return Brief(
        title="Poisoning test",
        facts=tuple(_facts(report)),
        verdict=_verdict(head, lost),
        setting=_setting(head),
        warning=_warning(report),
        figures=tuple(_figures(head, lost)),
        cases=tuple(_cases(head)),
        actions=tuple(_actions(head, lost))[:ACTIONS],
        risks=risks_of(_attack_success(head), f"behind {head.name}" if head.name else ""),
        attacks=_attacks(head),
    )


def _attack_success(head: Headline) -> dict[str, Estimate]:
    """What every attack won at its worst behind the defense, or where none was measured, without."""
    cells = [pair.closed if head.name else pair.open for pair in reversed(head.attacks.values())]
    return {cell.scenario.attack: cell[head.measure] for cell in cells if cell is not None}


def _attacks(head: Headline) -> Table:
    """A row for each attack at its worst."""
    bare, name = any(pair.open for pair in head.pairs), head.name
    columns = ("Attack", "At its worst", *["Without a defense"] * bare, *[f"With {name}"] * bool(name))
    rows = []
    for attack, pair in list(head.attacks.items())[:ROWS]:
        planted = f"{pair.scenario.poisons} planted, " if pair.scenario.poisons else ""
        cells = [*[pair.open] * bare, *[pair.closed] * bool(name)]
        setting = planted + head.report.caption(pair.scenario, "attack")
        rows.append((attack, setting, *(_share(head.attack_success(cell)) for cell in cells)))
    return Table("Each attack at its worst", columns, tuple(rows))


def _share(won: Estimate | None) -> str:
    """Such as "39 of 42 (93 %)"."""
    return "not measured" if won is None else f"{won.hits} of {won.count} ({100 * won.value:.0f} %)"


def _setting(head: Headline) -> str:
    if head.worst is None:
        return ""
    attack = attack_title(head.worst.scenario)
    behind = f" behind {head.name}" if head.name else ""
    worst = f", the worst of {len(head.attacks)}{behind}; the others stand below" if len(head.attacks) > 1 else ""
    others = f" {head.name} is one of {len(head.others)} defenses that were measured." if len(head.others) > 1 else ""
    return f"The attack is {attack}{worst}.{others}"


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    manifest, scenarios = report.run.manifest, [summary.scenario for summary in report.summaries]

    def list_values(values: Iterator[str]) -> str:
        distinct = sorted(set(values))
        return ", ".join(distinct[:6]) + (f" and {len(distinct) - 6} more" if len(distinct) > 6 else "")

    questions = max((summary.expected for summary in report.summaries), default=0)
    data = list_values(short_name(s.data) for s in scenarios)
    yield "Tested", f"{questions:,} question{'' if questions == 1 else 's'} of {data}"
    yield "Attacks", list_values(attack_title(s) for s in scenarios if not s.clean) or "none"
    yield "Defenses", list_values(s.defense for s in scenarios if not is_baseline(s.defense)) or "none"
    yield (
        "Answers by",
        list_values(s.generator or "nobody: only which documents are read was measured" for s in scenarios),
    )
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


def _worst_cost(head: Headline) -> KeyFigure | None:
    """What the defense costs where nothing was planted, at its worst; answers, where these were asked for."""
    found = {
        pair.closed.twin: _cell_cost(head, pair.open, pair.closed) for pair in head.pairs if pair.closed is not None
    }
    figures = [figure for figure in found.values() if figure is not None]
    return min(figures, key=lambda f: (COSTS.index(f.title), -f.share.value, -f.share.count), default=None)


def _cell_cost(head: Headline, bare: Summary | None, closed: Summary) -> KeyFigure | None:
    """Questions that were answered rightly without attack and defense, and no longer are with the defense."""
    report = head.report
    clean = report.twin(closed)
    cell = None if clean is None else report.cells.get(clean.id)
    if clean is None or cell is None:
        return None
    before = None if bare is None else report.twin(bare)
    if before is not None and clean.applies("accuracy") and before.applies("accuracy"):
        right, still = _right(report.cells[before.id]), _right(cell)
        both = right.keys() & still.keys()
        gone = sum(right[name] and not still[name] for name in both)
        note = f"right without the defense and not with {head.name}, where nothing was planted"
        return KeyFigure(COSTS[0], wilson(gone, len(both)), note)
    for name, title, note in (
        ("gold_lost", COSTS[1], "questions that lost every passage with the answer, where nothing was planted"),
        ("emptied", COSTS[2], "questions that lost every passage, where nothing was planted"),
    ):
        if clean.applies(name):
            return KeyFigure(title, clean[name], note)
    return None


def _right(cell: Cell) -> dict[str, bool]:
    measured = {record.example: MEASURES["accuracy"].value(record) for record in cell.records if not record.failed}
    return {name: value == 1 for name, value in measured.items() if not isnan(value)}


def _figures(head: Headline, lost: KeyFigure | None) -> Iterator[KeyFigure]:
    answers = head.measure == "asr"
    bare, closed = (head.worst.open, head.worst.closed) if head.worst else (None, None)
    for summary, title, note in (
        (
            bare,
            "Without a defense",
            "answers that became the attacker's" if answers else "questions whose model reads planted text",
        ),
        (closed, f"With {head.name}", f"the same attack, screened by {head.name}"),
    ):
        if summary is not None:
            yield KeyFigure(title, summary[head.measure], note)
    if lost is not None:
        yield lost


def _verdict(head: Headline, lost: KeyFigure | None) -> str:
    if head.worst is None or head.worst.counted is None:
        return "Nothing was planted in this test, or nothing was measured: it says nothing about an attack."
    cell = head.worst.counted
    planted = how_many(cell.scenario.poisons, "planted document") if cell.scenario.poisons else "Planted documents"
    won, bare = cell[head.measure], head.attack_success(head.worst.open)
    what = (
        f"changed {won.hits} of {won.count} answers"
        if head.measure == "asr"
        else f"reached the model in {won.hits} of {won.count} questions"
    )
    sentences = [f"{planted} {what}"]
    if head.worst.closed is not None:
        sentences[0] += f" in spite of {head.name}"
        if bare is not None:
            sentences.append(f"without a defense {bare.hits} of {bare.count}")
    if lost is not None:
        sentences.append(f"{lost.title[0].lower()}{lost.title[1:]}: {lost.share.hits}")
    return "; ".join(sentences) + "."


def _cases(head: Headline) -> Iterator[Case]:
    """Questions that the attack won in spite of the defense, then those that it won without."""
    report, shown = head.report, set[str]()
    bare, shut = (head.worst.open, head.worst.closed) if head.worst else (None, None)
    closed = {} if shut is None else {r.example: r for r in report.cells[shut.id].records}
    for summary in filter(None, (shut, bare)):
        cell = report.cells[summary.id]
        staged = report.run.read_contexts(cell)
        won = [r for r in cell.records if not r.failed and MEASURES[head.measure].value(r) == 1]
        for record in sorted(won, key=lambda r: MEASURES["accuracy"].value(r) == 1):
            if len(shown) < CASES and record.example not in shown and record.example in staged:
                shown.add(record.example)
                through = summary is shut
                yield _case(head, record, closed.get(record.example), staged[record.example], through=through)


def _case(head: Headline, record: Record, screened: Record | None, staged: Staged, *, through: bool) -> Case:
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


def _actions(head: Headline, lost: KeyFigure | None) -> Iterator[str]:
    if head.worst is None:
        yield "Run the test with an attack: unpoison evaluate -d guard -a poisonedrag --poisons 1 DATA."
        return
    if head.report.run.manifest.get("finished") is None:
        yield "Finish the test: give the same command again; it goes on where it stopped."
    closed = [pair.closed[head.measure] for pair in head.pairs if pair.closed is not None]
    if not closed:
        yield "Measure a defense on the same questions: add -d guard."
    elif any(_helps(head, pair) for pair in head.pairs):
        yield (
            f"Put {head.name} between the search and the model. Let it only report for a week (monitor), calibrate it "
            "on your own documents, then let it drop passages (enforce)."
        )
    worst = max((won.high for won in closed if not isnan(won.high)), default=0.0)
    if worst > WORRYING:
        yield (
            f"Do not rely on {head.name} alone: the worst attack may still win up to {100 * worst:.0f} % of the "
            "questions. Limit who can add or change documents, and review new ones before they are searched."
        )
    if lost is not None and lost.share.hits:
        hits = lost.share.hits
        yield f"Look at the {hits} under “{lost.title}” before you enforce, and set the damage that you accept."
    if head.measure != "asr":
        yield "Measure the answers as well, not only what the model reads: add -g with your model, or -g reader."
    if max(pair.counted[head.measure].count for pair in head.pairs if pair.counted) < FEW:
        yield f"Ask more questions: with fewer than {FEW} the figures are rough, as their intervals show."
    yield "Repeat this test when documents, model or search change, and let it fail the build: --fail-if 'asr > 5%'."


def _helps(head: Headline, pair: Pair) -> bool:
    """Whether the defense took anything from an attack."""
    bare, closed = head.attack_success(pair.open), head.attack_success(pair.closed)
    return bare is not None and closed is not None and closed.value < bare.value
