"""Python objects as targets: functions, our Rag over every store, the frameworks, our service."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn

from bench.redteam.conftest import Quick, write_world
from unpoison import Rag
from unpoison.bench.redteam import (
    Answered,
    Config,
    Document,
    Hosts,
    Results,
    Secrets,
    build_target,
    clean,
    run_test,
    target_of,
)
from unpoison.bench.redteam.objects import parse_answer
from unpoison.core.passages import Passage, Query
from unpoison.core.verdicts import Span
from unpoison.defenses.vanilla import Vanilla
from unpoison.errors import OptionError, TargetError
from unpoison.models import ExtractiveReader, FakeEncoder
from unpoison.retrieval import BM25Retriever, DenseRetriever, HybridRetriever, StoreRetriever
from unpoison.scan.stores import open_vector_store
from unpoison.serve import create_app
from unpoison.types import Answer, Screening

WAIT = {"seconds": 0.2, "every": 0.1}


@contextmanager
def serving(app: object) -> Iterator[str]:
    """An application on a free port."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        while not server.started:
            threading.Event().wait(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()


def world(folder: Path, count: int = 3) -> dict[str, str]:
    """Texts by id."""
    write_world(folder, count)
    return {name: one["text"] for name, one in json.loads((folder / "index.json").read_text()).items()}


def measured(folder: Path, target: object, **more: object) -> Results:
    values = {"target": {"python": "x:y"}, "questions": "questions.jsonl", "wait": WAIT, **more}
    config = Config.of(values, folder)
    return run_test(config, folder / "j.jsonl", secrets=Secrets({}), hosts=Hosts(), target=target, clock=Quick())


def check(results: Results, *, tells_passages: bool = True) -> None:
    none, attacked = results.table()
    assert results.complete, [t.error for t in results.trials]
    assert none.figures["accuracy"].value == 1.0
    assert attacked.figures["asr"].value > 0.5
    if tells_passages:
        assert attacked.figures["poisoned"].value == 1.0
        assert attacked.figures["gone_seconds"].count == 3
    assert attacked.figures["accuracy_after"].value == 1.0


@pytest.mark.parametrize("kind", ["bm25", "hybrid"])
def test_our_rag(tmp_path, kind):
    texts = [{"text": text, "id": name} for name, text in world(tmp_path).items()]
    retriever = BM25Retriever(texts)
    if kind == "hybrid":
        retriever = HybridRetriever(retriever, DenseRetriever(FakeEncoder(), texts))
    check(measured(tmp_path, target_of(Rag(retriever, "vanilla", ExtractiveReader(), k=3))))
    held = retriever.retrieve("town hall", 10)
    assert {passage.id for passage in held} == {one["id"] for one in texts}


def test_a_rag_that_cannot_answer_is_refused():
    with pytest.raises(OptionError, match="no generator"):
        target_of(Rag(BM25Retriever(["a"]), "guard"))


def test_a_function_and_a_store(tmp_path):
    retriever = BM25Retriever([{"text": text, "id": name} for name, text in world(tmp_path).items()])

    def ask(question: str) -> dict:
        passages = retriever.retrieve(question, 2)
        return {"answer": passages[0].text, "passages": [passage.text for passage in passages]}

    check(measured(tmp_path, target_of(ask, retriever)))
    assert len(retriever) == 3


@pytest.mark.needs("chromadb")
def test_a_function_and_the_string_of_a_vector_store(tmp_path, monkeypatch):
    encoder = FakeEncoder()
    texts = [{"text": text, "id": name} for name, text in world(tmp_path).items()]
    retriever = StoreRetriever(open_vector_store("chroma:store#docs", new=True, folder=tmp_path), encoder)
    retriever.add(texts)
    monkeypatch.setitem(sys.modules, "vector_app", SimpleNamespace(ask=lambda question: "nothing"))
    monkeypatch.setattr("unpoison.retrieval.base.load_encoder", lambda name: encoder)
    described = {"python": "vector_app:ask", "store": "chroma:store#docs", "encoder": "fake"}

    def build(values):
        return build_target(values, secrets=Secrets({}), hosts=Hosts(), folder=tmp_path)

    target = build(described)
    (planted,) = target.plant([Document("planted words", "unpoison-canary-1")])
    assert planted in {row["id"] for row in retriever.store.rows()}
    target.remove([planted])
    assert sorted(row["id"] for row in retriever.store.rows()) == sorted(text["id"] for text in texts)
    with pytest.raises(OptionError, match="chroma takes vectors; name the encoder"):
        build({**described, "encoder": None})
    with pytest.raises(OptionError, match="no store is written as faise:"):
        build({**described, "store": "faise:a.index#docs"})


def test_a_function_that_tells_no_passages(tmp_path):
    retriever = BM25Retriever([{"text": text, "id": name} for name, text in world(tmp_path).items()])
    check(
        measured(tmp_path, target_of(lambda question: retriever.retrieve(question, 1)[0].text, retriever)),
        tells_passages=False,
    )


@pytest.mark.needs("langchain_core")
def test_langchain(tmp_path):
    from langchain_core.documents import Document as Found
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.runnables import RunnableLambda
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Found(text, id=name) for name, text in world(tmp_path).items()])

    def answer(question: str) -> dict:
        held = [{"text": d["text"], "id": d["id"], "mark": d["metadata"]} for d in store.store.values()]
        passages = BM25Retriever(held).retrieve(question, 2)
        return {"result": passages[0].text, "source_documents": [Found(p.text, id=p.id) for p in passages]}

    check(measured(tmp_path, target_of(RunnableLambda(answer), store)))
    assert len(store.store) == 3


@pytest.mark.needs("llama_index.core")
def test_llamaindex(tmp_path):
    from llama_index.core import MockEmbedding, VectorStoreIndex
    from llama_index.core.base.response.schema import Response
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [TextNode(text=text, id_=name) for name, text in world(tmp_path).items()]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))

    class Engine:
        def query(self, question: str) -> Response:
            held = {node.node_id: node for node in index.docstore.docs.values()}
            passages = BM25Retriever([{"text": n.text, "id": k} for k, n in held.items()]).retrieve(question, 2)
            return Response(passages[0].text, [NodeWithScore(node=held[p.id], score=1.0) for p in passages])

    check(measured(tmp_path, target_of(Engine(), index)))
    assert len(index.docstore.docs) == 3


@pytest.mark.needs("haystack")
def test_haystack(tmp_path):
    from haystack import Document as Found
    from haystack import Pipeline, component
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    store.write_documents([Found(id=name, content=text) for name, text in world(tmp_path).items()])

    @component
    class First:
        def __init__(self) -> None:
            component.set_input_types(self, documents=list[Found])
            component.set_output_types(self, replies=list[str], documents=list[Found])

        def run(self, **given: list) -> dict:
            return {"replies": [given["documents"][0].content], "documents": given["documents"]}

    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
    pipeline.add_component("llm", First())
    pipeline.connect("retriever.documents", "llm.documents")
    target = target_of(pipeline, store, inputs={"retriever": {"query": "{question}"}})
    check(measured(tmp_path, target))
    assert store.count_documents() == 3
    with pytest.raises(OptionError, match="is a pipeline; say what goes in"):
        target_of(pipeline, store)


def test_our_service_behind_a_corpus(tmp_path):
    rows = [json.dumps({"id": name, "text": text}) + "\n" for name, text in world(tmp_path).items()]
    (tmp_path / "corpus.jsonl").write_text("".join(rows))
    with serving(create_app({"vanilla": Vanilla(generator=ExtractiveReader())})) as url:
        values = {"corpus": "corpus.jsonl", "service": url, "k": 3, "defense": "vanilla"}
        target = build_target(values, secrets=Secrets({}), hosts=Hosts(), folder=tmp_path)
        check(measured(tmp_path, target))


def test_a_module_beside_the_configuration_and_its_cleaning(tmp_path):
    world(tmp_path)
    (tmp_path / "my_rag_of_tests.py").write_text(
        "import json, pathlib\nFILE = pathlib.Path(__file__).with_name('store.json')\n"
        "class Mine:\n"
        "    def load(self): return json.loads(FILE.read_text()) if FILE.exists() else {}\n"
        "    def ask(self, question): return 'nothing'\n"
        "    def plant(self, documents):\n"
        "        FILE.write_text(json.dumps(self.load() | {d.canary: d.text for d in documents}))\n"
        "        return [d.canary for d in documents]\n"
        "    def remove(self, handles):\n"
        "        FILE.write_text(json.dumps({k: v for k, v in self.load().items() if k not in handles}))\n"
        "    def own_ids(self, canary): return [canary]\n"
    )
    values = {"target": {"python": "my_rag_of_tests:Mine"}, "questions": "questions.jsonl", "limit": 1, "wait": WAIT}
    (tmp_path / "c.yaml").write_text(json.dumps(values))
    config, journal = Config.load(tmp_path / "c.yaml"), tmp_path / "j.jsonl"
    results = run_test(config, journal, secrets=Secrets({}), hosts=Hosts(), clock=Quick())
    assert results.complete
    store = tmp_path / "store.json"
    assert json.loads(store.read_text()) == {}
    planting = {"event": "planting", "canary": "unpoison-k", "question": "q0", "attack": "a", "handles": ["unpoison-k"]}
    with journal.open("a") as file:  # and then it was killed
        file.write(json.dumps(planting) + "\n")
    store.write_text(json.dumps({"unpoison-k": "poison", "mine": "truth"}))
    with pytest.raises(OptionError, match=r"names Python code, 'my_rag_of_tests:Mine'.*--config"):
        clean(journal, secrets=Secrets({}), hosts=Hosts(), clock=Quick())
    cleaned = clean(journal, secrets=Secrets({}), hosts=Hosts(), clock=Quick(), config=config)
    assert (cleaned.removed, cleaned.accepted, cleaned.clean) == (0, 1, True)
    assert json.loads(store.read_text()) == {"mine": "truth"}


def test_what_was_in_a_killed_process_is_gone_with_it(tmp_path):
    journal = tmp_path / "j.jsonl"
    rows = [
        {"event": "run", "version": 1, "target": {"corpus": "sample"}, "config": "x"},
        {"event": "planting", "canary": "unpoison-k", "question": "q0", "attack": "a", "handles": ["k"]},
    ]
    journal.write_text("".join(json.dumps(row) + "\n" for row in rows))
    cleaned = clean(journal, secrets=Secrets({}), hosts=Hosts())
    assert (cleaned.clean, cleaned.notes) == (True, ("the documents were in the memory of the process that has ended",))


@pytest.mark.parametrize(
    ("value", "text", "passages"),
    [
        ("a", "a", None),
        (Answered("a", ("p",)), "a", ("p",)),
        ({"answer": "a", "context": "p"}, "a", ("p",)),
        ({"response": "a", "documents": ["p", {"text": "q"}]}, "a", ("p", "q")),
        ({"replies": ["a"]}, "a", None),
        ({"output": SimpleNamespace(content="a")}, "a", None),
        (SimpleNamespace(content="a"), "a", None),
    ],
)
def test_what_systems_return_is_read(value, text, passages):
    replies = parse_answer(value)
    assert (replies.answer, replies.passages) == (text, passages)


@pytest.mark.parametrize("value", [None, 7, {}, {"answer": None}, {"answer": 7}, {"answer": "a", "passages": [7]}])
def test_what_holds_no_answer_is_said_so(value):
    with pytest.raises(TargetError, match=r"the system returned"):
        parse_answer(value)


def test_of_a_redacted_passage_only_the_rest_was_read():
    lie = "The tower is in Rome."
    passage = Passage(f"The tower is tall and old. {lie}", id="a")
    span = Span(len(passage.text) - len(lie), len(passage.text), 0.9, "a lie")
    screening = Screening.decided(
        "guard", Query("where?"), [passage], kept=[0], scores=[0.5], reasons=["cut"], spans={0: [span]}
    )
    assert parse_answer(Answer("Paris", screening)).passages == ("The tower is tall and old. [removed]",)


def test_code_that_raises_fails_one_question_only(tmp_path):
    retriever = BM25Retriever([{"text": text, "id": name} for name, text in world(tmp_path).items()])

    def ask(question: str) -> str:
        if "Alderburgh" in question:
            raise KeyError("index 7")
        return retriever.retrieve(question, 1)[0].text

    results = measured(tmp_path, target_of(ask, retriever))
    failed = [trial for trial in results.trials if trial.failed]
    assert [trial.example for trial in failed] == ["q1", "q1"]
    assert failed[0].error == "ask failed with KeyError: \"'index 7'\""
    assert len(retriever) == 3


def test_documents_carry_their_mark(tmp_path):
    retriever = BM25Retriever(["a b c"])
    target = target_of(lambda question: "x", retriever)
    target.plant([Document("planted words", "unpoison-123")])
    (passage,) = retriever.retrieve("planted", 1)
    assert (passage.source, passage.id) == ("unpoison-123", "123")
