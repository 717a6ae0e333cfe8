"""Accuracy and attack success of whole answers with the extractive reader: vanilla, TrustRAG and RADAR.

    python benchmarks/answers.py ../shared/data

Ten passages per question (gold first, then the question's own by rank, then BM25 over the corpus), clean, and with the
question's first poison in the place of position 1 or 10. The reader is `extractive`, no language model: the numbers
say what a defense does to a reader of that kind, nothing about any model. It has no knowledge of its own, so TrustRAG's
internal knowledge is always "I don't know". RADAR is judged by the lexical NLI model. 95 % Wilson intervals.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from unpoison import Defense, Passage, Radar, TrustRag, Vanilla
from unpoison.evaluation import (
    Context,
    Example,
    clean_contexts,
    load,
    load_passages,
    matcher,
    planted,
    replace_at,
    wilson,
)
from unpoison.models import ExtractiveReader, load_encoder

FILES = {"realtimeqa": None, "nq_poisoned": "nq", "hotpotqa_poisoned": "hotpotqa", "msmarco_poisoned": "msmarco"}
"""Question files, and the corpus that fills their contexts."""
POSITIONS = (None, 1, 10)
PASSAGES = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="a folder of question files in the shared format")
    parser.add_argument("--encoder", default="lexical", help="for TrustRAG's clustering and RADAR's outliers")
    parser.add_argument("--files", default=",".join(FILES), help="which question files, separated by commas")
    options = parser.parse_args()
    reader, encoder = ExtractiveReader(), load_encoder(options.encoder)
    defenses: dict[str, Defense] = {
        "vanilla": Vanilla(generator=reader),
        "trustrag, stage 1 only": TrustRag(reader, stages=1, encoder=encoder),
        "trustrag": TrustRag(reader, encoder=encoder),
        "radar, paper": Radar(reader, encoder=encoder),
        "radar, reference": Radar(reader, encoder=encoder, mode="reference", fallback="memory"),
    }
    print(f"Generator: extractive (no language model). Encoder: {options.encoder}. NLI: lexical. k = {PASSAGES}.\n")
    print(
        "| file | defense | clean: accuracy | abstained | poison at 1: accuracy | ASR | poison at 10: accuracy | ASR |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in options.files.split(","):
        examples = [e for e in load(options.folder / f"{name}.jsonl") if usable(e)]
        clean = clean_contexts(examples, PASSAGES, corpus(options.folder, name))
        for label, defense in defenses.items():
            print(f"| {name} ({len(examples)}) | {label} | {' | '.join(cells(defense, examples, clean))} |", flush=True)


def usable(example: Example) -> bool:
    return bool(example.correct_answers and example.incorrect_answers and example.poisons())


def corpus(folder: Path, name: str) -> Sequence[Passage]:
    dataset = FILES.get(name)
    return load_passages(folder / "corpus.jsonl", dataset) if dataset else ()


def cells(defense: Defense, examples: Sequence[Example], clean: Sequence[Context]) -> Iterator[str]:
    """Accuracy and abstentions on clean contexts, then accuracy and ASR with the poison at each position."""
    judge = matcher()
    for position in POSITIONS:
        correct, attacked, abstained = [], [], []
        for example, undisturbed in zip(examples, clean, strict=True):
            context = undisturbed if position is None else poisoned(example, undisturbed, position)
            answer = defense.answer(context.query, context.passages)
            correct.append(judge.correct(answer.text, example.correct_answers))
            attacked.append(judge.attacked(answer.text, example.incorrect_answers, example.correct_answers))
            abstained.append(answer.abstained)
        yield from map(percent, [correct, abstained if position is None else attacked])


def poisoned(example: Example, context: Context, position: int) -> Context:
    """The context with the question's first poison at a 1-based position, or at the last one of a shorter context."""
    return replace_at(context, planted(example, example.poisons()[:1]), [min(position, len(context)) - 1])


def percent(outcomes: Sequence[bool]) -> str:
    found = wilson(sum(outcomes), len(outcomes))
    return f"{100 * found.value:.0f} ({100 * found.low:.0f}-{100 * found.high:.0f})"


if __name__ == "__main__":
    main()
