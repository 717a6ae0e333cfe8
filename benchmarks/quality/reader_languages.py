"""What the reader makes of passages in other languages than English.

    python -m benchmarks reader_languages evaluation-data [--xquad FOLDER] [--reader reader]

`own`: questions of `texts/reader_questions.jsonl` and `texts/reader_documents.jsonl` about texts that nothing was
learnt from, a third of them near misses. `XQuAD`: a sample of the files `xquad.LANGUAGE.json` of google-deepmind/xquad,
questions about paragraphs of which no version in any language is among the training texts; each question is also put to
another paragraph of the same article. F1 and exact match over what has an answer, a refused one counting 0; in
languages that are written without spaces by signs.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.data_option import evaluation_folder
from benchmarks.training.reader_data import training
from benchmarks.training.reader_languages import asked
from benchmarks.training.reader_texts import Pair, Score, summary
from unpoison.models import load_generator
from unpoison.models.reader import Reader
from unpoison.text.tokens import squad

LANGUAGES = ("en", "de", "es", "zh", "ar", "el", "hi", "ro", "ru", "th", "tr", "vi")
SPACELESS = ("zh", "th", "ja")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder, help="the evaluation data")
    parser.add_argument("--xquad", type=Path, help="a copy of google-deepmind/xquad")
    parser.add_argument("--reader", default="reader", help="reader, reader-multilingual or qa:FOLDER")
    parser.add_argument("--most", type=int, default=100, help="questions with an answer of one language")
    options = parser.parse_args()
    reader: Reader = load_generator(options.reader)  # type: ignore[assignment]
    sets: dict[str, list[Pair]] = {}
    for pair in asked(options.folder, options.most):
        sets.setdefault(f"own, {pair.source}", []).append(pair)
    if options.xquad is not None:
        learnt = _paragraphs_learnt(options.folder, options.xquad)
        for language in LANGUAGES:
            sets[f"XQuAD, {language}"] = list(_xquad(options.xquad, language, learnt, options.most))
    print("| set | n | F1 / EM | answered though none / refused though answer |\n|---|---|---|---|")
    found: dict[str, list[Score]] = {}
    for name, pairs in sets.items():
        readings = reader.read_pairs([(pair.question, pair.text) for pair in pairs])
        scores = [score(pair, reading.answer, name[-2:]) for pair, reading in zip(pairs, readings, strict=True)]
        found.setdefault(name.split(",")[0], []).extend(scores)
        _print(name, scores)
    for name, scores in found.items():
        _print(f"all of {name}", scores)


def _print(name: str, scores: list[Score]) -> None:
    f1, exact, answered, refused = summary(scores)
    print(f"| {name} | {len(scores)} | {f1} / {exact} | {answered} / {refused} |", flush=True)


def score(pair: Pair, answer: str, language: str) -> Score:
    """F1 and exact match, by signs in languages that are written without spaces."""
    golds = {pair.text[start:end] for start, end in pair.spans}
    best = max((_f1(_units(answer, language), _units(gold, language)) for gold in golds), default=0.0)
    exact = any(_units(answer, language) == _units(gold, language) for gold in golds)
    return Score(bool(golds), best, exact, bool(answer))


def _units(text: str, language: str) -> list[str]:
    return [sign for sign in squad(text) if not sign.isspace()] if language in SPACELESS else squad(text).split()


def _f1(left: list[str], right: list[str]) -> float:
    common = sum((Counter(left) & Counter(right)).values())
    return 2 * common / (len(left) + len(right)) if common else 0.0


def _xquad(folder: Path, language: str, learnt: set[tuple[int, int]], most: int) -> Iterator[Pair]:
    articles = json.loads((folder / f"xquad.{language}.json").read_text("utf-8"))["data"]
    fresh = [
        (article, place, question)
        for i, article in enumerate(articles)
        for place, paragraph in enumerate(article["paragraphs"])
        if (i, place) not in learnt
        for question in paragraph["qas"]
    ]
    rng = np.random.default_rng(3)
    for i in rng.permutation(len(fresh))[:most]:
        article, place, question = fresh[i]
        text = article["paragraphs"][place]["context"]
        spans = tuple((a["answer_start"], a["answer_start"] + len(a["text"])) for a in question["answers"])
        yield Pair(question["question"], text, spans, language)
        other = article["paragraphs"][(place + 1) % len(article["paragraphs"])]["context"]
        yield Pair(question["question"], other, (), language)


def _paragraphs_learnt(folder: Path, xquad: Path) -> set[tuple[int, int]]:
    """The places of paragraphs that stand, in any language, among the training texts."""
    known = {_start(pair.text) for pair in training(folder)["spans"] if pair.source == "xquad"}
    return {
        (i, place)
        for language in ("en", "de", "es", "zh")
        for i, article in enumerate(json.loads((xquad / f"xquad.{language}.json").read_text("utf-8"))["data"])
        for place, paragraph in enumerate(article["paragraphs"])
        if _start(paragraph["context"]) in known
    }


def _start(text: str) -> str:
    return "".join(text.split())[:60]


if __name__ == "__main__":
    main()
