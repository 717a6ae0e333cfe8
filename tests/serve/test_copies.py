"""What the playground gives to take along does again what it did, whatever the texts hold."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from unpoison.serve.copies import TOO_MUCH, copies_of
from unpoison.serve.schemas import PlayRequest

HOSTILE = '\'; rm -rf ~ #\n$(id) `id` """ \\ \u202e\u200b\U000e0041 {{ 7 }} Djurgården'
PAGES: list[Any] = [
    "Which city? The Vasa Museum is in Gothenburg.",
    {"text": HOSTILE, "source": HOSTILE, "url": "https://a.example/", "score": 0.5},
    {"text": "The Vasa Museum is in Stockholm.", "source": "https://ships.example/"},
]


def request(**more: Any) -> PlayRequest:
    return PlayRequest(query=HOSTILE, passages=PAGES, **more)


def run(text: str) -> dict[str, Any]:
    """What the names of a copied program come to."""
    names: dict[str, Any] = {}
    exec(compile(text, "copied", "exec"), names)  # noqa: S102  our own text, made of hostile parts: it must be a program
    return names


def test_python_screens_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(copies_of(request(trust={"ships.example": "known"}), "guard", "extractive", keyed=False).python)
    assert names["query"] == HOSTILE
    assert names["passages"] == PAGES
    assert names["defense"].sources.policy.level(None, "ships.example") == "known"
    assert names["defense"].models.generator.name == "extractive"
    assert "guard: kept" in capsys.readouterr().out


def test_python_has_the_threshold_and_no_model_of_others(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(copies_of(request(threshold=0.25), "guard:damage=0.01", "gpt-x", keyed=False).python)
    assert (names["defense"].threshold, names["defense"].damage) == (0.25, 0.01)
    assert names["defense"].models.generator is None
    assert "policy" not in names


def test_a_source_called_star_is_not_everybody_in_the_copied_policy() -> None:
    trust = {"*": "trusted", "github.com/*": "blocked", "two\nlines": "known", "ships.example": "known"}
    copies = copies_of(request(trust=trust), "guard", None, keyed=False)
    policy = run(copies.python)["defense"].sources.policy
    assert [policy.level(None, name) for name in ("ships.example", "mallory.example")] == ["known", None]
    assert policy.level(None, "github.com/mallory") is None
    assert '"*"' not in copies.curl.splitlines()[0]


def test_what_would_make_a_huge_page_is_not_shown() -> None:
    nested: list[Any] = []
    for _ in range(900):
        nested = [nested]
    for passage in ("'" * 400_000, {"text": "a", "metadata": {"x": nested}}):
        copies = copies_of(PlayRequest(query="q", passages=[passage]), "guard", None, keyed=False)
        assert set(copies) == {TOO_MUCH}


def test_curl_is_one_command_with_the_same_body() -> None:
    copies = copies_of(request(defense="guard", trust={"a.example": "blocked"}), "guard", None, keyed=True)
    comment, command = copies.curl.splitlines()
    assert comment.startswith("# ")
    words = shlex.split(command)
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8000/v1/screen"]
    assert "Authorization: Bearer $UNPOISON_API_KEY" in words
    assert json.loads(words[-1]) == {"query": HOSTILE, "passages": PAGES, "defense": "guard"}
    answered = copies_of(request(), "guard", "extractive", keyed=False).curl
    assert "/v1/answer" in answered
    assert "Authorization" not in answered


def test_row_is_one_line_in_which_everything_is_seen() -> None:
    row = copies_of(request(), "guard", None, keyed=False).row
    assert row.isascii()
    assert "\n" not in row
    assert json.loads(row) == {"query": HOSTILE, "passages": PAGES}
    python = copies_of(request(), "guard", None, keyed=False).python
    assert "\u202e" not in python
    assert "\U000e0041" not in python
