"""Elasticsearch and OpenSearch: nothing that the server leaves out, or that changed meanwhile, is lost."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retrieval.stand_in_search import StandIn, serve
from unpoison.errors import InputError, StoreError, UnpoisonError
from unpoison.retrieval.search_index import Index, VectorField, held_at, holds
from unpoison.retrieval.search_store import SearchStore
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.stores import open_vector_store

PRODUCTS = {"elasticsearch": ("elasticsearch", "9.2.0"), "opensearch": ("opensearchpy", "3.1.0")}


class Cluster:
    """A server, and stores of it."""

    def __init__(self, product: str, state: StandIn, address: str) -> None:
        self.product, self.state, self.address = product, state, address
        self.stores = list[SearchStore]()

    def open(self, name: str, **options: Any) -> SearchStore:
        store = open_vector_store(f"{self.product}:{self.address}#{name}", **options)
        assert isinstance(store, SearchStore)
        self.stores.append(store)
        return store

    def make(self, name: str, *, ids: str = "", settings: dict[str, Any] | None = None, **mapping: Any) -> None:
        """An index with a vector of two numbers and a document for each letter."""
        fields = {"text": {"type": "text"}, "vector": self.vector(), **mapping.pop("properties", {})}
        self.state.make(name, {"properties": fields, **mapping}, settings)
        for i, letter in enumerate(ids):
            self.state.add(name, document(i), letter)

    def vector(self, **options: Any) -> dict[str, Any]:
        if self.state.elastic:
            return {"type": "dense_vector", "dims": 2, **options}
        return {"type": "knn_vector", "dimension": 2, "space_type": "cosinesimil", **options}


def document(i: int) -> dict[str, Any]:
    return {"text": f"text {i}", "vector": [1.0, i / 7], "metadata": {"source": f"https://a.example/{i}", "deep": [{}]}}


def open_cluster(product: str, version: str) -> Iterator[Cluster]:
    pytest.importorskip(PRODUCTS[product][0], reason=f"{product.upper()} ABSENT: pip install 'unpoison[{product}]'")
    state = StandIn(product, version)
    with serve(state) as address:
        cluster = Cluster(product, state, address)
        try:
            yield cluster
        finally:
            for store in cluster.stores:
                store.close()


@pytest.fixture(params=PRODUCTS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    yield from open_cluster(request.param, PRODUCTS[request.param][1])


@pytest.fixture
def elastic() -> Iterator[Cluster]:
    yield from open_cluster("elasticsearch", "9.2.0")


def whole(store: SearchStore, ids: str = "abc") -> str:
    return json.dumps(store.fetch(list(ids)), sort_keys=True)


def check_refused(cluster: Cluster, journal: Path, why: str) -> None:
    """A move is refused with this reason, and nothing was written or taken out."""
    before = {name: dict(index["docs"]) for name, index in cluster.state.indices.items()}
    with pytest.raises(InputError, match=why):
        move(["a"], cluster.open("docs"), cluster.open("held", new=True), journal)
    assert {name: dict(index["docs"]) for name, index in cluster.state.indices.items()} == before
    assert not journal.exists()


def test_vectors_come_though_the_server_leaves_them_out(elastic: Cluster) -> None:
    elastic.make("docs", ids="ab")
    assert "vector" not in elastic.state.source_of("docs", elastic.state.seen("docs")[0], True)  # unless it is asked
    store = elastic.open("docs")
    assert [row["embedding"] for row in store.rows()] == [[1.0, 0.0], [1.0, 1 / 7]]
    assert store.fetch(["a"])["a"]["source"] == document(0)
    assert store.search([1.0, 0.0], 1)[0]["embedding"] == [1.0, 0.0]


@pytest.mark.parametrize("flavor", ["default", "serverless"])
def test_an_older_server_is_not_asked_for_what_it_does_not_know(flavor: str) -> None:
    for cluster in open_cluster("elasticsearch", "8.11.0"):
        cluster.state.flavor, cluster.state.newer = flavor, flavor == "serverless"
        cluster.make("docs", ids="a")
        (row,) = cluster.open("docs").rows()
        assert row["embedding"] == [1.0, 0.0]


@pytest.mark.parametrize("nested", [False, True])
def test_a_document_whose_vectors_do_not_come_is_not_moved(nested: bool, tmp_path: Path) -> None:
    for cluster in open_cluster("elasticsearch", "9.1.0"):
        cluster.state.newer = True  # leaves them out by a default that its number does not tell
        pages = {"type": "nested", "properties": {"v": cluster.vector()}}
        cluster.make("docs", ids="b", properties={"pages": pages} if nested else {})
        cluster.state.indices["docs"]["mappings"]["properties"].pop("vector" if nested else "pages", None)
        cluster.state.add("docs", {"text": "one", "vector": [1.0, 2.0], "pages": [{"v": [1.0, 2.0]}]}, "a")
        cluster.state.add("docs", {"text": "none"}, "c")
        check_refused(cluster, tmp_path / "journal", "'pages.v'" if nested else "'vector'")
        assert cluster.open("docs").fetch(["c"]).keys() == {"c"}  # which has none


def test_a_vector_that_the_server_made_goes_and_comes_back(elastic: Cluster, tmp_path: Path) -> None:
    elastic.make("docs", properties={"content": {"type": "semantic_text", "inference_id": "e5"}})
    made = {"content": {"inference": {"chunks": {"content": [{"embeddings": [0.5]}]}}}}
    source = {"text": "one", "content": "one", "_inference_fields": made}
    elastic.state.add("docs", source, "a")
    docs, held = elastic.open("docs"), elastic.open("held", new=True)
    move(["a"], docs, held, tmp_path / "journal")
    assert elastic.state.seen("held")[0].source == source
    assert elastic.state.indices["held"]["mappings"]["properties"]["content"]["inference_id"] == "e5"
    move(["a"], held, docs, tmp_path / "journal")
    assert elastic.state.seen("docs")[0].source == source
    elastic.state.add("docs", {"text": "one", "content": "one"}, "a")
    check_refused(elastic, tmp_path / "other", "'content'")


@pytest.mark.parametrize(
    ("mapping", "settings", "why"),
    [
        ({"_source": {"enabled": False}}, {}, "disables _source"),
        ({"_source": {"excludes": ["metadata"]}}, {}, "leaves fields out"),
        ({"_source": {"includes": ["text"]}}, {}, "leaves fields out"),
        ({"_source": {"mode": "synthetic"}}, {}, "synthetic"),
        ({}, {"index.mapping.source.mode": "synthetic"}, "synthetic"),
        ({}, {"index.mapping.source.mode": "disabled"}, "disables _source"),
        ({}, {"index.mode": "logsdb"}, "synthetic"),
        ({}, {"index.derived_source.enabled": True}, "derived"),
        ({}, {"index.final_pipeline": "stamp"}, "final_pipeline 'stamp'"),
    ],
)  # fmt: skip
def test_an_index_that_does_not_keep_documents_as_they_are_gives_none_away(
    cluster: Cluster, mapping: dict[str, Any], settings: dict[str, Any], why: str, tmp_path: Path
) -> None:
    cluster.make("docs", ids="a", settings=settings, **mapping)
    check_refused(cluster, tmp_path / "journal", why)


def test_into_an_index_that_does_not_keep_documents_as_they_are_nothing_goes(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("docs", ids="a")
    cluster.make("held", _source={"excludes": ["metadata"]})
    check_refused(cluster, tmp_path / "journal", "leaves fields out")


def test_a_data_stream_gives_none_away(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make(".ds-docs-1", ids="a")
    cluster.state.indices[".ds-docs-1"]["data_stream"] = "docs"
    assert [row["id"] for row in cluster.open("docs").rows()] == ["a"]
    check_refused(cluster, tmp_path / "journal", "data stream 'docs'")


def test_a_source_that_is_kept_in_spite_of_its_mode_is_whole() -> None:
    settings = {"mode": "logsdb", "mapping": {"source": {"mode": "stored"}}}
    assert Index.read("docs", {"settings": {"index": settings}}).loss() is None


def test_without_source_nothing_is_read_either(cluster: Cluster) -> None:
    cluster.make("docs", ids="a", _source={"enabled": False})
    with pytest.raises(InputError, match="disables _source"):
        list(cluster.open("docs").rows())


def test_routing_is_kept_and_needed(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("docs", _routing={"required": True})
    cluster.state.add("docs", document(1), "a", routing="user 7")
    docs, held = cluster.open("docs"), cluster.open("held", new=True)
    before = whole(docs)
    move(["a"], docs, held, tmp_path / "journal")
    assert (cluster.state.seen("docs"), cluster.state.seen("held")[0].routing) == ([], "user 7")
    move(["a"], held, docs, tmp_path / "journal")
    assert (whole(docs), cluster.state.seen("docs")[0].routing) == (before, "user 7")


def test_two_documents_of_one_id_are_not_moved(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("docs", ids="a")
    cluster.state.add("docs", document(2), "a", routing="other")
    check_refused(cluster, tmp_path / "journal", "several documents named 'a'")


@pytest.fixture
def alias(cluster: Cluster) -> Cluster:
    """An alias of two indices, with a and b in the first and c in the second, which takes new documents."""
    cluster.make("docs-1", ids="ab")
    cluster.make("docs-2")
    cluster.state.add("docs-2", document(2), "c")
    cluster.state.aliases |= {"docs-1": {"docs": {}}, "docs-2": {"docs": {"is_write_index": True}}}
    return cluster


def where(cluster: Cluster) -> dict[str, list[str]]:
    return {name: sorted(doc.id for doc in cluster.state.seen(name)) for name in cluster.state.indices}


def test_from_an_alias_documents_go_back_to_their_own_index(alias: Cluster, tmp_path: Path) -> None:
    docs, held = alias.open("docs"), alias.open("held", new=True)
    before = whole(docs)
    move(["a", "c"], docs, held, tmp_path / "journal")
    assert where(alias) == {"docs-1": ["b"], "docs-2": [], "held": ["a", "c"]}
    assert all("unpoison_index" not in row for row in held.rows())
    move(earlier_moves(tmp_path / "journal", docs, held), held, docs, tmp_path / "journal")
    assert where(alias) == {"docs-1": ["a", "b"], "docs-2": ["c"], "held": []}
    assert whole(docs) == before
    assert all("unpoison_index" not in doc.source for doc in alias.state.seen("docs-1"))


def test_new_documents_go_to_the_write_index(alias: Cluster) -> None:
    docs = alias.open("docs")
    docs.put({"n": docs.raw({"id": "n", "text": "new", "embedding": [1.0, 0.0]})})
    assert where(alias) == {"docs-1": ["a", "b"], "docs-2": ["c", "n"]}
    pattern = alias.open("docs-*")
    assert sorted(row["id"] for row in pattern.rows()) == ["a", "b", "c", "n"]
    with pytest.raises(InputError, match="none of them is its write index"):
        pattern.put({"n": pattern.raw({"id": "n", "text": "new", "embedding": [1.0, 0.0]})})


def test_a_document_of_a_third_index_is_not_put_anywhere(alias: Cluster) -> None:
    docs = alias.open("docs")
    with pytest.raises(InputError, match="came from 'docs-0'"):
        docs.put({"a": {**docs.fetch(["a"])["a"], "index": "docs-0"}})


def test_between_an_alias_and_its_own_index_nothing_is_moved(alias: Cluster, tmp_path: Path) -> None:
    for here, there in (("docs", "docs-1"), ("docs-1", "docs"), ("docs", "docs-*")):
        with pytest.raises(InputError, match="is where the documents are"):
            move(["a"], alias.open(here), alias.open(there), tmp_path / "journal")
    assert where(alias) == {"docs-1": ["a", "b"], "docs-2": ["c"]}
    alias.make("docs-3")
    assert not alias.open("docs").shares_with(alias.open("docs-3"))


def test_a_document_that_was_changed_since_it_was_read_stays(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("docs", ids="a")
    docs, held = cluster.open("docs"), cluster.open("held", new=True)
    put = held.put

    def change_then_put(raw: Any) -> None:
        cluster.state.add("docs", {**document(0), "text": "newer"}, "a")
        put(raw)

    held.put = change_then_put  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="was changed by somebody else"):
        move(["a"], docs, held, tmp_path / "journal")
    assert cluster.state.seen("docs")[0].source["text"] == "newer"


def test_a_document_that_came_since_it_was_looked_for_is_not_written_over(cluster: Cluster) -> None:
    cluster.make("docs", ids="a")
    cluster.make("held")
    docs, held = cluster.open("docs"), cluster.open("held")
    raw = docs.fetch(["a"])
    assert not held.fetch(["a"])
    cluster.state.add("held", {"text": "another"}, "a")
    with pytest.raises(StoreError, match="was changed by somebody else"):
        held.put(raw)
    assert cluster.state.seen("held")[0].source == {"text": "another"}


def test_what_was_written_but_cannot_be_found_yet_is_moved_as_it_is(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("docs", ids="a")
    docs = cluster.open("docs")
    cluster.state.change("index", {"_index": "docs", "_id": "a"}, {"text": "not refreshed"})
    assert docs.fetch(["a"])["a"]["source"] == {"text": "not refreshed"}


def test_a_document_that_is_not_taken_stays_where_it_is(cluster: Cluster, tmp_path: Path) -> None:
    cluster.make("docs", ids="ab")
    cluster.state.make("held", {"dynamic": "strict", "properties": {"text": {"type": "text"}}})
    with pytest.raises(InputError, match="refuses this"):
        move(["a"], cluster.open("docs"), cluster.open("held"), tmp_path / "journal")
    assert where(cluster) == {"docs": ["a", "b"], "held": []}


@pytest.mark.parametrize(("status", "error"), [(429, StoreError), (503, StoreError), (400, InputError)])
def test_an_error_of_one_document_is_an_error(cluster: Cluster, status: int, error: type[UnpoisonError]) -> None:
    cluster.make("docs", ids="ab")
    docs = cluster.open("docs")
    failed = {"_id": "b", "status": status, "error": {"reason": "no"}}
    items = [{"delete": {"_id": "a", "status": 200}}, {"delete": failed}]
    cluster.state.failing = lambda method, path, body: {"items": items} if path == "/_bulk" else None
    with pytest.raises(error, match="b: no"):
        docs.take(["a", "b"])


@pytest.mark.parametrize("part", [{"timed_out": True}, {"_shards": {"total": 2, "failed": 1}}])
def test_the_answer_of_some_shards_is_none(cluster: Cluster, part: dict[str, Any]) -> None:
    cluster.make("docs", ids="ab")
    docs = cluster.open("docs")
    reply = {"timed_out": False, "_shards": {"total": 2, "failed": 0}, "hits": {"total": {"value": 0}, "hits": []}}
    cluster.state.failing = lambda method, path, body: {**reply, **part} if path.endswith("_search") else None
    calls: list[Callable[[], object]] = [
        lambda: list(docs.rows()),
        lambda: docs.search([1.0, 0.0], 2),
        lambda: docs.fetch(["a"]),
    ]
    for call in calls:
        with pytest.raises(StoreError, match="shards"):
            call()


def test_many_documents_are_read_once_each_as_they_were(cluster: Cluster) -> None:
    cluster.make("docs")
    for i in range(600):
        cluster.state.add("docs", document(i), f"d{i:03}")
    reading = cluster.open("docs").rows()
    first = next(reading)["id"]
    cluster.state.indices["docs"]["docs"].clear()
    cluster.state.refresh("docs")
    assert [first, *(row["id"] for row in reading)] == [f"d{i:03}" for i in range(600)]
    assert not cluster.state.views  # nothing is left open


def test_a_view_that_has_gone_or_lacks_documents_is_an_error(cluster: Cluster) -> None:
    cluster.make("docs")
    for i in range(300):
        cluster.state.add("docs", document(i), f"d{i}")
    reading = cluster.open("docs").rows()
    next(reading)
    cluster.state.views.clear()
    with pytest.raises(StoreError, match="went away after 256 documents"):
        list(reading)
    reading = cluster.open("docs").rows()
    next(reading)
    del next(iter(cluster.state.views.values()))[280:]
    with pytest.raises(StoreError, match="280 of its 300"):
        list(reading)


def test_fields_of_frameworks_are_read(cluster: Cluster) -> None:
    cluster.make("docs", ids="a")
    (row,) = cluster.open("docs").rows()
    assert row["source"] == "https://a.example/0"
    assert row["metadata"] == document(0)["metadata"]
    cluster.state.add("docs", {"page_content": "second", "id": "another"}, "b")
    row = list(cluster.open("docs").rows())[1]
    assert (row["id"], row["text"], row["embedding"]) == ("b", "second", None)
    cluster.state.add("docs", {"body": "third"}, "c")
    with pytest.raises(InputError, match=r"'c' of .* has no text"):
        list(cluster.open("docs").rows())


@pytest.mark.parametrize(
    ("definition", "score"),
    [
        ({"type": "dense_vector"}, 0.6),
        ({"type": "dense_vector", "similarity": "l2_norm"}, -math.sqrt(20)),
        ({"type": "knn_vector"}, -math.sqrt(20)),
        ({"type": "knn_vector", "method": {"space_type": "innerproduct"}}, 3.0),
        ({"type": "knn_vector", "space_type": "l1"}, 0.8),  # the server's own: (1 + .6) / 2
    ],
)
def test_the_score_is_the_measure_of_the_index(cluster: Cluster, definition: dict[str, Any], score: float) -> None:
    cluster.state.make("docs", {"properties": {"vector": definition}})
    cluster.state.add("docs", {"text": "one", "vector": [3.0, 4.0]}, "a")
    (hit,) = cluster.open("docs").search([1.0, 0.0], 1)
    assert hit["score"] == pytest.approx(score)


def test_without_vectors_nothing_is_searched(cluster: Cluster) -> None:
    cluster.state.make("docs", {"properties": {"pages": {"type": "nested", "properties": {"v": cluster.vector()}}}})
    with pytest.raises(InputError, match="no vectors that could be searched"):
        cluster.open("docs").search([1.0, 0.0], 1)


def test_a_strict_mapping_gets_only_its_own_fields(cluster: Cluster) -> None:
    cluster.make("docs", dynamic="strict", properties={"source": {"type": "keyword"}})
    docs = cluster.open("docs")
    docs.put({"a": docs.raw({"id": "a", "text": "new", "title": "T", "source": "S", "embedding": [1.0, 0.0]})})
    assert cluster.state.seen("docs")[0].source == {"text": "new", "source": "S", "vector": [1.0, 0.0]}


def test_secrets_come_from_the_environment(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.make("docs")
    monkeypatch.setenv(f"{cluster.product.upper()}_USERNAME", "reader")
    monkeypatch.setenv(f"{cluster.product.upper()}_PASSWORD", "pass:word")
    cluster.open("docs")
    sent = {name.lower(): value for name, value in cluster.state.headers.items()}["authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")).decode() == "reader:pass:word"


def test_a_key_goes_before_a_password(elastic: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    elastic.make("docs")
    monkeypatch.setenv("ELASTICSEARCH_API_KEY", "a-key")
    monkeypatch.setenv("ELASTICSEARCH_PASSWORD", "word")
    elastic.open("docs")
    assert {name.lower(): value for name, value in elastic.state.headers.items()}["authorization"] == "ApiKey a-key"


def test_another_product_is_named(elastic: Cluster) -> None:
    elastic.make("docs")
    elastic.state.elastic = False
    with pytest.raises(InputError, match="is not Elasticsearch"):
        elastic.open("docs")


def test_a_server_that_does_not_answer_is_named() -> None:
    for product, (library, _) in PRODUCTS.items():
        pytest.importorskip(library)
        with pytest.raises(StoreError, match="cannot be reached"):
            open_vector_store(f"{product}:http://127.0.0.1:9#docs")


def test_names_cannot_leave_their_place_in_the_path(cluster: Cluster) -> None:
    cluster.make("docs", ids="a")
    with pytest.raises(InputError):
        cluster.open("docs/_delete_by_query?x=")
    assert all(path in ("/", "/docs%2F_delete_by_query%3Fx%3D") for _, path, _ in cluster.state.calls)


def test_where_a_value_is() -> None:
    source = {"a.b": {"c": [1.0]}, "list": [{"v": None}, {"v": [1.0]}]}
    assert held_at(source, "a.b.c") == [1.0]
    assert held_at(source, "a.c") is None
    dense: Callable[[str], VectorField] = lambda path: VectorField(path, {"type": "dense_vector"}, "")  # noqa: E731
    assert [holds(source, dense(path)) for path in ("a.b.c", "list.v", "list.w")] == [True, True, False]
