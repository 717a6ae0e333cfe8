"""What passes between the rooms, under one name: passages in, screenings and answers out.

All of these are frozen and validated where they are made, so that everything behind the door can rely on them. They are
imported when they are first used, so that a passage costs nothing of what an answer needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.extras import lazy_names

if TYPE_CHECKING:
    from unpoison.core.answers import Answer, Call, Reply, guarantee_sentence
    from unpoison.core.passages import MAX_PASSAGES, Passage, Query, Vector, as_passages, as_query
    from unpoison.core.screenings import Screening
    from unpoison.core.verdicts import Claim, Contest, Evidence, Rival, Span, Status, Verdict, merge_spans

_PLACES = {
    "answers": "Answer Call Reply guarantee_sentence",
    "passages": "MAX_PASSAGES Passage Query Vector as_passages as_query",
    "screenings": "Screening",
    "verdicts": "Claim Contest Evidence Rival Span Status Verdict merge_spans",
}

__all__ = [
    "MAX_PASSAGES", "Answer", "Call", "Claim", "Contest", "Evidence", "Passage", "Query", "Reply", "Rival", "Screening",
    "Span", "Status", "Vector", "Verdict", "as_passages", "as_query", "guarantee_sentence", "merge_spans",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__, {name: f"unpoison.core.{module}" for module, names in _PLACES.items() for name in names.split()}
)
