"""Files that are replaced whole, locked, private, lists in files, and YAML without tricks."""

from __future__ import annotations

import os
import tracemalloc
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

import numpy as np
import pytest

from unpoison.core.passages import Passage
from unpoison.errors import InputError
from unpoison.scan.documents import Document
from unpoison.utils.files import (
    MAX_HELD,
    MAX_YAML_BYTES,
    Spilled,
    hold_lock,
    load_yaml,
    lock_file,
    private,
    write_file,
)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_file(path, [b"one ", b"two"], mode=0o640, time=1_000.0)
    assert (path.read_bytes(), path.stat().st_mode & 0o777, path.stat().st_mtime) == (b"one two", 0o640, 1_000.0)

    def breaking() -> object:
        yield b"half"
        raise KeyError("x")

    with pytest.raises(KeyError):
        write_file(path, breaking())
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_bytes() == b"one two"


def test_an_error_of_the_system_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"a\.txt"):
        write_file(tmp_path / "missing" / "a.txt", [b""])


def test_a_private_file_is_its_owners_and_is_never_emptied(tmp_path: Path) -> None:
    path = tmp_path / "key"
    private(path)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("x")
    private(path)
    assert path.read_text() == "x"
    private(tmp_path / "missing" / "key")  # opening it will say so


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as other:
        with hold_lock(one.fileno()):
            assert not lock_file(other.fileno())
        assert lock_file(other.fileno())
        assert not lock_file(one.fileno())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a: 1\na: 2", "line 2"),
        (b"a: &x 1\nb: *x", "anchors are not supported"),
        (b"a: [", "not valid YAML"),
        (b"\xff", "not UTF-8"),
        (b"#" * (MAX_YAML_BYTES + 1), "more than 1,000,000 bytes"),
        (b"!!python/object/apply:os.system [ls]", "not valid YAML"),
    ],
)
def test_yaml_that_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        load_yaml(path)


def test_yaml_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\nb: {a: 2}\n" + b"#" * (MAX_YAML_BYTES - 16))
    assert os.path.getsize(path) <= MAX_YAML_BYTES
    assert load_yaml(path) == {"a": 1, "b": {"a": 2}}
    with pytest.raises(InputError, match="cannot be read"):
        load_yaml(tmp_path / "missing.yaml")


@pytest.mark.parametrize("held", [1, 60, MAX_HELD])
def test_a_list_in_a_file_is_read_as_any_other(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.utils.files.MAX_HELD", held)
    items = ["a" * 20, "\ud800", {"lock": Lock()}, None, ("b", 1)]
    some = Spilled(items[:3])
    assert some[0] == items[0], "it is read before it is complete"
    for item in items[3:]:
        some.append(item)
    assert list(some) == items
    assert (len(some), some[-1], some[1:4], some[9:]) == (5, items[-1], items[1:4], [])
    assert Spilled(items) == some != Spilled(items[:4])
    with pytest.raises(IndexError):
        some[5]
    assert list(deepcopy(Spilled([1, 2]))) == [1, 2]


@dataclass
class Foreign:
    """What another package made."""

    name: str


def test_what_this_package_and_python_make_stands_in_the_file_and_all_else_is_held() -> None:
    row = {"id": "a", "text": "One \ud800", "url": "https://a.example/b", "date": "2024-01-01", "stars": 4.5}
    document = Document.of(row, 0)
    items = [document, datetime(2024, 1, 2, tzinfo=UTC), np.float64(0.1), {"a": (1, None, [True])}, float("inf"), []]
    some = Spilled[object](items)
    assert list(some) == items
    assert some[0] is not document
    assert some[0].passage.metadata == document.passage.metadata  # which a comparison of passages leaves out
    assert [type(one) for one in some] == [type(one) for one in items]
    array = Spilled([np.zeros((2, 0), np.int32)])[0]
    assert (array.shape, array.dtype) == ((2, 0), np.int32)
    deep = list[object]()
    for _ in range(5_000):
        deep = [deep]
    foreign = [
        Foreign("x"),
        np.array([{}], object),
        ("a", Foreign("y")),
        Document(Passage("t", original={1})),
        deep,
    ]
    assert all(one is other for one, other in zip(Spilled(foreign), foreign, strict=True))


def test_a_long_list_takes_little_memory() -> None:
    tracemalloc.start()
    some = Spilled("x" * 1000 for _ in range(20_000))
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(some[19_999]) == 1000
    assert held < 3 * MAX_HELD
