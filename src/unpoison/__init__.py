"""unpoison keeps poisoned passages out of retrieval-augmented answers.

    from unpoison import Grada

    screening = Grada(keep=5).screen(query, passages)
    print(screening.explain())

The public names are imported when they are first used, so that `import unpoison` stays fast and pulls in neither
torch nor any SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpoison.defenses.base import Defense
    from unpoison.defenses.grada import Grada
    from unpoison.defenses.perplexity import Perplexity
    from unpoison.defenses.radar import Radar
    from unpoison.defenses.ragdefender import RagDefender
    from unpoison.defenses.trustrag import TrustRag
    from unpoison.defenses.vanilla import NoRag, Vanilla
    from unpoison.driver import Limits
    from unpoison.errors import UnpoisonError
    from unpoison.passages import Passage, Query
    from unpoison.types import Answer, Call, Evidence, Reply, Screening, Verdict

__version__ = "0.1.0"

_HOMES = {
    "Answer": "types",
    "Call": "types",
    "Defense": "defenses.base",
    "Evidence": "types",
    "Grada": "defenses.grada",
    "Limits": "driver",
    "NoRag": "defenses.vanilla",
    "Passage": "passages",
    "Perplexity": "defenses.perplexity",
    "Query": "passages",
    "Radar": "defenses.radar",
    "RagDefender": "defenses.ragdefender",
    "Reply": "types",
    "Screening": "types",
    "TrustRag": "defenses.trustrag",
    "UnpoisonError": "errors",
    "Vanilla": "defenses.vanilla",
    "Verdict": "types",
}

__all__ = [
    "Answer", "Call", "Defense", "Evidence", "Grada", "Limits", "NoRag", "Passage", "Perplexity", "Query", "Radar",
    "RagDefender", "Reply", "Screening", "TrustRag", "UnpoisonError", "Vanilla", "Verdict",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'unpoison' has no attribute {name!r}")
    return getattr(import_module(f"unpoison.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
