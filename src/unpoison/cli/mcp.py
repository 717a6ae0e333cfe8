"""`unpoison mcp`: defenses as tools for agents, over standard input and output."""

from __future__ import annotations

from typing import Annotated

from unpoison.cli.options import EncoderName, SourcesFile, option

__all__ = ["EXAMPLES", "mcp"]

EXAMPLES = """\b
Examples:
  unpoison mcp
  unpoison mcp -d guard -e minilm

An agent starts it by itself, for instance by this entry of its configuration:

\b
  {"mcpServers": {"unpoison": {"command": "unpoison", "args": ["mcp"]}}}

Over HTTP the same tools are at /mcp of 'unpoison serve --mcp'.
"""


def mcp(
    defense: Annotated[
        list[str] | None, option("--defense -d NAME[:OPTIONS]", "As for 'unpoison serve'. [default: guard]")
    ] = None,
    encoder: EncoderName = None,
    generator: Annotated[str | None, option("--generator -g GENERATOR", "For defenses that ask a model.")] = None,
    sources: SourcesFile = None,
    max_passages: Annotated[int, option("N", "Texts of one call.", min=1)] = 1000,
    max_characters: Annotated[int, option("N", "Characters of one text.", min=1)] = 20_000,
    timeout: Annotated[float, option("SECONDS", "The longest that the model calls of one may take.", min=0.001)] = 60.0,
) -> None:
    """Serve the tools screen and explain by the Model Context Protocol (MCP) over standard input and output."""
    import asyncio

    from unpoison.utils.extras import require

    for module in ("mcp", "fastapi", "prometheus_client"):
        require(module, "the MCP server")

    from unpoison.cli.serve import build_defenses
    from unpoison.runtime.driver import Limits
    from unpoison.serve.bounds import Bounds
    from unpoison.serve.mcp import serve_stdio
    from unpoison.serve.metrics import Metrics
    from unpoison.serve.screening_service import Choices, ScreeningService
    from unpoison.serve.work import warm_up

    defenses = build_defenses(
        defense or ["guard"], encoder=encoder, generator=generator, limits=Limits(deadline=timeout), sources=sources
    )
    warm_up(defenses.values())
    bounds = Bounds(passages=max_passages, characters=max_characters, timeout=timeout)
    asyncio.run(serve_stdio(ScreeningService(choices=Choices(defenses), bounds=bounds, metrics=Metrics())))
