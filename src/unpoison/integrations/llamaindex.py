"""LlamaIndex: a node postprocessor for any query engine. Needs llama-index-core only."""
# ruff: noqa: E402  the check for the extra comes before its imports

from __future__ import annotations

from unpoison.utils.extras import require

require("llama_index.core", "the LlamaIndex integration")

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from pydantic import PrivateAttr

from unpoison.core.passages import Passage
from unpoison.defenses.base import Defense
from unpoison.errors import InputError
from unpoison.integrations.screener import DocumentScreener, Mode, passage
from unpoison.scan.audit_log import AuditLog
from unpoison.utils.checks import refuse_unknown

__all__ = ["ScreeningPostprocessor"]


class ScreeningPostprocessor(BaseNodePostprocessor):
    """Drops the nodes that a defense does not trust; the others come back as the objects they were, best first.

    A redacted node (`guard:action=redact`) is a copy: its text is the screened text with the title in front and
    "[removed]" for each cut, and it has no embedding.

    The bare text of the nodes is screened. Where the query bundle and all nodes bring embeddings, these are used.

    Attributes:
        defense: A defense, or an option string such as "grada:keep=5".
        mode: `enforce` drops; `monitor` keeps all, in the order given, with their verdicts, and logs the counts.
        annotate: Return copies whose `metadata["unpoison"]` holds defense, kept, score, rank, reason and spans; it is
            excluded from what the language model and the encoder read.
        exempt: Ids and sources that are always kept.
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
    _screener: DocumentScreener[NodeWithScore] = PrivateAttr()

    def __init__(
        self,
        defense: Defense | str = "guard",
        *,
        mode: Mode = "enforce",
        annotate: bool = False,
        exempt: Collection[str] | None = None,
        audit_log: AuditLog | str | Path | None = None,
        **framework: Any,
    ) -> None:
        refuse_unknown("ScreeningPostprocessor", framework, type(self).model_fields)  # pydantic ignores them
        given = dict[str, Any](defense=defense, mode=mode, annotate=annotate, exempt=exempt, audit_log=audit_log)
        screener = DocumentScreener(_passage, _annotate, _redact, **given).prepare()
        super().__init__(**given, **framework)
        self._screener = screener

    @classmethod
    def class_name(cls) -> str:
        return "ScreeningPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        """The nodes to trust.

        Raises:
            InputError: No query, or an unusable query or node.
            ModelError: A model failed; only in mode `enforce`. Nothing is returned unscreened.
        """
        query = _require_query(query_bundle)
        return self._screener.screen(query.query_str, nodes, query.embedding).documents

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        query = _require_query(query_bundle)
        return (await self._screener.ascreen(query.query_str, nodes, query.embedding)).documents


def _require_query(bundle: QueryBundle | None) -> QueryBundle:
    if bundle is None:
        raise InputError(
            "ScreeningPostprocessor was given nodes without a query; pass query_bundle=QueryBundle(...) or "
            "query_str=... to postprocess_nodes"
        )
    return bundle


def _passage(scored: NodeWithScore) -> Passage:
    node, text = scored.node, scored.node.get_content(metadata_mode=MetadataMode.NONE)
    return passage(text, node.metadata, scored, id=node.node_id, score=scored.score, embedding=node.embedding)


def _annotate(scored: NodeWithScore, verdict: Mapping[str, Any]) -> NodeWithScore:
    """The language model and the encoder read a node's metadata too, except the excluded ones."""
    node = scored.node
    noted = node.model_copy(
        update={
            "metadata": {**(node.metadata or {}), "unpoison": dict(verdict)},
            "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, "unpoison"],
            "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, "unpoison"],
        }
    )
    return scored.model_copy(update={"node": noted})


def _redact(scored: NodeWithScore, text: str) -> NodeWithScore:
    """A text node of the same name: other kinds of node keep their text elsewhere."""
    node = scored.node
    metadata = {name: value for name, value in (node.metadata or {}).items() if name != "title"}
    if isinstance(node, TextNode):
        cut = node.model_copy(update={"text": text, "metadata": metadata, "embedding": None})
    else:
        cut = TextNode(
            id_=node.node_id,
            text=text,
            metadata=metadata,
            excluded_llm_metadata_keys=list(node.excluded_llm_metadata_keys),
            excluded_embed_metadata_keys=list(node.excluded_embed_metadata_keys),
        )
    return scored.model_copy(update={"node": cut})
