"""Fit the weights by which a scan judges claims (`unpoison.at_rest.judging.CLAIM`), and measure what was set aside.

    python benchmarks/train_scan.py ../shared/data --cache build/scan     # prints new weights beside the shipped ones

Fitted on: collections of 700 passages with poisons for half of the questions (by a hash of the question), of those that
Guard was not fitted on, and clean collections. Set aside: the other half of the questions, the trick
`poisonedrag-gemini`, and the clean collections of `ASIDE`. `--leave-out msmarco` also fits without a corpus. Weights
have the sign that their meaning has; the base is shifted until `FLAGGED` of the clean documents of the fit are flagged.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from guard_data import TEST_SHARE
from scan import CELLS, planted, rows
from split import held_out
from unpoison.at_rest.collection import collected
from unpoison.at_rest.judging import CLAIM, WEIGHED, weighed
from unpoison.at_rest.scanning import judged
from unpoison.at_rest.screens import Engine

SETS = ("nq", "hotpotqa", "msmarco")
CLEAN = ("faq_answers", "science", "software_docs", "wiki_en")
ASIDE = ("faq_pairs", "wiki_de", "wiki_es", "wiki_zh")
TRICK, OTHER_TRICK = "poisonedrag", "poisonedrag-gemini"
PASSAGES = 700

LOWEST = {"third": -6.0, "usual": -2.0, "common": -2.0}
HIGHEST = {"third": 0.0, "usual": 0.0, "common": 0.0}
"""Bounds of the weights; what is not named is in [0, 6]."""

PENALTY = 0.02
FLAGGED = 0.004


class Case(NamedTuple):
    """One collection: what is weighed of each document, shape (n, columns), and which are planted, shape (n,)."""

    name: str
    fitted: bool
    evidence: np.ndarray
    planted: np.ndarray


def cases(folder: Path, cache: Path) -> Iterator[Case]:
    for name in SETS:
        for attack, per, count, front, fitted in (
            *((TRICK, *cell, fitted) for cell in CELLS for fitted in (True, False)),
            *((OTHER_TRICK, *cell, False) for cell in CELLS[1:2]),
        ):
            documents, poisons = planted(
                folder, name, attack, per, count, front, fitted=fitted, passages=PASSAGES,
                wanted=lambda question, name=name: name == "msmarco" or held_out(folder, question, TEST_SHARE),
            )  # fmt: skip
            title = f"{name}, {attack}, {per} each, {'with' if front else 'without'} the question in front"
            if poisons:
                yield _case(title, fitted, documents, poisons, cache)
    for name in (*CLEAN, *ASIDE):
        texts = dict.fromkeys(p["text"] for row in rows(folder, f"clean_{name}") for p in row["passages"])
        yield _case(name, name in CLEAN, [{"id": str(i), "text": t} for i, t in enumerate(texts)], set(), cache)


def _case(name: str, fitted: bool, documents: list[dict], poisons: set[str], cache: Path) -> Case:
    """What the scan sees of a collection, kept in the cache: screening is nearly all of the time."""
    file = cache / f"{name.replace(', ', '-').replace(' ', '_')}-{fitted}.npz"
    if file.exists():
        held = np.load(file, allow_pickle=False)
        return Case(name, fitted, held["evidence"], held["planted"])
    read = collected(documents)
    found = judged(read, np.ones(len(documents), bool), Engine(workers=1), lambda step, done, total: None)
    first = np.searchsorted(read.owner, np.arange(len(documents)))  # a document is judged by its first stretch here
    evidence = weighed(found.signs.rows)[first]
    bad = np.array([document.id in poisons for document in read.documents])
    cache.mkdir(parents=True, exist_ok=True)
    np.savez(file, evidence=evidence, planted=bad)
    return Case(name, fitted, evidence, bad)


def fit(found: list[Case]) -> np.ndarray:
    """The weights and, last, the base: a logistic regression in which every collection has the same say."""
    x = np.concatenate([case.evidence for case in found])
    y = np.concatenate([case.planted for case in found]).astype(float)
    share = np.concatenate([
        np.where(case.planted, 0.5 / max(case.planted.sum(), 1), 0.5 / max((~case.planted).sum(), 1)) for case in found
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
    clean = np.sort(np.concatenate([odds_of(case, theta)[~case.planted] for case in found if not case.planted.any()]))
    theta[-1] -= clean[::-1][int(FLAGGED * len(clean))] + 1e-6
    return theta


def odds_of(case: Case, theta: np.ndarray) -> np.ndarray:
    return case.evidence @ theta[:-1] + theta[-1]


def table(found: list[Case], theta: np.ndarray) -> None:
    print("| collection | fitted | planted | first n | first 2n | flagged | clean flagged |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case in found:
        odds, n = odds_of(case, theta), int(case.planted.sum())
        order = np.argsort(-odds, kind="stable")
        shares = [f"{case.planted[order[: k * n]].sum() / n:.0%}" if n else "" for k in (1, 2)]
        caught = f"{np.mean(odds[case.planted] >= 0):.0%}" if n else ""
        wrong = f"{np.mean(odds[~case.planted] >= 0):.2%}"
        print(f"| {case.name} | {'yes' if case.fitted else 'no'} | {n} | {' | '.join(shares)} | {caught} | {wrong} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--cache", type=Path, default=Path("build/scan"), help="what was seen of each collection")
    parser.add_argument("--leave-out", default="", metavar="CORPUS", help="fit without this one too")
    given = parser.parse_args()
    found = list(cases(given.folder, given.cache))
    shipped = np.array([*(CLAIM[name] for name in WEIGHED), CLAIM["base"]])
    left = given.leave_out
    theta = fit([case for case in found if case.fitted and not (left and case.name.startswith(left))])
    print(", ".join(f'"{name}": {value:.2f}' for name, value in zip((*WEIGHED, "base"), theta)))
    for title, weights in (("the shipped weights", shipped), ("these weights", theta)):
        print(f"\n{title}\n")
        table(found, weights)


if __name__ == "__main__":
    main()
