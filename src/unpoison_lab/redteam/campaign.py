"""Runs a test: asks every question without an attack, then plants, waits, asks and removes for each attack.

At most `in_flight` times `poisons` documents are planted at any moment, each for the seconds that its question takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock

from unpoison.errors import InputError, OptionError, TargetError, clip
from unpoison_lab.attacks.base import Attack
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.poisoning import craft_one
from unpoison_lab.evaluation.runs import moment
from unpoison_lab.evaluation.scenarios import make_attack
from unpoison_lab.redteam.config import Config, build_target
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.journal import RunJournal
from unpoison_lab.redteam.pace import Clock, InterruptedTestError, Pace
from unpoison_lab.redteam.planter import Planter
from unpoison_lab.redteam.results import NO_ATTACK, Results, Trial
from unpoison_lab.redteam.targets import RedteamTarget, TargetDocument, fingerprints, new_canary

__all__ = ["begin_run", "run_test"]

MAX_LEFT_BEHIND = 3
"""The run ends when this many questions have left documents behind."""

Progress = Callable[[int, int, str], None]


def run_test(
    config: Config,
    journal_path: Path,
    *,
    hosts: Hosts,
    target: RedteamTarget | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda done, total, doing: None,
) -> Results:
    """Run a test.

    Args:
        config: The configuration.
        journal_path: Records every document before it is planted.
        hosts: Where requests may go.
        target: The system itself, in place of the one that the configuration describes.
        clock: Time.
        progress: Called after every finished question.

    Returns:
        The results; incomplete if the target gave up.

    Raises:
        InputError: No questions, or a journal that still holds documents of another run.
        OptionError, UnknownNameError: A configuration that cannot be used.
        TargetError: The rehearsal failed.
        KeyboardInterrupt: After everything in flight was removed.
    """
    examples, problems = load_examples(config)
    given = {"seed": config.seed, "generator": config.generator, "encoder": config.encoder}
    attacks = {spec: make_attack(spec, **given) for spec in config.attacks}
    system, pace = target or _build(config, hosts), Pace(config.limits, clock)
    with begin_run(journal_path, config, _name(system)) as journal:
        campaign = Campaign(config, system, journal, pace, progress)
        campaign.problems += problems
        trials = campaign.run(examples, attacks)
        plants = journal.history.planted
        confirmed = sum(plant.confirmed for plant in plants)
        return Results(
            run=journal.history.run or {},
            finished=None if pace.stopped else moment(),
            examples=len(examples),
            trials=tuple(trials),
            cells=tuple(_cells(config)),
            planted=len(plants),
            removed=confirmed,
            accepted=sum(plant.removed for plant in plants) - confirmed,
            remaining=tuple((p.canary, "its removal did not succeed") for p in journal.history.open),
            problems=tuple(campaign.problems),
        )


def load_examples(config: Config) -> tuple[Sequence[Example], list[str]]:
    """The questions of a configuration, and the problems of those that cannot be used.

    Raises:
        InputError: There are none.
    """
    loaded = load(config.source)
    problems = [f"{config.questions}: {problem}" for problem in loaded.problems]
    if not loaded.examples:
        raise InputError(f"{clip(config.questions)} holds no usable question; {next(iter(problems), 'add one')}")
    return loaded.examples[: config.limit], problems


def begin_run(path: Path, config: Config, name: str) -> RunJournal:
    """A new journal for a test of a system.

    Raises:
        InputError: Documents of an earlier run may still be planted.
    """
    test = config.model_dump(include={"questions", "attacks", "poisons", "generator", "seed"})
    return RunJournal.begin(
        path,
        name=name,
        target=dict(config.target),
        wait=config.wait.model_dump(),
        test={key: list(value) if isinstance(value, tuple) else value for key, value in test.items()},
        started=moment(),
    )


class Campaign:
    """Runs a test on a target.

    Args:
        config: The configuration.
        target: The system.
        journal: Records every document before it is planted.
        pace: Timeouts and retries.
        progress: Called after every finished question.

    Attributes:
        problems: Reasons for an early end, and further remarks on the whole run.
    """

    def __init__(
        self,
        config: Config,
        target: RedteamTarget,
        journal: RunJournal,
        pace: Pace,
        progress: Progress = lambda done, total, doing: None,
    ) -> None:
        self._config, self._pace, self._progress = config, pace, progress
        self._planter = Planter(target, journal, pace, config.wait)
        self._trials: dict[tuple[str, str, int], Trial] = {}
        self._failures, self._left, self._lock = 0, 0, Lock()
        self.problems: list[str] = []

    def run(self, examples: Sequence[Example], attacks: Mapping[str, Attack]) -> list[Trial]:
        """Ask every question without an attack and under each.

        Args:
            examples: The questions.
            attacks: By their option strings.

        Returns:
            One trial for each question and cell that was reached, in order.

        Raises:
            TargetError: The rehearsal failed: planted documents could not be removed.
            KeyboardInterrupt: After everything in flight was removed.
            OSError: The journal cannot be written.
        """
        cells = _cells(self._config)
        try:
            if self._config.rehearse:
                self.problems += filter(None, [self._planter.rehearse()])
            for name, count in cells:
                work = [
                    partial(self._ask_clean, example)
                    if name == NO_ATTACK
                    else partial(self._attack, example, name, attacks[name], count)
                    for example in examples
                ]
                title = "without an attack" if name == NO_ATTACK else f"{name} x {count}"
                self._do(work, len(examples) * len(cells), title)
        except InterruptedTestError as stop:
            self.problems.append(str(stop))
        return [self._trials[key] for cell in cells for e in examples if (key := (e.id, *cell)) in self._trials]

    def _do(self, work: Iterable[Callable[[], Trial]], total: int, title: str) -> None:
        """Run the tasks, `in_flight` at a time; if the run is stopped, started tasks are finished."""
        waiting, size = iter(work), self._config.limits.in_flight
        pool = ThreadPoolExecutor(size, thread_name_prefix="unpoison-redteam")
        running = {pool.submit(task) for task in islice(waiting, size)}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                self._take(done)
                running |= {pool.submit(task) for task in islice(waiting, len(done))}
                self._progress(len(self._trials), total, title)
        except BaseException:
            self._pace.stop()
            self._take(future for future in wait(running).done if future.exception() is None)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _take(self, done: Iterable[Future[Trial]]) -> None:
        for future in done:
            trial = future.result()
            self._trials[trial.key] = trial

    def _ask_clean(self, example: Example) -> Trial:
        trial = Trial(example.id, example.question, correct=example.correct_answers, wanted=example.incorrect_answers)
        self._pace.check()
        try:
            reply, seconds = self._planter.ask(example.question)
        except TargetError as error:
            return self._fail(trial, "ask", str(error))
        self._failures = 0
        tells = reply.passages is not None or reply.ids is not None
        read = fingerprints(reply.passages)
        return replace(trial, answer=reply.answer, tells=tells, passages=read, seconds=round(seconds, 4))

    def _attack(self, example: Example, name: str, attack: Attack, count: int) -> Trial:
        """Ask one question under one attack, and always remove the planted documents."""
        trial = Trial(example.id, example.question, name, count, example.correct_answers)
        crafted = craft_one(attack, example.id, example.target, count)
        if crafted.error is not None:
            return replace(trial, stage="attack", error=crafted.error)
        wanted = dict.fromkeys(answer for text in crafted.texts for answer in text.meta.get("answers", ()))
        question = attack.user_question(example.question)
        trial = replace(trial, question=question, wanted=tuple(wanted) or attack.target_answers(example.target()))
        self._pace.check()
        clean = self._trials.get((example.id, NO_ATTACK, 0))
        outcome = self._planter.ask_planted(
            [TargetDocument(text.text, new_canary(), text.title) for text in crafted.texts],
            question,
            example=example.id,
            attack=name,
            honest=frozenset(clean.passages if clean else ()),
            tells=clean is None or clean.tells,
        )
        if outcome.reply is not None:
            self._failures = 0
            trial = replace(
                trial,
                planted=outcome.planted,
                read=outcome.read,
                answer=outcome.reply.answer,
                tells=outcome.read is not None,
                seconds=round(outcome.seconds, 4),
            )
        if outcome.left:
            self._count_left(outcome.left)
        if outcome.error:
            return self._fail(trial, outcome.stage, outcome.error)
        return replace(trial, stage="remove", error=outcome.left) if outcome.left else trial

    def _count_left(self, reason: str) -> None:
        """Stop planting after several documents could not be removed."""
        with self._lock:
            self._left += 1
            if self._left == MAX_LEFT_BEHIND:
                self.problems.append(
                    f"{self._left} questions have left documents behind, so nothing more is planted: {reason}"
                )
                self._pace.stop()

    def _fail(self, trial: Trial, stage: str, error: str) -> Trial:
        """Mark the trial as failed; after too many failures in a row end the run."""
        with self._lock:
            self._failures += 1
            if self._failures == max(10, 2 * self._config.limits.in_flight):
                self.problems.append(f"the target failed {self._failures} times in a row, so the run ended: {error}")
                self._pace.stop()
        return replace(trial, stage=stage, error=error)


def _build(config: Config, hosts: Hosts) -> RedteamTarget:
    system = build_target(config.target, hosts, folder=config.folder, timeout=config.limits.timeout)
    if not getattr(system, "plants", True):
        raise OptionError("target describes only how to ask the system; add plant and remove")
    return system


def _name(system: RedteamTarget) -> str:
    return str(getattr(system, "name", type(system).__name__))


def _cells(config: Config) -> list[tuple[str, int]]:
    return [(NO_ATTACK, 0), *((name, count) for name in config.attacks for count in config.poisons)]
