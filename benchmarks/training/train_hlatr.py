"""Fits a head of HLATR over a reranker's checkpoint and writes the folder that `hlatr:NAME,head=FOLDER` reads.

    python -m benchmarks train_hlatr cross-encoder/ms-marco-MiniLM-L6-v2 lists.jsonl head

A line of the file is a list in retrieval order: `{"query": "...", "passages": ["...", ...], "relevant": 0}`. The
defaults are the paper's (Zhang et al., 2022): list-wise softmax cross-entropy, AdamW with weight decay 0.01, warm-up
over a tenth of the steps, linear decay. The checkpoint stays as it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from unpoison.models.hlatr import HEAD_FORM, HeadSettings, HlatrScorer


class RankedList(NamedTuple):
    """One list to train on: a query, its passages in retrieval order, and the position of the relevant one."""

    query: str
    passages: Sequence[str]
    relevant: int


def train(
    checkpoint: str | Path,
    examples: Sequence[RankedList],
    folder: Path,
    *,
    hidden: int = 128,
    layers: int = 4,
    heads: int = 2,
    epochs: int = 80,
    batch: int = 256,
    rate: float = 1e-3,
    seed: int = 0,
) -> None:
    """Fit a head on lists of two passages and more, and write its folder."""
    scorer = HlatrScorer(checkpoint)
    lists = [
        torch.tensor(scorer.embeddings([(one.query, text) for text in one.passages]), dtype=torch.float32)
        for one in examples
    ]
    settings = HeadSettings(lists[0].shape[1], hidden, layers, heads)
    steps = epochs * -(-len(lists) // batch)
    warm = max(1, steps // 10)
    loss = torch.nn.CrossEntropyLoss()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head: Any = scorer.build_head(settings).train()
        device = next(head.parameters()).device
        optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        )
        for _ in range(epochs):
            for chosen in torch.randperm(len(lists)).split(batch):
                losses = [
                    loss(
                        scorer.head_scores(head, lists[i].to(device)), torch.tensor(examples[i].relevant, device=device)
                    )
                    for i in chosen.tolist()
                ]
                optimizer.zero_grad()
                torch.stack(losses).mean().backward()
                optimizer.step()
                schedule.step()
    folder.mkdir(parents=True, exist_ok=True)
    header = {"form": HEAD_FORM, "checkpoint": str(checkpoint), **settings._asdict()}
    (folder / "head.json").write_text(json.dumps(header, indent=1), "utf-8")
    save_file(
        {name: value.cpu().contiguous() for name, value in head.state_dict().items()}, folder / "head.safetensors"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("lists", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    rows = map(json.loads, given.lists.read_text("utf-8").splitlines())
    examples = [RankedList(row["query"], row["passages"], row["relevant"]) for row in rows]
    train(given.checkpoint, examples, given.folder)


if __name__ == "__main__":
    main()
