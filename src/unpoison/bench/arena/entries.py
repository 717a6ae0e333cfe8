"""Who takes part: a defense by its option string, with the models that it is given."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from unpoison.bench.arena.cases import Data
from unpoison.bench.arena.tasks import Track
from unpoison.core.registry import create, find, parse
from unpoison.defenses.base import Defense
from unpoison.errors import InputError, OptionError, clip
from unpoison.sources.sources import Sources

__all__ = ["ENTRIES", "Entry", "entries_of"]

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,60}\Z")

FITTED_ON = (
    "nq_poisoned, hotpotqa_poisoned, nq_large_poisoned, hotpotqa_distractor, ramdocs, timeqa, clean_faq_answers, "
    "clean_science and clean_wiki_en (other questions than those asked here), injections (the same families)"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the leaderboard.

    Attributes:
        name: Unique; lower case, digits, dots and hyphens.
        defense: As the command line writes it, `my_module:MyDefense` included; in `at-rest` one of `RANKERS`.
        encoder: For defenses that compare texts.
        generator: Answers in the track `answers`, for every entry the same reader unless it says otherwise.
        sources: `seen` gives it a history of the sources of other questions.
        tracks: In which it takes part.
        seen: What of the arena's data its makers fitted anything on, in words; "" for nothing.
        about: One line for the table.
    """

    name: str
    defense: str
    encoder: str = "lexical"
    generator: str = "reader"
    sources: Literal["", "seen"] = ""
    tracks: tuple[Track, ...] = ("screening", "answers")
    seen: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        if not NAME.match(self.name):
            raise OptionError(f"an entry's name is made of a-z, 0-9, dots and hyphens, got {clip(self.name)}")

    def screener(self) -> Defense:
        """The defense without a language model."""
        return self._create(encoder=self.encoder)

    def answerer(self, data: Data, file: str) -> Defense:
        """The defense with its generator and, where it reads them, the sources that other questions had."""
        given: dict[str, Any] = {"encoder": self.encoder, "generator": self.generator}
        if self.sources:
            given["sources"] = Sources({}).learn(_retrievals(data, file))
        return self._create(**given)

    def _create(self, **given: Any) -> Defense:
        made: Defense = create("defenses", self.defense, **given)
        return made

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "tracks": list(self.tracks)}

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            InputError: A field is missing or unknown.
        """
        try:
            return cls(**{**row, "tracks": tuple(row["tracks"])})
        except (KeyError, TypeError) as error:
            raise InputError(f"not an entry of the arena: {error}") from None


def _retrievals(data: Data, file: str) -> list[dict[str, Any]]:
    return [
        {
            "query": example.question,
            "passages": [
                {"text": p.passage.text, "source": p.passage.metadata.get("url") or p.passage.source}
                for p in example.passages
                if p.label != "poison"
            ],
        }
        for example in data.examples(file).values()
    ]


ENTRIES: tuple[Entry, ...] = (
    Entry("none", "vanilla", about="no defense"),
    Entry("none-base", "vanilla", generator="reader-base", tracks=("answers",), about="with the larger reader"),
    Entry("guard", "guard", tracks=("screening", "answers", "injection"), seen=FITTED_ON, about="this package's"),
    Entry("guard-sources", "guard", sources="seen", tracks=("answers",), seen=FITTED_ON,
          about="Guard with a history of sources"),
    Entry("guard-sources-base", "guard", generator="reader-base", sources="seen", tracks=("answers",), seen=FITTED_ON,
          about="with the larger reader"),
    Entry("grada", "grada", about="Zheng et al., 2025; words"),
    Entry("grada-minilm", "grada:similarity=encoder", encoder="minilm", tracks=("screening",), about="with MiniLM"),
    Entry("ragdefender", "ragdefender", about="Kim et al., 2025; words"),
    Entry("ragdefender-minilm", "ragdefender", encoder="minilm", tracks=("screening",), about="with MiniLM"),
    Entry("ragdefender-multi-hop", "ragdefender:mode=reference,task=multi_hop", tracks=("screening",),
          about="its published code for questions of several hops"),
    Entry("trustrag", "trustrag", about="Zhou et al., 2025; words"),
    Entry("trustrag-minilm", "trustrag", encoder="minilm", tracks=("screening",), about="with MiniLM"),
    Entry("radar", "radar", tracks=("answers",), about="RADAR"),
    Entry("vote", "vote", tracks=("answers",), about="each passage read alone, most decide"),
    Entry("vote-sources", "vote", sources="seen", tracks=("answers",), about="the same, each source read alone"),
    Entry("robustrag", "robustrag", tracks=("answers",), about="Xiang et al., 2024"),
    Entry("reliabilityrag", "reliabilityrag", tracks=("answers",), about="Shen et al., 2025"),
    Entry("ra-rag", "ra-rag", sources="seen", tracks=("answers",), about="Hwang et al., 2025"),
    Entry("madam", "madam", tracks=("answers",), about="Wang et al., 2025"),
    Entry("repetition", "unpoison.bench.arena.baselines:Repetition", tracks=("screening",),
          about="drops what repeats the question"),
    Entry("phrases", "unpoison.bench.arena.baselines:Phrases", tracks=("screening", "injection"),
          about="a list of forty phrases, as filters of prompts have"),
    Entry("scan", "scan", tracks=("at-rest",), about="unpoison scan"),
    Entry("hubs", "hubs", tracks=("at-rest",), about="documents that stand near most others, by BM25"),
)  # fmt: skip
"""The first table."""


def entries_of(specs: tuple[str, ...]) -> list[Entry]:
    """The entries that these name: of the first table, or any defense by its option string.

    Raises:
        OptionError: Two of one name.
        UnknownNameError: Neither an entry nor a defense has that name.
    """
    known = {entry.name: entry for entry in ENTRIES}
    for spec in specs:
        if spec not in known:
            find("defenses", parse(spec)[0])
    chosen = [known[spec] if spec in known else Entry(_name_of(spec), spec) for spec in specs] or list(ENTRIES)
    names = [entry.name for entry in chosen]
    if len(set(names)) < len(names):
        raise OptionError(f"two entries are called {max(names, key=names.count)}; give each defense once")
    return chosen


def _name_of(spec: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", spec.lower()).strip("-.")[:60]
