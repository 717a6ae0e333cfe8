"""What becomes of each message that an MCP server sends: replies are screened, tools are checked, the rest passes.

No input or output here: `mcp_proxy` carries the messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, NamedTuple

from unpoison.agents.json_rpc import error_reply
from unpoison.agents.lock_file import DESCRIBING, LockFile, look_of
from unpoison.agents.mcp_fields import Fields, as_read, is_picture, without_key
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.records import Records
from unpoison.agents.screening import ScreenedResult, screen_tool_result
from unpoison.core.passages import Passage
from unpoison.core.reasons import Reason
from unpoison.errors import nearest
from unpoison.scan.hidden_text import concealed_texts

__all__ = ["MAX_TOOLS", "META", "Gate", "TooManyToolsError", "safe_name"]

META = "unpoison/screening"
"""The key of `_meta` that says what was cut or withheld."""

MAX_TOOLS, MAX_TOOL_CHARS = 1_000, 64 * 1024
"""Tools of a server, and characters of the description and the schemas of one."""

_NAME = re.compile(r"[A-Za-z0-9_\-./]{1,128}")

METHODS = frozenset(
    (
        *("initialize", "server/discover", "tools/list", "resources/list", "resources/templates/list"),
        *("resources/read", "prompts/list", "prompts/get", "completion/complete", "tasks/result"),
    )
)
"""What a policy may name beside tools."""

RECORDED = ("tools/call", "tasks/result", "resources/read", "prompts/get")
"""Whose results are counted and written down; of other methods those with a finding."""

FLAG = ToolPolicy({"*": {"action": "flag", "hidden": "flag"}})
"""For what is only looked at."""

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
        others: Names of tools that belong to other servers, beside those that the lock file says.
        records: Where results are written down.

    Attributes:
        listed: Whether the host, or the proxy for it, has seen all tools, and none was said to have changed since.
    """

    def __init__(
        self,
        identity: str,
        policy: ToolPolicy | None = None,
        lock: LockFile | None = None,
        descriptions: Descriptions = "withhold",
        others: Collection[str] = (),
        records: Records | None = None,
    ) -> None:
        self.identity, self.lock, self.descriptions = identity, lock, descriptions
        self.policy = policy or ToolPolicy()
        self.others = frozenset(map(look_of, others)) | (lock.others(identity) if lock else frozenset())
        self.records = records or Records()
        self.listed = False
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
        if self._locked and name not in self.schemas:
            return f"the tool {name!r} is not in the server's list, so nobody can say that it is as approved"
        return None

    def needs_list(self, message: Mapping[str, Any]) -> bool:
        """Whether a call of the host can only be judged when the tools were listed."""
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        call = message.get("method") == "tools/call" and isinstance(name, str)
        return call and self._locked and not self.listed and name not in {**self.schemas, **self.withheld}

    @property
    def _locked(self) -> bool:
        return self.lock is not None and self.descriptions == "withhold"

    def learn_tools(self, tools: list[Any]) -> None:
        """Take note of a whole list that the host has not asked for.

        Raises:
            TooManyToolsError: They are too many.
        """
        own = Gate(self.identity, self.policy, self.lock, self.descriptions, records=self.records)
        own.others = self.others
        own._check_tools({}, {"tools": tools})
        self.schemas, self.withheld, self.listed = own.schemas, own.withheld, True

    def unlisted(self) -> list[str]:
        """What the policy names that the server does not list, in sentences."""
        known = {*self.schemas, *self.withheld}
        return [
            f"the policy names {safe_name(name)!r}, which the server does not list; "
            + (nearest(name, known).strip() or "its settings hold for nothing")
            for name in self.policy.named
            if name not in known and name not in METHODS
        ]

    def screen_reply(self, method: str, params: Mapping[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request, as the host may read it; the same object where nothing was found."""
        if "error" in reply:
            screened = self._screen(method, reply["error"], {})
            if not screened.changed:
                return reply
            code = reply["error"].get("code", -32603) if isinstance(reply["error"], dict) else -32603
            error = screened.value if isinstance(screened.value, dict) else {"code": code, "message": screened.line}
            return {**reply, "error": error}
        result = without_key(reply["result"], META)
        if method == "tools/list" and isinstance(result, dict):
            new = self._check_tools(params, result)
        elif method in ("tools/call", "tasks/result"):
            new = self._tool_result(method, params, result)
        else:
            screened = self._screen(method, result, params, method)
            if screened.blocked:
                return error_reply(reply["id"], -32603, screened.line)
            new = _with_meta(screened.value, screened) if screened.cuts else _with_pictures(result, screened)
        return reply if new is reply["result"] else {**reply, "result": new}

    def screen_notice(self, notice: dict[str, Any]) -> dict[str, Any] | None:
        """A notification, as the host may read it; the same object where nothing was found, None where it is refused.

        Progress and log messages are texts of the server like any other: hosts show them, some to the model.
        """
        method = str(notice["method"])
        params = without_key(notice.get("params"), META)
        screened = self._screen(method, params, {})
        if screened.blocked:
            return None
        return notice if screened.value is notice.get("params") else {**notice, "params": screened.value}

    def _screen(
        self, name: str, value: Any, params: Mapping[str, Any], method: str | None = None, **more: Any
    ) -> ScreenedResult:
        arguments = params.get("arguments") if isinstance(params.get("arguments"), dict) else params
        skip, began = Fields(value, name), perf_counter()
        screened = screen_tool_result(name, value, policy=self.policy, arguments=arguments, skip=skip, **more)
        if skip.notes:
            screened = replace(screened, notes=(*skip.notes, *screened.notes))
        if skip.texts and not screened.blocked:
            files = screen_tool_result(name, skip.texts, policy=self.policy, arguments=arguments)
            if files.changed and files.reason.code != "tool.hidden":  # nothing can be cut out of base64
                screened = replace(screened, outcome="blocked", reason=files.reason)
                screened = replace(screened, value=screened.line)
        if method in RECORDED or screened.outcome != "passed":
            self.records.add_result(method or name, safe_name(name), value, screened, perf_counter() - began)
        return screened

    def _tool_result(self, method: str, params: Mapping[str, Any], result: Any) -> Any:
        name = str(params.get("name") or "tasks/result")
        schema = self.schemas.get(name)
        screened = self._screen(
            name, as_read(result), params, method, schema=schema, schema_path=("structuredContent",)
        )
        if screened.outcome == "passed":
            return _with_pictures(result, screened)
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
        if self.lock is None:
            kept = self._without_halves(kept, found)
        self.listed = not result.get("nextCursor")
        outcome = "withheld" if self.descriptions == "withhold" else "flagged"
        self.records.add_tools(outcome, [(safe_name(one.name), one.reason.code) for one in found])
        other = {key: held for key, held in result.items() if key != "tools"}
        rest = self._screen("tools/list", other, {})
        if rest.blocked:
            raise TooManyToolsError("what stands beside the list of tools cannot be screened")
        if not found and not rest.changed:
            return result
        named = [{"tool": safe_name(one.name), "code": one.reason.code, "why": one.reason.plain} for one in found]
        return _add_meta({**rest.value, "tools": kept}, {outcome: named})

    def _without_halves(self, tools: list[Any], found: list[Withheld]) -> list[Any]:
        """Tools without those whose descriptions are an injection only together."""
        said = [str(tool.get("description") or "") if isinstance(tool, dict) else "" for tool in tools]
        screened = screen_tool_result("tools/list", said, policy=FLAG)
        if screened.blocked:
            raise TooManyToolsError("the descriptions of the server's tools are too long to be screened")
        halves = {cut.path[0]: cut.reason for cut in screened.cuts if cut.reason.code == "tool.split"}
        for i, reason in halves.items():
            name = str(tools[int(i)]["name"])
            found.append(Withheld(name, reason))
            if self.descriptions == "withhold":
                self.withheld[name] = reason
                del self.schemas[name]
        return [tool for i, tool in enumerate(tools) if i not in halves or self.descriptions == "flag"]

    def check_tool(self, tool: Any) -> Reason | None:
        """What speaks against showing a tool to a model; None for nothing."""
        if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str) or not _NAME.fullmatch(name):
            return Reason.of("tool.name")
        like = look_of(name)
        if like in self._names:
            return Reason.of("tool.shadows")
        self._names[like] = name
        approved = self.lock.approved(self.identity, tool) if self.lock is not None else None
        if approved:  # the hash is of what everybody reads; some hosts show the rest as well
            return self._judge({key: held for key, held in tool.items() if key not in DESCRIBING})
        if approved is False:
            return Reason.of("tool.changed")
        if like in self.others:
            return Reason.of("tool.shadows")
        return Reason.of("tool.unapproved") if self.lock is not None else self.suspicion(tool)

    def suspicion(self, tool: Mapping[str, Any]) -> Reason | None:
        """What a description or a schema says that it should not."""
        fields = {name: tool[name] for name in DESCRIBING if name in tool}
        if len(json.dumps(fields)) > MAX_TOOL_CHARS:
            return Reason.of("tool.too_much", what=f"it is described in more than {MAX_TOOL_CHARS:,} characters")
        if found := self._judge(tool):
            return found
        text = str(tool.get("description") or "")
        hidden = Passage(text).hidden
        if hidden or concealed_texts(text):
            return Reason.of("hidden", what=str(hidden) or "text in markup")
        return None

    @staticmethod
    def _judge(value: Any) -> Reason | None:
        """What is found in a value of which nothing can be cut."""
        screened = screen_tool_result("tools/list", value, policy=FLAG, skip=is_picture)
        return None if screened.outcome == "passed" else screened.reason


def _with_pictures(result: Any, screened: ScreenedResult) -> Any:
    """A result in which nothing was found, with a note where it holds what nobody looked into."""
    own = [note for note in screened.notes if note.startswith("not looked into")]
    return _with_meta(result, screened) if own else result


def _with_meta(result: Any, screened: ScreenedResult) -> Any:
    return _add_meta(result, screened.to_dict()) if isinstance(result, dict) else result


def _add_meta(result: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    own = result.get("_meta")
    return {**result, "_meta": {**(own if isinstance(own, dict) else {}), META: dict(said)}}


def safe_name(name: str) -> str:
    """A name as it may be shown and written down."""
    return name if _NAME.fullmatch(name) else "(a name in other letters)"
