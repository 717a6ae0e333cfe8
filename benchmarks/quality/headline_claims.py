"""What the front page, the docs and the changelog claim: on which samples, by which defense, and what is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.quality.quality_cells import BENIGN, CANDIDATES
from benchmarks.training.guard_data import Sample, measured_samples
from unpoison.algorithms.intervals import Estimate, bootstrap_ratio, wilson
from unpoison.cli.demo import plant as demo_planted
from unpoison.io.rows import load_sample
from unpoison_lab.evaluation.contexts import clean_contexts
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.runs import CellTally

__all__ = ["CLAIMS", "Claim", "Groups", "of_data", "of_sample"]

Groups = Mapping[str, Sequence[Sample]]
"""Samples by the name of their group."""

FRONT, PLAIN = "question in front", "without the question"


def of_sample() -> dict[str, list[Sample]]:
    """The built-in sample: with the question in front as `unpoison demo` plants it, and its poison as it is written."""
    groups = dict[str, list[Sample]]()
    for name, count, front in (
        *((f"sample, {FRONT}, {count}", count, True) for count in (1, 3)),
        *((f"sample, {PLAIN}, {count}", count, False) for count in (1, 3)),
        ("sample, clean", 0, False),
    ):
        groups[name] = [
            _labelled("sample", row.query.text, *demo_planted(row, count, question_first=front))
            for row in load_sample()
        ]
    return groups


def of_data(folder: Path) -> dict[str, list[Sample]]:
    """The folder's questions that Guard was not fitted on, and its files of clean retrievals.

    The 147 of the two attacks are the same questions with the same texts.
    """
    groups = dict[str, list[Sample]]()
    for one in measured_samples(folder):
        if one.attack == "none":
            groups.setdefault(f"clean, {one.domain}", []).append(one)
        elif sum(one.poison) == 1 and one.domain in ("nq", "hotpotqa", "msmarco", "realtimeqa"):
            attack, _, front = one.attack.partition(", ")
            if attack in ("poisonedrag", "radar-incorrect-context"):
                groups.setdefault(FRONT if front else PLAIN, []).append(one)
    for path in sorted(folder.glob("clean_*.jsonl")):
        contexts = clean_contexts(load(path).examples, CANDIDATES, order="rank")
        groups[f"clean, {path.stem}"] = [
            _labelled(path.stem, context.query, context.passages, ["clean"] * len(context)) for context in contexts
        ]
    return groups


def _labelled(domain: str, question: str, passages: Sequence, labels: Sequence[str]) -> Sample:
    return Sample(
        domain,
        "none",
        question,
        tuple(passage.text for passage in passages),
        tuple(label == "poison" for label in labels),
        tuple(label == "gold" for label in labels),
        given=tuple(passages),
    )


def read_share(tallies: Sequence[CellTally]) -> Estimate:
    """Of the contexts, those in which any poison is left."""
    return wilson(sum(t.poisoned for t in tallies), len(tallies))


def touched_share(tallies: Sequence[CellTally]) -> Estimate:
    """Of the questions, those that lose a clean passage."""
    return wilson(sum(t.damaged for t in tallies), len(tallies))


def kept_share(tallies: Sequence[CellTally]) -> Estimate:
    """Of the clean passages, those that are kept; resampled by question."""
    kept, dropped = [t.clean_kept for t in tallies], [t.clean_dropped for t in tallies]
    return bootstrap_ratio(kept, [a + b for a, b in zip(kept, dropped)], shares=True)


@dataclass(frozen=True)
class Claim:
    """One number.

    Attributes:
        says: What is counted, in words.
        group: The samples that it is counted on.
        measure: From what became of them to a share.
        defense: A defense as the command line writes it.
    """

    says: str
    group: str
    measure: Callable[[Sequence[CellTally]], Estimate]
    defense: str = "guard"

    @property
    def needs_data(self) -> bool:
        return not self.group.startswith("sample, ")

    @property
    def repeatable(self) -> bool:
        """Whether every machine has the same texts: docstrings are those of the packages that are installed."""
        return self.group != "clean, documentation"


CLEAN = ("nq", "hotpotqa", "msmarco", "nq_large", "realtimeqa", "biogen", *BENIGN, "documentation", "clean_faq_answers",
         "clean_faq_pairs", "clean_science", "clean_software_docs", "clean_wiki_de", "clean_wiki_en", "clean_wiki_es",
         "clean_wiki_zh")  # fmt: skip
"""Sets without any poison."""

CLAIMS: dict[str, Claim] = {
    "front": Claim("contexts in which the one poison is read, question in front", FRONT, read_share),
    "plain": Claim("contexts in which the same poison is read without the question", PLAIN, read_share),
    **{
        f"sample-{name}-{count}": Claim(f"contexts of the sample with poison read, {kind}", group, read_share)
        for name, kind in (("front", FRONT), ("plain", PLAIN))
        for count in (1, 3)
        for group in [f"sample, {kind}, {count}"]
    },
    "sample-kept": Claim("passages of the sample that are kept, nothing planted", "sample, clean", kept_share),
    **{f"kept-{name}": Claim("clean passages kept", f"clean, {name}", kept_share) for name in CLEAN},
    **{f"touched-{name}": Claim("questions that lose a passage", f"clean, {name}", touched_share) for name in CLEAN},
    **{
        f"ragdefender-{name}": Claim("questions that lose a passage", f"clean, {name}", touched_share, "ragdefender")
        for name in BENIGN[:4]
    },
}
