"""An application around simple defenses, and its log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service_doubles import Marked, Serving
from unpoison.defenses.base import Defense
from unpoison.serve import create_app


@pytest.fixture
def serving() -> Iterator[Serving]:
    """Make a client of a new application; the arguments are those of `create_app`."""
    with ExitStack() as stack:

        def serving(defenses: dict[str, Defense] | None = None, **options: Any) -> TestClient:
            chosen = {"marked": Marked()} if defenses is None else defenses
            return stack.enter_context(TestClient(create_app(chosen, **options)))

        yield serving


@pytest.fixture
def client(serving: Serving) -> TestClient:
    return serving()


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[dict[str, Any]]]:
    """The fields of the access log so far, as JSON would hold them."""
    caplog.set_level(logging.INFO, logger="unpoison.service")
    return lambda: [json.loads(json.dumps(record.fields)) for record in caplog.records if hasattr(record, "fields")]
