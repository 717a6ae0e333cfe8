"""Checks a running system: its documents are the passages that it shows; with consent it is attacked itself.

What is planted is written down first, removed after every question, and at the next start where the process was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from unpoison.check.check import CheckResult, LiveFacts, Progress, check_documents
from unpoison.core.passages import Passage
from unpoison.errors import InputError, TargetError, clip
from unpoison.scan.documents import Document as ScannedDocument
from unpoison_lab.check.cases import DocumentCases, Retrieved, craft_texts
from unpoison_lab.evaluation.contexts import Candidate, Context
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.redteam.campaign import begin_run
from unpoison_lab.redteam.config import Config, build_target
from unpoison_lab.redteam.discovery import SEEDS, discover, shown_passages
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.pace import Clock, Pace, RequestLimits, Wait
from unpoison_lab.redteam.planter import Planter, report_removal
from unpoison_lab.redteam.planter import clean as take_back
from unpoison_lab.redteam.targets import TargetDocument, TargetReply, fingerprints, new_canary, passages_of

__all__ = ["check_system"]

T = TypeVar("T")

MAX_FAILED = 3
"""The check ends after so many failed questions."""


def check_system(
    where: str,
    may_test: Sequence[str] = (),
    *,
    journal: Path,
    plant: bool = False,
    model: str | None = None,
    ask: Sequence[str] = (),
    clock: Clock | None = None,
    progress: Progress = lambda done, total, doing: None,
    **options: Any,
) -> CheckResult:
    """Check a running system.

    Args:
        where: Its address, or a target file.
        may_test: Hosts to which requests may go, besides this machine.
        journal: Where everything is written before it is planted; deleted when nothing remains.
        plant: Whether false documents may be put into it.
        model: Of a chat endpoint; the first that it lists by default.
        ask: Questions to begin with; `SEEDS` by default.
        clock: Time.
        progress: Called with the steps done, all of them, and the next one.
        **options: Of `check_documents`.

    Raises:
        InputError: It shows no passages, or it is to be planted into and nobody knows how; or something that an
            earlier check has planted could not be removed.
        OptionError, UnknownNameError: A host that may not be tested, or a file that cannot be used.
        TargetError: It failed, or something could not be removed.
    """
    with report_removal(journal):
        return _check_system(
            where, Hosts(may_test), journal, plant, model, tuple(ask) or SEEDS, clock, progress, options
        )


def _check_system(
    where: str,
    hosts: Hosts,
    journal: Path,
    plant: bool,
    model: str | None,
    seeds: tuple[str, ...],
    clock: Clock | None,
    progress: Progress,
    options: Mapping[str, Any],
) -> CheckResult:
    if "://" not in where:
        config = Config.load(where)
    else:
        found = discover(where, hosts, model=model, questions=seeds)
        config = Config.of({"target": found}).model_copy(
            update={"limits": RequestLimits(in_flight=1, timeout=120.0), "wait": Wait(seconds=2.0)}
        )
    target = build_target(config.target, hosts, folder=config.folder, timeout=config.limits.timeout)
    plants = getattr(target, "plants", True)
    if plant and not plants:
        raise InputError(
            f"--plant: nothing that adds and removes documents is known of {clip(where)}; name it in plant and remove "
            f"of a target file (unpoison redteam init {where}), and check that file with --plant"
        )
    if journal.exists():
        _remove_old(journal, config, hosts)
    pace = Pace(config.limits, clock)

    def ask_once(question: str) -> TargetReply:
        reply = pace.call("ask", lambda: target.ask(question))
        return TargetReply(reply) if isinstance(reply, str) else reply

    passages, asked = shown_passages(ask_once, seeds, lambda done, of: progress(done, of, "asking for documents"))
    if not passages:
        raise InputError(
            f"{clip(where)} answers, but shows no passages that it read for {asked} questions, so nothing is known of "
            "its documents: give --ask 'a question that your documents answer', or ask.passages in a target file"
        )
    documents = [ScannedDocument(passage) for passage in passages]
    if not plant:
        facts = LiveFacts(asked, plants)
        return replace(check_documents(where, documents, progress=progress, **options), live=facts)
    with begin_run(journal, config, where) as written:
        planter, held = Planter(target, written, pace, config.wait), list[LiveRetrieval]()
        unread = _shielded(pace, planter.rehearse)

        def retrieval(examples: Sequence[Example], corpus: Sequence[Passage]) -> LiveRetrieval:
            held.append(LiveRetrieval(planter, pace, examples))
            return held[0]

        cases = partial(DocumentCases, retrieval=retrieval)
        result = check_documents(where, documents, cases=cases, progress=progress, **options)
        count = len(written.history.planted)
        problems = [*filter(None, [unread]), *(problem for one in held for problem in one.problems)]
    journal.unlink()
    return replace(result, live=LiveFacts(asked, plants, count, tuple(problems)))


class LiveRetrieval:
    """The passages and answers of a running system, without and with planted texts.

    Args:
        planter: Plants in it.
        pace: How it is called.
        examples: The questions, each with its gold passage.
    """

    def __init__(self, planter: Planter, pace: Pace, examples: Sequence[Example]) -> None:
        self._planter, self._pace, self._examples = planter, pace, examples
        self._seen: dict[tuple[str, str, int], tuple[TargetReply, Mapping[int, int]] | None] = {}
        self.problems: list[str] = []

    @cached_property
    def _clean(self) -> list[TargetReply]:
        return [self._planter.ask(example.question)[0] for example in self._examples]

    def clean(self) -> Iterator[Retrieved]:
        for example, reply in zip(self._examples, self._clean):
            yield Retrieved(_context(example, reply, {}, ()), reply.answer)

    def attacked(self, attack: str, owner: str) -> Iterator[Retrieved | None]:
        """The same while the texts of each question are planted, of that question alone.

        The texts do not depend on their owner, so each number of them is planted once.
        """
        crafted = craft_texts(attack, owner, self._examples, [one.context for one in self.clean()])
        for example, clean in zip(self._examples, self._clean):
            own = crafted.get(example.id, ())
            key = (attack, example.id, len(own))
            if own and key not in self._seen:
                self._seen[key] = self._plant(example, [one.passage for one in own], attack, clean)
            seen = self._seen.get(key)
            yield None if seen is None else Retrieved(_context(example, *seen, own), seen[0].answer)

    def _plant(
        self, example: Example, texts: Sequence[Passage], attack: str, clean: TargetReply
    ) -> tuple[TargetReply, Mapping[int, int]] | None:
        """The answer while these texts are planted, and which of its passages is which text; None if it failed."""
        documents = [TargetDocument(text.text, new_canary(), text.title) for text in texts]
        honest = frozenset(fingerprints(clean.passages))
        outcome = _shielded(
            self._pace,
            lambda: self._planter.ask_planted(
                documents, example.question, example=example.id, attack=attack, honest=honest
            ),
        )
        if outcome.left or outcome.still_read:
            why = (
                outcome.left or "the system still reads it; where answers are cached, or deleting takes its time, give "
            )
            raise TargetError(
                f"a planted document could not be removed, so nothing more is planted: {why}"
                f"{'' if outcome.left else 'wait.seconds in a target file'}; it is removed at the next start"
            )
        if outcome.reply is None or outcome.error:
            self.problems.append(f"{example.question} {outcome.error}")
            if len(self.problems) >= MAX_FAILED:
                raise TargetError(f"{MAX_FAILED} questions failed, the last one: {self.problems[-1]}")
            return None
        return outcome.reply, outcome.positions


def _context(example: Example, reply: TargetReply, planted: Mapping[int, int], own: Sequence[Candidate]) -> Context:
    """The retrieved passages in order; a planted text as the system returned it, such as a piece."""
    found = []
    for position, passage in enumerate(passages_of(reply)):
        candidate = Candidate(passage)
        if position in planted:
            whole = own[planted[position]]
            candidate = replace(whole, passage=replace(whole.passage, text=passage.text, id=passage.id))
        found.append(candidate)
    return Context(example.id, example.question, tuple(found), len(own))


def _shielded(pace: Pace, work: Callable[[], T]) -> T:
    """Run work on its own thread: after Ctrl-C work in flight finishes and its documents are removed."""
    with ThreadPoolExecutor(1, thread_name_prefix="unpoison-check") as pool:
        running = pool.submit(work)
        try:
            return running.result()
        except BaseException:
            pace.stop()  # it waits no more
            wait([running])
            raise


def _remove_old(journal: Path, config: Config, hosts: Hosts) -> None:
    """Remove documents that a killed check has left, before they count as the system's own.

    Raises:
        InputError: Something may still be there.
    """
    cleaned = take_back(journal, hosts=hosts, config=config)
    if not cleaned.clean:
        canary, why = next(iter(cleaned.remaining), ("a document whose line is damaged", "see the journal"))
        raise InputError(
            f"an earlier check has left {max(1, len(cleaned.remaining))} planted documents, such as {canary}: {why}; "
            f"remove them by hand, or run unpoison redteam clean {journal}"
        )
