"""Options by the name that they had: answered with the new one, in Python, option strings and commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from unpoison import Guard
from unpoison.cli import app
from unpoison.defenses.loading import load_defense
from unpoison.errors import OptionError
from unpoison.utils.checks import RENAMED, new_name

ROW = '{"query": "who", "passages": ["he", "she"]}\n'


def test_every_new_name_is_an_option() -> None:
    guard = Guard()
    assert all(hasattr(guard, name) and not hasattr(guard, old) for old, (name, _) in RENAMED.items())


def test_a_name_that_no_option_had_is_not_answered() -> None:
    assert new_name("order", "guard") is None
    assert new_name("orders", "guard", ["orders", "prompt_injection"]) is None
    assert new_name("orders", "bm25", ["k"]) is None
    assert new_name("trust_embeddings", "vote", []) is None
    assert new_name("encoder", "unpoison screen") is None


@pytest.mark.parametrize(
    ("option", "value", "answer"),
    [
        ("coefficients", "minilm", "it has one set of coefficients, for every encoder and for none; leave it out"),
        ("trust_embeddings", False, "it reads no embeddings, so forged ones cannot mislead it; leave it out"),
    ],
)
def test_what_guard_had_and_has_no_more(option: str, value: object, answer: str) -> None:
    with pytest.raises(OptionError) as caught:
        Guard(**{option: value})  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"Guard has no option {option} any more: {answer}")
    with pytest.raises(OptionError) as caught:
        load_defense(f"guard:{option}={value}")
    assert str(caught.value).startswith(f"guard has no option {option} any more: {answer}")


@pytest.mark.parametrize(("option"), ["-e", "--encoder", "--encoder=minilm", "--encoder-cache"])
def test_guard_calibrate_needs_no_encoder(option: str) -> None:
    result = CliRunner().invoke(app, ["guard", "calibrate", option, "x", "rows.jsonl"], prog_name="unpoison")
    assert result.exit_code == 2
    name = option.partition("=")[0]
    assert f"unpoison guard calibrate has no option {name} any more: its checks compare no embeddings" in result.stderr


@pytest.mark.parametrize(
    "rest", [[], ["clean.jsonl", "-o", "mine.json"], ["-e", "minilm", "--seed", "x", "clean.jsonl"]]
)
def test_guard_fit_is_gone(rest: list[str]) -> None:
    result = CliRunner().invoke(app, ["guard", "fit", *rest], prog_name="unpoison")
    assert result.exit_code == 2
    assert "there is no unpoison guard fit any more" in result.stderr
    assert "unpoison guard calibrate" in result.stderr
    assert "fit" not in CliRunner().invoke(app, ["guard", "--help"]).output.partition("Commands:")[2]


def test_an_option_string() -> None:
    with pytest.raises(OptionError) as caught:
        load_defense("guard:orders=keep")
    assert str(caught.value) == (
        "guard has no option orders any more; write prompt_injection= (redact, drop, flag or keep)"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["screen", "-d", "guard:orders=keep", "FILE"],
        ["screen", "--orders", "keep", "FILE"],
        ["screen", "--orders=keep", "FILE"],
        ["ask", "-d", "grada:orders=drop", "FILE"],
        ["serve", "-d", "guard:orders=keep"],
        ["serve", "--orders", "keep"],
        ["batch", "--orders", "keep", "FILE", "-o", "out.jsonl"],
    ],
    ids=" ".join,
)
def test_the_command_line(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(ROW)
    result = CliRunner().invoke(app, [str(file) if word == "FILE" else word for word in arguments])
    assert result.exit_code == 2, result.output
    assert "has no option" in result.output
    assert "orders any more; write " in result.output
    assert "prompt_injection= (redact, drop, flag or keep)" in result.output


def test_any_other_option_is_the_command_line_s_own_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["screen", "--order", "keep", str(tmp_path)])
    assert result.exit_code == 2
    assert "any more" not in result.output


def test_a_file_of_settings(tmp_path: Path) -> None:
    settings = tmp_path / "serve.toml"
    settings.write_text('defense = ["guard:orders=keep"]\n')
    result = CliRunner().invoke(app, ["serve", "--config", str(settings)])
    assert result.exit_code == 2
    assert "prompt_injection=" in result.output
