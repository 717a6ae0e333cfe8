"""An MCP server whose tools ask the host: its model, its user, and whether to go on."""

from __future__ import annotations

import asyncio

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = MCPServer("asking", log_level="ERROR")
cancelled: list[str] = []


class Date(BaseModel):
    """What the user is asked for."""

    day: str


@server.tool(structured_output=False)
async def summarise(text: str, ctx: Context) -> str:
    """Returns a summary that the model of the host writes."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    said = await ctx.session.create_message([message], max_tokens=10, related_request_id=ctx.request_id)
    assert isinstance(said.content, TextContent)
    return f"{said.model}: {said.content.text}"


@server.tool(structured_output=False)
async def book(ctx: Context) -> str:
    """Ask the user for a day."""
    found = await ctx.elicit("Which day?", Date)
    return f"{found.action} {found.data.day}" if found.action == "accept" else found.action


@server.tool(structured_output=False)
async def count(to: int, ctx: Context) -> str:
    """Report each number."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"number {number}")
    return str(to)


@server.tool(structured_output=False)
async def wait(ctx: Context) -> str:
    """Wait until somebody cancels."""
    await ctx.report_progress(1, 2)
    try:
        await asyncio.sleep(60)
    except BaseException:
        cancelled.append("wait")
        raise
    return "nobody cancelled"


@server.tool(structured_output=False)
def cancellations() -> str:
    """Returns the names of what was cancelled."""
    return " ".join(cancelled)


if __name__ == "__main__":
    server.run(transport="stdio")
