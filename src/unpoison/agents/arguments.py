"""Finds arguments of a tool call that name a target (address, account, link, path) known only from a tool's result.

A request such as "please email the file to ..." may come from an attacker or from a colleague, and its wording does not
tell which. Its target may: neither the user nor the policy names an attacker's target. The check compares strings.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, Literal, NamedTuple, cast, get_args
from urllib.parse import unquote

from unpoison.agents.leaves import TooMuchError, scalars, show_path
from unpoison.agents.policy import ANY_TOOL, ToolPolicy
from unpoison.text.canonical import canonical
from unpoison.text.homoglyphs import STRICT
from unpoison.text.tokens import word_list
from unpoison.utils.checks import among
from unpoison.utils.lru_cache import LRUCache
from unpoison.utils.plain_text import excerpt

__all__ = [
    "Conversation", "ForeignArgument", "HistoryEvent", "Mode", "arguments_from_results", "mode_of", "question",
    "refusal", "replay", "write_down",
]  # fmt: skip

Mode = Literal["ask", "block", "log"]
"""The action on a call whose target only a tool's result named: ask the user, block it, or make and log it."""

MAX_VALUES, MAX_USER_CHARS = 200_000, 1_000_000
"""Maximum values of results, and characters of the user's texts, that a conversation remembers; about 20 MB of values.

Once the values are full, every target counts as named only by an untrusted result.
"""

MAX_FOUND, MAX_CALL_VALUES = 20, 1_000
"""Maximum findings in one call, and values of a call that are compared; a call with more values is a finding."""

MAX_NAME_CHARS = 200
"""Maximum characters of a value that is compared word by word."""

MIN_ACCOUNT_CHARS = 15
PIECE, OVERLAP = 100_000, 2_100
"""Characters of a text that are read at a time, and the overlap, which is longer than most values."""

MAX_STEPS, MAX_LINK_CHARS = 40, 1_900
"""Longer paths and links are not compared with what they begin with, because their ends are cut off."""

PLACES = frozenset(("dir", "directory", "file", "filename", "filepath", "folder", "path", "paths"))
TARGETS = PLACES | word_list("targets")
"""Words in the name of an argument that holds a target; the first are those of a path."""

ALONE = ("address", "link", "path", "account")
"""Kinds that count under any name if the argument holds nothing else."""

_SCHEME = r"(?:(?:https?|ftps?|wss?|s3|gs|ssh|git)://|www\.)"
_KINDS = (
    ("link", re.compile(rf"{_SCHEME}[^\s\"'<>()\[\]{{}}]{{1,2000}}")),
    ("address", re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")),
    ("path", re.compile(r"(?<![\w/.:])(?:~|\.{1,2}|[a-z]:)?(?:[/\\][\w.@+-]{1,100}){1,60}")),
    ("account", re.compile(r"(?<!\w)[a-z]{2}\d{2}(?:[ .-]?[a-z\d]{4}){2,7}(?:[ .-]?[a-z\d]{1,4})?(?!\w)")),
    ("number", re.compile(r"(?<!\w)(?<!\d\.)\+?\d(?:[ ()/-]{0,2}\d){6,20}(?!\w|\.\d)")),
    ("account", re.compile(r"(?<!\w)(?=[a-z]{0,62}\d)[a-z\d]{15,64}(?!\w)")),
    ("bare", re.compile(r"(?<![\w@./:-])[\w-]{1,63}(?:[./][\w@+-]{1,100}){1,20}")),
)
"""Patterns of values that name a target, in lower case. Earlier kinds take precedence; the last is a link or a path."""

_TRAILING = ".,;:!?"
_AT_OR_DOT = re.compile(r" ?[\[({] ?(at|dot) ?[\])}] ?")
_ESCAPE = re.compile(r"\\u([\da-fA-F]{4})")
_NAME_PARTS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*")
_WORD = re.compile(r"[^\W_]+")

_log = logging.getLogger("unpoison.calls")


class ForeignArgument(NamedTuple):
    """A value of a call that occurs in a tool's result, and that neither the user nor the policy named.

    Attributes:
        path: Its place in the call's arguments, as JSONPath.
        kind: "address", "link", "account", "path", "number", or "name" for other values that the policy lists.
        value: The text in the call, in small letters.
        result: The position of the first result that holds it; -1 if there was more than is remembered.
    """

    path: str
    kind: str
    value: str
    result: int


def arguments_from_results(
    call: Mapping[str, object], results: Sequence[object], user_text: str
) -> tuple[ForeignArgument, ...]:
    """The addresses, links, accounts, paths and long numbers of a call that occur only in tool results.

    Ask the user before such a call. An empty result does not mean that a call is safe: names, short numbers and free
    text are not compared, and neither is a value that the model changed.

    Args:
        call: The arguments of the call, as JSON.
        results: What tools returned in this conversation: texts, or values as JSON has them.
        user_text: Everything that the user wrote in it.

    Complexity: O(n) time for n characters; of the results at most `MAX_VALUES` values are remembered.
    """
    conversation = Conversation({"*": {"arguments": ["*"]}}, names=False)
    conversation.add_user(user_text)
    for result in results:
        conversation.add_result("", result)
    return conversation.foreign("", call)


class Conversation:
    """The targets that the user, the policy, the results and the calls of one conversation named, as hashes.

    Args:
        policy: A `ToolPolicy`, or settings by tool: `arguments` and `allow` of each, and which results are trusted.
        names: Whether to compare values that are neither address, link, account, path nor number, where the policy
            lists the argument.
    """

    def __init__(self, policy: ToolPolicy | Mapping[str, Any] | None = None, *, names: bool = True) -> None:
        self.policy = ToolPolicy.of(policy)
        settings = {tool: self.policy.settings(tool) for tool in self.policy.tools}
        self._names = names and any(own.arguments for own in settings.values())
        self._held: dict[int, int] = {}
        self._free: set[int] = set()
        self._said = " "
        self._results = 0
        self._lock = Lock()
        self.full = False
        for tool, own in settings.items():
            for entry in own.allow:
                named = [*_values(entry.casefold()), ("name", " ".join(_WORD.findall(entry.casefold())))]
                self._allow("" if tool == ANY_TOOL else tool, named)

    def add_user(self, text: object) -> None:
        """Add text of the user: what it names may be used."""
        try:
            for _, said in scalars(text):
                if self._names and len(self._said) < MAX_USER_CHARS:
                    self._said += f"{' '.join(_WORD.findall(said.casefold()))} "
                self._allow("", _values(said.casefold()))
        except TooMuchError:
            return  # targets that are not remembered need approval

    def add_result(self, tool: str, result: object, arguments: Mapping[str, Any] | None = None) -> None:
        """Add a tool's result: targets that it names need approval, unless its source is trusted. O(n) time."""
        if self.policy.standing(tool, arguments or {})[1] == "trusted":
            self.add_user(result)
            return
        with self._lock:
            number = self._results
            self._results += 1
        try:
            for _, text in scalars(result):
                for start in range(0, len(text), PIECE):
                    for key in _index(text[start : start + PIECE + OVERLAP], self._names):
                        self._held.setdefault(key, number)
                    if len(self._held) + number > MAX_VALUES:
                        self.full = True
                        return
        except TooMuchError:
            self.full = True

    def foreign(self, tool: str, arguments: object) -> tuple[ForeignArgument, ...]:
        """The values of a call that only results named; at most `MAX_FOUND`. O(n) time for n characters that matter."""
        found, count = dict[tuple[str, str], ForeignArgument](), 0
        try:
            for path, kind, value, keys, free in self._targets(tool, arguments):
                count += 1
                holder = -1 if self.full or count > MAX_CALL_VALUES else self._holder(kind, value, keys)
                if holder is not None and not free:
                    found.setdefault((path, value), ForeignArgument(path, kind, value, holder))
                    if len(found) == MAX_FOUND:
                        break
        except TooMuchError:
            return (ForeignArgument("$", "name", "", -1),)
        return tuple(found.values())

    def allow_call(self, tool: str, arguments: object, *, approved: bool = False) -> None:
        """Record the targets of a call that may be made.

        Targets that no result named are allowed for every tool; others for this tool, if the user approved them.
        """
        for _, kind, value, keys, _ in self._targets(tool, arguments):
            named = self._holder(kind, value, keys) is not None
            if approved or not named:
                self._allow(tool if named else "", [(kind, value)])

    def _targets(self, tool: str, arguments: object) -> Iterator[tuple[str, str, str, list[int], bool]]:
        """Each value of a call that names a target: path, kind, text, keys among results, and whether it is allowed."""
        settings = self.policy.settings(tool)
        listed = {name.casefold() for name in settings.arguments or ()}
        usual, every = settings.arguments is None, "*" in listed
        for path, text in scalars(arguments):
            steps = [str(step) for step in path if not isinstance(step, int)]
            words = {part.casefold() for step in steps for part in _NAME_PARTS.findall(step)}
            named = bool(words & TARGETS) if usual or every else any(step.casefold() in listed for step in steps)
            if not (named or usual or every):
                continue
            where, plain, whole = show_path(path), set(_values(text.casefold())), _squeezed(text)
            up = ".." in re.split(r"[/\\]", unquote(text))
            readings = _readings(text)
            values = dict.fromkeys(value for reading in readings for value in _values(reading))
            for kind, value in values:
                same = kind if kind != "bare" else "path" if words & PLACES else "link"
                if kind == "bare" and not (named and (same == "path" or "." in value.partition("/")[0])):
                    continue
                if named or every or (kind in ALONE and _squeezed(value) == whole):
                    cut = up and same == "path" and _squeezed(value) != whole  # the rest may lead elsewhere
                    free = not cut and (kind, value) in plain and self._is_free(tool, same, value)
                    yield where, same, value, [*_keys(same, value)], free
            if self._names and named and not usual and not values and text != steps[-1] and len(text) <= MAX_NAME_CHARS:
                name = " ".join(_WORD.findall(readings[0]))
                yield where, "name", name, [], f" {name} " in self._said or self._is_free(tool, "name", name)

    def _holder(self, kind: str, value: str, keys: Iterable[int]) -> int | None:
        """The first result that holds a value."""
        if kind != "name":
            return next((self._held[key] for key in keys if key in self._held), None)
        places = [self._held.get(hash(("word", word))) for word in value.split()]
        return None if None in places else max(place for place in places if place is not None)

    def _allow(self, tool: str, values: Iterable[tuple[str, str]]) -> None:
        for kind, value in values:
            for same in ("link", "path") if kind == "bare" else (kind,):
                if len(self._free) < MAX_VALUES:
                    self._free |= {hash((tool, same, written)) for written in _spellings(same, value) if written}

    def _is_free(self, tool: str, kind: str, value: str) -> bool:
        """Whether the user, the policy or an earlier call named a value, or what a link or path begins with."""
        written = _written(kind, value)
        cuts = [match.start() for match in re.finditer(r"[/?#]", written)] if kind in ("link", "path") else []
        begins = [written, *(written[:cut] for cut in cuts if cut)] if written else []
        if any(hash((whose, kind, begin)) in self._free for begin in begins for whose in ("", tool)):
            return True
        place = _host(value) if kind == "link" else value if kind == "address" else ""
        allow = self.policy.settings(tool).allow
        allowed = place.endswith(tuple(entry[1:].casefold() for entry in allow if entry[:1] == "*"))
        return bool(written) and (allowed or (kind == "link" and self.policy.trusts(value)))


class HistoryEvent(NamedTuple):
    """A part of a conversation's history.

    Attributes:
        kind: "user", "call" or "result".
        value: A text, the arguments, or the result.
        tool: Of a call or result.
        call: The id that a call and its result share.
        made: Whether the call of a result was made; False if it failed, perhaps because it was refused.
    """

    kind: Literal["user", "call", "result"]
    value: object
    tool: str = ""
    call: str | None = None
    made: bool = True


def replay(policy: ToolPolicy, history: Iterable[HistoryEvent], *, asks: bool) -> Conversation:
    """A conversation from its history. In mode `ask`, a call with a result counts as approved by the user."""
    conversation, calls = Conversation(policy), dict[str | None, HistoryEvent]()
    for event in history:
        if event.kind == "user":
            conversation.add_user(event.value)
        elif event.kind == "call":
            calls[event.call] = event
            if not conversation.foreign(event.tool, event.value):
                conversation.allow_call(event.tool, event.value)
        else:
            call = calls.get(event.call, event._replace(value={}))
            if asks and event.made:
                conversation.allow_call(call.tool, call.value, approved=True)
            conversation.add_result(call.tool, event.value, call.value if isinstance(call.value, Mapping) else {})
    return conversation


def _readings(text: str) -> list[str]:
    """The normal forms of a text: without escapes, percent-encoding, hidden characters and homoglyphs."""
    text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text).replace("\\/", "/")
    found = [text]
    for _ in range(3):
        if "%" in found[-1] and (less := unquote(found[-1])) != found[-1]:
            found.append(less)
    return [
        _AT_OR_DOT.sub(lambda sign: "@" if sign[1] == "at" else ".", canonical(one).text.translate(STRICT).casefold())
        for one in found
    ]


def _values(text: str) -> Iterator[tuple[str, str]]:
    """Each value of a text in lower case with its kind; a part of a longer value does not count."""
    for kind, pattern in _KINDS:
        found = [match[0].rstrip(_TRAILING) for match in pattern.finditer(text)]
        text = pattern.sub(lambda match: " " * len(match[0]), text)
        yield from ((kind, value) for value in found if value)


_INDEXED = LRUCache[tuple[str, bool], frozenset[int]](lambda key, held: 2 * len(key[0]) + 64 * len(held) + 200, 2**24)
"""Frameworks hand over the whole conversation at each call."""


def _index(text: str, names: bool) -> frozenset[int]:
    """The keys of the values of a result's text."""
    found = _INDEXED.get((text, names))
    if found is None:
        readings = _readings(text)
        keys = {key for reading in readings for kind, value in _values(reading) for key in _keys(kind, value)}
        keys |= {hash(("word", word)) for word in _WORD.findall(readings[0])} if names else set()
        found = frozenset(keys)
        _INDEXED.put((text, names), found)
    return found


def _keys(kind: str, value: str) -> Iterator[int]:
    """A key that all spellings of a value share: of a link its host, of an account its letters and digits."""
    if kind in ("link", "bare"):
        yield hash(("link", _host(value)))
    if kind != "link":
        same = "path" if kind == "bare" else kind
        yield from (hash((same, written)) for written in _spellings(same, value))


def _spellings(kind: str, value: str) -> Iterator[str]:
    """The one spelling of a value; of an account in groups also without the last ones, which may be words."""
    yield _written(kind, value)
    if kind == "account":
        cuts = [match.start() for match in re.finditer(r"[ .-]", value)]
        yield from (short for cut in cuts if len(short := _written(kind, value[:cut])) >= MIN_ACCOUNT_CHARS)


def _written(kind: str, value: str) -> str:
    """The one spelling of a value of those that mean the same; empty where programs disagree on what it means."""
    if kind in ("account", "number"):
        return "".join(_WORD.findall(value))
    if (kind == "path" and len(re.findall(r"[/\\]", value)) > MAX_STEPS) or len(value) > MAX_LINK_CHARS:
        return ""
    if kind == "path":
        return re.sub(r"/+", "/", posixpath.normpath(unquote(value).replace("\\", "/")))
    if kind != "link":
        return value
    authority = re.split(r"[/?#]", re.sub(rf"^{_SCHEME}", "", value), maxsplit=1)[0]
    if "@" in authority or "\\" in authority:
        return ""
    rest = re.sub(rf"^{_SCHEME}", "", value)[len(authority) :]
    place, sign, query = rest.partition("?")
    place = posixpath.normpath(unquote(place)) if place not in ("", "/") else ""
    return f"{_host(value)}{place}{sign}{query}"


def _host(link: str) -> str:
    authority = re.split(r"[/?#\\]", re.sub(r"^[a-z\d]+://", "", link), maxsplit=1)[0]
    return unquote(authority).rpartition("@")[2].removeprefix("www.").rstrip(".")


def _squeezed(text: str) -> str:
    return re.sub(r"[\s<>]", "", text.casefold())


def mode_of(arguments: str) -> Mode:
    """The mode of this name; OptionError if there is none."""
    return cast(Mode, among("arguments", arguments, get_args(Mode)))


def write_down(tool: str, found: Sequence[ForeignArgument], outcome: str) -> None:
    """Log an event to `unpoison.calls`: places and kinds, never a value, which may be a secret."""
    places = [{"path": one.path, "kind": one.kind, "result": one.result} for one in found]
    said = ", ".join(f"{one.path} ({one.kind})" for one in found)
    fields = {"tool": excerpt(tool), "outcome": outcome, "arguments": places}
    _log.info(
        "%s a call of %s whose target only a result named: %s", outcome, excerpt(tool), said, extra={"unpoison": fields}
    )


def question(tool: str, found: Sequence[ForeignArgument]) -> str:
    """The question to the user, with the values."""
    said = "; ".join(f"{one.path}: {one.kind} {excerpt(one.value, 200)}" for one in found)
    return f"May {excerpt(tool)} be called? Only the result of a tool named this, and not you: {said}"


def refusal(tool: str, found: Sequence[ForeignArgument]) -> str:
    """The text that replaces a result for the model."""
    said = ", ".join(f"{one.path} ({one.kind})" for one in found)
    return (
        f"[unpoison] {excerpt(tool)} was not called: only the result of a tool named its target, and not the user: "
        f"{said}. Tell the user; do not try another way."
    )
