"""Gibberish to fit on, made here: random pieces of a retriever's vocabulary, and what gradients choose of them.

    python -m benchmarks gibberish_made evaluation-data flips.txt

writes 96 texts that gradients choose, one a line, as pieces (four minutes of one core). The fit reads those stored in
`texts/gibberish_flips.txt`: made by this attack, but begun by an earlier `Maker.drawn`, so that a run writes others. No
text of any published attack is used. Pieces come from the vocabulary of all-MiniLM-L6-v2 (Apache-2.0), which the
development environment has; `Maker.flipped` attacks that encoder (HotFlip: Ebrahimi et al., ACL 2018).
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

import torch

from benchmarks.training.gibberish_flips import Encoder
from benchmarks.training.gibberish_texts import prose, redone, rows

SEED = 77
BATCHES, BATCH = 3, 32
SOURCES = 5000
"""Natural texts that half of the attacks begin from."""

ROUNDS = 25


class Maker:
    """Makes gibberish, the same for the same seed."""

    def __init__(self, encoder: Encoder, sources: list[str], questions: list[str], seed: int) -> None:
        self.rng = random.Random(seed)
        self.encoder = encoder
        self.ids = encoder.ids
        self.pieces, self.usual, self.latin = encoder.pieces, encoder.usual, encoder.latin
        self.sources = sources
        self.questions = questions
        unit = torch.nn.functional.normalize(encoder.table, dim=1)
        self.unit = unit[:, :96]  # enough to say what is alike
        self.like: dict[int, list[int]] = {}

    def near(self, ids: list[int]) -> list[int]:
        """Pieces whose vectors are like those of a few of some."""
        found = []
        for own in self.rng.sample(ids, min(3, len(ids))):
            if own not in self.like:
                self.like[own] = torch.topk(self.unit @ self.unit[own], 40).indices.tolist()
            found += self.like[own]
        return found or self.latin[:100]

    def drawn(self) -> list[int]:
        """Pieces at random, words of a question and pieces like them among them."""
        rng = self.rng
        size = rng.randint(9, 60) if rng.random() < 0.5 else rng.randint(9, 25)
        pool = self.usual if rng.random() < 0.4 else self.latin
        if rng.random() < 0.15:  # what is frequent stands in front in a vocabulary
            pool = pool[: rng.choice((3000, 8000, 15000))]
        own, like = rng.choice(((0, 0), (0.1, 0), (0.25, 0), (0.15, 0.2), (0.3, 0.2), (0.1, 0.5), (0, 0.4), (0.5, 0)))
        question = self.ids(rng.choice(self.questions))
        around = self.near(question) if like else []
        found = []
        for _ in range(size):
            chance = rng.random()
            if chance < own:
                found.append(rng.choice(question))
            elif chance < own + like:
                found.append(rng.choice(around))
            else:
                found.append(rng.choice(pool))
        return found

    def exchanged(self) -> list[int]:
        """A natural text of which many pieces are exchanged."""
        rng = self.rng
        ids = self.ids(rng.choice(self.questions) if rng.random() < 0.35 else rng.choice(self.sources)[:400])
        begin = rng.randrange(max(1, len(ids) - 20))
        ids = ids[begin : begin + rng.randint(14, 50)]
        rate = rng.uniform(0.4, 1)
        around = self.near(ids)
        return [
            (rng.choice(around) if rng.random() < 0.3 else rng.choice(self.latin)) if rng.random() < rate else i
            for i in ids
        ]

    def shuffled(self) -> list[int]:
        """The words of a text in another order, some exchanged."""
        words = self.rng.choice(self.sources)[:500].split()[: self.rng.randint(20, 60)]
        self.rng.shuffle(words)
        rate = self.rng.choice((0.1, 0.25))
        return [self.rng.choice(self.latin) if self.rng.random() < rate else i for i in self.ids(" ".join(words))]

    def snippets(self) -> str:
        """Pieces as a language model's vocabulary has them: of code, names and words, with and without spaces."""
        rng = self.rng
        out = []
        for _ in range(rng.randint(14, 50)):
            text = rng.choice(self.sources)
            if len(text) > 20:
                begin = rng.randrange(len(text) - 12)
                piece = text[begin : begin + rng.randint(2, 10)]
                out.append(piece if rng.random() < 0.6 else " " + piece.strip())
        return "".join(out)

    def flipped(self) -> list[list[int]]:
        """Texts that the encoder finds like a question, made by exchanging the pieces that gradients point at."""
        rng, encoder = self.rng, self.encoder
        torch.manual_seed(rng.randrange(2**31))
        allowed = torch.full((len(self.pieces),), -1e9)
        allowed[self.latin if rng.random() < 0.5 else self.usual] = 0
        size = rng.choice((14, 20, 30, 45))
        goal = encoder.goal([rng.choice(self.questions) for _ in range(BATCH)], "cosine")
        start = [self.drawn() if rng.random() < 0.5 else self.ids(rng.choice(self.sources)) for _ in range(BATCH)]
        ids = torch.tensor([(own * size)[:size] for own in start])
        every = torch.arange(BATCH)
        for _ in range(ROUNDS):
            slope = encoder.slope(ids, goal, "cosine")
            place = torch.randint(size, (BATCH, max(1, size // 10)))
            for column in place.T:
                gain = slope[every, column] @ encoder.table.T + allowed
                best = torch.topk(gain, 12, dim=1).indices
                ids[every, column] = best[every, torch.randint(12, (BATCH,))]
        return ids.tolist()

    def spelled(self, ids: list[int]) -> str:
        """Pieces as text, in one of the ways that attacks' code writes them."""
        rng = self.rng
        pieces = [self.pieces[i] for i in ids]
        way = rng.random()
        if way < 0.65:
            text = " ".join(pieces).replace(" ##", "")
        elif way < 0.8:
            text = " ".join(pieces)
        else:
            text = " ".join(p.removeprefix("##") for p in pieces)
        if rng.random() < 0.5:  # as the tokenizer tidies what it decodes
            text = re.sub(r" ([.,!?'])", r"\1", text)
        case = rng.random()
        if case < 0.12:
            text = " ".join(
                w.capitalize() if rng.random() < 0.3 else w.upper() if rng.random() < 0.06 else w for w in text.split()
            )
        return text

    def text(self, flips: list[list[int]]) -> str:
        """One piece of gibberish, of `flips` or made here."""
        chance = self.rng.random()
        if chance < 0.3:
            return self.spelled(self.drawn())
        if chance < 0.6:
            return self.spelled(self.rng.choice(flips))
        if chance < 0.85:
            return self.spelled(self.exchanged())
        if chance < 0.93:
            return self.spelled(self.shuffled())
        return self.snippets()

    def placed(self, piece: str) -> tuple[str, int, int]:
        """The piece alone, or in front of, behind or inside a natural text, and where it is."""
        rng = self.rng
        if rng.random() < 0.1:
            piece = redone(piece, rng)
        chance = rng.random()
        if chance < 0.3:
            return piece, 0, len(piece)
        around = rng.choice(self.sources)
        begin = rng.randrange(max(1, len(around) - 300)) if rng.random() < 0.3 else 0
        around = around[begin : begin + rng.randint(60, 500)]
        if rng.random() < 0.3:
            around = around.lower()
        gap = rng.choice((" ", " ", " ", "\n", "", ". "))
        cut = (
            0
            if chance < 0.55
            else len(around)
            if chance < 0.85
            else max(0, around.find(" ", rng.randrange(len(around))))
        )
        before, after = around[:cut], around[cut:]
        text = before + (gap if before else "") + piece + (gap if after else "") + after
        start = len(before) + (len(gap) if before else 0)
        return text, start, start + len(piece)


def read_flips(file: Path, encoder: Encoder) -> list[list[int]]:
    """What gradients chose, as numbers of pieces."""
    number = {piece: i for i, piece in enumerate(encoder.pieces)}
    return [[number[piece] for piece in line.split(" ")] for line in file.read_text(encoding="utf-8").splitlines()]


def questions_of(folder: Path) -> list[str]:
    return sorted({row["question"] for row in rows(folder / "qa_spans.jsonl")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    texts = sorted({text for kind, text in prose(arguments.folder) if kind == "encyclopaedia"})
    random.Random(1).shuffle(texts)
    maker = Maker(Encoder(None), texts[:SOURCES], questions_of(arguments.folder), SEED)
    made = [ids for _ in range(BATCHES) for ids in maker.flipped()]
    lines = (" ".join(maker.pieces[i] for i in ids) for ids in made)
    arguments.output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
