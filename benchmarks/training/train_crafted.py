"""Fit the check `crafted`, and say what each of its parts is worth.

    python -m benchmarks train_crafted evaluation-data --output src/unpoison/data
    python -m benchmarks train_crafted evaluation-data --ablation > docs/results/guard-ablation.md

Fitted on seven tenths of the questions of the freely licensed sets (`guard_data.py`) and on clean retrievals of other
kinds (`guard_manuals.py`); deterministic. Styles, trees and thresholds are cross-fitted: what a text is judged by has
not seen its question, and thresholds are those that clean sets need which nothing was fitted on the family of.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.guard_data import Sample, training_samples
from benchmarks.training.guard_manuals import harmless_texts, manual_samples
from unpoison.defenses.guard.crafted import LOWEST, Crafted, neighbor_features
from unpoison.defenses.guard.features import COLUMNS, QuestionTerms, Style, TextWords, beside, root, run_codes
from unpoison.text.analysis import canonical_word, word_hash, words_of

__all__ = ["Fitted", "Texts", "crafted_samples", "fit", "judged"]

DAMAGE = (0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1)
FOLDS = 3
FEWEST_TEXTS = 20
"""A run that fewer texts have says nothing."""
FINEST = 2000
"""Steps of the style's weights."""
STRENGTH = 3.0
"""The inverse of the weight of the penalty on the style's weights."""
GENERAL_QUESTIONS, SMALL = 20, 0.75
"""Words that stand in texts on fewer questions, or in fewer than half of the sets, belong to a topic; names are those
that stand in small letters in a smaller share of the texts that hold them."""
SHIFT = 0.5
"""How much more like claims other kinds of text may be written: the deviation, in the style's own unit."""
ROUNDS = 3
"""How often the windows to learn from are chosen anew."""
TREES, WINDOW_TREES, COMPANY_TREES = 150, 80, 60
RISING = ("style", "coverage", "echo")
"""More of these never means less suspicion, so that a text cannot overdo it."""
COMPANY_RISING = (1, 1, 1, 1, 0, 0)
LEAST, MOST = -0.5, 4.0
"""How far the company may lower and raise a text's log-odds."""
WINDOW_SHARE = 0.1
"""Of the damage, how much the windows may do."""
MIXED = ("longer",)
"""Attacks whose texts hold clean sentences too."""

FAMILIES = {"nq": ("nq_poisoned", "nq_large_poisoned", "nq_retrieved"), "hotpotqa": ("hotpotqa",),
            "timeqa": ("timeqa",), "ramdocs": ("ramdocs",), "faq": ("clean_faq",), "science": ("clean_science",),
            "wiki": ("clean_wiki",), "documentation": ("documentation",), "manuals": ("manuals",)}  # fmt: skip
"""Data sets by where their passages come from, and how the names of their domains begin."""

LEFT_OUT = (("timeqa", "faq", "hotpotqa"), ("ramdocs", "science", "wiki"))
"""Families that are left out together, for the thresholds. Not the one with most of the published poison, and not
documentation and manuals, which no other family is like at all."""

NAMES = ("style", *COLUMNS)


def family(domain: str) -> str:
    return next((name for name, starts in FAMILIES.items() if domain.startswith(starts)), domain)


def fold(question: str) -> int:
    return int.from_bytes(blake2b(question.encode(), digest_size=4).digest(), "little") % FOLDS


def crafted_samples(folder: Path) -> list[Sample]:
    """What is fitted on."""
    return [*(s for s in training_samples(folder) if s.attack != "garag"), *manual_samples(folder)]


class Texts:
    """The distinct texts of samples, analysed, behind each other."""

    def __init__(self, samples: Sequence[Sample], more: Sequence[tuple[str, str]] = ()) -> None:
        """`more`: harmless texts and their kinds, for the style."""
        self.samples, self.more = samples, more
        every = dict.fromkeys(text for s in samples for text in s.texts) | dict.fromkeys(text for text, _ in more)
        self.texts = list(every)
        self.number = {text: i for i, text in enumerate(self.texts)}
        self.known = words_of(self.texts)
        self.size = np.array([len(one.word) for one in self.known])
        self.owner = np.repeat(np.arange(len(self.known)), self.size)
        self.word, self.kind = (np.concatenate([getattr(a, n) for a in self.known]) for n in ("word", "kind"))
        counts = np.array([one.sentence[-1] + 1 if len(one.sentence) else 0 for one in self.known])
        self.sentence = np.concatenate([one.sentence for one in self.known]) + (np.cumsum(counts) - counts)[self.owner]
        begin = np.cumsum(self.size) - self.size
        self.windows = np.array([len(one.first) for one in self.known])
        of = np.repeat(begin, self.windows)
        self.first, self.last = (np.concatenate([getattr(a, n) for a in self.known]) + of for n in ("first", "last"))
        self.window_begin = np.concatenate([[0], np.cumsum(self.windows)])
        self.poison = [np.array(s.poison) for s in samples]
        self.sizes = np.array([len(s.texts) for s in samples])
        self.begin = np.concatenate([[0], np.cumsum(self.sizes)])
        self.sample = np.repeat(np.arange(len(samples)), self.sizes)
        self.folds = np.array([fold(s.question) for s in samples])
        self.families = np.array([family(s.domain) for s in samples])
        self._measure()

    def _measure(self) -> None:
        """The columns beside the question of all windows of all samples."""
        rows, passage, place = [], [], []
        for i, s in enumerate(self.samples):
            numbers = [self.number[text] for text in s.texts]
            spoken = TextWords.of([self.known[n] for n in numbers])
            rows.append(beside(QuestionTerms.of(words_of([s.question])[0]), spoken).astype(np.float32))
            passage.append(self.begin[i] + spoken.owner)
            place.extend(np.arange(self.window_begin[n], self.window_begin[n + 1]) for n in numbers)
        self.columns, self.passage = np.concatenate(rows), np.concatenate(passage)
        self.place = np.concatenate(place)  # of each row among the windows of the distinct texts
        self.full = np.flatnonzero(np.diff(np.append(self.passage, -1)))  # the last window of each passage that has any

    @cached_property
    def labels(self) -> np.ndarray:
        return np.concatenate(self.poison)

    def general(self) -> np.ndarray:
        """The words that suit every topic: no names, on many questions, in most sets."""
        questions, domains, small, all_of = defaultdict(set), defaultdict(set), Counter(), Counter()
        where: dict[str, tuple[set, set]] = {}
        for s in self.samples:
            for text in s.texts:
                asked, sets = where.setdefault(text, (set(), set()))
                asked.add(s.question)
                sets.add(s.domain.partition("-")[0])
        for text, (asked, sets) in where.items():
            words = set(re.findall(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*", text))
            small.update(word for word in words if word.islower())
            for word in {word.lower() for word in words}:
                all_of[word] += 1
                if len(questions[word]) < GENERAL_QUESTIONS:
                    questions[word] |= asked
                domains[word] |= sets
        half = len({s.domain.partition("-")[0] for s in self.samples}) / 2
        chosen = [
            word_hash(canonical_word(word)) >> 31
            for word, count in all_of.items()
            if len(questions[word]) >= GENERAL_QUESTIONS and len(domains[word]) >= half and small[word] >= SMALL * count
        ]
        return np.unique(np.array(chosen, np.uint32))

    def shown(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct texts of some samples: numbers, which are poison, weights.

        Clean and invented texts weigh the same; among these each set and each attack.
        """
        kinds: dict[tuple[int, bool], tuple[str, str]] = {}
        for i in np.flatnonzero(chosen):
            s = self.samples[i]
            if s.attack not in MIXED:
                for text, p in zip(s.texts, s.poison):
                    kinds.setdefault((self.number[text], p), s.kind(p))
        for text, kind in self.more:
            kinds.setdefault((self.number[text], False), (kind, ""))
        poison = np.array([p for _, p in kinds])
        weights = balanced([(*kind, p) for kind, p in zip(kinds.values(), poison.tolist())])
        return np.array([n for n, _ in kinds]), poison, weights


def balanced(keys: Sequence[tuple[str, str, bool]]) -> np.ndarray:
    """What each row weighs, given its (domain, attack, whether it is poison), with mean 1.

    Clean and poison weigh the same; among clean rows each domain, among poisons each domain and attack.
    """
    sizes = Counter(keys)
    groups = Counter(poison for _, _, poison in sizes)
    weights = np.array([1 / (sizes[key] * groups[key[2]]) for key in keys])
    return weights * len(keys) / weights.sum()


class Runs:
    """The runs of texts that enough of them have."""

    def __init__(self, texts: Texts, chosen: np.ndarray, general: np.ndarray) -> None:
        self.texts, self.general = texts, general
        codes = run_codes(texts.word, texts.kind, texts.sentence, general)
        upper = [np.where(code > 0, (code >> np.uint64(32)).astype(np.int64), -1) for code in codes]
        inside = np.isin(texts.owner, chosen)
        held = np.concatenate([np.unique(u[inside & (u >= 0)] + (texts.owner[inside & (u >= 0)] << 32)) for u in upper])
        code, count = np.unique(held & 0xFFFFFFFF, return_counts=True)
        self.code = code[count >= FEWEST_TEXTS].astype(np.uint32)
        blank = Style(general, self.code, np.zeros(len(self.code)), 1.0, 0.0)
        self.places = [blank.places(c) for c in codes]

    def fitted(self, numbers: np.ndarray, poison: np.ndarray, weights: np.ndarray) -> Style:
        """A style from some texts, by logistic regression."""
        row = np.full(len(self.texts.known), -1)
        row[numbers] = np.arange(len(numbers))
        rows, columns = [], []
        for place in self.places:
            keep = (place >= 0) & (row[self.texts.owner] >= 0)
            rows.append(row[self.texts.owner[keep]])
            columns.append(place[keep])
        row, column = np.concatenate(rows), np.concatenate(columns)
        table = csr_array((np.ones(len(row)), (row, column)), shape=(len(numbers), len(self.code)))
        table.sum_duplicates()
        table.data /= np.repeat(root(self.texts.size[numbers]), np.diff(table.indptr))
        model = LogisticRegression(C=STRENGTH, max_iter=300, tol=1e-3).fit(table, poison, weights)
        weight = model.coef_[0]
        scale = np.abs(weight).max() / FINEST
        return Style(self.general, self.code, np.round(weight / scale), scale, float(model.intercept_[0]))

    def windows(self, style: Style) -> np.ndarray:
        """The style of every window of the distinct texts."""
        return style.sums(self.places, self.texts.first, self.texts.last)


def boosted(rows: np.ndarray, y: np.ndarray, w: np.ndarray, count: int, rising: Sequence[int]) -> Any:
    return HistGradientBoostingClassifier(
        max_iter=count, learning_rate=0.1, max_depth=3, l2_regularization=5, min_samples_leaf=60, max_bins=64,
        monotonic_cst=list(rising), early_stopping=False, random_state=0,
    ).fit(rows, y, w)  # fmt: skip


class Fitted:
    """The parts, fitted on some samples. `parts` leaves some out: "window", "company", and columns."""

    def __init__(self, texts: Texts, runs: Runs, chosen: np.ndarray, without: Collection[str] = ()) -> None:
        self.texts, self.without = texts, without
        self.names = [name for name in NAMES if name not in without]
        self.style = runs.fitted(*texts.shown(chosen))
        # What is fitted on must be judged by a style that has not seen its question.
        own = runs.windows(self.style)
        style = own[texts.place]
        sample = texts.sample[texts.passage]
        self.row_sample = sample
        for number in range(FOLDS):
            others = chosen & (texts.folds != number)
            here = chosen[sample] & (texts.folds[sample] == number)
            style[here] = runs.windows(runs.fitted(*texts.shown(others)))[texts.place[here]]
        shift = SHIFT * np.clip(np.random.default_rng(0).normal(size=len(texts.samples)), 0, None)
        self.rows = np.column_stack([style, texts.columns])
        learned = self.rows.copy()
        learned[:, 0] += (shift * chosen)[sample] * ~texts.labels[texts.passage]
        self.learned = learned
        self.whole = self._whole(learned, chosen)
        self.window = None if "window" in without else self._window(learned, chosen)
        self.alone, self.windows = self._scores(self.rows)
        self.handicap = 0.0 if "window" in without else self._handicap(chosen)

    def _choose(self, rows: np.ndarray) -> np.ndarray:
        return rows[:, [NAMES.index(name) for name in self.names]]

    @property
    def _rising(self) -> list[int]:
        return [int(name in RISING) for name in self.names]

    def _keys(self, passages: np.ndarray) -> np.ndarray:
        t = self.texts
        return balanced([(*t.samples[t.sample[p]].kind(bool(t.labels[p])), bool(t.labels[p])) for p in passages])

    def _whole(self, rows: np.ndarray, chosen: np.ndarray) -> Any:
        at = self.texts.full[chosen[self.row_sample[self.texts.full]]]
        passages = self.texts.passage[at]
        return boosted(self._choose(rows[at]), self.texts.labels[passages], self._keys(passages), TREES, self._rising)

    def _window(self, rows: np.ndarray, chosen: np.ndarray) -> Any:
        """Only passages have labels, so in every round the trees choose the windows to learn from.

        Of a poison that is the one that they suspect most, of a clean passage the three.
        """
        at = np.flatnonzero(chosen[self.row_sample])
        passage, rows = self.texts.passage[at], rows[at]
        y, w = self.texts.labels[passage], self._keys(passage)
        score, model = rows[:, 1] + 0.01 * rows[:, 2], None
        for _ in range(ROUNDS):
            order = np.lexsort((-score, passage))
            rank = np.arange(len(order)) - np.searchsorted(passage[order], passage[order])
            best = order[rank < np.where(y[order], 1, 3)]
            model = boosted(self._choose(rows[best]), y[best], w[best], WINDOW_TREES, self._rising)
            score = model.decision_function(self._choose(rows))
        return model

    def _scores(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-odds of every passage as a whole, and of its worst window."""
        t = self.texts
        worst = np.full(len(t.labels), LOWEST)
        if self.window is not None:
            np.maximum.at(worst, t.passage, self.window.decision_function(self._choose(rows)))
        return self.whole_scores(rows), worst

    def whole_scores(self, rows: np.ndarray) -> np.ndarray:
        """Log-odds of every passage as a whole."""
        t = self.texts
        whole = np.full(len(t.labels), LOWEST)
        whole[t.passage[t.full]] = self.whole.decision_function(self._choose(rows[t.full]))
        return whole

    def _handicap(self, chosen: np.ndarray) -> float:
        """So that the windows do their share of the damage."""
        t = self.texts
        clean = clean_sets(t, chosen)
        whole = needed([self.alone[c] for c in clean], 0.01)
        return needed([self.windows[c] for c in clean], WINDOW_SHARE * 0.01) - whole

    @property
    def own(self) -> np.ndarray:
        if "window" in self.without:
            return self.alone
        return np.maximum(self.alone, self.windows - self.handicap)

    def crossed(self, chosen: np.ndarray, runs: Runs) -> None:
        """The company's trees, fitted on log-odds which are as good as those of unseen questions."""
        t = self.texts
        own = self.own.copy()
        for number in range(FOLDS):  # cross-fitted: the styles are already, the trees have few parameters
            part = chosen & (t.folds != number)
            again = _Again(self, part)
            here = chosen[t.sample] & (t.folds[t.sample] == number)
            own[here] = again.own[here]
        self.cross = own
        around = around_of(t, own)
        at = np.flatnonzero(chosen[t.sample])
        self.company = boosted(around[at], t.labels[at], self._keys(at), COMPANY_TREES, COMPANY_RISING)
        self.around = around

    def final(self, own: np.ndarray, around: np.ndarray) -> np.ndarray:
        if "company" in self.without:
            return own
        return np.clip(self.company.decision_function(around), own + LEAST, own + MOST)


class _Again(Fitted):
    """The trees alone, fitted again on fewer samples."""

    def __init__(self, base: Fitted, chosen: np.ndarray) -> None:
        self.texts, self.without, self.names = base.texts, base.without, base.names
        self.row_sample, self.handicap = base.row_sample, base.handicap
        self.whole, self.window = base._whole(base.rows, chosen), base.window
        self.alone, self.windows = self._scores(base.rows)


def around_of(texts: Texts, own: np.ndarray) -> np.ndarray:
    """`neighbor_features` of all samples."""
    made = []
    for i, s in enumerate(texts.samples):
        known = [texts.known[texts.number[text]] for text in s.texts]
        scores = own[texts.begin[i] : texts.begin[i + 1]]
        wanted = QuestionTerms.of(words_of([s.question])[0])
        made.append(neighbor_features(scores, wanted, TextWords.of(known), known))
    return np.concatenate(made)


def clean_sets(texts: Texts, chosen: np.ndarray) -> list[np.ndarray]:
    """The passages of each clean set."""
    by = defaultdict(list)
    for i in np.flatnonzero(chosen):
        if not texts.poison[i].any():
            by[texts.samples[i].domain.partition("-")[0]].append(np.arange(texts.begin[i], texts.begin[i + 1]))
    return [np.concatenate(parts) for parts in by.values()]


def needed(sets: Sequence[np.ndarray], damage: float) -> float:
    """The value that a share `damage` of the average clean set is above."""
    values = np.concatenate(list(sets))
    each = np.concatenate([np.full(len(v), 1 / (len(v) * len(sets))) for v in sets])
    order = np.argsort(-values, kind="stable")
    return float(values[order][np.searchsorted(np.cumsum(each[order]), damage)])


def fit(texts: Texts, without: Collection[str] = (), chosen: np.ndarray | None = None) -> Fitted:
    chosen = np.ones(len(texts.samples), bool) if chosen is None else chosen
    runs = Runs(texts, texts.shown(chosen)[0], texts.general())
    made = Fitted(texts, runs, chosen, without)
    if "company" not in without:
        made.crossed(chosen, runs)
    return made


def own_thresholds(texts: Texts, made: Fitted) -> list[float]:
    """The same by cross-fitting over questions alone."""
    return bars(texts, made.final(made.cross, made.around))


def bars(texts: Texts, final: np.ndarray) -> list[float]:
    """Probabilities that each level of damage needs."""
    sets = [final[c] for c in clean_sets(texts, np.ones(len(texts.samples), bool))]
    return [round(float(1 / (1 + np.exp(-needed(sets, damage)))), 5) for damage in DAMAGE]


def thresholds(texts: Texts, made: Fitted) -> list[float]:
    """For each level of damage what the average clean set needs whose family was left out."""
    final = made.final(made.cross, made.around)
    for names in LEFT_OUT:
        rest = ~np.isin(texts.families, names)
        other = fit(texts, made.without, rest)
        values = other.final(other.own, around_of(texts, other.own))
        here = ~rest[texts.sample]
        final[here] = values[here]
        print(", ".join(names), "left out", round(perf_counter()), "s", flush=True)
    return bars(texts, final)


def exported(made: Fitted, bars: Sequence[float]) -> dict[str, np.ndarray]:
    """What `Crafted.of` reads."""
    data: dict[str, Any] = {
        "general": made.style.general,
        "code": made.style.code,
        "weight": made.style.weight.astype(np.int16),
        "style_scale": np.array([made.style.unit, made.style.base]),
        "bounds": np.array(
            [
                1e9 if "window" in made.without else made.handicap,
                *((0.0, 0.0) if "company" in made.without else (LEAST, MOST)),
            ]
        ),
        "damage": np.array(DAMAGE),
        "thresholds": np.array(bars),
    }
    models = {"whole": made.whole, "window": made.window or made.whole, "company": getattr(made, "company", made.whole)}
    for name, model in models.items():
        features, cuts, leaves, base = flat(model)
        if name != "company":
            features = np.array([NAMES.index(n) for n in made.names], np.uint8)[features]
        data |= {f"{name}_features": features, f"{name}_thresholds": cuts, f"{name}_leaves": leaves,
                 f"{name}_base": np.array(base)}  # fmt: skip
    return data


def flat(model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Trees as full trees of depth 3, breadth first; a leaf above the bottom is repeated below."""
    count = len(model._predictors)
    features, cuts, leaves = np.zeros((count, 7), np.uint8), np.zeros((count, 7), np.float32), np.zeros((count, 8))
    for tree, (predictor,) in enumerate(model._predictors):
        pending = [(0, 0)]
        while pending:
            position, index = pending.pop()
            node = predictor.nodes[index]
            if position >= 7:
                leaves[tree, position - 7] = node["value"]
            elif node["is_leaf"]:
                pending += [(2 * position + 1, index), (2 * position + 2, index)]
            else:
                features[tree, position], cuts[tree, position] = node["feature_idx"], node["num_threshold"]
                pending += [(2 * position + 1, int(node["left"])), (2 * position + 2, int(node["right"]))]
    return features, cuts, leaves.astype(np.float32), float(model._baseline_prediction.ravel()[0])


def judged(crafted: Crafted, sample: Sample) -> np.ndarray:
    """The probabilities of a sample's passages, as shipped: with titles apart."""
    given = sample.passages
    return crafted.judge(sample.question, [p.reading for p in given], [p.body for p in given]).probability


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--ablation", action="store_true", help="print what each part is worth, and write nothing")
    parser.add_argument("--share", type=float, default=0.25, help="of the questions, for the ablation")
    parser.add_argument("--output", type=Path, help="folder for the coefficients; src/unpoison/data ships them")
    arguments = parser.parse_args()
    if arguments.ablation:
        from benchmarks.training.crafted_ablation import ablation

        ablation(arguments.folder, arguments.share)
        return
    texts = Texts(crafted_samples(arguments.folder), harmless_texts(arguments.folder))
    refuse_test_texts(texts.texts)
    print(f"{len(texts.samples):,} samples analysed, {perf_counter():.0f} s", flush=True)
    made = fit(texts)
    print(f"fitted, {perf_counter():.0f} s", flush=True)
    if arguments.output:  # thresholds take longer; who looks in the meantime finds those of the samples themselves
        np.savez_compressed(arguments.output / "crafted.npz", **exported(made, own_thresholds(texts, made)))
    needs = thresholds(texts, made)
    print(f"{len(texts.samples):,} samples, {len(made.style.code):,} runs, handicap {made.handicap:.2f}")
    print("thresholds", dict(zip(DAMAGE, needs)))
    if arguments.output:
        np.savez_compressed(arguments.output / "crafted.npz", **exported(made, needs))


if __name__ == "__main__":
    main()
