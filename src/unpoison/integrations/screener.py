"""Shared by the adapters: screens a framework's documents, with the same five options everywhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, Generic, Literal, Self, TypeVar

from unpoison.core import registry
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Verdict
from unpoison.defenses import load_defense
from unpoison.defenses.base import Defense
from unpoison.defenses.guard.sources import UNREAD
from unpoison.errors import InputError, OptionError, clip
from unpoison.scan.audit_log import AuditLog
from unpoison.screener.admission import LONG, overlong
from unpoison.sources.allow import Allowed
from unpoison.sources.origins import metadata_of, source_in
from unpoison.utils.checks import among

__all__ = ["DocumentScreener", "Mode", "passage"]


D = TypeVar("D")

Mode = Literal["enforce", "monitor"]

LONG_DOCUMENTS = (
    "longer than %d characters and judged as one text, in which one planted sentence weighs little: documents %s; "
    "split them, as they should be indexed"
)

MAX_NAMED = 10
"""Maximum number of positions in a warning."""

logger = logging.getLogger("unpoison")


@dataclass(frozen=True, slots=True)
class Delivery(Generic[D]):
    """A list of documents after screening.

    Attributes:
        documents: The kept documents, best first; in monitor mode all, in the given order.
        dropped: The others, in the given order.
    """

    documents: list[D]
    dropped: list[D]


class DocumentScreener(Generic[D]):
    """Screens a framework's documents by a defense.

    Args:
        reading: Converts a document to a passage.
        noting: Copies a document and adds the verdict to its metadata; must not change the document.
        cutting: Copies a document, replaces its text and removes its title, which the new text contains; must not
            change the document.
        defense: A defense, or an option string such as "grada:keep=5", which is checked here; its models are loaded on
            first use.
        mode: `enforce` drops; `monitor` delivers all documents unchanged with their verdicts, or without them if
            screening fails. Both log one event per query, with counts and no text.
        annotate: Deliver copies with their verdicts. Otherwise `enforce` delivers the given objects; only redacted
            documents are copies.
        exempt: Ids, sources, hashes of texts and patterns of sources as in a policy (`docs.example`): the defense reads
            these documents, and they are always kept.
        audit_log: The log of all screenings for `unpoison audit`: a log, or the path of one with hashes instead of
            texts. A write error is only a warning.

    Raises:
        UnknownNameError: No such defense.
        OptionError: An option out of its range.
        InputError: The log cannot be opened.
    """

    def __init__(
        self,
        reading: Callable[[D], Passage],
        noting: Callable[[D, Mapping[str, Any]], D],
        cutting: Callable[[D, str], D],
        defense: Defense | str = "guard",
        *,
        mode: Mode = "enforce",
        annotate: bool = False,
        exempt: Collection[str] | None = None,
        audit_log: AuditLog | str | PathLike[str] | None = None,
    ) -> None:
        self.reading, self.noting, self.cutting = reading, noting, cutting
        if isinstance(defense, str):
            name, options = registry.parse(defense)
            registry.read_options(registry.find("defenses", name), options, name)
        elif not isinstance(defense, Defense):
            raise OptionError(f"defense must be a defense or an option string such as 'guard', got {clip(defense)}")
        self.given = defense
        self.mode = among("mode", mode, ("enforce", "monitor"))
        self.annotate = annotate
        self.exempt = Allowed(exempt or (), "exempt").matches
        self.audit_log = AuditLog(audit_log) if isinstance(audit_log, (str, PathLike)) else audit_log

    @cached_property
    def defense(self) -> Defense:
        """The defense, loaded on first use, because its models may take seconds."""
        return load_defense(self.given) if isinstance(self.given, str) else self.given

    def prepare(self) -> Self:
        """Load the defense and its models."""
        _ = self.defense
        return self

    def screen(self, query: str, documents: Sequence[D], query_embedding: Any = None) -> Delivery[D]:
        """Sort the documents.

        Args:
            query: The user's question.
            documents: In retrieval order.
            query_embedding: Shape (d,), used where all documents bring theirs; otherwise none is used, for an encoder
                could not always add to them.

        Raises:
            UnpoisonError: An unusable query or document, or a model or store that failed; only when enforcing, where
                nothing is ever delivered unscreened.
        """
        documents = list(documents)
        try:
            return self._delivery(self.defense.screen(*self._input(query, documents, query_embedding)), documents)
        except Exception as error:  # monitor mode never breaks the chain
            if self.mode == "enforce":
                raise
            return self._pass_through(error, documents)

    async def ascreen(self, query: str, documents: Sequence[D], query_embedding: Any = None) -> Delivery[D]:
        """`screen` for asyncio."""
        documents = list(documents)
        try:
            screening = await self.defense.ascreen(*self._input(query, documents, query_embedding))
            return self._delivery(screening, documents)
        except Exception as error:  # monitor mode never breaks the chain
            if self.mode == "enforce":
                raise
            return self._pass_through(error, documents)

    def _input(self, query: str, documents: list[D], query_embedding: Any) -> tuple[Query, list[Passage]]:
        try:
            passages = [self.reading(document) for document in documents]
        except AttributeError as error:
            raise InputError(f"documents must be those of the framework, got {clip(documents)}: {error}") from None
        if query_embedding is not None and all(p.embedding is not None for p in passages):
            return Query(query, query_embedding), passages
        return Query(query), [replace(p, embedding=None) for p in passages]

    def _delivery(self, screening: Screening, documents: list[D]) -> Delivery[D]:
        screening = keep_exempt(screening, self.exempt)
        self._log(screening)
        if self.annotate or self.mode == "monitor":
            documents = [
                self.noting(document, verdict_metadata(screening.defense, verdict))
                for document, verdict in zip(documents, screening.verdicts, strict=True)
            ]
        if self.mode == "monitor":
            return Delivery(documents, [])
        kept = readable(screening, documents, self.cutting)
        return Delivery(kept, [documents[i] for i in screening.dropped_indices])

    def _log(self, screening: Screening) -> None:
        passages, dropped = len(screening.passages), len(screening.dropped_indices)
        fields = {"defense": screening.defense, "mode": self.mode, "passages": passages, "dropped": dropped}
        verb = "dropped" if self.mode == "enforce" else "would drop"
        logger.info("%s %s %d of %d passages", screening.defense, verb, dropped, passages, extra={"unpoison": fields})
        if long := overlong(screening.passages):
            logger.warning(LONG_DOCUMENTS, LONG, long[:MAX_NAMED], extra={"unpoison": {**fields, "long": long}})
        if UNREAD in screening.evidence.notes:
            logger.warning("%s: %s", screening.defense, UNREAD, extra={"unpoison": fields})
        if self.audit_log is not None:
            try:
                self.audit_log.record(screening, action="drop" if self.mode == "enforce" else "monitor")
            except OSError as error:  # a full disk must not stop the answers
                kind = type(error).__name__
                logger.warning("the audit log was not written: %s", kind, extra={"unpoison": {**fields, "error": kind}})

    def _pass_through(self, error: Exception, documents: list[D]) -> Delivery[D]:
        """All documents unchanged. The error's message may quote a passage, so only its type is logged."""
        kind, passages = type(error).__name__, len(documents)
        fields = {"mode": self.mode, "passages": passages, "error": kind}
        logger.warning("%d passages were not screened: %s", passages, kind, extra={"unpoison": fields})
        return Delivery(documents, [])


def passage(
    text: object, metadata: object, original: object, *, id: object = None, score: object = None, embedding: Any = None
) -> Passage:
    """A passage from a document's fields. A document without text (an image) counts as empty.

    Of the metadata, title and source are used if they are strings; strings and numbers become `Passage.metadata`.
    """
    details = metadata if isinstance(metadata, Mapping) else {}
    return Passage(
        text if isinstance(text, str) else "",
        id=id if isinstance(id, str) else None,
        title=title if isinstance(title := details.get("title"), str) else None,
        source=source_in({}, details),
        metadata=metadata_of({}, details),
        score=score if isinstance(score, (int, float)) and not isinstance(score, bool) else None,
        embedding=embedding,
        original=original,
    )


def readable(screening: Screening, documents: Sequence[D], cutting: Callable[[D, str], D]) -> list[D]:
    """The documents of the kept passages, best first, as a model may read them.

    Those that are redacted are copies, and those with messages in comments and tags, which no model is shown.
    """
    return [
        cutting(document, text) if _is_changed(screening, i) else document
        for i, document, text in zip(screening.kept_indices, screening.select(documents), screening.texts, strict=True)
    ]


def _is_changed(screening: Screening, i: int) -> bool:
    """Whether a model is shown less than the whole document; an exempt one is whole."""
    verdict, hidden = screening.verdicts[i], screening.passages[i].hidden
    return bool(verdict.cuts) or (hidden.asides > 0 and verdict.reason.code != "exempt")


def verdict_metadata(defense: str, verdict: Verdict) -> dict[str, Any]:
    """The metadata "unpoison" of annotated documents."""
    fields = verdict.to_dict()
    del fields["index"]
    return {"defense": defense, **fields}


def keep_exempt(screening: Screening, exempt: Callable[[Passage], bool]) -> Screening:
    """The screening with all exempt passages kept, whole.

    Dropped passages return to their rank if the defense keeps the retriever's order, and to the end if it reranks.
    """
    changed = [v.index for v in screening.verdicts if not v.kept or _is_changed(screening, v.index)]
    whole = [i for i in changed if exempt(screening.passages[i])]
    if not whole:
        return screening
    saved = [i for i in whole if not screening.verdicts[i].kept]
    kept = [*screening.kept_indices, *saved]
    if list(screening.kept_indices) == sorted(screening.kept_indices):
        kept.sort()
    verdicts = list(screening.verdicts)
    for i in whole:
        verdicts[i] = replace(
            verdicts[i], kept=True, reason=Reason.of("exempt", clauses=[verdicts[i].reason]), spans=()
        )
    for rank, i in enumerate(kept):
        verdicts[i] = replace(verdicts[i], rank=rank)
    return replace(screening, verdicts=tuple(verdicts))
