"""Guard's tables: every cell of its goals, data sets and attacks left out, reliability.

    python benchmarks/guard_tables.py ../shared/data --encoder minilm > guard.md

What is kept is what `Guard.screen` keeps; only where coefficients are fitted again, without a set or an attack, are
these asked without the door before them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from guard_data import WRITTEN, measured_samples, training_samples
from guard_screens import Screened, cached_encoder, screen_all
from train_guard import DAMAGE, FAMILIES, Case, Vectors, Written, cases, fit, score, thresholds
from unpoison import Guard
from unpoison.defenses.guard.model import GuardModel
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
    encoder = cached_encoder(arguments.encoder, arguments.cache, [*measured, *test])
    guard = Guard(damage=arguments.damage, coefficients=arguments.encoder, encoder=encoder)
    found, own = screen_all(guard, measured, encoder), screen_all(guard, test, encoder)
    bar = float(found[0].screening.evidence["threshold"])
    print(f"## Guard, {arguments.encoder}, damage {arguments.damage}: threshold {bar:.3f}\n")
    goals(found)
    templates([one for one in own if one.sample.attack in TEMPLATES])
    clean_table([one for one in found if one.sample.attack == "none"])
    attack_table([one for one in found if one.sample.attack not in ("none", "5 clean + many")])
    many_table([one for one in found if one.sample.attack == "5 clean + many"])
    reliability([*found, *own])
    if not arguments.quick:
        train = [s for s in training_samples(arguments.folder) if s.attack != "garag"]
        vectors = Vectors(arguments.encoder, arguments.cache, [*test, *train])
        columns = GuardModel.load(arguments.encoder).columns
        left_out(cases(train, vectors), cases(test, vectors), columns, arguments.damage)


Found = Sequence[Screened]


def rate(hits: int, total: int) -> str:
    if not total:
        return "-"
    estimate = wilson(hits, total)
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


SAME = ("poisonedrag", "radar-incorrect-context")
"""Attacks that are measured with the question in front and without it, on the same questions."""

WITHOUT = ("poisonedrag", "tan", "poisonedrag-revprag")
"""Attacks whose poison is a fluent text of its own, without the question in front."""


def goals(found: Found) -> None:
    """The goals, each over all contexts that it is about."""
    clean = defaultdict(list)
    gold = defaultdict(list)
    for one in found:
        if one.sample.attack == "none":
            clean[one.sample.domain].extend(one.kept)
            if any(one.sample.gold):
                gold[one.sample.domain].append(keeps_gold(one))
    print("| measure | value |\n|---|---|")
    for name, sets in (("clean passages kept", clean), ("questions that keep a gold passage", gold)):
        worst = sorted(sets, key=lambda domain: np.mean(sets[domain]))[:2]
        value = "; ".join(f"{rate(int(np.sum(sets[domain])), len(sets[domain]))} ({domain})" for domain in worst)
        print(f"| {name} %, the two worst of {len(sets)} sets | {value} |")
    groups = {
        "question in front": lambda s: "in front" in s.attack and s.domain != "biogen",
        "question in front, biogen": lambda s: "in front" in s.attack and s.domain == "biogen",
        "the same texts without": lambda s: s.attack in SAME and s.domain != "biogen",
        "without: nq, hotpotqa, msmarco, RevPRAG, tan included": lambda s: s.attack in WITHOUT,
        "without: realtimeqa": lambda s: s.attack == "radar-incorrect-context" and s.domain == "realtimeqa",
        "paraphrase and synonym": lambda s: s.attack in ("paraphrase", "synonym"),
    }
    for name, inside in groups.items():
        cells = []
        for count in (1, 2, 3, 5):
            left = [one.tally.poisoned for one in found if inside(one.sample) and sum(one.sample.poison) == count]
            cells.append(rate(sum(left), len(left)))
        print(f"| any poison left %, {name}: 1 / 2 / 3 / 5 poisons | {' / '.join(cells)} |")
    print()


def keeps_gold(one: Screened) -> bool:
    return bool((np.array(one.sample.gold) & one.kept).any())


TEMPLATES = tuple(spec.partition(":")[0] for spec in WRITTEN if not spec.startswith("poisonedrag"))


def templates(found: Found) -> None:
    """This package's own attacks without a model, of which others of the same templates were fitted."""
    left = [one.tally.poisoned for one in found]
    print(f"Our own template attacks ({', '.join(TEMPLATES)}), any poison left: {rate(sum(left), len(left))} %\n")


def clean_table(found: Found) -> None:
    print(
        "| clean set | questions | clean passages kept % | questions that keep a gold passage % | questions touched % |"
    )
    print("|---|---|---|---|---|")
    for name, rows in grouped(found, lambda one: one.sample.domain).items():
        kept = sum(one.tally.clean_kept for one in rows)
        gold = [keeps_gold(one) for one in rows if any(one.sample.gold)]
        touched = sum(one.tally.damaged for one in rows)
        whole = sum(len(one.sample.texts) for one in rows)
        shares = rate(kept, whole), rate(sum(gold), len(gold)), rate(touched, len(rows))
        print(f"| {name} | {len(rows)} | {' | '.join(shares)} |")
    print()


def attack_table(found: Found) -> None:
    print("Contexts with any poison left, %, by number of poisons among ten passages:\n")
    print("| set | attack | 1 | 2 | 3 | 5 | clean kept % |\n|---|---|---|---|---|---|---|")
    for (name, attack), rows in grouped(found, lambda one: (one.sample.domain, one.sample.attack)).items():
        if attack == "as published":
            left = [one.tally.poisoned for one in rows if any(one.sample.poison)]
            line = [rate(sum(left), len(left)), "", "", ""]
        else:
            by = grouped(rows, lambda one: sum(one.sample.poison))
            line = []
            for count in (1, 2, 3, 5):
                left = [one.tally.poisoned for one in by.get(count, ())]
                line.append(rate(sum(left), len(left)))
        kept = sum(one.tally.clean_kept for one in rows)
        clean = sum(one.tally.clean_kept + one.tally.clean_dropped for one in rows)
        print(f"| {name} | {attack} | {' | '.join(line)} | {100 * kept / max(clean, 1):.1f} |")
    print()


def many_table(found: Found) -> None:
    print("| set | poisons against 5 clean | questions | precision / recall / F1 of removal | gold passages kept % |")
    print("|---|---|---|---|---|")
    for (name, count), rows in grouped(found, lambda one: (one.sample.domain, sum(one.sample.poison))).items():
        tallies = [one.tally for one in rows]
        hit, clean = sum(t.poison_dropped for t in tallies), sum(t.clean_dropped for t in tallies)
        missed, dropped = sum(t.poison_kept for t in tallies), hit + clean
        gold = sum(t.gold_kept for t in tallies), sum(t.gold_kept + t.gold_dropped for t in tallies)
        precision, recall = hit / max(dropped, 1), hit / max(hit + missed, 1)
        f1 = 2 * hit / max(dropped + hit + missed, 1)
        print(f"| {name} | {count} | {len(rows)} | {precision:.3f} / {recall:.3f} / {f1:.3f} | {rate(*gold)} |")
    print()


def reliability(found: Found) -> None:
    """How often a passage with a probability in each tenth is poison, at even odds of clean and poison."""
    counted = [one for one in found if one.sample.attack not in ("garag", "as published")]
    p = np.concatenate([one.probability for one in counted])
    y = np.concatenate([one.poison for one in counted])
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


def grouped(found: Found, key: Callable[[Screened], object]) -> dict:
    made = defaultdict(list)
    for one in found:
        made[key(one)].append(one)
    return dict(made)


if __name__ == "__main__":
    main()
