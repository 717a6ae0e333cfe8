"""Saved indexes: the same after loading, the old one after a kill, and refused where somebody changed them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison.models import FakeEncoder
from unpoison.retrieval import DenseRetriever
from unpoison.retrieval.dense import read_index, write_index
from unpoison.types import Passage

ODD = [
    Passage("line\nbreak\u2028 and \x00", id="0", title="Ü", source="https://x"),
    Passage("lone \ud800 surrogate", id="ü\n"),
    Passage("", id=""),
    Passage("🦈" * 40, id="3", title=""),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index.npz"


def saved(path, passages=ODD):
    DenseRetriever(FakeEncoder(), passages).save(path)
    return path


def test_what_is_loaded_is_what_was_saved(path):
    retriever = DenseRetriever(FakeEncoder(), ODD)
    retriever.save(path)
    encoder = FakeEncoder()
    loaded = DenseRetriever.load(path, encoder)
    assert encoder.calls == []  # nothing is encoded again
    assert loaded.retrieve("🦈", 9) == retriever.retrieve("🦈", 9)
    for ours, theirs in zip(loaded.retrieve("🦈", 9), retriever.retrieve("🦈", 9)):
        np.testing.assert_array_equal(ours.embedding, theirs.embedding)
    loaded.add(["one more"])
    assert len(loaded) == 5
    with pytest.raises(InputError, match="which another passage has"):
        loaded.add([Passage("x", id="3")])


@settings(max_examples=30)
@given(
    texts=st.lists(st.tuples(st.text(max_size=20), st.text(max_size=9), st.none() | st.text(max_size=9)), max_size=5)
)
def test_any_text_survives(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("index") / "index.npz"
    passages = [Passage(text, id=f"{i}{name}", title=title) for i, (text, name, title) in enumerate(texts)]
    write_index(path, "any", np.zeros((len(passages), 3), np.float32), passages)
    assert list(read_index(path)[2]) == passages


def test_metadata_are_saved(path):
    DenseRetriever(FakeEncoder(), [Passage("a", metadata={"author": "ann", "year": 2026})]).save(path)
    (passage,) = DenseRetriever.load(path, FakeEncoder()).retrieve("a", 1)
    assert dict(passage.metadata) == {"author": "ann", "year": 2026}


def test_an_empty_index(path):
    assert len(DenseRetriever.load(saved(path, []), FakeEncoder())) == 0


def test_equal_indexes_are_equal_bytes_and_numpy_reads_the_vectors(path, tmp_path):
    saved(path)
    assert path.read_bytes() == saved(tmp_path / "again.npz").read_bytes()
    assert np.load(path)["vectors"].shape == (4, 32)
    assert sorted(os.listdir(tmp_path)) == ["again.npz", "index.npz"]


def test_another_encoder_is_refused(path):
    encoder = FakeEncoder()
    encoder.name = "another"
    with pytest.raises(InputError, match="made with the encoder 'fake' and cannot be searched with 'another'"):
        DenseRetriever.load(saved(path), encoder)


KILLED = """
import os, sys
from unpoison.models import FakeEncoder
from unpoison.retrieval import DenseRetriever, dense

retriever = DenseRetriever(FakeEncoder(), [f"new {i}" for i in range(50)])
lines = 0

def dying(passage, line=dense._line):
    global lines
    lines += 1
    if lines == 25:
        os.kill(os.getpid(), 9)
    return line(passage)

def no_power(file):
    os.kill(os.getpid(), 9)

if sys.argv[2] == "writing":
    dense._line = dying
else:
    os.fsync = no_power
retriever.save(sys.argv[1])
"""


@pytest.mark.parametrize("moment", ["writing", "syncing"])
def test_a_killed_process_leaves_the_old_file(path, moment):
    before = saved(path).read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), moment], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert path.read_bytes() == before
    assert len(DenseRetriever.load(path, FakeEncoder())) == 4
    saved(path, ["next"])  # and what the killed one left behind is in nobody's way
    assert len(DenseRetriever.load(path, FakeEncoder())) == 1


def test_a_failed_save_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    before = saved(path).read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        saved(path, ["new"])
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["index.npz"]


def rewritten(path, compression=zipfile.ZIP_STORED, **changed):
    """The same archive with other members; None leaves one out."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members.update({name.replace("_", "."): content for name, content in changed.items()})
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def npy(array, **changed):
    """An npy file, perhaps with a header that lies."""
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape, **changed}
    text = repr(header).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + array.tobytes()


FOUR = np.zeros((4, 32), np.float32)
LINE = b'{"id": "a", "text": "t"}\n'


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"index_json": None}, "not a saved index"),
        ({"compression": zipfile.ZIP_DEFLATED}, "it is compressed"),
        ({"index_json": b"{}"}, "not a saved index"),
        ({"index_json": b"[" * 9000}, "not a saved index"),
        ({"index_json": json.dumps({"format": 9, "encoder": "fake"})}, "its format is 9, and this version supports 1"),
        ({"vectors_npy": b"nonsense"}, "not a saved index"),
        ({"vectors_npy": npy(FOUR, shape=(10**12, 32))}, "not a saved index"),
        ({"vectors_npy": npy(FOUR, shape=(-4, -32))}, "not a saved index"),
        ({"vectors_npy": npy(FOUR, descr="|O")}, "not a saved index"),
        ({"vectors_npy": npy(FOUR, fortran_order=True)}, "not a saved index"),
        ({"vectors_npy": npy(FOUR + np.nan)}, "not of length 1"),
        ({"vectors_npy": npy(FOUR[:3])}, "3 vectors and 4 passages"),
        ({"passages_jsonl": LINE * 4}, "is 'a', which another passage has"),
        ({"passages_jsonl": b"[]\n" * 4}, "not a saved index"),
        ({"passages_jsonl": b'{"id": "a", "text": 3}\n'}, "not a saved index"),
        ({"passages_jsonl": b"[" * 100_000}, "not a saved index"),
    ],
)
def test_hostile_files_are_refused(path, changed, says):
    rewritten(saved(path), **changed)
    with pytest.raises(InputError, match=says):
        DenseRetriever.load(path, FakeEncoder())


def test_damaged_files_are_refused(path):
    whole = saved(path).read_bytes()
    for content in (b"", b"not a zip", whole[: len(whole) // 2], whole.replace(b"lone", b"1one")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"index\.npz' is not a saved index"):
            DenseRetriever.load(path, FakeEncoder())


@settings(max_examples=200)
@given(data=st.data())
def test_no_bytes_break_it(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("index") / "index.npz"
    content = bytearray(saved(path, ODD[:2]).read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=6)):
        content[place] = data.draw(st.sampled_from([0, 1, 127, 255]))
    path.write_bytes(content[data.draw(st.integers(0, 3)) :])
    with contextlib.suppress(InputError):
        assert [p.text for p in DenseRetriever.load(path, FakeEncoder())._state[0]] == [p.text for p in ODD[:2]]


def test_a_missing_file_is_what_the_system_says(path):
    with pytest.raises(FileNotFoundError):
        DenseRetriever.load(path, FakeEncoder())
