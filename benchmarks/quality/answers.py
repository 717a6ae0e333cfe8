"""Accuracy, attack success and abstentions of whole answers without a language model: every answering defense.

    python -m benchmarks answers evaluation-data
    python -m benchmarks answers evaluation-data --passages 50 --files realtimeqa,nq_large_poisoned

Ten passages per question (gold first, then the question's own by rank, then BM25 over the corpus), clean, and with the
question's first poison in the place of position 1 or of the last. The readers are `extractive`, which copies sentences,
and `reader`, the small shipped model: the numbers say what a defense does to a reader of that kind, nothing about any
language model. They have no knowledge of their own, so TrustRAG's internal knowledge is always "I don't know". Answers
are compared by the lexical judge for `extractive` and by its own judge for `reader`. The questions are those that the
reader never learnt from. 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.training.reader_data import unseen
from unpoison import Defense, Guard, Passage, Radar, TrustRag, Vanilla
from unpoison.bench.evaluation import (
    Context,
    Example,
    clean_contexts,
    load,
    load_passages,
    matcher,
    poison_candidates,
    replace_at,
    wilson,
)
from unpoison.defenses.madam import Madam
from unpoison.defenses.reliabilityrag import ReliabilityRag
from unpoison.defenses.robustrag import RobustRag
from unpoison.models import load_generator
from unpoison.models.protocols import Generator

FILES = {"realtimeqa": None, "nq_large_poisoned": "nq", "hotpotqa_poisoned": "hotpotqa", "msmarco_poisoned": "msmarco",
         "rgb_counterfactual": None, "ramdocs": None}  # fmt: skip
"""Question files, and the corpus that fills their contexts."""

DEFENSES: dict[str, Callable[[Generator], Defense]] = {
    "vanilla": lambda reader: Vanilla(generator=reader),
    "guard": lambda reader: Guard(generator=reader),
    "trustrag": TrustRag,
    "radar": Radar,
    "robustrag": RobustRag,
    "reliabilityrag": ReliabilityRag,
    "madam": Madam,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of question files in the shared format")
    parser.add_argument("--files", default=",".join(FILES), help="which question files, separated by commas")
    parser.add_argument("--readers", default="extractive,reader", help="strings of readers, separated by commas")
    parser.add_argument("--defenses", default=";".join(DEFENSES), help="which defenses, separated by semicolons")
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--limit", type=int, default=60, help="questions of a file")
    options = parser.parse_args()
    positions = (None, 1, options.passages)
    print(f"No language model. k = {options.passages}.\n")
    print(
        "| file | defense | reader | clean: accuracy | abstained | poison at 1: accuracy | ASR | abstained "
        f"| poison at {options.passages}: accuracy | ASR | abstained |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    readers = {name: load_generator(name) for name in options.readers.split(",")}
    for name in options.files.split(","):
        examples = [e for e in load(options.folder / f"{name}.jsonl") if usable(e)]
        examples = [e for e in examples if unseen(options.folder, e.question)][: options.limit]
        clean = clean_contexts(examples, options.passages, corpus(options.folder, name))
        for label in options.defenses.split(";"):
            for reader, model in readers.items():
                row = cells(DEFENSES[label](model), examples, clean, positions)
                print(f"| {name} ({len(examples)}) | {label} | {reader} | {' | '.join(row)} |", flush=True)


def usable(example: Example) -> bool:
    return bool(example.correct_answers and example.incorrect_answers and lies(example))


def lies(example: Example) -> Sequence[Passage]:
    """The texts that come with the question and state a wrong answer."""
    return example.poisons() or [found.passage for found in example.passages_by_label("misinfo")]


def corpus(folder: Path, name: str) -> Sequence[Passage]:
    dataset = FILES.get(name)
    return load_passages(folder / "corpus.jsonl", dataset) if dataset else ()


def cells(
    defense: Defense, examples: Sequence[Example], clean: Sequence[Context], positions: Sequence[int | None]
) -> Iterator[str]:
    """Accuracy and abstentions on clean contexts; accuracy, ASR and abstentions with the poison at each position."""
    judge = matcher()
    for position in positions:
        correct, attacked, abstained = [], [], []
        for example, undisturbed in zip(examples, clean, strict=True):
            context = undisturbed if position is None else poisoned(example, undisturbed, position)
            answer = defense.answer(context.query, context.passages)
            correct.append(judge.correct(answer.text, example.correct_answers))
            attacked.append(judge.is_attack_success(answer.text, example.incorrect_answers, example.correct_answers))
            abstained.append(answer.abstained)
        yield from map(percent, [correct, abstained] if position is None else [correct, attacked, abstained])


def poisoned(example: Example, context: Context, position: int) -> Context:
    """The context with the question's first poison at a 1-based position, or at the last one of a shorter context."""
    return replace_at(context, poison_candidates(example, lies(example)[:1]), [min(position, len(context)) - 1])


def percent(outcomes: Sequence[bool]) -> str:
    found = wilson(sum(outcomes), len(outcomes))
    return f"{100 * found.value:.0f} ({100 * found.low:.0f}-{100 * found.high:.0f})"


if __name__ == "__main__":
    main()
