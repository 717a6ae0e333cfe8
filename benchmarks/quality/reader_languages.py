"""The reader in other languages: XQuAD in German, Spanish and Chinese, before and after it looks at the language.

    python -m benchmarks reader_languages XQUAD evaluation-data

XQUAD is a folder with `xquad.en.json`, `xquad.de.json`, `xquad.es.json` and `xquad.zh.json` (Artetxe et al., 2020;
CC BY-SA 4.0). The questions and paragraphs are translations of English ones that `qa_spans.jsonl` holds, which the
shipped reader learnt from, so the rows in English are no test, and the others know its subjects. Nothing was fitted on
them. A pair without an answer is a question with the next paragraph of its article that does not hold the answer.

right: of the pairs with an answer those with F1 of one half or more (Chinese by characters); refused: those without an
answer given. Below, over all English questions and passages of the folder of evaluation data: how many are taken for
another language. A thousand characters count as one text.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.training.split import rows
from unpoison.models import Reader, load_generator
from unpoison.models.spans import cores
from unpoison.text.languages import other_language
from unpoison.text.normalisation import squad

LANGUAGES = {"en": "English", "de": "German", "es": "Spanish", "zh": "Chinese"}
NOT_ENGLISH = ("clean_wiki_de", "clean_wiki_es", "clean_wiki_zh", "injections")
PART = 1000


@dataclass(frozen=True)
class Item:
    """A question, the paragraph that answers it with the answers as they stand there, and one that does not."""

    question: str
    passage: str
    answers: tuple[str, ...]
    other: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("xquad", type=Path, help="the folder of XQuAD's files")
    parser.add_argument("folder", type=Path, help="the shared data, for the texts in English")
    parser.add_argument("--reader", default="reader", help="reader, reader-base or qa:FOLDER_OR_NAME")
    parser.add_argument("--most", type=int, default=150, help="questions of a language")
    options = parser.parse_args()
    print("| question | passage | n | before: right / wrong / refused | answered though none "
          "| after: right / wrong / refused | answered though none |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    items = {tag: _items(options.xquad / f"xquad.{tag}.json") for tag in LANGUAGES}
    chosen = sorted(set.intersection(*map(set, items.values())))
    chosen = chosen[:: max(1, len(chosen) // options.most)][: options.most]
    after, before = (load_generator(f"{options.reader},threads={cores()}") for _ in "12")  # each with its own memory
    before._settings = replace(before._settings, languages=())
    cells = [("en", "en"), *((a, b) for tag in list(LANGUAGES)[1:] for a, b in ((tag, tag), (tag, "en"), ("en", tag)))]
    for asked, read in cells:
        pairs = [replace(items[read][key], question=items[asked][key].question) for key in chosen]
        columns = [column for reader in (before, after) for column in _cells(reader, pairs, read)]
        print(f"| {LANGUAGES[asked]} | {LANGUAGES[read]} | {len(pairs)} | {' | '.join(columns)} |", flush=True)
    _print_false_refusals(options.folder)


def _items(file: Path) -> dict[str, Item]:
    """By the number of the question, which is the same in every language."""
    found = {}
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        texts = [paragraph["context"] for paragraph in article["paragraphs"]]
        for i, paragraph in enumerate(article["paragraphs"]):
            for row in paragraph["qas"]:
                answers = tuple(answer["text"] for answer in row["answers"])
                behind = [*texts[i + 1 :], *texts[:i]]
                other = next((text for text in behind if not any(answer in text for answer in answers)), "")
                if other:
                    found[row["id"]] = Item(row["question"], paragraph["context"], answers, other)
    return found


def _cells(reader: Reader, items: list[Item], language: str) -> Iterator[str]:
    given = [reading.answer for reading in reader.read_pairs([(item.question, item.passage) for item in items])]
    right = sum(_agrees(answer, item.answers, language) for answer, item in zip(given, items, strict=True))
    silent = sum(not answer for answer in given)
    shares = [100 * count / len(items) for count in (right, len(items) - right - silent, silent)]
    yield " / ".join(f"{share:.1f}" for share in shares)
    none = reader.read_pairs([(item.question, item.other) for item in items])
    yield f"{100 * sum(bool(reading.answer) for reading in none) / len(items):.1f}"


def _agrees(answer: str, golds: tuple[str, ...], language: str) -> bool:
    return any(_f1(_units(answer, language), _units(gold, language)) >= 0.5 for gold in golds)


def _units(text: str, language: str) -> list[str]:
    return [c for c in text if c.isalnum()] if language == "zh" else squad(text).split()


def _f1(one: list[str], two: list[str]) -> float:
    common = (Counter(one) & Counter(two)).total()
    return 2 * common / (len(one) + len(two)) if common else 0.0


def _print_false_refusals(folder: Path) -> None:
    print("\n| file, in English | questions | taken for another language | parts of passages | taken for another |")
    print("|---|---|---|---|---|")
    for file in sorted(folder.glob("*.jsonl")):
        if file.stem in NOT_ENGLISH or file.stem.startswith(("nli_", "orders")):
            continue
        questions, parts = set[str](), set[str]()
        for row in rows(file):
            questions.update({row["question"]} if "question" in row else ())
            texts = [row.get("passage") or row.get("text") or "", *(p["text"] for p in row.get("passages", ()))]
            parts.update(text[at : at + PART] for text in texts for at in range(0, min(len(text), 4 * PART), PART))
        cells = [f"{len(texts)} | {sum(map(bool, map(other_language, texts)))}" for texts in (questions, parts)]
        print(f"| {file.stem} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
