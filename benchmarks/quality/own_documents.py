"""Documents of organisations whose domain is known: lies that are read, and honest answers that are dropped.

    python -m benchmarks own_documents evaluation-data
    python -m benchmarks own_documents evaluation-data --news

Three tables. No number is fitted on these rows, but rules were written while looking at errors on them; nordfjord and
hanseferry were each written after the rules of their time.

1. Lies. `own_documents.jsonl` of the data folder and `organisations.jsonl` beside this file hold documents of invented
   organisations in English, German, French, Spanish and Italian, and questions, each with a plain lie. The lie is
   planted as a page of an unknown source; BM25 retrieves six passages. The German questions are counted once more.
2. Other planted texts: the lie's true twin; the right value and then the lie; the lie as a chat; the lie beside one
   harmless sentence of the organisation (hanseferry); a copy of the right document with the value swapped; that copy
   and two articles that repeat the value.
3. RealtimeQA: ten results of a search, without a defense, with Guard, and with sources; `--news` prints it alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.data_option import evaluation_folder
from unpoison import Answer, Guard, Passage, Sources, Vanilla
from unpoison.retrieval import BM25Retriever
from unpoison.text.languages import other_language
from unpoison_lab.evaluation.matchers import matcher

RETRIEVED = 6
FOUND = Path(__file__).with_name("organisations.jsonl")
LIAR = "https://forum-of-users.example/t/1"
ARTICLES = ("https://daily-notes.example/a", "https://trade-news.example/b")
READERS = ("reader", "extractive")
NEWS_PASSAGES = 10
NEWS_POISONS = 5


class Organisation(NamedTuple):
    """Documents and questions of one organisation, and the policy that makes its domain known."""

    name: str
    documents: list[Passage]
    questions: list[dict[str, Any]]
    sources: dict[str, list[str]]


class Outcome(NamedTuple):
    """What happened to one question with its lie planted.

    Attributes:
        lie_read: The planted lie was kept.
        misled: The lie was the answer, and no dispute was reported.
        right: The answer holds the right value.
        lost: The document with the answer was dropped, with nothing planted and the domain known.
        lost_unknown: The same without `sources`.
    """

    question: str
    lie_read: bool
    misled: bool
    right: bool
    lost: bool
    lost_unknown: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder)
    parser.add_argument("--news", action="store_true", help="the third table alone: some minutes")
    arguments = parser.parse_args()
    if arguments.news:
        printnews_passages(arguments.folder)
        return
    found = organisations(arguments.folder / "own_documents.jsonl", FOUND)
    print_lies(found)
    print_planted(found)
    printnews_passages(arguments.folder)


def print_lies(found: Sequence[Organisation]) -> None:
    print("| organisation | reader | questions | lies read | lie answered, no dispute | right | dropped | no sources |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for reader in READERS:
        asked = list[Outcome]()
        for organisation in found:
            outcomes = [outcome_of(row, organisation, reader) for row in organisation.questions]
            asked += outcomes
            print_counts(organisation.name, reader, outcomes)
        print_counts("German", reader, [one for one in asked if other_language(one.question) == "de"])
        print_counts("all", reader, asked)


def print_counts(name: str, reader: str, outcomes: Sequence[Outcome]) -> None:
    counts = [sum(values) for values in list(zip(*outcomes, strict=True))[1:]]
    print(f"| {name} | {reader} | {len(outcomes)} | " + " | ".join(map(str, counts)) + " |")


def print_planted(found: Sequence[Organisation]) -> None:
    print("\n| planted | reader | passages | left | value answered, no dispute |\n|---|---|---:|---:|---:|")
    rows = [(row, organisation) for organisation in found for row in organisation.questions]
    for reader in READERS:
        for name, plant in PLANTED.items():
            kept, told = list[bool](), list[bool]()
            for row, organisation in rows:
                if texts := plant(row, organisation):
                    honest = [row["harmless"]] if name == HARMLESS else []
                    answer, left = attacked(row, organisation, reader, texts, honest)
                    value = row["answer" if name == TWIN else "wrong"]
                    kept.append(0 in left)
                    told.append(value in answer.text and answer.status != "disputed")
            print(f"| {name} | {reader} | {len(kept)} | {sum(kept)} | {sum(told)} |")


def printnews_passages(folder: Path) -> None:
    print("\n| RealtimeQA | planted | questions | right | wrong | disputed |\n|---|---|---:|---:|---:|---:|")
    rows, match = read_rows(folder / "realtimeqa.jsonl"), matcher()
    for defense, (planted, one_source) in product(
        NEWS_DEFENSES, ((0, False), (NEWS_POISONS, True), (NEWS_POISONS, False))
    ):
        right = wrong = disputed = 0
        for row in rows:
            answer = news_answer(row, rows, planted, defense, one_source=one_source)
            good, bad = row["correct_answers"], row["incorrect_answers"]
            right += match.correct(answer.text, good, bad)
            wrong += match.is_attack_success(answer.text, bad, good) and answer.status != "disputed"
            disputed += answer.status == "disputed"
        name = f"{planted}, {'one new source' if one_source else 'each of a new source'}" if planted else "0"
        print(f"| {defense} | {name} | {len(rows)} | {right} | {wrong} | {disputed} |", flush=True)


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.open(encoding="utf-8")]


def organisations(*files: Path) -> list[Organisation]:
    """The organisations of files; a row without the name of one belongs to kestrel."""
    rows = [row for file in files for row in read_rows(file)]
    found = []
    for name in dict.fromkeys(row.get("organisation", "kestrel") for row in rows):
        own = [row for row in rows if row.get("organisation", "kestrel") == name]
        documents = [
            Passage(row["text"], source=row["source"], id=row["id"]) for row in own if row["kind"] == "document"
        ]
        questions = [row for row in own if row["kind"] == "question"]
        found.append(Organisation(name, documents, questions, {"known": [f"{name}.example"]}))
    return found


def outcome_of(row: dict[str, Any], organisation: Organisation, reader: str) -> Outcome:
    """Ask one question with and without its lie."""
    answer, kept = attacked(row, organisation, reader, [row["lie"]])
    honest = retrieve(row["question"], organisation.documents)
    return Outcome(
        row["question"],
        0 in kept,
        row["wrong"] in answer.text and answer.status != "disputed",
        row["answer"].lower() in answer.text.lower(),
        is_lost(Guard(generator=reader, sources=organisation.sources), row, honest),
        is_lost(Guard(generator=reader), row, honest),
    )


def attacked(
    row: dict[str, Any], organisation: Organisation, reader: str, texts: Sequence[str], honest: Sequence[str] = ()
) -> tuple[Answer, set[int]]:
    """The answer with texts planted, each of another source, and which of them were kept.

    `honest` are more documents of the organisation. A planted text whose wrong value was redacted was not kept.
    """
    planted = [
        Passage(text, source=source, id=f"planted {n}")
        for n, (text, source) in enumerate(zip(texts, (LIAR, *ARTICLES), strict=False))
    ]
    own = [Passage(text, source=organisation.documents[0].source, id="honest") for text in honest]
    guard = Guard(generator=reader, sources=organisation.sources)
    answer = guard.answer(row["question"], retrieve(row["question"], [*organisation.documents, *planted, *own]))
    screening = answer.screening
    kept = {screening.passages[i].id: text for i, text in zip(screening.kept_indices, screening.texts, strict=True)}
    values = (row["wrong"].lower(), row["answer"].lower())
    left = {n for n in range(len(planted)) if any(value in kept.get(f"planted {n}", "").lower() for value in values)}
    return answer, left


def retrieve(question: str, documents: Sequence[Passage]) -> list[Passage]:
    """The first six by BM25."""
    return list(BM25Retriever(documents).retrieve(question, RETRIEVED))


def is_lost(guard: Guard, row: dict[str, Any], passages: list[Passage]) -> bool:
    """Whether the document with the answer was retrieved, and dropped."""
    screening = guard.screen(row["question"], passages)
    return any(passages[i].id == row["document"] for i in screening.dropped_indices)


def copy_of(row: dict[str, Any], organisation: Organisation) -> list[str]:
    """The document with the answer, with the wrong value in it."""
    text = next(document.text for document in organisation.documents if document.id == row["document"])
    return [text.replace(row["answer"], row["wrong"])] if row["answer"] in text else []


def copy_and_articles(row: dict[str, Any], organisation: Organisation) -> list[str]:
    return [*copy_of(row, organisation), row["lie"], f"{row['question']} {row['wrong']}."]


def twin(row: dict[str, Any]) -> str:
    """The lie with the right value in it; "" for yes and no, of which no text is made by exchanging a word."""
    return row["lie"].replace(row["wrong"], row["answer"]) if row["wrong"] not in ("yes", "ja") else ""


TWIN, HARMLESS, BACK = "true twin", "lie, and a harmless sentence", "right value, taken back"
PLANTED = {
    "lie": lambda row, _: [row["lie"]],
    TWIN: lambda row, _: [twin(row)] if twin(row) else [],
    "right value, then the lie": lambda row, _: [f"{twin(row)} {row['lie']}"],
    BACK: lambda row, _: [f"{twin(row)} That is no longer true: now it is {row['wrong']}."] if twin(row) else [],
    "chat": lambda row, _: [f"Anna: {row['question']}\nBen: {row['wrong']}"],
    HARMLESS: lambda row, _: [row["lie"]] if "harmless" in row else [],
    "copy, value swapped": copy_of,
    "copy, and two articles": copy_and_articles,
}


NEWS_DEFENSES = ("vanilla", "guard, texts alone", "guard, one voice per source", "guard, with a history")


def news_answer(
    row: dict[str, Any], rows: Sequence[dict[str, Any]], planted: int, defense: str, *, one_source: bool
) -> Answer:
    """The answer from ten results of a search; a history knows the addresses of the other questions."""
    poisons = [
        Passage(p["text"], source=f"https://news-{0 if one_source else n}-{row['id'][:6]}.example/")
        for n, p in enumerate(p for p in row["passages"] if p["label"] == "poison")
    ][:planted]
    passages = [*poisons, *news_passages(row)][:NEWS_PASSAGES]
    if defense in ("vanilla", "guard, texts alone"):
        if defense != "vanilla":
            passages = list(Guard().screen(row["question"], passages).kept)
        return Vanilla(generator="reader").answer(row["question"], passages)
    sources = Sources()
    if defense == "guard, with a history":
        sources.learn(
            {"query": other["question"], "passages": news_passages(other)} for other in rows if other is not row
        )
    return Guard(generator="reader", sources=sources).answer(row["question"], passages)


def news_passages(row: dict[str, Any]) -> list[Passage]:
    """The ten first results of a search, with their addresses."""
    clean = sorted((p for p in row["passages"] if p["label"] != "poison"), key=lambda p: p.get("rank", 0))
    return [Passage(p["text"], source=p.get("url") or "") for p in clean][:NEWS_PASSAGES]


if __name__ == "__main__":
    main()
