"""The requests of docs/service.md get replies of the shape that is shown there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from service_doubles import Serving
from unpoison import Guard

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```\n(curl .*?)^```\n```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def shape(value: Any) -> Any:
    """The names and kinds of a JSON value, numbers being of one kind."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=["screen", "answer", "rerank"])
def test_replies_are_as_shown(serving: Serving, command: str, shown: str) -> None:
    words = shlex.split(command)
    path = words[2].removeprefix("http://127.0.0.1:8000")
    client = serving({"guard": Guard(generator="extractive")})
    reply = client.post(path, content=words[words.index("-d") + 1], headers={"Content-Type": "application/json"})
    assert reply.status_code == 200
    told, expected = reply.json(), json.loads(shown)
    assert shape(told) == shape(expected)
    assert told.get("screening", {}).get("kept") == expected.get("screening", {}).get("kept")
