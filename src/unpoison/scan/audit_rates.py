"""What each defense drops on an ordinary day of a log: the measure for everything that is remarkable."""

from __future__ import annotations

from collections.abc import Mapping

from unpoison.scan.audit_store import AuditStore

__all__ = ["MIN_DISTINCT", "put_rates"]

MIN_DISTINCT = 2
"""From so many different questions, or documents, something is flagged; one drop may always be a false alarm."""

ORDINARY = 0.05
"""What is dropped so often by chance in less than one of so many cases says nothing of an ordinary day."""

ROUNDS = 3
"""So often what is remarkable is looked for again, beside what is ordinary without it."""


def put_rates(store: AuditStore, totals: Mapping[str, tuple[int, int]]) -> None:
    """What each defense drops on an ordinary day, without what it drops remarkably often.

    Otherwise an attack on many questions would raise what passes for ordinary. Left out are documents, and then in
    `ROUNDS` rounds questions, of which so many drops would happen by chance in less than `ORDINARY`; then it is the
    posterior mean with Jeffreys' prior.
    """
    store.ask("DROP TABLE IF EXISTS temp.rates")
    store.ask("CREATE TEMP TABLE rates (defense TEXT PRIMARY KEY, rate REAL)")
    for name, (seen, dropped) in totals.items():
        store.ask("INSERT INTO rates VALUES (?, ?)", (name, (dropped + 0.5) / (seen + 1)))
    _lower(
        store,
        "SELECT defense, sum(seen), sum(dropped) FROM documents JOIN rates USING (defense) WHERE NOT (dropped >= ? AND "
        "dropped * 2 > seen AND chance(dropped, seen, seen * rate) < ?) GROUP BY defense",
    )
    for _ in range(ROUNDS):
        _lower(
            store,
            "SELECT defense, sum(seen), sum(dropped) FROM questions JOIN rates USING (defense) WHERE NOT (dropped >= ? "
            "* rows AND chance(dropped / rows, seen / rows, seen * rate / rows) < ?) GROUP BY defense",
        )


def _lower(store: AuditStore, ordinary: str) -> None:
    """Set the rates to those of what is ordinary, where these are lower."""
    for name, seen, dropped in list(store.ask(ordinary, (MIN_DISTINCT, ORDINARY))):
        store.ask("UPDATE rates SET rate = min(rate, ?) WHERE defense = ?", ((dropped + 0.5) / (seen + 1), name))
