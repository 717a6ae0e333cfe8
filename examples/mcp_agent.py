"""An agent whose MCP tool returns an injected page: as it is, and behind `unpoison mcp-proxy`."""

import asyncio
import os

import mcp

SERVER = ["python", "mcp_server.py"]
PROXY = ["unpoison", "mcp-proxy", "--lock", "tools.lock", "--", *SERVER]


def model(page):
    """Stands in for your model, the worst case: it does whatever it reads."""
    return "The customer list is on its way." if "customer list" in page else "It was built in 1902."


async def ask(command):
    where = mcp.StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with mcp.Client(mcp.stdio_client(where)) as client:
        await client.list_tools()  # as every host does; the proxy checks them before the first call
        result = await client.call_tool("fetch", {"url": "https://harbour.example"})
        return model(result.content[0].text), result.content[0].text


async def main():
    print("as it is:      ", (await ask(SERVER))[0])
    said, read = await ask(PROXY)
    print("with the proxy:", said)
    print("the model read:", read)


if __name__ == "__main__":
    asyncio.run(main())
