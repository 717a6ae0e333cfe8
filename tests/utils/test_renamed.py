"""Options by the name that they had: answered with the new one, in Python, option strings and commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from unpoison import Guard
from unpoison.cli import app
from unpoison.defenses.loading import load_defense
from unpoison.errors import OptionError
from unpoison.utils.renamed import RENAMED, new_name

ROW = '{"query": "who", "passages": ["he", "she"]}\n'


def test_every_new_name_is_an_option() -> None:
    guard = Guard()
    assert all(hasattr(guard, name) and not hasattr(guard, old) for old, (name, _) in RENAMED.items())


def test_a_name_that_no_option_had_is_not_answered() -> None:
    assert new_name("order", "guard") is None
    assert new_name("orders", "guard", ["orders", "prompt_injection"]) is None
    assert new_name("orders", "bm25", ["k"]) is None


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
