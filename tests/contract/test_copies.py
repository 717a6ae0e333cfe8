"""Whatever the package hands out can be copied, and crosses to a worker that was spawned."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import methodcaller
from typing import Any

import numpy as np
import pytest

import unpoison
from contract.test_promises import QUERY, SHARKS
from needs import need
from unpoison import Guard, Limits, Passage, Query, Rag, Sources, UnpoisonError, load_defense
from unpoison.core.reasons import Reason
from unpoison.retrieval import BM25Retriever, DenseRetriever
from unpoison.retrieval.faiss import FaissStore
from unpoison.retrieval.store_retriever import StoreRetriever

GIVEN = [{"id": str(i), "text": text, "source": f"https://a{i}.example/x"} for i, text in enumerate(SHARKS)]
SCREEN = methodcaller("screen", QUERY, GIVEN)
RETRIEVE = methodcaller("retrieve", "sharks arena", 3)
LOOK = methodcaller("__repr__")


class Letters:
    """Encodes a text as how often it has each of eight letters."""

    name = "letters"

    def encode(self, texts: Any, /) -> Any:
        return np.array([[text.lower().count(letter) + 1 for letter in "aeiorstn"] for text in texts], np.float32)


def of_faiss() -> StoreRetriever:
    need("faiss")
    retriever = StoreRetriever(FaissStore(), Letters())
    retriever.add(GIVEN)
    return retriever


def with_reader() -> Guard:
    need("unpoison_reader")
    return Guard(generator="reader", sources=Sources({"trusted": ["a0.example"]}))


def answer_given(defense: Any) -> tuple[Any, ...]:
    answer = defense.answer(QUERY, GIVEN)
    return answer.text, answer.screening, answer.claims


def answer_retrieved(rag: Any) -> tuple[Any, ...]:
    answer = rag.ask(QUERY)
    return answer.text, answer.screening


def screened() -> Any:
    return Guard().screen(QUERY, GIVEN)


def answered() -> Any:
    return Guard(generator="extractive").answer(QUERY, GIVEN)


MADE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "Query": (lambda: Query(QUERY), LOOK),
    "Passage": (lambda: Passage(SHARKS[0], embedding=[0.5, 1.0], source="https://a.example/x"), LOOK),
    "Screening": (screened, methodcaller("to_dict")),
    "Verdict": (lambda: screened().verdicts[0], LOOK),
    "Reason": (lambda: Reason.of("nothing.retrieved", rank=1), str),
    "Answer": (answered, methodcaller("to_dict")),
    "Claim": (lambda: answered().claims, LOOK),
    "Limits": (Limits, LOOK),
    "Sources": (
        lambda: Sources({"blocked": ["a0.example"]}),
        methodcaller("origin", Passage("x", source="https://b.example")),
    ),
    "UnpoisonError": (lambda: UnpoisonError("no"), str),
    "Guard": (with_reader, answer_given),
    "Rag": (lambda: Rag(BM25Retriever(GIVEN), "guard", "extractive"), answer_retrieved),
    "BM25Retriever": (lambda: BM25Retriever(GIVEN), RETRIEVE),
    "DenseRetriever": (lambda: DenseRetriever(Letters(), GIVEN), RETRIEVE),
    "StoreRetriever": (of_faiss, RETRIEVE),
    **{
        name: (lambda name=name: load_defense(name.lower(), generator="extractive"), SCREEN)
        for name in ("Grada", "RagDefender", "TrustRag", "Radar", "Vote", "Vanilla")
    },
}
"""What is made of each public class, and what is asked of its copies."""


def test_every_public_class_is_tried() -> None:
    classes = {name for name in unpoison.__all__ if isinstance(getattr(unpoison, name), type)}
    assert classes - MADE.keys() == {"Defense"}  # abstract


@pytest.fixture(scope="module")
def worker() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", MADE)
def test_it_is_copied_and_crosses_to_a_worker(name: str, worker: ProcessPoolExecutor) -> None:
    make, ask = MADE[name]
    thing = make()
    wanted = ask(thing)
    assert ask(copy.deepcopy(thing)) == wanted
    assert worker.submit(ask, thing).result(60) == wanted


def test_evidence_stays_read_only() -> None:
    evidence = copy.deepcopy(screened()).evidence
    with pytest.raises(ValueError, match="read-only"):
        next(iter(evidence.values()))[:] = np.nan
