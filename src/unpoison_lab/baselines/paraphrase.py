"""The paraphrasing defense: ask paraphrases of the question (Jain et al., 2023; PoisonedRAG, Section 7).

A passage crafted for the exact words of a question may not be retrieved for a paraphrase. The defense is known to fail
against poison with similar meaning, such as PoisonedRAG's; it is included because the papers compare with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Unpack

from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query, as_passages
from unpoison.core.reasons import add_sentences
from unpoison.defenses.base import AnsweringDefense, ShellOptions, make_answer
from unpoison.models.prompts import answer_alone_prompt, answer_prompt, fill_prompt
from unpoison.models.protocols import Generator
from unpoison.models.requests import Flow, generate, retrieve
from unpoison.text.replies import informative
from unpoison.text.tokens import trim_text
from unpoison.utils.checks import at_least

__all__ = ["Paraphrasing", "read_paraphrases"]

add_sentences({
    "paraphrase.rephrased": "no passage is dropped: the question is rephrased",
})  # fmt: skip

MAX_PARAPHRASE_CHARS = 1000
"""Maximum characters of a paraphrase."""


class Paraphrasing(AnsweringDefense):
    """Answer paraphrases of the question, and return the most frequent answer. It drops no passage.

    Args:
        generator: Writes the paraphrases, and answers each.
        paraphrases: Their number, at least 1.
        retriever: `f(question)` returns passages, in any form that `answer` accepts. Without one, all paraphrases are
            answered from the given passages, which defeats the purpose: retrieval stays the same.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "paraphrase"
    summary = "asks in other words and takes the answer that most paraphrases get; retrieves anew if it can"
    calls = "1 + paraphrases"
    source = "Jain et al., 2023"
    keeps_for = "paraphrase.rephrased"

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        paraphrases: int = 5,
        retriever: Callable[[str], Iterable[Any]] | None = None,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(generator=generator, retriever=retriever, **shell)
        self.paraphrases = at_least("paraphrases", paraphrases, 1, 100)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Paraphrases, their passages, their answers; then the majority, with ties to the first answer."""
        screening = yield from self.screening(query, passages)
        words = {"count": f"{self.paraphrases} paraphrase{'s' if self.paraphrases > 1 else ''}"}
        prompt = fill_prompt("paraphrases", query.reading, (), words, max_tokens=64 * self.paraphrases)
        (written,) = yield from generate([prompt], "paraphrases")
        questions = read_paraphrases(written.text, self.paraphrases, query.reading)
        retrieved = [passages] * len(questions)
        if self.models.retriever is not None:
            retrieved = [as_passages(passage_list) for passage_list in (yield from retrieve(questions))]
        texts = [[passage.reading for passage in passage_list] for passage_list in retrieved]
        prompts = [
            answer_prompt(question, shown) if shown else answer_alone_prompt(question)
            for question, shown in zip(questions, texts, strict=True)
        ]
        replies = yield from generate(prompts, "answer")
        votes = Counter(trim_text(reply.text) for reply in replies if informative(reply.text))
        best = max(replies, key=lambda reply: votes[trim_text(reply.text)])
        details = {"paraphrases": questions, "answers": [reply.text for reply in replies]}
        return make_answer(best, screening, details)


_NUMBER = re.compile(r"^\s*(?:\d{1,3}[.):]|[-*\u2022])\s+")


def read_paraphrases(reply: str, count: int, question: str) -> list[str]:
    """One paraphrase per line, without numbers and quotation marks; missing ones are replaced by the question."""
    lines = [_NUMBER.sub("", line).strip().strip("\"'").strip()[:MAX_PARAPHRASE_CHARS] for line in reply.splitlines()]
    paraphrases = [line for line in lines if line and informative(line)][:count]
    return paraphrases + [question] * (count - len(paraphrases))
