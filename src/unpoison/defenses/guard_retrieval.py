"""The user's retrievals as evidence, for fitting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from unpoison.defenses.guard import Guard
from unpoison.defenses.guard_fit import Retrieval
from unpoison.driver import run
from unpoison.errors import InputError
from unpoison.kernels.evidence import signs
from unpoison.types import Query

__all__ = ["one_kind", "retrieved"]


def retrieved(guard: Guard, query: str | Query, passages: Iterable[Any]) -> tuple[Retrieval, str]:
    """What a Guard would see of a retrieval, and the kind of its vectors: `lexical`, or `minilm` for all others.

    Raises:
        InputError: An unusable query or passage, or no passage.
        ModelError: The encoder failed.
    """
    entry, _ = run(guard.admitted(query, passages), guard.models, guard.limits)
    if not entry.passages:
        raise InputError("a row without passages that may be read teaches nothing; leave it out")
    vectors, _ = run(guard.vectors(entry.query, entry.passages), guard.models, guard.limits)
    texts = tuple(passage.reading for passage in entry.passages)
    evidence = signs(entry.query.reading, texts, vectors.passages, vectors.query)
    return Retrieval(entry.query.reading, texts, evidence), vectors.kind


def one_kind(kinds: Sequence[str]) -> str:
    """The kind of vectors that all retrievals have.

    Raises:
        InputError: There are none, or two kinds.
    """
    if len(set(kinds)) != 1:
        raise InputError(
            f"{kinds.count('lexical'):,} rows have vectors of the built-in encoder and "
            f"{kinds.count('minilm'):,} others; give rows of one kind, all of them with embeddings or all without"
        )
    return kinds[0]
