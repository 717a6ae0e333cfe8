"""MADAM-RAG: agents that have read one passage each, and an aggregator (Wang et al., 2025).

Every agent answers from its own passage. The aggregator lists the answers that hold, several if the question is
ambiguous. In further rounds each agent sees what the others said and answers again, until nobody changes their mind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason, quotable
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer
from unpoison.defenses.isolation import MAX_ANSWER_CHARS
from unpoison.defenses.voices import Voice, texts_by_voice, voices_of
from unpoison.models.baseline_prompts import agent_prompt
from unpoison.models.prompts import answer_alone_prompt, fill_prompt, informative
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.text.normalisation import squad
from unpoison.utils.checks import at_least

__all__ = ["Madam", "agents_answer", "all_correct_answers"]


class Madam(AnsweringDefense):
    """Debate between agents, one for each passage (MADAM-RAG). It drops no passage.

    The answer's text is the aggregator's list, joined by commas: ambiguous questions have several right answers.

    Args:
        generator: Every agent, and the aggregator.
        rounds: At most, 1 or more; the debate ends as soon as no agent's answer changes.
        sources: Who says what: `Sources`, or a policy as a file or a mapping. Then each source has one agent, who has
            read all its passages, and those that were never seen before leave where one that was answers. What is of a
            blocked source is dropped unread.

    As every defense it also takes the options of the shell (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "madam"
    summary = "one agent for each passage answers and debates, an aggregator lists the answers that hold"
    calls = "k + 1 in each round, at most rounds (k + 1)"
    source = "Wang et al., 2025"
    keeps_for = "madam.agents"
    client_options = {"rounds": "lower"}  # noqa: RUF012  nobody writes to it

    def __init__(
        self, generator: Generator | str | None = None, *, rounds: int = 3, **shell: Unpack[ShellOptions]
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.rounds = at_least("rounds", rounds, 1, 20)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Rounds of agents and aggregator; the aggregation before the round in which nobody changed their mind."""
        if not passages:
            (reply,) = yield from generate([answer_alone_prompt(query.reading)])
            return make_answer(reply, self.all_kept(query, passages, ()))
        voices = voices_of(self.sources, query.text, passages)
        documents = texts_by_voice(voices, passages)
        replies = yield from self._agents(query, documents, {})
        first = replies
        heard = self._debaters(replies, voices)
        documents, replies = ({name: texts[name] for name in heard} for texts in (documents, replies))
        final = yield from self._aggregate(query, replies)
        debate = [replies]
        for _ in range(self.rounds - 1):
            replies = yield from self._agents(query, documents, debate[-1])
            debate.append(replies)
            if all(_is_same_answer(before, replies[name]) for name, before in debate[-2].items()):
                break
            final = yield from self._aggregate(query, replies)
        reasons = [
            Reason.of("madam.answers", answer=quotable(agents_answer(replies[voice.name])))
            if voice.name in replies
            else Reason.of("sources.uncounted", answer=quotable(agents_answer(first[voice.name])))
            for voice in voices
        ]
        notes = self.source_notes
        screening = self.all_kept(query, passages, reasons, f"{len(debate)} rounds", *notes)
        details: dict[str, Any] = {"rounds": [list(said.values()) for said in debate], "aggregation": final.text}
        return make_answer(replace(final, text=", ".join(all_correct_answers(final.text))), screening, details)

    def _agents(self, query: Query, documents: Mapping[str, str], before: Mapping[str, str]) -> Flow[dict[str, str]]:
        """What the agent of each voice answers."""
        prompts = [
            agent_prompt(query.reading, text, [said for other, said in before.items() if other != name])
            for name, text in documents.items()
        ]
        replies = yield from generate(prompts, "agent")
        return {name: reply.text[:MAX_ANSWER_CHARS] for name, reply in zip(documents, replies, strict=True)}

    def _debaters(self, replies: Mapping[str, str], voices: Sequence[Voice]) -> list[str]:
        """The voices that debate: where one that counts answers, only those that count."""
        counting = {voice.name for voice in voices if voice.counts}
        speaks = any(informative(agents_answer(replies[name])) for name in counting)
        return [name for name in replies if name in counting or not speaks]

    def _aggregate(self, query: Query, replies: Mapping[str, str]) -> Flow[Reply]:
        (reply,) = yield from generate(
            [fill_prompt("aggregator", query.reading, list(replies.values()))], "aggregation"
        )
        return reply


_ANSWER = re.compile(r"\bAnswer:")
_EXPLANATION = re.compile(r"Explanation\b")


def agents_answer(reply: str) -> str:
    """What stands between "Answer:" and "Explanation"; the whole reply without the first. O(length)."""
    heading = _ANSWER.search(reply)
    return _before_explanation(reply[heading.end() :]) if heading else reply.strip()


def all_correct_answers(reply: str) -> list[str]:
    """The aggregator's list: JSON where it is that, else split at commas; the whole reply without the marker.

    O(length).
    """
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
    """Whether one normalised answer contains the other; an empty one, which all contain, only equals another."""
    left, right = squad(agents_answer(before)), squad(agents_answer(now))
    return left in right or right in left if left and right else left == right
