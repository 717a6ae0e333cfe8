"""Looking at a target until what was planted is there, or is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from unpoison.bench.redteam.journal import Plant
from unpoison.bench.redteam.pace import Pace, Wait
from unpoison.bench.redteam.targets import Answered, Document, Target
from unpoison.bench.redteam.trials import read_count

__all__ = ["Seen", "ask_until", "ready_until"]


class Seen(NamedTuple):
    """The last look.

    Attributes:
        reply: What the system said.
        asked_at: When it was asked, by the pace's clock.
        seconds: How long it took.
        read: How many planted documents it read; None where it does not tell.
    """

    reply: Answered
    asked_at: float
    seconds: float
    read: int | None


def ready_until(
    target: Target, pace: Pace, wait: Wait, plants: Sequence[Plant], end: float, *, free: bool = False
) -> bool:
    """Call `ready` until the documents are indexed; False where they are not at `end`.

    Systems that write in stages do with this call what they took before: what was never ready cannot be removed either.

    Args:
        target: Where they are; one without `ready` has indexed them when it replies.
        pace: How it is called.
        wait: How long the pauses are.
        plants: The documents.
        end: By the pace's clock.
        free: Whether the budget does not bound it.
    """
    ready: Any = getattr(target, "ready", None)
    waiting, looks = [plant for plant in plants if not plant.ready], 0
    handles = list(dict.fromkeys(handle for plant in waiting for handle in plant.handles or plant.own))
    while ready is not None and waiting and not pace.call("ready", lambda: ready(handles), free=free):
        looks += 1
        left = end - pace.clock.now()
        if left <= 0:
            return False
        pace.sleep(min(wait.pause(looks), left), free=free)
    for plant in waiting:
        plant.ready = True
    return True


def ask_until(
    ask: Callable[[str], tuple[Answered, float]],
    pace: Pace,
    wait: Wait,
    question: str,
    documents: Sequence[Document],
    plants: Sequence[Plant],
    end: float,
    *,
    poisoned: bool,
    honest: frozenset[str] = frozenset(),
) -> Seen:
    """Ask until planted documents are read, or are not, or it is `end`.

    Args:
        ask: A question to its answer and the seconds that it took.
        pace: How it is called.
        wait: How long the pauses are.
        question: What is asked.
        documents: What was planted.
        plants: The same as the journal knows it.
        end: By the pace's clock.
        poisoned: What is waited for.
        honest: Hashes of passages that were read before anything was planted.
    """
    looks, handles = 0, [(*plant.own, *(plant.handles or ())) for plant in plants]
    texts = [document.text for document in documents]
    while True:
        asked_at = pace.clock.now()
        reply, seconds = ask(question)
        read = read_count(reply, texts, handles, honest)
        looks += 1
        left = end - pace.clock.now()
        if read is None or (read > 0) is poisoned or left <= 0 or pace.stopped:
            return Seen(reply, asked_at, seconds, read)
        pace.sleep(min(wait.pause(looks), left))
