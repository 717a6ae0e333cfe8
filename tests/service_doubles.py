"""What the tests of the service share: defenses with simple manners, requests and what their failures look like."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from itertools import chain
from threading import Event
from typing import Any, Literal

from fastapi.testclient import TestClient

from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence, spans_of
from unpoison.defenses.base import Defense
from unpoison.models.requests import Flow, generate

Serving = Callable[..., TestClient]
"""The fixture `serving`: a client of a new application; the arguments are those of `create_app`."""

POISONED = ["clean alpha", "poison beta", "clean gamma", "poison delta"]


class Marked(Defense):
    """Drops what says "poison" and puts the last passage first."""

    name = "marked"
    summary = "drops what says poison"

    def __init__(
        self,
        word: str = "poison",
        *,
        reverse: bool = True,
        start: Literal["first", "last"] = "last",
        strength: int = 1,
        **models: Any,
    ) -> None:
        super().__init__(**models)
        self.word, self.reverse, self.start, self.strength = word, reverse, start, strength

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        kept = [i for i, passage in enumerate(passages) if self.word not in passage.text]
        return Screening.decided(
            self.name,
            query,
            passages,
            kept=kept[::-1] if self.reverse else kept,
            scores=[float(i in kept) for i in range(len(passages))],
            reasons=["kept, as it is clean" if i in kept else f"says {self.word}" for i in range(len(passages))],
            evidence=Evidence(notes=("noted",)),
        )
        yield ()


class Cuts(Marked):
    """Keeps what says "poison" without that word."""

    name = "cuts"

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        spans = {
            i: tuple(chain(*spans_of(p, [(*found.span(), 0.9, "bad") for found in re.finditer(self.word, p.reading)])))
            for i, p in enumerate(passages)
            if self.word in p.reading
        }
        k = len(passages)
        return Screening.decided(
            self.name, query, passages, kept=range(k), scores=[1.0] * k, reasons=["fine"] * k, spans=spans
        )
        yield ()


def later(seconds: float) -> None:
    """The clock of the running loop moves on: what is due by then is done now."""
    loop = asyncio.get_running_loop()
    before = loop.time
    loop.time = lambda: before() + seconds  # type: ignore[method-assign]


def stop_clock(client: TestClient) -> Callable[[float], None]:
    """The clock of the client's loop stands still from now on; what is returned moves it by seconds."""
    assert client.portal is not None
    call = client.portal.call

    def stop() -> list[float]:
        loop = asyncio.get_running_loop()
        moment = [loop.time()]
        loop.time = lambda: moment[0]  # type: ignore[method-assign]
        return moment

    now = call(stop)

    def move(seconds: float) -> None:
        now[0] += seconds

    return lambda seconds: call(move, seconds)


class Held(Marked):
    """Computes until it is let go."""

    name = "held"

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = Event(), Event()

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        self.begun.set()
        assert self.go.wait(30)
        return (yield from super().screening(query, passages))


class Asking(Marked):
    """Asks the language model about every passage before it screens."""

    name = "asking"
    needs = ("generator",)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        from unpoison.models.prompts import answer_prompt

        yield from generate([answer_prompt(query.text, [passage.text]) for passage in passages], "look")
        return (yield from super().screening(query, passages))


class Broken(Marked):
    """Has a bug, whose message quotes a passage."""

    name = "broken"

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        raise RuntimeError(f"cannot handle {passages[0].text}")
        yield ()


def body(**changed: Any) -> dict[str, Any]:
    """A request that can be served."""
    return {"query": "which word", "passages": POISONED, **changed}


def problem(response: Any, status: int) -> str:
    """The sentence of a failure, whose shape is checked."""
    assert response.status_code == status, response.text
    found = response.json()
    assert set(found) == {"error"}
    assert set(found["error"]) == {"type", "message"}
    return found["error"]["message"]
