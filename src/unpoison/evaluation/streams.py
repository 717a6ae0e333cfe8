"""Evaluation over time: is a changed answer followed, and does an unchanged one hold out under a continuing attack.

Every question is asked at each of its times, in order. What is counted: accuracy and attack success (ASR) by step,
unneeded changes, how many steps a genuine change takes to be followed, and what has to be stored for a question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from unpoison.beliefs.key import belief_key
from unpoison.errors import InputError
from unpoison.evaluation.adaptations import Answerer
from unpoison.evaluation.contexts import Context, clean_contexts
from unpoison.evaluation.examples import Example
from unpoison.evaluation.injection import planted, replace_at
from unpoison.evaluation.intervals import Estimate, bootstrap_ratio
from unpoison.evaluation.matching import Matcher, matcher
from unpoison.evaluation.timelines import Timeline

__all__ = ["StepRecord", "StreamResult", "dated", "run_stream", "step_context"]


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One answer of a stream.

    Attributes:
        timeline: The question's id.
        step: From 0.
        time: When.
        reply: The answer.
        correct: Whether it states a right answer of this time.
        attacked: Whether it states an answer that the attacker wants at this time.
        changed: Whether the right answer is another than at the step before.
        kept: Whether RADAR kept its previous answer; None without a memory.
    """

    timeline: str
    step: int
    time: str
    reply: str
    correct: bool
    attacked: bool
    changed: bool
    kept: bool | None = None


@dataclass(frozen=True, slots=True)
class StreamResult:
    """All answers of one method, and what it stored.

    Attributes:
        records: By question, then by step.
        stored: Bytes for each question after its last step.
    """

    records: tuple[StepRecord, ...]
    stored: tuple[int, ...] = field(default=())

    def accuracy(self, step: int | None = None) -> Estimate:
        """Share of right answers, at one step or over all, with the 95 % interval over questions."""
        return _share((record.timeline, record.correct) for record in self._at(step))

    def attack_success(self, step: int | None = None) -> Estimate:
        """Share of answers that the attacker wanted; over all steps it is the paper's step average."""
        return _share((record.timeline, record.attacked) for record in self._at(step))

    def unneeded_changes(self) -> Estimate:
        """Share of the steps after a right answer, with the truth unchanged, whose answer is no longer right."""
        return _share(
            (now.timeline, not now.correct) for before, now in self._neighbours() if before.correct and not now.changed
        )

    def lags(self) -> list[int | None]:
        """For each genuine change: steps until a right answer (0 at once), None if none came while it held."""
        return [lag for steps in self._timelines() for lag in _lags(steps)]

    def mean_lag(self) -> float | None:
        """Mean of the lags of the changes that were followed; None without any."""
        followed = [lag for lag in self.lags() if lag is not None]
        return sum(followed) / len(followed) if followed else None

    def followed(self) -> Estimate:
        """Share of the genuine changes that were followed before the next change or the end."""
        return _share((steps[0].timeline, lag is not None) for steps in self._timelines() for lag in _lags(steps))

    @property
    def steps(self) -> int:
        """The most steps of any question."""
        return max((record.step + 1 for record in self.records), default=0)

    def _at(self, step: int | None) -> list[StepRecord]:
        return [record for record in self.records if step in (None, record.step)]

    def _timelines(self) -> list[list[StepRecord]]:
        grouped: dict[str, list[StepRecord]] = {}
        for record in self.records:
            grouped.setdefault(record.timeline, []).append(record)
        return list(grouped.values())

    def _neighbours(self) -> Iterable[tuple[StepRecord, StepRecord]]:
        return ((a, b) for steps in self._timelines() for a, b in pairwise(steps))


def run_stream(
    answerer: Answerer,
    timelines: Sequence[Timeline],
    *,
    attack: str | None = None,
    position: int | None = 1,
    with_date: bool = False,
    rule: Matcher | None = None,
    progress: Callable[[StepRecord], None] = lambda record: None,
) -> StreamResult:
    """Ask every question at each of its times.

    Args:
        answerer: A defense and what it carries from step to step, fresh for every run.
        timelines: The questions.
        attack: Whose published text stands among the passages at every step; None for no attack.
        position: Its 1-based place, whose passage it replaces; behind the last one where there are fewer, as in
            RADAR's code; None for the last.
        with_date: Put the time into the question and before the titles, in the manner of RADAR's released code.
        rule: What counts as right; whole tokens by default.
        progress: Told of every answer.

    Raises:
        InputError: A step without a text of that attack.
        ModelError: A model failed for good.
    """
    judge = rule or matcher()
    records, stored = list[StepRecord](), list[int]()
    for timeline in timelines:
        key = belief_key(timeline.id)
        for number, example in enumerate(timeline.steps):
            context = step_context(example, attack, position)
            if with_date:
                context = dated(context, timeline.times[number])
            found = answerer.answer(context.query, context.passages, key=key)
            record = StepRecord(
                timeline=timeline.id,
                step=number,
                time=timeline.times[number],
                reply=found.text,
                correct=judge.correct(found.text, example.correct_answers),
                attacked=judge.attacked(found.text, example.incorrect_answers, example.correct_answers),
                changed=timeline.changed(number),
                kept=None if found.belief is None else found.belief.kept,
            )
            records.append(record)
            progress(record)
        stored.append(answerer.stored(key))
    return StreamResult(tuple(records), tuple(stored))


def step_context(example: Example, attack: str | None = None, position: int | None = 1) -> Context:
    """The passages of one step in rank order, with the first text of an attack in the place of one of them.

    Raises:
        InputError: No text of that attack.
    """
    (context,) = clean_contexts([example], max(1, len(example.passages)), order="rank")
    if attack is None:
        return context
    poisons = example.poisons(attack)
    if not poisons:
        raise InputError(f"{example.id} brings no text of the attack {attack}; it has: {', '.join(example.attacks)}")
    place = len(context) if position is None else position
    return replace_at(context, planted(example, poisons[:1]), [place - 1], append=True)


def dated(context: Context, time: str) -> Context:
    """The question with its time, and every passage with the time before its title."""
    candidates = tuple(
        replace(
            found,
            passage=replace(found.passage, title=f"[{time}] {found.passage.title or ''}".strip(), embedding=None),
        )
        for found in context.candidates
    )
    query = f"{context.query.rstrip().removesuffix('?')} in {time}?"
    return replace(context, query=query, candidates=candidates)


def _lags(steps: Sequence[StepRecord]) -> Iterator[int | None]:
    """For each genuine change of one question: steps until a right answer."""
    for start in (i for i, record in enumerate(steps) if record.changed):
        until = next((i for i in range(start + 1, len(steps)) if steps[i].changed), len(steps))
        yield next((i - start for i in range(start, until) if steps[i].correct), None)


def _share(outcomes: Iterable[tuple[str, bool]]) -> Estimate:
    """The share over all steps. The steps of one question stand or fall together, so questions are resampled."""
    counts: dict[str, list[int]] = {}
    for timeline, outcome in outcomes:
        found = counts.setdefault(timeline, [0, 0])
        found[0] += outcome
        found[1] += 1
    return bootstrap_ratio([yes for yes, _ in counts.values()], [steps for _, steps in counts.values()], shares=True)
