"""From the weights of `train_reader.py` to the shipped file: int8, calibrated, with its hashes.

    python -m benchmarks export_reader evaluation-data work/reader packages/unpoison-reader/src/unpoison_reader

Two figures of the calibration (no answer: slope and intercept) are fitted on the unseen questions of all licensed
families in all forms (`reader_calibration.py`, which measures them on families left out), and one of the judge
(temperature) on half of the unseen pairs of answers. Passages with and without an answer count alike, so a probability
is that of a passage that is as likely to answer as not.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from scipy.optimize import minimize
from torch import Tensor, nn

from benchmarks.training.onnx_export import INPUTS, write_graph, write_settings
from benchmarks.training.reader_answers import relation_rows
from benchmarks.training.reader_calibration import families, fit_line, forms_of
from benchmarks.training.reader_languages import written_questions
from benchmarks.training.reader_network import Reader as Network
from benchmarks.training.reader_network import minilm
from benchmarks.training.reader_texts import Pair
from benchmarks.training.reader_weights import passes
from benchmarks.training.split import share_of
from benchmarks.training.train_reader import LONGEST_QUESTION, WINDOW
from unpoison.models.reader import Reader

LANGUAGES = ("en",)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the shared data")
    parser.add_argument("work", type=Path, help="where train_reader.py wrote its states")
    parser.add_argument("output", type=Path, help="where model.onnx, tokenizer.json and reader.json go")
    parser.add_argument("--start", type=Path, help="the checkpoint that the training started from; MiniLM unless given")
    parser.add_argument("--layers", type=int, help="how many of its layers were trained; all unless given")
    parser.add_argument("--most", type=int, default=400, help="pairs of a family that the calibration reads")
    parser.add_argument("--multilingual", action="store_true", help="calibrated on 29 languages, and for any")
    parser.add_argument("--averaged", type=int, default=3, help="last passes whose weights are averaged")
    options = parser.parse_args()
    start = options.start or minilm()
    network = Network(start, options.layers)
    network.load_state_dict(_averaged(options.work, options.averaged))
    options.output.mkdir(parents=True, exist_ok=True)
    inputs = INPUTS if network.typed else INPUTS[:2]
    write_graph(_Shipped(network.eval()), inputs, ("start", "end", "relation"), options.output / "model.onnx")
    shutil.copyfile(start / "tokenizer.json", options.output / "tokenizer.json")
    bounds = {"window": WINDOW, "question": LONGEST_QUESTION}
    write_settings(options.output, **bounds)
    reader = Reader(options.output)
    parts = families(options.folder, options.most)
    if options.multilingual:
        parts = {"xquad": parts["spans, xquad"], **written_questions(options.folder, test=True)}
    slope, intercept = fit_line(*_odds(reader, parts, options.most))
    logits, classes, fitted = _relations(reader, options.folder)
    temperature = _temperature(logits[fitted], classes[fitted])
    figures = {"slope": slope, "intercept": intercept, "temperature": temperature}
    write_settings(options.output, **bounds, **figures, languages=() if options.multilingual else LANGUAGES)
    print(f"{(options.output / 'model.onnx').stat().st_size / 1e6:.1f} MB")
    print(f"slope {slope:.3f}, intercept {intercept:.3f}, temperature {temperature:.3f}")
    right = logits[~fitted].argmax(1) == classes[~fitted]
    print(f"relation right on the other half: {right.mean():.3f} of {len(right)}")


def _averaged(work: Path, last: int) -> dict[str, Tensor]:
    """The mean of the weights after each of the last passes.

    Of six passes the last three together read somewhat better than the last alone; of two, the last alone does.
    """
    states = [load_file(file) for file in passes(work)[-last:]]
    return {name: torch.stack([state[name].float() for state in states]).mean(0) for name in states[0]}


class _Shipped(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        start, end, relation = self.network(ids, mask, types)
        return start, end, relation


def _odds(reader: Reader, parts: dict[str, list[Pair]], most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of held-out passages: the reader's log-odds, whether they answer, and their family."""
    rows = [
        (name, pair) for name, pairs in parts.items() for part in forms_of(pairs, most // 3).values() for pair in part
    ]
    readings = reader.read_pairs([(pair.question, pair.text) for _, pair in rows])
    answered = np.array([bool(pair.spans) for _, pair in rows], float)
    return np.array([r.score for r in readings]), answered, np.array([name for name, _ in rows])


def _relations(reader: Reader, folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = relation_rows(folder, test=True)
    windows = [reader._cutter.answers(question, [(left, right)])[0] for question, left, right, _ in rows]
    logits = np.array([mark.relation for mark in reader._model.run(windows)], float)
    return logits, np.array([row[3] for row in rows]), np.array([share_of(row[0]) < 0.5 for row in rows])


def _temperature(logits: np.ndarray, classes: np.ndarray) -> float:
    def loss(temperature: np.ndarray) -> float:
        scaled = logits / np.exp(temperature[0])
        return float((np.logaddexp.reduce(scaled, axis=1) - scaled[np.arange(len(classes)), classes]).mean())

    return float(np.exp(minimize(loss, np.array([0.0]), method="Nelder-Mead").x[0]))


if __name__ == "__main__":
    main()
