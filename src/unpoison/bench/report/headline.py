"""Which cells of a run the first page tells of: every attack at its worst, and of these the worst of all.

What counts is what an attack wins behind the recommended defense; without one in the run, what it wins at all. Nothing
here depends on the order in which attacks, defenses or cells were named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.evaluation.scenarios import Scenario
from unpoison.bench.evaluation.summary import Summary
from unpoison.bench.report.model import Report, attack_title, is_baseline

__all__ = ["Headline", "Pair"]


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
