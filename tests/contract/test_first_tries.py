"""What everybody tries first: no order and no payload is read, on any surface."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from unpoison import Guard
from unpoison.agents import screen_tool_result

PAYLOAD = re.compile(
    r"\b60\b|hacked|pwned|banana|\bdan\b|developer mode|system prompt|evil\.example|ignore|disregard|forget",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def tries(shared_data: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (shared_data / "textbook.jsonl").read_text("utf-8").splitlines()]


def test_guard_reads_none_of_them(tries: list[dict[str, Any]]) -> None:
    guard, read = Guard(), []
    for row in tries:
        screening = guard.screen(row["question"], [*row["clean"], row["text"]])
        texts = " ".join(screening.texts)
        if PAYLOAD.search(texts) or not {0, 1} <= set(screening.kept_indices):
            read.append((row["id"], texts))
    assert read == []


def test_none_is_left_in_honest_text_either(tries: list[dict[str, Any]]) -> None:
    guard, read = Guard(), []
    for row in tries:
        for carrier in (f"{row['clean'][0]} {row['text']}", f"{row['clean'][0]}\n\n{row['text']}\n\n{row['clean'][1]}"):
            screening = guard.screen(row["question"], [*row["clean"], carrier])
            if PAYLOAD.search(" ".join(screening.texts)):
                read.append((row["id"], carrier, screening.texts))
    assert read == []


def test_tool_results_are_cut_as_passages_are(tries: list[dict[str, Any]]) -> None:
    read = [row["id"] for row in tries if PAYLOAD.search(str(screen_tool_result("search", row["text"]).value))]
    assert read == []
    for row in tries:
        shown = json.dumps(screen_tool_result("search", {"rows": [{"note": row["text"], "days": 27}]}).value)
        if PAYLOAD.search(shown):
            read.append(row["id"])
    assert read == []
