"""Export the injection model: the int8 graph, the tokenizer, the first look, and what is to be known about them.

    python -m benchmarks export_injections evaluation-data WORK packages/unpoison-injections/src/unpoison_injections

WORK is what `train_injections` filled; a run that is not over yet is exported as far as it came.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.data_option import evaluation_folder
from benchmarks.training.disjoint import refuse_test_texts
from benchmarks.training.injection_first_look import save, train_first_look
from benchmarks.training.injection_network import LAYERS, InjectionNetwork, Lower, Upper, trained_layers
from benchmarks.training.injection_texts import all_texts, held_out, measured_texts
from benchmarks.training.injection_windows import PART, WINDOW
from benchmarks.training.onnx_export import INPUTS, write_graph
from benchmarks.training.train_injections import planned
from unpoison.text.sentences import sentences

FILES = ("model.onnx", "tokenizer.json", "first_look.npz")


class Mean(NamedTuple):
    """A checkpoint with which the weights are averaged, and what share the new ones have."""

    checkpoint: Path
    share: float


def export(
    folder: Path, work: Path, earlier: Sequence[Path], output: Path, threshold: float, look: float, mean: Mean | None
) -> None:
    """Write all files of the package; the first look learns from the windows of earlier passes too."""
    output.mkdir(parents=True, exist_ok=True)
    learnt = torch.load(work / "checkpoint.pt", weights_only=True)["upper"]
    upper = Upper(work / "body.pt", trained_layers(learnt))
    if mean:
        upper.load_earlier(torch.load(mean.checkpoint, weights_only=True)["upper"])
        learnt = {name: value.lerp(learnt[name], mean.share) for name, value in upper.state_dict().items()}
    upper.load_state_dict(learnt)
    network = InjectionNetwork(Lower(work / "body.pt", LAYERS - trained_layers(learnt)), upper).eval()
    write_graph(network, INPUTS[:1], ("logits",), output / FILES[0], batch=1)
    shutil.copyfile(work / FILES[1], output / FILES[1])
    words = torch.load(work / "body.pt", weights_only=True)["embeddings.word_embeddings.weight"]
    read = [window for one in (*earlier, work) for window in planned(one)]
    tokenizer = Tokenizer.from_file(str(work / FILES[1]))
    save(train_first_look(read, honest_sentences(folder, work), words, tokenizer), output / FILES[2])
    settings = {
        "threshold": threshold, "first_look": look, "window": WINDOW, "part": PART,
        "sha256": {name: hashlib.sha256((output / name).read_bytes()).hexdigest() for name in FILES},
    }  # fmt: skip
    (output / "injections.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    print(*(f"{name}: {(output / name).stat().st_size / 1e6:.2f} MB" for name in FILES), sep="\n")


def honest_texts(folder: Path) -> list[str]:
    """Ordinary texts that are not set aside: the first look needs many."""
    aside = {text.text for text in measured_texts(folder)}
    texts = [text.text for text in all_texts(folder) if not (text.near or held_out(text))]
    for name in ("corpus", "qa_spans"):
        with (folder / f"{name}.jsonl").open(encoding="utf-8") as lines:
            texts += [row.get("text") or row.get("passage") or "" for row in map(json.loads, lines)]
    return [text for text in texts if text not in aside]


def honest_sentences(folder: Path, work: Path) -> list[NDArray[np.int64]]:
    """The pieces of all their sentences."""
    texts = honest_texts(folder)
    refuse_test_texts(texts)
    parts = dict.fromkeys(text[start:end] for text in texts for start, end in sentences(text))
    tokenizer = Tokenizer.from_file(str(work / FILES[1]))
    return [np.array(one.ids) for one in tokenizer.encode_batch(list(parts), add_special_tokens=False) if one.ids]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("work", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--earlier", type=Path, nargs="*", default=[], help="what WORK was in earlier passes")
    parser.add_argument("--mean", type=Path, help="a checkpoint with which the weights are averaged")
    parser.add_argument("--share", type=float, default=0.5, help="of the new weights in that mean")
    parser.add_argument("--threshold", type=float, default=1.5, help="log-odds from which on a sentence is an order")
    parser.add_argument("--look", type=float, default=-3.5, help="log-odds of the first look from which on it is read")
    options = parser.parse_args()
    torch.set_num_threads(2)
    look, mean = options.look, Mean(options.mean, options.share) if options.mean else None
    export(options.folder, options.work, options.earlier, options.output, options.threshold, look, mean)


if __name__ == "__main__":
    main()
