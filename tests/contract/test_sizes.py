"""Sizes beside contents: every entrance at one, ten and a hundred times a size is linear, or refuses.

Two seconds of them here, five minutes in `make check`. The time of the processor is measured, which other work on the
machine does not change; a size that is refused must be refused in time too.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from needs import need
from unpoison.agents import screen_tool_result
from unpoison.agents.mcp_messages import McpGate
from unpoison.errors import UnpoisonError
from unpoison.scan.sources import read_documents

SECONDS = 5 * float(os.environ.get("UNPOISON_FUZZ_SECONDS", "0.4"))
FACTORS = 1, 10, 100
SPARE, MORE = 0.4, 4
"""Seconds that a call may take however short it is, and how many times more than linear its time may be."""

UNITS = (
    "word ",
    "a",
    "\u200b",
    "a\u200b",
    "a\ufe0f",
    "e\u0301",
    "<b>",
    "&amp;",
    "[",
    "{",
    '"',
    "\\",
    "\n",
    ". ",
    "14 ",
    "\u4e2d",
    "# ",
)
Size = Callable[[int, str], Any]


def listed(of: Callable[[str], Any]) -> Size:
    """A list of so many entries."""
    return lambda n, unit: [of(unit * 3)] * n


def named(n: int, value: str) -> dict[str, str]:
    """An object of so many keys."""
    return {f"{value}{i}": value for i in range(9 * n)}


def passage(**fields: Size) -> Size:
    """One passage with fields of a size."""
    return lambda n, unit: [{"text": "a", **{name: of(n, unit) for name, of in fields.items()}}]


def long(n: int, unit: str) -> str:
    """A text of fifty units, and more."""
    return unit * 50 * n


ASKED, GIVEN, TO_RANK = {"query": "q"}, {"query": "q", "passages": ["a"]}, {"query": "q", "documents": [{"text": "a"}]}
FIELDS: dict[str, tuple[str, Size, dict[str, Any]]] = {
    "query": ("/v1/screen", long, {"passages": ["a"]}),
    "passages": ("/v1/screen", listed(str), ASKED),
    "passages[0].text": ("/v1/screen", passage(text=long), ASKED),
    "passages[0].title": ("/v1/screen", passage(title=long), ASKED),
    "passages[0].metadata": ("/v1/screen", passage(metadata=named), ASKED),
    "passages[0].url": ("/v1/screen", passage(url=long), ASKED),
    "passages[0].embedding": ("/v1/screen", passage(embedding=lambda n, unit: [0.5] * 100 * n), ASKED),
    "embedding": ("/v1/screen", listed(str), GIVEN),
    "defense": ("/v1/screen", long, GIVEN),
    "unknown": ("/v1/screen", named, GIVEN),
    "documents": ("/v2/rerank", listed(str), ASKED),
    "model": ("/v2/rerank", long, TO_RANK),
    "rank_fields": ("/v1/rerank", listed(str), TO_RANK),
    "texts": ("/rerank", listed(str), ASKED),
    "trust": ("/play", lambda n, unit: dict.fromkeys(named(n, unit), "known"), GIVEN),
}


def routes(stack: ExitStack) -> Iterator[tuple[str, Callable[[int, str], object]]]:
    """Each field of each route, of a service with small limits, so that a hundred times is soon sent."""
    need("fastapi")
    from fastapi.testclient import TestClient

    from service_doubles import Marked
    from unpoison.serve import Bounds, create_app

    bounds = Bounds(body=2**20, values=100_000, passages=100, characters=2_000, total=10_000)
    client = stack.enter_context(TestClient(create_app({"marked": Marked()}, bounds=bounds)))

    def post(path: str, content: bytes) -> None:
        reply = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert reply.status_code in (200, 413, 422), reply.text
        assert reply.status_code == 200 or len(reply.text) < 700

    for name, (path, value, rest) in FIELDS.items():
        field = name.partition("[")[0]
        yield (
            f"{path} {name}",
            lambda n, unit, path=path, value=value, rest=rest, field=field: post(
                path, json.dumps({**rest, field: value(n, unit)}).encode()
            ),
        )


def messages() -> Iterator[tuple[str, Callable[[int, str], object]]]:
    """Each kind of message of an MCP server."""

    def reply(method: str, result: dict[str, Any]) -> object:
        with suppress(UnpoisonError):
            return McpGate("me").screen_reply(method, {"name": "fetch"}, {"jsonrpc": "2.0", "id": 1, "result": result})

    def tool(n: int, unit: str) -> dict[str, Any]:
        return {"name": "fetch", "description": unit * 20 * n, "inputSchema": {"enum": [unit * 3] * n}}

    yield "content", lambda n, unit: reply("tools/call", {"content": [{"type": "text", "text": unit * 3}] * n})
    yield "text", lambda n, unit: reply("tools/call", {"content": [{"type": "text", "text": unit * 50 * n}]})
    yield "structured", lambda n, unit: reply("tools/call", {"structuredContent": {f"k{i}": unit for i in range(n)}})
    yield "blob", lambda n, unit: reply("resources/read", {"contents": [{"uri": "a:b", "blob": "aGVs" * 100 * n}]})
    yield (
        "tools",
        lambda n, unit: reply("tools/list", {"tools": [{**tool(1, unit), "name": f"t{i}"} for i in range(n)]}),
    )
    yield "description", lambda n, unit: reply("tools/list", {"tools": [tool(n, unit)]})
    yield (
        "notice",
        lambda n, unit: McpGate("me").screen_notice({"method": "notifications/message", "params": unit * 50 * n}),
    )
    yield "deep", lambda n, unit: screen_tool_result("fetch", json.loads("[" * (4 * n) + "]" * (4 * n)))


def files(folder: Path) -> Iterator[tuple[str, Callable[[int, str], object]]]:
    """Each type of file that is read without a package."""
    shapes: dict[str, Size] = {
        ".jsonl": lambda n, unit: "\n".join([json.dumps({"text": unit * 9})] * n),
        ".csv": lambda n, unit: "text\n" + "\n".join(f'"{i}"' for i in range(9 * n)),
        ".txt": lambda n, unit: unit * 50 * n,
        ".md": lambda n, unit: unit * 50 * n,
        ".html": lambda n, unit: unit * 50 * n,
    }

    def read(suffix: str, n: int, unit: str) -> None:
        place = folder / f"file{suffix}"
        place.write_text(shapes[suffix](n, unit), encoding="utf-8")
        with suppress(UnpoisonError):
            for _ in read_documents(str(place), lambda unread: None):
                pass

    for suffix in shapes:
        yield suffix, lambda n, unit, suffix=suffix: read(suffix, n, unit)


@pytest.fixture
def alone() -> Iterator[None]:
    """No collection of garbage goes through what other tests left, which takes half a second in a long run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("entrance", ["routes", "messages", "files"])
def test_every_size_is_linear_or_refused(entrance: str, tmp_path: Path) -> None:
    found, end = random.SystemRandom(), time.monotonic() + SECONDS / 3
    with ExitStack() as stack:
        cases = list({"routes": routes(stack), "messages": messages(), "files": files(tmp_path)}[entrance])
        for _, call in cases:
            call(1, "a")  # what is loaded once
        while time.monotonic() < end:
            (name, call), unit = found.choice(cases), found.choice(UNITS)
            times = list[float]()
            for factor in FACTORS:
                began = time.process_time()
                call(factor, unit)
                times.append(time.process_time() - began)
            for before, after in pairwise(times):
                assert after < SPARE + MORE * FACTORS[1] * before, (name, unit, times)
