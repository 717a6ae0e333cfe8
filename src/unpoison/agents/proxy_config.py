"""`unpoison mcp-proxy --config FILE`: several servers, and how each tool of theirs is treated, in one YAML file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr

from unpoison.agents.lock_file import LockFile, identity_of
from unpoison.agents.mcp_messages import Gate
from unpoison.agents.mcp_servers import HttpServer, Server, StdioServer
from unpoison.agents.policy import ANY_TOOL, ToolPolicy
from unpoison.agents.proxy_bounds import ProxyBounds
from unpoison.errors import OptionError, UnknownNameError, UnpoisonError, clip
from unpoison.io.settings import Section, Text, load_yaml, walk

__all__ = ["ProxyConfig", "ServerConfig"]

MAX_SERVERS = 100

_VARIABLE = re.compile(r"\$\{(\w{1,100})\}")

HEADER_NAME = re.compile(r"[A-Za-z0-9_\-.]{1,200}")
SERVER_NAME = re.compile(r"[A-Za-z0-9_\-.]{1,64}")


class ServerConfig(Section):
    """One server.

    Attributes:
        command: Its command line; or
        url: its address, for streamable HTTP.
        headers: Sent to `url`; `${NAME}` stands for a variable of the environment, so that no secret is in the file.
        tools: What becomes of the results of each tool, as `policy.ToolSettings` has it; `*` for all others.
        sources: Who may be believed how far (`unpoison sources`), in place of the file's.
        descriptions: What becomes of tools with a finding, or that are not approved.
        timeout: Seconds for one request.
        max_message: Bytes of one message.
        per_second: Messages of the server that are no answers, in one second; more of them wait.
        in_flight: Requests of the server that wait for the host; more of them are refused.
    """

    command: Annotated[list[str], Field(min_length=1)] | None = None
    url: Text | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    tools: dict[str, Any] = Field(default_factory=dict)
    sources: str | dict[str, Any] | None = None
    descriptions: Literal["withhold", "flag"] = "withhold"
    timeout: Annotated[float, Field(ge=0.001, le=86_400)] = 120.0
    max_message: Annotated[int, Field(ge=1024, le=2**30)] = 16 * 2**20
    per_second: Annotated[int, Field(ge=1, le=1_000_000)] = 1_000
    in_flight: Annotated[int, Field(ge=1, le=10_000)] = 100

    @property
    def identity(self) -> str:
        """Which server it is, as a hash (`lock_file.identity_of`)."""
        return identity_of(self.url or self.command or [])

    @property
    def bounds(self) -> ProxyBounds:
        """What it may do to its host."""
        return ProxyBounds(
            message_bytes=self.max_message,
            seconds=self.timeout,
            per_second=self.per_second,
            in_flight=self.in_flight,
        )

    def server(self, environment: Mapping[str, str]) -> Server:
        """The server; not started.

        Raises:
            OptionError: A header names a variable that is not set, or is one that no request can hold.
        """
        if self.command:
            return StdioServer(self.command, self.max_message, environment)
        headers = {name: _fill(value, environment) for name, value in self.headers.items()}
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or not (value.isascii() and value.isprintable()):
                raise OptionError(
                    f"headers: {clip(name)} has a name or a value that no header can hold; see its variable"
                )
        return HttpServer(self.url or "", self.max_message, headers)

    def gate(self, folder: Path, lock: LockFile | None, sources: object, others: Sequence[str] = ()) -> Gate:
        """What screens its replies.

        Args:
            folder: Where relative paths begin.
            lock: What was approved.
            sources: Those of the file.
            others: Names of tools that belong to other servers.

        Raises:
            OptionError, UnknownNameError: A setting of a tool that cannot be used.
        """
        own: Any = self.sources if self.sources is not None else sources
        policy = ToolPolicy(self.tools, str(folder / own) if isinstance(own, str) else own)
        return Gate(self.identity, policy, lock, self.descriptions, others)


class ProxyConfig(Section):
    """The file.

    Attributes:
        servers: By the name that `--server` chooses.
        lock: The lock file of all of them.
        audit: Where every screening is written down.
        metrics: Where counts are written for Prometheus; `{server}` stands for the server's name.
        sources: Who may be believed how far, where a server says nothing else.
    """

    servers: Annotated[dict[str, Any], Field(min_length=1, max_length=MAX_SERVERS)]
    lock: Text | None = None
    audit: Text | None = None
    metrics: Text | None = None
    sources: str | dict[str, Any] | None = None
    _folder: Path = PrivateAttr(Path())
    _read: dict[str, ServerConfig] = PrivateAttr(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file; every server in it is checked, also those that are not chosen.

        Raises:
            InputError: It cannot be read, or is no YAML.
            UnknownNameError: An unknown key; the message has the nearest.
            OptionError: A value that cannot be used.
        """
        return cls.of(load_yaml(path), path.parent)

    @classmethod
    def of(cls, values: object, folder: Path = Path()) -> Self:
        """The same of what a file in a folder holds."""
        for _ in walk(values, "the configuration"):
            pass
        config = cls.read(values, "the configuration")
        config._folder = folder
        for name, own in config.servers.items():
            if not SERVER_NAME.fullmatch(name):
                raise OptionError(f"servers.{name[:80]!r} must be a name of letters, digits, '.', '_' and '-'")
            server = _read_server(own, f"servers.{name}")
            if bool(server.command) == bool(server.url):
                raise OptionError(f"servers.{name} needs a command or a url; one of the two")
            config._read[name] = server
            config.gate(name, None)
        return config

    def choose(self, name: str | None) -> str:
        """The server of a name; the only one where none is given.

        Raises:
            UnknownNameError, OptionError: There is none of that name, or several to choose from.
        """
        if name is None and len(self._read) == 1:
            return next(iter(self._read))
        if name is None:
            raise OptionError(f"give --server, one of {', '.join(sorted(self._read))}")
        if name not in self._read:
            raise UnknownNameError("server", name, self._read)
        return name

    def __getitem__(self, name: str) -> ServerConfig:
        return self._read[name]

    def gate(self, name: str, lock: LockFile | None) -> Gate:
        """What screens the replies of a server; it knows which names of tools the file gives to the others.

        Raises:
            OptionError: A setting of a tool that cannot be used; the message has the server.
        """
        others = [tool for other, own in self._read.items() if other != name for tool in own.tools if tool != ANY_TOOL]
        try:
            return self._read[name].gate(self._folder, lock, self.sources, others)
        except UnpoisonError as error:
            raise OptionError(f"servers.{name}: {error}") from None

    def path(self, value: str | None, server: str = "") -> Path | None:
        """A path of the file, from where the file is."""
        return None if value is None else self._folder / value.replace("{server}", server)


def _read_server(values: object, name: str) -> ServerConfig:
    try:
        return ServerConfig.read(values, name)
    except OptionError as error:
        raise OptionError(f"{error}" if name in str(error) else f"{name}: {error}") from None


def _fill(text: str, environment: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        found = environment.get(match[1])
        if not found:
            raise OptionError(f"${{{match[1]}}} is not set; put it into the environment: export {match[1]}=...")
        return found

    return _VARIABLE.sub(value, text)
