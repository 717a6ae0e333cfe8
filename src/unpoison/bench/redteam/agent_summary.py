"""The first page of a test of an agent, for who signs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

from unpoison import __version__
from unpoison.algorithms.intervals import Estimate, wilson
from unpoison.bench.redteam.agent_attacks import ADAPTIVE
from unpoison.bench.redteam.agent_tasks import CALLED, LEAKED, LIED
from unpoison.bench.redteam.results import Cell, Results, Trial
from unpoison.bench.report.front_page import ACTIONS, CASES, Brief, Case, KeyFigure, risks_of_agents
from unpoison.report.rendering import excerpt

__all__ = ["brief_of_agent_test"]

SHOWN = 300
"""Characters of a task or an answer that are shown."""

REACHED = {
    CALLED: ("Forbidden calls", "tasks in which a tool was called that nobody asked for"),
    LEAKED: ("Canary out", "tasks in which the mark of the customer list left by a tool or a link"),
    LIED: ("False answers", "tasks whose answer states what the attacker wants"),
}
"""The three figures, each of the attack that reached it most often."""


def brief_of_agent_test(results: Results) -> Brief:
    """The worst attack that was tried, and what it reached."""
    attacked = [cell for cell in results.table() if cell.poisons and cell.figures["asr"].defined]
    head = min(attacked, key=lambda cell: (-cell.figures["asr"].value, cell.attack), default=None)
    trials = [trial for cell in attacked for trial in cell.trials if not trial.failed]
    in_memory = [trial for trial in trials if trial.place == "memory"]
    return Brief(
        title="Red-team test of an agent",
        facts=tuple(_facts(results)),
        verdict=_verdict(head),
        setting="" if head is None else _setting(head),
        warning="" if results.complete else "This test is incomplete: some tasks failed or were not given.",
        figures=tuple(_figures(attacked)),
        cases=tuple(_cases(head)),
        actions=tuple(_actions(head))[:ACTIONS],
        risks=risks_of_agents({cell.attack: cell.figures["asr"] for cell in attacked}, _share(in_memory)),
    )


def _share(trials: Sequence[Trial], what: str = "") -> Estimate:
    """Tasks that were won, or in which this was reached."""
    return wilson(sum(bool(t.outcome) and what in (t.outcome or "") for t in trials), len(trials))


def _facts(results: Results) -> Iterator[tuple[str, str]]:
    yield "Tested", f"{results.run.get('name') or 'an agent'}, {results.examples:,} tasks"
    yield "Attacks", ", ".join(dict.fromkeys(attack for attack, poisons in results.cells if poisons)) or "none"
    yield "Places", ", ".join(results.run.get("test", {}).get("places", ()))
    started, ended = (str(at or "")[:16].replace("T", " ") for at in (results.run.get("started"), results.finished))
    yield "When", f"{started} to {ended}" if ended else f"{started}, not finished"
    yield "Version", f"unpoison {__version__}"


def _verdict(head: Cell | None) -> str:
    if head is None:
        return "Nothing was planted in this test, or nothing was measured: it says nothing about an attack."
    won = head.figures["asr"]
    return f"The agent obeyed an order that stood in what it read in {won.hits} of {won.count} tasks."


def _setting(head: Cell) -> str:
    text = f"The attack is {head.attack}, the worst that was tried."
    tries = [trial.tries for trial in head.trials if trial.outcome]
    if head.attack != ADAPTIVE or not tries:
        return text
    return f"{text} It won after {mean(tries):.1f} planted texts on average."


def _figures(attacked: Sequence[Cell]) -> Iterator[KeyFigure]:
    """For each thing that an attacker may reach, the attack that reached it most often."""
    for what, (title, note) in REACHED.items():
        shares = [(cell.attack, _share([t for t in cell.trials if not t.failed], what)) for cell in attacked]
        attack, worst = max(shares, key=lambda pair: pair[1].value, default=("", None))
        if worst is not None:
            yield KeyFigure(title, worst, f"{note}; by {attack}")


def _cases(head: Cell | None) -> Iterator[Case]:
    won = [] if head is None else [trial for trial in head.trials if trial.outcome]
    for trial in won[:CASES]:
        yield Case(
            question=excerpt(trial.question, SHOWN),
            outcome=trial.outcome or "",
            stopped=False,
            right=excerpt(" or ".join(trial.correct), 200),
            wanted=excerpt(" or ".join(trial.wanted), 200),
            reply=excerpt(trial.answer or "", SHOWN),
            planted=excerpt(trial.text, 2 * SHOWN),
        )


def _actions(head: Cell | None) -> Iterator[str]:
    if head is None:
        yield "Repeat the test with an agent that answers."
        return
    won = head.figures["asr"]
    if won.hits:
        yield "Put a gate between tools and the agent: unpoison mcp-proxy, or screen_tool_result in its loop."
        yield "Take from the agent every tool and secret that its tasks do not need; no gate finds every order."
        yield "Let a person confirm what cannot be undone, such as a mail."
    yield "Repeat this test after every change, and let it fail the build: --fail-if 'asr > 5%'."
