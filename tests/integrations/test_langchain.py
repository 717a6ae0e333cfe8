"""LangChain: the compressor in its retriever, the screened retriever, runnables in chains."""

from __future__ import annotations

import asyncio
import pickle  # noqa: TID251  what frameworks do with a component

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import FakeEmbeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from integrations.frameworks import QUERY, TEXTS, CutsStadium, DropsStadium
from unpoison.errors import InputError, OptionError
from unpoison.integrations.langchain import (
    ScreenedRetriever,
    ScreeningCompressor,
)

pytestmark = pytest.mark.needs("langchain_classic")

DOCUMENTS = [Document(text, metadata={"source": f"s{i}"}, id=f"id-{i}") for i, text in enumerate(TEXTS)]
KEPT = [DOCUMENTS[i] for i in (0, 1, 3, 5)]


class Fixed(BaseRetriever):
    documents: list[Document]

    def _get_relevant_documents(self, query: str) -> list[Document]:  # type: ignore[override]
        return self.documents


def same(delivered: list[Document], wanted: list[Document]) -> bool:
    return [id(document) for document in delivered] == [id(document) for document in wanted]


@pytest.mark.parametrize("documents", [DOCUMENTS, []])
def test_in_the_compression_retriever(documents: list[Document]) -> None:
    retriever = ContextualCompressionRetriever(
        base_compressor=ScreeningCompressor(DropsStadium()), base_retriever=Fixed(documents=documents)
    )
    wanted = KEPT if documents else []
    assert same(retriever.invoke(QUERY), wanted)
    assert same(asyncio.run(retriever.ainvoke(QUERY)), wanted)


def test_a_screened_retriever_is_a_retriever() -> None:
    retriever = ScreenedRetriever(retriever=Fixed(documents=DOCUMENTS), screening=ScreeningCompressor(DropsStadium()))
    assert same(retriever.invoke(QUERY), KEPT)
    assert same(asyncio.run(retriever.ainvoke(QUERY)), KEPT)
    assert [same(delivered, KEPT) for delivered in retriever.batch([QUERY, QUERY])] == [True, True]
    assert ScreenedRetriever(retriever=Fixed(documents=DOCUMENTS)).screening.defense == "guard"


def test_a_compressor_can_be_pickled() -> None:
    compressor = ScreeningCompressor("grada:keep=2", mode="enforce", annotate=True, exempt=["id-4"])
    document = pickle.loads(pickle.dumps(compressor))  # noqa: S301  our own
    assert dict(document) == dict(compressor)
    assert document.compress_documents(DOCUMENTS, QUERY) == compressor.compress_documents(DOCUMENTS, QUERY)


def test_a_store_is_told_to_become_a_retriever():
    store = InMemoryVectorStore(FakeEmbeddings(size=3))
    with pytest.raises(OptionError, match=r"call \.as_retriever\(\) on it"):
        ScreenedRetriever(retriever=store)
    assert ScreenedRetriever(retriever=store.as_retriever()).invoke("a question") == []


def test_a_screened_retriever_takes_a_defense_and_no_option_in_silence() -> None:
    retriever = Fixed(documents=DOCUMENTS)
    assert same(ScreenedRetriever(retriever, DropsStadium()).invoke(QUERY), KEPT)
    assert ScreenedRetriever(retriever, "grada:keep=2").screening.defense == "grada:keep=2"
    for option in ({"mode": "monitor"}, {"defense": "guard"}):
        with pytest.raises(OptionError, match="ScreeningCompressor"):
            ScreenedRetriever(retriever, **option)
    assert ScreenedRetriever(retriever, tags=["a"]).tags == ["a"]


def test_texts_in_the_place_of_documents_are_told() -> None:
    with pytest.raises(InputError, match="documents must be those of the framework"):
        ScreeningCompressor(DropsStadium()).compress_documents(["a text"], QUERY)  # type: ignore[list-item]


@pytest.mark.parametrize("metadata", [{"source": "s2", "title": "A title"}, None])
def test_a_copy_has_the_cut_text_with_its_title_and_the_other_metadata(metadata: dict[str, str] | None) -> None:
    document = Document.model_construct(page_content=TEXTS[2], metadata=metadata, id="id-2")
    (copy,) = ScreeningCompressor(CutsStadium()).compress_documents([document], QUERY)
    title = "A title\n" if metadata else ""
    assert copy.page_content == title + TEXTS[2].replace("Levi's Stadium.", "[removed] .")
    assert (copy.id, copy.metadata) == ("id-2", {"source": "s2"} if metadata else {})
    assert (document.page_content, document.metadata) == (TEXTS[2], metadata)
    (noted,) = ScreeningCompressor(CutsStadium(), annotate=True, exempt=["id-2"]).compress_documents([document], QUERY)
    assert noted.metadata == (metadata or {}) | {"unpoison": noted.metadata["unpoison"]}
