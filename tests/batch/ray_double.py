"""A Ray of this process, for what the engine asks of one; `test_ray.py` has a real one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest


class RayDouble:
    """A Ray of three processors that does at once what it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, running: bool = False) -> None:
        self.running, self.started, self.stopped, self.sets = running, list[dict[str, Any]](), 0, list[Any]()
        self.exceptions = SimpleNamespace(RayError=ConnectionError)
        self.data = SimpleNamespace(from_items=self.from_items, ActorPoolStrategy=lambda size: size)
        self.context = SimpleNamespace(execution_options=SimpleNamespace())
        monkeypatch.setitem(sys.modules, "ray", self)
        monkeypatch.setitem(sys.modules, "ray.data", self.data)

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: Any) -> None:
        self.started.append(options)

    def shutdown(self) -> None:
        self.stopped += 1

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def from_items(self, rows: list[Any], **options: Any) -> Any:
        self.rows = rows
        return self

    def map_batches(self, actor: Any, *, compute: int, **options: Any) -> Any:
        assert self.context.execution_options.preserve_order
        self.sets.append((len(self.rows), compute))
        self.done = [actor()(SimpleNamespace(to_pylist=lambda row=row: [row])) for row in self.rows]
        return self

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        return ({name: column[0] for name, column in table.items()} for table in self.done)
