"""Which documents made a system say that: the answer goes when they are withheld, and comes back with them.

The fewest suspects are withheld first, the most suspicious ones, and twice as many as long as the answer stays. Then
they are put back, the least suspicious first, as long as the answer stays away: those that cannot be put back are
needed. Each of these is asked about once more without the other documents that state the answer; where it does not
bring the answer alone, the fewest others are looked for that bring it together (QuickXplain, Junker, AAAI 2004).

A system may lie: then the answer goes with whatever it likes. So what states the wrong answer is withheld first, and
what states what is right last; `Suspect.standing` says which of them may be moved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil, log
from typing import Any, Self

from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.incident.experiment import Experiment, Reply
from unpoison.bench.incident.scope import HINT, MAX_SUSPECTS, Standing, Suspect
from unpoison.scan.statements import says

__all__ = ["Count", "Proof", "Trials", "find_fewest", "looks_for", "prove"]

DOUBT = 0.05
"""Probability that a guilty document passes for innocent because the answer happens to be another."""

MAX_LOOKS = 8
"""Questions for one decision, where the answer varies."""

ROUNDS = 3
"""How often documents that are read in place of the withheld ones become suspects."""

ORDER = tuple(Standing)
"""In which suspects are withheld: the last that could be behind the answer by what they say are put back first."""


@dataclass(frozen=True, slots=True)
class Count:
    """How often the answer was the wrong one.

    Attributes:
        wrong: So often.
        asked: Of so many questions.
    """

    wrong: int
    asked: int

    @property
    def share(self) -> Estimate:
        """With Wilson's interval, 95 %."""
        return wilson(self.wrong, self.asked)

    @property
    def words(self) -> str:
        """Such as "4 of 4 times (likely 51 to 100 %)"."""
        if not self.asked:
            return "never asked"
        share = self.share
        return f"{self.wrong} of {self.asked} times (likely {100 * share.low:.0f} to {100 * share.high:.0f} %)"

    def to_dict(self) -> dict[str, Any]:
        share = self.share
        interval = [round(share.low, 4), round(share.high, 4)] if self.asked else None
        return {"wrong": self.wrong, "asked": self.asked, "interval": interval}


@dataclass(frozen=True, slots=True)
class Proof:
    """A guilty document, or a group that is guilty only together.

    Attributes:
        documents: The most suspicious first.
        with_them: How often the answer was wrong with these in the store and the other guilty ones withheld.
        without_them: The same with all guilty ones withheld.
    """

    documents: tuple[Suspect, ...]
    with_them: Count
    without_them: Count

    @property
    def certain(self) -> bool:
        """Whether the two intervals do not meet."""
        return self.with_them.share.low > self.without_them.share.high

    def of(self, names: Collection[str]) -> Self | None:
        """The same of some of its documents; None where it has none of them."""
        documents = tuple(document for document in self.documents if document.id in names)
        return replace(self, documents=documents) if documents else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "documents": [document.to_dict() for document in self.documents],
            "with": self.with_them.to_dict(),
            "without": self.without_them.to_dict(),
            "certain": self.certain,
        }


class Trials:
    """Whether the wrong answer comes while some documents are withheld; replies count for all who ask the same.

    Args:
        experiment: Asks.
        question: What is asked.
        answer: The wrong answer.

    Attributes:
        answers: Wrong answers: that one, and others that come to light.
    """

    def __init__(self, experiment: Experiment, question: str, answer: str) -> None:
        self._experiment, self._question, self.answers = experiment, question, [answer]
        self._replies = defaultdict[frozenset[str], list[Reply]](list)

    def count(self, withheld: Collection[str], asked: int) -> Count:
        """How often the answer is the wrong one, of at least so many questions.

        Raises:
            BudgetError, TargetError, StoreError, InputError: As for `Experiment.ask`.
        """
        replies = self._replies[frozenset(withheld)]
        while len(replies) < asked:
            replies.append(self._experiment.ask(self._question, withheld))
        return Count(sum(map(self._is_wrong, replies)), len(replies))

    def is_gone(self, withheld: Collection[str], looks: int) -> bool:
        """Whether none of so many replies is the wrong answer; the first that is ends it."""
        replies = self._replies[frozenset(withheld)]
        while not any(map(self._is_wrong, replies)):
            if len(replies) >= looks:
                return True
            replies.append(self._experiment.ask(self._question, withheld))
        return False

    def replies(self, withheld: Collection[str]) -> list[Reply]:
        """Those that there are."""
        return self._replies[frozenset(withheld)]

    @property
    def every_reply(self) -> list[Reply]:
        """All that there are."""
        return [reply for replies in self._replies.values() for reply in replies]

    def _is_wrong(self, reply: Reply) -> bool:
        return any(says(self._question, reply.answered.answer, answer) for answer in self.answers)


def looks_for(share: float) -> int:
    """How often to ask until a wrong answer that comes with this share would have come, but for `DOUBT`."""
    return 1 if share >= 1 else min(MAX_LOOKS, ceil(log(DOUBT) / log(1 - share)))


def find_fewest(holds: Callable[[list[str]], bool], names: Sequence[str]) -> list[str]:
    """The fewest of some names for which something holds: none of them can be left out.

    Those at the end are left out first, half of them at once. It takes about log2(n) calls and one for each that stays.

    Args:
        holds: Holds for all names, and not for none.
        names: In the order in which they are to be preferred.
    """
    needed, left = list[str](), list(names)
    step = max(1, len(left) // 2)
    while left:
        rest = left[:-step]
        if (rest or needed) and holds([*rest, *needed]):
            left = rest
        elif step == 1:
            needed.insert(0, left.pop())
        else:
            step //= 2
    return needed


def prove(
    trials: Trials, suspects: Sequence[Suspect], more: Callable[[], Sequence[Suspect]], *, looks: int, repeats: int
) -> list[Proof]:
    """The documents behind the wrong answer; none where it stays whatever is withheld.

    Args:
        trials: Asks; with nothing withheld the answer is wrong.
        suspects: The most suspicious first.
        more: Suspects that the replies since then bring up, the known ones among them.
        looks: Questions for one decision of the search.
        repeats: Questions for each count of the result.

    Raises:
        BudgetError, TargetError, StoreError, InputError: As for `Experiment.ask`.
    """
    known, withheld = _withhold_until_gone(trials, suspects, more, looks)
    if not withheld:
        return []
    needed = find_fewest(lambda names: trials.is_gone(names, looks), withheld)
    stating = [name for name, suspect in known.items() if suspect.stated >= HINT and name not in needed]
    groups = _merge([[name, *_company(trials, name, needed, stating, looks)] for name in needed])
    return _count(trials, [tuple(known[name] for name in group) for group in groups], repeats)


def _withhold_until_gone(
    trials: Trials, suspects: Sequence[Suspect], more: Callable[[], Sequence[Suspect]], looks: int
) -> tuple[dict[str, Suspect], list[str]]:
    """Every suspect by name, and the fewest of them, in their order, without which the answer is another."""
    known = dict[str, Suspect]()
    for _ in range(ROUNDS):
        new = [suspect for suspect in suspects if suspect.id not in known][:MAX_SUSPECTS]
        size = max(1, len(known))
        known |= {suspect.id: suspect for suspect in new}
        known = dict(sorted(known.items(), key=lambda pair: ORDER.index(pair[1].standing)))
        names = list(known)
        if not new:
            break
        while True:
            if trials.is_gone(names[:size], looks):
                return known, names[:size]
            if size >= len(names):
                break
            size = min(2 * size, len(names))
        suspects = more()
    return known, []


def _company(trials: Trials, name: str, needed: Sequence[str], stating: Sequence[str], looks: int) -> list[str]:
    """The fewest others that a needed document needs to bring the answer; none where it does so alone."""
    rest = [other for other in needed if other != name]
    if not stating or not trials.is_gone([*rest, *stating], looks):
        return []
    return find_fewest(
        lambda present: not trials.is_gone([*rest, *(other for other in stating if other not in present)], looks),
        stating,
    )


def _merge(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """Groups that share a document are one."""
    merged = list[list[str]]()
    for group in groups:
        meeting = [other for other in merged if set(other) & set(group)]
        merged = [other for other in merged if other not in meeting]
        merged.append(list(dict.fromkeys(name for part in (*meeting, group) for name in part)))
    return merged


def _count(trials: Trials, groups: Sequence[tuple[Suspect, ...]], repeats: int) -> list[Proof]:
    """Ask as often as the result shall say; groups that do not bring the answer each for itself are one."""
    usual = trials.count((), 1)
    guilty = [suspect.id for group in groups for suspect in group]
    without = trials.count(guilty, repeats)
    proofs, weak = list[Proof](), list[Suspect]()
    for group in groups:
        names = {suspect.id for suspect in group}
        with_them = trials.count([name for name in guilty if name not in names], repeats)
        if 2 * with_them.wrong * usual.asked >= usual.wrong * with_them.asked or len(groups) == 1:
            proofs.append(Proof(group, with_them, without))
        else:
            weak += group
    if weak:
        others = [suspect.id for proof in proofs for suspect in proof.documents]
        proofs.append(Proof(tuple(weak), trials.count(others, repeats), without))
    return proofs
