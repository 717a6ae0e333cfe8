"""The HTTP service: screenings, answers, five dialects of `/rerank`, metrics and an inspector page.

    from unpoison import Guard
    from unpoison.service import Bounds, create_app

    app = create_app({"guard": Guard()}, bounds=Bounds(passages=100))  # for any ASGI server

`unpoison serve` runs the same with uvicorn. The names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unpoison.extras import require

if TYPE_CHECKING:
    from unpoison.service.app import create_app
    from unpoison.service.bounds import Bounds
    from unpoison.service.server import serve

_HOMES = {"Bounds": "bounds", "create_app": "app", "serve": "server"}

__all__ = ["Bounds", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unpoison.service' has no attribute {name!r}")
    for module in ("fastapi", "httptools", "jinja2", "prometheus_client", "uvicorn"):
        require(module, "the HTTP service")
    return getattr(import_module(f"unpoison.service.{_HOMES[name]}"), name)
