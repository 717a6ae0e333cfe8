"""The first page of a report, for who signs it: plain data that any kind of test can fill, and its HTML.

Questions, answers and planted texts are hostile; all are escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

from unpoison.algorithms.intervals import Estimate
from unpoison.bench.report.charts import label
from unpoison.bench.report.document import table_markup
from unpoison.bench.report.tables import Table

__all__ = ["Brief", "Case", "KeyFigure", "Risk", "front", "how_many", "risks_of"]

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
        attacks: A row for each attack, the worst first, below a row of headings; empty where there is none.
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
    attacks: tuple[tuple[str, ...], ...] = ()


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
    injected = (
        _worst(ordering, behind) or "not tested: no attack of this run injects prompts; add -a pia,prompt-injection"
    )
    return (
        Risk("OWASP LLM04:2025", "Data and Model Poisoning", planted),
        Risk("OWASP LLM08:2025", "Vector and Embedding Weaknesses", planted),
        Risk("OWASP LLM01:2025", "Prompt Injection", injected),
        Risk("MITRE ATLAS AML.T0070", "RAG Poisoning", planted),
        Risk("MITRE ATLAS AML.T0051", "LLM Prompt Injection", injected),
    )


def _is_injection(attack: str) -> bool:
    return any(part.partition(":")[0] in INJECTIONS for part in attack.split("+"))


def _worst(won: Mapping[str, Estimate], behind: str) -> str:
    """The attack that won most, in words; "" where none was tried."""
    if not won:
        return ""
    attack, share = min(won.items(), key=lambda item: (-item[1].value if item[1].defined else 1.0, item[0]))
    if not share.defined:
        return "tested, nothing measured"
    return f"tested: {attack} won {share.hits} of {share.count} questions{f' {behind}' if behind else ''}"


NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")


def how_many(number: int, noun: str) -> str:
    """Such as "One planted document" or "12 planted documents", to begin a sentence."""
    written = NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
    return f"{written} {noun}{'' if number == 1 else 's'}"


def front(brief: Brief) -> str:
    """What was tested, the result in a sentence, three figures, the worst cases, what to do next, the risks."""
    facts = "".join(f"<div><dt>{label(name)}</dt><dd>{label(value, 300)}</dd></div>" for name, value in brief.facts)
    warning = f'<p class="warning" role="status">{label(brief.warning, 400)}</p>' if brief.warning else ""
    figures = "".join(map(_figure, brief.figures))
    parts = [
        f'<dl class="facts">{facts}</dl>{warning}',
        f'<p class="verdict-line">{label(brief.verdict, 600)}</p>',
        f'<p class="setting">{label(brief.setting, 400)}</p>' if brief.setting else "",
        f'<div class="key-figures">{figures}</div>' if figures else "",
        _attacks(brief.attacks),
        _cases(brief),
        _html_list("What to do next", "ol", brief.actions),
        _risks(brief),
        '<div class="signed"><span>Tested by</span><span>Date</span><span>Signature</span></div>',
    ]
    return '<div class="front">\n' + "\n".join(filter(None, parts)) + "\n</div>\n"


def _figure(figure: KeyFigure) -> str:
    """The number large, its share as a bar with the interval on it, and one sentence."""
    hits, count = figure.share.hits, figure.share.count
    low, high = 100 * figure.share.low, 100 * figure.share.high
    spread = between = ""
    if isfinite(low):
        spread = f'<rect class="spread" x="{low:.1f}" y="0" width="{max(high - low, 0.5):.1f}" height="10"/>'
        between = f" (likely {low:.0f} to {high:.0f} %)"
    title = label(f"{figure.title}: {hits} of {count}", 200)
    return (
        f'<div class="key {"bad" if hits else "none"}"><h3>{label(figure.title, 80)}</h3>'
        f'<p class="large"><strong>{hits:,}</strong> of {count:,}</p>'
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{title}">'
        f'<rect class="track" x="0" y="3" width="100" height="4"/>{spread}'
        f'<rect class="share" x="0" y="3" width="{100 * hits / max(count, 1):.1f}" height="4"/></svg>'
        f"<p>{label(figure.note, 200)}{between}</p></div>"
    )


def _attacks(rows: tuple[tuple[str, ...], ...]) -> str:
    """Every attack; with one alone the figures above say it all."""
    if len(rows) < 3:
        return ""
    table = Table("Each attack at its worst", rows[0], rows[1:])
    return f"<h2>Every attack, the worst first</h2>{table_markup(table)}"


def _cases(brief: Brief) -> str:
    cases = brief.cases
    if not cases:  # of a run that is incomplete they may be missing where the attack did win
        won = any(figure.share.hits for figure in brief.figures[:2])
        return "" if won else "<h2>The worst cases</h2><p>The attack won no question of this setting.</p>"
    through = sum(not case.stopped for case in cases)
    summary = (
        "All of these were stopped; without the defense the attacker had won them."
        if not through
        else (
            "The attacker won these in spite of everything."
            if through == len(cases)
            else "The attacker won the first of these; the others were stopped."
        )
    )
    return f'<h2>The worst cases</h2><p>{summary}</p><ol class="cases">{"".join(map(_case, cases))}</ol>'


def _case(case: Case) -> str:
    who = "Without the defense the system" if case.stopped else "The system"
    reply = (
        ""
        if case.reply is None
        else f'<p>{who} answered: <span class="said" dir="auto">{label(case.reply or "(nothing)", 320)}</span></p>'
    )
    answers = "".join(
        f'<span class="{kind}" dir="auto">{label(text, 220)}</span>'
        for kind, text in (("truth", case.right), ("poison", case.wanted))
        if text
    )
    why = f"<p>{label(case.why, 320)}.</p>" if case.why else ""
    numbers = ""
    if case.numbers and case.numbers != case.why:
        numbers = f"<details><summary>the numbers</summary><p>{label(case.numbers, 320)}</p></details>"
    planted = ""
    if case.planted:
        text = f'<span dir="auto">{label(case.planted, 320)}</span>'
        planted = f'<blockquote class="planted"><strong>Planted:</strong> {text}</blockquote>'
    return (
        f'<li><p><strong dir="auto">{label(case.question, 320)}</strong> '
        f'<em class="tag {"" if case.stopped else "bad"}">{label(case.outcome, 120)}</em></p>'
        f'<p class="answers">{answers}</p>{reply}{planted}{why}{numbers}</li>'
    )


def _html_list(title: str, tag: str, items: tuple[str, ...]) -> str:
    if not items:
        return ""
    return f"<h2>{title}</h2><{tag}>{''.join(f'<li>{label(item, 500)}</li>' for item in items)}</{tag}>"


def _risks(brief: Brief) -> str:
    rows = "".join(
        f"<div><dt>{label(risk.id)} <span>{label(risk.name)}</span></dt><dd>{label(risk.finding, 200)}</dd></div>"
        for risk in brief.risks
    )
    return f'<h2>Risks by their numbers</h2><dl class="facts risks">{rows}</dl>' if rows else ""
