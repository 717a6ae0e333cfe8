"""Documents moved between stores and back: nothing is lost, whatever happens in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, cast

import pytest

from scan.corpora import towns
from unpoison.core.passages import Passage
from unpoison.errors import InputError, OptionError, StoreError
from unpoison.io.file_rows import json_line
from unpoison.scan.documents import Document
from unpoison.scan.quarantine import earlier_moves, move, read_decisions
from unpoison.scan.sources import read_documents
from unpoison.scan.stores import FolderStore, RowsStore, Store, VectorStore, open_store
from unpoison.sources.allow import Allowed

Pair = tuple[Store, Store]
IDS = [d["id"] for d in towns(6)]


def rows_pair(folder: Path) -> Pair:
    path = folder / "index.jsonl"
    path.write_bytes(b"".join(json_line({**d, "extra": {"kept": [1, None]}}) for d in towns(6)) + b"not json\n")
    return open_store(str(path)), open_store(str(folder / "held.jsonl"), new=True)


def folder_pair(folder: Path) -> Pair:
    (folder / "wiki" / "deep").mkdir(parents=True)
    for d in towns(6):
        (folder / "wiki" / d["id"]).with_suffix(".md").write_text(d["text"])
    return open_store(str(folder / "wiki")), open_store(str(folder / "held"), new=True)


PAIRS = [rows_pair, folder_pair]


def documents(store: Store) -> list[Document]:
    """What a scan reads of a store."""
    if isinstance(store, VectorStore):
        return list(map(Document.of_row, store.rows()))
    path = cast("RowsStore | FolderStore", store).path
    return list(read_documents(str(path), lambda failure: None)) if path.exists() else []


def ids(store: Store) -> list[str]:
    return sorted(document.id.removesuffix(".md") for document in documents(store))


@pytest.mark.parametrize("pair_of", PAIRS, ids=lambda pair_of: pair_of.__name__)
def test_there_and_back(pair_of: Callable[[Path], Pair], tmp_path: Path) -> None:
    here, there = pair_of(tmp_path)
    ending = ".md" if pair_of is folder_pair else ""
    before = {d.id: (d.passage.text, d.author, _vector(d)) for d in documents(here)}
    wanted = [f"{IDS[1]}{ending}", f"{IDS[4]}{ending}", f"{IDS[1]}{ending}"]
    journal = tmp_path / "journal.jsonl"
    moved = move(wanted, here, there, journal)
    assert list(moved.moved) == wanted[:2]
    assert ids(there) == sorted([IDS[1], IDS[4]])
    assert ids(here) == sorted(set(IDS) - {IDS[1], IDS[4]})
    assert move(wanted, here, there, journal).before == tuple(wanted[:2])
    assert move(["nobody"], here, there, journal).missing == ("nobody",)
    assert earlier_moves(journal, there, here) == []
    back = earlier_moves(journal, here, there)
    assert back == wanted[:2]
    assert sorted(move(back, there, here, journal).moved) == sorted(back)
    assert earlier_moves(journal, here, there) == []
    assert {d.id: (d.passage.text, d.author, _vector(d)) for d in documents(here)} == before
    assert ids(there) == []


def _vector(document: Any) -> Any:
    vector = document.passage.embedding
    return None if vector is None else [round(float(value), 4) for value in vector]


def test_the_journal_holds_every_document_whole_and_is_private(tmp_path: Path) -> None:
    here, there = rows_pair(tmp_path)
    journal = tmp_path / "journal.jsonl"
    move(IDS[:2], here, there, journal)
    entries = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(e["done"], e["id"]) for e in entries] == [("move", i) for i in IDS[:2]] + [("moved", i) for i in IDS[:2]]
    assert entries[0]["document"]["text"] == towns()[0]["text"]
    assert journal.stat().st_mode & 0o777 == 0o600


def test_nothing_is_taken_out_when_the_other_store_does_not_keep_it(tmp_path: Path) -> None:
    here, _ = rows_pair(tmp_path)

    class Forgetful(Store):
        name = "a store that forgets"

        def fetch(self, ids: Collection[str]) -> dict[str, Any]:
            return {}

        def put(self, raw: Any) -> None:
            pass

        def take(self, ids: Collection[str]) -> None:
            pytest.fail("nothing is there")

    with pytest.raises(StoreError, match="did not keep 'town-0'; nothing was removed"):
        move(IDS[:2], here, Forgetful(), tmp_path / "journal.jsonl")
    assert ids(here) == sorted(IDS)


def test_killed_before_the_journal_says_moved_it_is_still_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = rows_pair(tmp_path)
    journal = tmp_path / "journal.jsonl"
    take = type(here).take
    with monkeypatch.context() as patch:

        def killed(store: Store, names: Collection[str]) -> None:
            take(store, names)
            raise KeyboardInterrupt

        patch.setattr(type(here), "take", killed)
        with pytest.raises(KeyboardInterrupt):
            move(IDS[:2], here, there, journal)
    assert ids(there) == sorted(IDS[:2])
    assert earlier_moves(journal, here, there) == IDS[:2]
    move(earlier_moves(journal, here, there), there, here, journal)
    assert ids(here) == sorted(IDS)


def test_a_line_of_the_journal_that_was_broken_off_spoils_nothing(tmp_path: Path) -> None:
    here, there = rows_pair(tmp_path)
    journal = tmp_path / "journal.jsonl"
    move(IDS[:1], here, there, journal)
    with journal.open("a") as file:
        file.write('{"time": "2026-01-01T00:00:00+00:00", "done": "mo' + "x" * 70_000)
    assert earlier_moves(journal, here, there) == IDS[:1]
    move(IDS[1:2], here, there, journal)
    assert earlier_moves(journal, here, there) == IDS[:2]


@pytest.mark.parametrize("pair_of", [rows_pair, folder_pair])
def test_no_document_is_written_over_another_one_of_its_name(pair_of: Callable[[Path], Pair], tmp_path: Path) -> None:
    """An attacker who uploads a name again must not push the evidence out; nor may a release undo a correction."""
    here, there = pair_of(tmp_path)
    journal = tmp_path / "journal.jsonl"
    name = min(document.id for document in documents(here))
    move([name], here, there, journal)
    held = there.fetch([name])
    here.put({name: {**held[name], "bytes": b"a later text".hex(), "text": "a later text"}})
    later = here.fetch([name])
    for one, two in ((here, there), (there, here)):
        with pytest.raises(InputError, match="has another document named"):
            move([name], one, two, journal)
    assert there.fetch([name]) == held
    assert here.fetch([name]) == later


def test_a_folder_gives_and_takes_nothing_outside_of_it(tmp_path: Path) -> None:
    here, there = folder_pair(tmp_path)
    (tmp_path / "secret.md").write_text("mine")
    with pytest.raises(InputError, match="is outside"):
        move(["../secret.md"], here, there, tmp_path / "journal.jsonl")


def test_decisions_of_the_page_are_read_and_others_refused(tmp_path: Path) -> None:
    path = tmp_path / "decisions.json"
    rows = [{"id": "a", "decision": "quarantine"}, {"id": "b", "decision": "keep"}]
    path.write_text(json.dumps({"format": "unpoison-decisions", "version": 1, "decisions": rows}))
    assert read_decisions(path) == ["a"]
    path.write_text("[]")
    with pytest.raises(InputError, match="has no decisions"):
        read_decisions(path)


def test_stores_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="has the form qdrant:"):
        open_store("qdrant:http://localhost")
    with pytest.raises(OptionError, match="cannot be moved"):
        open_store(str(tmp_path / "a.csv"))
    with pytest.raises(InputError, match="there is no"):
        open_store(str(tmp_path / "a.jsonl"))
    here, _ = rows_pair(tmp_path)
    with pytest.raises(InputError, match="another store"):
        move(["a"], here, here, tmp_path / "journal")


def test_rows_with_one_id_are_told_apart_and_no_other_row_changes(tmp_path: Path) -> None:
    path, journal = tmp_path / "index.jsonl", tmp_path / "journal.jsonl"
    lines = [json_line({"id": name, "text": f"{name} {i}"}) for i, name in enumerate(["a", "a", "a#2", "b", "a"])]
    path.write_bytes(b"".join(lines))
    here, there = open_store(str(path)), open_store(str(tmp_path / "held.jsonl"), new=True)
    first, second, number, _, third = (document.id for document in documents(here))
    assert len({first, second, third}) == 3 and number == "a#2"
    move([first, number], here, there, journal)
    assert path.read_bytes() == lines[1] + lines[3] + lines[4]
    move([third, second], here, there, journal)
    assert path.read_bytes() == lines[3]
    move([first, second, third, number], there, here, journal)
    assert sorted(path.read_bytes().splitlines(keepends=True)) == sorted(lines)
    assert {document.id for document in documents(here)} == {first, second, third, number, "b"}


def test_accents_are_compared_whichever_way_they_are_written(tmp_path: Path) -> None:
    composed, parted = "caf\u00e9.md", "cafe\u0301.md"
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / parted).write_text("Open at nine.")
    here, there = open_store(str(tmp_path / "wiki")), open_store(str(tmp_path / "held"), new=True)
    assert list(read_documents(str(tmp_path / "wiki"), lambda failure: None, [composed])) == []
    assert Allowed([composed]).matches(Passage("Open at nine.", id=parted))
    assert move([composed], here, there, tmp_path / "journal.jsonl").missing == ()
    assert [path.name for path in (tmp_path / "held").iterdir()] == [parted]


def test_a_name_is_found_composed_and_decomposed_and_of_two_the_one_as_written(tmp_path: Path) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    path, held, journal = tmp_path / "a.jsonl", tmp_path / "held.jsonl", tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(json_line({"id": one, "text": ascii(one)}) for one in (composed, decomposed)))
    here, there = open_store(str(path)), open_store(str(held), new=True)
    assert move([decomposed], here, there, journal).moved == (decomposed,)
    assert [document.id for document in documents(here)] == [composed]
    assert move([composed], here, there, journal).moved == (composed,)
    held.write_bytes(json_line({"id": decomposed, "text": "x"}))
    assert move([composed], here, there, journal).before == (decomposed,)
