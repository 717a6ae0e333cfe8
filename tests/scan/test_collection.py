"""The collection of a scan: what is said of the documents, and which belong together."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.scan.collection import COPY, Groups, collect_documents


def notes(*rows: dict[str, str]) -> tuple[str, ...]:
    return collect_documents(rows).notes


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "a", "text": "x"}], ["there is only one document: it was checked without a comparison"]),
        ([{"id": "a", "text": "x"}, {"id": "b", "text": "y"}], []),
        (
            [{"text": "x"}, {"id": "b", "text": "y"}],
            ["1 of 2 documents have no id and are named by a hash of their text"],
        ),
        ([{"id": "a", "text": " "}, {"id": "b", "text": "y"}], ["1 document is empty"]),
    ],
)
def test_a_note_says_what_is_unusual_of_the_documents(rows: list[dict[str, str]], said: list[str]) -> None:
    assert list(notes(*rows)) == said


@pytest.mark.parametrize(("count", "more"), [(2, " and 1 more"), (3, " and 2 more")])
def test_duplicate_ids_are_named_as_they_are_called_here(count: int, more: str) -> None:
    rows = [{"id": "a", "text": f"text {i}"} for i in range(count)]
    (note,) = notes(*rows, {"id": "b", "text": "z"})
    assert note.startswith("some ids are duplicates; quarantine them by their names here: 'a#")
    assert note.endswith(f"'{more}")


def test_a_question_is_made_of_rare_words_or_of_the_beginning() -> None:
    collection = collect_documents([{"id": "a", "text": "Red apples fall."}, {"id": "b", "text": "the and"}])
    assert collection.question(0) == "Red apples fall"
    assert [collection.has_question(i) for i in range(2)] == [True, bool(collection.probes[1].question)]


def test_documents_are_grouped_with_all_that_they_are_joined_to() -> None:
    groups = Groups(6)
    for pair in ((4, 2), (5, 4), (1, 0)):
        groups.join(*pair)
    assert groups.names() == {0: "g1", 1: "g1", 2: "g2", 4: "g2", 5: "g2"}
    assert Groups(2).names() == {}
    assert Groups(0).names() == {}


@pytest.mark.parametrize(
    ("suspicious", "cosine", "owner", "joined"),
    [
        ([0, 1], COPY, [0, 1], True),
        ([0, 1], COPY - 0.01, [0, 1], False),
        ([0], COPY, [0, 1], False),
        ([0, 1], COPY, [0, 0], False),
    ],
)
def test_suspicious_copies_of_different_documents_belong_together(
    suspicious: list[int], cosine: float, owner: list[int], joined: bool
) -> None:
    groups = Groups(2)
    near, alike = np.array([[1], [-1]], np.int32), np.array([[cosine], [0.0]])
    groups.join_copies(suspicious, np.array(owner, np.int32), near, alike)
    assert bool(groups.names()) == joined
