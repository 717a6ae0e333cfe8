"""The calls of a test over HTTP: `login`, `ask`, `plant`, `remove`, `find` and `ready`, each of one request or several.

A request may have places for what those before it took out of their replies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from unpoison.bench.redteam.config import as_tuple
from unpoison.bench.redteam.http_request import MARKERS, Headers, Method, Request
from unpoison.bench.redteam.json_path import JsonPath
from unpoison.bench.redteam.presets import expand_preset
from unpoison.errors import OptionError, clip
from unpoison.utils.checks import MAX_NUMBER

__all__ = ["Ask", "Asking", "Find", "Login", "Plant", "Ready", "Remove", "Requests", "Steps"]

R = TypeVar("R", bound=Request)

MAX_STEPS = 10
"""Of one call."""


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
    """How a system behind HTTP is asked, perhaps behind a login; `headers` are those of all requests."""

    login: Steps[Login] | None = None
    ask: Steps[Ask]

    @property
    def steps(self) -> dict[str, tuple[Request, ...]]:
        """The requests by their kind, the login apart, each with the headers of all."""
        kinds = {name: value for name, value in self if isinstance(value, tuple) and name != "login"}
        return {
            kind: tuple(s.model_copy(update={"headers": {**self.headers, **s.headers}}) for s in steps)
            for kind, steps in kinds.items()
        }

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        """Refuse a place that nothing fills."""
        taken = _check_known(self.login or (), ())
        for steps in self.steps.values():
            _check_known(steps, taken)
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
