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


@pytest.fixture
def batch(command: Callable[..., Any]) -> Callable[..., Any]:
    """Run `unpoison screen` over a file in parts; the last two arguments are the input and the output."""

    def batch(*arguments: object, given: bytes | None = None) -> Any:
        *options, source, output = arguments
        wanted = ["--json"] if output == "-" else ["--output", output]
        parts = [] if "--workers" in options or "--engine" in options else ["--workers", 1]
        return command("screen", *parts, *options, *wanted, source, given=given)

    return batch
