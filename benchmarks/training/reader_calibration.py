"""How well the reader's P(no answer) holds on families of texts that it was not calibrated on.

    python -m benchmarks reader_calibration evaluation-data

A family is a question file, a kind of `qa_spans.jsonl`, or the poison texts; no question was learnt from. Two
figures, a slope and an intercept of the model's log-odds, are fitted on all licensed families but one and measured on
that one.
Files without a licence are measured only, by a fit on all licensed ones. The figures in the reader's own `reader.json`
stand beside.

short: the passage as it is; snippet: some words of it, as a search engine shows them; long: among three others. Pairs
with and without an answer count alike. The expected calibration error has ten bins; `by chance` is what a perfect P
would have on as many pairs.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.training.reader_data import FREE_FILES, MEASURED, measured, poison_pairs, span_pairs, unseen
from benchmarks.training.reader_texts import Pair, cut
from unpoison.models import Reader, load_generator

__all__ = ["FORMS", "calibration_error", "families", "fit_line", "forms_of"]

Vector = NDArray[np.float64]

FORMS = ("short", "snippet", "long")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the shared data")
    parser.add_argument("--reader", default="reader", help="reader, reader-base or qa:FOLDER_OR_NAME")
    parser.add_argument("--most", type=int, default=150, help="pairs of a family, and a third of it in other forms")
    options = parser.parse_args()
    reader: Reader = load_generator(options.reader)  # type: ignore[assignment]
    names, forms, odds, stated, answered = [], [], [], [], []
    for name, pairs in families(options.folder, options.most, licensed=False).items():
        for form, part in forms_of(pairs, options.most // 3).items():
            readings = reader.read_pairs([(pair.question, pair.text) for pair in part])
            names += [name] * len(part)
            forms += [form] * len(part)
            odds += [reading.score for reading in readings]
            stated += [1 - reading.no_answer for reading in readings]
            answered += [bool(pair.spans) for pair in part]
    family, form_of = np.array(names), np.array(forms)
    score, shipped, truth = np.array(odds), np.array(stated), np.array(answered, float)
    licensed = np.array([not name.startswith("unlicensed") for name in names])
    left_out = np.empty(len(truth))
    for name in dict.fromkeys(names):
        fits, here = licensed & (family != name), family == name
        slope, intercept = fit_line(score[fits], truth[fits], family[fits])
        left_out[here] = 1 / (1 + np.exp(-(slope * score[here] + intercept)))
    print("| family | n | left out | as shipped | by chance |\n|---|---|---|---|---|")
    errors = [_row(name, family == name, left_out, shipped, truth) for name in dict.fromkeys(names)]
    free = [row for row, name in zip(errors, dict.fromkeys(names), strict=True) if not name.startswith("unlicensed")]
    print(f"| mean of the licensed | | {' | '.join(f'{value:.3f}' for value in np.mean(free, axis=0))} |")
    for kind in FORMS:
        _row(f"licensed, {kind}", licensed & (form_of == kind), left_out, shipped, truth)
    slope, intercept = fit_line(score[licensed], truth[licensed], family[licensed])
    print(f"\nOn all licensed families: slope {slope:.3f}, intercept {intercept:.3f}")


def families(folder: Path, most: int, *, licensed: bool = True) -> dict[str, list[Pair]]:
    """Unseen pairs by family, up to so many of each; those of unlicensed files too, unless `licensed`."""
    rng = np.random.default_rng(5)
    spans = [pair for pair in span_pairs(folder) if unseen(folder, pair.question)]
    poison = poison_pairs(folder, test=True)
    poison = [poison[i] for i in rng.permutation(len(poison))[:most]]
    shifted = [*poison[most // 3 :], *poison[: most // 3]]
    foreign = [
        replace(pair, question=other.question, spans=())
        for pair, other in list(zip(poison, shifted, strict=True))[::2]
        if pair.question != other.question
    ]
    parts = {name: measured(folder, name, most, seed=5) for name in FREE_FILES}
    parts["poison"] = [*poison[1::2], *foreign]
    for source in sorted({pair.source for pair in spans}):
        mine = [pair for pair in spans if pair.source == source]
        parts[f"spans, {source}"] = [mine[i] for i in rng.permutation(len(mine))[:most]]
    if not licensed:
        for name in sorted(set(MEASURED) - set(FREE_FILES)):
            parts[f"unlicensed, {name}"] = measured(folder, name, most, seed=5)
    return parts


def forms_of(pairs: list[Pair], most: int) -> dict[str, list[Pair]]:
    """The pairs as they are, some cut to a snippet, and some with their passage among three others."""
    rng = np.random.default_rng(7)
    mixed = [pairs[i] for i in rng.permutation(len(pairs))]
    snippets = [part for pair in mixed if (part := cut(pair, rng)) is not pair][:most]
    return {"short": pairs, "snippet": snippets, "long": [_among(pair, pairs, rng) for pair in mixed[:most]]}


def _among(pair: Pair, others: list[Pair], rng: np.random.Generator) -> Pair:
    """The passage among up to three of other questions that do not hold its answer."""
    drawn = [others[int(rng.integers(len(others)))] for _ in range(3)]
    filling = [
        other.text
        for other in drawn
        if other.question != pair.question and not (pair.spans and pair.answer.lower() in other.text.lower())
    ]
    place = int(rng.integers(len(filling) + 1))
    by = sum(len(text) + 1 for text in filling[:place])
    text = "\n".join([*filling[:place], pair.text, *filling[place:]])
    return replace(pair, text=text, spans=tuple((start + by, end + by) for start, end in pair.spans))


def fit_line(odds: Vector, answered: Vector, family: NDArray[np.str_]) -> tuple[float, float]:
    """Slope and intercept from a model's log-odds to those of an answer; families count alike, both classes too."""
    weight = np.zeros(len(odds))
    for name in np.unique(family):
        for value in (False, True):
            rows = (family == name) & (answered == value)
            weight[rows] = min(1, (family == name).sum() / 100) / max(1, rows.sum())
    weight /= weight.sum()

    def loss(line: Vector) -> float:
        logit = line[0] * odds + line[1]
        return float((weight * (np.logaddexp(0, logit) - answered * logit)).sum())

    slope, intercept = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return float(slope), float(intercept)


def calibration_error(probability: Vector, answered: Vector, bins: int = 10) -> float:
    """How far stated and actual shares lie apart, in the mean of ten bins; both classes count alike."""
    share = float(answered.mean())
    weight = np.where(answered == 1, 0.5 / max(share, 1e-9), 0.5 / max(1 - share, 1e-9)) / len(answered)
    place = np.minimum((probability * bins).astype(int), bins - 1)
    return float(sum(abs((weight * (probability - answered))[place == b].sum()) for b in range(bins)))


def _row(name: str, rows: NDArray[np.bool_], left_out: Vector, shipped: Vector, truth: Vector) -> list[float]:
    rng = np.random.default_rng(0)
    perfect = left_out[rows]
    drawn = [calibration_error(perfect, (rng.random(len(perfect)) < perfect).astype(float)) for _ in range(50)]
    errors = [calibration_error(part[rows], truth[rows]) for part in (left_out, shipped)]
    errors.append(float(np.mean(drawn)))
    print(f"| {name} | {rows.sum()} | {' | '.join(f'{value:.3f}' for value in errors)} |", flush=True)
    return errors


if __name__ == "__main__":
    main()
