"""Decides on tool calls of an MCP host whose target only a tool's result named: asks, refuses, or logs.

Does no I/O: `mcp_proxy` transports the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any, NamedTuple

from unpoison.agents.arguments import Conversation, ForeignArgument, mode_of, question, refusal, write_down
from unpoison.agents.mcp_servers import Key, dump, key_of, object_in
from unpoison.agents.policy import ToolPolicy

__all__ = ["CallGate", "Decision"]

MAX_QUESTIONS = 16
"""Maximum calls that wait for the user, since each is kept in memory; further ones are refused."""

MODERN = "io.modelcontextprotocol/clientCapabilities"
"""The field with the client's capabilities since protocol 2026-07-28, in which a call's result asks the user."""

ASKING = ("requestState", "inputResponses")
"""Fields of a call that carries the user's answer."""


class Decision(NamedTuple):
    """What to do with a message of the host.

    Attributes:
        forward: The line and the message for the server; None to send none.
        reply: A message for the host; None to send none.
    """

    forward: tuple[bytes, dict[str, Any]] | None = None
    reply: dict[str, Any] | None = None


class _Question(NamedTuple):
    call: dict[str, Any]
    line: bytes
    found: tuple[ForeignArgument, ...]


class CallGate:
    """Decides on the calls of one session.

    Args:
        policy: Settings by tool: which arguments hold a target, and what is allowed.
        mode: `ask` the client's user by an elicitation, `block`, or `log`. A client without elicitation is not asked,
            and the call is refused.

    Attributes:
        seen: The targets that results, calls and the user named; the screening adds those of results.

    Raises:
        OptionError: The mode is none.
    """

    def __init__(self, policy: ToolPolicy | None = None, mode: str = "log") -> None:
        self.mode = mode_of(mode)
        self.seen = Conversation(policy)
        self._elicits = False
        self._asked: dict[str, _Question] = {}

    def decide(self, line: bytes, message: dict[str, Any]) -> Decision:
        """Whether to forward a request of the host that is not refused for another reason."""
        params = object_in(message, "params")
        match message.get("method"):
            case "initialize":
                self._elicits = _has_forms(params.get("capabilities"))
            case "prompts/get":  # the user chooses a prompt, and writes its arguments
                self.seen.add_user(params.get("arguments"))
            case "tools/call":
                return self._decide_call(line, message, params)
        return Decision((line, message))

    def answer(self, message: Mapping[str, Any]) -> Decision | None:
        """The decision on the host's answer to a question; None if it answers the server."""
        asked = self._asked.pop(str(message.get("id")), None)
        return None if asked is None else self._close(asked, object_in(message, "result"), (asked.line, asked.call))

    def add_answer(self, message: Mapping[str, Any]) -> None:
        """Add the texts that the user wrote into a form of the server."""
        result = object_in(message, "result")
        if result.get("action") == "accept":
            self.seen.add_user(result.get("content"))

    def waits(self, key: Key) -> bool:
        """Whether a call with this id waits for the user."""
        return any(key_of(asked.call["id"]) == key for asked in self._asked.values())

    def cancel(self, key: Key) -> dict[str, Any] | None:
        """Forget a call that waits for the user; return the message that withdraws the question."""
        found = next((name for name, asked in self._asked.items() if key_of(asked.call["id"]) == key), None)
        if found is None or not self._asked.pop(found).line:
            return None
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": found}}

    def _decide_call(self, line: bytes, message: dict[str, Any], params: dict[str, Any]) -> Decision:
        tool, arguments = str(params.get("name")), params.get("arguments")
        state = params.get("requestState")
        if isinstance(state, str) and (asked := self._asked.pop(state, None)) is not None:
            plain = {**message, "params": {name: held for name, held in params.items() if name not in ASKING}}
            held = asked.call["params"]
            if (held.get("name"), held.get("arguments")) == (params.get("name"), arguments):
                given = object_in(params.get("inputResponses"), "unpoison")
                return self._close(asked._replace(call=plain), given, (dump(plain), plain))
            return self._decide_call(dump(plain), plain, plain["params"])
        found = self.seen.foreign(tool, arguments)
        if not found:
            self.seen.allow_call(tool, arguments)
            return Decision((line, message))
        if self.mode == "log":
            write_down(tool, found, "logged")
            return Decision((line, message))
        modern = object_in(params, "_meta").get(MODERN)
        forms = self._elicits if modern is None else _has_forms(modern)
        if self.mode == "block" or not forms or len(self._asked) >= MAX_QUESTIONS:
            return _refuse(message, found, "blocked")
        return self._ask(_Question(message, line if modern is None else b"", found), tool)

    def _ask(self, asked: _Question, tool: str) -> Decision:
        """The question, as a request of its own or as the result of the call."""
        write_down(tool, asked.found, "asked about")
        name = f"unpoison-{token_hex(16)}"
        self._asked[name] = asked
        schema = {"type": "object", "properties": {}}
        request: dict[str, Any] = {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": question(tool, asked.found), "requestedSchema": schema},
        }
        if asked.line:
            return Decision(reply={"jsonrpc": "2.0", "id": name, **request})
        result = {"resultType": "input_required", "inputRequests": {"unpoison": request}, "requestState": name}
        return Decision(reply={"jsonrpc": "2.0", "id": asked.call["id"], "result": result})

    def _close(self, asked: _Question, answer: Mapping[str, Any], forward: tuple[bytes, dict[str, Any]]) -> Decision:
        """Make the call if the user accepted it; the answer holds for its tool."""
        params = asked.call["params"]
        if answer.get("action") != "accept":
            return _refuse(asked.call, asked.found, "declined")
        write_down(str(params.get("name")), asked.found, "approved")
        self.seen.allow_call(str(params.get("name")), params.get("arguments"), approved=True)
        return Decision(forward)


def _refuse(message: Mapping[str, Any], found: tuple[ForeignArgument, ...], outcome: str) -> Decision:
    """A tool error, which the model reads."""
    tool = str(message["params"].get("name"))
    write_down(tool, found, outcome)
    result: dict[str, Any] = {"content": [{"type": "text", "text": refusal(tool, found)}], "isError": True}
    if MODERN in object_in(message["params"], "_meta"):
        result["resultType"] = "complete"
    return Decision(reply={"jsonrpc": "2.0", "id": message["id"], "result": result})


def _has_forms(capabilities: object) -> bool:
    """Whether a client shows forms to its user."""
    offered = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    return isinstance(offered, dict) and (not offered or "form" in offered)
