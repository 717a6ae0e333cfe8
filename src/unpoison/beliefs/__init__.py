"""What RADAR remembers: in memory, SQLite, Redis, PostgreSQL.

The names below are imported when they are first used; a store imports its library when it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.beliefs.key import belief_key
    from unpoison.beliefs.memory import MemoryBeliefs
    from unpoison.beliefs.opening import open_beliefs
    from unpoison.beliefs.postgres import PostgresBeliefs
    from unpoison.beliefs.redis import RedisBeliefs
    from unpoison.beliefs.sqlite import SqliteBeliefs
    from unpoison.beliefs.store import BeliefStore, export_lines, import_lines, update
    from unpoison.core.belief import Belief, BeliefUpdate, Weights

_HOMES = {
    "Belief": "unpoison.core.belief",
    "BeliefStore": "store",
    "BeliefUpdate": "unpoison.core.belief",
    "MemoryBeliefs": "memory",
    "PostgresBeliefs": "postgres",
    "RedisBeliefs": "redis",
    "SqliteBeliefs": "sqlite",
    "Weights": "unpoison.core.belief",
    "belief_key": "key",
    "export_lines": "store",
    "import_lines": "store",
    "open_beliefs": "opening",
    "update": "store",
}

__all__ = [
    "Belief", "BeliefStore", "BeliefUpdate", "MemoryBeliefs", "PostgresBeliefs", "RedisBeliefs", "SqliteBeliefs",
    "Weights", "belief_key", "export_lines", "import_lines", "open_beliefs", "update",
]  # fmt: skip


__getattr__ = lazy_names(__name__, _HOMES)
