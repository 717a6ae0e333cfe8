"""MADAM-RAG: agents that each read one passage, and an aggregator (Wang et al., 2025).

Every agent answers from its own passage. The aggregator lists the correct answers, several if the question is
ambiguous. In further rounds each agent sees the others' answers and answers again, until no agent changes its answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, add_sentences, quotable
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer
from unpoison.defenses.voices import MAX_ANSWER_CHARS
from unpoison.models.prompts import Prompt, answer_alone_prompt, fill_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.text.tokens import squad
from unpoison.utils.checks import at_least

__all__ = ["Madam", "agents_answer", "all_correct_answers"]

add_sentences({
    "madam.agents": "no passage is dropped: an agent speaks for each",
    "madam.answers": "its agent answers {answer!r}",
})  # fmt: skip


class Madam(AnsweringDefense):
    """Debate between agents, one for each passage (MADAM-RAG). It drops no passage.

    The answer's text is the aggregator's list, joined by commas: ambiguous questions have several right answers.

    Args:
        generator: Every agent, and the aggregator.
        rounds: The maximum number of rounds, 1 or more; the debate ends as soon as no agent's answer changes.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "madam"
    summary = "one agent for each passage answers and debates, an aggregator lists the answers that hold"
    calls = "k + 1 in each round, at most rounds (k + 1)"
    source = "Wang et al., 2025"
    keeps_for = "madam.agents"

    def __init__(
        self, generator: Generator | str | None = None, *, rounds: int = 3, **shell: Unpack[ShellOptions]
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.rounds = at_least("rounds", rounds, 1, 20)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Rounds of agents and aggregator; returns the aggregation before the first round without a changed answer."""
        if not passages:
            (reply,) = yield from generate([answer_alone_prompt(query.reading)])
            return make_answer(reply, self.all_kept(query, passages, ()))
        debate = [(yield from self._agents(query, passages, ()))]
        final = yield from self._aggregate(query, debate[-1])
        for _ in range(self.rounds - 1):
            debate.append((yield from self._agents(query, passages, debate[-1])))
            if all(map(_is_same_answer, *debate[-2:])):
                break
            final = yield from self._aggregate(query, debate[-1])
        reasons = [Reason.of("madam.answers", answer=quotable(agents_answer(reply))) for reply in debate[-1]]
        screening = self.all_kept(query, passages, reasons, f"{len(debate)} rounds", *self.source_notes)
        details: dict[str, Any] = {"rounds": debate, "aggregation": final.text}
        return make_answer(replace(final, text=", ".join(all_correct_answers(final.text))), screening, details)

    def _agents(self, query: Query, passages: Sequence[Passage], before: Sequence[str]) -> Flow[list[str]]:
        """The reply of each passage's agent, who sees the others' replies of the round before."""
        prompts = [
            _agent_prompt(query.reading, passage.reading, [said for other, said in enumerate(before) if other != i])
            for i, passage in enumerate(passages)
        ]
        replies = yield from generate(prompts, "agent")
        return [reply.text[:MAX_ANSWER_CHARS] for reply in replies]

    def _aggregate(self, query: Query, replies: Sequence[str]) -> Flow[Reply]:
        (reply,) = yield from generate([fill_prompt("aggregator", query.reading, replies)], "aggregation")
        return reply


def _agent_prompt(question: str, passage: str, others: Sequence[str]) -> Prompt:
    """One agent: answer from its passage alone; from the second round on, it sees the others' answers."""
    basis = "and from the other agents' previous answers, which are in the notes" if others else "only"
    notes = {f"Another agent, {number}": text for number, text in enumerate(others, 1)}
    return fill_prompt("agent", question, [passage], {"basis": basis}, notes=notes)


_ANSWER = re.compile(r"\bAnswer:")
_EXPLANATION = re.compile(r"Explanation\b")


def agents_answer(reply: str) -> str:
    """The text between "Answer:" and "Explanation"; the whole reply if there is no "Answer:". O(length)."""
    heading = _ANSWER.search(reply)
    return _before_explanation(reply[heading.end() :]) if heading else reply.strip()


def all_correct_answers(reply: str) -> list[str]:
    """The aggregator's list, as JSON or separated by commas; the whole reply if the marker is missing. O(length)."""
    _, marker, rest = reply.partition("All Correct Answers:")
    if not marker:
        return [reply.strip()]
    listed = _before_explanation(rest).removesuffix(".").rstrip()
    if listed.startswith("[") and listed.endswith("]"):
        listed = listed[1:-1]
    try:
        answers = [str(answer) for answer in json.loads(f"[{listed}]")]
    except (ValueError, RecursionError):
        answers = listed.split(",")
    stripped = [answer.strip().strip("\"'").strip() for answer in answers]
    return [answer for answer in stripped if answer]


def _before_explanation(text: str) -> str:
    explanation = _EXPLANATION.search(text)
    return text[: explanation.start() if explanation else None].strip()


def _is_same_answer(before: str, now: str) -> bool:
    """Whether one normalised answer contains the other; an empty one only equals another empty one."""
    left, right = squad(agents_answer(before)), squad(agents_answer(now))
    return left in right or right in left if left and right else left == right
