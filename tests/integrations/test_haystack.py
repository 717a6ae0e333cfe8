"""Haystack: the component in a real pipeline, run in both ways, written to a file and read back."""

from __future__ import annotations

import asyncio
from os import devnull

import numpy as np
import pytest
from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.core.errors import DeserializationError
from haystack.document_stores.in_memory import InMemoryDocumentStore

from integrations.frameworks import QUERY, TEXTS, CutsStadium, DropsStadium
from unpoison import Guard
from unpoison.errors import OptionError
from unpoison.integrations.haystack import Screen
from unpoison.scan.audit_log import AuditLog

pytestmark = pytest.mark.needs("haystack")

ALLOWED = ["unpoison.integrations.haystack"]
TEMPLATE = "{% for document in documents %}{{ document.content }}\n{% endfor %}{{ query }}"


def documents(**fields: object) -> list[Document]:
    return [Document(content=text, id=f"id-{i}", meta={"url": f"s{i}"}, **fields) for i, text in enumerate(TEXTS)]


def pipeline(screen: Screen) -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents(documents())
    pipeline_made = Pipeline()
    pipeline_made.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline_made.add_component("screen", screen)
    pipeline_made.add_component("prompt", PromptBuilder(TEMPLATE, required_variables=["documents", "query"]))
    pipeline_made.connect("retriever.documents", "screen.documents")
    pipeline_made.connect("screen.documents", "prompt.documents")
    return pipeline_made


GIVEN = {"retriever": {"query": QUERY}, "screen": {"query": QUERY}, "prompt": {"query": QUERY}}


def test_in_a_pipeline_in_both_ways() -> None:
    rag = pipeline(Screen(DropsStadium()))
    result = rag.run(GIVEN, include_outputs_from={"screen"})
    assert TEXTS[0] in result["prompt"]["prompt"]
    assert "Levi's Stadium" not in result["prompt"]["prompt"]
    assert {document.id for document in result["screen"]["dropped"]} == {"id-2", "id-4"}
    assert len(result["screen"]["documents"]) + 2 == len(TEXTS)
    again = asyncio.run(rag.run_async(GIVEN, include_outputs_from={"screen"}))
    assert again == result


def test_monitoring_drops_nothing() -> None:
    result = Screen(DropsStadium(), mode="monitor").run(QUERY, documents())
    assert result["dropped"] == []
    assert sum(document.meta["unpoison"]["kept"] for document in result["documents"]) == 4


def test_a_file_holds_it_and_a_loaded_pipeline_decides_the_same() -> None:
    rag = pipeline(Screen("ragdefender:hops=single", mode="enforce", annotate=True, exempt={"s2", "id-4"}))
    text = rag.dumps()
    assert "defense: ragdefender:hops=single" in text
    again = Pipeline.loads(text, allowed_modules=ALLOWED)
    assert again.dumps() == text
    given = {"query": QUERY, "documents": documents()}
    first, second = (p.get_component("screen").run(**given) for p in (rag, again))
    assert first == second
    assert {"id-2", "id-4"} <= {document.id for document in second["documents"]}


def test_haystack_loads_it_only_where_that_is_allowed() -> None:
    with pytest.raises(DeserializationError, match="not on the trusted-module allowlist"):
        Pipeline.loads(pipeline(Screen()).dumps())


@pytest.mark.parametrize(
    ("screen", "says"),
    [
        (Screen(Guard()), "give Screen an option string"),
        (Screen(audit_log=AuditLog(devnull)), "give Screen the path of one as audit_log"),
    ],
)
def test_objects_are_refused_by_a_file(screen: Screen, says: str) -> None:
    with pytest.raises(OptionError, match=says):
        screen.to_dict()


def test_models_are_made_by_warm_up_and_names_are_checked_before() -> None:
    screen = Screen("radar")
    with pytest.raises(OptionError, match="radar needs a generator"):
        screen.warm_up()
    with pytest.raises(OptionError, match="grada has no option"):
        Screen("grada:keeep=5")


@pytest.mark.parametrize("given", [True, False])
def test_embeddings_are_used_where_the_query_brings_one(given: bool) -> None:
    defense = DropsStadium()
    Screen(defense).run(QUERY, documents(embedding=[0.5, 0.25]), query_embedding=[1.0, 0.0] if given else None)
    ((query, passages),) = defense.seen
    assert (query.embedding is not None) == given
    assert all((p.embedding is not None) == given for p in passages)
    if given:
        assert np.array_equal(passages[0].embedding, [0.5, 0.25])


def test_a_redacted_document_loses_what_was_made_of_the_whole_text() -> None:
    given = Document(content=TEXTS[2], meta={"title": "Sharks", "url": "s2"}, embedding=[0.5, 0.25])
    (document,) = Screen(CutsStadium()).run(QUERY, [given])["documents"]
    assert "[removed]" in str(document.content)
    assert (document.meta, document.embedding) == ({"url": "s2"}, None)
