"""Haystack 3: a component between retriever and prompt builder."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("haystack", "the Haystack integration")

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Self

from haystack import Document, component, default_from_dict, default_to_dict

from unpoison.core.passages import Passage
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError, clip
from unpoison.integrations.screener import DocumentScreener, Mode, passage
from unpoison.scan.audit_log import AuditLog

__all__ = ["Screen"]


@component
class Screen:
    """Drops the documents that a defense does not trust; the others come back as the objects they were, best first.

    A redacted document (`guard:action=redact`) is a copy: its text is the screened text with the title in front and
    "[removed]" for each cut, and it has no embedding.

    A saved pipeline holds an option string and a list, no objects. Haystack loads it where the caller allows our
    module: `Pipeline.loads(text, allowed_modules=["unpoison.integrations.haystack"])`.

    Args:
        defense: A defense, or an option string such as "grada:keep=5". Models are loaded by `warm_up`.
        mode: `enforce` drops; `monitor` keeps all, in the order given, with their verdicts, and logs the counts.
        annotate: Return copies whose `meta["unpoison"]` holds defense, kept, score, rank, reason and spans.
        exempt: Ids and sources (`meta["source"]`, `meta["url"]` or `meta["file_path"]`) that are always kept.
        audit_log: The log of all screenings for `unpoison audit`: a path (with hashes instead of texts), or an
            `unpoison.scan.audit_log.AuditLog`.

    Raises:
        UnknownNameError: No such defense.
        OptionError: An option out of its range.
    """

    def __init__(
        self,
        defense: Defense | str = "guard",
        mode: Mode = "enforce",
        annotate: bool = False,
        exempt: Collection[str] | None = None,
        audit_log: AuditLog | str | None = None,
    ) -> None:
        self.exempt, self.audit_log = exempt, audit_log
        self._screener = DocumentScreener(
            _passage, _annotate, _redact, defense, mode=mode, annotate=annotate, exempt=exempt, audit_log=audit_log
        )

    def warm_up(self) -> None:
        """Load the defense's models.

        Raises:
            OptionError: The defense needs a model that it was not given.
            MissingExtraError: A model needs an extra that is not installed.
        """
        self._screener.prepare()

    @component.output_types(documents=list[Document], dropped=list[Document])
    def run(
        self, query: str, documents: list[Document], query_embedding: list[float] | None = None
    ) -> dict[str, list[Document]]:
        """Sort the documents.

        Args:
            query: The user's question.
            documents: As the retriever ranked them.
            query_embedding: Where the documents bring embeddings, the query's, of the same encoder; both are used.

        Returns:
            `documents` to trust, best first, and those `dropped`; together always exactly the input.

        Raises:
            InputError: An unusable query or document; only in mode `enforce`.
            ModelError: A model failed; only in mode `enforce`. Nothing is returned unscreened.
        """
        delivery = self._screener.screen(query, documents, query_embedding)
        return {"documents": delivery.documents, "dropped": delivery.dropped}

    @component.output_types(documents=list[Document], dropped=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], query_embedding: list[float] | None = None
    ) -> dict[str, list[Document]]:
        """`run` for asyncio."""
        delivery = await self._screener.ascreen(query, documents, query_embedding)
        return {"documents": delivery.documents, "dropped": delivery.dropped}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `Pipeline.dumps`.

        Raises:
            OptionError: The defense or the log is an object, which a file cannot hold.
        """
        screener = self._screener
        if not isinstance(screener.given, str):
            raise OptionError(
                f"a pipeline file cannot hold {clip(screener.given)}; give Screen an option string such as "
                "'guard:damage=0.01'"
            )
        if not isinstance(self.audit_log, str | None):
            raise OptionError("a pipeline file cannot hold a log; give Screen the path of one as audit_log")
        exempt = None if self.exempt is None else sorted(self.exempt)
        options = {"annotate": screener.annotate, "exempt": exempt, "audit_log": self.audit_log}
        return default_to_dict(self, defense=screener.given, mode=screener.mode, **options)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote."""
        return default_from_dict(cls, data)


def _passage(document: Document) -> Passage:
    return passage(
        document.content, document.meta, document, id=document.id, score=document.score, embedding=document.embedding
    )


def _annotate(document: Document, verdict: Mapping[str, Any]) -> Document:
    return replace(document, meta={**(document.meta or {}), "unpoison": dict(verdict)})


def _redact(document: Document, text: str) -> Document:
    meta = {name: value for name, value in (document.meta or {}).items() if name != "title"}
    return replace(document, content=text, meta=meta, embedding=None, sparse_embedding=None)
