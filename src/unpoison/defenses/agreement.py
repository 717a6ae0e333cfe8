"""The answers of sources in recorded retrievals, each passage read alone, for `Sources.learn`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from unpoison.defenses.vote import Vote
from unpoison.errors import InputError
from unpoison.io.rows import Row
from unpoison.models.protocols import Generator
from unpoison.runtime.driver import run
from unpoison.sources.sources import Sources

__all__ = ["answers_by_origin"]


def answers_by_origin(
    rows: Iterable[object], sources: Sources, generator: Generator | str
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The question of each row, and for each origin the form of its answer (`text.answer_forms`).

    Args:
        rows: Mappings with a question and passages, or `Row` objects.
        sources: Determines the origin of passages; passages of unknown origin are skipped.
        generator: Reads each passage alone, such as "reader".

    Yields:
        Question and answers; for each origin the most frequent answer of its passages, None if there is none or a tie.

    Raises:
        InputError: A row without question or passages; the message says which.
        ModelError: The generator failed.
    """
    vote = Vote(generator=generator)
    for number, row in enumerate(rows, 1):
        try:
            read = row if isinstance(row, Row) else Row.of(row)
        except InputError as error:
            raise InputError(f"row {number}: {error}") from None
        poll, _ = run(vote.take_poll(read.query, read.passages), vote.models, vote.limits)
        given: dict[str, Counter[str]] = {}
        for passage, form in zip(read.passages, poll.forms, strict=True):
            if origin := sources.origin(passage):
                given.setdefault(origin, Counter()).update([form] if form else [])
        yield read.query.text, {origin: _most(forms) for origin, forms in given.items()}


def _most(forms: Counter[str]) -> str | None:
    ranked = forms.most_common(2)
    return None if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]) else ranked[0][0]
