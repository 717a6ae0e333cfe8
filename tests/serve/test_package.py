"""What importing the service costs, and what it says where its libraries are missing."""

from __future__ import annotations

import re
import sys

import pytest

import unpoison.serve
from unpoison.errors import MissingExtraError
from unpoison.utils.extras import install_command

LIBRARIES = ("fastapi", "starlette", "uvicorn", "jinja2", "prometheus_client", "pydantic")


@pytest.mark.parametrize("missing", ["fastapi", "prometheus_client", "uvicorn"])
def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("serve"))):
        unpoison.serve.create_app  # noqa: B018


def test_names_are_those_listed() -> None:
    for name in unpoison.serve.__all__:
        assert getattr(unpoison.serve, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        unpoison.serve.nonsense  # noqa: B018
