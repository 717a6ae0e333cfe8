"""`unpoison serve`: what its options come to. `tests/serve/test_process.py` starts it for real."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from unpoison.errors import OptionError
from unpoison.serve import server, sockets
from unpoison.serve.sockets import Loads
from unpoison.utils.extras import install_command

Run = Callable[..., Any]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the command would serve; nothing listens."""
    found = SimpleNamespace()
    monkeypatch.setattr(
        server, "serve", lambda app, **given: vars(found).update(app=app, service=app.state.service, **given)
    )

    def listen(host: str, port: int, path: Path | None) -> socket.socket:
        vars(found).update(host=host, port=port, path=path)
        return socket.socket()

    monkeypatch.setattr(sockets, "listen", listen)
    monkeypatch.delenv("UNPOISON_API_KEY", raising=False)
    return found


def middleware_options(found: SimpleNamespace) -> dict[str, Any]:
    return next(layer.kwargs for layer in found.app.user_middleware if layer.cls.__name__ == "RequestMiddleware")


def admission(found: SimpleNamespace) -> Any:
    return middleware_options(found)["admission"]


def test_guard_on_this_machine_only_by_default(run: Run, started: SimpleNamespace) -> None:
    assert run("serve").exit_code == 0
    assert list(started.service.choices) == ["guard"]
    assert (started.host, started.port) == ("127.0.0.1", 8000)
    assert admission(started).hosts == {"127.0.0.1", "localhost", "::1", "[::1]"}
    assert admission(started).keys is None
    assert (started.drain, started.grace) == (5, 20)
    assert started.service.on_poison is None
    assert started.service.log_dropped is False


def test_the_playground_can_be_left_out(run: Run, started: SimpleNamespace) -> None:
    for options, status in (((), 200), (("--without-playground",), 404)):
        assert run("serve", *options).exit_code == 0
        assert TestClient(started.app, base_url="http://localhost").get("/").status_code == status


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
    limits = started.service.choices["guard"].limits
    assert (limits.in_flight, limits.deadline) == (9, 7.5)
    assert admission(started).keys.holder("secret") is not None
    assert not admission(started).hosts
    assert started.service.on_poison == "demote"


def test_models_are_loaded_once_for_all_defenses(run: Run, started: SimpleNamespace) -> None:
    options = "-d guard -d trustrag:stages=1 -e lexical -g extractive"
    assert run("serve", *options.split()).exit_code == 0
    guard, trustrag = started.service.choices.values()
    assert list(started.service.choices) == ["guard", "trustrag:stages=1"]
    assert guard.models.encoder is trustrag.models.encoder
    assert guard.models.generator is trustrag.models.generator is not None


def test_model_goes_to_the_defenses_that_take_it(run: Run, started: SimpleNamespace) -> None:
    assert run("serve", "-d", "simple", "-d", "radar", "-g", "extractive", "--nli", "lexical").exit_code == 0
    simple, radar = started.service.choices.values()
    assert simple.models.nli is None
    assert radar.models.nli is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-d", "gard"), "did you mean 'guard'"),
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


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_others_are_not_served_without_a_key_unless_it_is_said_so(
    run: Run, started: SimpleNamespace, more: tuple[str, ...]
) -> None:
    result = run("serve", "--host", "192.0.2.1", *more)
    assert result.exit_code == 2
    assert "192.0.2.1 may be reached by others, and no key is asked for; set UNPOISON_API_KEY" in result.stderr
    assert not vars(started)
    assert "--without-key" in result.stderr
    assert not run("serve").stderr


def test_a_service_without_a_key_says_so_when_it_starts(run: Run, started: SimpleNamespace) -> None:
    result = run("serve", "--host", "192.0.2.1", "--without-key")
    assert result.exit_code == 0
    assert "warning: 192.0.2.1 may be reached by others, and no key is asked for" in result.stderr
    assert started.host == "192.0.2.1"


def test_options_of_requests_need_a_flag(run: Run, started: SimpleNamespace) -> None:
    run("serve", "-e", "lexical")
    with pytest.raises(OptionError, match="not accepted here"):
        started.service.choices.pick("guard:damage=0.05")
    run("serve", "-e", "lexical", "--allow-options")
    made = started.service.choices.pick("guard:damage=0.05")
    assert made.damage == 0.05
    assert made.models.encoder is started.service.choices["guard"].models.encoder


def test_radar_remembers_where_it_is_told(run: Run, started: SimpleNamespace) -> None:
    assert run("serve", "-d", "radar", "-g", "extractive", "--beliefs", "memory").exit_code == 0
    assert started.service.choices["radar"].beliefs is not None


def test_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = run("serve")
    assert result.exit_code == 2
    assert f"the HTTP service needs fastapi; run: {install_command('serve')}" in result.stderr


SETTINGS = """
defense = ["grada:keep=3", "guard"]
on-poison = "demote"
max_body = 1000
timeout = 7.5
log-dropped = true
"""


def test_a_file_sets_what_flags_set_and_flags_and_environment_count_before_it(
    run: Run, started: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "serve.toml").write_text(SETTINGS)
    monkeypatch.setenv("UNPOISON_SERVE_TIMEOUT", "8")
    monkeypatch.setenv("UNPOISON_SERVE_MAX_BODY", "2000")
    assert run("serve", "--max-body", 3000, "--config", tmp_path / "serve.toml").exit_code == 0
    assert list(started.service.choices) == ["grada:keep=3", "guard"]
    assert (started.service.on_poison, started.service.log_dropped) == ("demote", True)
    assert (started.bounds.body, started.bounds.timeout) == (3000, 8)


def test_every_option_is_a_key_of_the_file_and_a_variable() -> None:
    from typer.main import get_command

    from unpoison.cli import app

    command = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    context = command.make_context("serve", [], resilient_parsing=True, auto_envvar_prefix="UNPOISON_SERVE")
    for option in command.params:
        if option.name != "help":
            assert option.opts[0].startswith("--")
            said = option.get_help_record(context)[1]
            assert f"UNPOISON_SERVE_{option.name.upper()}" in said.replace("\n", ""), option.name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("on_poson = 'drop'", "did you mean 'on-poison'?"),
        ("config = 'x'", "no setting of serve.toml is named 'config'"),
        ("port = [1, 2]", "port takes one value"),
        ("[serve]\nport = 1", "serve"),
        ("port = 'x'", "port"),
        ("port = 70000", "port"),
        ("port = ", "are no TOML"),
        ("a = " + "[" * 5000, "are no TOML"),
    ],
)
def test_a_mistake_in_the_file_is_told(
    run: Run, started: SimpleNamespace, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "serve.toml").write_text(text)
    result = run("serve", "--config", tmp_path / "serve.toml")
    assert result.exit_code == 2
    assert said in result.stderr
    assert not vars(started)


def test_a_missing_file_is_told(run: Run, started: SimpleNamespace, tmp_path: Path) -> None:
    result = run("serve", "--config", tmp_path / "none.toml")
    assert (result.exit_code, "cannot be read" in result.stderr) == (2, True)


def test_new_key_opens_and_is_not_in_the_file(run: Run, started: SimpleNamespace, tmp_path: Path) -> None:
    made = run("keys", "chat", "--scope", "answer", "--rate", 5, "--burst", 20)
    (tmp_path / "keys.toml").write_text(made.stdout)
    text = made.stderr.rpartition(" ")[2].strip()
    assert text not in made.stdout
    assert run("serve", "--keys", tmp_path / "keys.toml").exit_code == 0
    key = admission(started).keys.holder(text)
    assert (key.name, key.scopes, key.rate, key.most) == ("chat", {"answer"}, 5, 20)
    assert run("keys", "x", "--scope", "none").stdout.count("scopes = []") == 1
    assert run("keys", "x", "--scope", "rule").exit_code == 2


def test_root_path_must_be_one(run: Run, started: SimpleNamespace) -> None:
    result = run("serve", "--root-path", "no/../path")
    assert (result.exit_code, "root_path must be like /unpoison" in result.stderr) == (2, True)


def test_workers_share_rates(
    run: Run, started: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    read, _ = os.pipe()
    with (tmp_path / "loads").open("w+b") as loads:
        loads.truncate(4 * Loads.BYTES)
        monkeypatch.setenv("UNPOISON_WORKER", f"{socket.socket().detach()},{read},{loads.fileno()},3")
        assert run("serve", "--workers", 4).exit_code == 0
        assert admission(started).rates._share == 0.25
