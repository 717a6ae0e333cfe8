"""What the SQL stores share: the same few statements, in each database's own words, over one connection."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, ClassVar, NamedTuple

from unpoison.beliefs.store import check_key, check_namespace, check_ttl, fresh_version, times
from unpoison.core.belief import Belief
from unpoison.errors import InputError

__all__ = ["SqlBeliefs", "Statements"]

PAGE = 500
"""Beliefs that a listing reads at once."""

_ABANDONED: list[Any] = []
"""Connections of a parent process, which a child may neither use nor close."""


class Statements(NamedTuple):
    """A store's statements; those that write a belief take named values, the others positional ones."""

    get: str
    page: str
    insert: str
    insert_if_none: str
    replace: str
    expire: str
    forget: str
    forget_all: str


class SqlBeliefs(ABC):
    """Beliefs in one table. A subclass says how to connect, and has the statements."""

    statements: ClassVar[Statements]

    def __init__(self, namespace: str, ttl: float | None) -> None:
        self.namespace = check_namespace(namespace)
        self.ttl = check_ttl(ttl)
        self._connection: Any = None
        self._process = os.getpid()
        self._lock = RLock()

    @abstractmethod
    def _open_connection(self) -> AbstractContextManager[Any]:
        """The one connection of this process; every statement is a transaction of its own."""

    @property
    @abstractmethod
    def _address(self) -> str:
        """The store as error messages name it; never with a password."""

    def get(self, key: str) -> Belief | None:
        with self._open_connection() as connection:
            row = connection.execute(self.statements.get, (self.namespace, check_key(key), time.time())).fetchone()
        return None if row is None else self._belief(row)

    def put(self, key: str, belief: Belief, *, expected: str | None = None, keep_times: bool = False) -> bool:
        now = time.time()
        values: dict[str, Any] = {
            "namespace": self.namespace,
            "key": check_key(key),
            "answer": belief.answer,
            "support": belief.support,
            "conflict": belief.conflict,
            "query": belief.query,
            "version": fresh_version(),
            "now": now,
            "expected": expected,
            "anew": keep_times or expected == "",
            **times(belief, now, self.ttl, keep=keep_times),
        }
        statements = self.statements
        statement = (
            statements.insert if expected is None else statements.replace if expected else statements.insert_if_none
        )
        with self._open_connection() as connection:
            if self.ttl is not None:
                connection.execute(statements.expire, (now,))
            return bool(connection.execute(statement, values).rowcount == 1)

    def items(self) -> Iterator[tuple[str, Belief]]:
        last = ""
        while True:
            with self._open_connection() as connection:
                rows = connection.execute(self.statements.page, (self.namespace, last, time.time(), PAGE)).fetchall()
            for key, *row in rows:
                yield key, self._belief(row)
            if len(rows) < PAGE:
                return
            last = rows[-1][0]

    def forget(self, key: str) -> bool:
        return self._delete(self.statements.forget, check_key(key)) == 1

    def forget_all(self) -> int:
        return self._delete(self.statements.forget_all)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _delete(self, statement: str, *values: str) -> int:
        """Delete, and count those that had not expired."""
        with self._open_connection() as connection:
            connection.execute(self.statements.expire, (time.time(),))
            return int(connection.execute(statement, (self.namespace, *values)).rowcount)

    def _leave_to_the_parent(self) -> None:
        """In a child process, start anew: the parent's connection is the parent's, and its threads do not live here."""
        if self._process == os.getpid():
            return
        self._lock, self._process = RLock(), os.getpid()
        if self._connection is not None:
            _ABANDONED.append(self._connection)
        self._connection = None

    def _belief(self, row: Sequence[Any]) -> Belief:
        answer, support, conflict, query, version, *stamps = row
        try:
            return Belief(answer, support, conflict, query, version, *stamps)
        except InputError as error:
            raise InputError(f"{self._address} holds what is no belief: {error}; restore it") from None
