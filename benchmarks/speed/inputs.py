"""Questions with retrieved passages to measure on, made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Case", "cases"]

SNIPPET = 48
"""Words of a passage: the length of a search result's snippet."""

DIMENSIONS = 384
"""As many as the vectors of all-MiniLM-L6-v2 have."""

FUNCTION_WORDS = """
the of and to in a is was for on that by with as at from it his are an be were or which has had this first also their
its but not they have one who been after two all when other more new time there
"""

CONTENT_WORDS = """
water city year people world game home house team music film book country school state river family record island
company station number president war law history league player season album song church king village park bridge
road train ship engine flight bank market price money labour union party vote court judge crime police army navy
battle treaty border north south east west coast mountain valley forest lake field farm horse cattle wheat corn
sugar coffee wine beer bread fish meat salt iron steel gold silver copper coal oil gas power light heat sound
colour red blue green black white large small long short high low early late old young great major public private
local national foreign modern ancient royal common special final general open closed free hard soft warm cold
study report science theory method test result data model system design plan project program machine computer
network phone radio television newspaper magazine letter story novel poem theatre actor singer writer artist
painter museum gallery festival award prize medal champion coach stadium match goal score point race track
summer winter spring autumn morning evening night week month century decade age birth death marriage child son
daughter mother father brother sister wife husband friend leader member group class student teacher college
university degree research doctor hospital disease cancer heart blood brain drug health food plant tree flower
animal bird dog cat lion bear shark whale snake insect star planet moon sun sky space earth ocean sea wind rain
snow storm fire flood stone wood glass paper cloth skin hand eye head foot door window wall roof floor street
square tower castle palace temple garden hotel restaurant shop office factory port airport capital region
province district county population language religion culture society economy trade industry service product
"""

TOPICS = CONTENT_WORDS.split()

WORDS = [*FUNCTION_WORDS.split(), *TOPICS, *map(str, range(1000, 4000))]
"""From common to rare; their frequencies follow Zipf's law."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question, its passages in retrieval order, and their vectors, shape (k, d)."""

    question: str
    texts: tuple[str, ...]
    vectors: NDArray[np.float32]


def cases(k: int, count: int, *, poisons: int | None = None, seed: int = 0) -> list[Case]:
    """Cases that look like an attacked retrieval.

    Passages share their topic's words with the question; a fifth of them (or `poisons`) repeat the question and make
    one claim in nearly the same words. Cosines are about 0.4 between clean passages and 0.9 between poisons.
    """
    rng = np.random.default_rng((seed, k))
    return [_case(rng, k, max(1, k // 5) if poisons is None else poisons) for _ in range(count)]


def _case(rng: np.random.Generator, k: int, poisons: int) -> Case:
    topic = rng.choice(TOPICS, 12, replace=False).tolist()
    question = " ".join(["which", *topic[:4], "was", "the", *topic[4:7]])
    claim = _zipf(rng, SNIPPET - 12)
    texts = [_clean(rng, topic) for _ in range(k - poisons)]
    about, told = rng.normal(size=(2, DIMENSIONS))
    vectors = about + 1.2 * rng.normal(size=(k - poisons, DIMENSIONS))
    places = sorted(rng.choice(k, poisons, replace=False).tolist())
    for place in places:
        kept = [word for word in claim if rng.random() < 0.9]
        texts.insert(place, " ".join([question, *kept]))
        poison = about + told + 0.45 * rng.normal(size=DIMENSIONS)
        vectors = np.insert(vectors, place, poison, axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Case(question, tuple(texts), vectors.astype(np.float32))


def _clean(rng: np.random.Generator, topic: list[str]) -> str:
    words = _zipf(rng, SNIPPET)
    for place in rng.choice(SNIPPET, 6, replace=False):
        words[place] = topic[rng.integers(len(topic))]
    return " ".join(words)


@cache
def _frequencies() -> NDArray[np.float64]:
    weights: NDArray[np.float64] = 1 / np.arange(1, len(WORDS) + 1)
    return np.asarray(weights / weights.sum())


def _zipf(rng: np.random.Generator, count: int) -> list[str]:
    return [WORDS[i] for i in rng.choice(len(WORDS), count, p=_frequencies())]
