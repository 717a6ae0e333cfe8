"""InstructRAG, in-context learning: explain which passages help before answering (Wei et al., 2025).

Two demonstrations, written for this package, show a rationale: which documents are useful, how they lead to the answer,
and what to do if none helps. The model writes one for the given question.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import add_sentences
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer, note_unfinished
from unpoison.models.prompts import fill_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.utils.checks import among

__all__ = ["InstructRag", "extract_tagged"]

add_sentences({
    "instructrag.explained": "no passage is dropped: the model explains which ones help",
})  # fmt: skip


class InstructRag(AnsweringDefense):
    """Answer with a rationale about which passages help (InstructRAG-ICL). It drops no passage.

    A rationale mentions wrong answers to refute them, so a metric that searches it for the attacker's answer
    overestimates. By default the answer is marked in the rationale, and only the marked part is the answer's text.

    Args:
        generator: Writes the rationale.
        extract: The source of the answer's text: the `tags` that the model is asked to put around it, or the whole
            reply without tags; a second `call` that extracts it, as in ReliabilityRAG's and RADAR's comparisons, empty
            if that finds none; or the whole `rationale`, as in the paper.
        order: `worst-first`, with the best passage next to the question, as in the paper; `best-first`, as in TrustRAG,
            ReliabilityRAG and RADAR, which reverses the effect of a poison's position.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "instructrag"
    summary = "has the model explain which passages help, after two demonstrations, before it answers"
    calls = "1 (2 with extract=call)"
    source = "Wei et al., 2025"
    keeps_for = "instructrag.explained"

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        extract: Literal["tags", "call", "rationale"] = "tags",
        order: Literal["worst-first", "best-first"] = "worst-first",
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.extract = among("extract", extract, ("tags", "call", "rationale"))
        self.order = among("order", order, ("worst-first", "best-first"))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The rationale, then the answer from it."""
        screening = yield from self.screening(query, passages)
        shown = [passage.reading for passage in passages]
        if self.order == "worst-first":
            shown.reverse()
        question = _paper_question(query.reading)
        prompt = fill_prompt("rationale", question, shown, {} if self.extract == "tags" else {"tags": ""})
        prompt = replace(prompt, examples=f"###\n\n{prompt.examples}\n\n###\n\nNow it is your turn.")
        (rationale,) = yield from generate([prompt], "rationale")
        reply, text = rationale, rationale.text
        if self.extract == "call":
            prompt = fill_prompt("extraction", query.reading, notes={"Reply": rationale.text})
            (reply,) = yield from generate([prompt], "extraction")
            text = extract_tagged(reply.text) or ""
        elif self.extract == "tags":
            text = extract_tagged(rationale.text) or rationale.text
        answer = make_answer(replace(reply, text=text), screening, {"rationale": rationale.text})
        return answer if reply is rationale else note_unfinished(answer, {"rationale": rationale})


def _paper_question(question: str) -> str:
    """The question in the paper's format: no leading period, a lower-case first letter, a question mark."""
    text = question.strip().removeprefix(". ")
    text = text[:1].lower() + text[1:]
    return text if text.endswith("?") else f"{text}?"


# Two literals instead of one pattern, which would backtrack over the white space between them.
_OPENING, _CLOSING = re.compile("<ANSWER>", re.IGNORECASE), re.compile("</ANSWER>", re.IGNORECASE)


def extract_tagged(reply: str) -> str | None:
    """The text between the first pair of answer tags; None if there is none. O(length)."""
    opening = _OPENING.search(reply)
    closing = opening and _CLOSING.search(reply, opening.end())
    return reply[opening.end() : closing.start()].strip() if opening and closing else None
