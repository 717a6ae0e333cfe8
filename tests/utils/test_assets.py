"""Files are read by what they are, changed ones are refused, and graphs are opened without a word to anybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unpoison.defenses.guard.crafted import Crafted
from unpoison.errors import ModelError
from unpoison.text.gibberish import network
from unpoison.utils import assets
from unpoison.utils.assets import DATA, PUBLISHED, array_folder, check_published, open_graph, read_data

OPENS = """
import time
from onnx import TensorProto, helper
from pathlib import Path
from unpoison.utils.assets import open_graph
put = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "ab"]
graph = helper.make_graph([helper.make_node("Identity", ["a"], ["b"])], "g", put[:1], put[1:])
made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
folder = Path({folder!r})
(folder / "model.onnx").write_bytes(made.SerializeToString())
(folder / "tokenizer.json").write_text("{{}}")
print(open_graph(folder, "a graph")[2])
time.sleep(1)
"""


@pytest.mark.needs("onnx", "onnxruntime")
def test_opening_a_graph_tells_nobody(tmp_path: Path) -> None:
    """onnxruntime writes a device id into the user's cache and asks a name server of its makers', if it may."""
    home, folder, calls = tmp_path / "home", tmp_path / "graph", tmp_path / "calls"
    home.mkdir()
    folder.mkdir()
    settings = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    settings |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    watch = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmmsg", "-o", str(calls)] * bool(
        shutil.which("strace")
    )
    command = [*watch, sys.executable, "-c", OPENS.format(folder=str(folder))]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)
    if "strace" in done.stderr:  # it may not trace here
        done = subprocess.run(command[len(watch) :], env=settings, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "['b']", done.stderr
    assert [path for path in home.rglob("*") if path.is_file()] == []
    if calls.is_file():
        assert "AF_INET" not in calls.read_text(encoding="utf-8")


def test_a_table_is_read_by_its_suffix() -> None:
    assert read_data("questions.yaml")["spaced"]
    assert read_data("demands.json")["verbs"]
    assert read_data("words.txt").startswith("#")


def test_every_array_of_the_package_has_a_published_hash() -> None:
    assert {path.name for path in DATA.glob("*.npz")} == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("load", [network, Crafted.load])
def test_a_changed_byte_of_the_core_is_an_error(
    load: Callable[[], object], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "unpoison"
    shutil.copytree(DATA, package / "data", ignore=shutil.ignore_patterns("injection_model"))
    content = bytearray((package / "data" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (package / "data" / name).write_bytes(content)
    monkeypatch.setattr(assets, "DATA", package / "data")
    caches = (array_folder, network, Crafted.load)
    for one in caches:
        one.cache_clear()  # type: ignore[attr-defined]
    try:
        with pytest.raises(ModelError, match=f"unpoison has a {name} that differs from the published one"):
            load()
    finally:
        for one in caches:
            one.cache_clear()  # type: ignore[attr-defined]


class Runtime:
    """An onnxruntime that opens any graph but a broken one."""

    def __init__(self) -> None:
        self.SessionOptions = SimpleNamespace
        self.opened: list[tuple[bytes, int, int, list[str]]] = []

    def InferenceSession(self, graph: bytes, options: Any, providers: list[str]) -> Any:
        if graph == b"broken":
            raise RuntimeError("Protobuf\n parsing " + "failed " * 99)
        self.opened.append((graph, options.log_severity_level, options.intra_op_num_threads, providers))
        puts = [SimpleNamespace(name="ids", type="tensor(int64)"), SimpleNamespace(name="mask", type="tensor(int32)")]
        return SimpleNamespace(get_inputs=lambda: puts, get_outputs=lambda: puts[:1])


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    monkeypatch.setitem(sys.modules, "onnxruntime", made := Runtime())  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("inner", ["", "onnx"])
def test_a_graph_is_one_file_beside_its_tokenizer_or_in_a_folder_there(
    runtime: Runtime, tmp_path: Path, inner: str
) -> None:
    (tmp_path / inner).mkdir(exist_ok=True)
    (tmp_path / inner / "model.onnx").write_bytes(b"graph")
    with pytest.raises(ModelError, match=r"^mine lacks model\.onnx or tokenizer\.json; give a folder that has both$"):
        open_graph(tmp_path, "mine")
    (tmp_path / "tokenizer.json").write_text("{}")
    session, inputs, outputs = open_graph(tmp_path, "mine")
    assert (inputs, outputs) == ({"ids": np.int64, "mask": np.int32}, ["ids"])
    assert session.get_outputs()
    assert runtime.opened == [(b"graph", 3, 1, ["CPUExecutionProvider"])]
    (tmp_path / inner / "model.onnx").unlink()
    with pytest.raises(ModelError, match="mine lacks"):
        open_graph(tmp_path, "mine")


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        (b"a\n\x08location\x12\x01b", "mine keeps weights in files beside model.onnx; export it as one file"),
        (b"broken", "cannot load mine ('Protobuf parsing failed"),
    ],
)
def test_a_graph_that_reads_other_files_or_is_broken_is_not_opened(
    runtime: Runtime, tmp_path: Path, graph: bytes, says: str
) -> None:
    (tmp_path / "model.onnx").write_bytes(graph)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError) as caught:
        open_graph(tmp_path, "mine")
    assert str(caught.value).startswith(says)
    assert str(caught.value).endswith(("export it as one file", "; export the model again"))
    assert len(str(caught.value)) < 300
    assert runtime.opened == []


def test_verified_arrays_are_where_the_data_is_and_a_missing_one_is_named(tmp_path: Path) -> None:
    assert array_folder() == DATA
    with pytest.raises(ModelError, match=r"^mine lacks a\.bin \(FileNotFoundError\); install the package again$"):
        check_published(tmp_path, {"a.bin": "00"}, "mine")
