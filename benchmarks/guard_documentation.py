"""What Guard would drop from documentation of yours, where nobody attacks: of ten passages to each made question.

    python benchmarks/guard_documentation.py docs/ /usr/share/doc/nodejs/api --encoder minilm

Questions are made by the rules of `unpoison questions`, and the passages found by BM25. Prints for every folder the
share of passages that are dropped as orders and as claims, and of questions that lose any.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from unpoison import Guard
from unpoison.questions import make_questions, read_documents
from unpoison.retrieval import BM25Retriever

ORDER = "gives an order"
"""How the reasons begin for passages that are dropped before they are judged."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--questions", type=int, default=120)
    arguments = parser.parse_args()
    guard = Guard(encoder=arguments.encoder)
    print("| documentation | questions | passages | dropped as orders % | dropped as claims % | questions touched % |")
    print("|---|---|---|---|---|---|")
    for folder in arguments.folders:
        print(f"| {folder.name} | {dropped(guard, folder, arguments.questions)} |", flush=True)


def dropped(guard: Guard, folder: Path, count: int) -> str:
    documents, _ = read_documents(folder)
    produced = make_questions(documents, count, seed=0)
    retriever = BM25Retriever(produced.passages)
    orders = claims = passages = touched = 0
    for question in produced.questions:
        screening = guard.screen(question.fact.question, retriever.retrieve(question.fact.question, 10))
        reasons = [verdict.reason for verdict in screening.verdicts if not verdict.kept]
        given = sum(reason.startswith(ORDER) for reason in reasons)
        orders, claims = orders + given, claims + len(reasons) - given
        passages, touched = passages + len(screening.verdicts), touched + bool(reasons)
    shares = (f"{100 * part / max(passages, 1):.1f}" for part in (orders, claims))
    asked = len(produced.questions)
    return f"{asked} | {passages:,} | {' | '.join(shares)} | {100 * touched / max(asked, 1):.0f}"


if __name__ == "__main__":
    main()
