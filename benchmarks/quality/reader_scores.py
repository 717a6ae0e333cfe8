"""What the readers make of single passages: right words, silence where there is no answer, two answers compared, time.

    python -m benchmarks reader_scores evaluation-data

No question was learnt from, in whatever spelling. `files`: nine question files, a hundred passages each where there are
so many, half of them without an answer (clean passages that hold none, or another question's where a file has too few).
`mixed`: the rows of `qa_spans.jsonl`, whose near misses count as without answer, and poison texts. `poison`: poison
texts alone, whose answer is what they say; none is without. F1 and exact match as in SQuAD, over what has an answer; an
answer that was refused counts 0.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Mapping
from itertools import combinations, product
from pathlib import Path

import numpy as np

from benchmarks.training.reader_answers import relation_rows
from benchmarks.training.reader_data import MEASURED, measured, poison_pairs, span_pairs, unseen
from benchmarks.training.reader_texts import Pair, scored, summary
from unpoison.models import ExtractiveReader, LexicalNLI, load_generator
from unpoison.models.prompts import atomic_answer_prompt, informative
from unpoison.models.reader import Reader
from unpoison.text.answers import relation

Read = Callable[[list[Pair]], list[str]]

ALIAS_FILES = ("nq_poisoned", "nq_large_poisoned", "nq_retrieved", "timeqa", "realtimeqa", "rgb_counterfactual",
               "hotpotqa_poisoned", "msmarco_poisoned")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the shared data")
    parser.add_argument("--also", action="append", default=[], help="a further reader, such as qa:FOLDER")
    parser.add_argument("--per-file", type=int, default=100)
    options = parser.parse_args()
    models: dict[str, Reader] = {name: load_generator(name) for name in ("reader", *options.also)}  # type: ignore[misc]
    readers: dict[str, Read] = {"extractive": _extractive, **{name: _model(model) for name, model in models.items()}}
    sets = {name: measured(options.folder, name, options.per_file) for name in MEASURED}
    others = {"mixed": _mixed(options.folder), "poison": _poison(options.folder, 500)}
    print(
        "| passages | n | "
        + " | ".join(f"{name}: F1 / EM | answered though none / refused though answer" for name in readers)
        + " |"
    )
    print("|---" * (2 + 2 * len(readers)) + "|")
    found = {
        name: {kind: _scores(read, pairs) for kind, pairs in (sets | others).items()} for name, read in readers.items()
    }
    for kind in ("files", *sets, *others):
        rows = {
            name: [s for part in sets for s in by[part]] if kind == "files" else by[kind] for name, by in found.items()
        }
        cells = [f"{a} / {b} | {c} / {d}".replace("nan", "-") for a, b, c, d in map(summary, rows.values())]
        print(f"| {kind} | {len(next(iter(rows.values())))} | {' | '.join(cells)} |")
    _print_relations(options.folder, models)
    _print_time(models)


def _mixed(folder: Path) -> list[Pair]:
    rng = np.random.default_rng(1)
    spans = [pair for pair in span_pairs(folder) if unseen(folder, pair.question)]
    poison = poison_pairs(folder, test=True)
    return [part[i] for part, most in ((spans, 750), (poison, 250)) for i in rng.permutation(len(part))[:most]]


def _poison(folder: Path, most: int) -> list[Pair]:
    pairs = poison_pairs(folder, test=True)
    return [pairs[i] for i in np.random.default_rng(1).permutation(len(pairs))[:most]]


def _scores(read: Read, pairs: list[Pair]) -> list:
    return [scored(pair, answer) for pair, answer in zip(pairs, read(pairs), strict=True)]


def _extractive(pairs: list[Pair]) -> list[str]:
    reader = ExtractiveReader()
    replies = [reader.generate(atomic_answer_prompt(pair.question, pair.text)).text for pair in pairs]
    return [reply if informative(reply) else "" for reply in replies]


def _model(reader: Reader) -> Read:
    return lambda pairs: [r.answer for r in reader.read_pairs([(pair.question, pair.text) for pair in pairs])]


def _print_relations(folder: Path, models: Mapping[str, Reader]) -> None:
    """Aliases that share words are the same, right and wrong answers rivals; "choice" puts one against the other."""
    rows: list[tuple[str, str, str, bool]] = []
    choices: list[tuple[str, str, str, str]] = []
    true_alias = {(q, a, b) for q, a, b, kind in relation_rows(folder, test=True) if kind == 0}
    for name in ALIAS_FILES:
        for line in (folder / f"{name}.jsonl").open(encoding="utf-8"):
            row = json.loads(line)
            question, right, wrong = row["question"], row["correct_answers"], row["incorrect_answers"]
            if not unseen(folder, question):
                continue
            pairs = [p for p in combinations(right, 2) if (question, *p) in true_alias or _shares(*p)]
            rows += [(question, *pair, True) for pair in pairs] + [
                (question, a, b, False) for a in right for b in wrong
            ]
            choices += [(question, a, b, c) for a, b in pairs for c in wrong]
    lexical = LexicalNLI()

    def by_lexical(question: str, left: str, right: str) -> tuple[float, float]:
        made = lexical.judge([(f"Question: {question} Answer: {left}", f"Question: {question} Answer: {right}")])[0]
        return made[0], made[2]

    judges = {
        "lexical judge": by_lexical,
        "rules": lambda q, a, b: relation(q, a, b)[:2],
    } | {name: _by_model(model) for name, model in models.items()}
    same = sum(row[3] for row in rows)
    print(f"\n| judge | same, of {same} | rival, of {len(rows) - same} | choice, of {len(choices)} |")
    print("|---|---|---|---|")
    for name, judge in judges.items():
        verdicts = [(judge(q, a, b), same) for q, a, b, same in rows]
        kinds = [
            np.mean([v[0] > v[1] if same else v[1] > v[0] for v, same in verdicts if same is want])
            for want in (True, False)
        ]
        picked = np.mean([_odds(judge(q, a, b)) > _odds(judge(q, a, c)) for q, a, b, c in choices])
        print(f"| {name} | {' | '.join(f'{100 * value:.1f} %' for value in (*kinds, picked))} |")


def _by_model(reader: Reader) -> Callable[[str, str, str], tuple[float, float]]:
    return lambda question, left, right: reader.relations(question, [(left, right)])[0][:2]


def _shares(left: str, right: str) -> bool:
    one, two = (set(text.lower().replace(",", " ").split()) - {"the", "a", "an", "of", "in"} for text in (left, right))
    return 2 * len(one & two) >= min(len(one), len(two)) > 0


def _odds(verdict: tuple[float, float]) -> float:
    return float(verdict[0]) - float(verdict[1])


def _print_time(models: Mapping[str, Reader]) -> None:
    words = [
        "the",
        "reader",
        "says",
        "which",
        "words",
        "of",
        "one",
        "passage",
        "answer",
        "a",
        "question",
        "and",
        "is",
        "silent",
        "where",
        "none",
        "do",
        "in",
        "its",
        "own",
    ]
    rng = np.random.default_rng(0)
    print("\n| reader | passages of 120 words | ms, best of 5 |\n|---|---|---|")
    for name, count in product(models, (1, 10, 50)):
        taken = []
        for _ in range(5):
            texts = [" ".join(rng.choice(words, 120)) for _ in range(count)]
            began = time.perf_counter()
            models[name].read("which words answer a question", texts)
            taken.append(1000 * (time.perf_counter() - began))
        print(f"| {name} | {count} | {min(taken):.0f} |")
    print(f"\nPeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
