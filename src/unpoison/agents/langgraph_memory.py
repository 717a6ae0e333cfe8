"""LangGraph: a store behind a `MemoryGate`, any store of its as the place where a gate keeps memories, and checkpoints.

    graph = builder.compile(store=GatedStore(gate), checkpointer=InMemorySaver(serde=ScreeningSerializer()))

Needs langgraph-checkpoint only, which langgraph brings.
"""
# ruff: noqa: E402  first of all the sentence that says what to install

from __future__ import annotations

from unpoison.utils.extras import require

require("langgraph.store.base", "the LangGraph memory")

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from unpoison.agents.memory import MemoryGate
from unpoison.agents.memory_recall import MAX_COMPARED, Recalled
from unpoison.agents.memory_store import Memory
from unpoison.agents.memory_tree import readable
from unpoison.agents.policy import ToolPolicy
from unpoison.agents.screening import screen_tool_result
from unpoison.errors import InputError, clip
from unpoison.sources.trust import Level, trust

__all__ = ["STANDING", "GatedStore", "ScreeningSerializer", "StoreValues"]

STANDING = "unpoison"
"""The first key of a value that is read: level, origins and id. Written back with the value, it says what that was made
from."""

Namespace = tuple[str, ...]

PAGE = 500
"""Items of a store that are read at once."""

MAX_DEPTH = 64
"""Levels of lists and mappings of a state in which results of tools are looked for."""


class GatedStore(BaseStore):
    """A LangGraph store of which every value is a memory of a gate.

    What is read has the key `unpoison` in front. Whoever may write a trusted memory needs a store of their own over the
    same gate: with this one no more trusted value is changed or deleted.

    Args:
        gate: Screens, and keeps the memories.
        source: Where everything that is written comes from; None for nobody knows where.
        level: How far that is believed, as for `MemoryGate.write`.
    """

    def __init__(self, gate: MemoryGate, *, source: str | None = None, level: Level | None = None) -> None:
        self.gate, self.source, self.level = gate, source, level

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return [self._do(op) for op in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _do(self, op: Op) -> Result:
        validate_op_namespace(op)
        if isinstance(op, GetOp):
            return self._get(op)
        if isinstance(op, PutOp):
            self._put(op)
            return None
        return self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)

    def _get(self, op: GetOp) -> Item | None:
        key = _key(op.namespace, op.key)
        found = self.gate.read(limit=1, where=lambda memory: memory.key == key).memories
        return None if not found else Item(**_fields(found[0]))

    def _put(self, op: PutOp) -> None:
        key = _key(op.namespace, op.key)
        if op.value is None:
            mine = trust(self.level or "unknown")
            held = [memory.id for memory in self.gate.versions(key) if memory.trust <= mine]
            self.gate.quarantine(held)
            return
        value = {name: held for name, held in op.value.items() if name != STANDING}
        standing = op.value.get(STANDING)
        made_from = [standing["id"]] if isinstance(standing, Mapping) and isinstance(standing.get("id"), str) else []
        try:
            text = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):
            raise InputError(f"a value must be as JSON has it, got {clip(op.value)}") from None
        self.gate.write(text, key=key, source=self.source, level=self.level, derived_from=made_from)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = tuple(op.namespace_prefix)
        recall = self.gate.read(
            op.query or None, limit=MAX_COMPARED, where=lambda memory: _place(memory)[0][: len(prefix)] == prefix
        )
        items = [SearchItem(**_fields(one)) for one in recall.memories]
        fitting = [item for item in items if op.filter is None or _fits(item.value, op.filter)]
        return fitting[op.offset : op.offset + op.limit]

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        stored = self.gate.store.load().memories
        alive = readable(stored)
        found = {_place(memory)[0] for memory in stored if memory.id in alive}
        found = {one for one in found if one and all(_matches(rule, one) for rule in op.match_conditions or ())}
        return sorted({one[: op.max_depth] for one in found})[op.offset : op.offset + op.limit]


class StoreValues:
    """Any LangGraph store as `KeyValues`, so that a gate keeps its memories there.

    gate = MemoryGate(KeyValueMemories(StoreValues(PostgresStore(...))))

    Args:
        store: The store; nobody else should write under the namespace.
        namespace: Under which memories are kept.
    """

    def __init__(self, store: BaseStore, namespace: Namespace = ("unpoison",)) -> None:
        self._store, self._namespace = store, namespace

    def get(self, key: str) -> str | None:
        item = self._store.get(self._namespace, key)
        return None if item is None else item.value.get("text")

    def put(self, key: str, value: str) -> None:
        self._store.put(self._namespace, key, {"text": value}, index=False)

    def delete(self, key: str) -> None:
        self._store.delete(self._namespace, key)

    def keys(self, prefix: str) -> list[str]:
        found, offset = list[str](), 0
        while page := self._store.search(self._namespace, limit=PAGE, offset=offset):
            found += [item.key for item in page if item.key.startswith(prefix)]
            offset += len(page)
        return found


class ScreeningSerializer(JsonPlusSerializer):
    """For a checkpointer: messages of tools are screened when a state is saved, and again when it is restored.

    Looked into are lists, tuples and mappings; what user and model said stays as it is.

    Args:
        policy: As for `screen_tool_result`.
        options: Of LangGraph's own serializer.
    """

    def __init__(self, policy: ToolPolicy | Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._policy = ToolPolicy.of(policy)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return super().dumps_typed(self._screen(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self._screen(super().loads_typed(data))

    def _screen(self, value: Any, depth: int = 0) -> Any:
        """The same object where nothing is found in it."""
        if depth > MAX_DEPTH:
            raise InputError(f"a state has more than {MAX_DEPTH} levels, so that nobody can look into it")
        if isinstance(value, dict):
            new = {name: self._screen(held, depth + 1) for name, held in value.items()}
            return new if any(new[name] is not value[name] for name in new) else value
        if type(value) in (list, tuple):
            parts = [self._screen(held, depth + 1) for held in value]
            return type(value)(parts) if any(a is not b for a, b in zip(parts, value)) else value
        if getattr(value, "type", None) == "tool" and hasattr(value, "model_copy"):
            screened = screen_tool_result(getattr(value, "name", None) or "tool", value.content, policy=self._policy)
            if screened.changed:
                whole = screened.line if screened.blocked else screened.value
                return value.model_copy(update={"content": whole})
        return value


def _key(namespace: Namespace, key: str) -> str:
    return json.dumps([*namespace, key], ensure_ascii=False)


def _place(memory: Memory) -> tuple[Namespace, str]:
    """Namespace and key of a memory; no namespace where another writer of the gate has named it otherwise."""
    try:
        read = json.loads(memory.key)
    except (ValueError, RecursionError):
        return (), memory.key
    if not isinstance(read, list) or not read or not all(isinstance(part, str) for part in read):
        return (), memory.key
    return tuple(read[:-1]), read[-1]


def _fields(one: Recalled) -> dict[str, Any]:
    """Of an item: the value with its standing in front."""
    namespace, key = _place(one.memory)
    try:
        read = json.loads(one.text)
    except (ValueError, RecursionError):
        read = one.text
    value = read if isinstance(read, dict) else {"text": one.text}
    standing = {name: held for name, held in one.to_dict().items() if name != "memory"}
    written = datetime.fromtimestamp(one.memory.written, UTC)
    place = {"namespace": namespace, "key": key, "created_at": written, "updated_at": written}
    return {**place, "value": {STANDING: standing, **value}}


def _matches(rule: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(rule.path)
    part = namespace[: len(path)] if rule.match_type == "prefix" else namespace[max(len(namespace) - len(path), 0) :]
    return len(part) == len(path) and all(wanted in ("*", name) for wanted, name in zip(path, part, strict=True))


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is as a filter says, by LangGraph's operators.

    Raises:
        ValueError: An operator that does not exist.
    """
    if not isinstance(wanted, Mapping):
        return bool(value == wanted)
    if any(name.startswith("$") for name in wanted):
        unknown = [name for name in wanted if name not in _COMPARE]
        if unknown:
            raise ValueError(f"a filter has {', '.join(_COMPARE)}, got {clip(unknown[0])}")
        try:
            return all(_COMPARE[name](value, bound) for name, bound in wanted.items())
        except TypeError:  # a text beside a number
            return False
    return isinstance(value, Mapping) and all(_fits(value.get(name), held) for name, held in wanted.items())
