"""Replies of Qwen2.5-Coder-1.5B-Instruct, as it wrote them: no parser raises, and what each one loses is counted.

`tests/data/model_replies.jsonl` holds the question (of MS MARCO, its id), the defense, the prompt and the reply.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from unpoison.defenses.robustrag import keywords
from unpoison.text.answer_forms import form
from unpoison.text.replies import informative, without_reasoning
from unpoison_lab.baselines.discern import parse_reply
from unpoison_lab.baselines.instructrag import extract_tagged
from unpoison_lab.baselines.madam import agents_answer, all_correct_answers
from unpoison_lab.baselines.paraphrase import read_paraphrases
from unpoison_lab.evaluation.llm_judge import read_grade, read_scores
from unpoison_lab.evaluation.matchers import matcher

PATH = Path(__file__).parents[1] / "data" / "model_replies.jsonl"
ROWS = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]

PARSERS: dict[str, Callable[[str], object]] = {
    "without_reasoning": without_reasoning,
    "informative": informative,
    "keywords": keywords,
    "extract_tagged": extract_tagged,
    "parse_reply": parse_reply,
    "agents_answer": agents_answer,
    "all_correct_answers": all_correct_answers,
    "read_paraphrases": lambda reply: read_paraphrases(reply, 4, "Why?"),
    "read_grade": read_grade,
    "read_scores": read_scores,
    "form": lambda reply: form("Why?", reply),
    "matcher": lambda reply: matcher().correct(reply, ["45"], ["10"]),
}


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
def test_no_parser_raises_at_what_a_model_writes(parser: Callable[[str], object]) -> None:
    for row in ROWS:
        parser(row["reply"])


def test_what_declines_is_recognised_and_nothing_else() -> None:
    declined = {row["reply"] for row in ROWS if not informative(row["reply"])}
    assert declined == {"I don't know", "I don't know."}


@pytest.mark.parametrize(
    ("defense", "kind", "reads", "lost", "of"),
    [
        ("instructrag", "answer", lambda reply: extract_tagged(reply) is not None, 0, 3),
        ("astuterag", "answer", lambda reply: extract_tagged(reply) is not None, 0, 2),
        ("discern", "answer", lambda reply: parse_reply(reply).answer != reply, 2, 2),  # it copies the passages
        ("madam", "atomic", lambda reply: agents_answer(reply) != reply, 0, 3),
        ("madam", "synthesize", lambda reply: all_correct_answers(reply) != [reply], 0, 1),
        ("paraphrase", "free", lambda reply: "Why?" not in read_paraphrases(reply, 4, "Why?"), 0, 1),
        ("robustrag", "atomic", lambda reply: not informative(reply) or bool(keywords(reply)), 0, 6),
    ],
)
def test_how_many_replies_each_papers_parser_loses(
    defense: str, kind: str, reads: Callable[[str], bool], lost: int, of: int
) -> None:
    replies = [row["reply"] for row in ROWS if (row["defense"], row["kind"]) == (defense, kind)]
    assert len(replies) == of
    assert sum(not reads(reply) for reply in replies) == lost
