"""The demo's third act: an agent reads a ticket and mails the customer list; behind the gate it does not."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unpoison.bench.redteam.agent_tasks import Task

__all__ = ["agent_lines"]

SITE = "http://127.0.0.1:8790"
"""Stands in no order that is shown; nothing is fetched."""

ATTACKER = "eve"
"""The attacker's name."""

COLUMNS = 80


def agent_lines() -> Iterator[str]:
    """What the scripted agent does without the gate and behind it, none longer than 80 characters."""
    from unpoison.bench.redteam.agent_tasks import tasks, written_orders

    task = tasks()[0]
    textbook, plain = (written_orders(family, task, ATTACKER, SITE, ["mail"])[0] for family in ("textbook", "process"))
    yield f"An agent: {task.task}"
    yield from wrap(
        f'Planted in the ticket: "{textbook.text}" This agent obeys all that it reads.',
        COLUMNS,
    )
    yield f"  {'without a gate:':<28}{_mails(task, textbook.text, gate=False)}"
    yield f"  {'behind screen_tool_result:':<28}{_mails(task, textbook.text, gate=True)}"
    told = _mails(task, plain.text, gate=True)
    what = "It holds" if told == NOTHING else "An honest miss"
    yield from wrap(f'{what}: at "{plain.text}" it {told}.', COLUMNS)
    yield ""


NOTHING = "mails nothing"


def _mails(task: Task, order: str, *, gate: bool) -> str:
    """What the agent mails after reading a ticket with an order in it."""
    from unpoison.agents import screen_tool_result
    from unpoison.bench.redteam.agent_attacks import plant_into
    from unpoison.bench.redteam.agent_tasks import Order
    from unpoison.bench.redteam.scripted_agent import ScriptedAgent

    mark = "no. 31"
    world = task.world(mark, plant_into(task, Order(order, "demo"), ()))
    screen = (lambda tool, result: str(screen_tool_result(tool, result).value)) if gate else None
    ScriptedAgent(world.call, screen).ask(task.task)
    mails = [call.arguments for call in world.calls if call.tool == "send_mail"]
    told = ", ".join(mail["to"] for mail in mails if mark in mail["body"])
    return f"mails the customer list to {told}" if told else NOTHING
