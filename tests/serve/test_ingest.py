"""`/v1/ingest/check`: documents judged before they are indexed."""

from __future__ import annotations

from fastapi.testclient import TestClient

from scan.corpora import honest, planted
from unpoison.serve import Bounds, create_app


def test_decisions_come_in_the_order_of_the_documents() -> None:
    with TestClient(create_app()) as client:
        sent = [honest(30)[25], *planted()]
        reply = client.post("/v1/ingest/check", json={"documents": sent, "neighbours": honest(25)})
        decisions = reply.json()["decisions"]
        assert [one["id"] for one in decisions] == [one["id"] for one in sent]
        assert decisions[0]["decision"] == "accept"
        assert all(one["decision"] != "accept" for one in decisions[1:])
        assert client.post("/v1/ingest/check", json={"documents": ["one text"]}).json()["decisions"][0]["id"]


def test_what_cannot_be_judged_is_refused() -> None:
    with TestClient(create_app(bounds=Bounds(passages=3, characters=100))) as client:
        assert client.post("/v1/ingest/check", json={"documents": [{"id": "x"}]}).status_code == 422
        assert client.post("/v1/ingest/check", json={"documents": ["a"] * 4}).status_code == 422
        long = client.post("/v1/ingest/check", json={"documents": ["a" * 101]})
        assert long.status_code == 422
        assert "send it in parts" in long.json()["error"]["message"]
