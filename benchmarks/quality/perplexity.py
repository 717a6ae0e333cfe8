"""Perplexity of clean and poisoned texts under a language model: how they are spread, and the area under the curve.

python -m benchmarks perplexity evaluation-data/nq_poisoned.jsonl --language-model hf:gpt2

One line for each attack whose texts the file brings, each against all clean texts (TrustRAG, Figure 4, first part). An
area of 0.5 tells nothing apart; 1 is a poison that is always the less likely text. The model runs on this machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpoison.models import load_generator
from unpoison.models.protocols import LogProbabilities
from unpoison_lab.baselines.perplexity import perplexity
from unpoison_lab.evaluation.datasets import load
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.runs import auroc

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--language-model", required=True, help="such as hf:gpt2 or hf:FOLDER")
    parser.add_argument("--limit", type=int, help="the first questions only")
    parser.add_argument("--window", type=int, help="perplexity of the worst stretch of so many tokens")
    arguments = parser.parse_args()
    model = load_generator(arguments.language_model)
    if not isinstance(model, LogProbabilities):
        parser.error(f"{arguments.language_model} gives no likelihoods; name a local model, such as hf:gpt2")
    groups = texts(load(arguments.data).examples[: arguments.limit])
    print(*table({name: measured(found, model, arguments.window) for name, found in groups.items()}), sep="\n")


def texts(examples: Iterable[Example]) -> dict[str, list[str]]:
    """The clean texts, then those of each attack."""
    groups: dict[str, list[str]] = {"clean": []}
    for example in examples:
        groups["clean"] += [found.passage.text for found in example.passages_by_label("clean", "gold")]
        for attack in example.attacks:
            groups.setdefault(attack, []).extend(poison.text for poison in example.poisons(attack))
    return {name: list(dict.fromkeys(found)) for name, found in groups.items()}


def measured(found: Sequence[str], model: LogProbabilities, window: int | None = None) -> NDArray[np.float64]:
    """Perplexities, shape (len(found),)."""
    return np.array([perplexity(scores, window) for scores in model.logprobs(found)])


def table(groups: Mapping[str, NDArray[np.float64]]) -> Iterator[str]:
    """Quantiles of each group, and how well perplexity tells it from the clean texts."""
    heads = " | ".join(f"{100 * quantile:.0f} %" for quantile in QUANTILES)
    yield f"| texts | n | {heads} | AUC against clean |"
    yield f"|---|---|{'---|' * len(QUANTILES)}---|"
    clean = groups["clean"]
    for name, values in groups.items():
        spread = " | ".join(f"{value:.1f}" for value in np.quantile(values, QUANTILES)) if len(values) else "- | " * 5
        area = "-"
        if name != "clean" and len(values) and len(clean):
            both, poison = np.concatenate([clean, values]), np.arange(len(clean) + len(values)) >= len(clean)
            area = f"{auroc(both, poison):.3f}"
        yield f"| {name} | {len(values)} | {spread} | {area} |"


if __name__ == "__main__":
    main()
