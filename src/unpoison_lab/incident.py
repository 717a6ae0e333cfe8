"""Finds and quarantines the documents behind a wrong answer of a running system."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from unpoison.core.passages import Passage
from unpoison.errors import InputError, TargetError, UnpoisonError, clip
from unpoison.io.output import Journal
from unpoison.retrieval.bm25 import BM25Retriever, words_of_any_script
from unpoison.retrieval.store import Store
from unpoison.scan.documents import UnreadDocument
from unpoison.scan.incident import Incident, Trials, conclude
from unpoison.scan.quarantine import FINISHED, STARTED, earlier_moves, move
from unpoison.scan.sources import read_documents
from unpoison.scan.statements import MAX_REPLY, STATED, Stance, Suspect, suspects_among
from unpoison.scan.stores import open_store
from unpoison.utils.checks import at_least
from unpoison.utils.files import load_yaml
from unpoison_lab.redteam.config import Config, build_target
from unpoison_lab.redteam.http_client import Hosts
from unpoison_lab.redteam.targets import Pace, RequestLimits, TargetReply, Wait, read_count

__all__ = ["Asked", "Experiment", "System", "investigate", "is_read", "open_target"]


class Asked(Protocol):
    """A system that answers questions."""

    def ask(self, question: str) -> TargetReply | str: ...


class Experiment:
    """A target, its store, and the store for withheld documents.

    Every move is written to the journal before it is done, with the whole document. After an interrupted run, the next
    one with the same journal first restores the withheld documents; `unpoison quarantine --restore` does the same.

    Args:
        target: The system, asked one question at a time.
        store: The store that it reads.
        held: The store for withheld documents.
        journal: The file that records the moves.
        pace: Limits on calls to the target.
        wait: The time in which the target notices a change.

    Attributes:
        texts: Texts of the documents that may be withheld, by id, used to detect that the target still reads one.
        replies: All replies of the target.
        notes: Warnings.
    """

    def __init__(self, target: Asked, store: Store, held: Store, journal: Path, *, pace: Pace, wait: Wait) -> None:
        self._target, self._store, self._held, self._journal = target, store, held, journal
        self._pace, self._wait = pace, wait
        self.texts = dict[str, str]()
        self.replies, self.notes = list[TargetReply](), list[str]()
        self._expected: frozenset[str] | None = None  # the documents read with nothing withheld
        self._withheld = frozenset[str]()
        if journal.exists():
            left = earlier_moves(journal, store, held, unfinished=True)
            if left:
                move(left, held, store, journal)
                self.notes.append(f"an earlier run was interrupted; {len(left):,} withheld documents were restored")
        self._record(STARTED)

    def ask(self, question: str, withheld: Collection[str]) -> str:
        """The target's reply while exactly these documents are withheld.

        If the target still reads a withheld document, or does not read a restored one, the question is repeated for up
        to `wait.seconds`.

        Raises:
            TargetError: It does not answer, or still reads a withheld document.
            StoreError, InputError: A document cannot be moved.
        """
        silent = bool(self.replies) and self.replies[-1].passages is None and self.replies[-1].ids is None
        if self.place(withheld) and silent:  # replies do not show when the change has taken effect
            self._pace.sleep(self._wait.seconds, removing=True)
        end = self._pace.clock.now() + self._wait.seconds
        answered, still, missing = TargetReply(""), "", ""
        for _ in self._pace.poll(self._wait, end, removing=True):
            said = self._pace.call("ask", lambda: self._target.ask(question), removing=True)
            answered = said if isinstance(said, TargetReply) else TargetReply(said)
            still = next((name for name in sorted(self._withheld) if self._reads(name, answered)), "")
            back = (self._expected or frozenset()) - self._withheld
            missing = next((name for name in sorted(back) if not self._reads(name, answered)), "")
            if not still and not missing:
                break
        if still:
            raise TargetError(
                f"the target still reads {clip(still)}, {self._wait.seconds:g} s after it was withheld: it answers "
                "from a cache, or from another store than --store; nothing can be proven"
            )
        if missing:
            self.notes.append(f"the target does not read {clip(missing)}, which was restored")
        if not self._withheld and (answered.passages is not None or answered.ids is not None):
            read = frozenset(name for name in self.texts if self._reads(name, answered))
            self._expected = read if self._expected is None else self._expected & read
        self.replies.append(answered)
        return answered.answer[:MAX_REPLY]

    def _reads(self, name: str, reply: TargetReply) -> bool:
        """Whether a reply is based on a document; a passage of an unwithheld copy belongs to the copy."""
        if name in (reply.ids or ()):
            return True
        if reply.ids is not None:
            return False
        others = [text for other, text in self.texts.items() if other != name and other not in self._withheld]
        own = [text for text in reply.passages or () if not any(is_read("", one, (text,)) for one in others)]
        return name in self.texts and is_read("", self.texts[name], tuple(own))

    def place(self, withheld: Collection[str]) -> bool:
        """Withhold exactly these documents; return whether any was moved.

        Raises:
            StoreError, InputError: A document cannot be moved.
        """
        wanted = frozenset(withheld)
        if wanted == self._withheld:
            return False
        missing = [
            *move(sorted(wanted - self._withheld), self._store, self._held, self._journal).missing,
            *move(sorted(self._withheld - wanted), self._held, self._store, self._journal).missing,
        ]
        if missing:
            raise InputError(
                f"{clip(missing[0])} is neither in {self._store.name} nor in {self._held.name}: another process moves "
                f"documents; {self._journal} contains it"
            )
        self._withheld = wanted
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """After an error, restores everything; otherwise the withheld documents stay, and the journal records it."""
        if error is not None:
            try:
                left = earlier_moves(self._journal, self._store, self._held, unfinished=True)
                move(left, self._held, self._store, self._journal)
            except (UnpoisonError, OSError):  # report the first error; the next run restores
                return
        self._record(FINISHED)

    def _record(self, done: str) -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        with Journal(self._journal, private_file=True) as lines:
            where = {"from": self._store.name, "to": self._held.name}
            lines.append({"time": time, "done": done, **where, "id": ""}, sync=True)


def is_read(name: str, text: str, passages: tuple[str, ...], ids: tuple[str, ...] = ()) -> bool:
    """Whether a target read a document, by its id or a passage."""
    return read_count(TargetReply("", passages, ids), (text,), ((name,),)) == 1


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
            found = conclude(trials, suspects, right, repair=repair)
            experiment.place(found.quarantined)
            suspicious = suspects()
            notes = (*found.notes, *experiment.notes, *_left(found, suspicious, index.name))
            return replace(found, suspects=tuple(suspicious[:NEIGHBOURS]), asked=trials.asked, notes=notes)


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
