"""The gate before an index: a new document is judged beside those that are in it already, then it goes in, or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, OptionError
from unpoison.scan.collection import collect_documents
from unpoison.scan.documents import Document, documents_of, probe, units_of
from unpoison.scan.engine import Engine
from unpoison.scan.findings import Finding, findings
from unpoison.scan.scanner import judge_documents
from unpoison.utils.checks import at_least, within

__all__ = ["Decision", "Index", "Ingest", "Ingested"]

NEIGHBOURS = 9
"""Documents of the index that a new one is judged beside."""

QUESTIONS = 4
"""Stretches of one long document by which neighbours are looked for."""

Verdict = Literal["accept", "quarantine", "reject"]


class Index(Protocol):
    """What `Ingest` needs of a store: the retrievers of `unpoison.retrieval` have it."""

    def retrieve(self, query: str | Query, k: int) -> Sequence[Passage]:
        """The passages nearest to a question."""
        ...

    def add(self, passages: Iterable[Any]) -> Any:
        """Put passages in."""
        ...


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on one new document.

    Attributes:
        decision: `accept`, `quarantine` or `reject`.
        finding: Why: suspicion, spans, reasons, neighbours.
        document: The document.
    """

    decision: Verdict
    finding: Finding
    document: Document

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the decision, and the row of a scan."""
        return {"decision": self.decision, **self.finding.to_dict()}


@dataclass(frozen=True, slots=True)
class Ingested:
    """The decisions on new documents, in their order."""

    decisions: tuple[Decision, ...]

    def _of(self, decision: str) -> tuple[Document, ...]:
        return tuple(judged.document for judged in self.decisions if judged.decision == decision)

    @property
    def accepted(self) -> tuple[Document, ...]:
        """The documents added to the index."""
        return self._of("accept")

    @property
    def quarantined(self) -> tuple[Document, ...]:
        """The documents for human review."""
        return self._of("quarantine")

    @property
    def rejected(self) -> tuple[Document, ...]:
        """The rejected documents."""
        return self._of("reject")


class Ingest:
    """Judges new documents beside their neighbours in an index, and adds those that pass.

    Args:
        store: The index: a retriever of `unpoison.retrieval`, or anything with `retrieve(query, k)` and
            `add(passages)`; None judges new documents beside each other alone, and adds nothing.
        quarantine: Where documents in question go: a store with `add`, or a function that takes a `Decision`. Without
            it they are only returned.
        threshold: The suspicion from which a document is quarantined, in [0, 1].
        reject: The suspicion from which it is rejected, in [threshold, 1]; 1 rejects nothing but certainty.
        defense: Screens each document beside its neighbours.
        neighbours: How many of them, in [1, 50].

    Raises:
        OptionError: An option out of its range.
    """

    def __init__(
        self,
        store: Index | None = None,
        *,
        quarantine: Any = None,
        threshold: float = 0.5,
        reject: float = 0.99,
        defense: str = "guard:prompt_injection=keep",
        neighbours: int = NEIGHBOURS,
    ) -> None:
        self.store, self._quarantine = store, quarantine
        self.threshold = within("threshold", threshold, 0.0, 1.0)
        self.reject = within("reject", reject, 0.0, 1.0)
        if reject < threshold:
            raise OptionError(f"reject must be at least threshold ({threshold}), got {reject}")
        self.neighbours = at_least("neighbours", neighbours, 1, 50)
        self._engine = Engine(defense, workers=1)

    def check(self, documents: Iterable[object], *, beside: Iterable[object] = ()) -> Ingested:
        """Judge new documents; nothing is added anywhere.

        Args:
            documents: As for `scan`. Documents that come together are each other's neighbours too.
            beside: More documents of the index to judge them beside, for whoever looks them up elsewhere.

        Raises:
            InputError: An unusable document.
            StoreError: The index cannot be reached.
        """
        new = list(documents_of(documents))
        if not new:
            return Ingested(())
        indexed = self._beside(new, beside)
        chosen = np.array([True] * len(new) + [False] * len(indexed))
        collection = collect_documents([*new, *indexed])
        if collection.documents[: len(new)] != tuple(new):
            raise InputError("new documents and those of the index have the same ids; give each an id of its own")
        evidence = judge_documents(collection, chosen, self._engine, lambda step, done, total: None, companions=0)
        if evidence.failed:
            raise InputError(f"{evidence.failed} of the questions could not be screened, so nothing was decided")
        by_id = {finding.id: finding for finding in findings(collection, evidence, chosen, self.threshold)}
        return Ingested(tuple(Decision(self._decision(by_id[d.id]), by_id[d.id], d) for d in new))

    def add(self, documents: Iterable[object]) -> Ingested:
        """Judge new documents, add the accepted ones to the index, and pass on those in question.

        Those in question are passed on first: what is added after that was accepted, whatever fails.

        Raises:
            InputError: An unusable document, or one that the index does not take.
            OptionError: There is no index to add to.
            StoreError: The index cannot be reached.
        """
        if self.store is None:
            raise OptionError("there is no index to add to; give Ingest a store, or call check")
        ingested = self.check(documents)
        for decision in ingested.decisions:
            if decision.decision == "quarantine" and callable(self._quarantine):
                self._quarantine(decision)
        if ingested.quarantined and hasattr(self._quarantine, "add"):
            self._quarantine.add([document.passage for document in ingested.quarantined])
        if ingested.accepted:
            self.store.add([document.passage for document in ingested.accepted])
        return ingested

    def _decision(self, finding: Finding) -> Verdict:
        if finding.suspicion >= self.reject:
            return "reject"
        return "quarantine" if finding.suspicion >= self.threshold else "accept"

    def _beside(self, new: Sequence[Document], given: Iterable[object]) -> list[Document]:
        """The neighbours of all new documents, each once, named apart from them."""
        own = {(document.id, document.passage.text) for document in new}
        names = {document.id for document in new}
        neighbours = dict[str, Document]()
        for indexed in (*documents_of(given), *self._retrieve_neighbors(new)):
            if (indexed.id, indexed.passage.text) in own:
                continue  # it is in the index already, unchanged
            name = indexed.id
            while name in names:
                name = f"{name} (indexed)"
            neighbours.setdefault(name, replace(indexed, passage=replace(indexed.passage, id=name, score=None)))
        return list(neighbours.values())

    def _retrieve_neighbors(self, new: Sequence[Document]) -> Iterator[Document]:
        if self.store is not None:
            for number, document in enumerate(new):
                for query in _queries(document, number):
                    yield from map(Document.of, self.store.retrieve(query, self.neighbours))


def _queries(document: Document, number: int) -> list[Query]:
    """Queries for neighbours: the document's own vector where it has one, else the questions made of its units."""
    if document.passage.embedding is not None:
        return [Query(document.passage.text[:2_000] or " ", document.passage.embedding)]
    questions = [probe(unit).question for unit, _ in zip(units_of(document, number), range(QUESTIONS))]
    return [Query(question) for question in questions if question]
