"""Stores of documents by their strings, and what a move may not touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from unpoison.errors import InputError, OptionError
from unpoison.scan.stores import FolderStore, RowsStore, open_store, refuse_unknown_prefix

ROWS = b'{"id": "a", "text": "x"}\nno JSON\n{"id": "a", "text": "y"}\n{"text": "z"}'


@pytest.fixture
def rows(tmp_path: Path) -> RowsStore:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROWS)
    return RowsStore(path)


def test_unreadable_rows_and_the_other_rows_stay_as_they_are(rows: RowsStore) -> None:
    names = [line.name for line in rows.lines()]
    assert names[1] is None
    rows.take([names[2] or ""])
    assert rows.path.read_bytes().splitlines() == [line for i, line in enumerate(ROWS.splitlines()) if i != 2]


def test_a_row_keeps_the_name_that_it_had_beside_another_of_its_id(rows: RowsStore) -> None:
    first, _, second, _ = rows.lines()
    assert (first.alias, second.alias) == ("", ""), "both have names of their own"
    rows.take([first.name or ""])
    left = next(line for line in rows.lines() if line.fields.get("text") == "y")
    assert (left.name, left.alias) == ("a", second.name)
    for name in (left.name, left.alias):
        assert rows.fetch([name, "b"]) == {name: {"id": "a", "text": "y"}}
    rows.take([left.alias])
    assert [line.fields.get("text") for line in rows.lines()] == [None, "z"]


def test_added_rows_replace_those_of_their_name_and_the_file_keeps_its_mode(rows: RowsStore) -> None:
    rows.path.chmod(0o640)
    rows.put({"b": {"text": "old"}})
    rows.put({"b": {"text": "new"}})
    assert rows.path.stat().st_mode & 0o777 == 0o640
    assert rows.path.read_bytes() == ROWS + b'\n{"id": "b", "text": "new"}\n'


def test_a_new_file_is_private(tmp_path: Path) -> None:
    store = RowsStore(tmp_path / "new.jsonl")
    assert store.fetch(["a"]) == {}
    store.put({"a": {"text": "x"}})
    assert store.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["../rows.jsonl", "/etc/hosts", "inner/../../x"])
def test_a_file_outside_the_folder_is_not_touched(tmp_path: Path, name: str) -> None:
    store = FolderStore(tmp_path / "wiki", new=True)
    with pytest.raises(InputError, match="is outside"):
        store.fetch([name])
    with pytest.raises(InputError, match="is outside"):
        store.put({name: {"bytes": "00", "mtime": 0}})


def test_a_link_is_no_file_and_a_row_without_bytes_none_either(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"x")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    assert list(store.fetch(["a.txt", "b.txt", "c.txt"])) == ["a.txt"]
    store.take(["b.txt"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"], "the link goes, and not the file behind it"
    with pytest.raises(OptionError, match=r"is a folder, and 'd.txt' is no file"):
        store.put({"d.txt": {"text": "x"}})


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("localhost:6333", "looks like an address; write http://localhost:6333"),
        ("localhost:6333/docs", "looks like an address"),
        ("chrome:folder", "unknown store prefix chrome:"),
    ],
)
def test_a_string_that_names_no_store_is_refused_with_what_it_may_be(source: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        refuse_unknown_prefix(source)


def test_what_exists_is_a_file_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("host:80", "chrome:folder"):
        Path(name).touch()
        refuse_unknown_prefix(name)
    refuse_unknown_prefix("langchain:module:store")
    refuse_unknown_prefix("C:")


@pytest.mark.parametrize(
    ("source", "new", "kind"),
    [("x.jsonl", True, RowsStore), ("rows.jsonl", False, RowsStore), ("wiki", True, FolderStore)],
)
def test_a_store_is_opened_by_the_form_of_its_string(tmp_path: Path, source: str, new: bool, kind: type) -> None:
    (tmp_path / "rows.jsonl").touch()
    assert type(open_store(str(tmp_path / source), new=new)) is kind


@pytest.mark.parametrize(("source", "error"), [("x.jsonl", InputError), ("wiki", OptionError), ("x.csv", OptionError)])
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, source: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        open_store(str(tmp_path / source))
    assert not list(tmp_path.iterdir())


def test_a_folder_of_documents_is_made_with_the_folders_above_and_below_it(tmp_path: Path) -> None:
    for _ in range(2):
        store = FolderStore(tmp_path / "a" / "b", new=True)
        store.put({"c/d/e.txt": {"id": "c/d/e.txt", "bytes": b"x".hex(), "mtime": 1.0}})
    held = store.fetch(["c/d/e.txt", "missing"])
    assert held == {"c/d/e.txt": {"id": "c/d/e.txt", "bytes": "78", "mtime": 1.0}}
    store.take(["c/d/e.txt", "missing"])
    assert store.fetch(["c/d/e.txt"]) == {}
    assert store.name == f"{tmp_path}/a/b/"
