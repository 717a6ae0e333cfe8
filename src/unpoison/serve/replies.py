"""JSON replies in plain ASCII, so that no text of a passage, lone surrogates included, can break one."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse

__all__ = ["Json"]


class Json(JSONResponse):
    """A reply whose content is escaped JSON."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
