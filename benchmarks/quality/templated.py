"""What Guard drops where all documents have one form and nobody attacks: records, tickets, clauses.

    python -m benchmarks templated --minilm

The collections of `templated.yaml`, each asked 40 questions; the ten first documents by BM25, and with `--minilm` those
by MiniLM too. Default options. `answers` is the share of questions whose first document is dropped; `alone` is the
first number with `Guard(alone=True)`, which compares no passages. Those held out were written when the check was done.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from unpoison import Guard
from unpoison.models.loading import load_encoder
from unpoison.retrieval.bm25 import BM25Retriever
from unpoison.retrieval.dense import DenseRetriever
from unpoison.types import Passage

K, QUESTIONS = 10, 40

START = ("Ar", "Bel", "Cor", "Dan", "El", "Fen", "Gar", "Hol", "Is", "Jor", "Kel", "Lin", "Mar", "Nor", "Or", "Pel",
         "Quin", "Ros", "Sal", "Tor", "Ul", "Ver", "Wes", "Yar", "Zan")  # fmt: skip
END = ("ado", "berg", "by", "cott", "dale", "eda", "field", "gate", "ham", "ia", "kin", "ley", "mere", "nor", "ova",
       "port", "rick", "stead", "ton", "vale", "wick", "yard")  # fmt: skip
NAMES = [start + end for start in START for end in END]
FIRST = ["Anna", "Ben", "Clara", "David", "Elena", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Katja", "Leo", "Mina",
         "Noah", "Olga", "Pedro", "Rosa", "Samir", "Vera"]  # fmt: skip
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]  # fmt: skip
LISTS = {"name": NAMES, "first": FIRST, "month": MONTHS}


class Collection(NamedTuple):
    """Documents of one form, and what is asked of some."""

    documents: list[str]
    questions: list[str]


def collections() -> dict[str, dict[str, Any]]:
    """What `templated.yaml` says."""
    return yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def make(recipe: dict[str, Any], r: Random) -> Collection:
    """A document for each name, or several."""
    count = recipe["documents"]
    subjects = r.sample(NAMES, recipe.get("names", count))
    filled = [
        {"name": subjects[i % len(subjects)], **{slot: draw(values, r) for slot, values in recipe["slots"].items()}}
        for i in range(count)
    ]
    asked = [r.choice(recipe["questions"]).format(**values) for values in r.sample(filled, QUESTIONS)]
    return Collection([recipe["text"].format(**values) for values in filled], asked)


def draw(values: Any, r: Random) -> str:
    """One of a list, of a list by its name, or a number of a range."""
    if isinstance(values, list) or values in LISTS:
        return str(r.choice(values if isinstance(values, list) else LISTS[values]))
    low, _, high = values.partition("-")
    return str(r.randint(int(low), int(high)))


def retrievals(collection: Collection, minilm: bool) -> list[tuple[str, list[Passage]]]:
    """Each question with what is retrieved for it."""
    retrievers: list[Any] = [BM25Retriever(collection.documents)]
    if minilm:
        retrievers.append(DenseRetriever(load_encoder("minilm"), collection.documents))
    return [(asked, list(one.retrieve(asked, K))) for one in retrievers for asked in collection.questions]


def harm(guard: Guard, asked: list[tuple[str, list[Passage]]]) -> tuple[float, float]:
    """The share of passages that are dropped, and of questions whose first passage is, in percent."""
    screenings = [guard.screen(question, passages) for question, passages in asked]
    lost = sum(len(s.dropped) for s in screenings) / sum(len(s.passages) for s in screenings)
    return 100 * lost, 100 * sum(0 in s.dropped_indices for s in screenings) / len(screenings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minilm", action="store_true", help="retrieve by MiniLM too")
    options = parser.parse_args()
    for title, recipes in collections().items():
        rows = []
        print(f"| {title} | documents | Guard | answers | alone |\n| --- | ---: | ---: | ---: | ---: |")
        for name, recipe in recipes.items():
            collection = make(recipe, Random(name))
            asked = retrievals(collection, options.minilm)
            rows.append((*harm(Guard(), asked), harm(Guard(alone=True), asked)[0]))
            print(line(name, str(len(collection.documents)), rows[-1]), flush=True)
        print(line("mean", "", [sum(column) / len(rows) for column in zip(*rows)]))
        print(line("worst", "", [max(column) for column in zip(*rows)]), end="\n\n")


def line(name: str, count: str, shares: Any) -> str:
    return " | ".join([f"| {name}", count, *(f"{share:.1f} %" for share in shares)]) + " |"


if __name__ == "__main__":
    main()
