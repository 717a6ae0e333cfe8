"""What Guard would drop from documentation of yours, where nobody attacks: of ten passages to each made question.

    python benchmarks/guard_documentation.py docs/ /usr/share/doc/nodejs/api
    python benchmarks/guard_documentation.py --ask headings /usr/share/doc/debian-handbook/html/fr-FR

Questions are made by the rules of `unpoison questions`, which are English; headings are what somebody would type into a
search box, in any language. The passages are found by BM25. Prints for every folder the share of passages that each
check drops or cuts, and of questions that any of them touches.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from guard_tables import CHECKS, of_check
from unpoison import Guard, Passage
from unpoison.bench.questions import make_questions, read_documents
from unpoison.bench.questions.documents import Document, passages_of
from unpoison.retrieval import BM25Retriever


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--questions", type=int, default=120)
    parser.add_argument("--ask", choices=("facts", "headings"), default="facts")
    arguments = parser.parse_args()
    guard = Guard()
    checks = " | ".join(f"`{name}` %" for name in CHECKS)
    print(f"| documentation | questions | passages | {checks} | questions touched % |")
    print("|---" * (len(CHECKS) + 4) + "|")
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
    """What each check drops or cuts."""
    retriever, lost = BM25Retriever(searched), Counter[str]()
    passages = touched = 0
    for question in asked:
        verdicts = guard.screen(question, retriever.retrieve(question, 10)).verdicts
        changed = [of_check(v.reason.codes) for v in verdicts if not v.kept or v.cuts]
        lost.update(changed)
        passages, touched = passages + len(verdicts), touched + bool(changed)
    shares = (f"{100 * lost[name] / max(passages, 1):.1f}" for name in CHECKS)
    return f"{len(asked)} | {passages:,} | {' | '.join(shares)} | {100 * touched / max(len(asked), 1):.0f}"


if __name__ == "__main__":
    main()
