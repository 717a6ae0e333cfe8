"""What a screening or an answer teaches about sources: who agreed, who contradicted, whose texts were dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from unpoison.sources import Sources
from unpoison.types import Answer, Screening

__all__ = ["outcomes_of"]

Outcome = Literal["seen", "agreed", "contested", "dropped"]


def outcomes_of(result: Screening | Answer, sources: Sources) -> Mapping[str, Outcome]:
    """What came of each origin's passages.

    Where two or more sources agreed on an answer and nobody disputed it, who said so `agreed` and who said otherwise
    `contested` it. A source all of whose passages were dropped was `dropped`. All others were `seen`: a disputed answer
    speaks for nobody.
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
