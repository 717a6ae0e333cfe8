"""Fits the gibberish check and writes src/unpoison/data/gibberish.npz.

    pip install --no-deps --target translations django==5.2.19 sphinx==9.0.4 wtforms==3.3.2
    python -m benchmarks train_gibberish evaluation-data translations src/unpoison/data/gibberish.npz

Natural texts of many kinds (`gibberish_texts.py`) against gibberish made for it (`gibberish_made.py`), some of which
gradients chose (`texts/gibberish_flips.txt`). Needs the development environment (torch) and takes four minutes of one
core. Many of the texts are files of installed packages, so other versions make another file, and so may a processor
that rounds otherwise: with Python 3.11, the packages of November 2026 and onnxruntime 1.32.0 it writes the
shipped file to the byte, and it says whether it did.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter, defaultdict
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch

from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.gibberish_flips import Encoder
from benchmarks.training.gibberish_made import Maker, questions_of, read_flips
from benchmarks.training.gibberish_texts import (
    as_tokens,
    chunks,
    files_of_packages,
    in_no_language,
    like_languages,
    lists,
    menus,
    misread,
    prose,
    redone,
    translations,
)
from unpoison.text import gibberish as kernel
from unpoison.text import pieces
from unpoison.text.analysis import groups

SEED = 27
FLIPS = Path(__file__).parent / "texts" / "gibberish_flips.txt"
"""What gradient attacks made (see `gibberish_made.py`)."""

SHIPPED = files("unpoison.data") / "gibberish.npz"

VOCABULARY = 12_288
WIDTH, HIDDEN, DEEP = 16, 32, 16
CROP = 128
SMOOTH = 0.01
"""No text is so sure to be either."""

DROP = 0.15
"""The share of known words taken for unknown, and of hidden values left out, in the fit."""

HIDDEN_TOP, DEEP_TOP = 4.0, 8.0
FALSE_ALARMS = 0.0007
"""The share of natural chunks fitted on that lie above the threshold."""

MARGIN = 0.7
"""So much log-odds more is asked for, because texts of kinds that were not fitted on lie higher."""

UNUSUAL = (
    "menu",
    "like a language",
    "redone",
    "tokens",
    "misread",
    "two texts",
    "pieces",
    "keywords",
    "names",
    "no language",
)
"""Kinds made here, which do not count for that."""


def natural(folder: Path, translated: Path, rng: random.Random) -> list[tuple[str, str]]:
    seen, found = set(), []
    for kind, text in prose(folder):
        if text not in seen:
            seen.add(text)
            found += [(kind, piece) for piece in chunks(text[:4000], rng)]
    texts = [text for kind, text in found if kind == "encyclopaedia"]
    read = list(found)
    for kind, text in translations(translated, rng):
        found += [(kind, piece) for piece in chunks(text, rng)]
    for kind, text in files_of_packages(rng):
        found += [(kind, piece) for piece in chunks(text, rng)]
    found += lists(texts, rng, 6000)
    found += [("menu", text) for text in menus(texts, rng, 2500)]
    messages = [
        text for kind, text in found if kind.startswith("messages") and sum(map(str.isascii, text)) > 0.8 * len(text)
    ]
    found += [("like a language", text) for text in like_languages(messages, rng, 5000)]
    found += [("redone", redone(rng.choice(read)[1], rng)) for _ in range(3000)]
    found += [("no language", in_no_language(rng.choice(texts), rng)) for _ in range(3000)]
    found += [("misread", misread(rng.choice(read)[1], rng)) for _ in range(2500)]
    found += [("tokens", as_tokens(rng.choice(read)[1])) for _ in range(4000)]
    found += [("lower case", rng.choice(texts).lower()) for _ in range(2500)]
    found += [("two texts", rng.choice(found)[1][:200] + "\n" + rng.choice(found)[1][:200]) for _ in range(4000)]
    found += [("pieces", " ... ".join(cut(rng.choice(texts), rng) for _ in range(4))) for _ in range(1500)]
    return [(kind, text) for kind, text in found if len(text) > 25]


def cut(text: str, rng: random.Random) -> str:
    begin = rng.randrange(max(1, len(text) - 80))
    return text[begin : begin + rng.randint(30, 120)]


def triple_bits(texts: list[str]) -> np.ndarray:
    """Letter triples that at least three of the texts have."""
    counts: Counter[int] = Counter()
    for text in texts:
        own = set()
        for word in set(re.findall(r"[a-z]{3,}", text.lower())):
            for a, b, c in zip(word, word[1:], word[2:]):
                own.add(((ord(a) - 97) * 27 + ord(b) - 97) * 27 + ord(c) - 97)
        counts.update(own)
    bits = np.zeros(27**3 // 8 + 1, dtype=np.uint8)
    for index, count in counts.items():
        if count >= 3:
            bits[index >> 3] |= 1 << (index & 7)
    return bits


class Net(torch.nn.Module):
    """The kernel's network in floats."""

    def __init__(self) -> None:
        super().__init__()
        self.known = torch.nn.Embedding(VOCABULARY + 1, WIDTH)
        self.first = torch.nn.Embedding(pieces.BUCKETS, WIDTH)
        self.last = torch.nn.Embedding(pieces.BUCKETS, WIDTH)
        self.shape = torch.nn.Embedding(3 * pieces.SHAPES, WIDTH)
        self.build = torch.nn.Embedding(64, WIDTH)
        for table in (self.known, self.first, self.last, self.shape, self.build):
            torch.nn.init.normal_(table.weight, std=0.15)
        self.near = torch.nn.Conv1d(WIDTH, HIDDEN, 2 * kernel.REACH + 1, padding=kernel.REACH)
        self.deep = torch.nn.Linear(HIDDEN, DEEP)
        self.top = torch.nn.Linear(DEEP, 1)

    def forward(self, ids: torch.Tensor, there: torch.Tensor, drop: float = 0.0) -> torch.Tensor:
        """From ids (5, b, n) and there (b, n): scores of the stretches that end at each token (b, n)."""
        inside = there.unsqueeze(-1).float()
        # A word has either its own vector or two for beginning and end; some known ones are taken for unknown.
        known = ids[0] < VOCABULARY
        if drop:
            known &= torch.rand(known.shape) > drop
        vectors = (
            torch.where(known.unsqueeze(-1), self.known(ids[0]), self.first(ids[1]) + self.last(ids[2]))
            + self.shape(ids[3])
            + self.build(ids[4])
        ) * inside
        hidden = self.near(vectors.transpose(1, 2)).transpose(1, 2).clamp(0, HIDDEN_TOP) * inside
        if drop:
            hidden = torch.nn.functional.dropout(hidden, drop)
        running = torch.nn.functional.pad(hidden.cumsum(1), (0, 0, kernel.WINDOW, 0))
        pooled = (running[:, kernel.WINDOW :] - running[:, : -kernel.WINDOW]) / kernel.WINDOW
        return self.top(self.deep(pooled).clamp(0, DEEP_TOP)).squeeze(-1)


def numbers(found: pieces.Tokens, words: np.ndarray) -> np.ndarray:
    """What the network is given of each token, shape (5, n)."""
    place = np.minimum(np.searchsorted(words, found.word), len(words) - 1)
    known = words[place] == found.word
    return np.stack(
        (
            np.where(known, place, VOCABULARY),
            found.first,
            found.last,
            found.shape,
            found.build,
        )
    ).astype(np.int64)


class Rows:
    """Crops of texts as the network reads them; texts without a token are left out."""

    def __init__(self, parts: list[pieces.Tokens], spans: list[tuple[int, int]], words: np.ndarray) -> None:
        ids, there, labels = [], [], []
        for found, (begin, end) in zip(parts, spans, strict=True):
            n = len(found.start)
            if not n:
                continue
            inside = (found.start < end) & (found.end > begin)
            size = min(n, CROP)
            middle = int(np.median(np.flatnonzero(inside))) if inside.any() else n // 2
            first = min(max(0, middle - CROP // 2), n - size)
            here = slice(first, first + size)
            ids.append(np.zeros((5, CROP), dtype=np.int16))
            ids[-1][:, :size] = numbers(found, words)[:, here]
            there.append(np.arange(CROP) < size)
            labels.append(np.full(CROP, 2, dtype=np.float32))
            labels[-1][:size] = self._labels(inside[here], found.latin[here])
        self.ids = torch.from_numpy(np.stack(ids, axis=1))
        self.there = torch.from_numpy(np.stack(there))
        self.part = torch.from_numpy(np.stack(labels))

    @staticmethod
    def _labels(inside: np.ndarray, latin: np.ndarray) -> np.ndarray:
        """Of the stretch that ends at each token: gibberish 1, natural 0, neither or not judged 2."""
        last = np.arange(len(inside))
        start = np.maximum(last - kernel.WINDOW + 1, 0)
        length = last + 1 - start
        among, letters = (np.concatenate(([0], np.cumsum(flags))) for flags in (inside, latin))
        share = (among[last + 1] - among[start]) / length
        labels = np.where(share >= 0.8, 1, np.where(share == 0, 0, 2))
        whole = (length == kernel.WINDOW) | (last == len(last) - 1)
        labels[~whole | (letters[last + 1] - letters[start] < kernel.MIN_WORDS)] = 2
        return labels


def tokens_of(texts: list[str], bits: np.ndarray) -> list[pieces.Tokens]:
    """The tokens of each text, read many together."""
    parts = []
    for begin, end in groups(texts):
        found = pieces.tokens(texts[begin:end], bits)
        bounds = np.searchsorted(found.text, np.arange(end - begin + 1))
        offsets = np.concatenate(([0], np.cumsum([len(text) + 1 for text in texts[begin:end]])))
        for k in range(end - begin):
            own = slice(bounds[k], bounds[k + 1])
            part = [getattr(found, field.name)[own] for field in fields(found)]
            parts.append(pieces.Tokens(part[0] * 0, part[1] - offsets[k], part[2] - offsets[k], *part[3:]))
    return parts


def fit(clean: Rows, made: Rows, weights: np.ndarray, epochs: int) -> Net:
    torch.manual_seed(SEED)
    net = Net()
    rng = np.random.default_rng(SEED)
    batch = 64
    steps = epochs * made.there.shape[0] // batch
    optimiser = torch.optim.Adam(net.parameters(), lr=4e-3)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=6e-3, total_steps=steps)
    odds = weights / weights.sum()
    loss_of = torch.nn.functional.binary_cross_entropy_with_logits
    for step in range(steps):
        if step % 400 == 0:
            drawn = rng.choice(len(odds), size=400 * batch * 2, p=odds)
            mine = rng.integers(made.there.shape[0], size=400 * batch)
        k = step % 400
        a, b = drawn[k * batch * 2 : (k + 1) * batch * 2], mine[k * batch : (k + 1) * batch]
        ids = torch.cat((clean.ids[:, a], made.ids[:, b]), dim=1).long()
        there = torch.cat((clean.there[a], made.there[b]))
        part = torch.cat((clean.part[a], made.part[b]))
        scores = net(ids, there, drop=DROP)
        judged = part < 2
        each = loss_of(scores[judged], part[judged] * (1 - 2 * SMOOTH) + SMOOTH)
        can = judged.any(1)
        # A text is as bad as its worst stretch: of natural ones, all must be good; of others one bad is enough.
        worst = torch.where(judged, scores, torch.full_like(scores, -30)).max(1).values[can]
        bad = torch.cat((torch.zeros(len(a)), torch.ones(len(b))))[can]
        bad = torch.where((bad > 0) & ~(part == 1).any(1)[can], torch.full_like(bad, 0.5), bad)
        whole = loss_of(worst, bad * (1 - 2 * SMOOTH) + SMOOTH)
        loss = each + whole
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        plan.step()
        with torch.no_grad():  # what the whole numbers can hold
            for table in (net.known, net.first, net.last, net.shape, net.build):
                table.weight.clamp_(-1.27, 1.27)
        if step % 200 == 0:
            print(step, steps, round(float(each.detach()), 4), round(float(whole.detach()), 4), flush=True)
    return net.eval()


def whole_numbers(net: Net, words: np.ndarray, bits: np.ndarray) -> dict[str, np.ndarray]:
    """The network in whole numbers: a step of a vector is 0.01, of hidden 1 / 64, of the second layer 1 / 32."""

    def of(parameter: torch.Tensor) -> np.ndarray:
        return parameter.detach().double().numpy()

    fine = 100.0
    near = of(net.near.weight).transpose(2, 1, 0)  # (k, d, h)
    power = 16
    while (
        np.abs(near).max() * 2**power * 64 / fine > 2000
        or np.abs(near).sum((0, 1)).max() * 2**power * 64 / fine * 508 > 2**24
    ):
        power -= 1
    step = 2**power * 64 / fine
    deep = of(net.deep.weight).T / kernel.WINDOW / 64
    deep_power = 16
    while np.abs(deep).max() * 2**deep_power * 32 > 30000:
        deep_power -= 1
    tables = {n: np.round(of(getattr(net, n).weight) * fine).clip(-127, 127).astype(np.int8)
              for n in ("known", "first", "last", "shape", "build")}  # fmt: skip
    return {
        "words": words,
        **{name: table[: {"known": len(words), "first": pieces.BUCKETS, "last": pieces.BUCKETS}.get(name)]
           for name, table in tables.items()},
        "near": np.round(near * step).astype(np.int16),
        "near_bias": np.round(of(net.near.bias) * 2**power * 64).astype(np.int32),
        "divisor": np.float64(2**power),
        "deep": np.round(deep * 2**deep_power * 32).astype(np.int16),
        "deep_bias": np.round(of(net.deep.bias) * 2**deep_power * 32).astype(np.int32),
        "deep_divisor": np.float64(2**deep_power),
        "top": np.round(of(net.top.weight)[0] * 1024).astype(np.int32),
        "top_bias": np.round(of(net.top.bias)[0] * 32 * 1024),
        "top_divisor": np.float64(32 * 1024),
        "triples": bits,
    }  # fmt: skip


def scores_of(arrays: dict[str, np.ndarray], texts: list[str]) -> np.ndarray:
    weights = kernel.weights(arrays)
    found = np.full(len(texts), -np.inf)
    for begin, end in groups(texts):
        group = texts[begin:end]
        found[begin:end] = kernel.worst(pieces.tokens(group, weights.triples), len(group), weights)[0]
    return found


def kind_weights(kinds: list[str]) -> np.ndarray:
    """Every kind weighs, but a large one more: the square root of its size."""
    sizes = Counter(kinds)
    return np.array([sizes[kind] ** -0.5 for kind in kinds])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("translated", type=Path, help="where Django, Sphinx and WTForms are")
    parser.add_argument("output", type=Path)
    parser.add_argument("--made", type=int, default=12_000, help="pieces of gibberish")
    parser.add_argument("--epochs", type=int, default=6)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(SEED)
    clean = natural(arguments.folder, arguments.translated, rng)
    kinds = [kind for kind, _ in clean]
    texts = [text for _, text in clean]
    refuse_test_texts(texts)
    print(Counter(kinds).most_common(80))
    bits = triple_bits(texts)
    encoder = Encoder(None)
    flips = read_flips(FLIPS, encoder)
    maker = Maker(encoder, texts, questions_of(arguments.folder), SEED)
    placed = [maker.placed(maker.text(flips)) for _ in range(arguments.made)]
    refuse_test_texts(text for text, _, _ in placed)

    parts, made = tokens_of(texts, bits), tokens_of([text for text, _, _ in placed], bits)
    counts: Counter[int] = Counter()
    for part in (*parts, *made):
        counts.update(set(part.word.tolist()))
    words = np.sort(np.array(sorted(counts, key=lambda w: (-counts[w], w))[:VOCABULARY], dtype=np.uint64))
    weights = kind_weights([kind for kind, part in zip(kinds, parts, strict=True) if len(part.start)])
    natural_rows = Rows(parts, [(0, 0)] * len(texts), words)
    made_rows = Rows(made, [(begin, end) for _, begin, end in placed], words)
    net = fit(natural_rows, made_rows, weights, arguments.epochs)
    arrays = whole_numbers(net, words, bits)
    natural_scores = scores_of(arrays, texts)
    written = [kind not in UNUSUAL for kind in kinds]
    bar = float(np.quantile(natural_scores[written], 1 - FALSE_ALARMS))
    steps = arrays["top_divisor"]
    arrays["top_bias"] = arrays["top_bias"] - np.round(bar * steps) - np.round(MARGIN * steps)
    shipped = SHIPPED.read_bytes()
    np.savez_compressed(arguments.output, **arrays)
    print("the file is", "the shipped one" if arguments.output.read_bytes() == shipped else "NOT the shipped one")
    bar += MARGIN
    print("bar", bar, "made found", float((scores_of(arrays, [t for t, _, _ in placed]) > 0).mean()))
    by_kind = defaultdict(list)
    for kind, score in zip(kinds, natural_scores > bar):
        by_kind[kind].append(score)
    print({kind: round(100 * float(np.mean(hits)), 2) for kind, hits in by_kind.items() if any(hits)})
    print(arguments.output.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
