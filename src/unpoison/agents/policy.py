"""The user's decisions about tools: how their results are treated, and which tools were approved.

A lock file holds hashes of the approved tools, by server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.injections import THRESHOLD
from unpoison.sources.sources import Sources
from unpoison.sources.trust import Level, trust
from unpoison.utils.checks import among, within
from unpoison.utils.files import read_small, write_file

__all__ = ["DESCRIBING", "LockFile", "ToolPolicy", "ToolSettings", "identity_of", "look_of", "tool_hash"]

Action = Literal["redact", "block", "flag", "keep"]
"""Action on a prompt injection: cut its sentences, block the whole result, only report it, or skip detection.

Invisible characters are cut by the first two, reported by the third.
"""

ANY_TOOL = "*"
"""The entry of a policy for tools that it does not name."""

Standing = tuple[str | None, Level, float]

MAX_TOOLS = 10_000
"""Entries of a policy."""

LOCK_VERSION, MAX_LOCK_BYTES = 1, 16 * 2**20

DESCRIBING = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""The fields of a tool that a model or its host reads."""

_ARGUMENT = re.compile(r"\{(\w{1,64})\}")


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """How the results of one tool are treated.

    Attributes:
        action: On prompt injections.
        threshold: The probability above which a stretch is an injection, in [0, 1].
        source: The source of the results, for `Sources`: an address or a name. `{url}` stands for the call's argument
            of that name.
        level: Trust in that source, where no policy of sources names it. What a trusted source names may be used in
            calls.
        arguments: The arguments of a call that hold its target, by name, `*` for all. None for arguments named like
            targets (`to`, `url`, `path`, `account`), or whose whole value is an address, link, account or path.
        allow: Targets that are always allowed: an address, a link or a path with everything below it, or `*` and the
            end of one, such as "*@firm.example".
    """

    action: Action = "redact"
    threshold: float = THRESHOLD
    source: str | None = None
    level: Level | None = None
    arguments: Sequence[str] | None = None
    allow: Sequence[str] = ()

    def __post_init__(self) -> None:
        among("action", self.action, get_args(Action))
        within("threshold", self.threshold, 0.0, 1.0)
        if self.level is not None:
            among("level", self.level, get_args(Level))
        if self.source is not None and not isinstance(self.source, str):
            raise OptionError(f"source must be an address or a name, got {clip(self.source)}")
        for name in ("arguments", "allow"):
            if (given := getattr(self, name)) is not None:
                if isinstance(given, str) or not all(isinstance(one, str) and one for one in given):
                    raise OptionError(f"{name} must be a list of texts, got {clip(given)}")
                object.__setattr__(self, name, tuple(given))

    def source_of(self, arguments: Mapping[str, Any]) -> str | None:
        """The source of a call's result; a missing or non-text argument counts as empty."""
        if self.source is None:
            return None
        given = {name: held for name, held in arguments.items() if isinstance(held, str)}
        return _ARGUMENT.sub(lambda name: given.get(name[1], ""), self.source) or None


@dataclass(frozen=True)
class ToolPolicy:
    """How the results of tools are treated.

    Attributes:
        tools: Settings by tool; the entry `*` holds for those that are not named, and without it the defaults do, which
            redact.
        sources: Trust in sources; None to use `ToolSettings.level` only.

    Raises:
        OptionError, UnknownNameError: A setting that does not exist or is out of its range.
    """

    tools: Mapping[str, ToolSettings | Mapping[str, Any]] = field(default_factory=dict)
    sources: Sources | Mapping[str, Any] | str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.tools, Mapping) or len(self.tools) > MAX_TOOLS:
            raise OptionError(f"tools must be settings by the name of a tool, got {clip(self.tools)}")
        default = _settings(ANY_TOOL, self.tools.get(ANY_TOOL, {}), ToolSettings())
        checked = {str(name): _settings(str(name), own, default) for name, own in self.tools.items()}
        object.__setattr__(self, "tools", {ANY_TOOL: default, **checked})
        object.__setattr__(self, "sources", Sources.of(self.sources))

    @classmethod
    def of(cls, value: ToolPolicy | Mapping[str, Any] | None) -> ToolPolicy:
        """A policy unchanged, a policy from settings by tool, or the defaults for None."""
        return value if isinstance(value, ToolPolicy) else cls(value or {})

    def settings(self, tool: str) -> ToolSettings:
        """The settings of a tool."""
        found = self.tools.get(tool, self.tools[ANY_TOOL])
        assert isinstance(found, ToolSettings)  # noqa: S101  they were made so
        return found

    def standing(self, tool: str, arguments: Mapping[str, Any], query: str = "", source: str | None = None) -> Standing:
        """The source of a call's result, its level, and the weight of the level."""
        settings = self.settings(tool)
        source = source or settings.source_of(arguments)
        if source is not None and (known := self._known(query, source)) is not None:
            return known
        level: Level = settings.level or "unknown"
        return source, level, trust(level)

    def trusts(self, link: str) -> bool:
        """Whether the policy of sources trusts an address."""
        known = self._known("", link)
        return known is not None and known[1] == "trusted"

    def _known(self, query: str, source: str) -> Standing | None:
        """The standing of a source by the policy of sources; None where it names none."""
        if self.sources is None:
            return None
        (found,) = self.sources.standings(query, [{"text": "", "source": source}])  # type: ignore[union-attr]
        return None if found.level == "unknown" else (source, found.level, found.trust)


def _settings(name: str, own: object, default: ToolSettings) -> ToolSettings:
    """Settings of a tool, completed with the defaults.

    Raises:
        UnknownNameError: A key that they do not have; the message has the nearest.
        OptionError: No mapping, or a value out of its range.
    """
    if isinstance(own, ToolSettings):
        return own
    if not isinstance(own, Mapping):
        raise OptionError(f"tools.{name} must be keys with values, got {clip(own)}")
    known = [one.name for one in fields(ToolSettings)]
    for key in own:
        if key not in known:
            raise UnknownNameError(f"setting of tools.{name}", str(key), known)
    try:
        return replace(default, **own)
    except (OptionError, TypeError) as error:
        raise OptionError(f"tools.{name}: {error}") from None


def identity_of(address: str | Sequence[str]) -> str:
    """A hash of a server's command line or URL; neither is stored, because both may contain secrets."""
    return _hash(address)


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

    Attributes:
        servers: Identity of a server -> name of an approved tool -> its hash.

    Raises:
        InputError: The file is not a lock file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.servers: dict[str, dict[str, str]] = {}
        content = read_small(path, MAX_LOCK_BYTES, "give a lock file", b'{"version":1,"servers":{}}')
        try:
            data = json.loads(content)
            self.servers = {str(name): dict(own["tools"]) for name, own in data["servers"].items()}
            if data["version"] != LOCK_VERSION:
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"{clip(str(path))} is no lock file of this version; make one with 'unpoison mcp-proxy --approve'"
            ) from None

    def approved(self, identity: str, tool: Mapping[str, Any]) -> bool | None:
        """Whether a tool equals the approved one; None if no tool of that name was approved."""
        own = self.servers.get(identity, {}).get(str(tool.get("name")))
        return None if own is None else own == tool_hash(identity, tool)

    def approve(self, identity: str, tools: Sequence[Mapping[str, Any]]) -> None:
        """Replace the approved tools of a server, and write the file atomically."""
        self.servers[identity] = {str(tool["name"]): tool_hash(identity, tool) for tool in tools}
        servers = {name: {"tools": own} for name, own in self.servers.items()}
        written = json.dumps({"version": LOCK_VERSION, "servers": servers}, indent=2) + "\n"
        write_file(self.path, [written.encode()])

    def others(self, identity: str) -> frozenset[str]:
        """The unified names of the approved tools of all other servers."""
        return frozenset(look_of(name) for other, own in self.servers.items() if other != identity for name in own)
