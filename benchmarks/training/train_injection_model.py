"""Train the transformer that judges what the linear model of prompt injections is unsure of, and export it.

    python -m benchmarks train_injection_model evaluation-data packages/unpoison-reader/src/unpoison_reader/injection
    python -m benchmarks injections evaluation-data --only held  # found and flagged, families held out of both models

MiniLM with its four lower layers frozen reads windows of 94 tokens; the two upper layers and a head over the mean and
the maximum of the tokens are trained. Of an injection the windows that hold at least half of it count as positive, and
one beside it as negative; three in ten are also planted in harmless text once more. A fourth pass also reads our own
harmless look-alikes, planted in the same way, or every request in the middle of a mail would count as an injection.
A quarter of the families of `injections.jsonl` and four languages are held out (`injection_texts.held_out`). Takes
about an hour on one core.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.data_option import evaluation_folder
from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.injection_texts import LATER, Text, all_texts, held_out, share
from benchmarks.training.onnx_export import INPUTS, file_hashes, write_graph
from benchmarks.training.reader_network import Frame, minilm, open_tokenizer
from unpoison.injections.model import WINDOW

STEP = WINDOW // 2
"""Tokens from one window of a text to the next."""

MAX_CHARS = 6_000
"""Characters of a text that are read."""

FROZEN = 4
"""Lower layers that keep the weights of the checkpoint."""

PASSES, BATCH, WARM_UP = 3, 32, 30
RATE, HEAD_RATE, LAST_RATE, DROPPED = 1e-4, 1e-3, 0.7, 0.1
"""Of the layers and of the head; the share of both in the last pass."""

MAX_FAMILY, MAX_PASSAGES, MAX_OWN, MAX_OWN_HARMLESS = 60, 99, 2, 3
"""Texts of one family of published texts, of passages, of our own injections, and of our own harmless texts."""

CLEAN_SHARE = 0.14
"""The share of passages and docstrings, which resemble no injection, that is read."""

PLANTED, MAX_PLANTED_CHARS = 0.3, 500
"""The share of injections that is planted in harmless text once more, and the longest that is."""

RESULTS = ("tool result", "tool result JSON", "email", "table", "customer service dialogue", "forum answer")
"""Kinds of harmless texts that an injection is planted in, beside passages."""


class Window(NamedTuple):
    """Tokens of a text, and the characters that they stand for."""

    ids: list[int]
    start: int
    end: int


class Example(NamedTuple):
    """A window with its label."""

    ids: list[int]
    injection: bool


def windows(tokenizer: Tokenizer, text: str) -> list[Window]:
    """Overlapping windows that cover a text."""
    encoded = tokenizer.encode(text[:MAX_CHARS], add_special_tokens=False)
    last = max(0, len(encoded.ids) - WINDOW + STEP - 1) // STEP
    parts = (slice(i * STEP, i * STEP + WINDOW) for i in range(last + 1))
    return [
        Window(encoded.ids[part], encoded.offsets[part][0][0], encoded.offsets[part][-1][1])
        for part in parts
        if encoded.ids[part]
    ]


def examples(texts: Iterable[Text], tokenizer: Tokenizer) -> list[Example]:
    """Labelled windows of all texts that are not held out, in random order."""
    known = [text for text in texts if not held_out(text)]
    passages, results = carriers(known)
    random, found = Random(7), list[Example]()
    for text in _selected(known):
        parts = windows(tokenizer, text.text)
        if not text.injection:
            found += [Example(part.ids, False) for part in random.sample(parts, min(1 + text.near, len(parts)))]
            continue
        inside, outside = _by_place(parts, text.place)
        found += [Example(part.ids, True) for part in inside[:2]]
        found += [Example(part.ids, False) for part in random.sample(outside, min(1, len(outside)))]
        order = text.text[slice(*text.place)] if text.place else text.text
        if len(order) < MAX_PLANTED_CHARS and random.random() < PLANTED:
            made = _planted(order, random.choice(passages + results), random)
            found.append(Example(_first_window(tokenizer, made), True))
    random.shuffle(found)
    return found


def look_alikes(texts: Iterable[Text], tokenizer: Tokenizer) -> list[Example]:
    """Our own harmless texts, each planted in a passage and in a tool's result."""
    known = [text for text in texts if not held_out(text)]
    own = [t.text for t in _selected(known) if t.near and not (t.injection or _is_published(t))]
    random = Random(11)
    return [
        Example(_first_window(tokenizer, _planted(text, random.choice(pool), random)), False)
        for text in own
        if len(text) < MAX_PLANTED_CHARS
        for pool in carriers(known)
    ]


def carriers(texts: Iterable[Text]) -> tuple[list[str], list[str]]:
    """Harmless texts in which something can be planted: passages, and results of tools."""
    harmless = [text for text in texts if not text.injection]
    passages = [text.text for text in harmless if not text.near and 150 < len(text.text) < 500]
    return passages, [t.text for t in harmless if t.given and t.kind in RESULTS and len(t.text) < 1_200]


def _first_window(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids[:WINDOW]
    return ids


def _selected(texts: Iterable[Text]) -> Iterator[Text]:
    """At most so many texts of a family, and a share of what resembles no injection."""
    seen = Counter[str]()
    for text in texts:
        if not text.near and share(f"clean{text.text}") > CLEAN_SHARE:
            continue
        if seen[text.family] < _limit(text):
            seen[text.family] += 1
            yield text


def _is_published(text: Text) -> bool:
    return text.given or text.source == "orders.jsonl"


def _limit(text: Text) -> int:
    if _is_published(text):
        return MAX_FAMILY
    if not text.near:
        return MAX_PASSAGES
    return MAX_OWN if text.injection else MAX_OWN_HARMLESS


def _by_place(parts: Sequence[Window], place: tuple[int, int] | None) -> tuple[list[Window], list[Window]]:
    """Windows that hold half of an injection, or lie in it by half; and those that hold nothing of it."""
    if place is None:
        return list(parts), []
    start, end = place
    shared = [max(0, min(end, part.end) - max(start, part.start)) for part in parts]
    inside = [p for p, both in zip(parts, shared) if both >= 0.5 * min(end - start, p.end - p.start)]
    return inside, [part for part, both in zip(parts, shared) if not both]


def _planted(order: str, carrier: str, random: Random) -> str:
    """An injection in the middle of a harmless text, between parts of random length."""
    middle = carrier.find(". ", len(carrier) // 2) + 2
    middle = middle if middle > 1 else len(carrier)
    before = carrier[max(0, middle - random.choice((60, 120, 200))) : middle]
    between = " " if random.random() < 0.7 else "\n"
    return f"{before}{between}{order} {carrier[middle : middle + random.choice((0, 80, 160))]}"


class InjectionNetwork(nn.Module):
    """MiniLM with one output: the log-odds that a window holds an injection."""

    def __init__(self) -> None:
        from transformers import AutoModel

        super().__init__()
        self.body = AutoModel.from_pretrained(minilm(), add_pooling_layer=False, attn_implementation="eager")
        self.head = nn.Linear(2 * self.body.config.hidden_size, 1)
        for name, parameter in self.body.named_parameters():
            layer = int(name.split(".")[2]) if name.startswith("encoder.layer.") else -1
            parameter.requires_grad = layer >= FROZEN

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.upper(self.lower(ids, mask), mask)

    def lower(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States behind the frozen layers, shape (n, length, width)."""
        return self._layers(slice(None, FROZEN), self.body.embeddings(input_ids=ids), mask)

    def upper(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Log-odds from these, shape (n,)."""
        hidden, weight = self._layers(slice(FROZEN, None), hidden, mask), mask[:, :, None].float()
        mean = (hidden * weight).sum(1) / weight.sum(1)
        highest = (hidden + (weight - 1) * 1e4).max(1).values
        pooled = nn.functional.dropout(torch.cat([mean, highest], 1), DROPPED, self.training)
        odds: Tensor = self.head(pooled).squeeze(-1)
        return odds

    def _layers(self, part: slice, hidden: Tensor, mask: Tensor) -> Tensor:
        blocked = (1.0 - mask[:, None, None, :].float()) * -1e9
        for layer in self.body.encoder.layer[part]:
            output = layer(hidden, blocked)
            hidden = output[0] if isinstance(output, tuple) else output
        return hidden


@torch.inference_mode()
def frozen_states(network: InjectionNetwork, found: Sequence[Example], frame: Frame) -> list[NDArray[np.float16]]:
    """What the frozen layers make of each window, once for all passes; half a gigabyte."""
    states: list[NDArray[np.float16]] = []
    for example in found:
        ids = torch.tensor([[*frame.before, *example.ids, *frame.behind]])
        states.append(network.lower(ids, torch.ones_like(ids))[0].half().numpy())
    return states


def train(
    network: InjectionNetwork,
    found: Sequence[Example],
    states: Sequence[NDArray[np.float16]],
    passes: range,
    share: float,
) -> None:
    """Train the upper layers and the head; the rate rises for `WARM_UP` steps and then falls to 0."""
    upper = [parameter for parameter in network.body.parameters() if parameter.requires_grad]
    head = list(network.head.parameters())
    plan = [batch for number in passes for batch in batches([len(state) for state in states], number)]
    rates = [{"params": upper, "lr": share * RATE}, {"params": head, "lr": share * HEAD_RATE}]
    optimizer = torch.optim.AdamW(rates, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / WARM_UP) * (1 - step / len(plan))
    )
    network.train()
    for step, batch in enumerate(plan):
        hidden = nn.utils.rnn.pad_sequence([torch.from_numpy(states[i]).float() for i in batch], batch_first=True)
        length = torch.tensor([len(states[i]) for i in batch])
        mask = (torch.arange(hidden.shape[1]) < length[:, None]).float()
        label = torch.tensor([float(found[i].injection) for i in batch])
        loss = nn.functional.binary_cross_entropy_with_logits(network.upper(hidden, mask), label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*upper, *head], 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            print(f"step {step} of {len(plan)}, loss {loss.item():.3f}", flush=True)


def batches(lengths: Sequence[int], seed: int) -> list[list[int]]:
    """Batches of windows of similar length, in random order."""
    random = np.random.default_rng(seed)
    order = iter(random.permutation(len(lengths)).tolist())
    found = list[list[int]]()
    while group := sorted(islice(order, 16 * BATCH), key=lengths.__getitem__):
        found += [group[i : i + BATCH] for i in range(0, len(group), BATCH)]
    return [found[i] for i in random.permutation(len(found))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("output", type=Path, help="where model.onnx, tokenizer.json and injection.json go")
    options = parser.parse_args()
    texts = [
        text for text in all_texts(options.folder) if text.text.strip() and text.source.split("_")[-1] not in LATER
    ]
    refuse_test_texts(text.text for text in texts)
    tokenizer = open_tokenizer(minilm())
    found, planted = examples(texts, tokenizer), look_alikes(texts, tokenizer)
    print(f"{len(found)} windows, {sum(one.injection for one in found)} positive; {len(planted)} look-alikes")
    torch.manual_seed(0)
    network = InjectionNetwork().eval()
    states = frozen_states(network, [*found, *planted], Frame.of(tokenizer))
    train(network, found, states[: len(found)], range(PASSES), 1.0)
    train(network, [*found, *planted], states, range(PASSES, PASSES + 1), LAST_RATE)
    export(network.eval(), options.output)


def export(network: InjectionNetwork, output: Path) -> None:
    """Write the int8 graph, the tokenizer, and the hashes of both."""
    output.mkdir(parents=True, exist_ok=True)
    graph = write_graph(network, INPUTS[:2], ("odds",), output / "model.onnx")
    shutil.copyfile(minilm() / "tokenizer.json", output / "tokenizer.json")
    (output / "injection.json").write_text(json.dumps({"sha256": file_hashes(output)}, indent=2) + "\n", "utf-8")
    print(f"{graph.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
