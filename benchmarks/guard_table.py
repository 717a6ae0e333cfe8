"""The numbers that `unpoison guard fit` starts from: evidence on passages of the training, quantised, and no text.

    python benchmarks/guard_table.py ../shared/data --output src/unpoison/data

Of each data set and attack of the training the same number of samples, as far as there are so many. What a style says
stands there in parts (`defenses.guard.key`), each by a style that has not seen the question, and clean passages are
shifted towards claims as they are for the shipped coefficients (`guard_style.py`, `guard_windows.py`).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from guard_data import Sample, training_samples
from guard_style import FOREIGN, styled
from guard_style import SHIFT as STYLE_SHIFT
from guard_windows import SHIFT as WINDOW_SHIFT
from guard_windows import style_of_windows
from train_guard import Vectors, family, fold
from unpoison.defenses.guard.key import GROUPS, group_of
from unpoison.defenses.guard.model import GuardModel
from unpoison.defenses.guard.table import ENCODERS_OWN, LEVELS
from unpoison.defenses.guard.windows import WindowModel
from unpoison.kernels.evidence import Signs, signs
from unpoison.kernels.style import SHORTEST, Runs, Style, known_to, strengths
from unpoison.kernels.window_evidence import known_runs, window_signs
from unpoison.kernels.windows import windows

MOST_OF_A_KIND = 12
"""Samples of each data set and attack."""

WINDOWS_OF_POISON, WINDOWS_OF_CLEAN = 2, 3
"""So many of a passage's most suspicious windows are kept."""


def chosen(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most so many of each data set and attack, spread evenly."""
    kinds = defaultdict(list)
    for sample in samples:
        kinds[sample.domain, sample.attack].append(sample)
    return [kind[i * len(kind) // min(most, len(kind))] for kind in kinds.values() for i in range(min(most, len(kind)))]


def unseen(samples: Sequence[Sample], every: Sequence[Sample], fit: Callable[..., dict]) -> list[Style]:
    """For each sample a style that has not seen its question; for half of them, not its family of data sets either."""
    apart = np.random.default_rng(0).random(len(samples)) < FOREIGN
    keys = [family(s.domain) if far else fold(s.question) for s, far in zip(samples, apart)]
    made = {}
    for key in sorted(set(keys), key=str):
        made[key] = GuardModel.style_of(fit([s for s in every if key not in (family(s.domain), fold(s.question))]))
        print("style without", key, flush=True)
    return [made[key] for key in keys]


def in_parts(style: Style, place: np.ndarray, unit: np.ndarray, count: int) -> np.ndarray:
    """`kernels.style.resemblance`, group by group: what they say adds up to it, shape (groups, count)."""
    owner, run, strength = strengths(style, place, unit, count)
    cells = group_of(style.code)[run] * count + owner
    sums = np.bincount(cells, strength * style.weight[run], GROUPS * count).reshape(GROUPS, count)
    return sums + style.base / GROUPS


def worded(found: Signs, style: Style, lift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each group says of the passages and of their claims, as `guard_model.wording`, shape (groups, k) both."""
    k, owner = len(found.residual), found.sentence_owner
    inside = owner[found.runs.sentence] >= 0
    lengths = np.bincount(found.runs.sentence[inside], minlength=len(owner))
    known = known_to(style, Runs(found.runs.code[inside], found.runs.sentence[inside]))
    whole = in_parts(style, known.code, owner[known.sentence], k)
    each = in_parts(style, known.code, known.sentence, len(owner))
    claim = whole.copy()
    claimed = np.flatnonzero(found.claim >= 0)
    claimed = claimed[lengths[found.claim[claimed]] >= SHORTEST]
    claim[:, claimed] = each[:, found.claim[claimed]]
    return whole + lift / GROUPS, claim + lift / GROUPS


def lifted(samples: Sequence[Sample], deviation: float) -> list[np.ndarray]:
    """By how much each passage is shifted towards claims: clean ones of a sample all by the same amount."""
    amounts = deviation * np.clip(np.random.default_rng(1).normal(size=len(samples)), 0, None)
    return [np.where(s.poison, 0.0, amount) for s, amount in zip(samples, amounts)]


def windowed(sample: Sample, style: Style, lift: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The most suspicious windows: what groups say (groups, w), the other columns (7, w), and how many by passage.

    The style is the first column.
    """
    shipped = WindowModel.load().judge(sample.question, sample.texts)
    order = np.lexsort((-shipped.odds, shipped.owner))
    owner = shipped.owner[order]
    rank = np.arange(len(order)) - np.searchsorted(owner, owner)
    most = np.where(np.array(sample.poison)[owner], WINDOWS_OF_POISON, WINDOWS_OF_CLEAN)
    keep = order[rank < most]
    cut = windows(sample.question, sample.texts)
    said = in_parts(style, *known_runs(cut, cut.first, cut.last, style), len(cut.first))
    table = window_signs(sample.question, sample.texts, style).columns[keep]
    said = said[:, keep] + lift[shipped.owner[keep]] / GROUPS
    return said, table[:, 1:].T, np.bincount(shipped.owner[keep], minlength=len(sample.texts))


def quantised(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of values as numbers of levels, (c, n) uint8, and the levels, (c, 64) float32: exact where few differ."""
    codes, levels = [], []
    for column in columns:
        values = np.unique(column)
        if len(values) > LEVELS:
            edges = np.quantile(column, np.linspace(0, 1, LEVELS + 1)[1:-1])
            place = np.searchsorted(edges, column)
            used = np.unique(place)
            values = np.array([np.median(column[place == p]) for p in used])
            code = np.searchsorted(used, place)
        else:
            code = np.searchsorted(values, column)
        codes.append(code)
        levels.append(np.pad(values, (0, LEVELS - len(values)), mode="edge"))
    return np.array(codes, np.uint8), np.array(levels, np.float32)


def evenly(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values as uint8 in even steps between their 0.1 and 99.9 percent points, and (lowest, step)."""
    low, high = np.quantile(values, [0.001, 0.999])
    step = (high - low) / (LEVELS - 1)
    return np.clip(np.round((values - low) / step), 0, LEVELS - 1).astype(np.uint8), np.array([low, step], np.float32)


def upper(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """The cells above the diagonals, in steps of 1/63 of [0, 1]."""
    cells = np.concatenate([m[np.triu_indices(len(m), 1)] for m in matrices])
    return np.round(np.clip(cells, 0, 1) * (LEVELS - 1)).astype(np.uint8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoders", default="lexical,minilm")
    parser.add_argument("--texts", action=argparse.BooleanOptionalAction, default=True, help="what no encoder changes")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"), help="folder for embeddings")
    parser.add_argument("--output", type=Path, default=Path("src/unpoison/data"))
    arguments = parser.parse_args()
    every = [s for s in training_samples(arguments.folder) if s.attack != "garag"]
    samples = chosen(every, MOST_OF_A_KIND)
    print(len(samples), "samples,", sum(len(s.texts) for s in samples), "passages", flush=True)
    for encoder in filter(None, arguments.encoders.split(",")):
        found = evidence(samples, Vectors(encoder, arguments.cache, samples))
        names = [name for name in found[0].columns if name.startswith(ENCODERS_OWN)]
        np.savez_compressed(
            arguments.output / f"guard-table-{encoder}.npz",
            residual=upper([f.residual for f in found]),
            **columns_of(found, names),
        )
    if arguments.texts:
        found = evidence(samples, Vectors("lexical", arguments.cache, samples))
        np.savez_compressed(arguments.output / "guard-table.npz", **of_texts(samples, every, found))


def evidence(samples: Sequence[Sample], vectors: Vectors) -> list[Signs]:
    return [signs(s.question, s.texts, *vectors(s)) for s in samples]


def columns_of(found: Sequence[Signs], names: Sequence[str]) -> dict[str, np.ndarray]:
    codes, levels = quantised(np.stack([np.concatenate([f.columns[name] for f in found]) for name in names]))
    return {"names": np.array(names), "codes": codes, "levels": levels}


def of_texts(samples: Sequence[Sample], every: Sequence[Sample], found: Sequence[Signs]) -> dict[str, np.ndarray]:
    """What does not depend on the encoder: who is poison, evidence, styles, windows."""
    domains, domain = np.unique([s.domain for s in samples], return_inverse=True)
    attacks, attack = np.unique([s.attack for s in samples], return_inverse=True)
    said = [
        worded(f, style, lift)
        for f, style, lift in zip(found, unseen(samples, every, styled), lifted(samples, STYLE_SHIFT))
    ]
    looked = [
        windowed(s, style, lift)
        for s, style, lift in zip(samples, unseen(samples, every, style_of_windows), lifted(samples, WINDOW_SHIFT))
    ]
    wordings = np.stack([np.hstack([whole for whole, _ in said]), np.hstack([claim for _, claim in said])])
    style, style_scale = evenly(wordings)
    window_style, window_scale = evenly(np.hstack([s for s, _, _ in looked]))
    window_codes, window_levels = quantised(np.hstack([columns for _, columns, _ in looked]))
    return {
        "domains": domains,
        "domain": domain.astype(np.uint8),
        "attacks": attacks,
        "attack": attack.astype(np.uint8),
        "question": np.unique([s.question for s in samples], return_inverse=True)[1].astype(np.uint16),
        "size": np.array([len(s.texts) for s in samples], np.uint8),
        "poison": np.concatenate([s.poison for s in samples]),
        "overlap": upper([f.overlap for f in found]),
        "style": style,
        "style_scale": style_scale,
        "windows": np.concatenate([counts for _, _, counts in looked]).astype(np.uint8),
        "window_style": window_style,
        "window_scale": window_scale,
        "window_codes": window_codes,
        "window_levels": window_levels,
        **columns_of(found, [name for name in found[0].columns if not name.startswith(ENCODERS_OWN)]),
    }


if __name__ == "__main__":
    main()
