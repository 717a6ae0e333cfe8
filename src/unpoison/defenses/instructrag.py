"""InstructRAG, in-context learning: explain which passages help before answering (Wei et al., 2025).

Two demonstrations show a rationale: which documents are useful, how they lead to the answer, and what to do if none
helps. The model writes one for the given question. In the paper, demonstrations are generated for each data set; pass
such a file as `demonstrations`. The built-in ones were written for this package, one with the answer in the passages
and one without.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer, note_unfinished
from unpoison.errors import InputError, clip
from unpoison.models.baseline_prompts import extract_tagged, extraction_prompt, rationale_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.utils.checks import among

__all__ = ["Demonstration", "InstructRag"]

MAX_FILE_BYTES = 1_000_000
"""Maximum bytes of a file of demonstrations."""
MAX_DEMONSTRATIONS = 20
"""Maximum demonstrations in a prompt."""


class Demonstration(NamedTuple):
    """A question, and the rationale for the model to imitate; without documents, as in the paper."""

    question: str
    rationale: str


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
        demonstrations: Instead of the built-in ones: `Demonstration`s, or a file of JSON Lines with `question` and
            `rationale`. They are part of the instructions, so use only trusted ones.

    As every defense it also takes the options of the shell (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
        InputError: The file of demonstrations cannot be used.
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
        demonstrations: Sequence[Demonstration] | Path | str | None = None,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.extract = among("extract", extract, ("tags", "call", "rationale"))
        self.order = among("order", order, ("worst-first", "best-first"))
        given = _load_demonstrations(demonstrations) if isinstance(demonstrations, str | Path) else demonstrations
        self.demonstrations = (
            None if given is None else tuple(Demonstration(*pair) for pair in given[:MAX_DEMONSTRATIONS])
        )

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """The rationale, then the answer from it."""
        screening = yield from self.screening(query, passages)
        shown = [passage.reading for passage in passages]
        if self.order == "worst-first":
            shown.reverse()
        question = _paper_question(query.reading)
        prompt = rationale_prompt(question, shown, tags=self.extract == "tags", demonstrations=self.demonstrations)
        (rationale,) = yield from generate([prompt], "rationale")
        reply, text = rationale, rationale.text
        if self.extract == "call":
            (reply,) = yield from generate([extraction_prompt(query.reading, rationale.text)], "extraction")
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


def _load_demonstrations(path: str | Path) -> list[Demonstration]:
    """A file of JSON Lines, each with a question and a rationale."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            rows = [json.loads(line) for line in file.read(MAX_FILE_BYTES).splitlines() if line.strip()]
        demonstrations = [Demonstration(row["question"], row["rationale"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{clip(str(path), 200)} has no demonstrations ({type(error).__name__}); give JSON Lines with question "
            "and rationale"
        ) from error
    texts = [text for demonstration in demonstrations for text in demonstration]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InputError(f"{clip(str(path), 200)} has no demonstrations; give lines with a question and a rationale")
    return demonstrations
