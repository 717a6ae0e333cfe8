"""Texts planted in a running system, one question at a time: asked for, written down, and removed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from unpoison.bench.check.asking import passages_of
from unpoison.bench.check.planting import Retrieved, craft_candidates
from unpoison.bench.check.system import RunningSystem
from unpoison.bench.evaluation.contexts import Candidate, Context
from unpoison.bench.evaluation.examples import Example
from unpoison.bench.redteam.cleanup import Remover, plant_document
from unpoison.bench.redteam.journal import Journal, Plant
from unpoison.bench.redteam.pace import Pace, Seen, ask_until, ready_until
from unpoison.bench.redteam.rehearsal import rehearse
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.session import resume_trials
from unpoison.bench.redteam.targets import PREFIX, Answered, Document, fingerprints, new_canary, planted_positions
from unpoison.errors import TargetError
from unpoison.types import Passage
from unpoison.utils.closing import Closing

__all__ = ["LiveRetrieval", "Planting", "ask_with"]

T = TypeVar("T")

MAX_FAILED = 3
"""Questions that may fail before a check ends."""


def ask_with(system: RunningSystem, pace: Pace) -> Callable[[str], Answered]:
    """How the system is asked, at this pace."""

    def ask(question: str) -> Answered:
        reply = pace.call("ask", lambda: system.asked.ask(question))
        return Answered(reply) if isinstance(reply, str) else reply

    return ask


class Planting(Closing):
    """Plants in a system and takes everything back; a context manager that holds the journal.

    Args:
        system: It.
        path: The journal.
        secrets: What it must not hold.
        pace: How the system is called.

    Raises:
        InputError: The journal holds documents that may still be there.
        OSError: It cannot be written.
    """

    def __init__(self, system: RunningSystem, path: Path, secrets: Secrets, pace: Pace) -> None:
        self._system, self._pace, self._wait = system, pace, system.config.wait
        self._journal = Journal(path, secrets)
        try:
            resume_trials(self._journal, system.config, system.name)
        except BaseException:
            self._journal.close()
            raise
        self._remover = Remover(system.asked, self._journal, pace, self._wait)
        self._asking = ask_with(system, pace)
        self._failed = 0
        self.problems: list[str] = []

    @property
    def planted(self) -> int:
        """Documents that were planted so far, in all runs of this journal."""
        return sum(not plant.refused for plant in self._journal.history.plants.values())

    @property
    def remaining(self) -> tuple[str, ...]:
        """Marks of those that may still be there."""
        return tuple(plant.canary for plant in self._journal.history.open)

    def rehearse(self) -> None:
        """Plant and remove one harmless document.

        Raises:
            TargetError: It could not be planted, or may still be there.
        """
        seen = self._run(
            lambda: rehearse(self._system.asked, self._journal, self._pace, self._wait, self._remover, self._ask)
        )
        if seen.left:
            raise TargetError(
                f"a harmless document was planted and could not be removed, so nothing else was planted: {seen.left}; "
                f"remove {seen.plant.canary} by hand"
            )
        if seen.problem:
            self.problems.append(f"a harmless document was planted and removed; between them: {seen.problem}")
        elif seen.read == 0:
            self.problems.append(
                f"the system did not read a harmless document within {self._wait.seconds:g} s of planting it: where it "
                "indexes slowly, give wait.seconds in a target file"
            )

    def ask(self, question: str) -> Answered:
        """The answer while nothing is planted.

        Raises:
            TargetError: There is none.
        """
        return self._run(lambda: self._asking(question))

    def plant(
        self, example: Example, texts: Sequence[Passage], attack: str, clean: Answered
    ) -> tuple[Answered, dict[int, int]] | None:
        """The answer while these texts are planted, and which of its passages is which text; None where that failed.

        Args:
            example: The question.
            texts: What is planted.
            attack: For the journal.
            clean: The answer before.

        Raises:
            TargetError: Too many questions failed, or something could not be removed.
        """
        documents = [Document(text.text, new_canary(), text.title) for text in texts]
        return self._run(
            lambda: self._plant_and_ask(example, documents, attack, frozenset(fingerprints(clean.passages)))
        )

    def _plant_and_ask(
        self, example: Example, documents: Sequence[Document], attack: str, honest: frozenset[str]
    ) -> tuple[Answered, dict[int, int]] | None:
        plants, problem = list[Plant](), ""
        try:
            for document in documents:
                plants.append(
                    plant_document(self._system.asked, self._journal, self._pace, document, example.id, attack)
                )
            end = self._pace.clock.now() + self._wait.seconds
            if not ready_until(self._system.asked, self._pace, self._wait, plants, end):
                raise TargetError(f"what was planted is not ready after {self._wait.seconds:g} s")
            seen = self._ask_until(example, documents, plants, honest, poisoned=True)
        except TargetError as error:
            problem = str(error)
        finally:
            held = self._journal.history.plants
            left = [self._remover.remove(held[one.canary]) for one in documents if one.canary in held]
        if reason := "; ".join(filter(None, left)):
            raise TargetError(f"a planted document could not be removed, so nothing more is planted: {reason}")
        if problem:
            self._count_failure(f"{example.question} {problem}")
            return None
        if seen.read and self._ask_until(example, documents, plants, honest, poisoned=False).read:
            raise TargetError(
                f"{self._remover.doubt(plants)}, so nothing more is planted; where answers are cached, or deleting "
                "takes its time, give find or wait.seconds in a target file"
            )
        if seen.read == len(plants):
            self._remover.confirm(plants)
        return seen.reply, planted_positions(seen.reply, [one.text for one in documents], _handles(plants), honest)

    def _ask_until(
        self,
        example: Example,
        documents: Sequence[Document],
        plants: Sequence[Plant],
        honest: frozenset[str],
        *,
        poisoned: bool,
    ) -> Seen:
        end = self._pace.clock.now() + self._wait.seconds
        return ask_until(
            self._ask,
            self._pace,
            self._wait,
            example.question,
            documents,
            plants,
            end,
            poisoned=poisoned,
            honest=honest,
        )

    def _ask(self, question: str) -> tuple[Answered, float]:
        began = self._pace.clock.now()
        return self._asking(question), self._pace.clock.now() - began

    def _count_failure(self, problem: str) -> None:
        """Note a question that failed, which is not counted.

        Raises:
            TargetError: It is one too many.
        """
        self._failed += 1
        self.problems.append(problem)
        if self._failed >= MAX_FAILED:
            raise TargetError(f"{self._failed} questions failed, the last one: {problem}")

    def _run(self, work: Callable[[], T]) -> T:
        """Work on a thread of its own: after Ctrl-C what is in flight is finished, and with it taken back."""
        with ThreadPoolExecutor(1, thread_name_prefix="unpoison-check") as pool:
            running = pool.submit(work)
            try:
                return running.result()
            except BaseException:
                self._pace.stop()  # it waits no more
                wait([running])
                raise

    def close(self) -> None:
        self._journal.close()


def _handles(plants: Sequence[Plant]) -> list[tuple[str, ...]]:
    return [(*plant.own, *(plant.handles or ()), plant.canary.removeprefix(PREFIX)) for plant in plants]


class LiveRetrieval:
    """What a running system retrieves and answers, without and with planted texts.

    Args:
        planting: Plants in it.
        examples: The questions, each with its gold passage.
    """

    def __init__(self, planting: Planting, examples: Sequence[Example]) -> None:
        self._planting, self._examples = planting, examples
        self._planted: dict[tuple[str, int], list[tuple[Answered, dict[int, int]] | None]] = {}

    @cached_property
    def _clean(self) -> list[Answered]:
        return [self._planting.ask(example.question) for example in self._examples]

    def clean(self) -> Iterator[Retrieved]:
        """What it retrieves where nobody attacks."""
        for example, reply in zip(self._examples, self._clean):
            yield Retrieved(_context(example, reply, {}, ()), reply.answer)

    def attacked(self, attack: str, owner: str) -> Iterator[Retrieved | None]:
        """The same while the texts of each question are planted, of that question alone.

        Whose a text is stands beside it when it is screened; what a system is given is the same for every owner of as
        many texts, so it is planted once.
        """
        contexts = [one.context for one in self.clean()]
        crafted = craft_candidates(attack, owner, self._examples, contexts)
        count = max(map(len, crafted.values()), default=0)
        earlier = self._planted.get((attack, count))
        replies = list[tuple[Answered, dict[int, int]] | None]()
        if earlier is None:  # of one attack at a time
            self._planted = {key: held for key, held in self._planted.items() if key[0] == attack}
            self._planted[attack, count] = replies
        for position, (example, clean) in enumerate(zip(self._examples, self._clean)):
            own = crafted.get(example.id, ())
            if earlier is not None:
                seen = earlier[position]
            else:
                texts = [candidate.passage for candidate in own]
                seen = self._planting.plant(example, texts, attack, clean) if texts else None
                replies.append(seen)
            yield None if seen is None else Retrieved(_context(example, *seen, own), seen[0].answer)


def _context(example: Example, reply: Answered, planted: Mapping[int, int], candidates: Sequence[Candidate]) -> Context:
    """What was retrieved, in its order; of a planted text what the system made of it, such as a piece."""
    found = []
    for position, passage in enumerate(passages_of(reply)):
        number = planted.get(position)
        if number is None:
            found.append(Candidate(passage))
        else:
            whole = candidates[number]
            found.append(replace(whole, passage=replace(whole.passage, text=passage.text, id=passage.id)))
    return Context(example.id, example.question, tuple(found), len(candidates))
