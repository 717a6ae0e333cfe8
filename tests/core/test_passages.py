from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unpoison import Answer, Passage, Query, Screening, Verdict
from unpoison.core.passages import MAX_PASSAGES, as_passages, as_query
from unpoison.core.verdicts import Contest, Evidence, Rival
from unpoison.errors import InputError


@dataclass
class LangChainDocument:
    page_content: str
    metadata: dict[str, object]
    id: str | None = None


@pytest.mark.parametrize(
    "value",
    [
        "text",
        {"text": "text"},
        {"content": "text"},
        {"page_content": "text", "metadata": {}},
        LangChainDocument("text", {}),
        SimpleNamespace(content="text", meta={}),
        SimpleNamespace(node=SimpleNamespace(text="text", embedding=None), score=0.5),
        Passage("text"),
    ],
)
def test_a_passage_of_anything_that_carries_its_text(value: object) -> None:
    assert Passage.of(value).text == "text"


def test_fields_and_the_original_are_kept() -> None:
    given = {"text": "t", "id": 7, "title": "T", "source": "s", "score": 0.5, "embedding": [1, 2], "extra": object()}
    passage = Passage.of(given)
    assert (passage.id, passage.title, passage.source, passage.score) == ("7", "T", "s", 0.5)
    assert passage.embedding is not None
    assert passage.embedding.tolist() == [1.0, 2.0]
    assert passage.original is given


@pytest.mark.parametrize(
    ("title", "text", "reading"),
    [(None, "text", "text"), ("", "text", "text"), ("T", "text", "T\ntext"), ("text", "text goes on", "text goes on")],
)
def test_a_model_reads_the_title_above_the_text(title: str | None, text: str, reading: str) -> None:
    assert Passage(text, title=title).reading == reading


@pytest.mark.parametrize(
    ("title", "text", "body"),
    [
        (None, "text", "text"),
        ("", "text\nmore", "text\nmore"),
        ("T", "text\nmore", "text\nmore"),
        ("text", "text goes on", "text goes on"),
        ("T\nU", "text", "text"),
        ("\u200bT", "te\u200bxt", "text"),
        ("\u200b", "text\nmore", "text\nmore"),
        ("T", "\u200b", "T"),
    ],
)
def test_the_body_is_the_reading_without_the_title(title: str | None, text: str, body: str) -> None:
    assert Passage(text, title=title).body.strip() == body


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble, np.int64])
def test_embeddings_of_any_number_type_become_frozen_float32(dtype: type) -> None:
    vector = np.array([1, 2, 3], dtype=dtype)
    embedding = Passage("t", embedding=vector).embedding
    assert embedding is not None
    assert embedding.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        embedding[0] = 9
    assert vector[0] == 1
    vector[0] = 5
    assert embedding[0] == 1


@pytest.mark.parametrize(
    "bad", [[], [[1.0]], [1.0, None], ["a"], [True], [1 + 2j], [float("inf")], [1e300], object(), [[1], [1, 2]]]
)
def test_unusable_embeddings_are_refused(bad: object) -> None:
    with pytest.raises(InputError, match=r"passage\.embedding"):
        Passage("t", embedding=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 10**400, np.float32("nan"), "7", True])
def test_scores_that_no_json_holds_are_refused_by_position(bad: object) -> None:
    with pytest.raises(InputError, match=r"^passages\[1\]\.score "):
        as_passages(["text", {"text": "text", "score": bad}])


def test_a_query_may_bring_its_embedding() -> None:
    query = as_query(Query("q", embedding=np.array([1.0])))
    assert query.embedding is not None
    assert as_query("q") == Query("q")


def test_too_many_passages_are_refused_without_reading_them_all() -> None:
    def endless() -> object:
        while True:
            yield "text"

    with pytest.raises(InputError, match=f"more than {MAX_PASSAGES:,}"):
        as_passages(endless())


def screening() -> Screening:
    return Screening.decided(
        "test", Query("q"), as_passages(["a", "b", "c"]), kept=[2, 0], scores=[1, 0, 2], reasons=["x", "y", "z"],
        evidence=Evidence({"similarity": np.eye(3)}, ("a note",), graph="similarity"),
    )  # fmt: skip


def test_a_screening_is_read_by_position() -> None:
    example_screening = screening()
    assert example_screening.kept_indices == (2, 0)
    assert example_screening.dropped_indices == (1,)
    assert [p.text for p in example_screening.kept] == ["c", "a"]
    assert [p.text for p in example_screening.dropped] == ["b"]
    assert example_screening.select([10, 20, 30]) == [30, 10]
    assert example_screening.verdicts[1] == Verdict(1, kept=False, score=0.0, rank=None, reason="y")
    with pytest.raises(InputError, match="items holds 2 objects but 3 passages"):
        example_screening.select([1, 2])


def test_it_is_frozen_evidence_included() -> None:
    example_screening = screening()
    with pytest.raises(FrozenInstanceError):
        example_screening.defense = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        example_screening.evidence["similarity"][0, 0] = 2


def test_one_that_loses_a_passage_cannot_be_made() -> None:
    passages = as_passages(["a", "b"])
    with pytest.raises(ValueError, match="one verdict each"):
        Screening("test", "q", passages, (Verdict(0, True, 0.0, 0, ""),))
    with pytest.raises(ValueError, match="ranks"):
        Screening("test", "q", passages, (Verdict(0, True, 0.0, 0, ""), Verdict(1, True, 0.0, 0, "")))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"defense": "x"},
        {**screening().to_dict(), "verdicts": [{"index": 0}]},
        {**screening().to_dict(), "evidence": 3},
    ],
)
def test_what_is_no_saved_screening_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(InputError, match="not a saved screening"):
        Screening.from_dict(data)


# What is contested.

CONTEST = Contest((Rival("30 days", (0, 2), 2), Rival("14 days", (1,), 1)))


def test_a_contest_is_a_sentence() -> None:
    assert str(CONTEST) == "sources disagree: 30 days (2 passages), 14 days (1)"
    copies = Contest((Rival("30 days", (0, 2, 3), 2), Rival("14 days", (1, 4), 1)))
    assert str(copies) == "sources disagree: 30 days (3 passages, 2 independent), 14 days (2, 1 independent)"
    spoof = Contest((Rival('14 days (9), "30 days', (0,), 1), Rival("Paris", (1,), 1)))
    assert str(spoof) == 'sources disagree: "14 days (9), \'30 days" (1 passage), Paris (1)'
    assert copies.passages == (0, 1, 2, 3, 4)


@pytest.mark.parametrize(
    "rival",
    [("", (0,), 1), ("  ", (0,), 1), (None, (0,), 1), ("a", (), 0), ("a", (1, 0), 1), ("a", (0, 0), 1),
     ("a", (-1,), 1), ("a", (True,), 1), ("a", (0.0,), 1), ("a", ("0",), 1), ("a", (0,), 2), ("a", (0, 1), 0)],
)  # fmt: skip
def test_a_rival_out_of_range_cannot_be_made(rival: tuple[Any, Any, Any]) -> None:
    with pytest.raises(ValueError, match=r"rival needs|have 1 to"):
        Rival(*rival)


def test_a_contest_of_one_or_with_a_shared_passage_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="two or more rivals, got 1"):
        Contest((Rival("a", (0,), 1),))
    with pytest.raises(ValueError, match="supports two rivals"):
        Contest((Rival("a", (0, 1), 1), Rival("b", (1,), 1)))


def test_a_contest_of_a_passage_that_is_not_there_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="passage 3 is contested, but there are 3"):
        replace(screening(), contested=(Contest((Rival("a", (0,), 1), Rival("b", (3,), 1))),))


def test_contests_survive_json_and_stay_out_where_there_are_none() -> None:
    assert screening().contested == ()
    assert "contested" not in screening().summary()
    changed = replace(screening(), contested=(CONTEST,))
    assert changed.summary()["contested"][0]["says"] == str(CONTEST)
    assert Screening.from_dict(json.loads(json.dumps(changed.to_dict()))).contested == (CONTEST,)
    assert Answer("x", changed).contested == (CONTEST,)


@pytest.mark.parametrize("wrong", [3, ["x"], [{}], [{"rivals": []}], [{"rivals": [{"answer": "a"}]}]])
def test_malformed_contests_are_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="not a saved screening"):
        Screening.from_dict({**screening().to_dict(), "contested": wrong})


def test_a_url_is_read_alike_from_a_dict_and_by_name():
    named, read = Passage("a", url="https://x.example/a"), Passage.of({"text": "a", "url": "https://x.example/a"})
    assert (named.source, dict(named.metadata)) == (read.source, dict(read.metadata))
    assert named.to_dict() == read.to_dict()
    assert Passage("a", source="b", url="https://x.example/a").source == "b"


def test_the_markup_of_a_question_is_what_is_asked_about() -> None:
    assert Query("what does <b>bold</b> mean").reading == "what does <b>bold</b> mean"
    assert Passage("what <b>bold</b> means").reading == "what bold means"
