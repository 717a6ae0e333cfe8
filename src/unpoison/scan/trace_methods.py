"""How the passages behind an answer are looked for, as flows: by groups, by leaving one out, by a judge, by matching.

The generator is asked again with some of the passages, in their order, and its reply is compared with the answer.
Halving is adaptive group testing: passages that state the answer are tested first, as in Huffman's codes, and what has
to come together is found together (QuickXplain). The judge is RAGForensics (Zhang et al., WWW 2025, Section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import clip
from unpoison.models.baseline_prompts import blame_prompt, extract_tagged
from unpoison.models.prompts import Prompt, answer_alone_prompt, answer_prompt, atomic_answer_prompt
from unpoison.models.requests import Flow, generate
from unpoison.scan.statements import says

__all__ = ["Culprits", "Interview", "by_groups", "by_judge", "by_leaving_one_out", "by_matching", "half"]

Scores = NDArray[np.float64]
Window = Callable[[Collection[int]], list[int]]
"""The positions that the model reads once these are gone, in order."""

DOUBT = 0.02
"""What a passage weighs that does not state the answer at all: it may say it in other words."""

STATED = 0.6
"""A passage that states the answer so plainly is named where nobody can be asked."""

BESIDE = 0.75
"""And so is every other one that states it nearly as plainly as the plainest."""


class Spent(Exception):  # noqa: N818  no error: the number of calls that were allowed
    """All calls were made."""


@dataclass(slots=True)
class Culprits:
    """The passages that are named, and why.

    Attributes:
        positions: In the order in which they were found.
        reasons: By position.
        reproduced: Whether the generator gives the answer again; None where it was not asked.
        withheld: Whether it was seen to give another one without them.
        notes: Anything unusual.
    """

    positions: list[int] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    reproduced: bool | None = None
    withheld: bool = False
    notes: list[str] = field(default_factory=list)

    def name(self, position: int, reason: str) -> None:
        if position not in self.reasons:
            self.positions.append(position)
        self.reasons[position] = reason


class Interview:
    """Asks the generator with some of the passages; asks nothing twice, and no more often than allowed.

    Args:
        question: What was asked.
        answer: What the model is said to have answered.
        texts: The passages as a model reads them.
        calls: How many prompts may be sent.

    Attributes:
        sent_count: How many were sent.
    """

    def __init__(self, question: str, answer: str, texts: Sequence[str], calls: int) -> None:
        self.question, self.answer, self.texts, self.calls = question, answer, texts, calls
        self.sent_count = 0
        self._replies: dict[tuple[int, ...], str] = {}

    def says(self, positions: Collection[int]) -> Flow[bool]:
        """Whether the model gives the answer from these passages alone."""
        reply = yield from self.reply(positions)
        return says(self.question, reply, self.answer)

    def reply(self, positions: Collection[int]) -> Flow[str]:
        """What it replies from these passages."""
        return (yield from self.all_replied([positions]))[0]

    def all_replied(self, subsets: Sequence[Collection[int]]) -> Flow[list[str]]:
        """`replied` for several, asked side by side."""
        keys = [tuple(sorted(positions)) for positions in subsets]
        new = [key for key in dict.fromkeys(keys) if key not in self._replies]
        replies = yield from self.send([answer_prompt(self.question, [self.texts[i] for i in key]) for key in new])
        self._replies.update(zip(new, replies, strict=True))
        return [self._replies[key] for key in keys]

    def send(self, prompts: Sequence[Prompt]) -> Flow[list[str]]:
        """The replies to any prompts.

        Raises:
            Spent: They are more than are left.
        """
        if self.sent_count + len(prompts) > self.calls:
            raise Spent
        self.sent_count += len(prompts)
        replies = yield from generate(prompts, "trace")
        return [reply.text for reply in replies]


def reason_of(stated: float) -> str:
    """Why a passage is named that states the answer and was not withheld."""
    return f"consistent with the answer: states it ({stated:.2f})"


def by_matching(stated: Scores) -> Culprits:
    """Name the passages that state the answer plainly, the plainest first; nobody is asked."""
    culprits = Culprits()
    best = float(stated.max(initial=0.0))
    for i in np.argsort(-stated, kind="stable").tolist():
        if stated[i] >= max(STATED, BESIDE * best):
            culprits.name(i, reason_of(float(stated[i])))
    return culprits


def by_groups(interview: Interview, stated: Scores, window: Window, *, remembers: bool) -> Flow[Culprits]:
    """Halve the passages down to the fewest from which the model gives the answer; take these away, and look again.

    One call sees whether the model gives the answer at all. Where one of k passages is guilty, and makes it say so
    without the others, it is found by at most ceil(log2 k) more (two more than that if those that state the answer best
    do not give it), and one or two confirm it: by itself, if no half of them gave the answer, and without it. Every
    further culprit costs as much again.

    Args:
        interview: Asks.
        stated: How plainly each passage states the answer, in [0, 1], shape (n,).
        window: Which passages the model reads once some are gone.
        remembers: Whether the generator may know an answer that no passage gives.
    """
    culprits = Culprits()
    try:
        culprits.reproduced = bool(window(())) and (yield from interview.says(window(())))
        if not culprits.reproduced:
            culprits.notes.append(
                "the model does not give this answer from these passages, so it cannot be asked who made it; passages "
                "are named by what they state"
            )
            _name_stated(culprits, stated)
            return culprits
        while context := window(culprits.positions):
            needed = yield from _fewest(interview, stated, context, culprits)
            together = f", together with {', '.join(map(str, sorted(needed)))}" if len(needed) > 1 else ""
            for i in needed:
                culprits.name(i, f"the model gives the answer from it{together}")
            reply = yield from interview.reply(window(culprits.positions))
            if not says(interview.question, reply, interview.answer):
                for i in needed:
                    culprits.name(i, f"without it{together} the model replies {clip(reply, 120)}")
                culprits.withheld = True
                return culprits
            first = len(culprits.positions) == len(needed)
            if first and remembers and (yield from _answers_from_memory(interview)):
                return Culprits(
                    reproduced=True, notes=["the model gives the answer without any passage: none is guilty"]
                )
    except Spent:
        culprits.notes.append(f"the search ended with the {interview.calls} calls that were allowed")
    return culprits


def half(masses: Scores) -> int:
    """How many of the heaviest to test together: near half of the mass, so that ceil(log2 n) tests are always enough.

    Args:
        masses: Of n >= 2 suspects, falling.

    Returns:
        In [1, n - 1]; neither side is larger than the largest power of two below n.
    """
    n = len(masses)
    most: int = 2 ** (ceil(log2(n)) - 1)
    shares = np.cumsum(masses) / masses.sum()
    wanted = int(np.abs(shares[:-1] - 0.5).argmin()) + 1
    return min(max(wanted, n - most, 1), most, n - 1)


def _fewest(interview: Interview, stated: Scores, context: Sequence[int], culprits: Culprits) -> Flow[list[int]]:
    """The fewest passages from which the model gives the answer, the plainest first.

    None of them can be left out; there may be other such sets. From the whole context it gives the answer.
    """
    suspects = sorted(context, key=lambda i: (-stated[i], i))
    search, plainest, others = _Search(interview, stated, context), suspects[0], suspects[1:]
    try:
        if others and not (yield from search.gives(search.split(suspects)[0])):
            if not (yield from search.gives(others)):  # needed, though of it alone the model makes other words
                culprits.name(plainest, "without it the model does not give the answer")
                return [plainest, *(yield from search.find_needed([plainest], others))]
            suspects = others
        return (yield from search.find_needed([], suspects))
    except Spent:
        if plainest not in culprits.reasons:
            left = search.find_remaining(suspects)
            culprits.name(left[0], f"of the {len(left)} that may have led to the answer it states it most plainly")
        raise


class _Search:
    """QuickXplain (Junker, AAAI 2004), which takes it that more passages never take an answer away."""

    def __init__(self, interview: Interview, stated: Scores, context: Sequence[int]) -> None:
        self.interview, self.stated = interview, stated
        self.enough, self.silent = [set(context)], list[set[int]]()

    def find_needed(self, kept: list[int], suspects: list[int]) -> Flow[list[int]]:
        """The suspects that are needed beside the kept passages; without all of the suspects the answer is another."""
        if len(suspects) == 1:
            if kept:
                yield from self.gives(suspects)  # by itself? then nothing else has to be tried
            return suspects
        top, rest = self.split(suspects)
        low: list[int] = []
        if not (yield from self.gives([*kept, *top])):
            low = yield from self.find_needed([*kept, *top], rest)
            if (yield from self.gives([*kept, *low])):
                return low
        return [*(yield from self.find_needed([*kept, *low], top)), *low]

    def gives(self, positions: list[int]) -> Flow[bool]:
        """Whether the model gives the answer from these; asked only where it does not follow from what is known."""
        if any(subset <= set(positions) for subset in self.enough):
            return True
        if any(subset >= set(positions) for subset in self.silent):
            return False
        answers = yield from self.interview.says(positions)
        (self.enough if answers else self.silent).append(set(positions))
        return answers

    def split(self, suspects: list[int]) -> tuple[list[int], list[int]]:
        """Those that state the answer best, and the others."""
        first = half(self.stated[suspects] ** 2 + DOUBT)
        return suspects[:first], suspects[first:]

    def find_remaining(self, suspects: list[int]) -> list[int]:
        """The suspects that are left: in the smallest set that gives the answer, and in no set that does not."""
        cleared = set[int]().union(*self.silent)
        return [i for i in suspects if i in min(self.enough, key=len) and i not in cleared] or suspects


def _name_stated(culprits: Culprits, stated: Scores) -> None:
    for i in by_matching(stated).positions:
        culprits.name(i, reason_of(float(stated[i])))


def _answers_from_memory(interview: Interview) -> Flow[bool]:
    (reply,) = yield from interview.send([answer_alone_prompt(interview.question)])
    return says(interview.question, reply, interview.answer)


def by_leaving_one_out(interview: Interview, stated: Scores, window: Window) -> Flow[Culprits]:
    """Name each passage without which the answer is another; k + 1 calls, side by side.

    Copies of one poison hide each other: without either, the other is still there.
    """
    culprits, context = Culprits(), window(())
    subsets = [context, *([j for j in context if j != i] for i in context)]
    try:
        whole, *others = yield from interview.all_replied(subsets)
    except Spent:
        culprits.notes.append(f"{len(subsets)} calls are needed and {interview.calls} were allowed")
        return culprits
    culprits.reproduced = says(interview.question, whole, interview.answer)
    if not culprits.reproduced:
        culprits.notes.append("the model does not give this answer from these passages")
        return culprits
    for i, reply in sorted(zip(context, others, strict=True), key=lambda pair: (-stated[pair[0]], pair[0])):
        if not says(interview.question, reply, interview.answer):
            culprits.name(i, f"without it the model replies {clip(reply, 120)}")
            culprits.withheld = True
    if not culprits.positions:
        culprits.notes.append("no single passage is needed for the answer; the method groups finds several")
    return culprits


def by_judge(interview: Interview, window: Window, *, writes: bool) -> Flow[Culprits]:
    """RAGForensics: each passage is judged alone; what takes the place of the guilty ones is judged too.

    One call for each passage. A reader, which cannot judge, reads each passage alone instead, and is told by its
    answer.
    """
    culprits, innocent = Culprits(), set[int]()
    try:
        while new := [i for i in window(culprits.positions) if i not in innocent]:
            texts = [interview.texts[i] for i in new]
            if writes:
                prompts = [blame_prompt(interview.question, interview.answer, text) for text in texts]
            else:
                prompts = [atomic_answer_prompt(interview.question, text) for text in texts]
            replies = yield from interview.send(prompts)
            for i, reply in zip(new, replies, strict=True):
                if _blames(reply) if writes else says(interview.question, reply, interview.answer):
                    culprits.name(i, f"the judge says of it alone {clip(reply, 120)}")
                else:
                    innocent.add(i)
    except Spent:
        culprits.notes.append(f"the search ended with the {interview.calls} calls that were allowed")
    return culprits


def _blames(reply: str) -> bool:
    word = extract_tagged(reply) or reply.strip()
    return word.strip(" .!\"'*").casefold().startswith("yes")
