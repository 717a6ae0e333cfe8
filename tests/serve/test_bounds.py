"""Passages longer than is judged: their beginning is, the rest is read by nobody, and the request goes on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service_doubles import Cuts, Marked, Serving, body
from unpoison import Passage, Query
from unpoison.errors import InputError, OptionError, UnknownNameError
from unpoison.models import ScriptedGenerator
from unpoison.serve import Bounds
from unpoison.serve.bounds import beginnings, screening_of_all

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "production.md").read_text(encoding="utf-8")
LONG = "clean " * 3334  # 20,004 characters


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/v2/rerank", {"model": "m", "query": "q", "documents": ["clean", LONG, "poison"]}),
        ("/v1/rerank", {"query": "q", "documents": [{"text": "clean"}, {"text": LONG}, "poison"]}),
        ("/rerank", {"query": "q", "texts": ["clean", LONG, "poison"]}),
    ],
)
def test_who_pairs_scores_with_positions_is_not_told_to_read_what_nobody_judged(
    client: TestClient, path: str, sent: Any
) -> None:
    reply = client.post(path, json=sent).json()
    rows = reply["results"] if isinstance(reply, dict) else reply
    scores = {row["index"]: row.get("score", row.get("relevance_score")) for row in rows}
    assert scores[0] and not scores[1] and not scores[2]


def test_an_answer_is_given_from_what_was_judged(serving: Serving) -> None:
    generator = ScriptedGenerator("Paris")
    client = serving({"marked": Marked(generator=generator)}, bounds=Bounds(characters=100))
    reply = client.post("/v1/answer", json=body(passages=["clean " * 50 + "hidden poison"])).json()
    assert reply["answer"]["text"] == "Paris"
    assert "hidden" not in generator.prompts[0].passages[0]
    assert "passages[0] was read to its character 100 of 313" in reply["screening"]["notes"]
    assert "hidden" not in reply["screening"]["texts"][0]


@pytest.mark.parametrize("title", [None, "a title", "a long title " * 40])
def test_spans_and_the_rest_are_those_of_the_callers_text(title: str | None) -> None:
    whole = Passage(f"clean poison {'clean ' * 160}poison", title=title)
    passages = (Passage("clean"), whole)
    shown = beginnings(passages, 600)
    assert shown[0] is passages[0] and len(shown[1].raw) == 600
    screening = screening_of_all(Cuts().screen("q", shown), passages, 600)
    assert screening.passages == passages
    spans = screening.verdicts[1].spans
    said = [(whole.text if span.field == "text" else whole.title or "")[span.start : span.end] for span in spans]
    assert said[0] == "poison"
    assert said[-1].endswith("clean poison")
    assert "poison" not in screening.texts[1]
    assert len(screening.texts[1]) < 640


def test_spans_and_texts_of_the_service(serving: Serving) -> None:
    client = serving({"cuts": Cuts()})
    sent = {"query": "q", "passages": ["clean", "a pois\u200bon b"]}
    reply = client.post("/v1/screen", json=sent).json()["screening"]
    assert reply["texts"] == ["clean", "a [removed] b"]
    assert reply["verdicts"][1]["spans"] == [
        {"start": 2, "end": 9, "probability": 0.9, "reason": "bad", "field": "text"}
    ]
    page = client.post("/play", json={"query": "q", "passages": ["clean", "<b>&amp;</b> poison"]}).text
    assert '&lt;b&gt;&amp;amp;&lt;/b&gt; <mark class="cut" title="0.90: bad">poison</mark>' in page


def test_a_limit_is_the_largest_number_that_is_taken() -> None:
    bounds = Bounds(passages=2, characters=9, total=12)
    bounds.check_number(2)
    with pytest.raises(InputError, match=r"^3 documents were sent and at most 2 are taken"):
        bounds.check_number(3, "documents")
    whole = (Passage("x" * 6), Passage("x" * 4, title="yy"))
    bounds.check(Query("q" * 9), whole)
    for query, passages in (("q" * 10, whole), ("q", (*whole[:1], Passage("x" * 4, title="yyy")))):
        with pytest.raises(InputError, match="at most"):
            bounds.check(Query(query), passages)
    exact = Passage("x" * 9)
    assert beginnings((exact,), 9)[0] is exact
    assert beginnings((exact,), 8)[0].text == "x" * 8


def test_the_limits_are_those_that_the_page_tells() -> None:
    told = re.findall(r"^\| `(\w+)`[^|]*\| ([\d,]+)( MiB)? \|", PAGE, re.MULTILINE)
    assert len(told) == 11
    for name, number, unit in told:
        assert getattr(Bounds(), name) == int(number.replace(",", "")) * (2**20 if unit else 1), name
    assert f"(`grace`, {Bounds().grace:g} s)" in PAGE


@pytest.mark.parametrize("name", ["body", "passages", "total", "max_concurrency", "threads", "in_flight"])
def test_there_is_one_of_each_at_least(name: str) -> None:
    assert getattr(Bounds.of([f"{name}=1"]), name) == 1
    for wrong in (f"{name}=0", f"{name}=1.5", name):
        with pytest.raises(OptionError):
            Bounds.of([wrong])


def test_times_are_positive_and_nothing_may_be_tried_again() -> None:
    bounds = Bounds.of(["retries=0", "grace=0", "timeout=0.5", "wait=0.5"])
    assert (bounds.retries, bounds.grace, bounds.timeout, bounds.wait) == (0, 0.0, 0.5, 0.5)
    for wrong in ("timeout=0", "wait=0", "retries=-1", "grace=-1", "timeout=nan"):
        with pytest.raises(OptionError):
            Bounds.of([wrong])
    with pytest.raises(UnknownNameError, match="did you mean 'passages'"):
        Bounds.of(["pasages=3"])
