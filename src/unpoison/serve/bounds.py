"""What one request, and all of them together, may cost; and passages that are longer, in windows.

One planted document that is too long to be judged at once must not break a query. A passage longer than a window is
judged window by window, each beside the other passages, so that the number of passages that a defense compares stays
what the retriever gave. It is kept if every window of it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from unpoison.core.reasons import Reason
from unpoison.core.verdicts import spans_at
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.screener.admission import LONG
from unpoison.types import Evidence, Passage, Query, Screening, Span, Verdict
from unpoison.utils.checks import at_least

__all__ = ["MAX_WINDOWS", "Bounds", "cut", "merge_screenings", "rounds"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of the service.

    Attributes:
        body: Bytes of one request.
        passages: Passages of one request.
        characters: Characters of the question, and of a passage (title and text) that are judged at once: a longer one
            is judged in up to four windows, and dropped if it has more.
        total: Characters of all passages of a request together.
        dimensions: Numbers of one embedding.
        at_once: Requests that are worked on or wait for a thread.
        wait: Seconds that a further request waits to become one of them, before it is refused with 503.
        threads: Short requests that are computed side by side, and as many long ones.
        timeout: Seconds for one request, from its first byte to its last.
        in_flight: Model calls at the same time, for one request.
        retries: How often a failed model call is tried again.
        drain: Seconds to serve on after SIGTERM, while `/readyz` says no.
        grace: Seconds for the requests in work to end then.

    Raises:
        OptionError: A limit below 1, or a time that is not positive; `retries`, `drain` and `grace` may be 0.
    """

    body: int = 8 * 1024 * 1024
    passages: int = 1000
    characters: int = LONG
    total: int = 1_000_000
    dimensions: int = 8192
    at_once: int = 64
    wait: float = 1.0
    threads: int = 1
    timeout: float = 60.0
    in_flight: int = 16
    retries: int = 2
    drain: float = 5.0
    grace: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            low = 0.001 if field.name in ("timeout", "wait") else field.name not in ("retries", "drain", "grace")
            at_least(field.name, getattr(self, field.name), low, whole=field.type == "int")

    @classmethod
    def of(cls, settings: Iterable[str]) -> Self:
        """The limits of settings such as "passages=200".

        Raises:
            OptionError: A setting that is no NAME=NUMBER, or out of its range.
            UnknownNameError: A limit that does not exist.
        """
        kinds = {field.name: int if field.type == "int" else float for field in fields(cls)}
        values: dict[str, Any] = {}
        for setting in settings:
            name, _, value = setting.partition("=")
            if name not in kinds:
                raise UnknownNameError("limit", name, kinds)
            try:
                values[name] = kinds[name](value)
            except ValueError:
                raise OptionError(f"the limit {name} must be a number, as in {name}=10, got {clip(value)}") from None
        return cls(**values)

    def check(self, query: Query, passages: tuple[Passage, ...]) -> None:
        """Refuse what is larger than a request may be.

        Raises:
            InputError: Too many passages or characters, too long a question or embedding; the message says which.
        """
        if len(passages) > self.passages:
            raise InputError(
                f"{len(passages):,} passages were sent and at most {self.passages:,} are taken; send the best of them"
            )
        total = sum(len(passage.title or "") + len(passage.text) for passage in passages)
        if total > self.total:
            raise InputError(
                f"the passages have {total:,} characters together and at most {self.total:,} are taken; send fewer"
            )
        if len(query.text) > self.characters:
            raise InputError(
                f"query has {len(query.text):,} characters and at most {self.characters:,} are taken; send a part of it"
            )
        owned = [("query", query.embedding)]
        owned += [(f"passages[{i}]", passage.embedding) for i, passage in enumerate(passages)]
        for owner, embedding in owned:
            if embedding is not None and embedding.size > self.dimensions:
                raise InputError(
                    f"the embedding of {owner} has {embedding.size:,} numbers and at most {self.dimensions:,} are taken"
                )


MAX_WINDOWS = 4
"""Windows of one passage that are judged; what has more is dropped, for each costs another screening."""

MAX_TITLE = 300
"""Characters."""

OVERLAP = 0.1
"""Share of a window that the next repeats, so that what stands across an edge is read whole."""


def starts(text: str, characters: int) -> range:
    """Where the windows of a text begin; one for a text that fits."""
    repeated = int(OVERLAP * characters)
    return range(0, max(1, len(text) - repeated), max(1, characters - repeated))


def _flat(passage: Passage) -> Passage:
    """A title stands before every window of its text; one that is no title any more is the beginning of the text."""
    return passage if len(passage.title or "") <= MAX_TITLE else replace(passage, text=passage.raw, title=None)


def rounds(passages: tuple[Passage, ...], characters: int) -> list[tuple[Passage, ...]]:
    """What to screen, once for each window of the longest passage; shorter passages are in every round.

    Args:
        passages: All of a request.
        characters: Of one window.

    Returns:
        One to `MAX_WINDOWS` rounds of as many passages. Embeddings stay: they are the whole passage's.
    """
    passages = tuple(map(_flat, passages))
    starts_of_each = [starts(p.text, characters) for p in passages]
    # What is dropped for its length is shown to the defense by its beginning: reasons name passages by position.
    windows = [
        [p.text[i : i + characters] for i in (places if len(places) <= MAX_WINDOWS else places[:1])]
        for p, places in zip(passages, starts_of_each)
    ]
    count = max(map(len, windows), default=1)
    return [
        tuple(
            p if len(p.text) <= characters else replace(p, text=w[min(r, len(w) - 1)])
            for p, w in zip(passages, windows)
        )
        for r in range(count)
    ]


def merge_screenings(
    query: Query, passages: tuple[Passage, ...], screenings: Sequence[Screening], characters: int
) -> Screening:
    """One screening of the passages from those of the rounds: each passage as its worst window is.

    Evidence is the first round's, with the worst probabilities where the defense gives any. What is contested in any
    round is. Spans are those of all its windows, in the caller's texts.
    """
    first = screenings[0]
    sizes = [len(starts(_flat(p).text, characters)) for p in passages]
    if len(screenings) == 1 and first.passages == passages:
        return first
    worst = [min((s.verdicts[i] for s in screenings), key=lambda v: (v.kept, v.score)) for i in range(len(passages))]
    reasons = [
        Reason.of("windows.too_long", size=size, most=MAX_WINDOWS) if size > MAX_WINDOWS
        else verdict.reason if size == 1
        else Reason.of("windows.worst", size=size, clauses=[verdict.reason.clause])
        for size, verdict in zip(sizes, worst)
    ]  # fmt: skip
    arrays = dict(first.evidence.arrays)
    if "probability" in arrays:
        arrays["probability"] = np.max([s.evidence["probability"] for s in screenings], axis=0)
        arrays["probability"] = np.where(np.array(sizes) > MAX_WINDOWS, 1.0, arrays["probability"])
    long = [f"passages[{i}] was judged in windows" for i, size in enumerate(sizes) if 1 < size <= MAX_WINDOWS]
    return Screening.decided(
        first.defense,
        query,
        passages,
        kept=[i for i in first.kept_indices if worst[i].kept and sizes[i] <= MAX_WINDOWS],
        scores=[verdict.score for verdict in worst],
        reasons=reasons,
        evidence=Evidence(arrays, (*first.evidence.notes, *long), first.evidence.graph),
        claims=next((screening.claims for screening in screenings if screening.claims), ()),
        contested=tuple(dict.fromkeys(contest for screening in screenings for contest in screening.contested)),
        spans={i: _spans(p, [s.verdicts[i] for s in screenings], characters) for i, p in enumerate(passages)},
    )


def _spans(passage: Passage, verdicts: Sequence[Verdict], characters: int) -> list[Span]:
    """The spans of a passage's windows as the caller counts."""
    flat = _flat(passage)
    window_starts = starts(flat.text, characters)[:MAX_WINDOWS]
    again = [window_starts[-1]] * (
        len(verdicts) - len(window_starts)
    )  # in later rounds its last window is judged again
    return [
        span
        for verdict, window_start in zip(verdicts, [*window_starts, *again])
        for one in verdict.spans
        for span in _shift_span(
            passage, one, window_start if flat is passage else window_start - (len(passage.raw) - len(passage.text))
        )
    ]


def _shift_span(passage: Passage, span: Span, window_start: int) -> Iterator[Span]:
    """A span of a window that begins at a place of the text: before it where a title is the text's beginning."""
    if span.field == "title":
        yield span
    else:
        begin = len(passage.raw) - len(passage.text) + window_start
        for moved in spans_at(passage, span.start + begin, span.end + begin, span.probability, span.reason):
            yield replace(moved, flagged=span.flagged)


def cut(passages: tuple[Passage, ...], characters: int) -> tuple[Passage, ...]:
    """The passages, long ones to the end of their first window: what a model may read is what is judged."""
    return rounds(passages, characters)[0]
