"""Every question without an attack and under each: ask, plant, wait until it is served, remove, ask again.

At most `in_flight` times `poisons` documents are planted at any moment, each for the seconds that its question takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Lock

from unpoison.bench.attacks.base import Attack, PoisonText
from unpoison.bench.evaluation.examples import Example
from unpoison.bench.evaluation.poisoning import craft_one
from unpoison.bench.evaluation.specs import make_attack
from unpoison.bench.redteam.cleanup import Remover, plant_document
from unpoison.bench.redteam.config import Config
from unpoison.bench.redteam.journal import Journal, Plant
from unpoison.bench.redteam.pace import InterruptedTestError, Pace, Seen, ask_until, ready_until
from unpoison.bench.redteam.rehearsal import rehearse
from unpoison.bench.redteam.results import NO_ATTACK, Trial
from unpoison.bench.redteam.targets import Answered, Document, Target, fingerprints, new_canary
from unpoison.errors import TargetError, UnpoisonError

__all__ = ["Campaign", "attacks_of"]

MAX_ANSWER_CHARS = 65_536
"""Characters of an answer that are kept and judged."""

MAX_LEFT_BEHIND = 3
"""Questions that may leave documents behind before the run ends."""

MAX_PASSAGES = 1000
"""Of an answer, that are looked at."""

Progress = Callable[[int, int, str], None]


class Campaign:
    """Runs a test on a target.

    Args:
        config: What it does.
        target: The system.
        journal: Where it is written down; what it holds of the same test is not done again.
        pace: The bounds.
        masked: Takes secrets out of messages.
        progress: Called after every finished question.
    """

    def __init__(
        self,
        config: Config,
        target: Target,
        journal: Journal,
        pace: Pace,
        *,
        masked: Callable[[str], str] = str,
        progress: Progress = lambda done, total, doing: None,
    ) -> None:
        self._config, self._target, self._journal, self._pace = config, target, journal, pace
        self._masked, self._progress = masked, progress
        self._remover = Remover(target, journal, pace, config.wait)
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
            One trial for each question and cell that was reached, in order. `problems` says why it ended early.

        Raises:
            TargetError: The rehearsal failed: what would be planted could not be taken back.
            KeyboardInterrupt: After everything in flight was taken back.
            OSError: The journal cannot be written.
        """
        cells = [(NO_ATTACK, 0), *((name, count) for name in attacks for count in self._config.poisons)]
        wanted = {(example.id, *cell) for example in examples for cell in cells}
        self._trials = {trial.key: trial for trial in earlier if trial.key in wanted and not trial.failed}
        try:
            self._pace.check()
            if self._config.rehearse and len(self._trials) < len(wanted):
                problem = self._rehearse()
                self.problems += [problem] if problem else []
            for name, count in cells:
                work = [
                    partial(self._clean, example)
                    if name == NO_ATTACK
                    else partial(self._run_attack, example, name, attacks[name], count)
                    for example in examples
                    if (example.id, name, count) not in self._trials
                ]
                title = "without an attack" if name == NO_ATTACK else f"{name} x {count}"
                self._do(work, len(wanted), title)
                trials = [self._trials[key] for e in examples if (key := (e.id, name, count)) in self._trials]
                again = [
                    partial(self._afterwards, t) for t in trials if not (t.clean or t.failed or t.after is not None)
                ]
                self._do(again, len(wanted), f"{title}, afterwards")
        except InterruptedTestError as stop:
            self.problems.append(str(stop))
        return [self._trials[key] for cell in cells for e in examples if (key := (e.id, *cell)) in self._trials]

    def _rehearse(self) -> str:
        """Plant and remove a harmless document. Where the target cannot search, it is asked for it before and after.

        Returns:
            "", or why nobody saw whether the document was there.

        Raises:
            TargetError: It could not be planted, or not be taken back; what may remain is named.
        """
        wait = self._config.wait
        try:
            seen = rehearse(self._target, self._journal, self._pace, wait, self._remover, self._ask)
        except TargetError as error:
            raise TargetError(self._masked(str(error))) from None
        if seen.left:
            raise TargetError(
                f"a harmless document was planted and could not be removed, so nothing else was planted: "
                f"{self._masked(seen.left)}; remove {seen.plant.canary} by hand, or mend the configuration and run "
                "'redteam clean'"
            )
        if seen.problem:
            why = self._masked(seen.problem)
            return f"a harmless document was planted and removed, and could not be looked for: {why}"
        if seen.read == 0:
            return (
                f"the rehearsal's document was never among the passages for {wait.seconds:g} s, so nobody knows "
                "whether it can be read or is gone; give find or ready, or raise wait.seconds"
            )
        return ""

    def _do(self, work: Iterable[Callable[[], Trial]], total: int, title: str) -> None:
        """All questions, `in_flight` at the same time; when the run is to end, those that began are finished."""
        waiting = iter(work)
        size = self._config.bounds.in_flight
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
            self._take_rest(running)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _take_rest(self, running: Iterable[Future[Trial]]) -> None:
        for future in wait(running).done:
            if future.exception() is None:
                self._take([future])

    def _take(self, done: Iterable[Future[Trial]]) -> None:
        for future in done:
            trial = future.result()
            self._journal.append("trial", **trial.to_dict())
            self._trials[trial.key] = trial

    def _clean(self, example: Example) -> Trial:
        trial = Trial(example.id, example.question, correct=example.correct_answers, wanted=example.incorrect_answers)
        self._pace.check()
        try:
            reply, seconds = self._ask(example.question)
        except TargetError as error:
            return self._failure(trial, "ask", error)
        tells_passages = reply.passages is not None or reply.ids is not None
        return replace(
            trial,
            answer=reply.answer,
            told=tells_passages,
            passages=fingerprints(reply.passages),
            seconds=round(seconds, 4),
        )

    def _run_attack(self, example: Example, name: str, attack: Attack, count: int) -> Trial:
        """One question under one attack, and everything taken back whatever happens."""
        trial = Trial(example.id, example.question, name, count, example.correct_answers)
        crafted = craft_one(attack, example.id, example.target, count)
        if crafted.error is not None:
            return replace(trial, stage="attack", error=crafted.error)
        target = example.target()
        wanted = dict.fromkeys(answer for text in crafted.texts for answer in text.meta.get("answers", ()))
        question = attack.user_question(example.question)
        trial = replace(trial, question=question, wanted=tuple(wanted) or attack.target_answers(target))
        self._pace.check()
        documents = [_document(text) for text in crafted.texts]
        canaries = [document.canary for document in documents]
        try:
            trial = self._plant_and_ask(trial, documents)
        except TargetError as error:
            trial = self._failure(trial, self._stage(canaries), error)
        finally:
            removed_from = self._pace.clock.now()
            reason = self._remove_plants(canaries)
        if reason:
            self._stuck(reason)
            return trial if trial.failed else replace(trial, stage="remove", error=self._masked(reason))
        if trial.failed or not trial.read:
            return trial
        try:
            return self._confirm_gone(trial, documents, removed_from)
        except TargetError as error:
            return self._failure(trial, "gone", error)

    def _plant_and_ask(self, trial: Trial, documents: Sequence[Document]) -> Trial:
        """Plant, wait until it is indexed, and ask until an answer was made from it or the wait is over."""
        plants = [
            plant_document(self._target, self._journal, self._pace, document, trial.example, trial.attack)
            for document in documents
        ]
        since = self._pace.clock.now()
        seconds = self._config.wait.seconds
        if not ready_until(self._target, self._pace, self._config.wait, plants, since + seconds):
            raise TargetError(f"what was planted is not ready after {seconds:g} s; raise wait.seconds")
        reply, asked_at, seconds, read = self._until(trial, documents, plants, since, poisoned=True)
        return replace(
            trial,
            planted=len(plants),
            read=read,
            answer=reply.answer,
            told=read is not None,
            served_seconds=round(asked_at - since, 4) if read else None,
            seconds=round(seconds, 4),
        )

    def _confirm_gone(self, trial: Trial, documents: Sequence[Document], since: float) -> Trial:
        """Ask until no answer is made from it any more, or the wait is over."""
        plants = [self._journal.history.plants[document.canary] for document in documents]
        seen = self._until(trial, documents, plants, since, poisoned=False)
        if seen.read == 0 and trial.read == len(plants):  # each of them was read before
            self._remover.confirm(plants)
        elif seen.read:
            self._remover.doubt(plants)
        return replace(trial, gone_seconds=round(seen.asked_at - since, 4) if seen.read == 0 else None)

    def _afterwards(self, trial: Trial) -> Trial:
        """Ask again when nothing is planted any more, for whatever question."""
        self._pace.check()
        try:
            return replace(trial, after=self._ask(trial.question)[0].answer)
        except TargetError as error:
            return self._failure(trial, "after", error)

    def _until(
        self, trial: Trial, documents: Sequence[Document], plants: Sequence[Plant], since: float, *, poisoned: bool
    ) -> Seen:
        """Ask until poison is read, or is not.

        A system that does not tell what it reads is asked once, when the wait is over: to ask until the attack
        succeeds would measure the best of several tries.
        """
        clean, pace, wait = self._trials.get((trial.example, NO_ATTACK, 0)), self._pace, self._config.wait
        honest = frozenset(clean.passages if clean is not None else ())
        end = since + wait.seconds
        if clean is not None and not clean.told:
            pace.sleep(max(0.0, end - pace.clock.now()))
        return ask_until(
            self._ask, pace, wait, trial.question, documents, plants, end, poisoned=poisoned, honest=honest
        )

    def _ask(self, question: str) -> tuple[Answered, float]:
        began = self._pace.clock.now()
        reply = self._pace.call("ask", lambda: self._target.ask(question))
        answered = Answered(reply) if isinstance(reply, str) else reply
        if not isinstance(answered, Answered):
            raise TargetError(f"ask returned a {type(answered).__name__}; return a text, or redteam.Answered")
        with self._lock:
            self._failures = 0
        passages = None if answered.passages is None else answered.passages[:MAX_PASSAGES]
        return replace(
            answered, answer=answered.answer[:MAX_ANSWER_CHARS], passages=passages
        ), self._pace.clock.now() - began

    def _stage(self, canaries: Sequence[str]) -> str:
        """Where a question failed before anything was removed."""
        plants = self._journal.history.plants
        return "ask" if all(c in plants and plants[c].handles is not None for c in canaries) else "plant"

    def _remove_plants(self, canaries: Sequence[str]) -> str:
        """Remove what was planted under these marks; why something may remain, "" if nothing does."""
        plants = [self._journal.history.plants[canary] for canary in canaries if canary in self._journal.history.plants]
        return "; ".join(filter(None, [self._remover.remove(plant) for plant in plants]))

    def _stuck(self, reason: str) -> None:
        """Plant no more where several documents could not be taken back."""
        with self._lock:
            self._left += 1
            if self._left == MAX_LEFT_BEHIND:
                self.problems.append(
                    f"{self._left} questions have left documents behind, so nothing more is planted: "
                    f"{self._masked(reason)}"
                )
                self._pace.stop()

    def _failure(self, trial: Trial, stage: str, error: UnpoisonError) -> Trial:
        """The trial, failed; and the end of the run where nothing else happens any more."""
        with self._lock:
            self._failures += 1
            if self._failures == max(10, 2 * self._config.bounds.in_flight):
                self.problems.append(
                    f"the target failed {self._failures} times in a row, so the run ended: {self._masked(str(error))}"
                )
                self._pace.stop()
        return replace(trial, stage=stage, error=self._masked(str(error)))


def attacks_of(config: Config) -> dict[str, Attack]:
    """The attacks of a configuration, by their option strings.

    Raises:
        OptionError: A model that one needs is missing.
    """
    given = {"seed": config.seed, "generator": config.generator, "encoder": config.encoder}
    return {spec: make_attack(spec, **given) for spec in config.attacks}


def _document(text: PoisonText) -> Document:
    return Document(text.text, new_canary(), text.title)
