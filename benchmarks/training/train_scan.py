"""Fit the weights by which a scan judges claims (`unpoison.scan.signs.CLAIM`), and measure what was set aside.

    python -m benchmarks train_scan evaluation-data --cache build/scan     # prints new weights beside the shipped ones

Fitted on: collections of `--passages` passages with poisons for half of the questions (by a hash of the question), of
those that Guard was not fitted on, and clean collections. Set aside: the other half of the questions, the trick
`poisonedrag-gemini`, and the clean collections of `ASIDE`; RealtimeQA is read by `scan.py` alone. `--leave-out msmarco`
also fits without a corpus. Weights have the sign that their meaning has; the base is shifted until of no collection of
the fit more than `FLAGGED` of the clean documents are flagged.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from benchmarks.data_option import BUILT, evaluation_folder
from benchmarks.quality.scan import CELLS, corpus_of, poisons_of, rows, shuffled
from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.guard_data import TEST_SHARE
from benchmarks.training.split import held_out
from unpoison.scan.collection import collect_documents
from unpoison.scan.engine import Engine
from unpoison.scan.scanner import judge_documents
from unpoison.scan.signs import CLAIM, WEIGHED, weigh

SETS = ("nq", "hotpotqa", "msmarco")
CLEAN = ("faq_answers", "science", "software_docs", "wiki_en")
ASIDE = ("faq_pairs", "wiki_de", "wiki_es", "wiki_zh")
TRICK, OTHER_TRICK = "poisonedrag", "poisonedrag-gemini"
PASSAGES = 2_000

LOWEST, HIGHEST = {"common": -2.0, "details": -2.0}, {"common": 0.0, "details": 0.0}
"""Bounds of the weights; what is not named is in [0, 6]."""

CLEAN_SIDE, FIT, SET_ASIDE = range(3)

PENALTY = 0.00003

PLANTED_WEIGHT = 0.1
"""What the planted documents of a collection weigh together: the fit looks at the few clean ones near them."""

FLAGGED = 0.004


class Case(NamedTuple):
    """One collection: what is weighed of each document, shape (n, columns), and its side, shape (n,)."""

    name: str
    fitted: bool
    evidence: np.ndarray
    side: np.ndarray


def _collections() -> Iterator[tuple[str, str, str, tuple[tuple[int, int, bool], ...]]]:
    """Each corpus with the file of its poison, the attack and the cells."""
    yield from ((name, f"{name}_poisoned", TRICK, CELLS) for name in SETS)
    yield from ((name, f"{name}_poisoned", OTHER_TRICK, CELLS[1:2]) for name in SETS)
    yield "nq", "nq_large_poisoned", f"{TRICK}-revprag", ((1, 30, True), (1, 30, False))


def _half(
    folder: Path, name: str, file: str, attack: str, per: int, count: int, front: bool, *, fitted: bool
) -> list[dict]:
    """The poison that is fitted on, or that which is set aside."""
    return poisons_of(
        folder, file, attack, per, count // (4 if per > 1 else 1), front, fitted=fitted,
        wanted=lambda question: name == "msmarco" or held_out(folder, question, TEST_SHARE),
    )  # fmt: skip


def cases(folder: Path, cache: Path, most: int = PASSAGES) -> Iterator[Case]:
    """All collections, of each at most so many clean passages."""
    for name, file, attack, cells in _collections():
        passages = corpus_of(folder, name)
        some = [passages[i] for i in np.random.default_rng(1).permutation(len(passages))[:most]]
        for per, count, front in cells:
            halves = [_half(folder, name, file, attack, per, count, front, fitted=side) for side in (True, False)]
            sides = {row["id"]: side for side, half in zip((FIT, SET_ASIDE), halves) for row in half}
            title = f"{file}, {attack}, {per} each, {'with' if front else 'without'} the question in front"
            trick = attack != OTHER_TRICK
            yield _case(title, trick, shuffled([*some, *halves[0], *halves[1]]), sides, cache)
    for name in (*CLEAN, *ASIDE):
        texts = dict.fromkeys(p["text"] for row in rows(folder, f"clean_{name}") for p in row["passages"])
        documents = [{"id": str(i), "text": t} for i, t in enumerate(texts)]
        if len(documents) > most:
            documents = [documents[i] for i in np.random.default_rng(2).permutation(len(documents))[:most]]
        yield _case(name, name in CLEAN, documents, {}, cache)


def fitted_documents(folder: Path) -> Iterator[str]:
    """The texts that weights are fitted on: the poison of the first halves, and the clean collections."""
    for name, file, attack, cells in _collections():
        yield from (passage["text"] for passage in corpus_of(folder, name))
        for per, count, front in cells:
            yield from (row["text"] for row in _half(folder, name, file, attack, per, count, front, fitted=True))
    for name in CLEAN:
        yield from (p["text"] for row in rows(folder, f"clean_{name}") for p in row["passages"])


def _case(name: str, fitted: bool, documents: list[dict], sides: dict[str, int], cache: Path) -> Case:
    """What the scan sees of a collection, kept in the cache: screening is nearly all of the time.

    Empty the cache when Guard or the number of passages has changed.
    """
    file = cache / f"{name.replace(', ', '-').replace(' ', '_')}.npz"
    side = np.array([sides.get(document["id"], CLEAN_SIDE) for document in documents])
    if file.exists():
        return Case(name, fitted, _evidence(np.load(file, allow_pickle=False)["rows"]), side)
    read = collect_documents(documents)
    found = judge_documents(read, np.ones(len(documents), bool), Engine(workers=1), lambda step, done, total: None)
    first = np.searchsorted(read.owner, np.arange(len(documents)))  # a document is judged by its first stretch here
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(file, rows=found.signs[first])
    return Case(name, fitted, _evidence(found.signs[first]), side)


def _evidence(seen: np.ndarray) -> np.ndarray:
    return weigh(seen, np.ones(len(seen), bool))


def fit(found: list[Case]) -> np.ndarray:
    """The weights and, last, the base: a logistic regression in which every collection has the same say."""
    x = np.concatenate([case.evidence[case.side < SET_ASIDE] for case in found])
    sides = [case.side[case.side < SET_ASIDE] for case in found]
    y = np.concatenate(sides).astype(float)
    share = np.concatenate([
        np.where(s, PLANTED_WEIGHT / max(s.sum(), 1), (1 - PLANTED_WEIGHT) / max((s == 0).sum(), 1)) for s in sides
    ])  # fmt: skip
    share /= share.sum()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        odds = x @ theta[:-1] + theta[-1]
        pull = share * (1 / (1 + np.exp(-np.clip(odds, -50, 50))) - y)
        value = (share * (np.logaddexp(0, odds) - y * odds)).sum() + PENALTY * (theta[:-1] ** 2).sum() / 2
        return value, np.r_[x.T @ pull + PENALTY * theta[:-1], pull.sum()]

    bounds = [(LOWEST.get(name, 0.0), HIGHEST.get(name, 6.0)) for name in WEIGHED]
    start = np.array([*(CLAIM[name] for name in WEIGHED), CLAIM["base"]])
    theta = minimize(loss, start, jac=True, bounds=[*bounds, (None, None)], method="L-BFGS-B").x
    theta[-1] -= max(_needed(odds_of(case, theta)[case.side == CLEAN_SIDE]) for case in found) + 1e-6
    return theta


def _needed(odds: np.ndarray) -> float:
    """What has to be taken from the odds of clean documents, so that `FLAGGED` of them are flagged."""
    return float(np.sort(odds)[::-1][int(FLAGGED * len(odds))])


def odds_of(case: Case, theta: np.ndarray) -> np.ndarray:
    return case.evidence @ theta[:-1] + theta[-1]


def table(found: list[Case], theta: np.ndarray) -> None:
    print("| collection | fitted | planted | first n | first 2n | flagged | clean flagged |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in found:
        for side in (FIT, SET_ASIDE) if case.side.any() else (CLEAN_SIDE,):
            chosen = np.isin(case.side, (CLEAN_SIDE, side))
            odds, planted = odds_of(case, theta)[chosen], case.side[chosen] > 0
            order, n = np.argsort(-odds, kind="stable"), int(planted.sum())
            shares = [f"{planted[order[: k * n]].sum() / n:.0%}" if n else "" for k in (1, 2)]
            caught = f"{np.mean(odds[planted] >= 0):.0%}" if n else ""
            wrong, fitted = f"{np.mean(odds[~planted] >= 0):.2%}", case.fitted and side != SET_ASIDE
            cells = (case.name, "yes" if fitted else "no", str(n), *shares, caught, wrong)
            print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=evaluation_folder, default=BUILT)
    parser.add_argument("--cache", type=Path, default=Path("build/scan"), help="what was seen of each collection")
    parser.add_argument("--leave-out", default="", metavar="CORPUS", help="fit without this one too")
    parser.add_argument("--passages", type=int, default=PASSAGES, help="clean passages of each collection, at most")
    given = parser.parse_args()
    refuse_test_texts(fitted_documents(given.folder))
    found = list(cases(given.folder, given.cache, given.passages))
    shipped = np.array([*(CLAIM[name] for name in WEIGHED), CLAIM["base"]])
    left = given.leave_out
    theta = fit([case for case in found if case.fitted and not (left and case.name.startswith(left))])
    print(", ".join(f'"{name}": {value:.2f}' for name, value in zip((*WEIGHED, "base"), theta)))
    for title, weights in (("the shipped weights", shipped), ("these weights", theta)):
        print(f"\n{title}\n")
        table(found, weights)


if __name__ == "__main__":
    main()
