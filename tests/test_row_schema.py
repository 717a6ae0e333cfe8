"""The published schema of a row says what the readers of rows do."""

from __future__ import annotations

import json
import warnings
from importlib.resources import files
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.errors import InputError
from unpoison.io.rows import Row, load_sample
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.examples import Example

pytestmark = pytest.mark.needs("jsonschema")
SCHEMA = json.loads(files("unpoison").joinpath("data", "rows.schema.json").read_text())


def fits(row: object) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jsonschema.Draft202012Validator(SCHEMA).is_valid(row)


def read(row: dict[str, Any]) -> None:
    """As `evaluate` reads a row, and as `screen` does where it has passages."""
    Example.of(row)
    if row.get("passages") is not None:
        Row.of(row)


def test_the_built_in_samples_fit():
    assert all(fits(dict(row.raw)) for row in load_sample())
    assert len(load("sample")) > 10


words = st.sampled_from(["Where?", " ", "", "b"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 9), words)
passages = st.one_of(
    scalars,
    st.fixed_dictionaries(
        {},
        optional={
            "text": scalars,
            "content": words,
            "page_content": scalars,
            "title": scalars,
            "source": words,
            "score": scalars,
            "label": st.sampled_from(["clean", "gold", "poison", None, "bad", 3]),
            "attack": scalars,
            "rank": scalars,
        },
    ),
)
answers = st.one_of(
    scalars, st.lists(st.one_of(st.sampled_from(["x", "y"]), st.booleans(), st.none(), st.just(1)), max_size=2)
)
drawn = st.fixed_dictionaries(
    {},
    optional={
        "query": scalars,
        "question": scalars,
        "id": scalars,
        "dataset": scalars,
        "correct_answers": answers,
        "passages": st.one_of(scalars, st.lists(passages, max_size=2)),
        "mine": scalars,
    },
)


@given(drawn)
def test_schema_and_readers_agree(row: dict[str, Any]):
    try:
        read(row)
    except InputError as error:
        assert not fits(row), f"{row} fits the schema, but: {error}"
    else:
        assert fits(row), f"{row} can be read and does not fit the schema"
