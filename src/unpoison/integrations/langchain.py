"""LangChain: a document compressor and a retriever. Needs langchain-core only."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("langchain_core", "the LangChain integration")

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun, Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.retrievers import BaseRetriever, RetrieverLike
from pydantic import ConfigDict, PrivateAttr

from unpoison.core.passages import Passage
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError, clip, nearest
from unpoison.integrations.screener import DocumentScreener, Mode, passage
from unpoison.scan.audit_log import AuditLog

__all__ = ["ScreenedRetriever", "ScreeningCompressor"]


class ScreeningCompressor(BaseDocumentCompressor):
    """Drops the documents that a defense does not trust; the others come back as the objects they were, best first.

    A redacted document (`guard:action=redact`) is a copy: its text is the screened text with the title in front and
    "[removed]" for each cut.

    Attributes:
        defense: A defense, or an option string such as "grada:keep=5".
        mode: `enforce` drops; `monitor` keeps all, in the order given, with their verdicts, and logs the counts.
        annotate: Return copies whose `metadata["unpoison"]` holds defense, kept, score, rank, reason and spans.
        exempt: Ids and sources (`metadata["source"]`) that are always kept.
        audit_log: The log of all screenings for `unpoison audit`: a path (with hashes instead of texts), or an
            `unpoison.scan.audit_log.AuditLog`.

    Raises:
        UnknownNameError: No such defense.
        OptionError: An option out of its range, or a model that the defense needs and was not given.
    """

    defense: Defense | str
    mode: Mode
    annotate: bool
    exempt: Collection[str] | None
    audit_log: AuditLog | str | Path | None
    model_config = ConfigDict(arbitrary_types_allowed=True)
    _screener: DocumentScreener[Document] = PrivateAttr()

    def __init__(
        self,
        defense: Defense | str = "guard",
        *,
        mode: Mode = "enforce",
        annotate: bool = False,
        exempt: Collection[str] | None = None,
        audit_log: AuditLog | str | Path | None = None,
    ) -> None:
        given: dict[str, Any] = {"defense": defense, "mode": mode, "annotate": annotate}
        given |= {"exempt": exempt, "audit_log": audit_log}
        screener = DocumentScreener(_passage, _annotate, _redact, **given).prepare()
        super().__init__(**given)
        self._screener = screener

    def __getstate__(self) -> dict[str, Any]:
        """The constructor's arguments: a defense is recreated from its option string."""
        return {name: getattr(self, name) for name in ("defense", "mode", "annotate", "exempt", "audit_log")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The documents to trust.

        Raises:
            InputError: An unusable query or document; only in mode `enforce`.
            ModelError: A model failed; only in mode `enforce`. Nothing is returned unscreened.
        """
        return self._screener.screen(query, documents).documents

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """`compress_documents` for asyncio."""
        return (await self._screener.ascreen(query, documents)).documents


class ScreenedRetriever(BaseRetriever):
    """A retriever that screens its documents.

    Attributes:
        retriever: Finds the documents.
        screening: A compressor, a defense, or an option string; by default Guard.

    Raises:
        OptionError: A vector store in the place of a retriever, or an option of the compressor.
        UnknownNameError: No such defense.
    """

    retriever: RetrieverLike
    screening: ScreeningCompressor

    def __init__(
        self, retriever: RetrieverLike, screening: ScreeningCompressor | Defense | str = "guard", **framework: Any
    ) -> None:
        if callable(getattr(retriever, "as_retriever", None)):
            raise OptionError(f"retriever must be one, got the store {clip(retriever)}; call .as_retriever() on it")
        if unknown := sorted(framework.keys() - type(self).model_fields):
            meant = nearest(unknown[0], ["retriever", "screening"])
            instead = meant.strip() or f"give screening=ScreeningCompressor({unknown[0]}=...)"
            raise OptionError(f"ScreenedRetriever takes no {', '.join(unknown)}; {instead}")
        compressor = screening if isinstance(screening, ScreeningCompressor) else ScreeningCompressor(screening)
        given: dict[str, Any] = {"retriever": retriever, "screening": compressor}
        super().__init__(**given, **framework)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        documents = self.retriever.invoke(query, config={"callbacks": run_manager.get_child()})
        return list(self.screening.compress_documents(documents, query))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        documents = await self.retriever.ainvoke(query, config={"callbacks": run_manager.get_child()})
        return list(await self.screening.acompress_documents(documents, query))


def _passage(document: Document) -> Passage:
    return passage(document.page_content, document.metadata, document, id=document.id)


def _annotate(document: Document, verdict: Mapping[str, Any]) -> Document:
    return document.model_copy(update={"metadata": {**(document.metadata or {}), "unpoison": dict(verdict)}})


def _redact(document: Document, text: str) -> Document:
    metadata = {name: value for name, value in (document.metadata or {}).items() if name != "title"}
    return document.model_copy(update={"page_content": text, "metadata": metadata})
