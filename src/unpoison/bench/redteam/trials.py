"""What happened to one question: before the attack, under it, and after it was taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, Self

from unpoison.bench.evaluation.matchers import matcher
from unpoison.bench.redteam.targets import Answered
from unpoison.core.verdicts import is_disagreement
from unpoison.errors import InputError
from unpoison.text.canonical import canonical

__all__ = ["NO_ATTACK", "Trial", "fingerprints", "read_count"]

NO_ATTACK = "none"

MIN_PIECE_LENGTH = 40
"""With so many characters or more, a passage that stands within a planted text is taken for a piece of it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One question under one attack; `attack` is "none" where it was asked before anything was planted.

    Attributes:
        example: The question's id.
        question: As it was asked.
        attack: The attack's option string.
        poisons: Documents that were to be planted.
        correct: The right answers.
        wanted: The answers that the attacker wants.
        planted: Documents that were planted.
        read: How many of them were among the passages that the system read; None where it does not tell.
        answer: What it said; with poison planted, where there is any.
        after: What it said when all poison of the cell was removed.
        served_seconds: From planting to asking the first question that was answered from poison; None where none was.
        gone_seconds: From the request to remove to asking the first question that was not.
        told: Whether the system tells which passages it read.
        passages: Hashes of the passages that it read without an attack.
        seconds: How long the answer took.
        stage: Where it failed: attack, ask, plant, remove, gone, after; "" otherwise.
        error: What went wrong, None otherwise.
    """

    example: str
    question: str
    attack: str = NO_ATTACK
    poisons: int = 0
    correct: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    planted: int = 0
    read: int | None = None
    answer: str | None = None
    after: str | None = None
    served_seconds: float | None = None
    gone_seconds: float | None = None
    told: bool = False
    passages: tuple[str, ...] = ()
    seconds: float | None = None
    stage: str = ""
    error: str | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What names it within a run."""
        return self.example, self.attack, self.poisons

    @property
    def clean(self) -> bool:
        return self.attack == NO_ATTACK

    @property
    def failed(self) -> bool:
        return self.error is not None

    def is_correct(self, answer: str | None) -> bool | None:
        """Whether an answer is right; None where there is no answer, or nothing to compare it with."""
        if answer is None or not self.correct:
            return None
        return not is_disagreement(answer) and matcher().correct(answer, self.correct)

    def is_attacked(self, answer: str | None) -> bool | None:
        """Whether an answer says what the attacker wants; None where there is no answer, or nothing is wanted."""
        if answer is None or not self.wanted:
            return None
        return not is_disagreement(answer) and matcher().is_attack_success(answer, self.wanted, self.correct)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, fields that say nothing left out; `from_dict` reads them back."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            arguments: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
            trial = cls(**arguments)
            hash(trial.key)
        except TypeError as error:
            raise InputError(f"not a saved trial: {error}; give the journal of unpoison redteam") from None
        return trial


def fingerprints(passages: Sequence[str] | None) -> tuple[str, ...]:
    """Hashes of passages, by which they are known again."""
    return tuple(map(_fingerprint, map(_plain, passages or ())))


def read_count(
    reply: Answered, texts: Sequence[str], handles: Sequence[Sequence[str]], honest: frozenset[str] = frozenset()
) -> int | None:
    """How many of the planted texts the system read.

    A text was read where one of its ids is among those that the system tells, or where a passage holds it, or where it
    holds a passage of 40 characters or more: systems cut texts into pieces. White space and case do not count.

    Args:
        reply: What the system said.
        texts: The planted texts.
        handles: The ids of each.
        honest: Hashes of passages that it had read before; a poison that quotes one is not read with it.

    Returns:
        None where the system tells neither passages nor ids.
    """
    if reply.passages is None and reply.ids is None:
        return None
    ids = frozenset(reply.ids or ())
    passages = [text for text in map(_plain, reply.passages or ()) if text and _fingerprint(text) not in honest]
    return sum(
        not ids.isdisjoint(own) or any(_same(_plain(text), passage) for passage in passages)
        for text, own in zip(texts, handles, strict=True)
    )


def _same(planted: str, passage: str) -> bool:
    return planted in passage or (len(passage) >= MIN_PIECE_LENGTH and passage in planted)


def _plain(text: str) -> str:
    return " ".join(canonical(text).text.casefold().split())


def _fingerprint(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
