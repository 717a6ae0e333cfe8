from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from typer.testing import CliRunner

from unpoison.cli import app


@pytest.fixture
def command() -> Callable[..., Any]:
    """Run the command line in this process."""

    def command(*arguments: object, given: bytes | None = None) -> Any:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)

    return command
