"""Derives the outcome of each source from a screening or an answer, for the history of sources."""

from __future__ import annotations

from collections.abc import Mapping

from unpoison.core.answers import Answer
from unpoison.core.screenings import Screening
from unpoison.sources.history import Outcome
from unpoison.sources.sources import Sources

__all__ = ["outcomes_of"]


def outcomes_of(result: Screening | Answer, sources: Sources) -> Mapping[str, Outcome]:
    """The outcome of each origin's passages.

    If two or more sources agreed on an undisputed answer, its sources `agreed` and the sources of other claims
    `contested` it. A source whose passages were all dropped is `dropped`. All others are `seen`: a disputed answer is
    evidence for nobody.
    """
    screening = result.screening if isinstance(result, Answer) else result
    origins = [sources.origin(passage) for passage in screening.passages]
    kept = {origins[i] for i in screening.kept_indices}
    outcomes: dict[str, Outcome] = {origin: "seen" if origin in kept else "dropped" for origin in origins if origin}
    if isinstance(result, Answer) and result.status == "agreed":
        lead, *others = result.claims
        said_otherwise = {origin for claim in others for origin in claim.origins if claim.weight}
        for origin in outcomes.keys() & said_otherwise:
            outcomes[origin] = "contested"
        for origin in outcomes.keys() & set(lead.origins):
            outcomes[origin] = "agreed"
    return outcomes
