"""The snippets for hosts on the page on agents are what a host and the command line can read."""

from __future__ import annotations

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from unpoison.cli import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


def test_the_snippets_for_hosts_are_json_and_start_the_proxy() -> None:
    snippets = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert len(snippets) == 2
    for snippet in snippets:
        (servers,) = snippet.values()
        (server,) = servers.values()
        assert server["command"] == "unpoison"
        assert server["args"][0] == "mcp-proxy"
        assert "--" in server["args"]


def test_options_that_the_page_names_exist_and_one_server_must_be_given() -> None:
    shown = CliRunner().invoke(app, ["mcp-proxy", "--help"]).output
    named = {"--lock", "--approve", "--url", "--tool", "--timeout", "--max-message"}
    assert all(option in shown for option in named)
    for arguments in (
        ["mcp-proxy"],
        ["mcp-proxy", "--url", "http://a.example", "--", "x"],
        ["mcp-proxy", "--approve", "--", "x"],
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 2
