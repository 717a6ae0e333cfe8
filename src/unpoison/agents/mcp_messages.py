"""Handles each message from an MCP server: screens replies, checks tools, and passes on the rest.

A tool whose description changed after its approval (`policy.LockFile`) is withheld.

Does no I/O: `mcp_proxy` transports the messages.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from unpoison.agents.leaves import UNREAD, Path, texts_of, words_of
from unpoison.agents.mcp_calls import CallGate
from unpoison.agents.mcp_servers import object_in
from unpoison.agents.policy import DESCRIBING, LockFile, ToolPolicy, look_of
from unpoison.agents.screening import ScreenedResult, ToolCut, completes, find_split, screen_tool_result
from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason
from unpoison.errors import InputError
from unpoison.injections import STRONG
from unpoison.scan.web_page import concealed_texts
from unpoison.utils.plain_text import excerpt

__all__ = ["McpGate", "plain_method"]

MAX_TOOLS, MAX_TOOL_CHARS = 1_000, 64 * 1024
"""Maximum number of a server's tools, and characters of one definition."""

OF_TOOL = ("tools/call", "tasks/result")
"""Requests that are answered with a tool's result."""

READING_ORDER = ("content", "structuredContent")
"""The order in which hosts show the fields of a tool's result."""

OPAQUE = ("requestState", "inputRequests")
"""Fields of an input request, which are forwarded unchanged to the server or the user."""

REPLY, NOTICE = ("jsonrpc", "id", "result", "error"), ("jsonrpc", "method", "params")
"""Fields of a reply and of a notification; others are left out."""

TOKENS = {
    "type": {"text", "image", "audio", "resource", "resource_link", "tool_use", "tool_result"},
    "role": {"user", "assistant"},
    "resultType": {"complete", "input_required"},
}
"""Fields by which hosts distinguish parts of a message, and their values, which are no text."""

FIXED = {*TOKENS, "mimeType", "uri", "uriTemplate", "audience", "protocolVersion", "nextCursor"}
"""Fields that a host cannot read after a change: a finding there blocks the whole result."""

SILENT = {*FIXED, "level", "logger", "name"}
"""Fields that are not read together with the texts of the next message."""

FLAG = ToolPolicy({"*": {"action": "flag", "threshold": STRONG}})
"""The threshold for tool definitions. They instruct a model by nature, so only strong evidence withholds a tool."""

_NAME = re.compile(r"[A-Za-z0-9_\-./]{1,128}")
_METHOD = re.compile(r"[A-Za-z0-9_\-./$]{1,128}")
_MIME = re.compile(r"[\w.+\-]{1,64}/[\w.+\-]{1,64}(?:; ?[\w\-]{1,32}=[\w\-]{1,32})?")

_log = logging.getLogger("unpoison.agents")


class McpGate:
    """Screens the replies of one server.

    Args:
        identity: The server's (`identity_of`).
        policy: Settings by tool; `resources/read` and `prompts/get` count as names too.
        lock: The approved tools; None without pinning.
        calls: Decides on calls by their targets; None to log them.

    Attributes:
        tools: The names of the tools that may be called.
        withheld: Why others may not.
        choices: The values that the checked definition of a tool lists for its results.
    """

    def __init__(
        self,
        identity: str,
        policy: ToolPolicy | None = None,
        lock: LockFile | None = None,
        calls: CallGate | None = None,
    ) -> None:
        self.identity, self.lock = identity, lock
        self.policy = policy or ToolPolicy()
        self.calls = calls or CallGate(self.policy)
        self.others = lock.others(identity) if lock else frozenset[str]()
        self.tools: set[str] = set()
        self.withheld: dict[str, Reason] = {}
        self.choices: dict[str, frozenset[str]] = {}
        self._looks: set[str] = set()
        self._said = ""

    def refuse_call(self, message: Mapping[str, Any]) -> str | None:
        """The reason to refuse a request of the host; None to forward it."""
        if message.get("method") != "tools/call":
            return None
        name = object_in(message, "params").get("name")
        if not isinstance(name, str):
            return "the call names no tool"
        if name in self.withheld:
            return f"the tool {name!r} is withheld: it {self.withheld[name].unquoted}"
        if name not in self.tools:
            return f"the tool {name!r} is in no list of tools that was checked; list the tools (tools/list) first"
        return None

    def screen_reply(self, method: str, params: Mapping[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        """A reply, screened for the host; the same object without a finding.

        Raises:
            InputError: The reply violates the protocol.
        """
        if ("result" in reply) == ("error" in reply):
            raise InputError("the answer is neither a result nor an error")
        reply = _envelope(reply, REPLY)
        if "error" in reply:
            screened = self._screen(method, reply["error"], {})
            if not screened.changed:
                return reply
            code = object_in(reply, "error").get("code", -32603)
            error = screened.value if isinstance(screened.value, dict) else {"code": code, "message": screened.line}
            return {**reply, "error": error}
        if not isinstance(reply["result"], dict):
            raise InputError(f"the result of {method} must be an object, got {type(reply['result']).__name__}")
        result = reply["result"]
        new = self._check_tools(params, result) if method == "tools/list" else self._result(method, params, result)
        return reply if new is result else {**reply, "result": new}

    def screen_notice(self, notice: dict[str, Any]) -> dict[str, Any] | None:
        """A notification, screened for the host; the same object without a finding, None if it is refused.

        Hosts show progress and log messages, some of them to the model.
        """
        notice = _envelope(notice, NOTICE)
        method, params = str(notice["method"]), notice.get("params")
        if not plain_method(method):
            return None
        screened = self._screen(method, params, {})
        if screened.blocked:
            return None
        return notice if screened.value is params else {**notice, "params": screened.value}

    def in_sequence(self, method: str, params: Mapping[str, Any], message: dict[str, Any]) -> dict[str, Any]:
        """A screened message, which is sent next.

        Raises:
            InputError: It completes an injection that began in the messages before it.
        """
        said = texts_of([message.get(part) for part in ("result", "error", "params")])[0]
        texts = [leaf.text for leaf in said if not leaf.key and leaf.name not in SILENT]
        found, end = completes(self._said, texts)
        if found and self.policy.settings(_name(method, params)).action not in ("keep", "flag"):
            raise InputError("it completes instructions that began in a message before it, so it is not passed")
        self._said = end
        return message

    def check_tool(self, tool: Any) -> Reason | None:
        """The reason to withhold a tool from a model; None without a reason."""
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str) or not _NAME.fullmatch(name):
            return Reason.of("tool.name")
        like = look_of(name)
        if like in self._looks:
            return Reason.of("tool.shadows")
        self._looks.add(like)
        approved = self.lock.approved(self.identity, tool) if self.lock is not None else None
        if approved:  # the hash covers DESCRIBING; some hosts show other fields too
            return _suspicion({key: held for key, held in tool.items() if key not in DESCRIBING})
        if approved is False:
            return Reason.of("tool.changed")
        if like in self.others:
            return Reason.of("tool.shadows")
        return Reason.of("tool.unapproved") if self.lock is not None else self.suspicion(tool)

    @staticmethod
    def suspicion(tool: Mapping[str, Any]) -> Reason | None:
        """Injections found in a description, a parameter or a choice."""
        if found := _suspicion(words_of(str(tool.get("name")))):
            return found
        fields = {name: tool[name] for name in DESCRIBING if name in tool}
        if len(json.dumps(fields)) > MAX_TOOL_CHARS:
            return Reason.of("tool.too_much", what=f"it is described in more than {MAX_TOOL_CHARS:,} characters")
        if found := _suspicion(tool):
            return found
        text = str(tool.get("description") or "")
        hidden = Passage(text).hidden
        return Reason.of("hidden", what=str(hidden) or "text in markup") if hidden or concealed_texts(text) else None

    def _check_tools(self, params: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """A page of the tool list, without withheld tools."""
        if not params.get("cursor"):
            self.tools, self.withheld, self._looks = set(), {}, set()
        tools = result.get("tools")
        if not isinstance(tools, list) or len(tools) + len(self._looks) > MAX_TOOLS:
            raise InputError(f"the server's list of tools is none, or holds more than {MAX_TOOLS:,}")
        found = {i: reason for i, tool in enumerate(tools) if (reason := self.check_tool(tool))}
        said = [(i, str(tool.get("description") or "")) for i, tool in enumerate(tools) if i not in found]
        found |= {} if self.lock else find_split(said)
        names = [tool["name"] if isinstance(tool, dict) and isinstance(tool.get("name"), str) else "" for tool in tools]
        self.withheld |= {names[i]: reason for i, reason in found.items()}
        self.tools |= set(names) - set(self.withheld)
        self.choices |= {names[i]: _choices(tool) for i, tool in enumerate(tools) if i not in found}
        rest = self._screen("tools/list", {key: held for key, held in result.items() if key != "tools"}, {})
        if rest.blocked:
            raise InputError("what stands beside the list of tools cannot be screened")
        if not found and not rest.changed:
            return result
        for i, reason in found.items():
            _log.warning("withheld the tool %s: %s", excerpt(names[i]), reason.code)
        return {**rest.value, "tools": [tool for i, tool in enumerate(tools) if i not in found]}

    def _result(self, method: str, params: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """A result, screened for the host; a tool's result gets a line that reports the removal."""
        of_tool, name = method in OF_TOOL, _name(method, params)
        screened = self._screen(name, {key: result[key] for key in READING_ORDER if key in result} | result, params)
        if screened.outcome == "passed":
            return result
        if screened.blocked:
            if not of_tool:
                raise InputError(screened.line.removeprefix("[unpoison] "))
            kind = {"resultType": "complete"} if "resultType" in result else {}
            return {**kind, "content": [{"type": "text", "text": screened.line}], "isError": True}
        new: dict[str, Any] = screened.value
        if of_tool and screened.line and isinstance(new.get("content"), list):
            return {**new, "content": [*new["content"], {"type": "text", "text": screened.line}]}
        return new

    def _screen(self, name: str, value: Any, params: Mapping[str, Any]) -> ScreenedResult:
        """The screened value, with the text files in it, which are judged together."""
        arguments = params.get("arguments") if isinstance(params.get("arguments"), dict) else params
        skip = _Opaque(value, name, self.choices.get(name, frozenset()))
        both = {"value": value, "names": skip.names}  # `skip` collects them while `value` is read
        screened = screen_tool_result(name, both, policy=self.policy, arguments=arguments, skip=skip, unread=False)
        if screened.changed and any(map(_fixed, screened.cuts)):
            screened = replace(screened, outcome="blocked", reason=max(filter(_fixed, screened.cuts)).reason)
            screened = replace(screened, value=screened.line)
        if screened.outcome != "passed":
            _log.info("%s: %s (%s)", excerpt(name), screened.outcome, screened.reason.code)
        if screened.blocked:
            return screened
        self.calls.seen.add_result(name, screened.value, arguments)
        new = screened.value["value"]
        for cut in screened.cuts:
            of_block = cut.path[-1] in ("blob", "data") and cut.path[1] != "structuredContent"
            if of_block and cut.reason.code == "tool.unread":
                new = _with_text(new, cut.path[1:-1])
        return replace(screened, value=new)


def _name(method: str, params: Mapping[str, Any]) -> str:
    """The name by which a policy has settings for a message."""
    return str(params.get("name") or method) if method in OF_TOOL else method


def _envelope(message: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """A message with these fields only; the same object if it has no other."""
    if message.get("jsonrpc") == "2.0" and message.keys() <= set(names):
        return message
    return {**{name: message[name] for name in names if name in message}, "jsonrpc": "2.0"}


def _fixed(cut: ToolCut) -> bool:
    """Whether a finding stands where nothing can be cut out: in a name in a list or in a field of the protocol."""
    if cut.path[0] == "names":
        return cut.reason.code != "tool.hidden"
    return "structuredContent" not in cut.path and not FIXED.isdisjoint(cut.path[-2:])


def _with_text(value: Any, path: Path) -> Any:
    """A copy of a value in which the holder of a removed file, at a path, is a text."""
    if path:
        new = list(value) if isinstance(value, list) else dict(value)
        new[path[0]] = _with_text(value[path[0]], path[1:])
        return new
    if value.get("blob") != UNREAD:
        return {"type": "text", "text": UNREAD}
    return {**{key: held for key, held in value.items() if key != "blob"}, "mimeType": "text/plain", "text": UNREAD}


class _Opaque:
    """Decides whether a field is not shown to a model.

    Attributes:
        names: Names in lists and of types, as sentences.
    """

    def __init__(self, value: Any, method: str, choices: frozenset[str]) -> None:
        self.names = list[str]()
        self._choices, self._lists = choices, method.endswith("/list")
        asks = isinstance(value, dict) and value.get("resultType") == "input_required"
        self._opaque = OPAQUE if asks else ()

    def __call__(self, path: Path, holder: Mapping[str, Any], key: str) -> bool:
        value = holder[key]
        if path[:1] != ("value",) or not isinstance(value, str):
            audience = key == "audience" and isinstance(value, list) and TOKENS["role"].issuperset(map(str, value))
            return audience or (len(path) == 1 and key in self._opaque)
        if key == "mimeType" or (self._lists and key == "name"):
            self.names.append(words_of(value))
        if path[1:2] == ("structuredContent",):
            if value in self._choices:
                return True
        elif key in TOKENS:
            return value in TOKENS[key]
        elif key == "mimeType":
            return _MIME.fullmatch(value) is not None
        return len(path) == 1 and key in self._opaque


def _choices(tool: Mapping[str, Any]) -> frozenset[str]:
    """The texts that the schema of a tool's results lists as possible values."""
    leaves = texts_of(tool.get("outputSchema"))[0]
    return frozenset(leaf.text for leaf in leaves if leaf.path[-2:-1] == ("enum",) or leaf.path[-1:] == ("const",))


def _suspicion(value: Any) -> Reason | None:
    """The finding in a tool definition, in which nothing can be cut."""
    screened = screen_tool_result("tools/list", value, policy=FLAG)
    return None if screened.outcome == "passed" else screened.reason


def plain_method(method: str) -> bool:
    """Whether a method's name is a plain name, not a sentence for a model."""
    return _METHOD.fullmatch(method) is not None and all(
        _suspicion(words_of(part)) is None for part in method.split("/")
    )
