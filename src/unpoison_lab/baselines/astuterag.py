"""AstuteRAG: combine the model's own knowledge with the retrieved passages (Wang et al., 2025).

The model first writes down its own knowledge. That document joins the passages, marked with its source. The model sorts
all of them into consistent groups, proposes an answer for each group, and selects one. There is no released code; the
prompts follow the ports that TrustRAG, ReliabilityRAG and RADAR compare with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import add_sentences
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer, note_unfinished
from unpoison.models.prompts import fill_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate
from unpoison.utils.checks import among, flag
from unpoison_lab.baselines.instructrag import extract_tagged

__all__ = ["AstuteRag"]

add_sentences({
    "astuterag.weighed": "no passage is dropped: the model weighs them against what it knows",
})  # fmt: skip


class AstuteRag(AnsweringDefense):
    """Answer from the best supported group of passages and own knowledge (AstuteRAG). It drops no passage.

    Args:
        generator: Writes its knowledge, sorts, and selects.
        merged: Consolidate and select in one call, as the ports do (2 calls); False makes them two (3 calls, the
            number in TrustRAG's table of run times).
        extract: The source of the answer's text: the `tags` that the model is asked to put around it, or a second
            `call`, as in ReliabilityRAG's and RADAR's comparisons; empty if that finds none.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "astuterag"
    summary = "groups the passages and the model's own knowledge by content, and selects the answer of one group"
    calls = "2 (3 with merged=false), 1 more with extract=call"
    source = "Wang et al., 2025"
    keeps_for = "astuterag.weighed"

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        merged: bool = True,
        extract: Literal["tags", "call"] = "tags",
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, **shell)
        self.merged = flag("merged", merged)
        self.extract = among("extract", extract, ("tags", "call"))

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Internal knowledge, consolidation with sources, the selected answer."""
        screening = yield from self.screening(query, passages)
        (memory,) = yield from generate([fill_prompt("memory", query.reading)], "internal knowledge")
        details, steps = {"internal_knowledge": memory.text}, {"internal knowledge": memory}
        texts = [passage.reading for passage in passages]
        notes = {"Memorized document": memory.text}
        if self.merged:
            prompt = fill_prompt("sources", query.reading, texts, notes=notes)
        else:
            prompt = fill_prompt("consolidate-sources", query.reading, texts, notes=notes)
            (groups,) = yield from generate([prompt], "consolidation")
            details["consolidated_information"], steps["consolidation"] = groups.text, groups
            prompt = fill_prompt("groups", query.reading, notes={"Consolidated information": groups.text})
        (reply,) = yield from generate([prompt], "final answer")
        details["selection"] = reply.text
        text = extract_tagged(reply.text) or reply.text
        if self.extract == "call":
            steps["final answer"] = reply
            prompt = fill_prompt("extraction", query.reading, notes={"Reply": reply.text})
            (reply,) = yield from generate([prompt], "extraction")
            text = extract_tagged(reply.text) or ""
        return note_unfinished(make_answer(replace(reply, text=text), screening, details), steps)
