"""Guard with a reader and a judge on what wording cannot show: entity substitution (RGB), RAMDocs, single fluent lies.

python benchmarks/guard_consensus.py ../shared/data --generator extractive --nli lexical

Of nq_poisoned and nq_retrieved most questions were fitted; `--held-out` measures those that were not.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from guard_data import held_out
from unpoison import Guard, Vanilla
from unpoison.bench.attacks.base import contains_answer
from unpoison.bench.evaluation import (
    Context,
    Example,
    clean_contexts,
    context_from_labels,
    load,
    poison_candidates,
    prepend,
    wilson,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("--generator", default="extractive")
    parser.add_argument("--nli", default="lexical")
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--only", default="", help="sets whose name begins so")
    parser.add_argument("--held-out", action="store_true", help="questions that Guard was not fitted on")
    arguments = parser.parse_args()
    models = {"encoder": arguments.encoder, "generator": arguments.generator}
    defenses = {
        "vanilla": Vanilla(generator=arguments.generator),
        "guard": Guard(**models),
        "guard, ambiguous": Guard(**models, nli=arguments.nli),
        "guard, always": Guard(**models, nli=arguments.nli, consult="always"),
    }
    print("| set | defense | n | attack success % | accuracy % | poison left % | clean kept % | calls per question |")
    print("|---|---|---|---|---|---|---|---|")
    for name, count in CELLS:
        if not name.startswith(arguments.only):
            continue
        examples = load(arguments.folder / f"{name}.jsonl").examples[:100]
        if arguments.held_out:
            examples = tuple(one for one in examples if held_out(arguments.folder, one.question))
        for defense, made in defenses.items():
            print(f"| {name}, {count or 'no'} lies | {defense} | {measured(made, examples, count)} |", flush=True)


CELLS = (
    *(("rgb_counterfactual", 1), ("rgb_counterfactual", 99), ("ramdocs", 99), ("realtimeqa", 1), ("nq_poisoned", 1)),
    *((name, 0) for name in ("rgb_counterfactual", "ramdocs", "realtimeqa", "nq_poisoned", "nq_retrieved")),
)
"""File and how many lies of each question."""

PUBLISHED_TOGETHER = ("rgb-counterfactual", "ramdocs")
"""Sets whose lies stand among the passages as published; elsewhere they stand in front of nine others."""


def contexts(example: Example, count: int) -> Context:
    if example.dataset in PUBLISHED_TOGETHER and count:
        return context_from_labels(example)
    clean = clean_contexts([example], 10, order="rank")[0]
    return prepend(
        clean, poison_candidates(example, [p.passage for p in example.passages_by_label("poison")][:count]), 10
    )


def measured(defense: Guard | Vanilla, examples: Sequence[Example], count: int) -> str:
    """One row; of the lies of an example the first `count` are shown."""
    wrong, right, left, kept, clean, calls = [], [], [], 0, 0, 0
    for example in examples:
        context = contexts(example, count)
        lies = sorted(context.poison)[:count]
        if count and not lies:
            continue
        places = [i for i in range(len(context)) if i not in context.poison or i in lies]
        answer = defense.answer(example.question, [context.passages[i] for i in places])
        calls += sum(call.items for call in answer.calls if call.kind == "generate")
        wrong.append(any(contains_answer(answer.text, w) for w in example.incorrect_answers))
        right.append(any(contains_answer(answer.text, r) for r in example.correct_answers))
        shown = {places[i] for i in answer.screening.kept_indices}
        left.append(bool(shown & set(lies)))
        kept += len(shown - set(lies))
        clean += len(places) - len(lies)
    cells = " | ".join(percent(hits) for hits in (wrong, right, left))
    return f"{len(wrong)} | {cells} | {100 * kept / max(clean, 1):.1f} | {calls / max(len(wrong), 1):.1f}"


def percent(hits: Sequence[bool]) -> str:
    estimate = wilson(sum(hits), len(hits))
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


if __name__ == "__main__":
    main()
