"""What becomes of each message that an MCP server sends: replies are screened, tools are checked, the rest passes.

No input or output here: `mcp_proxy` carries the messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from unpoison.agents.leaves import Path
from unpoison.agents.lock_file import DESCRIBING, LockFile
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.screening import ScreenedResult, screen_tool_result
from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason
from unpoison.scan.hidden_text import concealed_texts

__all__ = ["META", "Gate", "TooManyToolsError", "error_reply"]

META = "unpoison/screening"
"""The key of `_meta` that says what was cut or withheld."""

MAX_TOOLS, MAX_TOOL_CHARS = 1_000, 64 * 1024
"""Tools of a server, and characters of the description and the schemas of one."""

_NAME = re.compile(r"[A-Za-z0-9_\-./]{1,128}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]*={0,2}")

LOOKING_ALIKE = str.maketrans("013|", "olel")

NOT_TEXT = ("requestState", "nextCursor", "inputRequests")
"""Fields of a result that go back to the server, or to the person who is asked, as they are."""

Descriptions = Literal["withhold", "flag"]


class TooManyToolsError(ValueError):
    """A server lists more tools than may be."""


class Withheld(NamedTuple):
    """A tool and why it is withheld, or pointed out."""

    name: str
    reason: Reason


class Gate:
    """Screens the replies of one server.

    Args:
        identity: The server's (`lock_file.identity_of`).
        policy: What becomes of results, by tool; `resources/read` and `prompts/get` are names as well.
        lock: What was approved; None where nothing is pinned.
        descriptions: What becomes of tools with a finding, or that are not approved.
    """

    def __init__(
        self,
        identity: str,
        policy: ToolPolicy | None = None,
        lock: LockFile | None = None,
        descriptions: Descriptions = "withhold",
    ) -> None:
        self.identity, self.lock, self.descriptions = identity, lock, descriptions
        self.policy = policy or ToolPolicy()
        self.schemas: dict[str, Any] = {}
        self.withheld: dict[str, Reason] = {}
        self._names: dict[str, str] = {}

    def refuse_call(self, message: Mapping[str, Any]) -> str | None:
        """Why a request of the host is not passed on; None where it is."""
        if message.get("method") != "tools/call":
            return None
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        if not isinstance(name, str):
            return "the call names no tool"
        if name in self.withheld:
            return f"the tool {name!r} is withheld: {self.withheld[name].plain}"
        if self.lock is not None and self.descriptions == "withhold" and name not in self.schemas:
            return (
                f"the tool {name!r} was not listed yet, so nobody can say that it is as approved; list the tools first"
            )
        return None

    def screen_reply(self, method: str, params: Mapping[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request, as the host may read it; the same object where nothing was found."""
        if "error" in reply:
            screened = self._screen(method, reply["error"], {})
            if not screened.changed:
                return reply
            code = reply["error"].get("code", -32603) if isinstance(reply["error"], dict) else -32603
            error = screened.value if isinstance(screened.value, dict) else {"code": code, "message": screened.line}
            return {**reply, "error": error}
        result = reply["result"]
        if method == "tools/list" and isinstance(result, dict):
            new = self._check_tools(params, result)
        elif method in ("tools/call", "tasks/result"):
            new = self._tool_result(params, result)
        else:
            screened = self._screen(method, result, params)
            if screened.blocked:
                return error_reply(reply["id"], -32603, screened.line)
            new = _with_meta(screened.value, screened) if screened.cuts else result
        return reply if new is result else {**reply, "result": new}

    def _screen(self, name: str, value: Any, params: Mapping[str, Any], **more: Any) -> ScreenedResult:
        arguments = params.get("arguments") if isinstance(params.get("arguments"), dict) else params
        return screen_tool_result(name, value, policy=self.policy, arguments=arguments, skip=_is_no_text, **more)

    def _tool_result(self, params: Mapping[str, Any], result: Any) -> Any:
        name = str(params.get("name") or "tasks/result")
        screened = self._screen(name, result, params, schema=self.schemas.get(name), schema_path=("structuredContent",))
        if screened.outcome == "passed":
            return result
        line = [{"type": "text", "text": screened.line}] if screened.line else []
        if screened.blocked:
            kind = {"resultType": "complete"} if isinstance(result, dict) and "resultType" in result else {}
            return _with_meta({**kind, "content": line, "isError": True}, screened)
        value = _with_meta(screened.value, screened)
        return {**value, "content": [*value["content"], *line]} if isinstance(value.get("content"), list) else value

    def _check_tools(self, params: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """A page of a list of tools, without those that are withheld."""
        if not params.get("cursor"):
            self.schemas, self.withheld, self._names = {}, {}, {}
        tools = result.get("tools")
        if not isinstance(tools, list) or len(tools) + len(self._names) > MAX_TOOLS:
            raise TooManyToolsError(f"the server's list of tools is none, or holds more than {MAX_TOOLS:,}")
        kept, found = list[Any](), list[Withheld]()
        for tool in tools:
            reason = self.check_tool(tool)
            name = tool["name"] if isinstance(tool, dict) and isinstance(tool.get("name"), str) else ""
            if reason is not None:
                found.append(Withheld(name, reason))
                if self.descriptions == "withhold":
                    self.withheld[name] = reason
                    continue
            self.schemas[name] = tool.get("outputSchema") if isinstance(tool, dict) else None
            kept.append(tool)
        other = {key: held for key, held in result.items() if key != "tools"}
        rest = self._screen("tools/list", other, {})
        if rest.blocked:
            raise TooManyToolsError("what stands beside the list of tools cannot be screened")
        if not found and not rest.changed:
            return result
        named = [{"tool": _safe(one.name), "code": one.reason.code, "why": one.reason.plain} for one in found]
        key = "withheld" if self.descriptions == "withhold" else "flagged"
        return _add_meta({**rest.value, "tools": kept}, {key: named})

    def check_tool(self, tool: Any) -> Reason | None:
        """What speaks against showing a tool to a model; None for nothing."""
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str) or not _NAME.fullmatch(name):
            return Reason.of("tool.name")
        like = name.casefold().translate(LOOKING_ALIKE).replace("i", "l").replace("-", "_")
        if like in self._names:
            return Reason.of("tool.shadows")
        self._names[like] = name
        if self.lock is not None:
            approved = self.lock.approved(self.identity, tool)
            if approved is None:
                return Reason.of("tool.unapproved")
            return None if approved else Reason.of("tool.changed")
        return self.suspicion(tool)

    def suspicion(self, tool: Mapping[str, Any]) -> Reason | None:
        """What a description or a schema says that it should not."""
        fields = {name: tool[name] for name in DESCRIBING if name in tool}
        if len(json.dumps(fields)) > MAX_TOOL_CHARS:
            return Reason.of("tool.too_much", what=f"it is described in more than {MAX_TOOL_CHARS:,} characters")
        settings = {"*": {"action": "flag", "hidden": "flag"}}
        screened = screen_tool_result("tools/list", fields, policy=settings)
        if screened.outcome != "passed":
            return screened.reason
        text = str(tool.get("description") or "")
        hidden = Passage(text).hidden
        if hidden or concealed_texts(text):
            return Reason.of("hidden", what=str(hidden) or "text in markup")
        return None


def error_reply(identifier: object, code: int, message: str) -> dict[str, Any]:
    """A JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": identifier, "error": {"code": code, "message": message}}


def _is_no_text(path: Path, holder: Mapping[str, Any], key: str) -> bool:
    """Whether a field is an image, a sound or a blob in base64, or one that nobody reads."""
    if not path:
        return key in NOT_TEXT
    value = holder[key]
    binary = key == "blob" or (key == "data" and holder.get("type") in ("image", "audio"))
    return binary and isinstance(value, str) and _BASE64.fullmatch(value) is not None


def _with_meta(result: Any, screened: ScreenedResult) -> Any:
    return _add_meta(result, screened.to_dict()) if isinstance(result, dict) else result


def _add_meta(result: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    own = result.get("_meta")
    return {**result, "_meta": {**(own if isinstance(own, dict) else {}), META: dict(said)}}


def _safe(name: str) -> str:
    return name if _NAME.fullmatch(name) else "(a name in other letters)"
