"""Questions without a data set: targets for attacks from one's own documents.

made = make_questions(read_documents("docs/"), count=50); each has the true answer, a plausible false one, and the
passage that proves the true one.
"""

from __future__ import annotations

from unpoison.bench.questions.documents import Document, Section, passages_of, read_documents
from unpoison.bench.questions.facts import Fact, facts_of
from unpoison.bench.questions.question_set import Question, QuestionSet, make_questions

__all__ = [
    "Document",
    "Fact",
    "Question",
    "QuestionSet",
    "Section",
    "facts_of",
    "make_questions",
    "passages_of",
    "read_documents",
]
