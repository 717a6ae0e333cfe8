"""What passes between the rooms, under one name: passages in, screenings and answers out.

All of these are frozen and validated where they are made, so that everything behind the door can rely on them.
"""

from __future__ import annotations

from unpoison.answers import Answer, Call, Reply, promised
from unpoison.claims import Claim, Status
from unpoison.contests import Contest, Rival
from unpoison.passages import MAX_PASSAGES, Passage, Query, Vector, as_passages, as_query
from unpoison.screenings import Screening
from unpoison.spans import Span, united
from unpoison.verdicts import Evidence, Verdict

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
    "promised",
    "united",
]
