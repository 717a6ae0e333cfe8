"""`unpoison mcp-proxy`: a gate in front of any MCP server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpoison.cli.options import SourcesFile
from unpoison.errors import OptionError

__all__ = ["EXAMPLES", "mcp_proxy"]

EXAMPLES = """\b
Examples:
  unpoison mcp-proxy -- npx -y some-mcp-server
  unpoison mcp-proxy --url https://tickets.example/mcp --tool search=block
  unpoison mcp-proxy --approve --lock tools.lock -- npx -y some-mcp-server
  unpoison mcp-proxy --lock tools.lock -- npx -y some-mcp-server
"""


def mcp_proxy(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND ARGS...", help="The server's command line, behind --.")
    ] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="A server over streamable HTTP instead.")] = None,
    header: Annotated[list[str] | None, typer.Option(metavar="NAME:VALUE", help="Sent to --url.")] = None,
    tool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ACTION",
            help="redact, block, flag or keep injections in a tool's results. [default: *=redact]",
        ),
    ] = None,
    lock: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Approved tools; what is not in it is withheld.")
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Write the server's tools to --lock, and leave.")] = False,
    descriptions: Annotated[
        str, typer.Option(metavar="withhold|flag", help="What becomes of tools with a finding.")
    ] = "withhold",
    sources: SourcesFile = None,
    timeout: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="For one request.")] = 120.0,
    max_message: Annotated[int, typer.Option(min=1024, metavar="BYTES", help="Of one message.")] = 16 * 2**20,
) -> None:
    """Stand in front of an MCP server: results, resources and prompts are screened, tool descriptions checked."""
    import asyncio

    from unpoison.agents.lock_file import LockFile, identity_of
    from unpoison.agents.mcp_messages import Gate
    from unpoison.agents.mcp_proxy import HttpServer, ProxyBounds, StdioServer, approve_tools, log_to_stderr, run_proxy
    from unpoison.agents.policy import ToolPolicy
    from unpoison.utils.checks import among
    from unpoison.utils.extras import require
    from unpoison.utils.plain_text import excerpt

    require("mcp", "the MCP proxy")
    if bool(command) == bool(url):
        raise OptionError("give the server's command behind --, or its --url; one of the two")
    if approve and lock is None:
        raise OptionError("--approve writes to a lock file; give --lock FILE")
    settings = {}
    for entry in tool or []:
        name, equals, action = entry.rpartition("=")
        if not equals or not name:
            raise OptionError(f"--tool {entry} must be NAME=ACTION, such as fetch=block")
        settings[name] = {"action": action}
    headers = dict([part.strip() for part in entry.split(":", 1)] for entry in header or [] if ":" in entry)
    bounds = ProxyBounds(message_bytes=max_message, seconds=timeout)
    server = HttpServer(url, max_message, headers) if url else StdioServer(command or [], max_message)
    identity, approved = identity_of(url or command or []), LockFile(lock) if lock else None
    among("descriptions", descriptions, ("withhold", "flag"))
    gate = Gate(identity, ToolPolicy(settings, sources), approved, descriptions)  # type: ignore[arg-type]
    if approve and approved is not None:
        tools = asyncio.run(approve_tools(server, gate, bounds))
        fresh, fine = Gate(identity), []
        for one in tools:
            reason = fresh.check_tool(one)
            note = ", as another server's" if approved.shadows(identity, str(one.get("name"))) else ""
            name = excerpt(str(one.get("name")))
            typer.echo(f"left out {name}: {excerpt(reason, 200)}" if reason else f"approved {name}{note}")
            fine += [] if reason else [one]
        approved.approve(identity, fine)
        return
    log_to_stderr()
    if approved is not None and not approved.knows(identity):
        typer.echo(f"{lock} approves nothing of this server, but of {len(approved.servers)} others", err=True)
    status = asyncio.run(run_proxy(server, gate, bounds))
    raise typer.Exit(status)
