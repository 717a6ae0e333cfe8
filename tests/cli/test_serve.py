"""`unpoison serve`: what its options come to. `tests/serve/test_process.py` starts it for real."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from unpoison.serve import server
from unpoison.serve.admission import digest
from unpoison.utils.extras import install_command

Run = Callable[..., Any]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the command would serve; nothing listens."""
    found = SimpleNamespace()

    def serve(make: Callable[[], Any], listening: socket.socket, **given: Any) -> int:
        listening.close()
        app = make()
        options = next(layer.kwargs for layer in app.user_middleware if layer.cls.__name__ == "RequestMiddleware")
        vars(found).update(service=app.state.service, admission=options["admission"], **given)
        return 0

    def listen(host: str, port: int) -> socket.socket:
        vars(found).update(host=host, port=port)
        return socket.create_server(("127.0.0.1", 0))

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(server, "listen", listen)
    monkeypatch.delenv("UNPOISON_API_KEY", raising=False)
    return found


def test_guard_on_this_machine_only_by_default(run: Run, started: SimpleNamespace) -> None:
    assert run("serve").exit_code == 0
    assert list(started.service.choices) == ["guard"]
    assert (started.host, started.port, started.workers) == ("127.0.0.1", 8000, 1)
    assert started.admission.hosts == {"127.0.0.1", "localhost", "::1", "[::1]"}
    assert started.admission.keys is None
    assert started.service.on_poison is None


def test_options_reach_the_service(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNPOISON_API_KEY", "secret")
    monkeypatch.setenv("UNPOISON_SERVE_ON_POISON", "demote")
    (tmp_path / "keys.txt").write_text(f"{digest('other')}  team\n")
    given = "--limit body=1 --limit passages=2 --limit timeout=7.5 --limit in_flight=9"
    result = run("serve", "--host", "192.0.2.1", "--port", 0, "--keys", tmp_path / "keys.txt", *given.split())
    assert result.exit_code == 0, result.output
    assert not result.stderr
    bounds = started.bounds
    assert (bounds.body, bounds.passages, bounds.timeout) == (1, 2, 7.5)
    limits = started.service.choices["guard"].limits
    assert (limits.in_flight, limits.deadline) == (9, 7.5)
    assert [started.admission.keys.holder(key) for key in ("secret", "other")] == ["default", "team"]
    assert not started.admission.hosts
    assert started.service.on_poison == "demote"


def test_radar_remembers_where_the_environment_says(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNPOISON_BELIEFS", "memory")
    assert run("serve", "-d", "radar", "-g", "extractive").exit_code == 0
    assert started.service.choices["radar"].beliefs is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-d", "gard"), "did you mean 'guard'"),
        (("-d", "radar"), "radar needs a generator; give one with --generator"),
        (("-d", "simple", "--nli", "lexical"), "none of simple takes --nli; leave it out"),
        (("-e", "nonsense"), "no encoder 'nonsense'"),
        (("--limit", "pasages=3"), "did you mean 'passages'"),
        (("--limit", "passages=x"), "the limit passages must be a number"),
        (("--limit", "passages=0"), "passages must be"),
        (("--root-path", "no/../path"), "root_path must be like /unpoison"),
        (("--host", "192.0.2.1"), "no key is asked for; set UNPOISON_API_KEY"),
        (("--host", "192.0.2.1", "--workers", "2"), "--without-key"),
    ],
)
def test_mistakes_are_told(run: Run, started: SimpleNamespace, arguments: tuple[str, ...], said: str) -> None:
    result = run("serve", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert "service" not in vars(started)


def test_empty_key_is_no_key_and_no_accident(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNPOISON_API_KEY", " ")
    result = run("serve")
    assert (result.exit_code, "UNPOISON_API_KEY is empty" in result.stderr) == (2, True)


def test_a_service_without_a_key_says_so_when_it_starts(run: Run, started: SimpleNamespace) -> None:
    result = run("serve", "--host", "192.0.2.1", "--without-key")
    assert result.exit_code == 0
    assert "warning: 192.0.2.1 may be reached by others, and no key is asked for" in result.stderr


def test_the_playground_opens_on_a_free_port_of_this_machine(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = run("serve", "--play")
    assert result.exit_code == 0
    assert (started.host, started.port) == ("127.0.0.1", 0)
    assert opened[0].startswith("http://127.0.0.1:")
    assert f"the playground is at {opened[0]}" in result.stderr


def test_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = run("serve")
    assert result.exit_code == 2
    assert f"the HTTP service needs fastapi; run: {install_command('serve')}" in result.stderr
