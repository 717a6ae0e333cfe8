"""Ask an agent in its small office: in this process, behind a gate, or elsewhere over HTTP or MCP."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from unpoison.bench.redteam.agent_config import AgentConfig, HttpAgent
from unpoison.bench.redteam.agent_servers import mcp_caller, serve_pages
from unpoison.bench.redteam.agent_world import Call, CallTool, World, WorldFolder
from unpoison.bench.redteam.http_client import HttpClient
from unpoison.bench.redteam.http_hosts import Hosts
from unpoison.bench.redteam.http_target import HttpAsked
from unpoison.bench.redteam.objects import load_object
from unpoison.bench.redteam.scripted_agent import ScriptedAgent
from unpoison.bench.redteam.secrets import Secrets
from unpoison.bench.redteam.targets import Answered
from unpoison.errors import OptionError, TargetError, clip

__all__ = ["AgentSession", "open_session"]

SCREEN = "unpoison.agents:screen_tool_result"
"""The gate `screen`."""

SITE = "http://127.0.0.1:8790"
"""The address of pages for an agent in this process; nothing listens there, for its tools fetch no page."""

Answerer = Callable[[str, CallTool], str]


class AgentSession(NamedTuple):
    """An agent that can be asked.

    Attributes:
        name: Of the agent and its gate.
        site: The address of its pages.
        ask: A task in a world; the answer, and what was called.
    """

    name: str
    site: str
    ask: Callable[[str, World], tuple[str, list[Call]]]


@contextmanager
def open_session(
    config: AgentConfig, secrets: Secrets, hosts: Hosts, agent: Answerer | None = None
) -> Iterator[AgentSession]:
    """Start what the test of an agent needs.

    Args:
        config: Which agent, behind which gate.
        secrets: What `${NAME}` stands for.
        hosts: Where requests may go.
        agent: A function of a task and of what calls a tool, in place of the agent that the configuration names.

    Raises:
        OptionError: It names none.
        TargetError: A server cannot be used.
        MissingExtraError: A library that it needs is not installed.
    """
    target = config.target
    with ExitStack() as stack:
        if not target.inside and agent is None:
            yield stack.enter_context(_elsewhere(config, secrets, hosts))
            return
        answerer, name = agent or _answerer(str(target.agent), config.folder), str(target.agent)
        if target.gate == "proxy":
            folder = WorldFolder(Path(stack.enter_context(TemporaryDirectory(prefix="unpoison-"))))
            folder.write(World({}, "none"))
            caller = stack.enter_context(mcp_caller(stub_command(folder.path, proxy=True), config.bounds.timeout))
            yield AgentSession(
                f"{name} behind mcp-proxy", SITE, _in_folder(folder, lambda task: answerer(task, caller))
            )
            return
        gate = None if target.gate == "none" else _gate(target.gate, config.folder)
        name += "" if gate is None else f" behind {target.gate}"

        def ask(task: str, world: World) -> tuple[str, list[Call]]:
            call = world.call if gate is None else lambda tool, given: gate(tool, world.call(tool, given))
            return _text(answerer(task, call)), world.calls

        yield AgentSession(name, SITE, ask)


def stub_command(folder: Path, *, proxy: bool) -> list[str]:
    """The command that starts the stub server with a folder, behind the proxy or not."""
    stub = [sys.executable, "-m", "unpoison.bench.redteam.stub_server", "--state", str(folder)]
    return [sys.executable, "-m", "unpoison", "mcp-proxy", "--", *stub] if proxy else stub


@contextmanager
def _elsewhere(config: AgentConfig, secrets: Secrets, hosts: Hosts) -> Iterator[AgentSession]:
    """An agent that was started by somebody else, with a stub server that has the same folder."""
    described, target = config.target.described(), config.target
    folder = WorldFolder(config.folder / str(target.state))
    folder.write(World({}, "none"))
    with ExitStack() as stack:
        site = stack.enter_context(serve_pages(folder, target.pages))
        if isinstance(described, HttpAgent):
            asked = HttpAsked(described, secrets, hosts, timeout=config.bounds.timeout, folder=config.folder)
            name, ask = asked.name, lambda task: asked.ask(task).answer
        else:
            if described.url is not None:
                HttpClient(secrets, hosts, config.bounds.timeout).check(described.url)
            server = described.url or list(described.command)
            caller = stack.enter_context(mcp_caller(server, config.bounds.timeout))
            name = described.url or " ".join(described.command)
            ask = lambda task: caller(described.tool, {described.argument: task})  # noqa: E731
        try:
            yield AgentSession(name, site, _in_folder(folder, ask))
        finally:
            folder.write(World({}, "none"))


def _in_folder(folder: WorldFolder, ask: Callable[[str], str]) -> Callable[[str, World], tuple[str, list[Call]]]:
    def ask_in(task: str, world: World) -> tuple[str, list[Call]]:
        folder.write(world)
        return _text(ask(task)), folder.calls()

    return ask_in


def _answerer(name: str, folder: Path) -> Answerer:
    if name == "scripted":
        return lambda task, call: ScriptedAgent(call).ask(task)
    found = load_object(name, folder)
    if not callable(found):
        raise OptionError(f"target.agent {clip(name)} must be a function of the task and of what calls a tool")
    return found  # type: ignore[no-any-return]


def _gate(name: str, folder: Path) -> Callable[[str, str], str]:
    """A gate as a function of a tool's name and result to what the agent may read."""
    found = load_object(SCREEN if name == "screen" else name, folder)
    if not callable(found):
        raise OptionError(f"target.gate {clip(name)} must be none, screen, proxy or a function of tool and result")

    def gate(tool: str, result: str) -> str:
        screened = found(tool, result)
        return _text(getattr(screened, "value", screened))

    return gate


def _text(value: object) -> str:
    """An answer or a result as a text.

    Raises:
        TargetError: It is none.
    """
    if isinstance(value, Answered):
        value = value.answer
    if not isinstance(value, str):
        raise TargetError(f"an agent or its gate returned a {type(value).__name__}; return a text")
    return value
