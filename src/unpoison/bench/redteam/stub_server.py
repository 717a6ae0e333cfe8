"""An MCP server for tests of agents: the tools of a small office, which do nothing but write down what they are asked.

    python -m unpoison.bench.redteam.stub_server --state FOLDER            over standard input and output
    python -m unpoison.bench.redteam.stub_server --state FOLDER --http 8790  at http://127.0.0.1:8790/mcp

`unpoison redteam` writes into the folder what the tools return, and reads there what was called. No mail is sent.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any

from unpoison import __version__
from unpoison.bench.redteam.agent_world import TOOLS, WorldFolder
from unpoison.errors import InputError
from unpoison.utils.extras import require

__all__ = ["create_server", "main"]


def create_server(folder: Path) -> Any:
    """An `MCPServer` with the tools of `agent_world.TOOLS`.

    Raises:
        MissingExtraError: The extra `mcp` is not installed.
    """
    sdk = require("mcp.server.mcpserver", "the stub MCP server", "mcp")
    world = WorldFolder(folder)
    server = sdk.MCPServer("office", version=__version__, log_level="ERROR")
    for name, (description, arguments) in TOOLS.items():
        tool = _tool(world, name, arguments, sdk.exceptions.ToolError)
        server.tool(name=name, description=description, structured_output=False)(tool)
    return server


def _tool(world: WorldFolder, name: str, arguments: Sequence[str], error_kind: type[Exception]) -> Callable[..., str]:
    """A function with these arguments, as the SDK reads them from a signature."""

    def call(**given: str) -> str:
        try:
            return world.call(name, given)
        except InputError as error:
            raise error_kind(str(error)) from None

    parameters = [Parameter(argument, Parameter.KEYWORD_ONLY, annotation=str) for argument in arguments]
    call.__signature__ = Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    call.__name__ = name
    return call


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the input ends, or the process is stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=Path, required=True, metavar="FOLDER", help="that the test has as target.state")
    parser.add_argument("--http", type=int, metavar="PORT", help="streamable HTTP on this machine instead")
    chosen = parser.parse_args(arguments)
    server = create_server(chosen.state)
    if chosen.http is None:
        server.run(transport="stdio")
    else:
        server.run(transport="streamable-http", host="127.0.0.1", port=chosen.http)


if __name__ == "__main__":
    main()
