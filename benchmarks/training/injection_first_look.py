"""The first look of the injection model: a small convolution that clears most ordinary sentences in microseconds.

Each piece of a word has a few numbers; filters see five pieces at a time, and the highest and the mean of what each of
them finds in a sentence go through one hidden layer. It may clear a sentence, never convict it: the threshold lets
almost every order pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.training.injection_windows import HONEST, ORDER, SOME, Window

__all__ = ["FirstLook", "groups", "save", "train_first_look"]

SIZE, WIDTH, FILTERS, HIDDEN = 24, 5, 64, 32
"""Numbers of a piece, pieces that a filter sees (an odd number), filters, and numbers of the hidden layer."""

PASSES, BATCH, RATE, DECAY = 5, 512, 3e-3, 1e-5

SPREAD = 0.25
"""Of the numbers at the beginning."""

POSITIVE = 4.0
"""The weight of an order: one that is lost is lost for good."""

DISGUISED = 0.4
"""The share of the orders that are read in another spelling too."""

SPELLINGS = tuple(
    dict(zip(letters, signs))
    for letters, signs in (
        ("oieas", "01345"), ("iI", "ıİ"), ("aeiou", "áéíóú"), ("aeou", "äëöü"), ("aeopc", "аеорс"),  # noqa: RUF001
        ("aeiost", "@3!0$7"), ("aeio", "аеіо"), (" ", "_"), (" ", "."),  # noqa: RUF001
    )
)  # fmt: skip
"""Signs that stand for others."""

LONGEST = 96
"""Pieces of a sentence that are learnt from."""


class FirstLook(nn.Module):
    """Log-odds of sentences from their pieces; the last row of the table is the blank between two of them."""

    def __init__(self, words: Tensor) -> None:
        super().__init__()
        centred = words - words.mean(0)
        _, _, directions = torch.linalg.svd(centred[torch.randperm(len(words))[:8000]], full_matrices=False)
        first = centred @ directions[:SIZE].T  # words of like meaning begin alike, so that rare ones are known too
        table = torch.cat([first / first.std() * SPREAD, torch.zeros(1, SIZE)])
        self.pieces = nn.Embedding.from_pretrained(table, freeze=False, padding_idx=len(words))
        self.filters = nn.Linear(WIDTH * SIZE, FILTERS)
        self.hidden, self.last = nn.Linear(2 * FILTERS, HIDDEN), nn.Linear(HIDDEN, 1)

    def forward(self, sentences: Sequence[NDArray[np.int64]]) -> Tensor:
        blank = np.full(WIDTH // 2, self.pieces.padding_idx)
        ids = np.concatenate([blank, *(part for sentence in sentences for part in (sentence, blank))])
        rows, many = self.pieces(torch.from_numpy(ids)), len(ids) - WIDTH + 1
        inside = torch.from_numpy(ids[WIDTH // 2 :][:many] != self.pieces.padding_idx)
        seen = torch.cat([rows[k : k + many] for k in range(WIDTH)], 1)[inside]
        found = nn.functional.relu(self.filters(seen))
        size = torch.tensor([len(sentence) for sentence in sentences])
        owner = torch.repeat_interleave(size)
        blanks = torch.zeros(len(sentences), FILTERS)
        highest = blanks.scatter_reduce(0, owner[:, None].expand_as(found), found, "amax")
        mean = blanks.index_add(0, owner, found) / size[:, None]
        odds: Tensor = self.last(nn.functional.relu(self.hidden(torch.cat([highest, mean], 1)))).squeeze(-1)
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


def disguised(every: Sequence[Group], tokenizer: Tokenizer, random: Random) -> list[Group]:
    """A share of the orders in other spellings, so that whoever writes `1nstruct10ns` is not cleared for it."""
    orders = [group for group in every if group.order]
    chosen = random.sample(orders, int(DISGUISED * len(orders)))
    return [Group([_respelled(part, tokenizer, random) for part in group.sentences], True) for group in chosen]


def _respelled(part: NDArray[np.int64], tokenizer: Tokenizer, random: Random) -> NDArray[np.int64]:
    signs, share = random.choice(SPELLINGS), random.choice((0.3, 0.6, 1.0))
    text = tokenizer.decode(part.tolist())
    made = "".join(signs[sign] if sign in signs and random.random() < share else sign for sign in text)
    return np.array(tokenizer.encode(made, add_special_tokens=False).ids or part)


def train_first_look(
    found: Sequence[Window], honest: Sequence[NDArray[np.int64]], words: Tensor, tokenizer: Tokenizer
) -> FirstLook:
    """Fit it on the sentences of windows and on more ordinary ones; it begins at the transformer's word embeddings."""
    torch.manual_seed(0)
    random, every = np.random.default_rng(0), groups(found)
    known = {group.sentences[0].tobytes() for group in every}
    every += [Group([ids], False) for ids in honest if ids.tobytes() not in known]
    every += disguised(every, tokenizer, Random(0))
    look = FirstLook(words)
    optimizer = torch.optim.AdamW(look.parameters(), lr=RATE, weight_decay=DECAY)
    steps = PASSES * -(-len(every) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    for _ in range(PASSES):
        order = random.permutation(len(every)).tolist()
        for start in range(0, len(order), BATCH):
            batch = [every[i] for i in order[start : start + BATCH]]
            # pieces left out at random: a sentence must not hang on one of them
            odds = look([_some(ids[:LONGEST], random) for group in batch for ids in group.sentences]).exp()
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
    """Write the table as int8, with a scale for each column."""
    weight = look.pieces.weight.detach().numpy()
    scale = np.abs(weight).max(0) / 127
    arrays = {"pieces": np.rint(weight / scale).astype(np.int8), "pieces_scale": scale}
    for name, layer in (("filters", look.filters), ("hidden", look.hidden), ("last", look.last)):
        arrays[f"{name}_weight"], arrays[f"{name}_bias"] = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
