"""The gates before the frameworks' writers: what passes is written, as the objects that came."""

from __future__ import annotations

import pytest

from scan.corpora import honest, planted

SENT = [*honest(40)[36:], *planted()]
BAD = [d["id"] for d in planted()]


@pytest.mark.needs("langchain_core")
def test_langchain_writes_what_passes() -> None:
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    from unpoison.integrations.langchain import GuardedVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(d["text"], id=d["id"]) for d in honest(36)])
    sent = [Document(d["text"], id=d["id"], metadata={"author": "a"}) for d in SENT]
    gated = GuardedVectorStore(store).add_documents(sent)
    assert gated.accepted == sent[:4]
    assert all(one is other for one, other in zip(gated.accepted, sent))
    assert sorted(d.id for d in (*gated.quarantined, *gated.rejected)) == BAD
    assert store.get_by_ids(["bad-0"]) == []
    assert len(store.get_by_ids([d["id"] for d in SENT[:4]])) == 4
    assert gated.decisions[0].finding.author == "a"


@pytest.mark.needs("haystack")
def test_haystack_sorts_what_a_writer_gets() -> None:
    from haystack import Document
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    from unpoison.integrations.haystack import IngestGate

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=d["text"], id=d["id"]) for d in honest(36)])
    sent = [Document(content=d["text"], id=d["id"]) for d in SENT]
    result = IngestGate(InMemoryBM25Retriever(store)).run(documents=sent)
    assert result["documents"] == sent[:4]
    assert sorted(d.id for d in (*result["quarantined"], *result["rejected"])) == BAD


@pytest.mark.needs("llama_index.core")
def test_llamaindex_inserts_what_passes() -> None:
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.schema import TextNode

    from unpoison.integrations.llamaindex import GuardedIndex

    nodes = [TextNode(text=d["text"], id_=d["id"]) for d in honest(36)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))
    sent = [TextNode(text=d["text"], id_=d["id"]) for d in SENT]
    gated = GuardedIndex(index).insert_nodes(sent)
    assert gated.accepted == sent[:4]
    assert "bad-0" not in index.docstore.docs
    assert SENT[0]["id"] in index.docstore.docs
