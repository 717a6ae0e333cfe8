"""unpoison keeps poisoned passages out of retrieval-augmented answers.

    from unpoison import Guard

    screening = Guard().screen(query, passages)
    print(screening.explain())

The public names are imported when they are first used, so that `import unpoison` stays fast and pulls in neither
torch nor any SDK. The papers' baselines are made by `load_defense("robustrag")`, or imported from their modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.extras import lazy_names, wire

if TYPE_CHECKING:
    from unpoison.core.answers import Answer
    from unpoison.core.passages import Passage, Query
    from unpoison.core.screenings import Screening
    from unpoison.core.verdicts import Claim, Verdict
    from unpoison.defenses import load_defense
    from unpoison.defenses.base import Defense
    from unpoison.defenses.grada import Grada
    from unpoison.defenses.guard import Guard
    from unpoison.defenses.radar import Radar
    from unpoison.defenses.ragdefender import RagDefender
    from unpoison.defenses.trustrag import TrustRag
    from unpoison.defenses.vanilla import Vanilla
    from unpoison.defenses.vote import Vote
    from unpoison.errors import UnpoisonError
    from unpoison.rag import Rag
    from unpoison.runtime.driver import Limits
    from unpoison.sources.sources import Sources

__version__ = "0.1.0"

_HOMES = {
    "core.answers": "Answer",
    "core.passages": "Passage Query",
    "core.screenings": "Screening",
    "core.verdicts": "Claim Verdict",
    "defenses": "load_defense",
    "defenses.base": "Defense",
    "defenses.grada": "Grada",
    "defenses.guard": "Guard",
    "defenses.radar": "Radar",
    "defenses.ragdefender": "RagDefender",
    "defenses.trustrag": "TrustRag",
    "defenses.vanilla": "Vanilla",
    "defenses.vote": "Vote",
    "errors": "UnpoisonError",
    "rag": "Rag",
    "runtime.driver": "Limits",
    "sources.sources": "Sources",
}

__all__ = [
    "Answer", "Claim", "Defense", "Grada", "Guard", "Limits", "Passage", "Query", "Radar", "Rag", "RagDefender",
    "Screening", "Sources", "TrustRag", "UnpoisonError", "Vanilla", "Verdict", "Vote", "load_defense",
]  # fmt: skip

wire(
    {
        "rendering": "unpoison.report.rendering",
        "answers_by_origin": "unpoison.defenses.vote:answers_by_origin",
        "defenses": "unpoison.defenses",
    }
)

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
