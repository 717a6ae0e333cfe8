"""The calls of a test over HTTP: `login`, `ask`, `plant`, `remove`, `find` and `ready`, each of one request or several.

A request may have places for what those before it took out of their replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from unpoison.bench.redteam.config import as_tuple
from unpoison.bench.redteam.http_request import MARKERS, Headers, Method, Request
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.presets import PRESETS, expand_preset
from unpoison.errors import OptionError, clip
from unpoison.io.settings import Text
from unpoison.scan.stores import is_store
from unpoison.utils.checks import MAX_NUMBER

__all__ = ["Ask", "Asking", "Find", "Login", "Plant", "Ready", "Remove", "Requests", "Steps", "Tool"]

R = TypeVar("R", bound=Request)

MAX_STEPS = 10
"""Of one call."""

MAX_TOOLS = 20


class Login(Request):
    """`login`: what is sent before everything else; its cookies, and what it takes, are those of all requests.

    Attributes:
        expires: Seconds after which it is sent again, or where they stand in the reply; after a 401 it always is.
    """

    owner = "login"
    places = ()

    expires: float | JsonPath | None = None

    @field_validator("expires", mode="before")
    @classmethod
    def _read_expires(cls, value: Any) -> Any:
        if isinstance(value, str):
            return JsonPath.of(value, "login.expires")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MAX_NUMBER:
            raise OptionError(f"login.expires must be seconds, or a path to them, got {clip(value)}")
        return float(value)


class Ask(Request):
    """`ask`: the answer to a question, and the passages, their ids or citations where the system tells them.

    Attributes:
        preset, model, stream: An endpoint that many have (`presets`), its model, and whether it answers as a stream.
    """

    owner = "ask"
    places, needed, required = ("question", "uuid"), ("question",), ("answer",)
    addresses = ()

    answer: JsonPath | None = None
    passages: JsonPath | None = None
    ids: JsonPath | None = None
    cited: JsonPath | Literal["markers"] | None = None
    preset: str | None = None
    model: str | None = None
    stream: bool = False

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, values: Any) -> Any:
        return expand_preset(values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _check_cited(self) -> Self:
        if self.cited == MARKERS and self.answer is None:
            raise OptionError("ask.cited: markers stand in an answer; put it beside answer")
        return self


class Plant(Request):
    """`plant`: puts a document in; `id` says where its id, or its pieces' ids, stand in the reply."""

    owner = "plant"
    places, needed = ("text", "title", "canary", "uuid"), ("text",)

    id: JsonPath | None = None


class Remove(Request):
    """`remove`: takes a document out."""

    owner = "remove"
    needed = ("id",)


class Find(Request):
    """`find`: the documents with a canary, and in each of them its id and its canary."""

    owner = "find"
    places = needed = ("canary", "uuid")
    required = ("items", "id", "canary")

    method: Method = "GET"
    items: JsonPath | None = None
    id: JsonPath | None = None
    canary: JsonPath | None = None


class Ready(Request):
    """`ready`: whether a document is indexed, which it is where `value` is `equals`; asked again by the test itself."""

    owner = "ready"
    required = ("value",)

    method: Method = "GET"


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What is looked for."}},
    "required": ["query"],
}


class Tool(Request):
    """`tools`: a retrieval that a chat endpoint has its caller run: a request, or a store by its address.

    Attributes:
        name, description: As the model is told.
        parameters: The JSON Schema of its arguments, an object; each is a place. One text, `query`, by default.
        passages, ids: Where they stand in the reply to the request.
        store: In place of a request; what `unpoison scan` takes.
        encoder: Of a vector store.
        k: Passages that a store gives.
    """

    owner = "tools"
    places, addresses = (), ()

    url: str = ""
    name: str
    description: str = "Searches the documents."
    parameters: dict[str, Any] | None = None
    passages: JsonPath | None = None
    ids: JsonPath | None = None
    store: Text | None = None
    encoder: Text | None = None
    k: Annotated[int, Field(ge=1, le=1000)] = 5

    @model_validator(mode="after")
    def _check_tool(self) -> Self:
        if not _NAME.fullmatch(self.name):
            raise OptionError(f"tools: {clip(self.name)} is no name of a tool; use up to 64 letters, digits, _ and -")
        if bool(self.url) == bool(self.store):
            raise OptionError(f"tools: {self.name} needs url, how it is called, or store, where it searches")
        if not isinstance(self.schema_of_arguments.get("properties"), Mapping):
            raise OptionError(f"tools: {self.name}.parameters must be the JSON Schema of an object, with properties")
        if self.store is None and self.passages is None and self.ids is None:
            raise OptionError(f"tools: {self.name} needs passages, where the texts stand in its reply, or ids")
        if self.store is not None and "query" not in self.arguments:
            raise OptionError(f"tools: {self.name} searches a store for its parameter query; add it")
        if self.store is not None and is_store(self.store) and self.encoder is None:
            raise OptionError(f"tools: {self.name}.store takes vectors; name the encoder of the system, such as minilm")
        return self

    @property
    def schema_of_arguments(self) -> Mapping[str, Any]:
        """As the model is told."""
        return _QUERY if self.parameters is None else self.parameters

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(map(str, self.schema_of_arguments["properties"]))

    @property
    def needs(self) -> list[str]:
        """The arguments without which it cannot be called."""
        required = self.schema_of_arguments.get("required")
        wanted = set(required) if isinstance(required, list) else set()
        used = {"query"} if self.store else self.used
        return [name for name in self.arguments if name in used and (name in wanted or not isinstance(required, list))]

    @property
    def tells_ids(self) -> bool:
        return self.store is not None or self.ids is not None


def _check_tools(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    names = [tool.name for tool in tools]
    if len(tools) > MAX_TOOLS or len(set(names)) < len(names):
        raise OptionError(f"tools must be at most {MAX_TOOLS}, each with a name of its own, got {clip(names)}")
    return tools


def _check_steps(steps: tuple[R, ...]) -> tuple[R, ...]:
    """Refuse too many steps, and steps none of which holds what a call needs."""
    kind = type(steps[0])
    if len(steps) > MAX_STEPS:
        raise OptionError(f"{kind.owner} has {len(steps):,} steps; {MAX_STEPS} are the most")
    lacking = [[name for name in kind.required if getattr(step, name) is None] for step in steps]
    if kind.required and all(lacking):
        raise OptionError(f"{kind.owner} needs {min(lacking, key=len)[0]}; add it")
    if kind.needed and not any(step.used & set(kind.needed) for step in steps):
        raise OptionError(
            f'{kind.owner} never mentions {{{kind.needed[0]}}}; write it in quotes, as in "{{{kind.needed[0]}}}"'
        )
    return steps


Steps = Annotated[tuple[R, ...], BeforeValidator(as_tuple), Field(min_length=1), AfterValidator(_check_steps)]
"""One request, or several that are one call."""


class Asking(Headers):
    """How a system behind HTTP is asked, perhaps behind a login; `headers` are those of all requests.

    `tools` are what a chat endpoint has its caller run (`http_tools`).
    """

    login: Steps[Login] | None = None
    ask: Steps[Ask]
    tools: Annotated[tuple[Tool, ...], BeforeValidator(as_tuple), AfterValidator(_check_tools)] = ()

    @property
    def steps(self) -> dict[str, tuple[Request, ...]]:
        """The requests by their kind, the login apart, each with the headers of all."""
        kinds = {name: value for name, value in self if isinstance(value, tuple) and value and name != "login"}
        return {
            kind: tuple(s.model_copy(update={"headers": {**self.headers, **s.headers}}) for s in steps)
            for kind, steps in kinds.items()
        }

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        """Refuse a place that nothing fills."""
        taken = _check_known(self.login or (), ())
        for kind, steps in self.steps.items():
            if kind != "tools":
                _check_known(steps, taken)
        for tool in self.tools:
            _check_known([tool], (*tool.arguments, *taken))
        if self.tools and all(step.preset is None for step in self.ask):
            raise OptionError(f"tools belong to a chat endpoint; give ask a preset ({', '.join(PRESETS)})")
        return self


def _check_known(steps: Sequence[Request], taken: Iterable[str]) -> list[str]:
    """What is taken when the steps are done.

    Raises:
        OptionError: A step has a place for what is not known yet.
    """
    known = list(taken)
    for step in steps:
        for name in sorted(step.used - {*step.places, *known}):
            listed = ", ".join(f"{{{place}}}" for place in (*step.places, *known)) or "none before something is taken"
            raise OptionError(f"{step.owner}: {{{name}}} is unknown; it may hold {listed}")
        known += step.take
    return known


class Requests(Asking):
    """The section `target` of a system behind HTTP."""

    plant: Steps[Plant]
    remove: Steps[Remove]
    find: Steps[Find] | None = None
    ready: Steps[Ready] | None = None
