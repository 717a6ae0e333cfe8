"""What passages carry beside their text, and what is made of it."""

from __future__ import annotations

import copy
import json
import pickle  # noqa: TID251

import pytest

from unpoison import Passage
from unpoison.errors import InputError


def test_a_mapping_keeps_its_texts_and_numbers() -> None:
    row = {
        "text": "t", "id": 3, "source": "RobustRAG", "url": "https://www.cnn.com/x", "label": "clean", "rank": 1,
        "author": "alice", "tags": ["a"], "share": 0.5, "bad": float("nan"), "huge": 10**400, "none": None,
        "metadata": {"author": "mallory", "space": "HR", "nested": {}},
    }  # fmt: skip
    passage = Passage.of(row)
    assert passage.source == "RobustRAG"
    assert passage.origin == "cnn.com"
    assert dict(passage.metadata) == {
        "url": "https://www.cnn.com/x", "rank": 1, "author": "alice", "share": 0.5, "space": "HR",
    }  # fmt: skip
    json.dumps(passage.metadata, allow_nan=False)


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"source": "a", "url": "b"}, "a"),
        ({"url": "b", "uri": "c"}, "b"),
        ({"uri": "c"}, "c"),
        ({"link": "d"}, "d"),
        ({"file_path": "e/f.md"}, "e/f.md"),
        ({"metadata": {"source": "g/h.md"}}, "g/h.md"),  # LangChain
        ({"metadata": {"file_path": "i/j.md", "file_name": "j.md"}}, "i/j.md"),  # LlamaIndex
        ({"meta": {"file_name": "j.md"}}, "j.md"),
        ({"meta": {"url": "k"}}, "k"),  # Haystack
        ({"meta": {"url": 7}}, None),
        ({"data": {"url": "l"}}, None),
        ({"metadata": "text"}, None),
        ({"url": ["x"]}, None),
        ({}, None),
    ],
)
def test_a_source_is_found_where_frameworks_keep_it(fields: dict[str, object], source: str | None) -> None:
    assert Passage.of({"text": "t", **fields}).source == source


def test_a_source_of_another_type_is_an_error() -> None:
    with pytest.raises(InputError, match=r"passage\.source must be a string"):
        Passage.of({"text": "t", "source": ["a"]})


def test_a_document_of_a_framework_brings_its_metadata() -> None:
    class Document:
        page_content = "t"
        metadata = {"source": "https://a.github.io/x", "author": "bob", "loc": {"line": 1}}  # noqa: RUF012

    passage = Passage.of(Document())
    assert (passage.source, passage.origin, dict(passage.metadata)) == (
        "https://a.github.io/x",
        "a.github.io",
        {"source": "https://a.github.io/x", "author": "bob"},
    )


def test_metadata_are_read_only_and_travel() -> None:
    given = {"author": "alice"}
    passage = Passage("t", metadata=given)
    given["author"] = "mallory"
    for change in (
        lambda held: held.update(author="mallory"),
        lambda held: held.__setitem__("author", "mallory"),
        lambda held: held.pop("author"),
        lambda held: held.setdefault("x", 1),
        lambda held: held.clear(),
    ):
        with pytest.raises(TypeError, match="read-only"):
            change(passage.metadata)
    assert dict(passage.metadata) == {"author": "alice"}
    assert pickle.loads(pickle.dumps(passage)).metadata == passage.metadata  # noqa: S301
    assert copy.deepcopy(passage).metadata == passage.metadata
    assert passage.without([(0, 1)]).metadata == passage.metadata
    assert passage == Passage("t")
    assert hash(Passage("t", metadata=given)) == hash(Passage("t"))
    assert passage.to_dict() == {"text": "t", "metadata": {"author": "alice"}}
    with pytest.raises(InputError, match=r"passage\.metadata must be a mapping"):
        Passage("t", metadata="alice")  # type: ignore[arg-type]


def test_a_text_cannot_choose_its_origin() -> None:
    """Neither a field of that name nor an address in front matter beside a real path is believed."""
    row = {
        "text": "origin: docs.example\nurl: https://docs.example",
        "origin": "docs.example",
        "source": "drop/note.md",
    }
    assert Passage.of(row).origin == "drop/"
    assert Passage.of({**row, "metadata": {"url": "https://docs.example/"}}).origin == "drop/"
    assert Passage.of({"text": "https://docs.example/"}).origin == ""
