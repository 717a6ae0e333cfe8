"""Fit and measure the weights of `unpoison.kernels.orders`.

    python benchmarks/train_orders.py ../shared/data --output src/unpoison/data/orders.json
    python benchmarks/train_orders.py ../shared/data                     # measures the shipped weights

Fitted on orders of three sources (our own wordings in `orders_texts.py`, the attacks of this package, `orders.jsonl`)
and on clean passages; each passage is a bag of stretches, of which the most suspicious one stands for it. Kept aside:
whole kinds of each source, some wordings of the other kinds, three tenths of the questions, whole clean files, and
three tenths of the questions of the others (see `ASIDE`). The scale is shifted so that 0.5 is the threshold.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from guard_data import FREE
from orders_texts import BLIND, HONEST, QUOTING, WRITTEN
from orders_words import KINDS
from unpoison.attacks.base import Target
from unpoison.attacks.orders import KINDS as ATTACK_KINDS
from unpoison.evaluation import load, load_passages
from unpoison.evaluation.contexts import text_key
from unpoison.kernels.canonical import canonical
from unpoison.kernels.orders import THRESHOLD, WINDOW, Kinds, Lexicon, Weights, loaded, order, shipped, signs_of
from unpoison.registry import create

SEED = 0
LEAST_WEIGHT = 0.05
PENALTY = 0.7
SHARE = 6000.0
"""What the orders of each source weigh together; a clean stretch weighs 1."""

ROUNDS = 4
DEAR = {"honest": 30.0, "orders.jsonl": 30.0, "clean_software_docs": 5.0, "clean_faq_answers": 5.0}
"""How much an honest text of these families counts: few, and near to orders."""

FLAGGED = 0.0007
"""The share of the clean passages of the fit that may be called orders: a third of what is promised."""

CLEAN = ("clean_faq_answers", "clean_science", "clean_software_docs", "clean_wiki_en", "clean_wiki_de", "clean_wiki_zh",
         "nq_large_poisoned", "nq_retrieved", "hotpotqa_distractor", "timeqa", "ramdocs")  # fmt: skip
CLEAN_ASIDE = ("clean_faq_pairs", "clean_wiki_es", "msmarco_retrieved", "realtimeqa", "realtimeqa_weekly",
               "rgb_counterfactual", "biogen")  # fmt: skip

ASIDE = {
    "orders.jsonl": ("persuasion", "anagramming", "exfiltration/redirect-based", "prompt-injection/role-manipulation",
                     "prompt-injection/language-switching", "memory-poisoning/rag-poisoning"),
    "attacks": ("orders role", "conditional", "pia long", "pia link"),
}  # fmt: skip
"""Kinds that are never fitted. Of the attack `orders` only the first wording of each other kind is."""

PLAIN = ("information-retrieval", "learning-and-tutoring", "language-translation", "programming-help", "jailbreak")
"""Kinds of `orders.jsonl` that read as any question of a reader: no sign of theirs is worth having, so not fitted."""

BAD = ("Lisbon", "1974", "Margaret Hale", "the Ottoman Empire", "twelve", "sodium chloride", "July 1998", "Toyota")


@dataclass(frozen=True)
class Text:
    """One text: what it is, where from, and whether it was kept aside."""

    family: str
    kind: str
    text: str
    order: bool
    aside: bool


def held_out(text: str) -> bool:
    """Three tenths of the texts and questions, by a hash of their words."""
    return int.from_bytes(blake2b(text_key(text).encode(), digest_size=8).digest(), "little") % 1000 < 300


def targets(folder: Path) -> Iterator[tuple[str, str, str]]:
    """(question, right answer, wrong answer) of real questions."""
    for name in ("nq_poisoned", "hotpotqa_poisoned"):
        for i, example in enumerate(load(folder / f"{name}.jsonl").examples):
            right = example.correct_answers[0] if example.correct_answers else "yes"
            yield example.question, right, (example.incorrect_answers or BAD)[0] if i % 2 else BAD[i % len(BAD)]


def attacked(folder: Path) -> Iterator[Text]:
    """Orders with real questions in them."""
    asked = list(targets(folder))
    for number, (question, right, wrong) in enumerate(asked):
        test = held_out(question)
        target = Target(id=str(number), question=question, correct=(right,), incorrect=wrong)
        for kind, wordings in ATTACK_KINDS.items():
            for i, wording in enumerate(wordings):
                name, aside = f"orders {kind}", i > 0 or kind == "role"
                if aside or test or number % 4 == 0:
                    text = wording.format(question=question, answer=wrong)
                    yield Text("attacks", name, text, True, aside or test)
        for spec in ("pia:style=qa,repeat=1", "pia:style=dos", "pia:style=long,repeat=1", "pia:style=link",
                     "ambiguous:repeat=1", "conditional"):  # fmt: skip
            name = spec.partition(",")[0].replace(":style=", " ").partition(":")[0]
            if name in ASIDE["attacks"] or test or number % 4 == 0:
                (poison,) = create("attacks", spec).craft(target, 1)
                yield Text("attacks", name, poison.text, True, name in ASIDE["attacks"] or test)
    plain = [(q, wrong) for q, _, wrong in asked if not held_out(q)]
    place = 0
    for kind, wordings in WRITTEN.items():
        for wording in wordings:
            for _ in range(3):
                question, wrong = plain[place % len(plain)]
                place += 7
                yield Text("written", kind, wording.format(question=question, answer=wrong), True, False)
    for kind, wordings in BLIND.items():
        for i, wording in enumerate(wordings):
            yield Text("blind", kind, wording.format(question=plain[i][0], answer=plain[i][1]), True, True)


def given(folder: Path) -> Iterator[Text]:
    """`orders.jsonl`: whole kinds aside, and every fourth text of the others."""
    rows = map(json.loads, (folder / "orders.jsonl").read_text(encoding="utf-8").splitlines())
    for i, row in enumerate(rows):
        plain = row["kind"].startswith(PLAIN) and row["label"] == "order"
        aside = row["kind"] in ASIDE["orders.jsonl"] or plain or i % 4 == 3
        yield Text("orders.jsonl", row["kind"], row["text"], row["label"] == "order", aside)


def clean(folder: Path) -> Iterator[Text]:
    """Real passages that nobody attacked with, and honest texts of our own."""
    for name in (*CLEAN, *CLEAN_ASIDE):
        seen = set[str]()
        for example in load(folder / f"{name}.jsonl").examples:
            aside = name in CLEAN_ASIDE or held_out(example.question)
            for p in example.labelled("clean", "gold", "noise"):
                free = name.startswith("clean") or p.passage.source in FREE
                if p.passage.text not in seen and (free or aside):
                    seen.add(p.passage.text)
                    yield Text(name, "clean", p.passage.text, False, aside)
    for p in load_passages(folder / "corpus.jsonl"):
        if p.source in FREE:
            yield Text("corpus", "clean", p.text, False, held_out(p.text))
    for kind, texts in HONEST.items():
        for i, text in enumerate(texts):
            yield Text("honest", kind, text, False, i % 4 == 3)
    for i, text in enumerate(QUOTING):
        yield Text("honest", "quotes an order" if i < 4 else "speaks of orders", text, False, True)


def stretches(text: str, lexicon: Lexicon) -> list[frozenset[Kinds]]:
    """The sets of signs of all stretches that are not part of another one's."""
    found = list(signs_of(canonical(text).text, lexicon))
    made, first = list[frozenset[Kinds]](), 0
    for i, sign in enumerate(found):
        while found[first].word <= sign.word - WINDOW:
            first += 1
        if i + 1 == len(found) or found[i + 1].word - WINDOW >= found[first].word:
            made.append(frozenset(s.kinds for s in found[first : i + 1]))
    return list(dict.fromkeys(made))


def fit(orders: Sequence[Text], honest: Sequence[Text], lexicon: Lexicon) -> Weights:
    """Logistic regression without negative weights over the worst stretch of each text, found again in each round."""
    bags = [stretches(t.text, lexicon) for t in (*orders, *honest)]
    columns = {pair: i for i, pair in enumerate(sorted({p for bag in bags[: len(orders)] for s in bag for p in s}))}
    owner = np.repeat(np.arange(len(bags)), [max(len(bag), 1) for bag in bags])
    rows = [s for bag in bags for s in (bag or [frozenset()])]
    places = [[columns[p] for p in s if p in columns] for s in rows]
    x = csr_matrix(
        (np.ones(sum(map(len, places))), [c for p in places for c in p], np.cumsum([0, *map(len, places)])),
        shape=(len(rows), len(columns)),
    )
    bad = np.arange(len(bags)) < len(orders)
    share = [1.0] * len(orders)
    for family in ("orders.jsonl", "attacks", "written"):  # each source of orders has the same say
        inside = [i for i, t in enumerate(orders) if t.family == family]
        for i in inside:
            share[i] = SHARE / len(inside)
    weight_of = np.array([*share, *(DEAR.get(t.family, 1.0) for t in honest)])
    weights = np.ones(len(columns))
    for _ in range(ROUNDS):
        score = x @ weights
        best = np.full(len(bags), -np.inf)
        np.maximum.at(best, owner, score)
        # Clean texts are clean throughout; of an order only the worst stretch need be one.
        used = np.flatnonzero(~bad[owner] | (score == best[owner]))
        y, w, part = bad[owner[used]].astype(float), weight_of[owner[used]], x[used]

        theta = minimized(part, y, w, np.r_[-6.0, np.minimum(weights, 1)])
        weights = theta[1:]
    chosen = {pair: round(float(weights[i]), 2) for pair, i in columns.items() if weights[i] >= LEAST_WEIGHT}
    return Weights(lexicon, round(float(theta[0]), 2), chosen)


def minimized(x: csr_matrix, y: np.ndarray, importance: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The bias and the weights, each of these in [0, 6], of a logistic regression that pays for every weight."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        odds, weights = x @ theta[1:] + theta[0], theta[1:]
        pull = importance * (1 / (1 + np.exp(-np.clip(odds, -50, 50))) - y)
        value = (importance * (np.logaddexp(0, odds) - y * odds)).sum() + PENALTY * weights.sum()
        return value + 0.05 * (weights**2).sum(), np.r_[pull.sum(), x.T @ pull + PENALTY + 0.1 * weights]

    bounds = [(None, None), *[(0, 6)] * x.shape[1]]
    return minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x


def probabilities(texts: Iterable[Text], weights: Weights) -> np.ndarray:
    return np.array([order(canonical(t.text).text, weights).probability for t in texts])


def centred(weights: Weights, honest: Sequence[Text]) -> Weights:
    """The weights on a scale on which 0.5 flags at most `FLAGGED` of the clean passages that were fitted."""
    p = np.sort(probabilities([t for t in honest if t.kind == "clean"], weights))[::-1]
    cut = float(np.clip(p[int(FLAGGED * len(p))], 1e-9, 1 - 1e-9))
    return weights._replace(bias=round(weights.bias - np.log(cut / (1 - cut)) - 0.01, 2))


def table(texts: Sequence[Text], weights: Weights) -> Iterator[str]:
    """Share called an order, by family and kind."""
    flagged = dict(zip(texts, (probabilities(texts, weights) > THRESHOLD).tolist()))
    for label, title in ((True, "orders"), (False, "honest texts")):
        yield f"\n| {title} | kind | kept aside | n | called an order % |\n| --- | --- | --- | --- | --- |"
        groups = defaultdict[tuple[str, str, bool], list[bool]](list)
        for text, called in flagged.items():
            if text.order == label:
                groups[text.family, text.kind, text.aside].append(called)
                whole = "clean" if text.kind == "clean" else text.family
                groups[f"**all of {whole}**", "", text.aside].append(called)
        for (family, kind, aside), called in sorted(groups.items()):
            yield f"| {family} | {kind} | {'yes' if aside else ''} | {len(called)} | {100 * np.mean(called):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, help="fit, and write the weights there")
    parser.add_argument("--examples", type=int, default=0, help="print so many errors of each side")
    arguments = parser.parse_args()
    texts = [*attacked(arguments.folder), *given(arguments.folder), *clean(arguments.folder)]
    if arguments.output:
        fitted = [t for t in texts if not t.aside]
        honest = [t for t in fitted if not t.order]
        weights = centred(fit([t for t in fitted if t.order], honest, Lexicon(KINDS)), honest)
        signs = [[*pair, value] for pair, value in sorted(weights.weight.items(), key=lambda item: -item[1])]
        data = {"bias": weights.bias, "signs": signs, "kinds": KINDS}
        lines = ",\n".join(f'"{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in data.items())
        arguments.output.write_text(f"{{{lines}}}\n", encoding="utf-8")
        weights = loaded(data)
    else:
        weights = shipped()
    print(f"{len(weights.weight)} signs", *table(texts, weights), sep="\n")
    for label in (True, False):
        wrong = (
            t for t, p in zip(texts, probabilities(texts, weights)) if t.order == label and (p > THRESHOLD) != label
        )
        for text in islice(wrong, arguments.examples):
            found = order(canonical(text.text).text, weights)
            print(text.family, text.kind, f"{found.probability:.2f}", found.quote or text.text[:100], sep=" | ")


if __name__ == "__main__":
    main()
