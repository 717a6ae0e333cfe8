from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.algorithms.bm25 import bm25
from unpoison.core.passages import Passage
from unpoison.errors import InputError, OptionError
from unpoison.retrieval import BM25Retriever, Retriever
from unpoison.retrieval.bm25 import BM25Index
from unpoison.text.tokens import stems

TEXTS = [
    "Bananas grow in the tropics.",
    "Paris is the capital of France.",
    "The capital of Spain is Madrid.",
    "The capital of Spain is Madrid.",
]
DOCUMENTS = st.lists(st.lists(st.sampled_from("abcde"), max_size=8), max_size=8)


@given(documents=DOCUMENTS, query=st.lists(st.sampled_from("abcdef"), max_size=6), k1=st.sampled_from([0.0, 0.9, 1.5]))
def test_the_index_scores_as_the_kernel_does(documents, query, k1):
    index = BM25Index(k1=k1)
    for document in documents:
        index.add(document)
    np.testing.assert_allclose(
        index.scores(query), bm25([query], documents, statistics="candidates", k1=k1)[0], atol=1e-12
    )


def test_best_first_with_ids_and_scores_and_no_embeddings():
    retriever = BM25Retriever(TEXTS)
    passages = retriever.retrieve("the capital of Spain", 10)
    assert [p.id for p in passages] == ["2", "3", "1"]  # 2 and 3 tie; 0 shares no token
    assert passages[0].score == passages[1].score > passages[2].score > 0
    assert [p.embedding for p in passages] == [None] * 3
    assert retriever.encoder is None
    assert isinstance(retriever, Retriever)


def test_fewer_more_and_none():
    retriever = BM25Retriever(TEXTS)
    assert [p.id for p in retriever.retrieve("capital", 2)] == ["1", "2"]
    assert retriever.retrieve("capital", 0) == ()
    assert retriever.retrieve("", 3) == retriever.retrieve("of the and", 3) == retriever.retrieve("zebra", 3) == ()
    assert BM25Retriever().retrieve("capital", 3) == ()
    assert BM25Retriever(["", " ", "the"]).retrieve("the", 3) == ()


def test_ids_are_kept_and_an_id_again_is_refused_as_a_whole():
    retriever = BM25Retriever([Passage("Spain", id="a"), {"content": "Portugal", "id": 7}])
    retriever.add(["Andorra"])
    assert [retriever.retrieve(name, 1)[0].id for name in ("Spain", "Portugal", "Andorra")] == ["a", "7", "2"]
    for wrong, position in (
        ([Passage("France", id="b"), Passage("x", id="a")], 1),
        ([Passage("x", id="b"), Passage("y", id="b")], 1),
        ([Passage("x", id="4"), "y"], 1),  # the place of the second
    ):
        with pytest.raises(InputError, match=rf"passages\[{position}\].id is '[ab4]', which another passage has"):
            retriever.add(wrong)
    assert len(retriever) == 3
    assert retriever.retrieve("France", 1) == ()


def test_unusable_passages_are_refused():
    with pytest.raises(InputError, match=r"passages\[1\] has no text, got None"):
        BM25Retriever(["a", None])
    with pytest.raises(InputError, match="wrap it in a list"):
        BM25Retriever("one text")


def test_the_callers_object_comes_along():
    document = {"text": "Spain", "page": 3}
    assert BM25Retriever([document]).retrieve("spain", 1)[0].original is document


def test_another_tokeniser_for_other_scripts():
    texts = ["圣何塞鲨鱼队在SAP中心比赛", "鲨鱼队的主场是李维斯体育场", "巴黎是法国的首都"]
    assert BM25Retriever(texts).retrieve("首都", 1) == ()
    assert [p.id for p in BM25Retriever(texts, tokenize=stems).retrieve("首都", 1)] == ["2"]


def test_options_are_checked():
    for options in ({"k1": -0.1}, {"b": 1.5}, {"k1": float("nan")}):
        with pytest.raises(OptionError):
            BM25Retriever(**options)


def test_searching_while_others_add():
    retriever = BM25Retriever(TEXTS)
    positions: list[int] = []

    def search() -> None:
        positions.extend(len(retriever.retrieve("capital", 500)) for _ in range(100))

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(100):
        retriever.add([f"capital number {i}"])
    for thread in threads:
        thread.join()
    assert len(positions) == 300
    assert len(retriever.retrieve("capital", 500)) == 103
