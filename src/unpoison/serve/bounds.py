"""Limits of a request and of the service, and passages that are longer than the limit.

One planted document that is too long must not break a query. Of a passage longer than the limit, only the beginning is
judged and passed to a model: the rest is redacted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from unpoison.core.passages import Passage, Query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import merge_spans, spans_at
from unpoison.errors import InputError, OptionError, UnknownNameError, clip
from unpoison.screener.admission import LONG
from unpoison.utils.checks import at_least

__all__ = ["Bounds", "beginnings", "screening_of_all"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of the service.

    Attributes:
        body: Bytes of one request.
        values: Numbers, texts and other values of one request; a text counts as 2, a key as 10, a list or an
            object as 16. A JSON parser blocks all threads; within this limit it takes less than 40 ms.
        passages: Passages of one request.
        characters: Characters of the question, and of a passage (title and text): of a longer one the beginning is
            judged, and `Screening.texts` holds no more than that.
        total: Characters of all passages of a request together.
        max_concurrency: Requests processed at the same time.
        wait: Queue timeout of further requests, before a 503.
        threads: Short requests that are computed in parallel, and as many long ones.
        timeout: Seconds for one request, from its first byte to its last.
        in_flight: Model calls at the same time, for one request.
        retries: Retries of a failed model call.
        grace: Shutdown timeout for requests in work, in seconds.

    Raises:
        OptionError: A limit below 1, or a time that is not positive; `retries` and `grace` may be 0.
    """

    body: int = 8 * 1024 * 1024
    values: int = 500_000
    passages: int = 1000
    characters: int = LONG
    total: int = 1_000_000
    max_concurrency: int = 64
    wait: float = 1.0
    threads: int = 1
    timeout: float = 60.0
    in_flight: int = 16
    retries: int = 2
    grace: float = 20.0

    def __post_init__(self) -> None:
        for field in fields(self):
            low = 0.001 if field.name in ("timeout", "wait") else field.name not in ("retries", "grace")
            at_least(field.name, getattr(self, field.name), low, whole=field.type == "int")

    @classmethod
    def of(cls, settings: Iterable[str]) -> Self:
        """Parse settings such as "passages=200".

        Raises:
            OptionError: A setting that is not NAME=NUMBER, or is out of its range.
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

    def check_number(self, number: int, field: str = "passages") -> None:
        """Refuse too many passages in a field of a request.

        Raises:
            InputError: They are too many.
        """
        if number > self.passages:
            raise InputError(f"{number:,} {field} were sent and at most {self.passages:,} are taken; send the best")

    def check(self, query: Query, passages: tuple[Passage, ...]) -> None:
        """Refuse a request that exceeds a limit.

        Raises:
            InputError: Too many passages or characters, too long a question; the message says which.
        """
        self.check_number(len(passages))
        total = sum(len(passage.title or "") + len(passage.text) for passage in passages)
        if total > self.total:
            raise InputError(f"the passages have {total:,} characters together and at most {self.total:,} are taken")
        if len(query.text) > self.characters:
            raise InputError(f"query has {len(query.text):,} characters, at most {self.characters:,} are taken; cut it")


def beginnings(passages: tuple[Passage, ...], characters: int) -> tuple[Passage, ...]:
    """The passages cut to the limit, title and text counted together.

    Embeddings stay, although they are those of the whole passage.
    """
    return tuple(p if len(p.raw) <= characters else replace(p, text=p.raw[:characters], title=None) for p in passages)


def screening_of_all(screening: Screening, passages: tuple[Passage, ...], characters: int) -> Screening:
    """Map a screening of cut passages back to the whole passages: the unread rest is a redacted span."""
    long = [i for i, passage in enumerate(passages) if len(passage.raw) > characters]
    if not long:
        return screening
    verdicts, rest = list(screening.verdicts), f"behind the first {characters:,} characters, which alone are judged"
    for i in long:
        spans = list(spans_at(passages[i], characters, len(passages[i].raw), 0.0, rest))
        for span in verdicts[i].spans:
            moved = spans_at(passages[i], span.start, span.end, span.probability, span.reason)
            spans += [replace(one, flagged=span.flagged) for one in moved]
        verdicts[i] = replace(verdicts[i], spans=merge_spans(spans))
    notes = [f"passages[{i}] was read to its character {characters:,} of {len(passages[i].raw):,}" for i in long]
    evidence = replace(screening.evidence, notes=(*screening.evidence.notes, *notes))
    return replace(screening, passages=passages, verdicts=tuple(verdicts), evidence=evidence)
