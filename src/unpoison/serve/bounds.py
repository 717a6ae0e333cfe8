"""What one request, and all of them together, may cost."""

from __future__ import annotations

from dataclasses import dataclass, fields

from unpoison.defenses.admission import LONG
from unpoison.errors import InputError
from unpoison.types import Passage, Query
from unpoison.utils.checks import at_least

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of the service.

    Attributes:
        body: Bytes of one request.
        passages: Passages of one request.
        characters: Characters of the question, and of a passage (title and text) that are judged at once: a longer one
            is judged in up to four windows, and dropped if it has more.
        dimensions: Numbers of one embedding.
        at_once: Requests that are worked on or wait for a thread.
        wait: Seconds that a further request waits to become one of them, before it is refused with 503.
        threads: Short requests that are computed side by side, and as many long ones.
        timeout: Seconds for one request, from its first byte to its last.

    Raises:
        OptionError: A limit below 1, or a time that is not positive.
    """

    body: int = 8 * 1024 * 1024
    passages: int = 1000
    characters: int = LONG
    dimensions: int = 8192
    at_once: int = 64
    wait: float = 1.0
    threads: int = 1
    timeout: float = 60.0

    def __post_init__(self) -> None:
        for field in fields(self):
            low = 0.001 if field.name in ("timeout", "wait") else 1
            at_least(field.name, getattr(self, field.name), low, whole=low == 1)

    def check(self, query: Query, passages: tuple[Passage, ...]) -> None:
        """Refuse what is larger than a request may be.

        Raises:
            InputError: Too many passages, too long a question or embedding; the message says which.
        """
        if len(passages) > self.passages:
            raise InputError(
                f"{len(passages):,} passages were sent and at most {self.passages:,} are taken; send the best of them"
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
