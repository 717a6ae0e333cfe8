"""The playground's replies and an incident's page: no text in them becomes markup, a link, a script or a template."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from hostile_texts import LINK, PAYLOAD, check, hostile
from unpoison import Guard
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Claim, Contest, Evidence, Rival, Span
from unpoison.defenses.base import Defense
from unpoison.models import ScriptedGenerator
from unpoison.models.requests import Flow
from unpoison.serve import create_app
from unpoison.sources import Sources

FIELDS = {name: hostile(name) for name in ("text", "title", "source", "id")}
BODY = {
    "query": hostile("question"),
    "passages": [
        FIELDS | {"metadata": {hostile("key"): hostile("value")}},
        hostile("bare"),
        {"text": LINK, "url": LINK},
    ],
    "trust": {hostile("origin"): "trusted", LINK: "blocked"},
}


class Hostile(Defense):
    """Everything that a defense may say is hostile."""

    name = "hostile"
    summary = hostile("summary")

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        k = len(passages)
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=[0],
            scores=[0.5] * k,
            reasons=[hostile("reason")] * k,
            evidence=Evidence({}, (hostile("note"),)),
            contested=[Contest((Rival(hostile("rival"), (0,), 1), Rival(LINK, (1,), 1)))],
            claims=[Claim(hostile("claim"), 1.0, (LINK,), (0,), (hostile("quote"),))],
            spans={i: [Span(0, 60, 0.9, hostile("span"))] for i in (0, 1)},
        )
        yield ()


def client_of(defense: Defense) -> TestClient:
    return TestClient(create_app({"one": defense}))


def replies(defense: Defense) -> list[str]:
    with client_of(defense) as client:
        return [client.post(path, json=BODY).text for path in ("/play", "/play/answer")]


def test_whatever_a_defense_says_on_the_playground() -> None:
    for text in replies(Hostile(generator=ScriptedGenerator(hostile("answer")))):
        check(text, ["text", "source", "bare", "reason", "note", "rival", "claim", "span"])
    check(text, ["answer"])
    assert PAYLOAD not in text


@pytest.mark.parametrize("generator", [ScriptedGenerator(hostile("answer")), "extractive"])
def test_whatever_a_passage_says_on_the_playground(generator: Any) -> None:
    for text in replies(Guard(generator=generator, sources=Sources({"known": ["a.example"]}))):
        check(text, ["source"])


def test_the_page_of_the_playground_shows_what_a_defense_says_of_itself_as_text() -> None:
    with client_of(Hostile()) as client:
        page = client.get("/").text
    assert PAYLOAD not in page
    assert "summary-field x{{7*7}}x" in page
