"""Rerank clients of others against a real service under attack, as `tools/rerank_clients.py` prints them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

TOOL = Path(__file__).parents[2] / "tools" / "rerank_clients.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rerank_clients", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rerank_clients"] = module
    spec.loader.exec_module(module)
    return module


clients = loaded()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with clients.service() as root:
        yield root


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("client", clients.CLIENTS, ids=lambda client: client.package)
def test_a_client_gets_the_clean_passages_first(client: Any, url: str) -> None:
    if clients.installed(client.package) is None:
        pytest.skip(f"{client.package} ABSENT: pip install {client.package}")
    assert not clients.fault(client.ask(url))


def test_the_service_drops_both_planted_ones(url: str) -> None:
    """What the clients are asked with is an attack that Guard stops, or the matrix would say nothing."""
    body = {"query": clients.QUERY, "documents": clients.TEXTS, "model": "guard"}
    results = httpx.post(f"{url}/v2/rerank", json=body).json()["results"]
    kept = {row["index"] for row in results if row["relevance_score"] > 0}
    assert kept == {i for i, text in enumerate(clients.TEXTS) if text not in clients.PLANTED}


def test_tei_gets_a_score_for_each_text(url: str) -> None:
    rows = httpx.post(f"{url}/rerank", json={"query": clients.QUERY, "texts": clients.TEXTS}).json()
    assert sorted(row["index"] for row in rows) == list(range(len(clients.TEXTS)))
    assert {clients.TEXTS[row["index"]] for row in rows if row["score"] == 0} == clients.PLANTED
