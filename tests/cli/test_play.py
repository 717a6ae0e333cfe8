"""`unpoison play`: what it serves; `tests/browser/test_playground_in_browser.py` opens the page."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from unpoison.models import loading
from unpoison.serve import server

Run = Callable[..., Any]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the command would serve, and the page that it opened."""
    found = SimpleNamespace(opened=[])
    monkeypatch.setattr(
        server, "serve", lambda app, **given: vars(found).update(service=app.state.service, app=app, **given)
    )
    monkeypatch.setattr(webbrowser, "open", found.opened.append)
    return found


def test_it_serves_this_machine_alone_and_says_where(run: Run, started: SimpleNamespace) -> None:
    result = run("play", "-g", "extractive")
    assert result.exit_code == 0, result.output
    assert "the playground is at http://127.0.0.1:" in result.stderr
    assert started.opened == []
    guard = started.service.choices["guard"]
    assert guard.models.generator.name == "extractive"
    assert guard.sources is not None  # each source has one voice


def test_it_opens_the_page_where_asked(run: Run, started: SimpleNamespace) -> None:
    assert run("play", "--open", "-g", "extractive").exit_code == 0
    assert [url.startswith("http://127.0.0.1:") for url in started.opened] == [True]


def test_without_the_reader_one_sentence_says_so(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "best_reader", lambda: "extractive")
    result = run("play")
    assert result.exit_code == 0
    assert result.stderr.count("The reader is not installed") == 1
    assert started.service.choices["guard"].models.generator is None


def test_sources_and_defenses_are_as_for_serve(run: Run, started: SimpleNamespace, tmp_path) -> None:
    policy = tmp_path / "sources.yaml"
    policy.write_text("known: [ships.example]\n")
    assert run("play", "-g", "extractive", "-d", "guard", "-d", "vote", "--sources", str(policy)).exit_code == 0
    assert list(started.service.choices) == ["guard", "vote"]
    assert started.service.choices["vote"].sources.policy.informed
