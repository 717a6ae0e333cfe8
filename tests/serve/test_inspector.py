"""The inspector as the server sends it; `tests/browser/test_inspector_in_browser.py` opens it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from fastapi.testclient import TestClient

from service_doubles import Serving, body, problem
from unpoison import Guard
from unpoison.io.rows import load_sample

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} {% raw %}'


class Elements(HTMLParser):
    """Collects every element with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_page_is_strict_with_itself(client: TestClient) -> None:
    reply = client.get("/")
    policy = dict(part.strip().split(" ", 1) for part in reply.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    page = Elements(reply.text)
    assert [script["src"] for script in page.of("script")] == ["assets/inspector.js"]
    assert not page.of("style")
    for _, attributes in page.found:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert not any("//" in (attributes.get(name) or "") for name in ("src", "href"))


def test_everything_to_fill_in_has_a_label(serving: Serving) -> None:
    page = Elements(serving(key="secret").get("/").text)
    labelled = {label["for"] for label in page.of("label")}
    for tag in ("input", "select", "textarea"):
        for attributes in page.of(tag):
            assert attributes["id"] in labelled
    assert "key" in labelled
    assert page.of("html")[0]["lang"] == "en"


def test_key_is_not_asked_for_where_there_is_none(client: TestClient) -> None:
    assert 'id="key"' not in client.get("/").text


def test_assets_are_those_two(client: TestClient) -> None:
    for name, kind in (("inspector.js", "text/javascript"), ("page.css", "text/css")):
        reply = client.get(f"/assets/{name}")
        assert reply.headers["content-type"].startswith(kind)
        assert len(reply.text) > 500
    for name in ("sample.jsonl", "inspector.html", "..%2fregistry.py", "nothing"):
        problem(client.get(f"/assets/{name}"), 404)


def test_sample_has_poison_in_front(client: TestClient) -> None:
    first = load_sample()[0]
    row = client.get("/sample/0").json()
    assert row["query"] == first.query.text
    assert len(row["passages"]) == 10
    assert [text.startswith(first.query.text) for text in row["passages"]] == [True] * 3 + [False] * 7
    problem(client.get("/sample/99999"), 404)
    assert "should be a valid integer" in problem(client.get("/sample/x"), 422)


def test_inspection_shows_verdicts_reasons_probabilities_and_graph(serving: Serving) -> None:
    guard = Guard()
    reply = serving({"guard": guard}).post("/inspect", json=body())
    screening = guard.screen(body()["query"], body()["passages"])
    shown = Elements(reply.text)
    cards = [item for item in shown.of("li") if "data-probability" in item]
    assert [float(card["data-probability"] or "") for card in cards] == screening.evidence["probability"].tolist()
    assert [card["class"] == "kept" for card in cards] == [verdict.kept for verdict in screening.verdicts]
    (slider,) = shown.of("input")
    assert float(slider["data-threshold"] or "") == screening.evidence["threshold"]
    assert len(shown.of("svg")) == 1
    assert len(re.findall('href="#inspected-passage-', reply.text)) == 4


def test_inspection_without_probabilities_has_no_slider(client: TestClient) -> None:
    shown = client.post("/inspect", json=body()).text
    assert 'id="threshold"' not in shown
    assert "says poison" in shown
    assert "<li>noted</li>" in shown
    assert "there is no graph to draw" in shown


def test_hostile_texts_are_escaped(serving: Serving) -> None:
    passages = [{"text": HOSTILE, "title": HOSTILE, "source": HOSTILE, "id": HOSTILE}, HOSTILE, "lone \ud800 surrogate"]
    content = json.dumps(body(query=HOSTILE, passages=passages)).encode()
    headers = {"Content-Type": "application/json"}
    reply = serving({"guard": Guard()}).post("/inspect", content=content, headers=headers)
    assert reply.status_code == 200
    shown = Elements(reply.text)
    assert not shown.of("script")
    assert not shown.of("img")
    assert "{{ 7 * 7 }}" in reply.text
    assert reply.text.count("&lt;script&gt;") >= 6


def test_what_is_contested_is_shown_and_escaped(serving: Serving) -> None:
    client = serving({"guard": Guard()})
    page = "The museum of the warship stands in {} and was opened to the public by the king."
    sent = {"query": "where is it", "passages": [page.format(city) for city in ("Oslo", "X<img src=x onerror=y>Z")]}
    text = client.post("/inspect", json=sent).text
    assert "sources disagree: " in text
    assert "[0] against [1]" in text
    assert not Elements(text).of("img")
    found = client.post("/v1/screen", json=sent).json()["screening"]["contested"]
    assert [rival["passages"] for rival in found[0]["rivals"]] == [[0], [1]]
    assert found[0]["says"].startswith("sources disagree: ")


VASA = "which city has the museum of the warship Vasa"
PAGES = [
    {"text": "The Vasa Museum is in Gothenburg.", "url": "https://planted.example/1"},
    {"text": "The museum of the warship Vasa is in Stockholm.", "url": "https://ships.example/"},
    {"text": "The warship Vasa is shown in a museum in Stockholm.", "url": "https://museums.example/"},
]


def test_claims_with_their_sources_and_the_status_of_an_answer_are_shown(serving: Serving) -> None:
    client = serving({"guard": Guard(generator="extractive", sources={"known": ["ships.example", "museums.example"]})})
    sent = {"query": VASA, "passages": PAGES}
    screened = client.post("/inspect", json=sent).text
    assert "Stockholm, weight 1.6: museums.example, ships.example (passages 1, 2)" in screened
    assert "Gothenburg, weight 0: planted.example (passage 0)" in screened
    answered = client.post("/inspect/answer", json=sent).text
    assert "agreed: two or more sources say so" in answered
    assert client.post("/v1/answer", json=sent).json()["answer"]["text"] in answered
    assert 'value="answer"' in client.get("/").text


def test_both_sides_of_a_dispute_are_escaped(serving: Serving) -> None:
    client = serving({"guard": Guard(generator="extractive", sources={})})
    texts = ("The museum of the warship Vasa is in X<img src=x onerror=y>Z.", PAGES[1]["text"])
    passages = [{"text": text, "url": f"https://{i}.example/"} for i, text in enumerate(texts)]
    answered = client.post("/inspect/answer", json={"query": VASA, "passages": passages}).text
    assert "disputed: sources contradict each other" in answered
    assert "Sources disagree: " in answered
    assert "&lt;img" in answered
    assert not Elements(answered).of("img")


def test_nobody_answers_without_a_generator(serving: Serving) -> None:
    client = serving({"guard": Guard()})
    problem(client.post("/inspect/answer", json={"query": VASA, "passages": PAGES}), 501)
    assert 'value="answer"' not in client.get("/").text
