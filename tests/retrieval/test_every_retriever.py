"""The promises that every retriever keeps."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import numpy as np
import pytest

from needs import need
from retrieval.stores import STORES
from unpoison import Rag, Screening, Sources
from unpoison.core.passages import Passage, Query
from unpoison.errors import InputError, MissingExtraError, OptionError
from unpoison.retrieval import BM25Retriever, DenseRetriever, HybridRetriever, LangChainStore, Retriever, StoreRetriever
from unpoison.retrieval.faiss import FaissStore
from unpoison.retrieval.pgvector import PgvectorStore
from unpoison.retrieval.store import open_vector_store
from unpoison.utils.extras import install_command

KINDS = ("bm25", "dense", "hybrid", "chroma", "faiss", "qdrant", "pgvector", "langchain")
QUESTION = "text number 13"  # BM25 leaves single characters out


@pytest.fixture(params=KINDS)
def retriever(request, encoder, passages, tmp_path) -> Retriever:
    match request.param:
        case "bm25":
            return BM25Retriever(passages)
        case "dense":
            return DenseRetriever(encoder, passages)
        case "hybrid":
            return HybridRetriever(BM25Retriever(passages), DenseRetriever(encoder, passages))
        case "langchain":
            need("langchain_core")
            from langchain_core.embeddings import DeterministicFakeEmbedding
            from langchain_core.vectorstores import InMemoryVectorStore

            retrieved = LangChainStore(InMemoryVectorStore(DeterministicFakeEmbedding(size=32)))
        case "pgvector":
            store = PgvectorStore("", "passages", connection=request.getfixturevalue("connection"))
            retrieved = StoreRetriever(store, encoder)
        case kind:
            store = STORES[kind](tmp_path)("made", new=True)
            request.addfinalizer(store.close)
            retrieved = StoreRetriever(store, encoder)
    retrieved.add(passages)
    return retrieved


def test_best_first_at_most_k_each_once(retriever, passages):
    assert isinstance(retriever, Retriever)
    for k in (1, 5, 20, 100):
        retrieved = retriever.retrieve(QUESTION, k)
        assert len(retrieved) == min(k, 20)
        assert [p.score for p in retrieved] == sorted((p.score for p in retrieved), reverse=True)
        assert len({p.id for p in retrieved}) == len(retrieved)
        assert {p.id: p.text for p in passages}.items() >= {p.id: p.text for p in retrieved}.items()
    assert retriever.retrieve(QUESTION, 3)[0].id == "p13"
    assert retriever.retrieve(QUESTION, 0) == ()


def test_what_is_removed_is_not_found_and_the_rest_is_as_if_it_had_never_been(retriever):
    stores = retriever.retrievers if isinstance(retriever, HybridRetriever) else [retriever]
    before = [(p.id, p.score) for p in retriever.retrieve(QUESTION, 20)]
    extra = [Passage(f"text number 13 again {i}", id=f"extra-{i}") for i in range(3)]
    for store in stores:
        store.add(extra)
    assert {p.id for p in retriever.retrieve(QUESTION, 30)} >= {"extra-0", "extra-1", "extra-2"}
    for store in stores:
        store.remove(["extra-0", "extra-2", "never there"])
        store.remove(iter(["extra-1"]))
        store.remove([])
    after = [(p.id, p.score) for p in retriever.retrieve(QUESTION, 20)]
    assert [name for name, _ in after] == [name for name, _ in before]
    np.testing.assert_allclose([score for _, score in after], [score for _, score in before], atol=1e-6)
    for store in stores:
        store.add(extra[:1])  # the id is free again
    assert "extra-0" in {p.id for p in retriever.retrieve(QUESTION, 30)}


def test_hits_bring_the_embeddings_of_the_store(retriever, encoder):
    for retrieved in retriever.retrieve(QUESTION, 20):
        if retriever.encoder is None:
            assert retrieved.embedding is None
        else:
            np.testing.assert_allclose(retrieved.embedding, encoder.encode([retrieved.text])[0], atol=1e-6)


def test_two_runs_and_async_are_equal(retriever):
    first = retriever.retrieve(QUESTION, 7)
    for again in (
        retriever.retrieve(QUESTION, 7),
        asyncio.run(retriever.aretrieve(QUESTION, 7)),
        retriever.retrieve(Query(QUESTION), 7),
    ):
        assert [(p.id, p.text) for p in again] == [(p.id, p.text) for p in first]
        exact = isinstance(retriever, (BM25Retriever, DenseRetriever, HybridRetriever))  # stores may round anew
        np.testing.assert_allclose(
            [p.score for p in again], [p.score for p in first], rtol=0, atol=0 if exact else 1e-6
        )


@pytest.mark.parametrize("k", [-1, 5001, 2.0, "3", None, True])
def test_k_is_checked(retriever, k):
    for call in (lambda: retriever.retrieve(QUESTION, k), lambda: asyncio.run(retriever.aretrieve(QUESTION, k))):
        with pytest.raises(OptionError, match=r"k must be (a whole number of at least 0|at most 5,000), got"):
            call()


@pytest.mark.parametrize("query", [None, 7, b"bytes", ["list"]])
def test_questions_are_checked(retriever, query):
    with pytest.raises(InputError, match="query must be a string"):
        retriever.retrieve(query, 3)


@pytest.mark.parametrize("query", ["", " ", "\x00", "'; DROP TABLE passages; --", "lone \ud800 surrogate", "🦈" * 5000])
def test_no_question_breaks_it(retriever, query):
    assert len(retriever.retrieve(query, 3)) in (0, 3)


def test_the_pipeline_runs_on_it(retriever):
    screening = Rag(retriever, k=6).screen(QUESTION)
    assert isinstance(screening, Screening)
    assert len(screening.passages) == 6


def test_nothing_of_the_passages_is_shown(retriever):
    assert "text number" not in repr(retriever)


@pytest.mark.parametrize(
    ("module", "extra", "make"),
    [
        ("faiss", "faiss", FaissStore),
        ("qdrant_client", "qdrant", lambda: open_vector_store("qdrant:a#docs")),
        ("psycopg", "postgres", lambda: open_vector_store("postgresql://a/b#docs")),
        ("chromadb", "chroma", lambda: open_vector_store("chroma:a#docs")),
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, module, extra, make):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command(extra))):
        make()


def test_importing_them_imports_no_library():
    code = (
        "import sys, unpoison.retrieval as r; from unpoison import Rag; [getattr(r, name) for name in r.__all__];"
        "Rag(r.BM25Retriever(['a b', 'b c'])).screen('a');"
        "print([m for m in ('faiss', 'qdrant_client', 'psycopg', 'torch', 'sklearn', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_with_sources_of_which_nobody_is_known_it_finds_the_same(retriever):
    before = retriever.retrieve(QUESTION, 5)
    assert type(retriever).__init__.__annotations__["sources"] == "SourcesOption"
    retriever.sources = Sources({"origin": "host"})
    same = retriever.retrieve(QUESTION, 5)
    assert [p.id for p in same] == [p.id for p in before]
    assert [p.score for p in same] == pytest.approx([p.score for p in before])
    retriever.sources = Sources({"known": ["wiki.example"]})
    weighed = [p.score for p in retriever.retrieve(QUESTION, 5)]
    assert weighed == pytest.approx([0.05 * p.score if p.score > 0 else 20 * p.score for p in before])
