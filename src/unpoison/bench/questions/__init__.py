"""Questions from your own documents: each with a true answer, a false one, and the passage that proves the true one."""

from __future__ import annotations

from unpoison.bench.questions.question_set import document_of, make_questions, write_questions

__all__ = ["document_of", "make_questions", "write_questions"]
