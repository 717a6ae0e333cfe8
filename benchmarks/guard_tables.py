"""Guard's tables: every cell of its goals, data sets and attacks left out, reliability.

python benchmarks/guard_tables.py ../shared/data --encoder minilm > guard.md
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from guard_data import WRITTEN, measured_samples, training_samples
from train_guard import DAMAGE, FAMILIES, Case, Vectors, Written, cases, fit, score, thresholds
from unpoison.defenses.guard_model import GuardModel
from unpoison.evaluation import wilson

PUBLISHED = ("poisonedrag", "poisonedrag-gpt4", "poisonedrag-gemini", "poisonedrag-gemini-long", "tan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--cache", type=Path, default=Path("build/guard"))
    parser.add_argument("--damage", type=float, default=0.02)
    parser.add_argument("--quick", action="store_true", help="without leaving sets and attacks out")
    arguments = parser.parse_args()

    measured = measured_samples(arguments.folder)
    test = [s for s in training_samples(arguments.folder, test=True) if s.attack != "garag"]
    train = [] if arguments.quick else [s for s in training_samples(arguments.folder) if s.attack != "garag"]
    vectors = Vectors(arguments.encoder, arguments.cache, [*measured, *test, *train])
    seen, own, fitted = cases(measured, vectors), cases(test, vectors), cases(train, vectors)
    model = GuardModel.load(arguments.encoder)
    bar = model.threshold(arguments.damage)
    print(f"## Guard, {arguments.encoder}, damage {arguments.damage}: threshold {bar:.3f}\n")
    found = [(case, score(model, case)) for case in seen]
    goals(found, bar)
    templates([(case, score(model, case)) for case in own if case.sample.attack in TEMPLATES], bar)
    clean_table([pair for pair in found if pair[0].sample.attack == "none"], bar)
    attack_table([pair for pair in found if pair[0].sample.attack not in ("none", "5 clean + many")], bar)
    many_table([pair for pair in found if pair[0].sample.attack == "5 clean + many"], bar)
    reliability([*found, *((case, score(model, case)) for case in own)])
    if fitted:
        left_out(fitted, own, model.columns, arguments.damage)


Scored = Sequence[tuple[Case, np.ndarray]]


def rate(hits: int, total: int) -> str:
    if not total:
        return "-"
    estimate = wilson(hits, total)
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


WITHOUT = ("poisonedrag", "tan", "poisonedrag-revprag")
"""Attacks whose poison is a fluent text of its own, without the question in front."""


def goals(found: Scored, bar: float) -> None:
    """The goals, each over all contexts that it is about."""
    clean = defaultdict(list)
    gold = defaultdict(list)
    for case, p in found:
        if case.sample.attack == "none":
            clean[case.sample.domain].extend(p <= bar)
            if any(case.sample.gold):
                gold[case.sample.domain].append(bool((np.array(case.sample.gold) & (p <= bar)).any()))
    print("| measure | value |\n|---|---|")
    for name, sets in (("clean passages kept", clean), ("questions that keep a gold passage", gold)):
        worst = sorted(sets, key=lambda domain: np.mean(sets[domain]))[:2]
        value = "; ".join(f"{rate(int(np.sum(sets[domain])), len(sets[domain]))} ({domain})" for domain in worst)
        print(f"| {name} %, the two worst of {len(sets)} sets | {value} |")
    groups = {
        "question in front": lambda s: "in front" in s.attack and s.domain != "biogen",
        "question in front, biogen": lambda s: "in front" in s.attack and s.domain == "biogen",
        "without: nq, hotpotqa, msmarco, RevPRAG, tan included": lambda s: s.attack in WITHOUT,
        "without: realtimeqa": lambda s: s.attack == "radar-incorrect-context" and s.domain == "realtimeqa",
        "paraphrase and synonym": lambda s: s.attack in ("paraphrase", "synonym"),
    }
    for name, inside in groups.items():
        cells = []
        for count in (1, 2, 3, 5):
            left = [
                bool((c.poison & (p <= bar)).any()) for c, p in found if inside(c.sample) and c.poison.sum() == count
            ]
            cells.append(rate(sum(left), len(left)))
        print(f"| any poison left %, {name}: 1 / 2 / 3 / 5 poisons | {' / '.join(cells)} |")
    print()


TEMPLATES = tuple(spec.partition(":")[0] for spec in WRITTEN if not spec.startswith("poisonedrag"))


def templates(found: Scored, bar: float) -> None:
    """This package's own attacks without a model, of which others of the same templates were fitted."""
    left = [bool((c.poison & (p <= bar)).any()) for c, p in found]
    print(f"Our own template attacks ({', '.join(TEMPLATES)}), any poison left: {rate(sum(left), len(left))} %\n")


def clean_table(found: Scored, bar: float) -> None:
    print(
        "| clean set | questions | clean passages kept % | questions that keep a gold passage % | questions touched % |"
    )
    print("|---|---|---|---|---|")
    for name, rows in grouped(found, lambda case: case.sample.domain).items():
        kept = sum(int((p <= bar).sum()) for _, p in rows)
        whole = sum(len(p) for _, p in rows)
        gold = [bool((np.array(c.sample.gold) & (p <= bar)).any()) for c, p in rows if any(c.sample.gold)]
        touched = sum(bool((p > bar).any()) for _, p in rows)
        shares = rate(kept, whole), rate(sum(gold), len(gold)), rate(touched, len(rows))
        print(f"| {name} | {len(rows)} | {' | '.join(shares)} |")
    print()


def attack_table(found: Scored, bar: float) -> None:
    print("Contexts with any poison left, %, by number of poisons among ten passages:\n")
    print("| set | attack | 1 | 2 | 3 | 5 | clean kept % |\n|---|---|---|---|---|---|---|")
    for (name, attack), rows in grouped(found, lambda case: (case.sample.domain, case.sample.attack)).items():
        if attack == "as published":
            left = [bool((c.poison & (p <= bar)).any()) for c, p in rows if c.poison.any()]
            line = [rate(sum(left), len(left)), "", "", ""]
        else:
            by = grouped(rows, lambda case: int(case.poison.sum()))
            line = []
            for count in (1, 2, 3, 5):
                left = [bool((c.poison & (p <= bar)).any()) for c, p in by.get(count, ())]
                line.append(rate(sum(left), len(left)))
        kept = sum(int((~c.poison & (p <= bar)).sum()) for c, p in rows)
        clean = sum(int((~c.poison).sum()) for c, _ in rows)
        print(f"| {name} | {attack} | {' | '.join(line)} | {100 * kept / max(clean, 1):.1f} |")
    print()


def many_table(found: Scored, bar: float) -> None:
    print("| set | poisons against 5 clean | questions | precision / recall / F1 of removal | gold passages kept % |")
    print("|---|---|---|---|---|")
    for (name, count), rows in grouped(found, lambda case: (case.sample.domain, int(case.poison.sum()))).items():
        hit = sum(int((c.poison & (p > bar)).sum()) for c, p in rows)
        dropped, poison = sum(int((p > bar).sum()) for _, p in rows), sum(int(c.poison.sum()) for c, _ in rows)
        gold = np.concatenate([np.array(c.sample.gold) for c, _ in rows])
        kept = np.concatenate([p <= bar for _, p in rows])
        precision, recall = hit / max(dropped, 1), hit / max(poison, 1)
        f1 = 2 * hit / max(dropped + poison, 1)
        print(f"| {name} | {count} | {len(rows)} | {precision:.3f} / {recall:.3f} / {f1:.3f} | "
              f"{rate(int((gold & kept).sum()), int(gold.sum()))} |")  # fmt: skip
    print()


def reliability(found: Scored) -> None:
    """How often a passage with a probability in each tenth is poison, at even odds of clean and poison."""
    p = np.concatenate([p for _, p in found if _.sample.attack not in ("garag", "as published")])
    y = np.concatenate([c.poison for c, _ in found if c.sample.attack not in ("garag", "as published")])
    w = np.where(y, 0.5 / y.sum(), 0.5 / (~y).sum())
    print("| probability | passages | share of poison, clean and poison weighing the same |\n|---|---|---|")
    for low in np.arange(0, 1, 0.1):
        inside = (p >= low) & (p < low + 0.1 + 1e-9 * (low > 0.85))
        if inside.any():
            print(
                f"| {low:.1f} to {low + 0.1:.1f} | {int(inside.sum())} | {w[inside & y].sum() / w[inside].sum():.2f} |"
            )
    print()


def left_out(fitted: Sequence[Case], own: Sequence[Case], columns: tuple[str, ...], damage: float) -> None:
    print("Fitted again without one family of data sets, then without one attack, with thresholds by cross-fitting;")
    print("measured on held-out questions of what was left out:\n")
    print("| left out | threshold | clean kept % | contexts with any poison left % |\n|---|---|---|---|")
    for family, starts in FAMILIES.items():
        inside = lambda case, starts=starts: case.sample.domain.startswith(starts)  # noqa: E731
        line(family, [c for c in fitted if not inside(c)], [c for c in own if inside(c)], columns, damage)
    for attack in PUBLISHED:
        rest = [c for c in fitted if c.sample.attack != attack]
        line(attack, rest, [c for c in own if c.sample.attack == attack], columns, damage)


def line(name: str, rest: Sequence[Case], target: Sequence[Case], columns: tuple[str, ...], damage: float) -> None:
    style, columns_of_wording = Written()("rest", rest)
    data, probabilities = fit(rest, columns, columns_of_wording, per_set=False)
    model = GuardModel.of(
        {
            **data,
            "bound": 1.0,
            "ordinary": 0.0,
            "damage": list(DAMAGE),
            "thresholds": thresholds(rest, probabilities, 1.0),
        },
        style,
    )
    bar = model.threshold(damage)
    found = [(case, score(model, case)) for case in target]
    kept = sum(int((~c.poison & (p <= bar)).sum()) for c, p in found)
    left = [bool((c.poison & (p <= bar)).any()) for c, p in found if c.poison.any()]
    clean = sum(int((~c.poison).sum()) for c, _ in found)
    print(f"| {name} | {bar:.3f} | {rate(kept, clean)} | {rate(sum(left), len(left))} |", flush=True)


def grouped(found: Scored, key: Callable[[Case], object]) -> dict:
    made = defaultdict(list)
    for pair in found:
        made[key(pair[0])].append(pair)
    return dict(made)


if __name__ == "__main__":
    main()
