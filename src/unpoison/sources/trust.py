"""How much one source's word weighs."""

from __future__ import annotations

from typing import Literal

__all__ = ["FRESH", "KNOWN", "Level", "trust"]

Level = Literal["trusted", "known", "seen", "fresh", "open", "blocked", "unknown"]

FRESH = 0.05
"""The weight of who was never seen: sixteen of them weigh as much as one known source."""

KNOWN = 0.8

HALF = 4
"""Other questions for which a source must have been retrieved until it weighs one half."""

PRIOR = 2
"""So many agreements everybody begins with, so that one dispute ruins nobody."""


def trust(level: Level, questions: int = 0, agreed: int = 0, contested: int = 0) -> float:
    """The weight of a source.

    | level | weight |
    | --- | --- |
    | `blocked` | 0 |
    | `trusted` | 1 |
    | `known` | .8 |
    | `fresh` (never seen for another question, or not for long), `open` (anybody writes there), `unknown` | .05 |
    | `seen` | n / (n + 4) times (agreed + 2) / (agreed + contested + 2), at least .05 |

    n counts the other questions for which it was retrieved, and not dropped.

    Only other questions count: whoever plants any number of texts for the question at hand gains nothing by it.

    Args:
        level: What policy and history say.
        questions: Other questions for which the source was retrieved, and not dropped.
        agreed: For how many of them it said what was answered.
        contested: For how many of them it said something else.

    Returns:
        In [0, 1]. It rises with `questions` and `agreed`, and falls with `contested`.
    """
    if level == "seen":
        reliability = (agreed + PRIOR) / (agreed + contested + PRIOR)
        return max(FRESH, questions / (questions + HALF) * reliability)
    return {"blocked": 0.0, "trusted": 1.0, "known": KNOWN}.get(level, FRESH)
