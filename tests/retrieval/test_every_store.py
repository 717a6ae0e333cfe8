"""The promises that every vector store keeps, and what a move that is broken off leaves in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retrieval.stores import COUNT, IN_FOLDERS, ROWS, SERVERS, VECTORS, Open, end_servers, open_pgvector, open_qdrant
from unpoison.errors import InputError, OptionError
from unpoison.retrieval.faiss import FaissFile
from unpoison.retrieval.store import VectorStore
from unpoison.scan.documents import Document
from unpoison.scan.quarantine import earlier_moves, move
from unpoison.scan.sources import read_documents
from unpoison.scan.stores import KINDS, open_store

IDS = [row["id"] for row in ROWS]
NEW = {"id": "new", "text": "another text", "title": "Another", "source": "https://new.example"}


@pytest.fixture(params=[*IN_FOLDERS, *SERVERS, "qdrant", "pgvector"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens stores of one kind, and closes them in the end."""
    if request.param == "pgvector":
        opener = open_pgvector(request.getfixturevalue("connection"))
    elif request.param in SERVERS:
        serving = SERVERS[request.param]()
        opener = serving.__enter__()
        request.addfinalizer(partial(serving.__exit__, None, None, None))
    else:
        opener = {**IN_FOLDERS, "qdrant": open_qdrant}[request.param](tmp_path)

    def open_and_close(name: str, **options: Any) -> VectorStore:
        store = opener(name, **options)
        request.addfinalizer(store.close)
        return store

    return open_and_close


@pytest.fixture
def docs(opened: Open) -> VectorStore:
    return opened("docs")


def contents(store: VectorStore) -> dict[str, str]:
    """Everything that it holds, byte for byte as the journal would have it."""
    return {name: json.dumps(raw, sort_keys=True, default=str) for name, raw in store.fetch([*IDS, "new"]).items()}


def test_rows_bring_every_field_and_the_vector(docs: VectorStore) -> None:
    rows = {row["id"]: row for row in docs.rows()}
    assert sorted(rows) == sorted(IDS)
    for row, vector in zip(ROWS, VECTORS, strict=True):
        assert rows[row["id"]].items() >= row.items()
        assert np.array_equal(np.asarray(rows[row["id"]]["embedding"], np.float32), vector)
    document = Document.of_row(rows["d3"])
    assert (document.passage.title, document.passage.source) == ("Title 3", "https://wiki.example/3")
    assert document.added_at is not None


def test_search_finds_what_the_exact_search_finds_best_first(docs: VectorStore) -> None:
    query = VECTORS[4] + 0.1 * VECTORS[7]
    order = np.argsort(-(VECTORS @ query)).tolist()
    for count in (0, 3, COUNT + 5):
        hits = docs.search(query.tolist(), count)
        assert [hit["id"] for hit in hits] == [IDS[i] for i in order[:count]]
        assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    (first,) = docs.search(query.tolist(), 1)
    held = next(row for row in docs.rows() if row["id"] == "d4")
    assert {name: list(v) if name == "embedding" else v for name, v in first.items() if name != "score"} == {
        name: list(v) if name == "embedding" else v for name, v in held.items()
    }


def test_a_query_of_other_dimensions_is_refused(docs: VectorStore) -> None:
    with pytest.raises(InputError):
        docs.search([1.0, 2.0], 3)


def test_documents_from_elsewhere_are_added_replaced_and_removed(docs: VectorStore) -> None:
    before = contents(docs)
    for text in ("first words", "second words"):
        docs.put({"new": docs.raw({**NEW, "text": text, "embedding": VECTORS[0].tolist()})})
        (row,) = (row for row in docs.rows() if row["id"] == "new")
        assert row.items() >= {**NEW, "text": text}.items()
        assert len(list(docs.rows())) == COUNT + 1
    assert {name: raw for name, raw in contents(docs).items() if name != "new"} == before
    docs.take(["new", "never there"])
    docs.take([])
    assert contents(docs) == before


def test_one_that_is_not_there_is_refused_or_made_when_something_is_put(opened: Open) -> None:
    with pytest.raises(InputError):
        opened("made")
    made = opened("made", new=True)
    assert (list(made.rows()), made.fetch(["new"]), made.search(VECTORS[0].tolist(), 3)) == ([], {}, [])
    made.put({"new": made.raw({**NEW, "embedding": VECTORS[0].tolist()})})
    (row,) = opened("made").rows()
    assert row.items() >= NEW.items()


def test_documents_of_another_kind_are_refused(docs: VectorStore) -> None:
    before = contents(docs)
    with pytest.raises(InputError, match="of their kind"):
        docs.put({"new": {"id": "new", "bytes": "00"}})
    assert contents(docs) == before


def test_quarantined_and_restored_everything_is_byte_for_byte_as_before(
    docs: VectorStore, opened: Open, tmp_path: Path
) -> None:
    held, journal, before = opened("held", new=True), tmp_path / "journal.jsonl", contents(docs)
    assert move(["d2", "d5"], docs, held, journal).moved == ("d2", "d5")
    assert contents(docs) == {name: raw for name, raw in before.items() if name not in ("d2", "d5")}
    assert contents(held) == {name: before[name] for name in ("d2", "d5")}
    assert len(docs.search(VECTORS[2].tolist(), COUNT)) == COUNT - 2
    move(earlier_moves(journal, docs, held), held, docs, journal)
    assert (contents(docs), contents(held)) == (before, {})
    assert docs.search(VECTORS[2].tolist(), 1)[0]["id"] == "d2"


@pytest.mark.parametrize("back", [False, True], ids=["quarantine", "restore"])
@pytest.mark.parametrize("kind", IN_FOLDERS)
def test_killed_at_any_step_it_goes_on_and_comes_back(kind: str, back: bool, tmp_path: Path) -> None:
    """The files are copied before and after each step: they are what a process that ends there leaves behind."""
    live = tmp_path / "live"
    live.mkdir()
    opener = IN_FOLDERS[kind](live)
    with opener("docs") as docs, opener("held", new=True) as held:
        before = contents(docs)
        if back:
            move(["d2", "d5"], docs, held, live / "journal.jsonl")
        here, there = (held, docs) if back else (docs, held)
        copies = copy_at_every_step(live, here, there, lambda: move(["d2", "d5"], here, there, live / "journal.jsonl"))
    assert len(copies) == 4
    for copy in copies:  # takes the place of the folder, for the journal names the stores that it knows
        end_servers(live)
        shutil.rmtree(live)
        copy.rename(live)
        check_goes_on(opener, live / "journal.jsonl", before, back)


def copy_at_every_step(live: Path, here: VectorStore, there: VectorStore, act: Callable[[], object]) -> list[Path]:
    """The folder before and after each change of `act` to a store, with the journal as it is then."""
    copies: list[Path] = []

    def copied(call: Callable[..., Any]) -> Callable[..., Any]:
        def with_copies(*arguments: Any) -> Any:
            copies.append(shutil.copytree(live, live.with_name(f"copy-{len(copies)}")))
            result = call(*arguments)
            copies.append(shutil.copytree(live, live.with_name(f"copy-{len(copies)}")))
            return result

        return with_copies

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(there, "put", copied(there.put))
        patch.setattr(here, "take", copied(here.take))
        act()
    return copies


def check_goes_on(opener: Open, journal: Path, before: dict[str, str], back: bool) -> None:
    """Nothing is lost; the same call ends the move; and `--restore` brings all back."""
    with opener("docs") as docs, opener("held", new=True) as held:
        assert {**contents(held), **contents(docs)} == before  # in one of them or in both, whole
        here, there = (held, docs) if back else (docs, held)
        moved = move(["d2", "d5"], here, there, journal)
        assert {*moved.moved, *moved.before} == {"d2", "d5"}
        assert not here.fetch(["d2", "d5"])
        if not back:
            assert contents(docs) == {name: raw for name, raw in before.items() if name not in ("d2", "d5")}
            move(earlier_moves(journal, docs, held), held, docs, journal)
        assert (contents(docs), contents(held)) == (before, {})


@pytest.mark.parametrize("change", ["put", "take"])
def test_killed_between_the_two_files_of_faiss_the_rows_follow_the_vectors(change: str, tmp_path: Path) -> None:
    opener = IN_FOLDERS["faiss"](tmp_path)
    journal = tmp_path / "journal.jsonl"
    docs, held = opener("docs"), opener("held", new=True)
    before = contents(docs)
    changed = held if change == "put" else docs
    with pytest.MonkeyPatch.context() as patch:

        def killed(self: FaissFile, *arguments: Any) -> None:
            write(self, *arguments)
            if self.path == changed._index.path:  # type: ignore[attr-defined]
                raise KeyboardInterrupt

        write = FaissFile.write
        patch.setattr(FaissFile, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            move(["d2", "d5"], docs, held, journal)
    check_goes_on(opener, journal, before, back=False)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("source", ["chrome:folder#docs", "s3://bucket/docs", "mongodb://host/docs#rows"])
def test_an_unknown_prefix_is_answered_with_the_known_ones(source: str) -> None:
    for call in (open_store, lambda name: list(read_documents(name, lambda failure: None))):
        with pytest.raises(OptionError, match="no store is written as") as caught:
            call(source)
        assert all(kind.form in str(caught.value) for kind in KINDS.values())


@pytest.mark.parametrize("prefix", sorted(KINDS))
def test_a_string_that_lacks_a_part_is_answered_with_its_form(prefix: str) -> None:
    with pytest.raises(OptionError, match="a store of this kind is written as") as caught:
        open_store(f"{prefix}somewhere")
    assert KINDS[prefix].form in str(caught.value)


def test_a_folder_that_is_not_there_is_refused_and_not_made(tmp_path: Path) -> None:
    for prefix, library in (("chroma", "chromadb"), ("lancedb", "lancedb")):
        pytest.importorskip(library, reason=f"{library.upper()} ABSENT: pip install 'unpoison[{prefix}]'")
        with pytest.raises(InputError, match="there is no"):
            open_store(f"{prefix}:{tmp_path / 'nowhere'}#docs")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(("options", "seen"), [({}, 3), ({"read_consistency_interval": timedelta(0)}, 2)])
def test_what_the_docs_say_of_an_application_that_has_a_lancedb_table_open(
    tmp_path: Path, options: dict[str, timedelta], seen: int
) -> None:
    library = pytest.importorskip("lancedb", reason="LANCEDB ABSENT: pip install 'unpoison[lancedb]'")
    rows = [{"id": name, "text": "a text", "vector": [1.0, 0.0]} for name in "abc"]
    theirs = library.connect(str(tmp_path), **options).create_table("docs", rows)
    with open_store(f"lancedb:{tmp_path}#docs") as store:
        store.take(["a"])
    assert theirs.count_rows() == seen
