"""The first page of a report, for who signs it: data that any kind of test can fill; `front.html` draws it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate
from unpoison.report.document import Table

__all__ = ["Brief", "Case", "KeyFigure", "Risk", "how_many", "risks_of", "risks_of_agents"]

CASES = 5
"""So many cases stand on the first page."""

ACTIONS = 5
"""Sentences on what to do, at most."""


class KeyFigure(NamedTuple):
    """One of the three figures.

    Attributes:
        title: What is counted; much of it is bad.
        share: How often it happened, of how many.
        note: One sentence below.
    """

    title: str
    share: Estimate
    note: str


class Case(NamedTuple):
    """One question that went wrong, in plain words.

    Attributes:
        question: What was asked.
        outcome: What became of it, in a few words.
        stopped: Whether the defense stopped it.
        right: The true answer.
        wanted: What the attacker wanted to be said.
        reply: What was answered; None where nothing was asked.
        planted: The text that was planted.
        why: Why it passed or was stopped, in plain words; "" where nobody says.
        numbers: The same with its numbers.
    """

    question: str
    outcome: str
    stopped: bool
    right: str
    wanted: str
    reply: str | None
    planted: str
    why: str = ""
    numbers: str = ""


class Risk(NamedTuple):
    """A risk by its number in a public catalogue, and what the test says about it."""

    id: str
    name: str
    finding: str


@dataclass(frozen=True, slots=True)
class Brief:
    """What the first page says.

    Attributes:
        title: The heading.
        facts: What was tested, when, with which version: (name, value).
        verdict: One sentence.
        setting: What exactly it counts.
        warning: What the reader must know before believing it; "" where nothing.
        figures: Three, or fewer where they cannot be measured.
        cases: The worst, at most five.
        actions: What to do next, most urgent first.
        risks: With their numbers.
        attacks: A row for each attack, the worst first; None where there is no such table.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    verdict: str
    setting: str
    warning: str
    figures: tuple[KeyFigure, ...]
    cases: tuple[Case, ...]
    actions: tuple[str, ...]
    risks: tuple[Risk, ...]
    attacks: Table | None = None


INJECTIONS = ("pia", "prompt-injection", "phantom", "orders")
"""Attacks whose texts are prompt injections; old results call one of them `orders`."""


def risks_of(won: Mapping[str, Estimate], behind: str = "") -> tuple[Risk, ...]:
    """The catalogues' risks that planted documents fall under, and what a test with these attacks says of each.

    Args:
        won: By the option string of an attack the share of questions that it won.
        behind: In spite of what, such as "behind guard".
    """
    ordering = {attack: share for attack, share in won.items() if _is_injection(attack)}
    planted = _worst(won, behind) or "not tested: nothing was planted"
    injected = _worst(ordering, behind)
    injected = injected or "not tested: no attack of this run injects prompts; add -a pia,prompt-injection"
    return (
        Risk("OWASP LLM04:2025", "Data and Model Poisoning", planted),
        Risk("OWASP LLM08:2025", "Vector and Embedding Weaknesses", planted),
        Risk("OWASP LLM01:2025", "Prompt Injection", injected),
        Risk("MITRE ATLAS AML.T0070", "RAG Poisoning", planted),
        Risk("MITRE ATLAS AML.T0051.001", "LLM Prompt Injection: Indirect", injected),
    )


def risks_of_agents(won: Mapping[str, Estimate], in_memory: Estimate) -> tuple[Risk, ...]:
    """The catalogues' risks that orders in what an agent reads fall under.

    Args:
        won: By the family of orders, or `adaptive`, the share of tasks that it won.
        in_memory: The share of all tasks that were won through what the agent keeps in memory.
    """
    injected = _worst(won, "", "tasks") or "not tested: nothing was planted"
    memory = f"tested: orders in memory won {in_memory.hits} of {in_memory.count} tasks"
    return (
        Risk("OWASP LLM01:2025", "Prompt Injection", injected),
        Risk(
            "OWASP ASI06:2026", "Memory and Context Poisoning", memory if in_memory.count else "memory was not tested"
        ),
        Risk("MITRE ATLAS AML.T0051.001", "LLM Prompt Injection: Indirect", injected),
    )


def _is_injection(attack: str) -> bool:
    return attack.partition(":")[0] in INJECTIONS


def _worst(won: Mapping[str, Estimate], behind: str, what: str = "questions") -> str:
    """The attack that won most, in words; "" where none was tried."""
    if not won:
        return ""
    attack, share = min(won.items(), key=lambda item: (-item[1].value if item[1].defined else 1.0, item[0]))
    if not share.defined:
        return "tested, nothing measured"
    return f"tested: {attack} won {share.hits} of {share.count} {what}{f' {behind}' if behind else ''}"


NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def how_many(number: int, noun: str) -> str:
    """Such as "One planted document" or "12 planted documents", to begin a sentence."""
    written = NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
    return f"{written} {noun}{'' if number == 1 else 's'}"
