"""What a test of an agent runs beside it: a web server with the pages of its office, and a client of MCP servers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from unpoison.bench.redteam.agent_world import CallTool, WorldFolder
from unpoison.errors import OptionError, TargetError, UnpoisonError
from unpoison.utils.extras import require
from unpoison.utils.plain_text import excerpt
from unpoison.utils.threads import start_thread

__all__ = ["mcp_caller", "serve_pages"]

MAX_ANSWER_CHARS = 65_536
"""Characters of a tool's result that are kept."""


@contextmanager
def serve_pages(world: WorldFolder, port: int = 0) -> Iterator[str]:
    """Serve the pages of a world on this machine only; its address.

    Raises:
        OptionError: The port is taken.
    """

    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:
            try:
                page = world.page(self.path)
            except UnpoisonError:
                page = None
            content = (page or "There is no such page.").encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *parts: Any) -> None:
            """Say nothing: the world writes every request down."""

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise OptionError(
            f"target.pages: the port {port} cannot be used: {error.strerror}; 0 takes a free one"
        ) from None
    server.daemon_threads = True
    start_thread(server.serve_forever)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def mcp_caller(server: str | Sequence[str], timeout: float) -> Iterator[CallTool]:
    """Call the tools of an MCP server, from any thread.

    Args:
        server: Its URL, or the command that starts it.
        timeout: Seconds for one call.

    Raises:
        MissingExtraError: The extra `mcp` is not installed.
        TargetError: It cannot be reached, or does not speak the protocol.
    """
    mcp = require("mcp", "an MCP server", "mcp")
    start_portal = require("anyio.from_thread", "an MCP server", "mcp").start_blocking_portal
    where = server
    if not isinstance(server, str):
        where = mcp.StdioServerParameters(command=server[0], args=list(server[1:]), env=dict(os.environ))
    with start_portal() as portal:
        connection = portal.wrap_async_context_manager(mcp.Client(where, read_timeout_seconds=timeout))
        try:
            client = connection.__enter__()
        except Exception as error:  # of any kind, also groups
            raise TargetError(f"the MCP server {excerpt(str(server), 200)} cannot be used: {_said(error)}") from None
        try:
            yield lambda tool, arguments: _call(portal, client, tool, arguments)
        finally:
            connection.__exit__(None, None, None)


def _call(portal: Any, client: Any, tool: str, arguments: Mapping[str, str]) -> str:
    """The texts of a result, joined; an error of the tool is a text too.

    Raises:
        TargetError: No result.
    """
    try:
        result = portal.call(client.call_tool, tool, dict(arguments))
    except Exception as error:  # of any kind: the server is somebody else's
        raise TargetError(f"the tool {excerpt(tool)} failed: {_said(error)}", retryable=True) from None
    texts = [part.text for part in result.content if isinstance(getattr(part, "text", None), str)]
    return "\n".join(texts)[:MAX_ANSWER_CHARS]


def _said(error: BaseException) -> str:
    return excerpt(f"{type(error).__name__}: {error}", 300)
