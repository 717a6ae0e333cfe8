"""Prompts of the baselines that need code beside their entry in `data/prompts.yaml`.

As in `prompts.py`, our instructions and demonstrations are in the system message, and untrusted text is fenced, unless
a style says otherwise. The wording is in `data/prompts.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from unpoison.models.prompts import Prompt, fill_prompt

__all__ = [
    "agent_prompt",
    "discern_prompt",
    "extract_tagged",
    "extraction_prompt",
    "paraphrases_prompt",
    "rationale_prompt",
]

# Two literals instead of one pattern, which would backtrack over the white space between them.
_OPENING, _CLOSING = re.compile("<ANSWER>", re.IGNORECASE), re.compile("</ANSWER>", re.IGNORECASE)


def extract_tagged(reply: str) -> str | None:
    """The text between the first pair of answer tags; None if there is none. O(length)."""
    opening = _OPENING.search(reply)
    closing = opening and _CLOSING.search(reply, opening.end())
    return reply[opening.end() : closing.start()].strip() if opening and closing else None


# InstructRAG.


def rationale_prompt(
    question: str, passages: Sequence[str], *, tags: bool, demonstrations: Iterable[tuple[str, str]] | None = None
) -> Prompt:
    """InstructRAG-ICL: analyse the documents, explain how they lead to the answer, or fall back on own knowledge.

    The passages are in display order, the worst first; `tags` asks for a marked answer at the end. `demonstrations` are
    questions with rationales, instead of the built-in ones.
    """
    prompt = fill_prompt("rationale", question, passages, {} if tags else {"tags": ""})
    shown = prompt.examples
    if demonstrations is not None:
        shown = "\n\n".join(f"Question: {example}\nRationale: {rationale}" for example, rationale in demonstrations)
    return replace(prompt, examples=f"###\n\n{shown}\n\n###\n\nNow it is your turn.")


def extraction_prompt(question: str, reply: str) -> Prompt:
    """The judge of ReliabilityRAG's and RADAR's harness: extract the final answer of a longer reply."""
    return fill_prompt("extraction", question, notes={"Reply": reply})


# Discern-and-Answer.


def discern_prompt(question: str, passages: Sequence[str], perturbed: Iterable[int] | None = None) -> Prompt:
    """Find and ignore perturbed passages, then answer.

    `perturbed` has the numbers, from 1, of the passages that a discriminator found; None lets the model find them.
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
    """One agent: answer from its passage alone; from the second round on, it sees the others' answers."""
    basis = "and from the other agents' previous answers, which are in the notes" if others else "only"
    notes = {f"Another agent, {number}": text for number, text in enumerate(others, 1)}
    return fill_prompt("agent", question, [passage], {"basis": basis}, notes=notes)


# Paraphrasing.


def paraphrases_prompt(question: str, count: int) -> Prompt:
    """The user's question in other words."""
    words = {"count": f"{count} paraphrase{'s' if count > 1 else ''}"}
    return fill_prompt("paraphrases", question, (), words, max_tokens=64 * count)
