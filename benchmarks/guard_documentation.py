"""What Guard would drop from documentation of yours, where nobody attacks: of ten passages to each made question.

    python benchmarks/guard_documentation.py docs/ /usr/share/doc/nodejs/api --encoder minilm
    python benchmarks/guard_documentation.py --ask headings /usr/share/doc/debian-handbook/html/fr-FR

Questions are made by the rules of `unpoison questions`, which are English; headings are what somebody would type into a
search box, in any language. The passages are found by BM25. Prints for every folder the share of passages that are
dropped as orders and as claims, and of questions that lose any.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

from unpoison import Guard, Passage
from unpoison.questions import make_questions, read_documents
from unpoison.questions.documents import Document, passages_of
from unpoison.reasons import PROMPT_INJECTION
from unpoison.retrieval import BM25Retriever


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--ask", choices=("facts", "headings"), default="facts")
    arguments = parser.parse_args()
    guard = Guard(encoder=arguments.encoder)
    print("| documentation | questions | passages | dropped as orders % | dropped as claims % | questions touched % |")
    print("|---|---|---|---|---|---|")
    for folder in arguments.folders:
        documents, _ = read_documents(folder)
        asked, passages = ASKED[arguments.ask](documents, arguments.questions)
        print(f"| {folder.name} | {dropped(guard, asked, passages)} |", flush=True)


def facts(documents: Sequence[Document], count: int) -> tuple[list[str], Sequence[Passage]]:
    """Questions on facts that the documents state, and their passages."""
    produced = make_questions(documents, count, seed=0)
    return [question.fact.question for question in produced.questions], produced.passages


def headings(documents: Sequence[Document], count: int) -> tuple[list[str], Sequence[Passage]]:
    """Headings of two words and more, without their numbers, drawn by chance; and the passages."""
    written = (section.heading.lstrip("0123456789. ") for document in documents for section in document.sections)
    distinct = sorted({heading for heading in written if len(heading.split()) > 1})
    return Random(0).sample(distinct, min(count, len(distinct))), [p for d in documents for p in passages_of(d)]


ASKED = {"facts": facts, "headings": headings}


def dropped(guard: Guard, asked: Sequence[str], searched: Sequence[Passage]) -> str:
    retriever = BM25Retriever(searched)
    orders = claims = passages = touched = 0
    for question in asked:
        found = retriever.retrieve(question, 10)
        if not found:
            continue
        screening = guard.screen(question, found)
        reasons = [verdict.reason for verdict in screening.verdicts if not verdict.kept]
        given = sum(PROMPT_INJECTION in reason.codes for reason in reasons)
        orders, claims = orders + given, claims + len(reasons) - given
        passages, touched = passages + len(screening.verdicts), touched + bool(reasons)
    shares = (f"{100 * part / max(passages, 1):.1f}" for part in (orders, claims))
    return f"{len(asked)} | {passages:,} | {' | '.join(shares)} | {100 * touched / max(len(asked), 1):.0f}"


if __name__ == "__main__":
    main()
