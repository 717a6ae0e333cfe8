"""Fit and measure the weights of `unpoison.kernels.orders`.

    python benchmarks/train_orders.py ../shared/data --output src/unpoison/data/orders.json
    python benchmarks/train_orders.py ../shared/data                     # measures the shipped weights

Fitted on orders of three sources (our own wordings in `texts/`, the attacks of this package, `orders.jsonl`), on clean
passages and on honest texts of our own that look like orders. Kept aside: whole kinds of each source, a tenth of our
own wordings, three tenths of the questions, whole clean files, and three tenths of the questions of the others (see
`ASIDE`); and `orders_blind`, written by somebody who had seen nothing of this. The scale is shifted so that 0.5 is the
threshold.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from docstrings import REFERENCE, REFERENCE_ASIDE, SHORTEST_PARAGRAPH, documentation_of
from guard_data import FREE
from orders_fit import Corpus, Example, fitted, word_kinds, worst
from orders_texts import FOLDER, filled, wordings
from orders_words import KINDS
from unpoison.attacks.base import Target
from unpoison.attacks.orders import KINDS as ATTACK_KINDS
from unpoison.evaluation import load, load_passages
from unpoison.evaluation.contexts import text_key
from unpoison.kernels.canonical import canonical
from unpoison.kernels.order_signs import signs
from unpoison.kernels.orders import THRESHOLD, OrderWeights, loaded, order, shipped
from unpoison.registry import create

OWN = {"orders_english": 4, "orders_longer": 3, "orders_other": 3, "orders_older": 1, "honest_english": 2,
       "honest_other": 2, "honest_older": 1}  # fmt: skip
"""Our texts of the fit, and how often each wording is filled."""

OWN_ASIDE = ("orders_first_blind", "honest_quotes")
"""Texts of ours that are only measured."""

LEAST_USES = 10
"""A word that so many wordings use is a kind of its own."""

ORDER_WEIGHT, ATTACK_WEIGHT, HONEST_WEIGHT = 8.0, 48.0, 6.0
"""What a wording of an order, one of the attacks, and an honest text near to orders count; a clean stretch counts 1."""

FLAGGED = 0.002
"""The share of the clean passages of the fit that weights fitted on half of them may call orders; those of the whole
fit call fewer, also of other kinds of text."""

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

DOCUMENTATION = ("documentation", "docstrings")
"""Families of texts that speak of models and inputs on every page: no measure of how often other texts are flagged."""

QUOTING = frozenset({"orders", "threat", "pia", "attacks", "phantom", "jamming", "conditional", "guard", "redteam"})
"""Pages of the documentation that quote orders."""

LONGEST_PARAGRAPH = 2000
"""Characters."""

BAD = ("Lisbon", "1974", "Margaret Hale", "the Ottoman Empire", "twelve", "sodium chloride", "July 1998", "Toyota")


@dataclass(frozen=True)
class Text:
    """One text: what it is, where from, whether it was kept aside, and the wording of which it is one filling."""

    family: str
    kind: str
    text: str
    order: bool
    aside: bool
    wording: str = ""


def share(text: str) -> float:
    """A number in [0, 1) by a hash of the words."""
    return int.from_bytes(blake2b(text_key(text).encode(), digest_size=8).digest(), "little") % 1000 / 1000


def held_out(text: str) -> bool:
    """Three tenths of the texts and questions."""
    return share(text) < 0.3


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
        for kind, choices in ATTACK_KINDS.items():
            for i, wording in enumerate(choices):
                name, aside = f"orders {kind}", i > 0 or kind == "role"
                if aside or test or number % 4 == 0:
                    text = wording.format(question=question, answer=wrong)
                    yield Text("attacks", name, text, True, aside or test, wording)
        for spec in ("pia:style=qa,repeat=1", "pia:style=dos", "pia:style=long,repeat=1", "pia:style=link",
                     "ambiguous:repeat=1", "conditional"):  # fmt: skip
            name = spec.partition(",")[0].replace(":style=", " ").partition(":")[0]
            if name in ASIDE["attacks"] or test or number % 4 == 0:
                (poison,) = create("attacks", spec).craft(target, 1)
                yield Text("attacks", name, poison.text, True, name in ASIDE["attacks"] or test, spec)


def given(folder: Path) -> Iterator[Text]:
    """`orders.jsonl`: whole kinds aside, and every fourth text of the others."""
    rows = map(json.loads, (folder / "orders.jsonl").read_text(encoding="utf-8").splitlines())
    for i, row in enumerate(rows):
        plain = row["kind"].startswith(PLAIN) and row["label"] == "order"
        aside = row["kind"] in ASIDE["orders.jsonl"] or plain or i % 4 == 3
        yield Text("orders.jsonl", row["kind"], row["text"], row["label"] == "order", aside, row["text"])


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


def documented() -> Iterator[Text]:
    """This package's documentation, which speaks of models, answers and prompts on every page; half of it aside."""
    for page in sorted(Path(__file__).parents[1].joinpath("docs").rglob("*.md")):
        if not QUOTING.intersection(page.stem.split("-")):
            for part in page.read_text(encoding="utf-8").split("\n\n"):
                if len(part) > SHORTEST_PARAGRAPH:
                    yield Text("documentation", "clean", part[:LONGEST_PARAGRAPH], False, share(page.name) < 0.5)


def docstrings() -> Iterator[Text]:
    """What Python packages say of their functions: inputs, outputs, messages, models, and what one must and may do."""
    for name in (*REFERENCE, *REFERENCE_ASIDE):
        for part in documentation_of(name):
            yield Text("docstrings", "clean", part.text[:LONGEST_PARAGRAPH], False, name in REFERENCE_ASIDE)


def own(folder: Path) -> Iterator[Text]:
    """Our orders and honest texts, with questions and wrong answers in them; a tenth of the wordings aside."""
    asked = [(question, wrong) for question, _, wrong in targets(folder) if not held_out(question)]
    random, place = Random(0), 0
    for name in (*OWN, *OWN_ASIDE):
        label, part = name.startswith("orders"), name.partition("_")[2].replace("_", " ")
        for kind, wording in wordings(name):
            texts = set[str]()
            for _ in range(OWN.get(name, 1)):
                question, wrong = asked[place % len(asked)]
                place += 7
                texts.add(filled(wording, random, question=question, answer=wrong))
            aside = name in OWN_ASIDE or share(wording) < 0.1
            for text in sorted(texts):
                yield Text(f"{'written' if label else 'honest'}, {part}", kind, text, label, aside, wording)


def blind() -> Iterator[Text]:
    """Orders and honest texts by somebody who knew nothing of words, kinds and texts of the fit: never fitted."""
    for line in (FOLDER / "orders_blind.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tongue = "English" if row["language"] == "en" else "other languages"
        yield Text(f"blind, {tongue}", row["kind"], row["text"], row["order"], True)


def examples(texts: Sequence[Text]) -> list[Example]:
    """The texts of the fit, with what each counts."""
    fillings = Counter(t.wording for t in texts)
    made = list[Example]()
    for t in texts:
        if t.family == "corpus" and share(t.text) > 0.65:
            continue  # half of the largest collection is enough
        near = t.wording != ""
        honest = HONEST_WEIGHT if near or t.family == "documentation" else 1.0
        weight = ATTACK_WEIGHT if t.family == "attacks" else ORDER_WEIGHT if t.order else honest
        made.append(Example(reading(t.text), t.wording, t.order, weight / (fillings[t.wording] if near else 1)))
    return made


def probabilities(texts: Sequence[Text], weights: OrderWeights) -> np.ndarray:
    """What `order` gives of each text, for all together."""
    corpus = Corpus([reading(t.text) for t in texts], weights.lexicon)
    best = worst(corpus, signs(corpus.met, weights.table), weights.values)[0]
    return 1 / (1 + np.exp(-np.clip(np.maximum(best, 0) + weights.bias, -50, 50)))


@cache
def reading(text: str) -> str:
    return canonical(text).text


def centred(used: Sequence[Text], kinds: Mapping[str, str]) -> OrderWeights:
    """The weights, on a scale on which 0.5 flags `FLAGGED` of the clean passages that were fitted.

    Each is judged by weights that were fitted without its half: what was fitted is hardly ever flagged.
    """
    halves = [[t for t in used if t.kind != "clean" or _half(t) != half] for half in (0, 1)]
    p = list[float]()
    for half, rest in enumerate(halves):
        unseen = [t for t in used if (t.kind, _half(t)) == ("clean", half) and t.family not in DOCUMENTATION]
        p.extend(probabilities(unseen, fitted(examples(rest), kinds)).tolist())
    cut = float(np.clip(np.sort(p)[::-1][int(FLAGGED * len(p))], 1e-9, 1 - 1e-9))
    weights = fitted(examples(used), kinds)
    return replace(weights, bias=round(weights.bias - np.log(cut / (1 - cut)) - 0.01, 2))


def _half(text: Text) -> int:
    return blake2b(text.text.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2


def written(weights: OrderWeights, kinds: dict[str, str]) -> str:
    """The file of the weights: signs by their first kind and their second."""
    signs: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for (first, second, reach), value in sorted(weights.weight.items()):
        signs.setdefault(first, {}).setdefault(second, []).append((reach, value))
    used = {kind for first, second, _ in weights.weight for kind in (first, second)}
    kept = {kind: words for kind, words in kinds.items() if kind in used}
    parts = {"bias": weights.bias, "kinds": kept, "signs": signs}
    lines = ",\n".join(
        f'"{key}": {json.dumps(value, ensure_ascii=False, separators=(",", ":"))}' for key, value in parts.items()
    )
    return f"{{{lines}}}\n"


def table(flagged: Mapping[Text, bool]) -> Iterator[str]:
    """Share called an order, by family and kind."""
    for label, title in ((True, "orders"), (False, "honest texts")):
        yield f"\n| {title} | kind | kept aside | n | called an order % |\n| --- | --- | --- | --- | --- |"
        groups = defaultdict[tuple[str, str, bool], list[bool]](list)
        for text, called in flagged.items():
            if text.order == label:
                groups[text.family, text.kind, text.aside].append(called)
                whole = "clean" if text.kind == "clean" else text.family
                groups[f"**all of {whole}**", "", text.aside].append(called)
        for (family, kind, aside), called in sorted(groups.items()):
            source = "attacks (our wording)" if family == "attacks" else family
            yield f"| {source} | {kind} | {'yes' if aside else ''} | {len(called)} | {100 * np.mean(called):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, help="fit, and write the weights there")
    parser.add_argument("--examples", type=int, default=0, help="print so many errors of each side")
    parser.add_argument("--blind", action="store_true", help="score the blind texts too: say in the page how often")
    arguments = parser.parse_args()
    folder = arguments.folder
    texts = [
        *attacked(folder),
        *own(folder),
        *given(folder),
        *clean(folder),
        *documented(),
        *docstrings(),
        *(blind() if arguments.blind else ()),
    ]
    if arguments.output:
        used = [t for t in texts if not t.aside]
        kinds = {**KINDS, **word_kinds({t.wording for t in used}, LEAST_USES)}
        weights = centred(used, kinds)
        arguments.output.write_text(written(weights, kinds), encoding="utf-8")
        weights = loaded(json.loads(arguments.output.read_text(encoding="utf-8")))
    else:
        weights = shipped()
    called = (probabilities(texts, weights) > THRESHOLD).tolist()
    print(f"{len(weights.weight)} signs", *table(dict(zip(texts, called))), sep="\n")
    for label in (True, False):  # nobody looks at the blind ones, or they would not be blind
        wrong = (t for t, c in zip(texts, called) if t.order == label != c and not t.family.startswith("blind"))
        for text in islice(wrong, arguments.examples):
            found = order(reading(text.text), weights)
            print(text.family, text.kind, f"{found.probability:.2f}", found.quote or text.text[:100], sep=" | ")


if __name__ == "__main__":
    main()
