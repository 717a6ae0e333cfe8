"""The demo's questions under attack, and what each defense makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unpoison.defenses.base import Defense
    from unpoison.io.rows import Row
    from unpoison.types import Passage, Screening

__all__ = ["DEFENSES", "POISONS", "RETRIEVED", "WITHOUT", "DemoCase", "case_of", "plant", "share"]

RETRIEVED = 10
"""Passages per question that the retriever returns."""

WITHOUT = "vanilla"
"""What the model reads when nobody defends it: the first five."""

DEFENSES = {
    WITHOUT: "vanilla:keep=5",
    "grada": "grada",
    "ragdefender": "ragdefender",
    "trustrag": "trustrag",
    "guard": "guard",
}

POISONS = (1, 3)
"""How many poisons the attacker plants per question."""


@dataclass(frozen=True, slots=True)
class DemoCase:
    """One question under one attack, and what each defense made of it."""

    question: str
    passages: tuple[Passage, ...]
    labels: tuple[str, ...]
    screenings: Mapping[str, Screening]

    def poisons_left(self, defense: str) -> int:
        return sum(self.labels[i] == "poison" for i in self.screenings[defense].kept_indices)

    def keeps_answer(self, defense: str) -> bool:
        """Whether a passage that holds the right answer is still there."""
        return any(self.labels[i] == "gold" for i in self.screenings[defense].kept_indices)

    @property
    def saved_by(self) -> list[str]:
        """The defenses that drop every poison and keep a passage with the answer."""
        return [
            name for name in DEFENSES if name != WITHOUT and not self.poisons_left(name) and self.keeps_answer(name)
        ]

    @property
    def missed_by(self) -> list[str]:
        """The defenses that leave a poison."""
        return [name for name in DEFENSES if name != WITHOUT and self.poisons_left(name)]


def case_of(row: Row, count: int, defenses: Mapping[str, Defense], *, question_first: bool = True) -> DemoCase:
    """A question with so many planted poisons, screened by every defense."""
    passages, labels = plant(row, count, question_first=question_first)
    question = row.query.text
    screenings = {name: defense.screen(question, passages) for name, defense in defenses.items()}
    return DemoCase(question, passages, labels, screenings)


def plant(row: Row, count: int, *, question_first: bool = True) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """The retriever's results under attack, and their labels.

    As in PoisonedRAG's black-box attack, a poison is the question, a full stop and a misleading text; or the text
    alone, as it is written, which is what `-a published` plants.
    """
    from unpoison.types import Passage

    labelled = [(passage, str(given["label"])) for passage, given in zip(row.passages, row.raw["passages"])]
    poisons = [
        Passage(f"{row.query.text}. {passage.text}", passage.id, passage.title, passage.source)
        if question_first
        else Passage(passage.text, passage.id)
        for passage, label in labelled
        if label == "poison"
    ]
    genuine = [(passage, label) for passage, label in labelled if label != "poison"]
    every = [*((passage, "poison") for passage in poisons[:count]), *genuine]
    passages, labels = zip(*every[:RETRIEVED], strict=True)
    return passages, labels


def share(hits: Iterable[bool]) -> str:
    """Such as "12 %"."""
    given = list(hits)
    return f"{100 * sum(given) / len(given):.0f} %" if given else "-"
