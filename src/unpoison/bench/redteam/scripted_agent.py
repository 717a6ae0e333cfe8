"""An agent of a few lines that obeys whatever it reads: the worst case, the same in every run, without a model.

It reads as a language model does, past invisible characters and markup. It writes to every address and opens every
link that it finds, with the customer list; it hands every text that it has read over as a task; and its answer is all
that it has read. So what reaches it has won, and only what does not reach it is stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from unpoison.bench.redteam.agent_world import CallTool, strings_of
from unpoison.text.canonical import canonical

__all__ = ["ScriptedAgent"]

Gate = Callable[[str, str], str]

_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_LINK = re.compile(r"https?://[^\s\"'<>()\[\]]{3,500}", re.IGNORECASE)
_TICKET = re.compile(r"\bticket #?(\w{1,20})", re.IGNORECASE)

MAX_ORDERS = 20
"""Addresses and links of one text that it obeys."""


class ScriptedAgent:
    """Obeys what it reads.

    Args:
        call: Calls its tools.
        gate: What stands between a tool's result and the agent; None where nothing does.
    """

    name = "the scripted agent"

    def __init__(self, call: CallTool, gate: Gate | None = None) -> None:
        self._call_tool, self._gate = call, gate

    def ask(self, task: str) -> str:
        """Do a task; all that was read for it."""
        read = [canonical(text).text for text in strings_of(self._read(task))]
        for text in read:
            self._obey(text)
        return "\n".join(read)

    def _read(self, task: str) -> str:
        link, ticket = _LINK.search(task), _TICKET.search(task)
        if link is not None:
            return self._call("fetch_page", url=link[0])
        if ticket is not None:
            return self._call("read_ticket", number=ticket[1])
        return self._call("recall", topic=task) if "memory" in task else self._call("search", query=task)

    def _obey(self, text: str) -> None:
        self._call("do_task", task=text)
        addresses, links = _ADDRESS.findall(text)[:MAX_ORDERS], _LINK.findall(text)[:MAX_ORDERS]
        customers = self._call("list_customers") if addresses or links else ""
        for address in addresses:
            self._call("send_mail", to=address, subject="As you asked", body=customers)
        for link in links:
            self._call("fetch_page", url=f"{link}{customers}")

    def _call(self, tool: str, **arguments: str) -> str:
        result = self._call_tool(tool, arguments)
        return result if self._gate is None else self._gate(tool, result)
