"""What the tests of the command line share: rows, a runner, and a defense with simple manners."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from unpoison.cli import app
from unpoison.core import registry
from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense
from unpoison.models.requests import Flow

ROWS = [
    {
        "id": f"row-{i}",
        "question": f"question {i}?",
        "passages": ["poison alpha", "clean beta", f"clean gamma {i}"],
        "mine": [1],
    }
    for i in range(6)
]


class Simple(Defense):
    """Drops what says "poison"."""

    name = "simple"
    summary = "drops what says poison"

    def __init__(self, word: str = "poison", *, generator: Any = None, limits: Any = None) -> None:
        super().__init__(generator=generator, limits=limits)
        self.word = word

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        kept = [i for i, passage in enumerate(passages) if self.word not in passage.text]
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=kept,
            scores=[float(i in kept) for i in range(len(passages))],
            reasons=["kept, as it is clean" if i in kept else f"says {self.word}" for i in range(len(passages))],
            evidence=Evidence({"weights": np.ones((len(passages), len(passages)))}, ("noted",), "weights"),
        )
        yield ()


@pytest.fixture(autouse=True)
def simple(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the module findable under a name of its own and registers the defense."""
    monkeypatch.setitem(sys.modules, "simple_defense", sys.modules[__name__])
    monkeypatch.setitem(registry.BUILT_IN["defenses"], "simple", "simple_defense:Simple")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def run() -> Callable[..., Any]:
    """Run the command line in this process."""

    def run(*arguments: object, given: str | bytes | None = None) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)

    return run


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
