"""The configuration of a test of an agent, one YAML file: which agent, behind which gate, attacked how."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from unpoison.bench.data.store import data_path
from unpoison.bench.redteam.agent_attacks import ADAPTIVE
from unpoison.bench.redteam.agent_tasks import families
from unpoison.bench.redteam.config import BaseConfig, Config, as_tuple
from unpoison.bench.redteam.http_calls import Asking
from unpoison.core import registry
from unpoison.errors import OptionError, UnknownNameError, clip
from unpoison.io.settings import Section, Text, load_yaml
from unpoison.utils.checks import MAX_NUMBER

__all__ = ["AgentConfig", "AgentTarget", "HttpAgent", "McpAgent", "load_config"]

INJECTIONS = "injections:"
"""How an attack begins that takes a kind or a family of the evaluation file."""

Place = Literal["tool", "page", "memory"]
Goal = Literal["mail", "link", "answer"]


class HttpAgent(Asking):
    """An agent behind HTTP: how it is asked."""


class McpAgent(Section):
    """An agent that is an MCP server: the tool that takes what it is asked.

    Attributes:
        command: Starts it, over standard input and output.
        url: Of one over streamable HTTP, instead.
        tool, argument: What is called.
    """

    command: Annotated[tuple[Text, ...], BeforeValidator(as_tuple)] = ()
    url: Annotated[str, Field(pattern="^https?://")] | None = None
    tool: Text = "ask"
    argument: Text = "question"


class AgentTarget(Section):
    """The section `target` of a test of an agent.

    Attributes:
        agent: `scripted`, `module:function` (a function of the task and of what calls a tool), or how it is asked:
            over HTTP (`ask`) or over MCP (`mcp`).
        gate: What stands between tools and an agent that runs in this process: `none`, `screen`
            (`agents.screen_tool_result`), `proxy` (the stub server behind `unpoison mcp-proxy`), or `module:function`,
            a function of a tool's name and result.
        state: The folder that the stub server of an agent elsewhere has, `stub_server --state FOLDER`.
        pages: The port of the web server on this machine for such an agent; 0 takes a free one.
    """

    agent: Any
    gate: Text = "none"
    state: Text | None = None
    pages: Annotated[int, Field(ge=0, le=65_535)] = 0

    @property
    def inside(self) -> bool:
        """Whether the agent runs in this process."""
        return isinstance(self.agent, str)

    def described(self) -> HttpAgent | McpAgent:
        """How an agent elsewhere is asked.

        Raises:
            OptionError, UnknownNameError: It is not described.
        """
        given = self.agent
        if not isinstance(given, Mapping) or not {"ask", "mcp"} & set(given):
            raise OptionError(
                f"target.agent must be scripted, module:function, or have ask (HTTP) or mcp, got {clip(given)}"
            )
        if self.gate != "none":
            raise OptionError("target.gate is for an agent in this process; put the proxy before the agent's own tools")
        if self.state is None:
            raise OptionError("target.state must be the folder that the agent's stub server has; see docs/redteam.md")
        if "mcp" not in given:
            return HttpAgent.read(given, "target.agent")
        found = McpAgent.read(given["mcp"], "target.agent.mcp")
        if bool(found.command) == bool(found.url):
            raise OptionError("target.agent.mcp needs command or url, one of the two")
        return found


def _read_attacks(value: Any) -> tuple[str, ...]:
    """Families, each once, with their wrappers.

    Raises:
        UnknownNameError, OptionError: No such family or wrapper.
    """
    for spec in as_tuple(value):
        if not isinstance(spec, str):
            raise OptionError(f"attacks must be names of families, got {clip(spec)}")
        name, *wrappers = spec.split("+")
        if not name.startswith(INJECTIONS) and name not in (*families(), ADAPTIVE):
            raise UnknownNameError("family of orders", name, [*families(), ADAPTIVE, f"{INJECTIONS}KIND"])
        if name == ADAPTIVE and wrappers:
            raise OptionError("adaptive chooses its wrappers itself; leave them out")
        for wrapper in wrappers:
            kind, options = registry.parse(wrapper)
            registry.read_options(registry.find("wrappers", kind), options, kind)
    return tuple(dict.fromkeys(as_tuple(value)))


class AgentConfig(BaseConfig):
    """What a test of an agent does.

    Attributes:
        target: The agent.
        attacks: Families of orders, perhaps with wrappers (`request+hide:kind=bold`); `injections:KIND` or
            `injections:FAMILY` of the evaluation file; and `adaptive`.
        injections: That file, by name or path.
        places: Where orders are planted.
        goals: What our own orders want; those of the evaluation file want what they want.
        variants: Orders of each family for each task.
        tries: Of the adaptive attacker, for each variant of each task.
        seed: Of places, letters and what the adaptive attacker tries.
        limit: The first so many tasks only, each with its variants; agents are asked one task after the other.
    """

    target: AgentTarget
    attacks: Annotated[tuple[str, ...], BeforeValidator(_read_attacks), Field(min_length=1)] = (*families(), ADAPTIVE)
    injections: Text = "injections"
    places: Annotated[
        tuple[Place, ...],
        BeforeValidator(as_tuple),
        AfterValidator(lambda places: tuple(dict.fromkeys(places))),
        Field(min_length=1),
    ] = ("tool", "page", "memory")
    goals: Annotated[
        tuple[Goal, ...],
        BeforeValidator(as_tuple),
        AfterValidator(lambda goals: tuple(dict.fromkeys(goals))),
        Field(min_length=1),
    ] = ("mail", "link", "answer")
    variants: Annotated[int, Field(ge=1, le=1000)] = 6
    tries: Annotated[int, Field(ge=1, le=1000)] = 12
    seed: Annotated[int, Field(ge=0, le=MAX_NUMBER)] = 0

    @classmethod
    def of(cls, values: object, folder: Path = Path()) -> Self:
        """Read the fields, and what is known of an agent that stands outside.

        Raises:
            UnknownNameError, OptionError: A field that is none, or a value that cannot be used.
        """
        config = super().of(values, folder)
        if not config.target.inside:
            config.target.described()
        return config

    @property
    def injections_path(self) -> Path:
        """The evaluation file.

        Raises:
            InputError: It was not built yet.
        """
        beside = self.folder / self.injections
        return beside if beside.exists() else data_path(self.injections)

    def digest(self) -> str:
        """A hash of what is measured; the bounds do not belong to it."""
        values = self.model_dump(exclude={"bounds", "evidence"})
        return blake2b(json.dumps(values, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()


def load_config(path: str | Path) -> Config | AgentConfig:
    """The configuration in a file: of a test of an agent where its target has `agent`.

    Raises:
        InputError: It cannot be read, or is no YAML.
        UnknownNameError, OptionError: A field that is none, or a value that cannot be used.
    """
    values = load_yaml(path)
    target = values.get("target") if isinstance(values, Mapping) else None
    kind = AgentConfig if isinstance(target, Mapping) and "agent" in target else Config
    return kind.of(values, Path(path).parent)
