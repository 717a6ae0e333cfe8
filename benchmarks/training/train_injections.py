"""Fit and measure the weights of `unpoison.injections.linear`.

    python -m benchmarks train_injections evaluation-data --output src/unpoison/data/prompt-injection.npz
    python -m benchmarks train_injections evaluation-data --folds 4 --by family  # found and flagged, families left out
    python -m benchmarks train_injections evaluation-data --folds 4 --by source    # the same, repositories left out
    python -m benchmarks train_injections evaluation-data                          # measures the shipped weights

A logistic regression over stretches of one to three sentences. A text is as suspicious as its worst stretch, so the fit
goes round: of each injection the stretch that is most like one, of each harmless text and of what stands around an
injection those that were the worst of any round. N-grams are weighed by how rare they are. The threshold flags
`FLAGGED` of the harmless texts of families left out. What the grammar finds counts as found.
Everything is drawn with the seed `SEED`.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.injection_texts import ANSWERS, Text, all_texts, share
from unpoison.injections import THRESHOLD
from unpoison.injections.grammar import find_injections
from unpoison.injections.linear import FEW, MAX_SENTENCES, InjectionWeights, likely, unwrap
from unpoison.injections.ngram_hashes import hash_ngrams

SEED = 0

BITS = 18
"""Of a hash, so 2 ** 18 weights of a byte each."""

ROUNDS = 4
"""How often the worst stretches are looked for."""

ITERATIONS = 40
"""Of the solver, in each round."""

STRENGTH = 1.0
"""Of the weights against their penalty (`C`)."""

RARITY = 2.0
"""The power of an n-gram's inverse document frequency by which it is weighed."""

FEWEST = 2
"""Stretches of the fit that hold an n-gram with a weight."""

FAMILY = 8
"""A family of more injections counts as the root of this ratio."""

FLAGGED = 0.009
"""The share of the harmless texts of families left out that the threshold flags."""

SHARES = (0.002, 0.005, 0.01, 0.02)
"""Shares of all harmless texts flagged, for which the table says what is found."""

HELD = 3
"""Parts of the families of which one is left out in turn, to find the threshold."""


@dataclass(frozen=True)
class Stretches:
    """The stretches of n texts.

    Attributes:
        ids: The n-grams of all sentences, one after the other, as weights' places.
        first, last: Where each stretch begins and ends in these, shape (n stretches,).
        text: Whose it is, shape (n stretches,).
        inside: Whether it touches the injection, or is in a text that is one.
        begin: The first stretch of each text, shape (n texts + 1,).
    """

    ids: NDArray[np.int32]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    text: NDArray[np.int64]
    inside: NDArray[np.bool_]
    begin: NDArray[np.int64]


def stretches_of(texts: Sequence[Text]) -> Stretches:
    """The stretches of texts, of which each has a word."""
    ids, first, last, owner, inside = list[NDArray[np.int32]](), list[int](), list[int](), list[int](), list[bool]()
    reached = 0
    for number, text in enumerate(texts):
        grams = hash_ngrams([unwrap(text.text)])
        shift = np.uint64(64 - BITS)
        words = np.searchsorted(grams.word_start, np.append(grams.start, grams.end[-1:]))
        bounds, places = (
            [reached],
            list(zip((grams.start - grams.begin[0]).tolist(), (grams.end - grams.begin[0]).tolist())),
        )
        for i, (start, end) in enumerate(zip(grams.start.tolist(), grams.end.tolist())):
            parts = (grams.characters[:, start:end].ravel(), grams.words[:, words[i] : words[i + 1]].ravel())
            ids.append(np.concatenate([(part >> shift).astype(np.int32) for part in parts]))
            reached += len(ids[-1])
            bounds.append(reached)
        for size in range(1, MAX_SENTENCES + 1):
            for i in range(len(places) - size + 1):
                order = text.place
                touches = order is None or (places[i][0] < order[1] and places[i + size - 1][1] > order[0])
                first.append(bounds[i])
                last.append(bounds[i + size])
                owner.append(number)
                inside.append(touches)
    begin = np.searchsorted(owner, np.arange(len(texts) + 1))
    return Stretches(
        np.concatenate(ids), np.array(first), np.array(last), np.array(owner), np.array(inside, bool), begin
    )


def worst(held: Stretches, odds: NDArray[np.float64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The worst eligible stretch of each text; -1 without."""
    value = np.where(eligible, odds, -np.inf)
    order = np.lexsort((value, held.text))
    chosen = np.asarray(order[held.begin[1:] - 1])
    return np.where(np.isfinite(value[chosen]), chosen, -1)


def odds_of(held: Stretches, weight: NDArray[np.float64], bias: float) -> NDArray[np.float64]:
    """Log-odds of each stretch."""
    total = np.concatenate([[0.0], np.cumsum(weight[held.ids])])
    return np.asarray((total[held.last] - total[held.first]) / np.sqrt(held.last - held.first + FEW) + bias)


def matrix(held: Stretches, chosen: NDArray[np.int64]) -> sparse.csr_matrix:
    """Stretches by their n-grams."""
    length = held.last[chosen] - held.first[chosen]
    begin = np.concatenate([[0], np.cumsum(length)])
    place = np.arange(begin[-1]) - np.repeat(begin[:-1] - held.first[chosen], length)
    value = np.repeat(1 / np.sqrt(length + FEW), length).astype(np.float32)
    made = sparse.csr_matrix((value, held.ids[place], begin), shape=(len(chosen), 2**BITS))
    made.sum_duplicates()
    return made


def fitted(texts: Sequence[Text], held: Stretches, used: NDArray[np.bool_]) -> tuple[NDArray[np.float64], float]:
    """Weights and bias, from the texts that are used."""
    label = np.array([text.injection for text in texts])
    families = Counter(text.family for text in texts if text.injection)
    counts = np.array([min(1.0, (FAMILY / families[t.family]) ** 0.5) if t.injection else 1.0 for t in texts])
    odds = np.random.default_rng(SEED).random(len(held.text)) * 1e-3
    harmless = ~label[held.text] | ~held.inside
    against, weight, bias = set[int](), np.zeros(2**BITS), 0.0
    model, scale = LogisticRegression(C=STRENGTH, max_iter=ITERATIONS, tol=1e-3, warm_start=True), np.zeros(0)
    for number in range(ROUNDS):
        best = worst(held, odds, held.inside)[used & label]
        near = worst(held, odds, harmless)[used]
        against.update(i for i in near.tolist() if i >= 0 and (number == 0 or odds[i] > -5))
        chosen = np.concatenate([best, np.array(sorted(against))])
        is_injection = np.arange(len(chosen)) < len(best)
        rows = matrix(held, chosen)
        scale = rarity(rows) if number == 0 else scale
        parts = np.where(is_injection, counts[held.text[chosen]], 1.0)
        model.fit(rows @ sparse.diags(scale.astype(np.float32)), is_injection, sample_weight=parts)
        weight, bias = model.coef_[0] * scale, float(model.intercept_[0])
        odds = odds_of(held, weight, bias)
    return weight, bias


def rarity(rows: sparse.csr_matrix) -> NDArray[np.float64]:
    """How much each n-gram is weighed."""
    seen = np.bincount(rows.indices, minlength=2**BITS)
    scale = np.asarray(0.5 * np.log(rows.shape[0] / (seen + 1.0)) ** RARITY)
    scale[seen < FEWEST] = 0
    scale[0] = 0  # what hashes to 0 does not count
    return scale


def left_out(texts: Sequence[Text], held: Stretches, folds: int, by: str) -> NDArray[np.float64]:
    """The log-odds of each text by weights that were fitted without its family or source; nan for our own."""
    keys = [text.source if by == "source" and text.given else text.family for text in texts]
    fold = np.array([int(share(key) * folds) for key in keys])
    own = np.array([not text.given and text.near for text in texts])
    found = np.full(len(texts), np.nan)
    for number in range(folds):
        aside = (fold == number) & ~own
        odds = odds_of(held, *fitted(texts, held, ~aside))
        found[aside] = odds[worst(held, odds, np.ones(len(odds), bool))][aside]
    return found


def cut_of(texts: Sequence[Text], odds: NDArray[np.float64]) -> float:
    """The log-odds above which `FLAGGED` of the harmless texts lie that are near to injections."""
    near = [value for text, value in zip(texts, odds) if text.given and not text.injection and not np.isnan(value)]
    return float(np.quantile(near, 1 - FLAGGED))


def curve(texts: Sequence[Text], odds: NDArray[np.float64]) -> Iterator[str]:
    """What the weights find alone, by how many of the harmless texts of `injections.jsonl` they flag."""
    given = [(text, value) for text, value in zip(texts, odds) if text.given]
    harmless = [value for text, value in given if not text.injection]
    injection = np.array([value for text, value in given if text.injection])
    yield "\n| harmless texts flagged % | injections found % | at log-odds |\n| ---: | ---: | ---: |"
    for flagged in SHARES:
        cut = np.quantile(harmless, 1 - flagged)
        yield f"| {100 * flagged:.1f} | {100 * np.mean(injection > cut):.1f} | {cut:.2f} |"


def table(texts: Sequence[Text], called: Sequence[bool], key: str) -> Iterator[str]:
    """Shares called an injection."""
    groups = defaultdict[tuple[bool, str], list[bool]](list)
    for text, flagged in zip(texts, called):
        groups[not text.injection, getattr(text, key)].append(flagged)
        groups[not text.injection, "**all**"].append(flagged)
    yield f"\n| | {key} | n | called an injection % |\n| --- | --- | ---: | ---: |"
    for (harmless, name), flags in sorted(groups.items()):
        yield f"| {'harmless' if harmless else 'injection'} | {name} | {len(flags)} | {100 * np.mean(flags):.1f} |"


def quantised(weight: NDArray[np.float64], bias: float) -> InjectionWeights:
    """Weights of a byte each."""
    unit = float(np.quantile(np.abs(weight[weight != 0]), 0.9995)) / 127
    return InjectionWeights(np.clip(np.round(weight / unit), -127, 127).astype(np.int8), unit, bias)


def weights_without(texts: Sequence[Text], aside: Callable[[Text], bool]) -> InjectionWeights:
    """What would be shipped if some texts were not there."""
    used = [text for text in texts if not aside(text) and len(hash_ngrams([text.text]).start)]
    held = stretches_of(used)
    cut = cut_of(used, left_out(used, held, HELD, "family"))
    weight, bias = fitted(used, held, np.ones(len(used), bool))
    return without_answers(quantised(weight, bias - cut))


FRAMES = ("{}", "in {}", "in {}.", "is {}.", "say {}.", "answer {}.", "at {}.", "by {}.", ". {}", "{}. ")


def without_answers(weights: InjectionWeights) -> InjectionWeights:
    """Weights that the answers which our own wordings are filled with do not speak for: a name is no injection."""
    weight = weights.weight.copy()
    names = {name for answer in ANSWERS for name in (answer, *answer.split()) if len(name) > 3 or name.isdigit()}
    for frame in FRAMES:
        plain = _places(frame.format("Qqqq"), len(weight))
        for name in sorted(names):
            own = np.setdiff1d(_places(frame.format(name), len(weight)), plain)
            weight[own] = np.minimum(weight[own], 0)
    return weights._replace(weight=weight)


def _places(text: str, size: int) -> NDArray[np.int64]:
    """Where the n-grams of a text stand among the weights."""
    grams = hash_ngrams([text])
    codes = np.concatenate([np.ravel(grams.characters), np.ravel(grams.words)]).astype(np.uint64)
    return np.unique(codes[codes > 0] >> np.uint64(64 - size.bit_length() + 1)).astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--output", type=Path, help="fit, and write the weights there")
    parser.add_argument("--folds", type=int, default=0, help="leave out so many parts in turn, and print what is found")
    parser.add_argument("--by", choices=("family", "source"), default="family")
    arguments = parser.parse_args()
    texts = [text for text in all_texts(arguments.folder) if len(hash_ngrams([text.text]).start)]
    refuse_test_texts(text.text for text in texts)
    if not arguments.folds and not arguments.output:
        called = (likely([text.text for text in texts]) > THRESHOLD).tolist()
        print(*table(texts, called, "kind"), *table(texts, called, "language"), sep="\n")
        return
    held = stretches_of(texts)
    odds = left_out(texts, held, arguments.folds or HELD, arguments.by)
    cut = cut_of(texts, odds)
    given = [i for i, text in enumerate(texts) if not np.isnan(odds[i])]
    chosen = [texts[i] for i in given]
    listed = find_injections([text.text for text in chosen])
    called = [bool(odds[i] > cut) or n in listed for n, i in enumerate(given)]
    print(f"seed {SEED}, {len(texts)} texts, left out by {arguments.by}; threshold {cut:.2f}")
    print(*curve(chosen, odds[given]), sep="\n")
    for key in ("kind", "language"):
        print(*table(chosen, called, key), sep="\n")
    print("\nBy the grammar alone:", *table(chosen, [n in listed for n in range(len(chosen))], "kind"), sep="\n")
    if arguments.output:
        weight, bias = fitted(texts, held, np.ones(len(texts), bool))
        weights = without_answers(quantised(weight, bias - cut))
        np.savez_compressed(arguments.output, **weights._asdict())
        print(f"{arguments.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
