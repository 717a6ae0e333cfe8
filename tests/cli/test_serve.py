"""`unpoison serve`: what its options come to. `tests/service/test_service_process.py` starts it for real."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from unpoison.service import server

Run = Callable[..., Any]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the command would serve; nothing listens."""
    found = SimpleNamespace()
    monkeypatch.setattr(server, "serve", lambda app, **given: vars(found).update(app=app, desk=app.state.desk, **given))
    monkeypatch.delenv("UNPOISON_API_KEY", raising=False)
    return found


def gate(found: SimpleNamespace) -> dict[str, Any]:
    return next(layer.kwargs for layer in found.app.user_middleware if layer.cls.__name__ == "Gate")


def test_guard_on_this_machine_only_by_default(run: Run, started: SimpleNamespace) -> None:
    assert run("serve").exit_code == 0
    assert list(started.desk.choices) == ["guard"]
    assert (started.host, started.port) == ("127.0.0.1", 8000)
    assert set(gate(started)["hosts"]) == {"127.0.0.1", "localhost", "::1", "[::1]"}
    assert gate(started)["key"] is None
    assert started.desk.on_poison == "drop"
    assert started.desk.log_dropped is False


def test_options_reach_the_service(run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNPOISON_API_KEY", "secret")
    sizes = "--max-body 1 --max-passages 2 --max-characters 3 --max-dimensions 4 --at-once 5 --threads 6 --timeout 7.5"
    result = run("serve", "--host", "192.0.2.1", "--port", 0, "--on-poison", "demote", *sizes.split(), "--in-flight", 9)
    assert result.exit_code == 0
    assert not result.stderr
    assert "secret" not in result.output
    bounds = started.bounds
    assert (bounds.body, bounds.passages, bounds.characters, bounds.dimensions) == (1, 2, 3, 4)
    assert (bounds.at_once, bounds.threads, bounds.timeout) == (5, 6, 7.5)
    limits = started.desk.choices["guard"].limits
    assert (limits.in_flight, limits.deadline) == (9, 7.5)
    assert (gate(started)["key"], gate(started)["hosts"]) == ("secret", ())
    assert started.desk.on_poison == "demote"


def test_models_are_loaded_once_for_all_defenses(run: Run, started: SimpleNamespace) -> None:
    options = "-d guard -d trustrag:stages=1 -e lexical -g extractive"
    assert run("serve", *options.split()).exit_code == 0
    guard, trustrag = started.desk.choices.values()
    assert list(started.desk.choices) == ["guard", "trustrag:stages=1"]
    assert guard.models.encoder is trustrag.models.encoder
    assert guard.models.generator is trustrag.models.generator is not None


def test_model_goes_to_the_defenses_that_take_it(run: Run, started: SimpleNamespace) -> None:
    assert run("serve", "-d", "simple", "-d", "radar", "-g", "extractive", "--nli", "lexical").exit_code == 0
    simple, radar = started.desk.choices.values()
    assert simple.models.nli is None
    assert radar.models.nli is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-d", "gard"), "did you mean 'guard'?"),
        (("-d", "guard:alpha=1"), "guard has no option 'alpha'"),
        (("-d", "radar"), "radar needs a generator; give one with --generator"),
        (("-d", "simple", "--nli", "lexical"), "none of simple takes --nli; leave it out"),
        (("--beliefs", "memory"), "none of guard takes --beliefs; leave it out"),
        (("-e", "nonsense"), "no encoder 'nonsense'"),
    ],
)
def test_mistakes_are_told_before_anything_listens(
    run: Run, started: SimpleNamespace, arguments: tuple[str, ...], said: str
) -> None:
    result = run("serve", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not vars(started)


def test_empty_key_is_no_key_and_no_accident(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNPOISON_API_KEY", " ")
    result = run("serve")
    assert result.exit_code == 2
    assert "UNPOISON_API_KEY is empty" in result.stderr


def test_open_door_is_warned_of(run: Run, started: SimpleNamespace) -> None:
    assert "no key is asked for; set UNPOISON_API_KEY" in run("serve", "--host", "192.0.2.1").stderr
    assert not run("serve").stderr


def test_options_of_requests_need_a_flag(run: Run, started: SimpleNamespace) -> None:
    from unpoison.errors import OptionError

    run("serve", "-e", "lexical")
    with pytest.raises(OptionError, match="not accepted here"):
        started.desk.choices.chosen("guard:damage=0.05")
    run("serve", "-e", "lexical", "--allow-options")
    made = started.desk.choices.chosen("guard:damage=0.05")
    assert made.damage == 0.05
    assert made.models.encoder is started.desk.choices["guard"].models.encoder


def test_radar_remembers_where_it_is_told(run: Run, started: SimpleNamespace) -> None:
    assert run("serve", "-d", "radar", "-g", "extractive", "--beliefs", "memory").exit_code == 0
    assert started.desk.choices["radar"].beliefs is not None


def test_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = run("serve")
    assert result.exit_code == 2
    assert "the HTTP service needs fastapi; run: pip install 'unpoison[serve]'" in result.stderr
