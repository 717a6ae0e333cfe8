"""The arena's tasks: fixed for a version, so that results of different days and people can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from unpoison.bench.arena.cases import FILLED, Family

__all__ = ["CLEAN", "CRAFTED", "PUBLISHED", "TRACKS", "VERSION", "Task", "Track", "tasks_of"]

VERSION = "1"

Track = Literal["screening", "answers", "injection", "at-rest"]
TRACKS: tuple[Track, ...] = ("screening", "answers", "injection", "at-rest")

Origin = Literal["clean", "published", "ours"]

CLEAN: dict[str, tuple[str, ...]] = {
    "nq": ("nq_retrieved",),
    "msmarco": ("msmarco_retrieved",),
    "hotpotqa": ("hotpotqa_distractor",),
    "news": ("realtimeqa", "realtimeqa_weekly"),
    "biographies": ("biogen",),
    "ambiguous": ("ramdocs",),
    "changing": ("timeqa",),
    "snippets": ("rgb_counterfactual",),
    "faq": ("clean_faq_answers",),
    "faq with questions": ("clean_faq_pairs",),
    "science": ("clean_science",),
    "software": ("clean_software_docs",),
    "wiki, English": ("clean_wiki_en",),
    "wiki, German": ("clean_wiki_de",),
    "wiki, Spanish": ("clean_wiki_es",),
    "wiki, Chinese": ("clean_wiki_zh",),
}
"""Retrievals without poison: what a defense costs those whom nobody attacks."""

TARGETED = ("nq_poisoned", "hotpotqa_poisoned", "msmarco_poisoned")

PUBLISHED: dict[str, Family] = {
    "poisonedrag": Family(TARGETED, "poisonedrag", front=True),
    "poisonedrag, no question": Family(TARGETED, "poisonedrag"),
    "ragdefender gpt-4": Family(TARGETED, "poisonedrag-gpt4"),
    "ragdefender gemini": Family(TARGETED, "poisonedrag-gemini"),
    "ragdefender gemini, long": Family(TARGETED, "poisonedrag-gemini-long"),
    "revprag": Family(("nq_large_poisoned",), "poisonedrag-revprag"),
    "tan": Family(TARGETED, "tan"),
    "garag": Family(TARGETED, "garag"),
    "paraphrase": Family(("msmarco_poisoned",), "paraphrase"),
    "synonym": Family(("msmarco_poisoned",), "synonym"),
    "news, wrong context": Family(("realtimeqa",), "radar-incorrect-context"),
    "entity substitution": Family(("rgb_counterfactual",), "entity-substitution"),
    "misinformation": Family(("ramdocs",), None),
    "poisonarena": Family(("test_only_poisonarena",), "poisonarena"),
    "adversarial decoding": Family(("test_only_poisonarena",), "adversarial-decoding"),
    "hotflip": Family(("test_only_hotflip",), "hotflip"),
    "phantom": Family(("test_only_phantom",), "phantom"),
    "refusal": Family(("test_only_refusal",), "refusal"),
    "authchain": Family(("test_only_authchain",), "authchain"),
    "gaslite": Family(("test_only_gaslite",), "gaslite"),
    "corpus poisoning": Family(("test_only_corpus_poisoning",), "corpus-poisoning"),
}
"""Poison that others wrote and published; on the files `test_only_...` nothing was ever fitted."""

CRAFTED: dict[str, str] = {
    "correction": "corruptrag:prefix=false",
    "clause": "clause",
    "swap": "swap",
    "copies": "copies",
    "hidden": "poisonedrag:mode=template+hide",
    "title": "poisonedrag:mode=template,prefix=false+title",
    "prompt injection": "prompt-injection",
    "jamming": "jamming",
    "gibberish": "hotflip",
    "adaptive": "defense-aware",
}
"""Attacks whose words are this package's."""

ANSWERS = {
    "no poison": (0, ""),
    "1 text": (1, "one"),
    "3 texts, 1 source": (3, "one"),
    "3 texts, 3 sources": (3, "each"),
    "5 texts, 5 sources": (5, "each"),
    "3 texts, 1 known source": (3, "known:1"),
}
"""Texts planted among ten, and whose they are."""

AT_REST = {"single": (1, 10), "grouped": (5, 4)}
"""Poisons of a question, and questions, in a collection."""


@dataclass(frozen=True, slots=True)
class Task:
    """One row of a track's table.

    Attributes:
        track: Where it counts.
        name: Unique in its track.
        origin: Whose words are planted; `clean` where none are.
        files: The evaluation files that it reads.
    """

    track: Track
    name: str
    origin: Origin
    files: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.track}/{self.name}"


def tasks_of(track: Track) -> list[Task]:
    """The tasks of a track, clean ones first: what is lost there sets the threshold of equal harm."""
    if track == "screening":
        clean = [Task(track, f"clean, {name}", "clean", files) for name, files in CLEAN.items()]
        published = [Task(track, name, "published", _with_corpus(family.files)) for name, family in PUBLISHED.items()]
        ours = [
            *(Task(track, name, "ours", _with_corpus((*TARGETED, "nq_large_poisoned"))) for name in ("truth", "lie")),
            *(Task(track, name, "ours", _with_corpus(TARGETED)) for name in CRAFTED),
        ]
        return [*clean, *published, *ours]
    if track == "answers":
        return [
            Task(track, name, "published" if texts else "clean", ("realtimeqa",))
            for name, (texts, _) in ANSWERS.items()
        ]
    if track == "injection":
        return [Task(track, "injections", "published", ("injections",))]
    return [Task(track, name, "published", _with_corpus(("nq_poisoned", "msmarco_poisoned"))) for name in AT_REST]


def _with_corpus(files: tuple[str, ...]) -> tuple[str, ...]:
    return (*files, "corpus") if FILLED.intersection(files) else files
