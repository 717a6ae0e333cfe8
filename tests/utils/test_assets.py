"""Files are read by what they are, changed ones are refused, and graphs are opened without a word to anybody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from unpoison.defenses.guard.crafted import Crafted
from unpoison.errors import ModelError
from unpoison.text.gibberish import network
from unpoison.utils import assets
from unpoison.utils.assets import DATA, PUBLISHED, array_folder, read_data

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
