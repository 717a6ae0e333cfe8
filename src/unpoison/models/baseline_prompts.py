"""The prompts of the baselines: RobustRAG, InstructRAG, AstuteRAG, Discern, MADAM-RAG, paraphrasing, RAGForensics.

As in `prompts.py`, our instructions and demonstrations stand in the system message, and whatever an attacker may
have written is fenced, unless a style says otherwise. What they ask is in `data/prompts.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from unpoison.models.prompts import Prompt, fill_prompt

__all__ = [
    "agent_prompt",
    "aggregator_prompt",
    "blame_prompt",
    "consolidate_sources_prompt",
    "discern_prompt",
    "extract_tagged",
    "extraction_prompt",
    "groups_prompt",
    "keywords_prompt",
    "memory_prompt",
    "paraphrases_prompt",
    "phrases_of_passage_prompt",
    "phrases_prompt",
    "rationale_prompt",
    "sources_prompt",
]

# Two literals: a pattern with both and whatever stands between them tries every way to share out the white space.
_OPENING, _CLOSING = re.compile("<ANSWER>", re.IGNORECASE), re.compile("</ANSWER>", re.IGNORECASE)


def extract_tagged(reply: str) -> str | None:
    """What stands between the first pair of answer tags; None without one. O(length)."""
    opening = _OPENING.search(reply)
    closing = opening and _CLOSING.search(reply, opening.end())
    return reply[opening.end() : closing.start()].strip() if opening and closing else None


# RobustRAG.


def keywords_prompt(question: str, keywords: Sequence[str]) -> Prompt:
    """The final call of keyword aggregation: no passage is shown, only the words that enough passages stated."""
    return fill_prompt("keywords", question, keywords)


def phrases_of_passage_prompt(question: str, passage: str) -> Prompt:
    """One isolated call for a long answer: the important phrases of one passage, in the passage's words."""
    return fill_prompt("phrases-of-passage", question, [passage])


def phrases_prompt(question: str, phrases: Sequence[str]) -> Prompt:
    """The final call for a long answer."""
    return fill_prompt("phrases", question, phrases)


# InstructRAG.


def rationale_prompt(
    question: str, passages: Sequence[str], *, tags: bool, demonstrations: Iterable[tuple[str, str]] | None = None
) -> Prompt:
    """InstructRAG-ICL: analyse the documents, say how they lead to the answer, or fall back on own knowledge.

    The passages come in the order in which they are shown, the worst first; `tags` has the answer marked at the end.
    `demonstrations` are questions with their rationales, in place of the built-in ones.
    """
    prompt = fill_prompt("rationale", question, passages, {} if tags else {"tags": ""})
    shown = prompt.examples
    if demonstrations is not None:
        shown = "\n\n".join(f"Question: {example}\nRationale: {rationale}" for example, rationale in demonstrations)
    return replace(prompt, examples=f"###\n\n{shown}\n\n###\n\nNow it is your turn.")


def extraction_prompt(question: str, reply: str) -> Prompt:
    """The judge of ReliabilityRAG's and RADAR's harness: the final answer that a longer reply arrives at."""
    return fill_prompt("extraction", question, notes={"Reply": reply})


# AstuteRAG.


def memory_prompt(question: str) -> Prompt:
    """Step 1: a document from the model's own memory."""
    return fill_prompt("memory", question)


def sources_prompt(question: str, passages: Sequence[str], memory: str, groups: str = "") -> Prompt:
    """Step 2 and 3 in one call: consolidate, propose, select."""
    return fill_prompt("sources", question, passages, notes=_memory_notes(memory, groups))


def consolidate_sources_prompt(question: str, passages: Sequence[str], memory: str, groups: str = "") -> Prompt:
    """Step 2 alone; `groups` is what it gave the last time, where it is repeated."""
    return fill_prompt("consolidate-sources", question, passages, notes=_memory_notes(memory, groups))


def _memory_notes(memory: str, groups: str) -> dict[str, str]:
    return {"Memorized document": memory, **({"Consolidated so far": groups} if groups else {})}


def groups_prompt(question: str, groups: str) -> Prompt:
    """Step 3 alone."""
    return fill_prompt("groups", question, notes={"Consolidated information": groups})


# Discern-and-Answer.


def discern_prompt(question: str, passages: Sequence[str], perturbed: Iterable[int] | None = None) -> Prompt:
    """Find and ignore perturbed passages, then answer.

    `perturbed` are the numbers, from 1, of those that a discriminator found; None lets the model find them.
    """
    closing = "perturbed:"
    if perturbed is not None:
        numbers = sorted(perturbed)
        rest = [number for number in range(1, len(passages) + 1) if number not in numbers]
        statement = f"Passage {_join_numbers(numbers)} {'is' if len(numbers) == 1 else 'are'} perturbed."
        basis = f"based on Passage {_join_numbers(rest)}" if rest else "ignoring all passages"
        closing = (
            f"perturbed: {statement if numbers else 'No passages are perturbed.'} Deriving the answer {basis}.\nanswer:"
        )
    return fill_prompt("discern", question, passages, closing=closing)


def _join_numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


# MADAM-RAG.


def agent_prompt(question: str, passage: str, others: Sequence[str] = ()) -> Prompt:
    """One agent: answers from its passage alone, from the second round on aware of what the others said."""
    basis = "and from the other agents' previous answers, which are in the notes" if others else "only"
    notes = {f"Another agent, {number}": text for number, text in enumerate(others, 1)}
    return fill_prompt("agent", question, [passage], {"basis": basis}, notes=notes)


def aggregator_prompt(question: str, replies: Sequence[str]) -> Prompt:
    """The aggregator: every correct answer that the agents found, for a question may have several."""
    return fill_prompt("aggregator", question, replies)


# Paraphrasing.


def paraphrases_prompt(question: str, count: int) -> Prompt:
    """The user's question in other words."""
    words = {"count": f"{count} paraphrase{'s' if count > 1 else ''}"}
    return fill_prompt("paraphrases", question, (), words, max_tokens=64 * count)


# RAGForensics.


def blame_prompt(question: str, answer: str, passage: str) -> Prompt:
    """The judge of RAGForensics: could this one text have led to the wrong answer?"""
    return fill_prompt("blame", question, [passage], notes={"Wrong answer": answer})
