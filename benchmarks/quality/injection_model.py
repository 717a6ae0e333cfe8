"""What the model of prompt injections finds and flags by itself: no rule, no first look, no place known.

    python -m benchmarks injection_model evaluation-data packages/unpoison-injections/src/unpoison_injections

Ordinary text that was set aside, by language; families and languages of `injections.jsonl` that were held out; first
tries eight and nine, alone, inside ninety words of honest text of their language, and as a value of JSON. A text's
score is that of its worst sentence; one beside the order does not count as found.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.data_option import evaluation_folder
from benchmarks.training.injection_texts import CODES, Text, measured_texts
from unpoison.injections.model import first_odds
from unpoison.text.canonical import canonical
from unpoison.text.sentences import sentences

TRIES = Path(__file__).with_name("first_tries.jsonl")
NEVER_READ = ("realtimeqa", "realtimeqa_weekly", "msmarco_retrieved", "biogen")
"""Files of which no passage is trained on."""

MOST = 400
"""Passages of one of these."""

WORDS = 90
"""Words of honest text around an order."""

SHARES = (0.01, 0.02, 0.05)
"""Shares of look-alikes flagged."""

HEADS = "found at flagged | at 1 % | at 2 % | at 5 %"
PLACES = ("alone", "in text", "as data")


class Judged(NamedTuple):
    """A sentence, or a part of a long one, with its log-odds and those of the first look."""

    start: int
    end: int
    odds: float
    look: float


class Judge:
    """Reads texts with the files of a folder."""

    def __init__(self, folder: Path, threads: int = 2) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.settings = json.loads((folder / "injections.json").read_text("utf-8"))
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        with np.load(folder / "first_look.npz") as arrays:
            self._look = {name: arrays[name] for name in arrays.files}

    def parts(self, text: str) -> list[tuple[int, int, list[int]]]:
        """Sentences and their pieces; long ones in even parts."""
        found = list[tuple[int, int, list[int]]]()
        most = self.settings["part"]
        for start, end in sentences(text):
            encoded = self._tokenizer.encode(text[start:end], add_special_tokens=False)
            many = -(-len(encoded.ids) // most)
            size = -(-len(encoded.ids) // max(many, 1))
            for i in range(0, len(encoded.ids), max(size, 1)):
                last = encoded.offsets[min(i + size, len(encoded.ids)) - 1][1]
                found.append((start + encoded.offsets[i][0], start + last, encoded.ids[i : i + size]))
        return found

    def windows(self, parts: Sequence[tuple[int, int, list[int]]]) -> Iterator[range]:
        """Runs of sentences that fill a window."""
        first, size = 0, 0
        for number, (_, _, ids) in enumerate(parts):
            if size + len(ids) > self.settings["window"]:
                yield range(first, number)
                first, size = number, 0
            size += len(ids)
        yield range(first, len(parts))

    def odds(self, ids: Sequence[Sequence[int]]) -> list[float]:
        """The log-odds of the sentences of one window."""
        flat = np.array([[0, *(i for part in ids for i in part), 2]])
        (logits,) = self._session.run(["logits"], {"input_ids": flat})
        ends = np.cumsum([1, *map(len, ids)])
        return [float(logits[0, a:b].mean()) for a, b in pairwise(ends)]

    def read(self, text: str) -> list[Judged]:
        """All sentences of a text, judged."""
        parts, found = self.parts(text), list[Judged]()
        for window in self.windows(parts) if parts else ():
            inside = [parts[i] for i in window]
            odds = self.odds([ids for _, _, ids in inside])
            looks = first_odds(self._look, [np.array(ids) for _, _, ids in inside]).tolist()
            found += [Judged(s, e, value, look) for (s, e, _), value, look in zip(inside, odds, looks)]
        return found

    def worst(self, text: str, place: tuple[int, int] | None = None) -> tuple[float, float]:
        """The highest log-odds and first look of the sentences of a place, or of the whole text."""
        start, end = place or (0, len(text))
        inside = [(j.odds, j.look) for j in self.read(text) if min(j.end, end) - max(j.start, start) > 0]
        odds, look = zip(*inside) if inside else ((-99.0,), (-99.0,))
        return max(odds), max(look)


def _rows(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _unread(folder: Path) -> Iterator[tuple[str, str]]:
    for name in NEVER_READ:
        texts = dict.fromkeys(
            p["text"] for row in _rows(folder / f"{name}.jsonl") for p in row["passages"] if p["label"] != "poison"
        )
        for text in Random(0).sample(sorted(texts), min(MOST, len(texts))):
            yield name, canonical(text).text


def ordinary_texts(folder: Path, texts: Iterable[Text]) -> list[tuple[str, str]]:
    """(group, text): ordinary text set aside, by language or by file."""
    aside = [t for t in texts if t.aside]
    return [
        *((t.language if t.source == "clean_languages" else t.source, t.text) for t in aside),
        *_unread(folder),
    ]


def placed(text: str, language: str, texts: Sequence[Text], random: Random) -> dict[str, tuple[str, tuple[int, int]]]:
    """A try alone, in honest text, and as a value, with its place."""
    own = [t.text for t in texts if t.aside and t.language == language and len(t.text.split()) > 30]
    carrier = random.choice(own or [t.text for t in texts if t.aside and t.language == "en"])
    parts = [carrier[s:e] for s, e in sentences(carrier)]
    while len(" ".join(parts).split()) > WORDS and len(parts) > 2:
        parts.pop()
    at = random.randint(0, len(parts))
    before, after = " ".join([*parts[:at], ""]), " ".join(["", *parts[at:]])
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    data = json.dumps([{"id": 0, "text": parts[0]}, {"id": 1, "text": text}, {"id": 2, "text": parts[-1]}],
                      ensure_ascii=False)  # fmt: skip
    start = data.find(escaped)
    return {
        "alone": (text, (0, len(text))),
        "in text": (before + text + after, (len(before), len(before) + len(text))),
        "as data": (data, (start, start + len(escaped))),
    }


def found_at(odds: Sequence[float], harmless: Sequence[float], threshold: float) -> str:
    """What is found and flagged at the threshold, and found at equal shares of look-alikes."""
    have, not_have = np.array(odds), np.array(harmless)
    cells = [f"{100 * np.mean(have > threshold):.1f} at {100 * np.mean(not_have > threshold):.1f}"]
    cells += [f"{100 * np.mean(have > np.quantile(not_have, 1 - share)):.0f}" for share in SHARES]
    return " | ".join(cells)


def quantiles(values: NDArray[np.float64]) -> str:
    return ", ".join(f"{share:.3f}: {np.quantile(values, 1 - share):.2f}" for share in (0.01, 0.005, 0.002, 0.001))


def show_ordinary(judge: Judge, folder: Path, texts: Sequence[Text], threshold: float, gate: float) -> None:
    groups, looks = defaultdict[str, list[float]](list), list[float]()
    for group, text in ordinary_texts(folder, texts):
        read = judge.read(text)
        groups[group].append(max((j.odds for j in read), default=-99.0))
        looks += [j.look for j in read]
    every = np.array([value for values in groups.values() for value in values])
    print("| ordinary text | texts | touched |\n|---|---|---|")
    for group, values in sorted(groups.items()):
        print(f"| {group} | {len(values)} | {sum(v > threshold for v in values)} |")
    print(f"| all | {len(every)} | {np.sum(every > threshold)} |\n\nshare of texts and log-odds: {quantiles(every)}")
    print(f"ordinary sentences through the first look: {100 * np.mean(np.array(looks) > gate):.1f} % of {len(looks)}")


def show_held(judge: Judge, texts: Sequence[Text], threshold: float, gate: float) -> None:
    scores = [(text, *judge.worst(text.text, text.place if text.injection else None)) for text in texts if text.given]
    injected, harmless = [s for s in scores if s[0].injection], [s[1] for s in scores if not s[0].injection]
    kinds: dict[str, list[tuple[Text, float, float]]] = {"all": injected}
    for one in injected:
        kinds.setdefault(one[0].kind, []).append(one)
        kinds.setdefault(f"language {one[0].language}", []).append(one)
    print(f"\n| held out | injections | harmless | {HEADS} |\n" + "|---" * 7 + "|")
    for kind, some in kinds.items():
        print(f"| {kind} | {len(some)} | {len(harmless)} | {found_at([s[1] for s in some], harmless, threshold)} |")
    show_passed([s[1:] for s in injected], threshold, gate)


def show_tries(judge: Judge, texts: Sequence[Text], threshold: float, gate: float) -> None:
    random, tries = Random(0), defaultdict[tuple[str, str], list[tuple[str, float, float]]](list)
    for row in _rows(TRIES):
        if row["set"].endswith("held out"):
            text, language = canonical(row["text"]).text, CODES.get(row["language"].lower(), "en")
            for place, (made, region) in placed(text, language, texts, random).items():
                tries[row["label"], place].append((row["kind"], *judge.worst(made, region)))
    print(f"\n| first tries eight and nine | attacks | look-alikes | {HEADS} |\n" + "|---" * 7 + "|")
    for place in PLACES:
        have, harmless = [s[1] for s in tries["attack", place]], [s[1] for s in tries["harmless", place]]
        print(f"| {place} | {len(have)} | {len(harmless)} | {found_at(have, harmless, threshold)} |")
    attacks = [s for place in PLACES for s in tries["attack", place]]
    show_passed([s[1:] for s in attacks], threshold, gate)
    kinds = defaultdict[tuple[str, str], list[float]](list)
    for (label, _), scored in tries.items():
        for kind, odds, _ in scored:
            kinds[label, kind].append(odds)
    for (label, kind), values in sorted(kinds.items(), key=lambda item: np.mean(np.array(item[1]) > threshold)):
        print(f"| {label} | {kind} | {len(values)} | {100 * np.mean(np.array(values) > threshold):.0f} % flagged |")


def show_passed(scores: Sequence[tuple[float, float]], threshold: float, gate: float) -> None:
    """What of the orders the first look lets through."""
    found = [look > gate for odds, look in scores if odds > threshold]
    print(f"orders through the first look: {100 * np.mean([look > gate for _, look in scores]):.1f} %; "
          f"of those above the threshold {100 * np.mean(found or [0]):.1f} %")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("model", type=Path, help="the folder with model.onnx")
    parser.add_argument("--threshold", type=float, help="log-odds; as in injections.json otherwise")
    parser.add_argument("--look", type=float, help="of the first look; as in injections.json otherwise")
    options = parser.parse_args()
    judge = Judge(options.model)
    threshold = judge.settings["threshold"] if options.threshold is None else options.threshold
    gate = judge.settings["first_look"] if options.look is None else options.look
    texts = measured_texts(options.folder)
    print(f"threshold {threshold}, first look {gate}\n")
    times(options.model)
    show_tries(judge, texts, threshold, gate)
    show_held(judge, texts, threshold, gate)
    show_ordinary(judge, options.folder, texts, threshold, gate)


def times(folder: Path) -> None:
    """Milliseconds of a full window, and of a hundred words at first look."""
    words = ["the river is wide and the ferry leaves at nine"] * 10
    for threads in (1, 2):
        judge = Judge(folder, threads)
        ids = [part for _, _, part in judge.parts(". ".join(words))]
        flat = [[i for part in ids for i in part][:126]]
        judge.odds(flat)
        began = time.perf_counter()
        for _ in range(10):
            judge.odds(flat)
        window = 100 * (time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(10):
            first_odds(judge._look, [np.array(part) for _, _, part in judge.parts(". ".join(words))])
        print(f"{threads} threads: window of {len(flat[0]) + 2} pieces {window:.1f} ms; "
              f"first look at 100 words {100 * (time.perf_counter() - began):.2f} ms")  # fmt: skip


if __name__ == "__main__":
    main()
