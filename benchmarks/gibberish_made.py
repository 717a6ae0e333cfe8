"""Gibberish to fit on, made here: what gradients choose of a retriever's vocabulary, and random pieces of it.

No text of any published attack is used. Pieces come from the vocabulary of all-MiniLM-L6-v2 (Apache-2.0), which the
development environment has; `gibberish_flips.py` ran the attacks against that encoder.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import torch

from gibberish_flips import Encoder
from gibberish_texts import redone


def read_flips(file: Path) -> list[tuple[str, list[str]]]:
    """What attacks made: (kind, pieces)."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [(kind, pieces) for kind, *pieces in map(str.split, lines)]


class Maker:
    """Makes gibberish, the same for the same seed."""

    def __init__(self, encoder: Encoder, sources: list[str], questions: list[str], flips: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ids = encoder.ids
        self.pieces, self.usual, self.latin = encoder.pieces, encoder.usual, encoder.latin
        self.sources = sources
        self.questions = questions
        number = {piece: i for i, piece in enumerate(encoder.pieces)}
        self.flips = [[number[piece] for piece in pieces] for _, pieces in read_flips(flips)]
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
        pool = self.usual if rng.random() < 0.2 else self.latin
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
        rate = rng.uniform(0.5, 1)
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

    def flipped(self) -> list[int]:
        """What gradients chose, or a part of it, some pieces of another text's among them."""
        rng = self.rng
        ids = rng.choice(self.flips)
        if rng.random() < 0.4:
            size = rng.randint(min(12, len(ids)), len(ids))
            begin = rng.randrange(len(ids) - size + 1)
            ids = ids[begin : begin + size]
        rate = rng.choice((0, 0, 0.1, 0.3))
        other = rng.choice(self.flips)
        return [rng.choice(other) if rng.random() < rate else i for i in ids]

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
        if case > 0.88:  # as a sentence begins
            text = re.sub(r"(^|[.!?] )([a-z])", lambda match: match[1] + match[2].upper(), text)
        if case < 0.12:
            text = " ".join(
                w.capitalize() if rng.random() < 0.3 else w.upper() if rng.random() < 0.06 else w for w in text.split()
            )
        return text

    def text(self) -> str:
        """One piece of gibberish."""
        chance = self.rng.random()
        if chance < 0.5:
            return self.spelled(self.flipped())
        if chance < 0.73:
            return self.spelled(self.drawn())
        if chance < 0.93:
            return self.spelled(self.exchanged())
        if chance < 0.97:
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
