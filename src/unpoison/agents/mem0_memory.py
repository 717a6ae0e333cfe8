"""mem0 behind a `MemoryGate`: mem0 finds what fits, the gate keeps the texts and says what may be read.

    memory = GatedMem0(Memory.from_config(config), MemoryGate("memory.db", sources="sources.yaml"))
    memory.add("Ann likes tea.", user_id="ann", source="ann")
    prompt = memory.search("What does Ann drink?", filters={"user_id": "ann"}).text

Texts are given to mem0 as they are (`infer=False`): facts that a model rewrites, or merges with others, would have no
origin. Nothing of mem0 is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from unpoison.agents.memory import Changed, MemoryGate, Written
from unpoison.agents.memory_recall import Recall
from unpoison.agents.memory_tree import Parent
from unpoison.errors import InputError, clip
from unpoison.sources.trust import Level

__all__ = ["GatedMem0"]

MARK = "unpoison"
"""The field of mem0's metadata that holds the id of a memory of the gate."""


class GatedMem0:
    """What an agent uses of mem0.

    Args:
        memory: mem0's `Memory` or `MemoryClient`, or anything with its `add` and `search`.
        gate: Screens, and keeps texts, origins and trust; one of its own for this memory.
    """

    def __init__(self, memory: Any, gate: MemoryGate) -> None:
        self.memory, self.gate = memory, gate

    def add(
        self,
        text: str,
        *,
        source: str | None = None,
        level: Level | None = None,
        derived_from: Iterable[Parent] = (),
        metadata: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Written:
        """Write a memory as `MemoryGate.write` does; what is set aside mem0 does not hear of.

        Args:
            text: As there.
            source: As there.
            level: As there.
            derived_from: As there.
            metadata: More of it for mem0.
            options: Of `add`, such as `user_id`.
        """
        done = self.gate.write(text, source=source, level=level, derived_from=derived_from)
        if not done.quarantined:
            self._index(done, {**(metadata or {}), MARK: done.memory.id}, options)
        return done

    def search(self, query: str, *, limit: int = 8, **options: Any) -> Recall:
        """What mem0 finds, as `MemoryGate.read` gives it; what the gate does not know is not given.

        Args:
            query: What is asked.
            limit: How many are given, in [1, 50].
            options: Of `search`, such as `filters`.

        Raises:
            InputError: mem0's reply has another shape.
        """
        reply = self.memory.search(query, **options)
        rows = reply.get("results") if isinstance(reply, Mapping) else reply
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise InputError(f"mem0 should reply with a list of results, got {clip(reply)}; see which version it is")
        ids = {str((row.get("metadata") or {}).get(MARK)) for row in rows}
        return self.gate.read(limit=limit, where=lambda memory: memory.id in ids)

    def put_back(self, ids: Iterable[str], **options: Any) -> Changed:
        """Let memories be read again, and tell mem0 of them; `options` are those of `add`, such as `user_id`."""
        chosen = list(ids)
        changed = self.gate.put_back(chosen)
        for memory in self.gate.store.load().memories:
            if memory.id in chosen:
                self.memory.add(memory.text, infer=False, metadata={MARK: memory.id}, **options)
        return changed

    def _index(self, done: Written, metadata: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.memory.add(done.memory.text, infer=False, metadata=dict(metadata), **options)
