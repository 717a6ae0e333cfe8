"""The shell around a defense: what it remembers, and on which thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from unpoison import Guard, Radar, Sources, Vanilla
from unpoison.beliefs import MemoryBeliefs
from unpoison.core.answers import Answer
from unpoison.defenses.base import Defense
from unpoison.models import ScriptedGenerator

QUERY = "when was the Vasa salvaged"
PASSAGES = [
    {"text": "The Vasa was salvaged in 1961.", "source": "https://museum.example/vasa"},
    {"text": "Stockholm has many museums.", "source": "https://city.example/"},
]


class Watched(Sources):
    """Sources that note the thread on which they are written."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []

    def record(self, question: str, outcomes: Mapping[str, Any]) -> None:
        self.threads.append(threading.current_thread())
        super().record(question, outcomes)


def learning(kind: Any = Guard, **options: Any) -> Defense:
    defense: Defense = kind(generator=ScriptedGenerator("in 1961"), sources=Watched(), **options)
    defense.learn = True
    return defense


async def streamed(defense: Defense, enough: type = Answer) -> None:
    async for event in defense.aanswer_stream(QUERY, PASSAGES):
        if isinstance(event, enough):
            break


WAYS: dict[str, Any] = {
    "ascreen": lambda defense: defense.ascreen(QUERY, PASSAGES),
    "aanswer": lambda defense: defense.aanswer(QUERY, PASSAGES),
    "aanswer_stream": streamed,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [Guard, Vanilla])
def test_an_asynchronous_caller_is_remembered_beside_the_event_loop(way: str, kind: Any) -> None:
    defense = learning(kind)
    asyncio.run(WAYS[way](defense))
    watched: Any = defense.sources
    assert len(watched.threads) == 1
    assert watched.threads[0] is not threading.main_thread()
    assert {past.origin for past in watched.history.rows()} == {"museum.example", "city.example"}


def test_a_stream_of_beliefs_is_remembered_once() -> None:
    defense = learning(Radar, beliefs=MemoryBeliefs())
    asyncio.run(streamed(defense))
    assert len(defense.sources.threads) == 1  # type: ignore[union-attr]


def test_a_stream_remembers_before_its_answer_and_one_that_is_left_early_does_not() -> None:
    left, read = learning(), learning()
    asyncio.run(streamed(left, enough=str))
    asyncio.run(streamed(read))
    assert (len(left.sources.threads), len(read.sources.threads)) == (0, 1)  # type: ignore[union-attr]


def test_nothing_is_remembered_unless_it_is_asked_for() -> None:
    defense = Guard(generator=ScriptedGenerator("in 1961"), sources=Watched())
    for way in WAYS.values():
        asyncio.run(way(defense))
    defense.screen(QUERY, PASSAGES)
    assert defense.sources.threads == []  # type: ignore[union-attr]
