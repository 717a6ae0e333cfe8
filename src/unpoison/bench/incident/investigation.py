"""Finds the documents behind one wrong answer of a running system, and removes them from its store."""

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
"""Documents that are looked at, for the question, and for the question with the answer."""

MAX_NAMES = 8
"""Documents that a note names."""


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

    A document that states a right answer is never moved. A document that neither states the wrong answer nor gives
    orders never stays in quarantine.

    Args:
        question: What was asked.
        answer: What the system said, or the wrong part of it.
        target: The system; it reads the store.
        store: As for `scan.stores.open_store`.
        quarantine: Another store of its kind; made if it is not there.
        journal: Of `scan.quarantine`: every document that is moved, whole.
        right: Right answers, where they are known.
        repair: Whether the guilty stay in quarantine; otherwise the store is as before in the end.
        budget: Questions to the target at most.
        repeats: Questions for each count; 4 is the fewest of which always and never have intervals that do not meet.
        bounds: How the target may be called, as in a red-team configuration.
        wait: How long it may take to notice a change.

    Raises:
        InputError: A store that cannot be used.
        TargetError: The target does not answer, or does not read this store.
        StoreError: A store cannot be reached.
    """
    at_least("budget", budget, 1)
    at_least("repeats", repeats, 1)
    with open_store(store) as index, open_store(quarantine, new=True) as held:
        if index.shares_with(held):
            raise InputError(f"{held.name} is where the documents are; name another store with --quarantine")
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
    """The documents still to be examined."""
    spared = [proof.document.id for proof in found.proofs if proof.document.standing is Stance.SILENT]
    notes = [f"the answer changes with {name}, which does not state it, nor gives orders: it stays" for name in spared]
    agree = [s.id for s in suspects if s.stated >= STATED and s.id not in found.guilty and s.standing is Stance.STATES]
    if found.guilty and agree:
        more = f" and {len(agree) - MAX_NAMES:,} more" if len(agree) > MAX_NAMES else ""
        notes.append(
            f"in {store}, and not needed for this answer, what states it too: {', '.join(agree[:MAX_NAMES])}{more}"
        )
    return notes


class _Documents:
    """What a store holds, searchable by words."""

    def __init__(self, source: str) -> None:
        failures = list[UnreadDocument]()
        self.texts = {document.id: _text(document.passage) for document in read_documents(source, failures.append)}
        if not self.texts:
            raise InputError("the store holds no documents that can be read; see --store")
        passages = (Passage(text, id=name) for name, text in self.texts.items())
        self._search = BM25Retriever(passages, tokenize=words_of_any_script)

    def suspects(
        self, question: str, answers: Sequence[str], experiment: Experiment, right: Sequence[str]
    ) -> list[Suspect]:
        """What the target read so far, and the neighbours of question and answers; the most suspicious first."""
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
    """A system, and how it may be asked."""

    target: Asked
    bounds: RequestLimits
    wait: Wait


def open_target(path: Path, may_test: Sequence[str] = ()) -> System:
    """The system of a configuration; its questions and attacks are not needed.

    Raises:
        InputError: The file cannot be read, or is not YAML.
        UnknownNameError, OptionError: A configuration that cannot be used.
    """
    values = load_yaml(path)
    config = Config.of({"questions": "sample", **values} if isinstance(values, Mapping) else values, path.parent)
    target: Asked = build_target(config.target, Hosts(may_test), folder=config.folder, timeout=config.limits.timeout)
    return System(target, config.limits, config.wait)
