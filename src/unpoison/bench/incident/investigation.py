"""Finds and quarantines the documents behind a wrong answer of a running system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from unpoison.bench.incident.experiment import Asked, Experiment, is_read
from unpoison.bench.redteam.config import Config, RequestLimits, Wait, build_target
from unpoison.bench.redteam.http_client import Hosts
from unpoison.bench.redteam.pace import Pace
from unpoison.core.passages import Passage
from unpoison.errors import InputError
from unpoison.io.settings import load_yaml
from unpoison.retrieval.bm25 import BM25Retriever, words_of_any_script
from unpoison.scan.documents import UnreadDocument
from unpoison.scan.incident import (
    STATED,
    BudgetError,
    DocumentVerdict,
    Incident,
    Stance,
    Suspect,
    Trials,
    find_culprits,
    suspects_among,
)
from unpoison.scan.sources import read_documents
from unpoison.scan.statements import says
from unpoison.scan.stores import open_store
from unpoison.utils.checks import at_least

__all__ = ["System", "investigate", "open_target"]

NEIGHBOURS = 50
"""Number of documents retrieved for the question, and for the question with the answer."""

MAX_NAMES = 8
"""Maximum number of documents in a note."""


def investigate(
    question: str,
    answer: str,
    target: Asked,
    store: str,
    quarantine: str,
    journal: Path,
    *,
    right: Sequence[str] = (),
    repair: bool = True,
    budget: int = 100,
    repeats: int = 4,
    bounds: RequestLimits | None = None,
    wait: Wait | None = None,
) -> Incident:
    """Find the documents behind a wrong answer by withholding them, and leave the guilty ones in quarantine.

    A document that states a right answer is never moved, whatever the system replies; one that neither states the wrong
    answer nor contains an injection never stays in quarantine.

    Args:
        question: The question.
        answer: The answer of the system, or the wrong part of it.
        target: The system, which reads the store.
        store: As for `scan.stores.open_store`.
        quarantine: Another store of the same kind; created if missing.
        journal: The journal of `scan.quarantine`, with every moved document.
        right: Known right answers.
        repair: Whether the guilty documents stay in quarantine; otherwise the store is restored.
        budget: Maximum number of questions to the target.
        repeats: Questions per count; with 4 or more, the intervals of "always" and "never" are disjoint.
        bounds: Limits on calls to the target, as in a red-team configuration.
        wait: The time in which the target notices a change.

    Raises:
        InputError: An unusable store.
        TargetError: The target does not answer, or does not read this store.
        StoreError: A store cannot be reached.
    """
    at_least("budget", budget, 1)
    at_least("repeats", repeats, 1)
    with open_store(store) as index, open_store(quarantine, new=True) as held:
        if index.shares_with(held):
            raise InputError(f"{held.name} is the store itself; pass another one with --quarantine")
        pace = Pace(bounds or RequestLimits())
        with Experiment(target, index, held, journal, pace=pace, wait=wait or Wait()) as experiment:
            documents = _Documents(store)
            trials = Trials(
                lambda withheld: experiment.ask(question, withheld), question, answer, budget=budget, repeats=repeats
            )

            def suspects() -> list[Suspect]:
                found = documents.suspects(question, trials.answers, experiment, right)
                experiment.texts |= {suspect.id: suspect.text for suspect in found}
                return found

            suspects()  # records what is read with nothing withheld
            found = _find(trials, suspects, right, repair)
            experiment.place(found.quarantined)
            suspicious = suspects()
            notes = (*found.notes, *experiment.notes, *_left(found, suspicious, index.name))
            return replace(found, suspects=tuple(suspicious[:NEIGHBOURS]), asked=trials.asked, notes=notes)


def _find(trials: Trials, suspects: Callable[[], Sequence[Suspect]], right: Sequence[str], repair: bool) -> Incident:
    found = Incident(trials.question, trials.answers[0], DocumentVerdict.UNFINISHED)
    try:
        if not trials.count(()).wrong:
            return replace(found, verdict=DocumentVerdict.NOT_REPRODUCED)
        proofs = find_culprits(trials, suspects, right)
        found = replace(found, verdict=DocumentVerdict.NO_DOCUMENT, proofs=tuple(proofs))
        if not found.guilty:
            return replace(found, verdict=DocumentVerdict.NOT_MOVED) if proofs else found
        found = replace(found, verdict=DocumentVerdict.PROVEN, quarantined=found.guilty if repair else ())
        count, after = trials.count(found.guilty), trials.reply(found.guilty)
        found = replace(found, after=after)
        if not repair:
            return found
        good = not count.wrong and (not right or any(says(trials.question, after, one) for one in right))
        return replace(found, verdict=DocumentVerdict.REPAIRED if good else DocumentVerdict.NOT_RIGHT)
    except BudgetError as error:
        return replace(found, notes=(str(error),))


def _left(found: Incident, suspects: Sequence[Suspect], store: str) -> list[str]:
    """Notes on documents that a person should examine."""
    spared = [proof.document.id for proof in found.proofs if proof.document.standing is Stance.SILENT]
    notes = [f"the answer depends on {name}, which does not state it and stays" for name in spared]
    agree = [s.id for s in suspects if s.stated >= STATED and s.id not in found.guilty and s.standing is Stance.STATES]
    if found.guilty and agree:
        more = f" and {len(agree) - MAX_NAMES:,} more" if len(agree) > MAX_NAMES else ""
        notes.append(f"{store} has other documents that state this answer: {', '.join(agree[:MAX_NAMES])}{more}")
    return notes


class _Documents:
    """The documents of a store, with a word search."""

    def __init__(self, source: str) -> None:
        failures = list[UnreadDocument]()
        self.texts = {document.id: _text(document.passage) for document in read_documents(source, failures.append)}
        if not self.texts:
            raise InputError("the store has no readable documents; check --store")
        passages = (Passage(text, id=name) for name, text in self.texts.items())
        self._search = BM25Retriever(passages, tokenize=words_of_any_script)

    def suspects(
        self, question: str, answers: Sequence[str], experiment: Experiment, right: Sequence[str]
    ) -> list[Suspect]:
        """Documents that the target read, and neighbours of question and answers; the most suspicious first."""
        near = {p.id or "": p.score or 0.0 for p in self._search.retrieve(question, NEIGHBOURS)}
        best = max(near.values(), default=1.0)
        names = dict.fromkeys(near)
        for answer in answers:
            names |= dict.fromkeys(p.id or "" for p in self._search.retrieve(f"{question} {answer}", NEIGHBOURS))
        passages = tuple(dict.fromkeys(text for reply in experiment.replies for text in reply.passages or ()))
        ids = tuple(dict.fromkeys(name for reply in experiment.replies for name in reply.ids or ()))
        names |= dict.fromkeys(name for name in ids if name in self.texts)
        for text in passages:
            names |= dict.fromkeys(p.id or "" for p in self._search.retrieve(text[:2_000], 3))
        read = {name for name in names if is_read(name, self.texts[name], passages, ids)}
        weights = {name: 0.25 * near.get(name, 0.0) / best + 0.25 * (name in read) for name in names}
        return suspects_among(question, answers, {name: self.texts[name] for name in names}, right, weights)


def _text(passage: Passage) -> str:
    title, text = passage.title, passage.text
    return text if not title or text.startswith(title) else f"{title}\n{text}"


class System(NamedTuple):
    """A system, and limits on calls to it."""

    target: Asked
    bounds: RequestLimits
    wait: Wait


def open_target(path: Path, may_test: Sequence[str] = ()) -> System:
    """The system of a configuration, whose questions and attacks are ignored.

    Raises:
        InputError: The file cannot be read, or is not YAML.
        UnknownNameError, OptionError: A configuration that cannot be used.
    """
    values = load_yaml(path)
    config = Config.of({"questions": "sample", **values} if isinstance(values, Mapping) else values, path.parent)
    target: Asked = build_target(config.target, Hosts(may_test), folder=config.folder, timeout=config.limits.timeout)
    return System(target, config.limits, config.wait)
