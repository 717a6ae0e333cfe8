"""The first look of the injection model: a table of word pieces that clears most ordinary sentences in microseconds.

Each piece, and each pair of neighbours by a hash, has sixteen numbers; their means over a sentence go through one
hidden layer. It may clear a sentence, never convict it: the threshold lets almost every order pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.training.injection_windows import HONEST, ORDER, SOME, Window

__all__ = ["PAIRS", "FirstLook", "groups", "pairs", "save", "train_first_look"]

SIZE, HIDDEN, PAIRS = 16, 24, 2**15
"""Numbers of a piece, of the hidden layer, and rows for pairs."""

PASSES, BATCH, RATE, DECAY = 3, 512, 4e-3, 1e-5

SPREAD = 0.25
"""Of the numbers at the beginning."""

POSITIVE = 4.0
"""The weight of an order: one that is lost is lost for good."""


def pairs(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of neighbouring pieces."""
    found: NDArray[np.int64] = (ids[:-1] * 1_000_003 + ids[1:]) % PAIRS
    return found


class FirstLook(nn.Module):
    """Log-odds of sentences from their pieces and pairs."""

    def __init__(self, words: Tensor) -> None:
        super().__init__()
        self.pieces, self.pairs = (nn.EmbeddingBag(rows, SIZE, mode="mean") for rows in (len(words), PAIRS))
        centred = words - words.mean(0)
        _, _, directions = torch.linalg.svd(centred[torch.randperm(len(words))[:8000]], full_matrices=False)
        first = centred @ directions[:SIZE].T  # words of like meaning begin alike, so that rare ones are known too
        self.pieces.weight.data.copy_(first / first.std() * SPREAD)
        nn.init.normal_(self.pairs.weight, std=SPREAD / 5)
        self.hidden, self.last = nn.Linear(2 * SIZE, HIDDEN), nn.Linear(HIDDEN, 1)

    def forward(self, sentences: Sequence[NDArray[np.int64]]) -> Tensor:
        both = torch.cat([
            table(torch.from_numpy(np.concatenate(rows)), torch.from_numpy(np.cumsum([0, *map(len, rows[:-1])])))
            for table, rows in ((self.pieces, sentences), (self.pairs, [pairs(ids) for ids in sentences]))
        ], 1)  # fmt: skip
        odds: Tensor = self.last(nn.functional.relu(self.hidden(both))).squeeze(-1)
        return odds


class Group(NamedTuple):
    """Sentences of which at least one is to be read, or one that need not be."""

    sentences: list[NDArray[np.int64]]
    order: bool


def groups(found: Sequence[Window]) -> list[Group]:
    """The honest sentences of windows, and the orders whole: an innocent second sentence need not stand out."""
    every = dict[bytes, Group]()
    for window in found:
        parts = [np.array(window.ids[start:end]) for start, end in pairwise([0, *window.ends])]
        some = [part for part, label in zip(parts, window.labels) if label in (ORDER, SOME)]
        made = [Group([part], False) for part, label in zip(parts, window.labels) if label == HONEST]
        for group in [*made, *([Group(some, True)] if some else [])]:
            every[b"".join(part.tobytes() for part in group.sentences)] = group
    return list(every.values())


def train_first_look(found: Sequence[Window], honest: Sequence[NDArray[np.int64]], words: Tensor) -> FirstLook:
    """Fit it on the sentences of windows and on more ordinary ones; it begins at the transformer's word embeddings."""
    torch.manual_seed(0)
    random, every = np.random.default_rng(0), groups(found)
    known = {group.sentences[0].tobytes() for group in every}
    every += [Group([ids], False) for ids in honest if ids.tobytes() not in known]
    look = FirstLook(words)
    optimizer = torch.optim.AdamW(look.parameters(), lr=RATE, weight_decay=DECAY)
    steps = PASSES * -(-len(every) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(PASSES):
        order = random.permutation(len(every)).tolist()
        for start in range(0, len(order), BATCH):
            batch = [every[i] for i in order[start : start + BATCH]]
            # pieces left out at random: a sentence must not hang on one of them
            odds = look([_some(ids, random) for group in batch for ids in group.sentences]).exp()
            owner = torch.repeat_interleave(torch.tensor([len(group.sentences) for group in batch]))
            strongest = torch.zeros(len(batch)).index_add(0, owner, odds).clamp(min=1e-9).log()
            label = torch.tensor([float(group.order) for group in batch])
            weight = 1 + (POSITIVE - 1) * label
            loss = nn.functional.binary_cross_entropy_with_logits(strongest, label, weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return look.eval()


def _some(ids: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    kept = ids[random.random(len(ids)) > 0.1]
    return kept if len(kept) else ids


def save(look: FirstLook, file: Path) -> None:
    """Write the tables as int8, with a scale for each column."""
    arrays = dict[str, NDArray[np.float32]]()
    for name, table in (("pieces", look.pieces), ("pairs", look.pairs)):
        weight = table.weight.detach().numpy()
        scale = np.abs(weight).max(0) / 127
        arrays[name], arrays[f"{name}_scale"] = np.rint(weight / scale).astype(np.int8), scale.astype(np.float32)  # type: ignore[assignment]
    for name, layer in (("hidden", look.hidden), ("last", look.last)):
        arrays[f"{name}_weight"], arrays[f"{name}_bias"] = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
