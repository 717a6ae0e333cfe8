"""What is said to be removed was looked for and not found: systems that write in stages, and that say yes to all."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from bench.redteam.conftest import Quick, write_world
from bench.redteam.test_campaign import Scripted, tried
from documents import ROOT, blocks
from unpoison.bench.redteam import Answered, Config, Document, Hosts, Secrets, clean, run_test
from unpoison.bench.redteam.journal import Journal
from unpoison.errors import TargetError


class Staged(Scripted):
    """Takes documents in, and shows them when `ready` is called: txtai's add and upsert. Deletes what it shows only."""

    def __init__(self, **behaviour) -> None:
        super().__init__(**behaviour)
        self.staged: dict[str, str] = {}

    def plant(self, documents: list[Document]) -> list[str]:
        if self.behaviour.get("fails_at") == len(self.staged) + len(self.documents) + 1:
            self.behaviour["fails_at"] = None
            raise TargetError("no", refused=True)
        self.staged |= {document.canary: document.text for document in documents}
        return [document.canary for document in documents]

    def own_ids(self, canary: str) -> list[str]:
        return [canary]

    def ready(self, handles: list[str]) -> bool:
        with self.lock:
            self.documents |= self.staged
            self.staged = {}
        return all(handle in self.documents for handle in handles)


def found(system: Scripted, canary: str) -> list[str]:
    return [canary] if canary in system.documents else []


def test_a_staged_rehearsal_is_written_before_it_is_removed(tmp_path):
    system = Staged()
    results = tried(tmp_path, system, limits={"in_flight": 1})
    assert results.complete
    assert (system.documents, system.staged) == ({}, {})
    assert (results.planted, results.removed, results.accepted, results.remaining) == (4, 4, 0, ())


def test_what_was_staged_when_a_question_failed_is_taken_back_too(tmp_path):
    system = Staged(fails_at=2)
    results = tried(tmp_path, system, limits={"in_flight": 1, "retries": 0}, questions=1, poisons=[3], rehearse=False)
    assert [trial.stage for trial in results.trials] == ["", "plant"]
    system.ready([])  # whatever commits later
    assert system.documents == {}


def test_what_was_staged_when_the_run_was_killed_is_taken_back_too(tmp_path):
    (tmp_path / "mine_of_removal.py").write_text("system = None\n")
    import sys

    sys.path.insert(0, str(tmp_path))
    import mine_of_removal

    system = mine_of_removal.system = Staged()
    system.staged["unpoison-k"] = "poison"
    values = {"target": {"python": "mine_of_removal:system"}, "questions": "sample", "wait": {"seconds": 1}}
    rows = [
        {"event": "run", "version": 1, "target": values["target"], "config": "x"},
        {"event": "planting", "canary": "unpoison-k", "question": "q", "attack": "a", "handles": ["unpoison-k"]},
    ]
    (tmp_path / "j.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cleaned = clean(
        tmp_path / "j.jsonl", secrets=Secrets({}), hosts=Hosts(), config=Config.of(values, tmp_path), clock=Quick()
    )
    assert (system.staged, system.documents) == ({}, {})
    assert (cleaned.removed, cleaned.accepted) == (0, 1)  # it has no `find`


def test_a_removal_that_only_seems_so_is_found_out_with_the_rehearsal(tmp_path):
    class Nodding(Scripted):
        def remove(self, handles: list[str]) -> None:
            """Says yes, and does nothing."""

    system = Nodding()
    with pytest.raises(TargetError, match=r"could not be removed.*still reads it"):
        tried(tmp_path, system, wait={"seconds": 1})
    assert len(system.documents) == 1
    with Journal(tmp_path / "j.jsonl") as journal:
        assert [plant.removed for plant in journal.history.plants.values()] == [False]  # `clean` tries again


class Silent(Scripted):
    """Tells no passages."""

    def ask(self, question: str) -> Answered:
        return Answered(super().ask(question).answer)


def test_what_nobody_could_look_for_is_not_said_to_be_removed(tmp_path):
    from unpoison.bench.redteam.summary import brief_of_test
    from unpoison.cli.redteam import problems_of

    results = tried(tmp_path, Silent())
    assert (results.planted, results.removed, results.accepted) == (4, 0, 4)
    assert any("4 documents was accepted, and nobody could look" in problem for problem in problems_of(results))
    assert dict(brief_of_test(results).facts)["Planted"] == (
        "4 documents, 0 taken back, the removal of 4 accepted, which nobody could check"
    )
    assert results.to_dict()["cleanup"]["accepted"] == 4


def test_a_search_is_a_look(tmp_path):
    class Searched(Silent):
        find = found

    results = tried(tmp_path, Searched())
    assert (results.planted, results.removed, results.accepted) == (4, 4, 0)


def test_a_rehearsal_that_is_never_read_says_that_nobody_looked(tmp_path):
    class Blind(Scripted):
        def ask(self, question: str) -> Answered:
            return Answered("I don't know", ("a passage of its own",))

    results = tried(tmp_path, Blind(), wait={"seconds": 1})
    assert results.removed == 0
    assert any("was never among the passages" in problem for problem in results.problems)


def test_a_second_run_of_a_journal_counts_its_own_documents(tmp_path):
    first, second = tried(tmp_path, Scripted()), tried(tmp_path, Scripted())
    assert (first.planted, first.removed) == (second.planted, second.removed) == (4, 4)
    assert second.complete


def test_what_is_still_read_after_its_removal_may_remain(tmp_path):
    class Forgetful(Scripted):
        def remove(self, handles: list[str]) -> None:
            """Removes the rehearsal only."""
            super().remove([handle for handle in handles if "belongs to a test" in self.documents.get(handle, "")])

    system = Forgetful()
    results = tried(tmp_path, system, questions=1, wait={"seconds": 1})
    assert (results.planted, results.removed, results.accepted) == (2, 1, 0)
    assert {canary for canary, _ in results.remaining} == system.documents.keys()
    assert not results.complete


class TxtAi(BaseHTTPRequestHandler):
    """Its add, upsert, delete and search, with the replies that it gives."""

    staged: ClassVar[dict[str, str]] = {}
    index: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        self.index.update(self.staged)
        self.staged.clear()
        self.reply(None)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/add":
            self.staged.update({row["id"]: row["text"] for row in body})
            self.reply(None)
        elif self.path == "/delete":
            self.reply([name for name in body if self.index.pop(name, None) is not None])
        else:
            texts = list(self.index.values())
            self.reply({"answer": texts[0] if texts else "", "passages": texts})

    def reply(self, value: object) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_txtai_as_the_documentation_describes_it(tmp_path):
    example = next(block for block in blocks(ROOT / "docs" / "redteam.md") if "/upsert" in block.text)
    server = ThreadingHTTPServer(("127.0.0.1", 0), TxtAi)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        write_world(tmp_path, 2)
        text = example.text.replace("http://127.0.0.1:8000", f"http://127.0.0.1:{server.server_port}")
        (tmp_path / "redteam.yaml").write_text(text + "questions: questions.jsonl\nlimits: {in_flight: 1}\n")
        config = Config.load(tmp_path / "redteam.yaml")
        results = run_test(config, tmp_path / "j.jsonl", secrets=Secrets({}), hosts=Hosts(), clock=Quick())
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
    assert results.complete, results.problems
    assert (results.planted, results.removed, results.accepted) == (3, 3, 0)
    assert (TxtAi.index, TxtAi.staged) == ({}, {})
