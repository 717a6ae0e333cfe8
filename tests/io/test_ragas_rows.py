"""Rows as RAGAS writes them are read."""

from __future__ import annotations

import pytest

from unpoison import Sources
from unpoison.io.rows import Row


@pytest.mark.parametrize(
    "row",
    [
        {"question": "who", "contexts": ["Ada.", "Jo."], "answer": "Ada"},
        {"user_input": "who", "retrieved_contexts": ["Ada.", "Jo."]},
    ],
)
def test_rows_with_contexts(row: dict[str, object]):
    read = Row.of(row)
    assert (read.query.text, [passage.text for passage in read.passages]) == ("who", ["Ada.", "Jo."])
    assert Sources().learn([row]).history.rows() == []
