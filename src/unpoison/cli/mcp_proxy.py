"""`unpoison mcp-proxy`: a gate in front of any MCP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unpoison.cli.environment import environment_of_caller
from unpoison.cli.options import SourcesFile, option
from unpoison.errors import OptionError

if TYPE_CHECKING:
    from unpoison.agents.lock_file import LockFile
    from unpoison.agents.mcp_messages import Gate
    from unpoison.agents.proxy_config import ProxyConfig

__all__ = ["EXAMPLES", "mcp_proxy"]

EXAMPLES = """\b
Examples:
  unpoison mcp-proxy -- npx -y some-mcp-server
  unpoison mcp-proxy --url https://tickets.example/mcp --tool search=block
  unpoison mcp-proxy --approve --lock tools.lock -- npx -y some-mcp-server
  unpoison mcp-proxy --lock tools.lock -- npx -y some-mcp-server
  unpoison mcp-proxy --config servers.yaml --server tickets
"""

WITH_CONFIG = frozenset(("config", "server", "approve", "approve_anyway"))
"""Options beside a file; the file says the rest."""


def mcp_proxy(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND ARGS...", help="The server's command line, behind --.")
    ] = None,
    url: Annotated[str | None, option("URL", "A server over streamable HTTP instead.")] = None,
    header: Annotated[list[str] | None, option("NAME:VALUE", "Sent to --url.")] = None,
    config: Annotated[Path | None, option("FILE", "Servers and their tools, in YAML; see docs/agents.md.")] = None,
    server: Annotated[str | None, option("NAME", "Which server of --config.")] = None,
    tool: Annotated[
        list[str] | None,
        option("NAME=ACTION", "redact, block, flag or keep injections in a tool's results. [default: *=redact]"),
    ] = None,
    lock: Annotated[Path | None, option("FILE", "Approved tools; what is not in it is withheld.")] = None,
    approve: Annotated[bool, option("--approve", "Show the servers' tools, write them to --lock, and leave.")] = False,
    approve_anyway: Annotated[
        list[str] | None, option("--approve-anyway NAME", "With --approve: this tool too, whatever was found in it.")
    ] = None,
    descriptions: Annotated[
        str, option("--descriptions withhold|flag", "What becomes of tools with a finding.")
    ] = "withhold",
    sources: SourcesFile = None,
    audit: Annotated[Path | None, option("FILE", "Write what became of each result, for 'unpoison audit'.")] = None,
    metrics: Annotated[Path | None, option("FILE", "Write counts and times, as Prometheus reads them.")] = None,
    timeout: Annotated[float, option("SECONDS", "For one request.", min=0.001)] = 120.0,
    max_message: Annotated[int, option("BYTES", "Of one message.", min=1024)] = 16 * 2**20,
) -> None:
    """Stand in front of an MCP server: results, resources and prompts are screened, tool descriptions checked."""
    import asyncio

    from unpoison.utils.extras import require

    require("pydantic", "the MCP proxy", "mcp")  # the SDK itself takes long to load, and servers over pipes need none
    from unpoison.agents.lock_file import LockFile
    from unpoison.agents.mcp_proxy import log_to_stderr, run_proxy
    from unpoison.agents.proxy_config import ProxyConfig
    from unpoison.agents.records import FileRecords

    if approve_anyway and not approve:
        raise OptionError("--approve-anyway says what --approve writes; give both")
    if config is not None:
        _refuse_beside_config(context)
        chosen = ProxyConfig.load(config)
    else:
        if bool(command) == bool(url):
            raise OptionError("give the server's command behind --, its --url, or a --config; one of them")
        headers = dict(_pair(entry, ":", "--header", "Authorization: Bearer ...") for entry in header or [])
        own = {
            **({"url": url, "headers": headers} if url else {"command": command}),
            "tools": {name: {"action": action} for name, action in (_tool(entry) for entry in tool or [])},
            "descriptions": descriptions,
            "timeout": timeout,
            "max_message": max_message,
            "sources": None if sources is None else str(sources),
        }
        files = {"lock": lock, "audit": audit, "metrics": metrics}
        chosen = ProxyConfig.of(
            {
                "servers": {server or "server": own},
                **{name: None if path is None else str(path) for name, path in files.items()},
            }
        )
    path = chosen.path(chosen.lock)
    if approve and path is None:
        raise OptionError("--approve writes to a lock file; give --lock FILE")
    approved = None if path is None else LockFile(path)
    if approve and approved is not None:
        require("mcp", "the MCP proxy")
        names = [chosen.choose(server)] if server or config is None else list(chosen.servers)
        for name in names:
            typer.echo(f"{name}:") if len(names) > 1 else None
            for line in _approve(chosen, name, approved, approve_anyway or []):
                typer.echo(line)
        return
    name = chosen.choose(server)
    settings = chosen[name]
    gate = chosen.gate(name, approved)
    log_to_stderr()
    if approved is not None and not approved.knows(settings.identity):
        typer.echo(f"{path} approves nothing of this server, but of {len(approved.servers)} others", err=True)
    gate.records = FileRecords(name, chosen.path(chosen.audit, name), chosen.path(chosen.metrics, name))
    status = asyncio.run(run_proxy(settings.server(environment_of_caller()), gate, settings.bounds))
    raise typer.Exit(status)


def _approve(chosen: ProxyConfig, name: str, approved: LockFile, anyway: list[str]) -> Iterator[str]:
    """Approve the tools of a server that are fine; what is said of each."""
    import asyncio

    from unpoison.agents.lock_file import tool_hash
    from unpoison.agents.tool_listing import list_tools
    from unpoison.utils.plain_text import excerpt

    settings = chosen[name]
    tools = asyncio.run(list_tools(settings.server(environment_of_caller()), settings.timeout))
    gate, fine = _fresh_gate(chosen, name, approved), []
    for tool in tools:
        said, reason = str(tool.get("name")), gate.check_tool(tool)
        passes = reason is None or said in anyway
        shown = "approved" if reason is None else "approved anyway" if passes else "left out"
        yield f"{shown} {excerpt(said)} {tool_hash(settings.identity, tool)[:19]}"
        first = next((line for line in str(tool.get("description") or "").splitlines() if line.strip()), "")
        yield from [f"  {excerpt(first, 100)}"] if first else []
        yield from [f"  found: {excerpt(reason, 200)}"] if reason else []
        fine += [tool] if passes else []
    gate.schemas = {str(tool.get("name")): None for tool in tools}
    yield from gate.unlisted()
    if missing := sorted(set(anyway) - {str(tool.get("name")) for tool in tools}):
        yield f"--approve-anyway names what the server does not list: {', '.join(map(excerpt, missing))}"
    approved.approve(settings.identity, fine)


def _fresh_gate(chosen: ProxyConfig, name: str, approved: LockFile) -> Gate:
    """What checks tools as if none of this server was approved, but knows those of others."""
    gate = chosen.gate(name, None)
    gate.others |= approved.others(gate.identity)
    return gate


def _refuse_beside_config(context: typer.Context) -> None:
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and name not in WITH_CONFIG:
            shown = "COMMAND" if name == "command" else f"--{name.replace('_', '-')}"
            raise OptionError(f"{shown} stands in the file that --config names; give it there")


def _tool(entry: str) -> tuple[str, str]:
    name, equals, action = entry.rpartition("=")
    if not equals or not name:
        raise OptionError(f"--tool {entry} must be NAME=ACTION, such as fetch=block")
    return name, action


def _pair(entry: str, sign: str, flag: str, example: str) -> tuple[str, str]:
    name, found, value = entry.partition(sign)
    if not found or not name.strip():
        raise OptionError(f"{flag} must be NAME{sign}VALUE, such as '{example}'")
    return name.strip(), value.strip()
