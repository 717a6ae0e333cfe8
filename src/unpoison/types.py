"""What passes between the rooms, under one name: passages in, screenings and answers out.

All of these are frozen and validated where they are made, so that everything behind the door can rely on them.
"""

from __future__ import annotations

from unpoison.core.answers import Answer, Call, Reply, guarantee_sentence
from unpoison.core.claims import Claim, Contest, Rival, Status
from unpoison.core.passages import MAX_PASSAGES, Passage, Query, Vector, as_passages, as_query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence, Span, Verdict, merge_spans

__all__ = [
    "MAX_PASSAGES",
    "Answer",
    "Call",
    "Claim",
    "Contest",
    "Evidence",
    "Passage",
    "Query",
    "Reply",
    "Rival",
    "Screening",
    "Span",
    "Status",
    "Vector",
    "Verdict",
    "as_passages",
    "as_query",
    "guarantee_sentence",
    "merge_spans",
]
