"""How often Guard names a swapped copy as contested, by language, without a model.

In the first passage of a question that has one, a number or a name is replaced wherever it stands, and the copy is
screened beside its original and nine other passages. A number is of two digits or more, and its last one is changed. A
name is what a script marks as one: in Spanish and English words in capitals within a sentence, in German, where
nouns have them too, two such words in a row, in Chinese a transcribed name with a dot; it is replaced by one from
another question. A copy is named if a contest puts it on another side than its original.

    python -m benchmarks near_copy_languages evaluation-data/clean_wiki_{en,de,es,zh}.jsonl
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from unpoison import Guard
from unpoison.core.verdicts import Contest

QUESTIONS = 60
NUMBER = re.compile(r"(?<![\d.,:/])\d{2,}(?![\d.,:/]*\d)")
CAPITALS = r"[A-ZÁÉÍÓÚÑÄÖÜ][a-záéíóúñäöüß]{3,}"
NAMES = {
    "de": re.compile(rf"(?<=[a-zß] ){CAPITALS} {CAPITALS}"),
    "zh": re.compile(r"[\u4e00-\u9fff]{2,4}·[\u4e00-\u9fff]{2,4}"),
}
NAME = re.compile(rf"(?<=[a-z] ){CAPITALS}(?: {CAPITALS})*")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "files", type=Path, nargs="+", help="clean_wiki_LANGUAGE.jsonl: rows with question and passages"
    )
    parser.add_argument("--show", action="store_true", help="print what was not named")
    chosen = parser.parse_args()
    guard = Guard(threshold=1.0)
    for file in chosen.files:
        language = file.stem[-2:]
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        sets = [(row["question"], [passage["text"] for passage in row["passages"]]) for row in rows]
        clean = sum(bool(guard.screen(*one).contested) for one in sets[:QUESTIONS])
        pattern = NAMES.get(language, NAME)
        cells = []
        for swaps in (_numbers(sets), _names(sets, pattern)):
            asked = swaps[:QUESTIONS]
            missed = [swap for swap in asked if not _named(guard, *swap)]
            cells.append(f"{len(asked) - len(missed)} of {len(asked)}")
            if chosen.show:
                print(*(f"  {texts[at]}\n  {texts[-1]}\n" for _, texts, at in missed), sep="\n")
        print(f"| {language} | {' | '.join(cells)} | {clean} of {min(len(sets), QUESTIONS)} |")


Swap = tuple[str, list[str], int]
"""A question, its passages with the copy at the end, and the position of the original."""


def _numbers(sets: Sequence[tuple[str, list[str]]]) -> list[Swap]:
    swaps = []
    for question, texts in sets:
        at = next((i for i, text in enumerate(texts) if NUMBER.search(text)), None)
        if at is not None:
            number = NUMBER.findall(texts[at])[0]
            other = number[:-1] + str((int(number[-1]) + 3) % 10)
            swaps.append((question, [*texts, re.sub(rf"(?<!\d){number}(?!\d)", other, texts[at])], at))
    return swaps


def _names(sets: Sequence[tuple[str, list[str]]], pattern: re.Pattern[str]) -> list[Swap]:
    found = []
    for question, texts in sets:
        at = next((i for i, text in enumerate(texts) if pattern.search(text)), None)
        if at is not None:
            found.append((question, texts, at, pattern.findall(texts[at])[0]))
    swaps = []
    for n, (question, texts, at, name) in enumerate(found):
        others = (found[(n + step) % len(found)][3] for step in range(1, len(found)))
        other = next(other for other in others if other not in texts[at] and name not in other)
        swaps.append((question, [*texts, texts[at].replace(name, other)], at))
    return swaps


def _named(guard: Guard, question: str, texts: list[str], at: int) -> bool:
    def side(contest: Contest, i: int) -> int:
        return next((n for n, rival in enumerate(contest.rivals) if i in rival.passages), -1)

    copy = len(texts) - 1
    sides = [(side(contest, at), side(contest, copy)) for contest in guard.screen(question, texts).contested]
    return any(-1 not in pair and pair[0] != pair[1] for pair in sides)


if __name__ == "__main__":
    main()
