"""A small evaluation file with its recipe, a mirror of its sources with two commits, and a server of raw files."""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from unpoison.bench.data import catalogue
from unpoison.bench.data.recipes import Part, Recipe, SourceFile, encode

PASSAGE = "The stethoscope was made in 1816 by a physician in Paris, says the page."
SOURCE = json.dumps({"q": "Who made  the stethoscope?", "p": PASSAGE, "more": "x" * 40_000}).encode()
REPOSITORY = "someone/passages"
PATH = "data/some file.json"
ROW = {
    "id": "t-0",
    "dataset": "t",
    "question": "Who made the stethoscope?",
    "correct_answers": [],
    "incorrect_answers": [],
}
ROW |= {"passages": [{"id": "t-0#0", "text": "made in 1816 by a physician…", "label": "clean"}]}
BUILT = f"{json.dumps(ROW, ensure_ascii=False)}\n".encode()


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass
class World:
    """What a test needs: `mirrors` has the repository, at a second commit whose file is another."""

    folder: Path
    commit: str
    mirrors: Path
    source: SourceFile
    file: Any


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    work = tmp_path / "work"
    (work / "data").mkdir(parents=True)
    git(work.parent, "init", "-q", str(work))
    (work / PATH).write_bytes(SOURCE)
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    commit = git(work, "rev-parse", "HEAD")
    (work / PATH).write_bytes(SOURCE.replace(b"1816", b"1817"))
    git(work, "commit", "-qam", "two")
    mirrors = tmp_path / "mirrors"
    mirrors.mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(work), str(mirrors / "someone+passages"))
    source = SourceFile(REPOSITORY, commit, PATH, len(SOURCE), hashlib.sha256(SOURCE).hexdigest())
    begin = PASSAGE.index("made in")
    row = {**ROW, "question": None, "passages": [{"id": "", "text": None, "label": "clean"}]}
    parts = [[Part(0, 1, "line")], [Part(0, 3, "", begin, PASSAGE.index(" in Paris")), Part(-1, 0)]]
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "tiny.json.xz").write_bytes(encode(Recipe([source], [row], [0, 1], parts, ["…"])))
    fields = {"what": "a test", "bytes": len(BUILT), "sha256": hashlib.sha256(BUILT).hexdigest(), "rows": 1}
    files = {"tiny": {**fields, "licences": ["mit", "none"], "repositories": [REPOSITORY], "files": 1}}
    files["tiny"]["download"] = len(SOURCE)
    files["lost"] = {**fields, "unavailable": "someone/else cannot be had"}
    files["with_tiny"] = {**fields, "companions": ["tiny"]}
    terms = {"mit": {"title": "MIT", "accept": False, "note": ""}}
    terms["none"] = {"title": "no licence stated", "accept": True, "note": "evaluate only"}
    (recipes / "catalogue.json").write_text(json.dumps({"licences": terms, "files": files}))
    monkeypatch.setattr(catalogue, "RECIPES", recipes)
    monkeypatch.setenv("UNPOISON_DATA", str(tmp_path / "store"))
    return World(tmp_path, commit, mirrors, source, catalogue.data_file("tiny"))


@dataclass
class Served:
    """A server of one source file.

    Attributes:
        content: What it serves.
        cuts: After so many bytes the first replies break off.
        status: Of every reply, where it is not 200.
        asked: The Range of each request, "" without.
    """

    url: str
    content: bytes = SOURCE
    cuts: list[int] = field(default_factory=list)
    status: int = 200
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            given.asked.append(self.headers.get("Range", ""))
            if given.status != 200 or self.path != f"/{REPOSITORY}/{world.commit}/data/some%20file.json":
                self.send_error(given.status if given.status != 200 else 404)
                return
            start = int(self.headers.get("Range", "bytes=0-")[6:-1])
            content = given.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: given.cuts.pop(0)] if given.cuts else content)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that has read enough goes away."""

    server = Server(("127.0.0.1", 0), Handler)
    given = Served(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield given
    server.shutdown()
    server.server_close()
    thread.join()
