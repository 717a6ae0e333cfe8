"""The pairs of question and passage that the reader learns from and is measured on.

Learnt from: texts whose licence allows shipping weights (MIT, BSD, Apache, CC BY-SA), eight tenths of the questions.
The other two tenths, and every file without such a licence, are only measured on; `split.py` sees to it that no
question and no document is on both sides. What a passage *says* is asked, not whether it is true: a published poison
with its stated wrong answer teaches reading as well as a true text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training import guard_data
from benchmarks.training.reader_texts import UNLABELLED, Pair, blanked, occurrences
from benchmarks.training.reader_written import written
from benchmarks.training.split import held_out, overlaps, rows, runs, words
from unpoison.core.passages import Passage
from unpoison_lab.evaluation.contexts import nearest
from unpoison_lab.evaluation.datasets import load_passages

__all__ = [
    "BLANKED",
    "FREE_FILES",
    "MEASURED",
    "TEST_SHARE",
    "answer_pairs",
    "blank_sources",
    "epoch",
    "measured",
    "poison_pairs",
    "span_pairs",
    "training",
    "unlabelled",
    "unseen",
]

FREE = frozenset(guard_data.FREE) - {"GARAG-retrieval", "PoisonedRAG-retrieval", "ucbd-experiment"}
"""Sources with a licence of their own, not only that of the Wikipedia articles that they copied."""

TEST_SHARE = 0.2
"""Of the questions. Every question kept aside here is kept aside by Guard's fit too."""

FREE_FILES = ("nq_poisoned", "hotpotqa_poisoned", "nq_large_poisoned", "hotpotqa_distractor", "ramdocs", "timeqa")
TARGETED = ("poisonedrag", "poisonedrag-gpt4", "poisonedrag-gemini", "poisonedrag-gemini-long")
MEASURED = (
    "nq_poisoned", "hotpotqa_poisoned", "nq_large_poisoned", "ramdocs", "timeqa", "rgb_counterfactual", "realtimeqa",
    "msmarco_poisoned", "hotpotqa_distractor",
)  # fmt: skip

POISON_PER_QUESTION = 14
NEAR_MISSES = 2
NEAR = 3
"""Passages of the corpus that a teacher reads for each question."""
BLANKED = 4000
WRITTEN = 1500


def _aside(folder: Path, question: str) -> bool:
    return held_out(folder, question, TEST_SHARE)


def unseen(folder: Path, question: str) -> bool:
    """Whether nothing was learnt from a question: held out, or of a file that is not learnt from."""
    return _aside(folder, question) or words(question) not in _learnt(folder)


@cache
def _learnt(folder: Path) -> frozenset[str]:
    return frozenset(words(pair.question) for pairs in training(folder).values() for pair in pairs)


@cache
def _measured_runs(folder: Path) -> frozenset[int]:
    """The runs of words of every passage that may be measured on, so that no training text repeats one."""
    read: set[int] = set()
    for row in rows(folder / "qa_spans.jsonl"):
        if _aside(folder, row["question"]) and row["answers"]:
            read.update(runs(row["passage"]))
    for name in MEASURED:
        for row in rows(folder / f"{name}.jsonl"):
            if name not in FREE_FILES or _aside(folder, row["question"]):
                for passage in row["passages"]:
                    if passage["label"] in ("gold", "clean"):
                        read.update(runs(passage["text"]))
    return frozenset(read)


@cache
def training(folder: Path) -> dict[str, list[Pair]]:
    """All pairs to learn from, by kind: questions that are not held out, free texts that are not measured on."""
    pairs: dict[str, list[Pair]] = {
        "spans": [pair for pair in span_pairs(folder) if not _aside(folder, pair.question)],
        "passages": [],
        "poison": [],
    }
    for name in FREE_FILES:
        for row in rows(folder / f"{name}.jsonl"):
            if _aside(folder, row["question"]):
                continue
            for pair, label, source in _read(name, row):
                if source in FREE:
                    pairs["poison" if label == "poison" else "passages"].append(pair)
    pairs["passages"] += _near_misses(folder, pairs["spans"])
    aside = _measured_runs(folder)
    return {kind: [pair for pair in part if not overlaps(pair.text, aside)] for kind, part in pairs.items()}


def epoch(pairs: dict[str, list[Pair]], blanks: list[tuple[str, str]], rng: np.random.Generator) -> list[Pair]:
    """What one pass reads: all real pairs, a sample of each question's poison, and `blanks` with a word taken out."""
    chosen = [*pairs["spans"], *pairs["passages"]]
    by_question: dict[str, list[Pair]] = {}
    for pair in pairs["poison"]:
        by_question.setdefault(pair.question, []).append(pair)
    for texts in by_question.values():
        chosen += [texts[i] for i in rng.permutation(len(texts))[:POISON_PER_QUESTION]]
    poison = pairs["poison"]
    for i in rng.permutation(len(poison))[: len(by_question) * 3]:  # another question's poison answers nothing
        asked = chosen[int(rng.integers(len(chosen)))]
        if asked.question != poison[i].question:
            chosen.append(Pair(asked.question, poison[i].text, (), "foreign poison"))
    for i in rng.permutation(len(blanks)):
        cloze = blanked(*blanks[i], rng)
        if cloze is not None:
            chosen.append(cloze)
    answered = [pair for pair in pairs["spans"] if pair.spans]
    chosen += written([answered[i] for i in rng.permutation(len(answered))[:WRITTEN]], answered, rng)
    return chosen


def blank_sources(folder: Path) -> list[tuple[str, str]]:
    """Titles and texts of free passages to take words out of, none of which is measured on."""
    aside = _measured_runs(folder)
    return [
        (str(row.get("title") or ""), row["text"])
        for row in rows(folder / "corpus.jsonl")
        if row["source"] in FREE
        and row["dataset"] != "msmarco"
        and len(row["text"]) > 120
        and not overlaps(row["text"], aside)
    ]


def unlabelled(folder: Path) -> list[Pair]:
    """Training questions with the nearest free passages of the corpus, for a teacher to say what they hold."""
    learnt = [pair for pairs in training(folder).values() for pair in pairs]
    asked = list({words(pair.question): pair.question for pair in learnt}.values())
    known = {(words(pair.question), pair.text) for pair in learnt}
    sources = blank_sources(folder)
    corpus = [Passage(id=str(i), text=titled(*source)) for i, source in enumerate(sources)]
    return [
        Pair(question, corpus[i].text, (), UNLABELLED)
        for question, near in zip(asked, nearest(asked, corpus, NEAR), strict=True)
        for i in near
        if not known & {(words(question), corpus[i].text), (words(question), sources[i][1])}
    ]


def measured(folder: Path, name: str, most: int = 100, seed: int = 0) -> list[Pair]:
    """Single passages of one question file, unseen: about as many with an answer as without."""
    with_answer, without = [], []
    for row in rows(folder / f"{name}.jsonl"):
        if not unseen(folder, row["question"]) or (name in FREE_FILES and not _aside(folder, row["question"])):
            continue
        for pair, label, _ in _read(name, row):
            if label == "gold" and not pair.spans:
                continue  # the answer is there in other words
            (with_answer if pair.spans else without).append(pair)
    asked = sorted({pair.question for pair in with_answer})
    if len(without) < most // 2:  # the file has no passages that say nothing: take those of other questions
        others = [Pair(asked[i % len(asked)], pair.text, (), name) for i, pair in enumerate(with_answer)]
        theirs = {pair.text: pair.question for pair in with_answer}
        without += [pair for pair in others if theirs[pair.text] != pair.question]
    rng = np.random.default_rng(seed)
    return [part[i] for part in (with_answer, without) for i in rng.permutation(len(part))[: most // 2]]


def span_pairs(folder: Path) -> list[Pair]:
    """The rows of `qa_spans.jsonl`."""
    pairs = []
    for row in rows(folder / "qa_spans.jsonl"):
        spans = occurrences(row["passage"], row["answers"])
        if spans or not row["answers"]:
            pairs.append(Pair(row["question"], row["passage"], spans, row["source"]))
    return pairs


def poison_pairs(folder: Path, *, test: bool) -> list[Pair]:
    """The free poison texts with the wrong answer that they state."""
    return [
        pair
        for name in ("nq_poisoned", "hotpotqa_poisoned")
        for row in rows(folder / f"{name}.jsonl")
        if _aside(folder, row["question"]) == test
        for pair, label, source in _read(name, row)
        if label == "poison" and source in FREE
    ]


def _read(name: str, row: dict[str, Any]) -> Iterator[tuple[Pair, str, str]]:
    """Each passage of a row with what it says of the question; passages of which that is not known are left out."""
    question, right, wrong = row["question"], row["correct_answers"], row["incorrect_answers"]
    if any(answer.strip().lower() in ("yes", "no", "yes.", "no.") for answer in right):
        return
    for passage in row["passages"]:
        label, text, attack = passage["label"], _text(passage), passage.get("attack", "")
        if name == "ramdocs":
            stated = [passage["answer"]] if label != "noise" else []
        elif label == "poison" and attack == "garag":
            stated = right
        elif label == "poison":
            stated = wrong if attack in (*TARGETED, "entity-substitution", "radar-incorrect-context") else ["\0"]
        else:
            stated = right
        spans = occurrences(text, stated)
        if not spans and (
            label in ("poison", "misinfo", "gold") or (name == "hotpotqa_distractor" and label == "gold")
        ):
            continue
        yield Pair(question, text, spans, name), label, passage["source"]


def _text(passage: dict[str, Any]) -> str:
    return titled(passage.get("title") or "", passage["text"])


def titled(title: str, text: str) -> str:
    """A passage under its title, unless it begins with it."""
    return f"{title}\n{text}" if title and not text.startswith(title) else text


def _near_misses(folder: Path, spans: list[Pair]) -> list[Pair]:
    """For questions of the large NQ file: the nearest passages of the corpus that do not hold the answer."""
    with_misses = {words(pair.question) for pair in spans}
    lacking = [
        row
        for row in rows(folder / "nq_large_poisoned.jsonl")
        if not _aside(folder, row["question"]) and words(row["question"]) not in with_misses
    ]
    corpus = [p for p in load_passages(folder / "corpus.jsonl", dataset="nq") if p.source in FREE]
    pairs = []
    for row, near in zip(lacking, nearest([row["question"] for row in lacking], corpus, 6), strict=True):
        misses = [corpus[i].text for i in near if not occurrences(corpus[i].text, row["correct_answers"])]
        pairs += [Pair(row["question"], text, (), "nq near miss") for text in misses[:NEAR_MISSES]]
    return pairs


def answer_pairs(folder: Path, *, test: bool) -> list[tuple[str, str, str, str]]:
    """(question, answer, answer, same or rival) of the right and wrong answers of the free files."""
    return list(_answer_pairs(folder, test))


def _answer_pairs(folder: Path, test: bool) -> Iterator[tuple[str, str, str, str]]:
    for name in FREE_FILES:
        for row in rows(folder / f"{name}.jsonl"):
            if _aside(folder, row["question"]) != test:
                continue
            question, right, wrong = row["question"], row["correct_answers"], row["incorrect_answers"]
            if name == "nq_large_poisoned":
                wrong = []  # generated by an author who gives no licence
            if name != "ramdocs":
                yield from ((question, a, b, "same") for i, a in enumerate(right) for b in right[i + 1 :])
            else:
                yield from ((question, a, b, "compatible") for i, a in enumerate(right) for b in right[i + 1 :])
            yield from ((question, a, b, "rival") for a in right for b in wrong)
