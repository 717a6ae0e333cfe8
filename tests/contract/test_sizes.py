"""Sizes beside contents: every entrance at one, ten and a hundred times a size is linear, or refuses.

Two seconds of them here, five minutes in `make check`. Measured are the time of the processor, which other work on the
machine does not change, and the peak of what Python allocates; a size that is refused must be refused in both too.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from needs import need
from scan.test_bombs import A, P, R, W, X, related
from unpoison.agents import screen_tool_result
from unpoison.agents.mcp_messages import McpGate
from unpoison.errors import UnpoisonError
from unpoison.models.doubles import ScriptedGenerator
from unpoison.scan.file_reader import read_for_parent
from unpoison.scan.sources import read_documents

SECONDS = 5 * float(os.environ.get("UNPOISON_FUZZ_SECONDS", "0.4"))
FACTORS = 1, 10, 100
SPARE, MORE = {"seconds": 0.4, "bytes": 2**24}, 4
"""What a call may take however short it is, and how many times more than linear."""

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
    "answer query": ("/v1/answer", long, {"passages": ["a"]}),
    "answer passages": ("/v1/answer", listed(str), ASKED),
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
    defense = Marked(generator=ScriptedGenerator("a"))
    client = stack.enter_context(TestClient(create_app({"marked": defense}, bounds=bounds)))

    def post(path: str, content: bytes) -> None:
        reply = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert reply.status_code in (200, 413, 422), reply.text
        assert reply.status_code == 200 or len(reply.text) < 700

    for name, (path, value, rest) in FIELDS.items():
        field = name.split()[-1].partition("[")[0]
        yield (
            f"{path} {name}",
            lambda n, unit, path=path, value=value, rest=rest, field=field: post(
                path, json.dumps({**rest, field: value(n, unit)}).encode()
            ),
        )


LISTS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}


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
    for method, field in LISTS.items():
        yield method, lambda n, unit, of=(method, field): reply(of[0], {of[1]: [{"name": unit * 3, "title": unit}] * n})
    said = {"role": "user", "content": {"type": "text"}}
    yield "prompts/get", lambda n, unit: reply("prompts/get", {"description": unit * 50 * n, "messages": [said] * n})
    yield "description", lambda n, unit: reply("tools/list", {"tools": [tool(n, unit)]})
    yield (
        "notice",
        lambda n, unit: McpGate("me").screen_notice({"method": "notifications/message", "params": unit * 50 * n}),
    )
    yield "deep", lambda n, unit: screen_tool_result("fetch", json.loads("[" * (4 * n) + "]" * (4 * n)))


def package(**parts: str) -> bytes:
    """An office file; `__` in a name stands for a slash."""
    held = BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(f"{name.replace('__', '/')}{'.rels' if '_rels' in name else '.xml'}", text)
    return held.getvalue()


def word_file(n: int, unit: str) -> bytes:
    body = f"<w:p><w:r><w:t>{escape(unit * 3)}</w:t></w:r></w:p>" * n
    return package(word__document=f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>')


def workbook(n: int, unit: str) -> bytes:
    rows = f'<row><c t="inlineStr"><is><t>{escape(unit * 3)}</t></is></c></row>' * n
    sheets = '<sheets><sheet name="n" r:id="r"/></sheets>'
    return package(
        xl__workbook=f'<workbook xmlns="{X}" xmlns:r="{R}">{sheets}</workbook>',
        **{"xl___rels__workbook.xml": related("worksheet", "s.xml")},
        xl__s=f'<worksheet xmlns="{X}"><sheetData>{rows}</sheetData></worksheet>',
    )


def slides(n: int, unit: str) -> bytes:
    body = f"<a:p><a:r><a:t>{escape(unit * 3)}</a:t></a:r></a:p>" * n
    return package(
        ppt__presentation=f'<p:presentation xmlns:p="{P}" xmlns:r="{R}"><p:sldId r:id="r"/></p:presentation>',
        **{"ppt___rels__presentation.xml": related("slide", "s.xml")},
        ppt__s=f'<p:sld xmlns:p="{P}" xmlns:a="{A}">{body}</p:sld>',
    )


def notebook(n: int, unit: str) -> bytes:
    cells = [{"cell_type": "markdown", "source": [unit * 9], "metadata": {}}] * n
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


EXPANDING: dict[str, Size] = {
    ".eml": lambda n, unit: f"Subject: {unit * 3}\n\n{unit * 50 * n}".encode(),
    ".ipynb": notebook,
    ".srt": lambda n, unit: f"1\n00:00:01,000 --> 00:00:02,000\n{unit * 9}\n\n".encode() * n,
    ".xlsx": workbook,
} | ({".docx": word_file, ".pptx": slides} if find_spec("lxml") else {})
"""Files that are read by a process of its own, whose work is called here."""


def files(folder: Path) -> Iterator[tuple[str, Callable[[int, str], object]]]:
    """Each type of file."""
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

    def expand(suffix: str, n: int, unit: str) -> None:
        place = folder / f"file{suffix}"
        place.write_bytes(EXPANDING[suffix](n, unit))
        with suppress(UnpoisonError):
            assert list(read_for_parent((str(place), suffix)))

    for suffix in EXPANDING:
        yield suffix, lambda n, unit, suffix=suffix: expand(suffix, n, unit)
    for suffix in shapes:
        yield suffix, lambda n, unit, suffix=suffix: read(suffix, n, unit)


@pytest.fixture
def alone() -> Iterator[None]:
    """No collection of garbage goes through what other tests left, which takes half a second in a long run."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def peak(call: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        call()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("measured", SPARE)
@pytest.mark.parametrize("entrance", ["routes", "messages", "files"])
def test_every_size_is_linear_or_refused(entrance: str, measured: str, tmp_path: Path) -> None:
    found, end = random.SystemRandom(), time.monotonic() + SECONDS / 6
    measure = {"seconds": seconds, "bytes": peak}[measured]
    with ExitStack() as stack:
        cases = list({"routes": routes(stack), "messages": messages(), "files": files(tmp_path)}[entrance])
        for _, call in cases:
            call(1, "a")  # what is loaded once
        while time.monotonic() < end:
            (name, call), unit = found.choice(cases), found.choice(UNITS)
            taken = [measure(lambda n=factor, call=call, unit=unit: call(n, unit)) for factor in FACTORS]
            for before, after in pairwise(taken):
                assert after < SPARE[measured] + MORE * FACTORS[1] * before, (name, unit, taken)
