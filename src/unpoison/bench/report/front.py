"""The first page of a report as HTML. Questions, answers and planted texts are hostile; all are escaped here."""

from __future__ import annotations

from math import isfinite

from unpoison.bench.report.brief import Brief, Case, KeyFigure
from unpoison.bench.report.charts import label
from unpoison.bench.report.document import table_markup
from unpoison.bench.report.tables import Table

__all__ = ["front"]


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
