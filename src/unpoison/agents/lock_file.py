"""Hashes of approved tools by server. A tool whose description changed after its approval is withheld."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, clip
from unpoison.utils.files import write_file

__all__ = ["DESCRIBING", "LockFile", "identity_of", "look_of", "tool_hash"]

VERSION = 1
MAX_BYTES = 16 * 2**20
DESCRIBING = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""The fields of a tool that a model or its host reads."""


def identity_of(address: str | Sequence[str]) -> str:
    """A hash of a server's command line or URL; neither is stored, because both may contain secrets."""
    return _hash(address if isinstance(address, str) else list(address))


def tool_hash(identity: str, tool: Mapping[str, Any]) -> str:
    """A hash of a tool's description and schemas, and of its server."""
    return _hash([identity, {name: tool[name] for name in DESCRIBING if name in tool}])


LOOKING_ALIKE = str.maketrans("0135i|", "olesll", "-_./")


def look_of(name: str) -> str:
    """A name with look-alike characters and separators unified, so that confusable names are equal."""
    return name.casefold().translate(LOOKING_ALIKE).replace("rn", "m").replace("vv", "w")


def _hash(value: object) -> str:
    written = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return f"sha256:{sha256(written.encode()).hexdigest()}"


class LockFile:
    """A file of approved tools, by server.

    Args:
        path: The file; a missing file approves nothing.

    Raises:
        InputError: The file is not a lock file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.servers: dict[str, dict[str, Any]] = {}
        try:
            with path.open("rb") as file:
                data = json.loads(file.read(MAX_BYTES))
            self.servers = {str(name): {"tools": dict(own["tools"])} for name, own in data["servers"].items()}
            if data["version"] != VERSION:
                raise ValueError
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"{clip(str(path))} is no lock file of this version; make one with 'unpoison mcp-proxy --approve'"
            ) from None

    def knows(self, identity: str) -> bool:
        """Whether the file has an entry for this server."""
        return identity in self.servers

    def approved(self, identity: str, tool: Mapping[str, Any]) -> bool | None:
        """Whether a tool equals the approved one; None if no tool of that name was approved."""
        own = self.servers.get(identity, {"tools": {}})["tools"].get(tool.get("name"))
        return None if own is None else bool(own == tool_hash(identity, tool))

    def approve(self, identity: str, tools: Sequence[Mapping[str, Any]]) -> None:
        """Replace the approved tools of a server, and write the file atomically."""
        self.servers[identity] = {"tools": {str(tool["name"]): tool_hash(identity, tool) for tool in tools}}
        written = json.dumps({"version": VERSION, "servers": self.servers}, indent=2) + "\n"
        write_file(self.path, [written.encode()])

    def others(self, identity: str) -> frozenset[str]:
        """The unified names of the approved tools of all other servers."""
        return frozenset(
            look_of(name) for other, own in self.servers.items() if other != identity for name in own["tools"]
        )
