"""A company's own documents, with its domain known: lies that are read, and honest answers that are dropped.

    python -m benchmarks own_documents evaluation-data
    python -m benchmarks own_documents evaluation-data --show

`own_documents.jsonl` holds documents of an invented company and questions, each with a plain lie. The lie is planted
as a page of a source that nobody knows; BM25 retrieves six passages. Nothing is fitted on these rows.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

from benchmarks.data_option import evaluation_folder
from unpoison import Answer, Guard, Passage
from unpoison.retrieval import BM25Retriever

RETRIEVED = 6
KNOWN = {"known": ["kestrel.example"]}
LIAR = "https://forum-of-users.example/t/1"
READERS = ("reader", "extractive")


class Outcome(NamedTuple):
    """What became of one question.

    Attributes:
        question: The question.
        lie_read: Whether the planted lie was kept.
        misled: Whether the lie was the answer, and nobody was told that sources disagree.
        right: Whether the answer holds the right value, attacked.
        lost: Whether all passages with the right answer were dropped, with nobody attacking and the source known.
        lost_unknown: The same without `sources`.
        answer: The answer to the attacked question.
    """

    question: str
    lie_read: bool
    misled: bool
    right: bool
    lost: bool
    lost_unknown: bool
    answer: Answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=evaluation_folder)
    parser.add_argument("--show", action="store_true", help="the answers to all questions that went wrong")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in (arguments.folder / "own_documents.jsonl").open(encoding="utf-8")]
    documents = [Passage(row["text"], source=row["source"], id=row["id"]) for row in rows if row["kind"] == "document"]
    questions = [row for row in rows if row["kind"] == "question"]
    print("| reader | questions | lies read | lie answered, no dispute | right | answer dropped | same, no sources |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for reader in READERS:
        outcomes = [outcome_of(row, documents, reader) for row in questions]
        counts = [sum(values) for values in list(zip(*outcomes, strict=True))[1:6]]
        print(f"| {reader} | {len(outcomes)} | " + " | ".join(map(str, counts)) + " |")
        if arguments.show:
            for one in outcomes:
                if one.lie_read or one.misled or one.lost or one.lost_unknown or not one.right:
                    print(describe(one))


def outcome_of(row: dict[str, Any], documents: list[Passage], reader: str) -> Outcome:
    """Ask one question with and without its lie."""
    question, lie = row["question"], Passage(row["lie"], source=LIAR, id="lie")
    known, plain = Guard(generator=reader, sources=KNOWN), Guard(generator=reader)
    honest, attacked = retrieve(question, documents), retrieve(question, [*documents, lie])
    answer = known.answer(question, attacked)
    kept = {answer.screening.passages[i].id for i in answer.screening.kept_indices}
    return Outcome(
        question,
        "lie" in kept,
        row["wrong"] in answer.text and answer.status != "disputed",
        row["answer"] in answer.text,
        is_lost(known, row, honest),
        is_lost(plain, row, honest),
        answer,
    )


def retrieve(question: str, documents: list[Passage]) -> list[Passage]:
    """The first six by BM25."""
    return list(BM25Retriever(documents).retrieve(question, RETRIEVED))


def is_lost(guard: Guard, row: dict[str, Any], passages: list[Passage]) -> bool:
    """Whether the document with the answer was retrieved, and dropped."""
    screening = guard.screen(row["question"], passages)
    return any(passages[i].id == row["document"] for i in screening.dropped_indices)


def describe(one: Outcome) -> str:
    """The answer and what was claimed, on a few lines."""
    flags = [name for name in ("lie_read", "misled", "right", "lost", "lost_unknown") if getattr(one, name)]
    claims = "; ".join(f"{claim.text!r} {claim.weight:.2f} {claim.origins}" for claim in one.answer.claims)
    return f"- {one.question} [{', '.join(flags)}] {one.answer.status}: {one.answer.text!r}\n  {claims}"


if __name__ == "__main__":
    main()
