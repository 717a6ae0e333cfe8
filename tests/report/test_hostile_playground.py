"""The playground's replies and an incident's page: no text in them becomes markup, a link, a script or a template."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from hostile_texts import LINK, PAYLOAD, check, hostile
from unpoison import Guard
from unpoison.bench.incident.case import Case
from unpoison.bench.incident.page import incident_page
from unpoison.bench.incident.proof import Count, Proof
from unpoison.bench.incident.reach import Reach, ReachedQuestion
from unpoison.bench.incident.results import Incident, Regression, Spared, Verdict
from unpoison.bench.incident.scope import Accomplice, Suspect
from unpoison.defenses.base import Defense
from unpoison.models import ScriptedGenerator
from unpoison.models.requests import Flow
from unpoison.serve import create_app
from unpoison.sources import Sources
from unpoison.types import Claim, Contest, Evidence, Passage, Query, Rival, Screening, Span

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
            evidence=Evidence({"graph": np.ones((k, k))}, (hostile("note"),), "graph"),
            contested=[Contest((Rival(hostile("rival"), (0,), 1), Rival(LINK, (1,), 1)))],
            claims=[Claim(hostile("claim"), 1.0, (LINK,), (0,), (hostile("quote"),))],
            spans={1: [Span(0, 60, 0.9, hostile("span"))]},
        )
        yield ()


def client_of(defense: Defense) -> TestClient:
    return TestClient(create_app({"one": defense}))


def replies(defense: Defense) -> list[str]:
    with client_of(defense) as client:
        return [client.post(path, json=BODY).text for path in ("/play", "/play/answer")]


def test_whatever_a_defense_says_on_the_playground() -> None:
    told = ["question", "text", "title", "source", "id", "key", "value", "bare"]
    for text in replies(Hostile(generator=ScriptedGenerator(hostile("answer")))):
        check(text, [*told, "reason", "note", "rival", "claim", "span"])
    check(text, ["answer"])
    assert PAYLOAD not in text


@pytest.mark.parametrize("generator", [ScriptedGenerator(hostile("answer")), "extractive"])
def test_whatever_a_passage_says_on_the_playground(generator: Any) -> None:
    for text in replies(Guard(generator=generator, sources=Sources({"known": ["a.example"]}))):
        check(text, ["question", "text", "source", "bare"])


def test_the_page_of_the_playground_shows_what_a_defense_says_of_itself_as_text() -> None:
    with client_of(Hostile()) as client:
        page = client.get("/").text
    assert PAYLOAD not in page
    assert "summary-field x{{7*7}}x" in page


def incident() -> Incident:
    guilty = Suspect(hostile("guilty"), hostile("text"), (hostile("origin"), LINK), True, 0.5, 1.0)
    other = Suspect(LINK, LINK, (), False, 0.1, 0.2)
    spared = replace(guilty, id=hostile("spared"))
    always, never = Count(4, 4), Count(0, 4)
    asked = ReachedQuestion(hostile("asked"), 3, 0.0, 1.0, {hostile("read"), LINK})
    reach = Reach(
        9,
        1,
        3,
        1,
        0.0,
        1.0,
        [asked],
        [(hostile("person"), 3), (LINK, 1)],
        {hostile("party"): [hostile("company"), LINK]},
    )
    steps = (
        {"event": "proven", "at": hostile("time"), "proofs": [{"documents": [{"id": hostile("proven")}]}]},
        {"event": "repaired", "at": "now", "quarantined": [hostile("moved")]},
        {"event": hostile("event"), "at": "now"},
    )
    return Incident(
        case=Case(
            hostile("question"), hostile("answer"), (hostile("right"), LINK), hostile("when"), hostile("who"),
            hostile("source"),
        ),
        verdict=Verdict.REPAIRED, stability=always, before=(hostile("before"), LINK), after=(hostile("after"),),
        proofs=(Proof((guilty, other), always, never), Proof((guilty,), always, always)),
        spared=(Spared(spared, always, never),), suspects=(guilty, other),
        accomplices=(Accomplice(hostile("accomplice"), LINK, hostile("reason")),), quarantined=(hostile("held"), LINK),
        regressions=(Regression(hostile("regression"), (LINK,), hostile("then"), hostile("now")),), reach=reach,
        timeline=steps, notes=(hostile("note"), LINK), asked=1, budget=2, documents=3, store=hostile("store"),
        quarantine=hostile("place"), journal=hostile("journal"),
    )  # fmt: skip


def test_incidents() -> None:
    found = incident()
    text = incident_page(found)
    in_case = ["question", "answer", "right", "when", "who", "source", "store", "before", "after"]
    in_parts = ["guilty", "text", "origin", "accomplice", "reason", "held", "place", "journal", "note", "time", "event"]
    in_reach = ["asked", "read", "person", "party", "company", "regression", "then", "now", "proven", "moved", "spared"]
    check(text, [*in_case, *in_parts, *in_reach])
    assert PAYLOAD not in text
    assert json.loads(found.to_json())["case"]["answer"] == hostile("answer")
