"""Runs a test: asks every question without an attack, then plants, waits, asks, removes and asks again for each attack.

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

from unpoison import __version__
from unpoison.bench.attacks.base import Attack
from unpoison.bench.evaluation import Example, load
from unpoison.bench.evaluation.poisoning import craft_one
from unpoison.bench.evaluation.runs import moment
from unpoison.bench.evaluation.specs import make_attack
from unpoison.bench.redteam.config import Config, build_target
from unpoison.bench.redteam.hosts import Hosts
from unpoison.bench.redteam.journal import RunJournal
from unpoison.bench.redteam.pace import Clock, InterruptedTestError, Pace
from unpoison.bench.redteam.planter import Planter
from unpoison.bench.redteam.results import NO_ATTACK, Results, Trial
from unpoison.bench.redteam.targets import RedteamTarget, TargetDocument, fingerprints, new_canary
from unpoison.core.codec import from_row
from unpoison.errors import InputError, OptionError, TargetError, clip

__all__ = ["Campaign", "begin_run", "check_target", "load_examples", "run_test"]

MAX_LEFT_BEHIND = 3
"""The run ends after so many questions have left documents behind."""

LONG_TEXT = " ".join(
    f"This is sentence {number} of a harmless document for a test of this system's security; its mark is {{}}."
    for number in range(1, 31)
)
"""The document of a check: long enough that systems which cut texts into pieces cut it."""

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
    """Run a test, or resume an interrupted one.

    Args:
        config: What it does.
        journal_path: Where everything is written before it is planted.
        hosts: Where requests may go.
        target: The system itself, in place of the one that the configuration describes.
        clock: Time.
        progress: Called after every finished question.

    Returns:
        What was measured; incomplete where the target gave up or the budget was used up.

    Raises:
        InputError: No questions, or a journal that still holds documents of another run.
        OptionError, UnknownNameError: A configuration that cannot be used.
        TargetError: The rehearsal failed.
        KeyboardInterrupt: After everything in flight was removed.
    """
    examples, problems = load_examples(config)
    attacks, pace = _attacks_of(config), Pace(config.bounds, clock)
    system = target or _build(config, hosts)
    with RunJournal(journal_path) as journal:
        earlier = begin_run(journal, config, getattr(system, "name", type(system).__name__))
        campaign = Campaign(config, system, journal, pace, progress)
        campaign.problems += problems
        trials = campaign.run(examples, attacks, earlier)
        finished = None if pace.stopped else moment()
        if finished:
            journal.append("finished", at=finished)
        plants = journal.history.planted
        confirmed = sum(plant.confirmed for plant in plants)
        return Results(
            run=journal.history.run or {},
            finished=finished,
            examples=len(examples),
            trials=tuple(trials),
            cells=tuple(_cells(config, attacks)),
            planted=len(plants),
            removed=confirmed,
            accepted=sum(plant.removed for plant in plants) - confirmed,
            remaining=tuple((p.canary, "its removal did not succeed") for p in journal.history.open),
            problems=tuple(campaign.problems),
        )


def check_target(
    config: Config,
    journal_path: Path,
    *,
    hosts: Hosts,
    question: str | None = None,
    target: RedteamTarget | None = None,
    clock: Clock | None = None,
) -> tuple[list[str], list[str]]:
    """Ask once, plant one harmless document, ask for it, and remove it.

    Args:
        config: What is tested.
        journal_path: Where the document is written down first; a new one is deleted where nothing remains.
        hosts: Where requests may go.
        question: What is asked; the first question of the configuration by default.
        target: The system itself, in place of the one that the configuration describes.
        clock: Time.

    Returns:
        What was understood, and what must be fixed, as sentences.

    Raises:
        InputError: No question, or a journal that still holds documents.
        OptionError, UnknownNameError: A configuration that cannot be used.
        TargetError: The question had no usable answer, or the document could not be planted.
    """
    question = question or load_examples(config)[0][0].question
    system, fresh = target or _build(config, hosts), not journal_path.exists()
    with RunJournal(journal_path) as journal:
        begin_run(journal, config, getattr(system, "name", type(system).__name__))
        planter = Planter(system, journal, Pace(config.bounds, clock), config.wait)
        reply, seconds = planter.ask(question)
        texts = (
            "not shown" if reply.passages is None else f"{len(reply.passages)}, {clip(' '.join(reply.passages[:1]))}"
        )
        lines = [f"answer: {seconds:.2f} s, {clip(reply.answer, 120)}", f"passages: {texts}"]
        plant, unread = planter.rehearse(LONG_TEXT, always_ask=True)
    gone = "yes, verified" if plant.confirmed else "accepted, not verified"
    lines += [f"planted: {clip(list(plant.handles or ()))}", f"read: {unread or 'yes'}", f"removed: {gone}"]
    problems = [unread] if unread else []
    if not reply.answer.strip():
        problems.append("the answer is empty; see ask.answer")
    if reply.passages is None and reply.ids is None:
        problems.append("the reply shows no passages, so only answers are judged; add ask.passages if it has them")
    if not plant.confirmed:
        problems.append("removals cannot be verified; add find, or ask.passages")
    if fresh:
        journal_path.unlink()
    return lines, problems


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


def begin_run(journal: RunJournal, config: Config, name: str) -> list[Trial]:
    """Resume an interrupted run of the same test, or write the first line of a new one; returns the finished trials.

    Raises:
        InputError: Documents of an earlier run may still be planted.
    """
    history = journal.history
    if history.open:
        raise InputError(
            f"{journal.path} holds {len(history.open)} documents that may still be planted; first run: "
            f"unpoison redteam clean {journal.path}, or remove them by hand, by their canaries, and delete the file"
        )
    if history.run is not None and not history.finished and history.run.get("config") == config.digest():
        return [from_row(Trial, row) for row in history.trials]
    test = config.model_dump(include={"questions", "attacks", "poisons", "generator", "seed"})
    journal.append(
        "run",
        version=1,
        unpoison=__version__,
        name=name,
        target=dict(config.target),
        wait=config.wait.model_dump(),
        config=config.digest(),
        test={key: list(value) if isinstance(value, tuple) else value for key, value in test.items()},
        started=moment(),
    )
    return []


class Campaign:
    """Runs a test on a target.

    Args:
        config: What it does.
        target: The system.
        journal: Where it is written down; what it holds of the same test is not done again.
        pace: The limits.
        progress: Called after every finished question.

    Attributes:
        problems: Why it ended early, and what else concerns the whole run.
    """

    def __init__(
        self,
        config: Config,
        target: RedteamTarget,
        journal: RunJournal,
        pace: Pace,
        progress: Progress = lambda done, total, doing: None,
    ) -> None:
        self._config, self._journal, self._pace, self._progress = config, journal, pace, progress
        self._planter = Planter(target, journal, pace, config.wait)
        self._trials: dict[tuple[str, str, int], Trial] = {}
        self._failures, self._left, self._lock = 0, 0, Lock()
        self.problems: list[str] = []

    def run(
        self, examples: Sequence[Example], attacks: Mapping[str, Attack], earlier: Iterable[Trial] = ()
    ) -> list[Trial]:
        """Ask every question without an attack and under each.

        Args:
            examples: The questions.
            attacks: By their option strings.
            earlier: Trials of the same test that are there already; failed ones are done again.

        Returns:
            One trial for each question and cell that was reached, in order.

        Raises:
            TargetError: The rehearsal failed: planted documents could not be removed.
            KeyboardInterrupt: After everything in flight was removed.
            OSError: The journal cannot be written.
        """
        cells = _cells(self._config, attacks)
        wanted = {(example.id, *cell) for example in examples for cell in cells}
        self._trials = {trial.key: trial for trial in earlier if trial.key in wanted and not trial.failed}
        try:
            self._pace.check()
            if self._config.rehearse and len(self._trials) < len(wanted):
                self.problems += filter(None, [self._planter.rehearse()[1]])
            for name, count in cells:
                work = [
                    partial(self._ask_clean, example)
                    if name == NO_ATTACK
                    else partial(self._attack, example, name, attacks[name], count)
                    for example in examples
                    if (example.id, name, count) not in self._trials
                ]
                title = "without an attack" if name == NO_ATTACK else f"{name} x {count}"
                self._do(work, len(wanted), title)
                held = [self._trials[key] for e in examples if (key := (e.id, name, count)) in self._trials]
                again = [partial(self._ask_after, t) for t in held if not (t.clean or t.failed or t.after is not None)]
                self._do(again, len(wanted), f"{title}, afterwards")
        except InterruptedTestError as stop:
            self.problems.append(str(stop))
        return [self._trials[key] for cell in cells for e in examples if (key := (e.id, *cell)) in self._trials]

    def _do(self, work: Iterable[Callable[[], Trial]], total: int, title: str) -> None:
        """Run the tasks, `in_flight` at a time; if the run is stopped, started tasks are finished."""
        waiting, size = iter(work), self._config.bounds.in_flight
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
            self._journal.append("trial", **trial.to_dict())
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
        """Ask one question under one attack, and always remove what was planted."""
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

    def _ask_after(self, trial: Trial) -> Trial:
        """Ask again after all documents of the cell were removed."""
        self._pace.check()
        try:
            return replace(trial, after=self._planter.ask(trial.question)[0].answer)
        except TargetError as error:
            return self._fail(trial, "after", str(error))

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
            if self._failures == max(10, 2 * self._config.bounds.in_flight):
                self.problems.append(f"the target failed {self._failures} times in a row, so the run ended: {error}")
                self._pace.stop()
        return replace(trial, stage=stage, error=error)


def _build(config: Config, hosts: Hosts) -> RedteamTarget:
    system = build_target(config.target, hosts, folder=config.folder, timeout=config.bounds.timeout)
    if not getattr(system, "plants", True):
        raise OptionError("target describes only how to ask the system; add plant and remove")
    return system


def _attacks_of(config: Config) -> dict[str, Attack]:
    given = {"seed": config.seed, "generator": config.generator, "encoder": config.encoder}
    return {spec: make_attack(spec, **given) for spec in config.attacks}


def _cells(config: Config, attacks: Iterable[str]) -> list[tuple[str, int]]:
    return [(NO_ATTACK, 0), *((name, count) for name in attacks for count in config.poisons)]
