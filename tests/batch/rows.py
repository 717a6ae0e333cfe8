"""Rows of every kind that the tests of the batches use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

GOOD = {
    "id": "é-1",
    "question": "which city has the museum of the warship Vasa",
    "passages": [
        "which city has the museum of the warship Vasa. The salvaged ship is located in Gothenburg, a renowned port, "
        "beside the harbour.",
        {"text": "The Vasa Museum stands on Djurgården in Stockholm.", "title": "Vasa", "score": 0.5},
        {"content": "The salvaged hull was moved to the museum in Stockholm in December 1988. 漢字", "id": 7},
        {"page_content": "Visitors to Djurgården see the carved stern of the hull from six levels."},
    ],
    "mine": {"nested": [1, None, 2.5]},
}

ODD = [
    GOOD,
    {"query": "no passages at all", "passages": []},
    {"question": None, "passages": ["a"]},
    {"query": "bad passage", "passages": ["fine", 7]},
    {"query": "bad passages", "passages": "one text"},
    {"query": "half a pair \ud800", "passages": ["a \udfff b", "c", "d e", "f g"]},
    {"query": "embedded", "passages": [{"text": "a", "embedding": [1.0, None]}, "b"]},
    {"query": "stale", "passages": ["a b", "c d"], "screening": {"old": 1}, "error": "old"},
]

RAW = [
    b"nonsense\n",
    b"\n",
    b'{"query": "nan", "passages": [{"text": "a", "embedding": [NaN, 1.0]}]}\n',
    b'{"query": "\xff"}\n',
    b"[1, 2]\n",
    b"{}\n",
]

TEXTS = st.text(max_size=12) | st.sampled_from(["the hull stands in Stockholm", "half \ud800", "", "\x00\u2028\x85"])
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS, st.lists(TEXTS)
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "query": TEXTS | ANYTHING,
            "question": TEXTS,
            "passages": st.lists(TEXTS | st.fixed_dictionaries({"text": TEXTS | ANYTHING}), max_size=4) | ANYTHING,
            "mine": ANYTHING,
        },
    ),
    max_size=12,
)


def good(number: int) -> dict[str, Any]:
    """A usable row that differs from the others."""
    passages = [f"{passage if isinstance(passage, str) else ''} {number}" for passage in GOOD["passages"]]
    return {**GOOD, "id": f"row {number}", "passages": [*GOOD["passages"], *passages]}


def write(path: Path, rows: list[dict[str, Any]], raw: list[bytes] | None = None) -> Path:
    path.write_bytes(b"".join([*(json.dumps(row).encode() + b"\n" for row in rows), *(raw or ())]))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
