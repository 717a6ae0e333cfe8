"""The audit log of the service: who asked, what was dropped; and that a broken log breaks no request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service_doubles import POISONED, Marked, Serving
from unpoison.models import ExtractiveReader
from unpoison.scan.audit_log import AuditLog


def test_every_screening_is_written_down_with_who_asked(serving: Serving, tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.jsonl", texts="keep") as log:
        client = serving({"marked": Marked()}, audit=log, on_poison="demote")
        documents = [{"text": text, "id": str(i), "author": "Eve"} for i, text in enumerate(POISONED)]
        client.post("/v1/screen", json={"query": "q", "passages": documents}, headers={"X-Request-Id": "r1"})
        client.post("/rerank", json={"query": "q2", "documents": documents})
        client.post("/rerank", json={"query": "q2"})
        client.get("/healthz")
    first, second = (json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines())
    assert first["request"] == {"id": "r1", "route": "/v1/screen", "client": "testclient"}
    assert [(p["id"], p["author"], p["kept"]) for p in first["passages"]] == [
        ("0", "Eve", True),
        ("1", "Eve", False),
        ("2", "Eve", True),
        ("3", "Eve", False),
    ]
    assert (first["action"], second["action"], second["query"]) == ("drop", "demote", "q2")


def test_an_answer_is_written_down_without_a_word_of_it(serving: Serving, tmp_path: Path) -> None:
    with AuditLog(tmp_path / "audit.jsonl") as log:
        client = serving({"marked": Marked(generator=ExtractiveReader())}, audit=log)
        passages = ["The Vasa Museum stands in Stockholm.", "poison in Gothenburg"]
        reply = client.post("/v1/answer", json={"query": "where is the Vasa Museum", "passages": passages})
    assert reply.status_code == 200
    written = (tmp_path / "audit.jsonl").read_text()
    assert json.loads(written)["answer"]["abstained"] is False
    for word in ("Stockholm", "Gothenburg", "Vasa", "Museum"):
        assert word not in written


def test_a_log_that_cannot_be_written_breaks_no_request(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device: secret")

    log = AuditLog(tmp_path / "audit.jsonl")
    monkeypatch.setattr(log, "record", full)
    client = serving({"marked": Marked()}, audit=log)
    assert client.post("/v1/screen", json={"query": "q", "passages": POISONED}).status_code == 200
    assert 'unpoison_unaudited_total{reason="OSError"} 1.0' in client.get("/metrics").text
    assert "audit log not written" in caplog.messages
    assert "secret" not in caplog.text
    log.close()
