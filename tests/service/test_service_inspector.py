"""The inspector as the server sends it; `tests/browser/test_inspector_in_browser.py` opens it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from fastapi.testclient import TestClient

from service_doubles import Serving, body, problem
from unpoison import Guard
from unpoison.rows import load_sample

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


def test_assets_are_those_three(client: TestClient) -> None:
    for name, kind in (("inspector.js", "text/javascript"), ("inspector.css", "text/css"), ("page.css", "text/css")):
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
