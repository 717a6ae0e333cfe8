"""`unpoison mcp-proxy`: a screening proxy for any MCP server.

Examples:
  unpoison mcp-proxy -- npx -y some-mcp-server
  unpoison mcp-proxy --url https://tickets.example/mcp --tool search=block
  unpoison mcp-proxy --url https://tickets.example/mcp --header 'Authorization: Bearer ${TICKETS}'
  unpoison mcp-proxy --approve --lock tools.lock -- npx -y some-mcp-server
  unpoison mcp-proxy --lock tools.lock -- npx -y some-mcp-server
  unpoison mcp-proxy --arguments ask --allow '*@firm.example' -- npx -y some-mcp-server

--approve exits with 3 if it left out a tool.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from unpoison.agents.mcp_calls import CallGate
from unpoison.agents.mcp_messages import McpGate
from unpoison.agents.mcp_proxy import ProxyBounds, log_to_stderr, run_proxy
from unpoison.agents.mcp_servers import HttpServer, Server, StdioServer, list_tools
from unpoison.agents.policy import LockFile, ToolPolicy, identity_of, tool_hash
from unpoison.cli.options import SourcesFile, environment_of_caller, option
from unpoison.errors import OptionError
from unpoison.utils.checks import web_address
from unpoison.utils.extras import require
from unpoison.utils.plain_text import excerpt

LEFT_OUT = 3
"""The exit code of --approve if a tool was left out of the lock file."""

_HEADER = re.compile(r"[A-Za-z0-9_\-.]{1,200}")
_VARIABLE = re.compile(r"\$\{(\w{1,100})\}")


def mcp_proxy(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND ARGS...", help="The server's command line, behind --.")
    ] = None,
    url: Annotated[str | None, option("URL", "A server over streamable HTTP instead.")] = None,
    header: Annotated[
        list[str] | None, option("NAME:VALUE", "Sent to --url; ${NAME} is read from the environment.")
    ] = None,
    tool: Annotated[
        list[str] | None,
        option("NAME=ACTION", "redact, block, flag or keep injections in a tool's results. [default: *=redact]"),
    ] = None,
    arguments: Annotated[
        str, option("ACTION", "ask, block or log a call whose target (to, url, path, account) only a result named.")
    ] = "log",
    allow: Annotated[
        list[str] | None, option("TARGET", "Never asked about: an address, link or path, or '*@firm.example'.")
    ] = None,
    lock: Annotated[Path | None, option("FILE", "Approved tools; all others are withheld.")] = None,
    approve: Annotated[bool, option("--approve", "Show the server's tools, write them to --lock, and exit.")] = False,
    approve_anyway: Annotated[
        list[str] | None, option("--approve-anyway NAME", "With --approve: approve this tool in spite of findings.")
    ] = None,
    sources: SourcesFile = None,
    timeout: Annotated[float, option("SECONDS", "For one request.", min=0.001)] = 120.0,
    max_message: Annotated[int, option("BYTES", "Of one message.", min=1024)] = 16 * 2**20,
) -> None:
    """Screen the results, resources and prompts of an MCP server, and check its tool descriptions."""
    if bool(command) == bool(url):
        raise OptionError("give the server's command behind --, or its --url; one of them")
    if header and not url:
        raise OptionError("--header is sent to --url; leave it out for a server that is a command")
    if approve_anyway and not approve:
        raise OptionError("--approve-anyway needs --approve")
    if approve and lock is None:
        raise OptionError("--approve writes to a lock file; give --lock FILE")
    environment = environment_of_caller()
    server: Server
    if url:
        headers = dict(_header(entry, environment) for entry in header or [])
        server = HttpServer(web_address("--url", url), max_message, headers)
    else:
        server = StdioServer(command or [], max_message, environment)
    identity = identity_of(url or command or [])
    actions: dict[str, Any] = {"*": {}, **{name: {"action": action} for name, action in map(_tool, tool or [])}}
    actions["*"]["allow"] = allow or []
    policy = ToolPolicy(actions, sources=None if sources is None else str(sources))
    approved = None if lock is None else LockFile(lock)
    if approve and approved is not None:
        require("mcp", "the MCP proxy")
        tools = asyncio.run(list_tools(server, timeout))
        if left_out := _approve(identity, tools, approved, approve_anyway or []):
            names = ", ".join(map(excerpt, left_out))
            typer.echo(f"left out: {names}; approve a tool in spite of findings with --approve-anyway NAME", err=True)
            raise typer.Exit(LEFT_OUT)
        return
    log_to_stderr()
    if approved is not None and lock is not None and identity not in approved.servers:
        others = f", only of {len(approved.servers)} others" if approved.servers else ""
        what = f"approves no tool of this server{others}" if lock.exists() else "does not exist"
        typer.echo(f"{lock} {what}, so all tools are withheld; approve them with --approve", err=True)
    gate = McpGate(identity, policy, approved, CallGate(policy, arguments))
    bounds = ProxyBounds(max_message, timeout)
    raise typer.Exit(asyncio.run(run_proxy(server, gate, bounds)))


def _approve(identity: str, tools: list[dict[str, Any]], approved: LockFile, anyway: list[str]) -> list[str]:
    """Show the tools of a server and approve those without a finding; returns the names of the others."""
    gate, fine, left_out = McpGate(identity), [], []
    gate.others = approved.others(identity)
    for tool in tools:
        said, reason = str(tool.get("name")), gate.check_tool(tool)
        passes = reason is None or said in anyway
        shown = "approved" if reason is None else "approved anyway" if passes else "left out"
        typer.echo(f"{shown} {excerpt(said)} {tool_hash(identity, tool)[:19]}")
        first = next((line for line in str(tool.get("description") or "").splitlines() if line.strip()), "")
        if first:
            typer.echo(f"  {excerpt(first, 100)}")
        if reason is not None:
            typer.echo(f"  found: {excerpt(str(reason), 200)}")
        if passes:
            fine.append(tool)
        else:
            left_out.append(said)
    if missing := sorted(set(anyway) - {str(tool.get("name")) for tool in tools}):
        raise OptionError(f"--approve-anyway names tools that the server does not list: {', '.join(missing)}")
    approved.approve(identity, fine)
    return left_out


def _tool(entry: str) -> tuple[str, str]:
    name, equals, action = entry.rpartition("=")
    if not equals or not name:
        raise OptionError(f"--tool {entry} must be NAME=ACTION, such as fetch=block")
    return name, action


def _header(entry: str, environment: Mapping[str, str]) -> tuple[str, str]:
    name, colon, value = (part.strip() for part in entry.partition(":"))
    if not colon or not _HEADER.fullmatch(name):
        raise OptionError("--header must be NAME:VALUE, such as 'Authorization: Bearer ${TOKEN}'")
    for variable in _VARIABLE.findall(value):
        if not environment.get(variable):
            raise OptionError(f"${{{variable}}} is not set; put it into the environment: export {variable}=...")
        value = value.replace(f"${{{variable}}}", environment[variable])
    if not value.isprintable():
        raise OptionError(f"the value of the header {name} must be one line of text")
    return name, value
