"""The HTTP service and its client.

    from unpoison import Guard
    from unpoison.serve import Bounds, create_app

    app = create_app({"guard": Guard()}, bounds=Bounds(passages=100))  # for any ASGI server

`unpoison serve` runs the same with uvicorn. The names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unpoison.utils.extras import lazy_names, require

if TYPE_CHECKING:
    from unpoison.serve.app import create_app
    from unpoison.serve.bounds import Bounds
    from unpoison.serve.client import Client
    from unpoison.serve.server import serve

_SERVICE = ("Bounds", "create_app", "serve")

_public = lazy_names(__name__, {"client": "Client", "bounds": "Bounds", "app": "create_app", "server": "serve"})

__all__ = ["Bounds", "Client", "create_app", "serve"]


def __getattr__(name: str) -> Any:
    if name in _SERVICE:
        for module in ("fastapi", "prometheus_client", "uvicorn"):
            require(module, "the HTTP service")
    return _public(name)
