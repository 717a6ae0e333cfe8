"""What to do next, from what a log says by itself: who is contested, which threshold loses less, what to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from shlex import quote

from unpoison.report.rendering import excerpt
from unpoison.scan.audit_report import AuditedDocument, Origin
from unpoison.scan.audit_rows import MAX_KEY
from unpoison.scan.audit_store import MIN_DISTINCT, AuditStore
from unpoison.sources.origins import origin_of

__all__ = ["next_steps"]

NAMED = 3
"""Origins and documents that a sentence names."""

LOOKED_AT = 1000
"""Sources that are looked at, the most contested first."""

NAMELESS = "#"
"""How the id of a document without one begins; what follows is a hash, which no store knows."""

BINS = 1000
"""Parts of [0, 1] by which probabilities are counted."""


def next_steps(
    store: AuditStore, documents: Sequence[AuditedDocument], origins: Sequence[Origin], flagged: int, attacked: int
) -> Iterator[str]:
    """Sentences, the most urgent first.

    Args:
        store: All counts of the log.
        documents: Those of the report, the most remarkable first.
        origins: The same.
        flagged: Flagged documents in all.
        attacked: Questions under attack.
    """
    yield from _flagged(documents, flagged, attacked)
    yield from _flagged_sources(origins)
    yield from _contested_origins(store)
    yield from _disputed_documents(store)
    yield from _gentler_threshold(store)
    yield from _watched(store)


def _flagged(documents: Sequence[AuditedDocument], flagged: int, attacked: int) -> Iterator[str]:
    if not flagged:
        return
    asked = f", questions under attack: {attacked:,}" if attacked else ""
    named = [one.id for one in documents if one.flagged and not one.id.startswith(NAMELESS)][:NAMED]
    ids = " ".join(f"--id {quote(excerpt(one, MAX_KEY))}" for one in named) or "--id ID"
    yield (
        f"look at what is marked below, documents: {flagged:,}{asked}; for those that are planted: "
        f"unpoison quarantine STORE QUARANTINE {ids}"
    )


def _flagged_sources(origins: Sequence[Origin]) -> Iterator[str]:
    sources = Counter[str]()
    for one in origins:
        if one.flagged and one.kind == "source":
            sources[origin_of(one.name) or one.name] += one.dropped
    if sources:
        yield f"dropped far more often than others: {_counted(sources)}; block or mistrust them in a policy of sources"


def _contested_origins(store: AuditStore) -> Iterator[str]:
    contested, seen = Counter[str](), Counter[str]()
    for source, count, all_of_it in store.ask(
        "SELECT source, sum(contested), sum(seen) FROM documents WHERE source != '' GROUP BY source "
        "HAVING sum(contested) > 0 ORDER BY sum(contested) DESC, source LIMIT ?",
        (LOOKED_AT,),
    ):
        origin = origin_of(source) or source
        contested[origin] += count
        seen[origin] += all_of_it
    if sum(contested.values()) >= MIN_DISTINCT:
        named = ", ".join(
            f"{excerpt(origin, 60)} ({count:,} of {seen[origin]:,} passages)" for origin, count in _first(contested)
        )
        yield f"contradicted or contested most: {named}; say in a policy of sources whom to believe"


def _disputed_documents(store: AuditStore) -> Iterator[str]:
    disputed = Counter[str](
        dict(
            store.ask(
                "SELECT id, sum(disputed) FROM documents GROUP BY id HAVING sum(disputed) >= ? "
                "ORDER BY sum(disputed) DESC, id LIMIT ?",
                (MIN_DISTINCT, NAMED),
            )
        )
    )
    if disputed:
        yield f"read in most disputed answers: {_counted(disputed)}; correct them, or let a policy prefer a side"


def _gentler_threshold(store: AuditStore) -> Iterator[str]:
    """The highest threshold that gives up nothing but drops that say what the kept passages say."""
    counts = list(store.ask("SELECT defense, bin, agreeing, others FROM margins ORDER BY defense, bin"))
    for defense in dict.fromkeys(row[0] for row in counts):
        bins = [row[1:] for row in counts if row[0] == defense]
        first = next((at for at, _, others in bins if others), BINS)
        bar = (first - 1) / BINS
        fewer = sum(agreeing for at, agreeing, _ in bins if at < first - 1)
        if fewer:
            rest = sum(agreeing + others for _, agreeing, others in bins) - fewer
            yield (
                f"{defense}:threshold={bar:g} would have lost {fewer:,} passages fewer, all of which say what the kept "
                f"ones say, and would still have dropped the other {rest:,}"
            )


def _watched(store: AuditStore) -> Iterator[str]:
    ((watched, hit),) = store.ask("SELECT ifnull(sum(watched), 0), ifnull(sum(watched_hit), 0) FROM defenses")
    if watched:
        what = (
            "where that is right, leave out mode='monitor'" if hit else "to enforce would have changed nothing so far"
        )
        yield f"answers that were only watched: {watched:,}, of which {hit:,} would have lost a passage; {what}"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{excerpt(name, 60)} ({count:,})" for name, count in _first(counts))


def _first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:NAMED]
