"""Requests of flows: what each asks of which model, alone and side by side."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from unpoison.models import requests
from unpoison.models.prompts import answer_prompt
from unpoison.models.requests import Encode, Flow, Generate, Judge, Request, run_side_by_side

PROMPT = answer_prompt("who?", ["Ann did it."])


@pytest.mark.parametrize(
    ("flow", "request_made"),
    [
        (requests.encode(["a"], "query", queries=True), Encode(("a",), "query", True)),
        (requests.encode(["a"]), Encode(("a",), "embedding", False)),
        (requests.generate([PROMPT], "wording"), Generate((PROMPT,), "wording", None)),
        (requests.judge([("a", "b")]), Judge((("a", "b"),), "entailment")),
        (requests.read("who?", ["a"]), requests.Read("who?", ("a",), "reading")),
        (requests.relate("who?", [("a", "b")]), requests.Relate("who?", (("a", "b"),), "rivals")),
        (requests.compare([("a", "b")]), requests.Compare((("a", "b"),), "relevance")),
        (requests.classify(["a"]), requests.Classify(("a",), "prompt injection")),
        (requests.likelihood(["a"]), requests.Likelihood(("a",), "likelihood")),
        (requests.next_token([PROMPT], [1, 2]), requests.NextToken((PROMPT,), (1, 2), "next token")),
        (requests.retrieve(["who?"]), requests.Retrieve(("who?",), "retrieval")),
    ],
)
def test_a_flow_asks_once_and_returns_the_reply(flow: Flow[Any], request_made: Request) -> None:
    assert next(flow) == (request_made,)
    with pytest.raises(StopIteration) as ended:
        flow.send(("the reply",))
    assert ended.value.value == "the reply"


def steps(name: str, *counts: int) -> Flow[list[Any]]:
    """A flow that asks so many things in each step."""
    heard: list[Any] = []
    for step, count in enumerate(counts):
        heard += yield tuple(Encode((f"{name}{step}{n}",)) for n in range(count))
    return heard


@pytest.mark.parametrize(
    ("left", "right"), [((1, 2), (3,)), ((), (1, 1)), ((2,), ()), ((), ()), ((0, 1), (1, 0)), ((1, 1, 1), (2,))]
)
def test_two_flows_side_by_side_each_hear_their_own(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    flow, asked = run_side_by_side(steps("l", *left), steps("r", *right)), []
    replies: tuple[Any, ...] | None = None
    try:
        while True:
            wanted = next(flow) if replies is None else flow.send(replies)
            asked.append([one.texts[0] for one in wanted])  # type: ignore[union-attr]
            replies = tuple(asked[-1])
    except StopIteration as ended:
        found = ended.value
    names = [[f"{name}{step}{n}" for step, count in enumerate(counts) for n in range(count)]
             for name, counts in (("l", left), ("r", right))]  # fmt: skip
    assert list(found) == names
    assert len(asked) == max(len(left), len(right))  # the steps of both run together
    assert sorted(chain(*asked)) == sorted(chain(*names))
