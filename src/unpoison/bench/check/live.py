"""A check of a running system: its documents are what it shows, and with consent it is attacked itself.

What is planted is written down first (`plants.journal` in the state's folder), removed after every question, and
at the next start where the process was killed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from unpoison import __version__
from unpoison.bench.check.asking import collect_documents
from unpoison.bench.check.attack import LiveRetrieval, Planting, ask_with
from unpoison.bench.check.check import Check, Progress
from unpoison.bench.check.planting import InMemory, Retrieval
from unpoison.bench.check.results import CheckResult, SystemFacts
from unpoison.bench.check.system import RunningSystem
from unpoison.bench.redteam.cleanup import clean
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.pace import Clock, Pace
from unpoison.bench.redteam.secrets import Secrets
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import InputError, UnpoisonError, clip
from unpoison.io.journal import write_json
from unpoison.models.loading import load_best_reader
from unpoison.scan.documents import Document
from unpoison.scan.engine import describe_source

__all__ = ["SystemCheck"]

PLANTS, SHOWN = "plants.journal", "shown.json"
"""Files in the state's folder."""


class SystemCheck(Check):
    """One check of a running system; `Check` has the rest.

    Args:
        system: It.
        documents: What it showed.
        asked: The questions that were asked for them.
        planting: Plants in it; None to attack a copy in memory.
        options: Those of `Check`.
    """

    def __init__(
        self, system: RunningSystem, documents: list[Document], asked: int, planting: Planting | None, **options: Any
    ) -> None:
        self._system, self._questions_asked, self._planting = system, asked, planting
        setting = f"{'planted' if planting else 'asked'} {_fingerprint(system)}"
        super().__init__(describe_source(system.name), documents, setting=setting, **options)

    @classmethod
    def ask(
        cls,
        system: RunningSystem,
        *,
        plant: bool,
        hosts: Hosts,
        secrets: Secrets,
        state: Path | None,
        reader: bool | None = None,
        clock: Clock | None = None,
        progress: Progress = lambda done, total, doing: None,
        **options: Any,
    ) -> Self:
        """Ask a system for its documents, after what an earlier check left in it was removed.

        Args:
            system: It.
            plant: Whether it may be planted into.
            hosts: Where requests may go.
            secrets: What must not be written.
            state: The folder of what is measured and planted.
            reader: Whether the reader is part of the recommendation; None where it is installed.
            clock: Time.
            progress: Called with the questions asked.
            options: Those of `Check`.

        Raises:
            InputError: It shows no passages; or it is to be planted into, and nobody knows how.
            TargetError: It failed.
        """
        if plant and not system.plants:
            raise InputError(f"--plant: {_no_endpoints(system)}")
        if plant and state is None:
            raise InputError("--plant writes down what it plants before it plants it; give --state a folder, not off")
        pace = Pace(system.config.bounds, clock)
        if state is not None:
            _remove_old(state / PLANTS, system, hosts, secrets)
        documents, asked = _documents(system, state, pace, progress)
        if not documents:
            raise InputError(
                f"{clip(system.name)} answers, but shows no passages that it read for {asked} questions, so nothing is "
                "known of its documents: give --ask 'a question that your documents answer', or ask.passages in a "
                "target file"
            )
        planting = None
        if plant and state is not None:
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
            planting = Planting(system, state / PLANTS, secrets, pace)
        return cls(system, documents, asked, planting, reader=load_best_reader(reader), state=state, **options)

    @cached_property
    def retrieval(self) -> Retrieval:
        if self._planting is None:
            return InMemory(self.examples, self.corpus)
        return LiveRetrieval(self._planting, self.examples)

    @cached_property
    def _vanilla(self) -> Vanilla | None:
        """Nobody in place of the system's own model, where it answers itself."""
        return None if self.reader is None or self._planting else Vanilla(generator=self.reader)

    def run(self, progress: Progress = lambda done, total, doing: None) -> None:
        """Measure what was not measured before.

        Raises:
            TargetError: The system failed, or something could not be removed; what was measured is kept.
        """
        if self._planting is not None and not self.complete:
            progress(0, 100, "one harmless document")
            self._planting.rehearse()
        super().run(progress)

    def close(self) -> None:
        """Let the journal go."""
        if self._planting is not None:
            self._planting.close()

    def result(self) -> CheckResult:
        """What was measured so far, and what was done with the system."""
        planting = self._planting
        facts = SystemFacts(
            asked=self._questions_asked,
            planted=None if planting is None else planting.planted,
            remaining=() if planting is None else planting.remaining,
            further="" if planting is not None else self._further(),
            problems=() if planting is None else tuple(planting.problems),
        )
        return replace(super().result(), system=facts)

    def _further(self) -> str:
        if not self._system.plants:
            return f"To attack the system itself: {_no_endpoints(self._system)}."
        return (
            "To attack the system itself: unpoison check with --plant; each question's texts are planted, asked for "
            "and removed again."
        )


def _no_endpoints(system: RunningSystem) -> str:
    name = describe_source(system.name)
    where = f"unpoison redteam init {name}" if name.startswith("'http") else f"see {name}"
    return (
        f"nothing that adds and removes documents is known of {name}; name it in plant and remove of a target file "
        f"({where}), and check that file with --plant"
    )


def _fingerprint(system: RunningSystem) -> str:
    values = [__version__, system.name, dict(system.target), list(system.seeds)]
    return blake2b(json.dumps(values, sort_keys=True, default=str).encode(), digest_size=12).hexdigest()


def _remove_old(journal: Path, system: RunningSystem, hosts: Hosts, secrets: Secrets) -> None:
    """Take out what a check that was killed has left, before it is shown as a document.

    Raises:
        InputError: Something may still be there.
    """
    if not journal.is_file():
        return
    cleaned = clean(journal, secrets=secrets, hosts=hosts, config=system.config if system.plants else None)
    if not cleaned.clean:
        canary, why = next(iter(cleaned.remaining), ("a document whose line is damaged", "see the journal"))
        raise InputError(
            f"an earlier check has left {max(1, len(cleaned.remaining))} planted documents, such as {canary}: {why}; "
            f"remove them by hand, or run unpoison redteam clean {journal}"
        )


def _documents(system: RunningSystem, state: Path | None, pace: Pace, progress: Progress) -> tuple[list[Document], int]:
    """What the system shows, or has shown to an earlier check of the same."""
    key = _fingerprint(system)
    if state is not None and (kept := _read_kept(state / SHOWN, key)) is not None:
        return kept
    report: Callable[[int, int], None] = lambda done, total: progress(done, total, "asking for documents")  # noqa: E731
    documents, asked = collect_documents(ask_with(system, pace), system.seeds, report)
    if state is not None and documents:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        passages = [document.passage for document in documents]
        rows = [{"text": one.text, "id": one.id, "source": one.source} for one in passages]
        write_json(state / SHOWN, {"key": key, "asked": asked, "passages": rows})
    return documents, asked


def _read_kept(path: Path, key: str) -> tuple[list[Document], int] | None:
    try:
        kept = json.loads(path.read_bytes())
        if kept["key"] == key:
            return [Document.of_row(row) for row in kept["passages"]], int(kept["asked"])
    except (OSError, ValueError, KeyError, TypeError, UnpoisonError):  # none, or damaged: it is asked again
        pass
    return None
