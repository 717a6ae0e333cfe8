"""What each part of the check `crafted` is worth; `train_crafted.py --ablation` prints it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.quality.headline_claims import of_data
from benchmarks.training.guard_data import Sample, measured_samples
from benchmarks.training.guard_manuals import harmless_texts
from benchmarks.training.split import share_of
from benchmarks.training.train_crafted import NAMES, Fitted, Runs, Texts, around_of, crafted_samples
from unpoison.text.analysis import CAPITAL, MARK

KEPT = 0.988
"""Every variant is measured at the threshold at which so much of the average clean set is kept."""

GROUPS = {
    "question in front": ("question in front, 1",),
    "without the question": ("without, 1",),
    "generators never fitted": ("poisonedrag-revprag, 1", "paraphrase, 1", "synonym, 1", "without, realtimeqa, 1"),
    "tan": ("tan, 1",),
    "three or five poisons": ("without, 3", "without, 5", "poisonedrag-revprag, 3", "poisonedrag-revprag, 5"),
}
DRAWS = 1000


PLAIN = ("poisonedrag", "radar-incorrect-context")


def measured_rows(folder: Path) -> list[Sample]:
    """The cells of the quality benchmark without fitted questions, and the clean files."""
    clean = [s for name, group in of_data(folder).items() if name.startswith("clean, clean_") for s in group]
    return [*measured_samples(folder), *clean]


def groups_of(sample: Sample) -> Iterator[str]:
    """The rows of the table that a sample counts in."""
    count = sum(sample.poison)
    attack, _, front = sample.attack.partition(", ")
    if attack in PLAIN and sample.domain != "biogen" and count in (1, 3, 5):
        yield f"question in front, {count}" if front else f"without, {count}"
        if not front:
            yield f"without, {sample.domain}, {count}"
    elif attack in ("poisonedrag-revprag", "tan", "paraphrase", "synonym") and count in (1, 2, 3, 5):
        yield f"{attack}, {count}"


@dataclass(frozen=True)
class Measured:
    """The probability of every passage of every sample."""

    samples: Sequence[Sample]
    probability: Sequence[np.ndarray]

    def clean(self) -> dict[str, list[np.ndarray]]:
        by = defaultdict(list)
        for s, p in zip(self.samples, self.probability):
            if s.attack == "none":
                by[s.domain].append(p)
        return by

    def bar(self, kept: float) -> float:
        """The threshold at which this share is kept of the average clean set."""
        sets = [np.concatenate(parts) for parts in self.clean().values()]
        values = np.concatenate(sets)
        each = np.concatenate([np.full(len(v), 1 / (len(v) * len(sets))) for v in sets])
        order = np.argsort(-values, kind="stable")
        return float(values[order][np.searchsorted(np.cumsum(each[order]), 1 - kept)])

    def left(self, bar: float) -> dict[str, list[bool]]:
        """For each group whether any poison is left, context by context."""
        by = defaultdict(list)
        for s, p in zip(self.samples, self.probability):
            for group in groups_of(s):
                by[group].append(bool((np.array(s.poison) & (p <= bar)).any()))
        return dict(sorted(by.items()))


def ablation(folder: Path, share: float) -> None:
    """Print the table, of this share of the questions."""
    fitted = [s for s in crafted_samples(folder) if share_of(f"ablation {s.question}") < share]
    more = harmless_texts(folder)
    measured = [
        replace(s, texts=tuple(p.body for p in s.passages), domain=f"measured {s.domain}", given=())
        for s in measured_rows(folder)
        if " at position " not in s.attack
        and sum(s.poison) in (0, 1, 3, 5)
        and share_of(f"ablation {s.question}") < 2 * share
    ]
    texts = Texts([*fitted, *measured], more)
    chosen = np.arange(len(texts.samples)) < len(fitted)
    bench = _Bench(texts, chosen)
    print(HEAD.format(share=share, fitted=len(fitted), measured=len(measured)))
    whole = bench.row("the whole text alone", bench.whole(bench.base))
    windows = bench.row("and windows", bench.base.own, whole)
    bench.row("and the company: what is shipped", bench.company(bench.base), windows)
    print()
    print(SECOND)
    for name in NAMES:
        other = bench.with_columns([n for n in NAMES if n != name])
        bench.row(f"without `{name}`", bench.whole(other), whole)
    runs = bench.runs
    kind = texts.kind.copy()
    texts.kind = kind & ~CAPITAL
    bench.row("style without capitals", bench.again(chosen), whole)
    texts.kind, word = kind, texts.word.copy()
    texts.word = np.where(kind >= MARK, 1, word)
    bench.row("style with all marks alike", bench.again(chosen), whole)
    texts.word, bench.runs = word, runs
    bench.row("without clean manuals, guides, mail", bench.again(chosen & (texts.families != "manuals")), whole)
    texts.more = ()
    bench.row("style without harmless texts of other kinds", bench.again(chosen), whole)
    texts.more = more
    for attack in ("poisonedrag", "poisonedrag-gpt4", "tan"):
        kept = np.array([s.attack != attack for s in texts.samples])
        bench.row(f"`{attack}` left out of the fit", bench.again(chosen & kept), whole)


HEAD = f"""# What each part of `crafted` is worth

    python -m benchmarks train_crafted evaluation-data --ablation --share {{share}}

Fitted on {{fitted:,}} samples, measured on {{measured:,}}: a share of the questions, and twice that share.
Questions that were not fitted; of the generators RevPRAG's, RADAR's and the rewordings none was fitted at all. Contexts
with any poison left, %, each at the threshold that keeps {100 * KEPT:.1f} % of the average clean set; in brackets what
a part changes, with a 95 % interval (bootstrap over contexts, the same ones before and after).

| parts | {" | ".join(GROUPS)} | questions touched |
|---|{"---|" * (len(GROUPS) + 1)}"""
SECOND = f"""Less one thing, beside the whole text alone:

| what | {" | ".join(GROUPS)} | questions touched |
|---|{"---|" * (len(GROUPS) + 1)}"""


class _Bench:
    def __init__(self, texts: Texts, chosen: np.ndarray) -> None:
        self.texts, self.chosen = texts, chosen
        self.first = int(chosen.sum())
        shown = Texts.__new__(Texts)
        shown.__dict__.update(texts.__dict__)
        shown.samples = texts.samples[: self.first]
        self.general = shown.general()
        self.runs = Runs(texts, texts.shown(chosen)[0], self.general)
        self.base = Fitted(texts, self.runs, chosen)

    def whole(self, made: Fitted) -> np.ndarray:
        return made.alone

    def with_columns(self, names: Sequence[str]) -> Fitted:
        made = Fitted.__new__(Fitted)
        made.__dict__.update(self.base.__dict__)
        made.names = list(names)
        made.whole = made._whole(made.learned, self.chosen)
        made.alone = made.whole_scores(made.rows)
        return made

    def again(self, chosen: np.ndarray, without: Collection[str] = ("window",)) -> np.ndarray:
        runs = Runs(self.texts, self.texts.shown(chosen)[0], self.general)
        return Fitted(self.texts, runs, chosen, without).alone

    def company(self, made: Fitted) -> np.ndarray:
        made.crossed(self.chosen, self.runs)
        return made.final(made.own, around_of(self.texts, made.own))

    def row(self, name: str, values: np.ndarray, before: Measured | None = None) -> Measured:
        t = self.texts
        parts = [values[t.begin[i] : t.begin[i + 1]] for i in range(self.first, len(t.samples))]
        samples = [replace(s, domain=s.domain.removeprefix("measured ")) for s in t.samples[self.first :]]
        now = Measured(samples, parts)
        bar = now.bar(KEPT)
        left, was = now.left(bar), before.left(before.bar(KEPT)) if before else None
        cells = []
        for groups in GROUPS.values():
            hits = np.array([hit for group in groups for hit in left.get(group, ())], float)
            cell = f"{100 * hits.mean():.1f}"
            if was is not None:
                change = 100 * (hits - np.array([hit for group in groups for hit in was.get(group, ())], float))
                draws = np.random.default_rng(0).integers(len(change), size=(DRAWS, len(change)))
                low, high = np.quantile(change[draws].mean(axis=1), (0.025, 0.975))
                cell += f" ({change.mean():+.1f} [{low:+.1f}, {high:+.1f}])"
            cells.append(cell)
        touched = [bool((p > bar).any()) for s, p in zip(samples, parts) if s.attack == "none"]
        print(f"| {name} | {' | '.join(cells)} | {100 * np.mean(touched):.1f} |", flush=True)
        return now
