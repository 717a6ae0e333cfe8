"""Every result goes to a row and comes back the same, whatever else a newer version wrote there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.core.answers import Answer, Belief, BeliefUpdate, Call, Weights
from unpoison.core.codec import json_entries, to_row
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Contest, Evidence, Rival, Span, Verdict
from unpoison.errors import InputError

shares = st.floats(0, 1)
words = st.text(max_size=12)
names = st.text(min_size=1, max_size=8)
newer = st.dictionaries(st.sampled_from(["claims_of_tomorrow", "weight_of_tomorrow"]), st.none() | st.integers())
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
calls = st.builds(
    Call,
    words,
    words,
    words,
    st.floats(0, 1e6),
    items=st.integers(1, 9),
    prompt_tokens=st.none() | st.integers(0, 99),
    cached=st.booleans(),
)
beliefs = st.builds(Belief, st.sampled_from(["", "Paris"]), shares, shares, created=st.none() | st.floats(0, 1e9))
weights = st.none() | st.builds(Weights, shares, shares)
updates = st.builds(
    BeliefUpdate,
    st.none() | words,
    weights,
    weights,
    weights,
    st.none() | st.booleans(),
    words,
    st.none() | beliefs,
    st.booleans(),
)


@st.composite
def screenings(draw: Any) -> Screening:
    texts = draw(st.lists(st.text(min_size=1, max_size=9), min_size=2, max_size=5))
    passages = [Passage(text, title=draw(st.none() | names), id=draw(st.none() | names)) for text in texts]
    spans = {}
    for i, passage in enumerate(passages):
        field = draw(st.sampled_from(["text", "title"] if passage.title else ["text"]))
        end = draw(st.integers(1, len(passage.text if field == "text" else passage.title or "")))
        spans[i] = [Span(draw(st.integers(0, end - 1)), end, draw(shares), draw(words), field)] * draw(
            st.integers(0, 1)
        )
    k = len(texts)
    kept = draw(st.lists(st.integers(0, k - 1), unique=True))
    contest = Contest((Rival(draw(names.filter(str.strip)), (0,), 1), Rival("14 (days)", tuple(range(1, k)), k - 1)))
    arrays: dict[str, Any] = {
        "probability": np.array([draw(shares) for _ in texts]),
        "threshold": np.array(0.5),
        "calibration": np.array("minilm"),
        "similarity": np.eye(k, dtype=np.float32),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(arrays))))
    return Screening.decided(
        "guard",
        Query(draw(words)),
        passages,
        kept=kept,
        scores=[draw(shares) for _ in texts],
        reasons=[draw(words) for _ in texts],
        evidence=Evidence({name: arrays[name] for name in chosen}, tuple(draw(st.lists(words, max_size=2)))),
        contested=[contest] * draw(st.integers(0, 1)),
        spans=spans,
    )


@st.composite
def answers(draw: Any) -> Answer:
    return Answer(
        draw(words),
        draw(screenings()),
        tuple(draw(st.lists(calls, max_size=2))),
        draw(st.booleans()),
        draw(st.dictionaries(names, json_values, max_size=2)),
        draw(st.none() | updates),
        guarantee := draw(st.none() | st.integers(0, 5)),
        "" if guarantee is None else draw(words),
    )


def sent(row: Any, more: dict[str, Any]) -> Any:
    """Through JSON, with fields that only a newer version knows in every object."""

    def grown(value: Any) -> Any:
        if isinstance(value, list):
            return [grown(member) for member in value]
        if isinstance(value, dict) and "values" not in value:  # that is an array
            return {**{k: v if k in ("details", "arrays") else grown(v) for k, v in value.items()}, **more}
        return value

    return grown(json.loads(json.dumps(row, allow_nan=False)))


def same_evidence(ours: Evidence, theirs: Evidence) -> None:
    assert (ours.notes, ours.graph, set(ours)) == (theirs.notes, theirs.graph, set(theirs))
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype
        np.testing.assert_array_equal(ours[name], theirs[name])


@given(screenings(), newer)
def test_a_screening_comes_back(screening: Screening, more: dict[str, Any]):
    read = Screening.from_dict(sent(screening.to_dict(), more))
    assert read == screening
    assert all(isinstance(verdict.spans, tuple) for verdict in read.verdicts)
    same_evidence(read.evidence, screening.evidence)


@given(screenings(), newer)
def test_a_summary_comes_back_with_the_callers_passages(screening: Screening, more: dict[str, Any]):
    row = sent(screening.summary(), more)
    read = Screening.from_dict({**row, "query": screening.query, "passages": screening.passages})
    assert read == screening
    assert all(ours is theirs for ours, theirs in zip(read.passages, screening.passages, strict=True))
    assert read.summary() == screening.summary()


@given(answers(), newer)
def test_an_answer_comes_back(answer: Answer, more: dict[str, Any]):
    read = Answer.from_dict(sent(answer.to_dict(), more), answer.screening)
    assert read == answer
    assert read.to_dict() == answer.to_dict()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([], "verdict must be an object"),
        ({"index": 0}, "a verdict needs kept"),
        ({"index": True, "kept": True, "score": 1, "rank": 0, "reason": ""}, "verdict.index must be a whole number"),
        ({"index": 0, "kept": 1, "score": 1, "rank": 0, "reason": ""}, "verdict.kept must be true or false"),
        ({"index": 0, "kept": True, "score": "1", "rank": 0, "reason": ""}, "verdict.score must be a number"),
        ({"index": 0, "kept": True, "score": 10**400, "rank": 0, "reason": ""}, "verdict.score must be a number"),
        ({"index": 0, "kept": True, "score": 1, "rank": 0, "reason": None}, "verdict.reason must be a text"),
        ({"index": 0, "kept": True, "score": 1, "rank": 0, "reason": "", "spans": {}}, "verdict.spans cannot be {}"),
    ],
)
def test_what_is_no_verdict_says_why(row: Any, message: str):
    with pytest.raises(InputError) as error:
        Verdict.from_dict(row)
    assert message in str(error.value)


def test_what_json_has_not_is_left_out_of_details():
    answer = Answer("x", Screening("d", "q", (), ()), details={"own": object(), "votes": {"a": np.int64(2)}, "t": (1,)})
    assert answer.to_dict()["details"] == {"votes": {"a": 2}, "t": [1]}
    endless: list[Any] = []
    endless.append(endless)
    assert json_entries({"endless": endless, "one": 1}) == {"one": 1}


def test_a_reason_has_its_code_beside_it():
    clauses = [Reason.of("crafted.neighbors"), Reason("so it seems")]
    reason = Reason.of("crafted", probability=0.97, clauses=clauses)
    verdict = Verdict(0, True, 1.0, 0, reason)
    row = json.loads(json.dumps(to_row(verdict)))
    assert (type(row["reason"]), row["code"]) == (str, "crafted")
    read = Verdict.from_dict(row)
    assert read == verdict
    assert (read.reason.code, read.reason.parameters) == (reason.code, reason.parameters)


def test_a_reason_of_somebodys_own_is_its_text():
    row = to_row(Verdict(0, True, 1.0, 0, "because"))
    assert (row["reason"], "code" in row) == ("because", False)
    assert str(Verdict.from_dict(row).reason) == "because"
