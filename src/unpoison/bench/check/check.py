"""One's own documents, checked.

What the user has is taken to be BM25 retrieval without a defense; beside it stands what is recommended: Guard, with
the reader where it is installed, and a policy in which the sources that are there already are known.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from unpoison import __version__
from unpoison.bench.check.cases import make_examples, measure_case
from unpoison.bench.check.planting import ATTACKS, OWNERS, InMemory, Retrieval, Retrieved
from unpoison.bench.check.policy import count_origins, folder_names, policy_text, recommend_policy
from unpoison.bench.check.results import CheckResult, Origin, Outcome, lost
from unpoison.bench.evaluation.examples import Example
from unpoison.defenses.guard import Guard
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import InputError
from unpoison.io.journal import Journal, read_rows
from unpoison.models.loading import load_best_reader
from unpoison.models.protocols import Generator
from unpoison.report.rendering import plain
from unpoison.scan.documents import Document, Failure
from unpoison.scan.engine import Engine, State, describe_source
from unpoison.scan.scanner import scan
from unpoison.scan.sources import read_documents
from unpoison.sources.sources import Sources
from unpoison.types import Passage

__all__ = ["Check"]

WORST = 10
"""Findings of the scan that are kept."""

SCAN, CLEAN = "scan", "clean"
STEPS = {f"{attack}, {owner}": (attack, owner) for attack in ATTACKS for owner in OWNERS}
"""Names of the attacked steps."""

SHARE = 100
SHARES = {SCAN: 12 * SHARE, CLEAN: 6 * SHARE}
"""How long a step takes, roughly: the first one to read the clean passages takes longest."""

Progress = Callable[[int, int, str], None]
Row = dict[str, Any]


class Check:
    """One check: `run` measures, `result` says what was measured so far.

    Args:
        source: What was read, as it may be shown.
        documents: The documents.
        roots: Names of the folder that they lie in, under which a policy knows them; () where they lie in none.
        unread: How many documents could not be read.
        questions: How many are wanted; there may be fewer.
        reader: Answers questions; None where none is installed.
        state: A folder in which what is measured is kept, so that it goes on there; None to keep nothing.
        workers: Processes of the scan; None for one each processor.
        setting: What else the measurements depend on.

    Raises:
        InputError: No documents.
        OSError: The state's folder cannot be used.
    """

    def __init__(
        self,
        source: str,
        documents: Sequence[Document],
        *,
        roots: Sequence[str] = (),
        unread: int = 0,
        questions: int = 25,
        reader: Generator | None = None,
        state: Path | None = None,
        workers: int | None = 1,
        setting: str = "",
    ) -> None:
        if not documents:
            raise InputError(f"{source} holds no documents; give rows with 'text', or a folder with text files")
        self.source, self.documents, self.unread, self.reader = source, tuple(documents), unread, reader
        self._roots, self._wanted, self._workers = tuple(roots), questions, workers
        self._state = None if state is None else State.open(state)
        self._key = self._fingerprint(setting)
        self._rows: dict[str, Row] = {}
        if self._state is not None:
            self._rows = {row["step"]: row for row in read_rows(self._journal) if row.get("key") == self._key}
            if not self._rows:
                self._journal.unlink(missing_ok=True)  # of other documents

    @classmethod
    def read(
        cls,
        source: str,
        *,
        reader: bool | None = None,
        failed: Callable[[Failure], None] = lambda failure: None,
        ignore: Sequence[str] = (),
        **options: Any,
    ) -> Self:
        """A check of a folder, a file of rows or a store, whatever `unpoison scan` reads.

        Args:
            source: As `scan.sources.read_documents` takes it.
            reader: Whether the reader answers; None where it is installed.
            failed: Called for every row and file that is not read.
            ignore: Patterns of files in a folder that are no documents.
            options: Those of the class.

        Raises:
            InputError: No such source, or nothing in it that can be read.
            OSError: It cannot be read.
        """
        failures = list[Failure]()

        def count(failure: Failure) -> None:
            failures.append(failure)
            failed(failure)

        documents = list(read_documents(source, count, ignore))
        if not documents and failures:
            why = Counter(failure.error for failure in failures).most_common(1)[0][0]
            raise InputError(f"{describe_source(source)} holds nothing that can be read: {failures[0].location}: {why}")
        roots = folder_names(Path(source)) if source != "-" and Path(source).is_dir() else ()
        if roots:
            documents = [
                replace(document, passage=replace(document.passage, source=f"{roots[0]}/{document.id}"))
                for document in documents
            ]
        return cls(
            describe_source(source),
            documents,
            roots=roots,
            unread=len(failures),
            reader=load_best_reader(reader),
            **options,
        )

    @property
    def _journal(self) -> Path:
        assert self._state is not None  # noqa: S101  callers have asked
        return self._state.folder / "check.jsonl"

    @property
    def complete(self) -> bool:
        """Whether everything was measured."""
        return SCAN in self._rows and (not self.examples or {CLEAN, *STEPS} <= self._rows.keys())

    @property
    def resumed(self) -> bool:
        """Whether something was measured in an earlier run."""
        return bool(self._rows)

    def _fingerprint(self, setting: str) -> str:
        """What the kept measurements depend on."""
        everything = [__version__, self._wanted, self.reader is not None, self._roots, *filter(None, [setting])]
        digest = blake2b(json.dumps(everything).encode(), digest_size=12)
        for document in self.documents:
            digest.update(f"{document.key} {document.passage.source}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    def _keep(self, step: str, row: Row) -> None:
        self._rows[step] = row = {"key": self._key, "step": step, **row}
        if self._state is not None:
            with Journal(self._journal, private_file=True) as journal:
                journal.append(row)

    def run(self, progress: Progress = lambda done, total, doing: None) -> None:
        """Measure what was not measured before. Interrupted, it keeps the steps that were finished.

        Args:
            progress: Called with the work done, all of it, and what is done next.
        """
        names = (SCAN, CLEAN, *STEPS)
        *begins, total = accumulate((SHARES.get(name, SHARE) for name in names), initial=0)
        begin = dict(zip(names, begins))

        def report(step: str, done: int, whole: int, doing: str = "") -> None:
            progress(begin[step] + SHARES.get(step, SHARE) * done // max(whole, 1), total, doing or step)

        report(SCAN, 0, 1)
        if SCAN not in self._rows:
            self._scan(lambda doing, done, whole: report(SCAN, done, whole, f"scan: {doing}"))
        for step in (CLEAN, *STEPS) if self.examples else ():
            if step in self._rows:
                continue
            cases = []
            report(step, 0, 1)
            for done, (example, seen) in enumerate(zip(self.examples, self._retrieved(step)), 1):
                if seen is not None:
                    cases.append(measure_case(example, seen, self._guard, self._vanilla))
                report(step, done, len(self.examples))
            attack, owner = STEPS.get(step, (CLEAN, ""))
            self._keep(step, {"attack": attack, "owner": owner, "cases": cases})
        progress(total, total, "done")

    def _scan(self, progress: Callable[[str, int, int], None]) -> None:
        parts = None if self._state is None else self._state.parts
        engine = Engine("guard:prompt_injection=keep", "local", self._workers, parts)
        found = scan(self.documents, engine=engine, progress=progress)
        worst = [
            {
                "id": finding.id,
                "suspicion": round(finding.suspicion, 4),
                "flagged": finding.flagged,
                "reasons": [plain(reason) for reason in finding.reasons],
            }
            for finding in found.findings[:WORST]
        ]
        self._keep(SCAN, {"flagged": [finding.id for finding in found.flagged], "worst": worst})
        if self._state is not None:
            self._state.finish(())

    @property
    def _flagged(self) -> frozenset[str]:
        return frozenset(self._rows[SCAN]["flagged"]) if SCAN in self._rows else frozenset()

    @property
    def policy_keys(self) -> dict[str, Any]:
        """The recommended policy; what the scan flagged makes nobody known."""
        believed = [document.passage for document in self.documents if document.id not in self._flagged]
        return recommend_policy(believed, self._roots)

    @cached_property
    def _asked(self) -> tuple[tuple[Example, ...], tuple[Passage, ...]]:
        return make_examples(self.documents, self._flagged, self._wanted)

    @property
    def examples(self) -> tuple[Example, ...]:
        """The questions, each with its true and its false answer and the passage that proves the true one."""
        return self._asked[0]

    @property
    def corpus(self) -> tuple[Passage, ...]:
        """The collection as passages."""
        return self._asked[1]

    @cached_property
    def retrieval(self) -> Retrieval:
        """What retrieves for the questions."""
        return InMemory(self.examples, self.corpus)

    def _retrieved(self, step: str) -> Iterable[Retrieved | None]:
        return self.retrieval.clean() if step == CLEAN else self.retrieval.attacked(*STEPS[step])

    @cached_property
    def _guard(self) -> Guard:
        return Guard(generator=self.reader, sources=Sources(self.policy_keys))

    @cached_property
    def _vanilla(self) -> Vanilla | None:
        return None if self.reader is None else Vanilla(generator=self.reader)

    def close(self) -> None:
        """Let go of what is held."""

    def result(self) -> CheckResult:
        """What was measured so far."""
        found, clean = self._rows.get(SCAN), self._rows.get(CLEAN)
        measured = [self._rows[step] for step in STEPS if step in self._rows]
        keys = self.policy_keys
        tally = count_origins([document.passage for document in self.documents], keys)
        return CheckResult(
            source=self.source,
            documents=len(self.documents),
            unread=self.unread,
            questions=max((len(row["cases"]) for row in (*measured, clean) if row is not None), default=0),
            reader=self.reader is not None,
            complete=self.complete,
            flagged=None if found is None else len(found["flagged"]),
            findings=() if found is None else tuple(found["worst"]),
            origins=tuple(Origin(row.origin, row.passages, row.share) for row in tally.rows()),
            new=sum(row.levels.get(level, 0) for row in tally.rows() for level in ("fresh", "open")),
            clean_lost=None if clean is None else lost(clean["cases"]),
            outcomes=tuple(map(Outcome.of, measured)),
            policy=policy_text(keys, self.source, self._flagged),
        )
