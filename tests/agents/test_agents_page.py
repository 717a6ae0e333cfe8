"""The snippets for hosts on the page on agents are what a host and the command line can read."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
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
    ours = re.sub(r"`python -m benchmarks[^`]*`", "", PAGE)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", ours))
    assert {"--config", "--server", "--audit", "--metrics", "--approve-anyway"} <= named
    assert all(option in shown for option in named)
    for arguments in (
        ["mcp-proxy"],
        ["mcp-proxy", "--url", "http://a.example", "--", "x"],
        ["mcp-proxy", "--approve", "--", "x"],
    ):
        assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.needs("pydantic")
def test_the_file_of_several_servers_is_one_that_the_proxy_reads() -> None:
    from unpoison.agents.proxy_config import ProxyConfig

    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    config = ProxyConfig.of(yaml.safe_load(text), Path("/etc"))
    assert config.path(config.metrics, "web") == Path("/etc/metrics/web.prom")
    web, tickets = config.gate("web", None), config.gate("tickets", None)
    assert web.policy.settings("fetch").action == "block"
    assert (web.policy.settings("fetch").threshold, web.policy.settings("other").action) == (0.3, "block")
    assert (tickets.descriptions, tickets.policy.settings("search").level) == ("flag", "known")
    server = config["tickets"].server({"TICKETS_TOKEN": "t"})
    assert server.headers == {"Authorization": "Bearer t"}  # type: ignore[attr-defined]


def test_bounds_that_the_page_names_are_the_defaults() -> None:
    from unpoison.agents.mcp_messages import MAX_TOOLS
    from unpoison.agents.proxy_bounds import ProxyBounds

    bounds = ProxyBounds()
    for count, words in (
        (bounds.per_second, "notifications and requests in a second"),
        (bounds.in_flight, "requests that wait for the host"),
        (MAX_TOOLS, "tools"),
    ):
        assert f"more than {count:,} {words}" in PAGE
    assert f"after {bounds.bad_messages:,} the server is ended" in PAGE
