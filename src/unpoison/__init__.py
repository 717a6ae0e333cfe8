"""unpoison keeps poisoned passages out of retrieval-augmented answers.

    from unpoison import Grada

    screening = Grada(keep=5).screen(query, passages)
    print(screening.explain())

The public names are imported when they are first used, so that `import unpoison` stays fast and pulls in neither
torch nor any SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unpoison.utils.lazy import lazy_names

if TYPE_CHECKING:
    from unpoison.architectures.rag import Rag
    from unpoison.core.passages import Passage, Query
    from unpoison.defenses.astuterag import AstuteRag
    from unpoison.defenses.base import Defense
    from unpoison.defenses.discern import Discern
    from unpoison.defenses.grada import Grada
    from unpoison.defenses.guard import Guard
    from unpoison.defenses.instructrag import InstructRag
    from unpoison.defenses.madam import Madam
    from unpoison.defenses.paraphrase import Paraphrasing
    from unpoison.defenses.perplexity import Perplexity
    from unpoison.defenses.ra_rag import RaRag
    from unpoison.defenses.radar import Radar
    from unpoison.defenses.ragdefender import RagDefender
    from unpoison.defenses.reliabilityrag import ReliabilityRag, SampledReliabilityRag
    from unpoison.defenses.rerank import Hlatr, Rerank
    from unpoison.defenses.robustrag import RobustRag
    from unpoison.defenses.robustrag_decoding import RobustRagDecoding
    from unpoison.defenses.trustrag import TrustRag
    from unpoison.defenses.vanilla import NoRag, Vanilla
    from unpoison.defenses.vote import Vote
    from unpoison.errors import UnpoisonError
    from unpoison.runtime.driver import Limits
    from unpoison.sources.sources import Sources
    from unpoison.types import Answer, Call, Contest, Evidence, Reply, Rival, Screening, Span, Verdict

__version__ = "0.1.0"

_HOMES = {
    "Answer": "types",
    "AstuteRag": "defenses.astuterag",
    "Call": "types",
    "Contest": "types",
    "Defense": "defenses.base",
    "Discern": "defenses.discern",
    "Evidence": "types",
    "Grada": "defenses.grada",
    "Guard": "defenses.guard",
    "Hlatr": "defenses.rerank",
    "InstructRag": "defenses.instructrag",
    "Limits": "runtime.driver",
    "Madam": "defenses.madam",
    "NoRag": "defenses.vanilla",
    "Paraphrasing": "defenses.paraphrase",
    "Passage": "core.passages",
    "Perplexity": "defenses.perplexity",
    "Query": "core.passages",
    "RaRag": "defenses.ra_rag",
    "Radar": "defenses.radar",
    "Rag": "architectures.rag",
    "RagDefender": "defenses.ragdefender",
    "ReliabilityRag": "defenses.reliabilityrag",
    "Reply": "types",
    "Rival": "types",
    "Rerank": "defenses.rerank",
    "RobustRag": "defenses.robustrag",
    "RobustRagDecoding": "defenses.robustrag_decoding",
    "SampledReliabilityRag": "defenses.reliabilityrag",
    "Screening": "types",
    "Sources": "sources.sources",
    "Span": "types",
    "TrustRag": "defenses.trustrag",
    "UnpoisonError": "errors",
    "Vanilla": "defenses.vanilla",
    "Verdict": "types",
    "Vote": "defenses.vote",
}

__all__ = [
    "Answer", "AstuteRag", "Call", "Contest", "Defense", "Discern", "Evidence", "Grada", "Guard", "Hlatr",
    "InstructRag", "Limits", "Madam", "NoRag", "Paraphrasing", "Passage", "Perplexity", "Query", "RaRag", "Radar",
    "Rag", "RagDefender", "ReliabilityRag", "Reply", "Rerank", "Rival", "RobustRag", "RobustRagDecoding",
    "SampledReliabilityRag", "Screening", "Sources", "Span", "TrustRag", "UnpoisonError", "Vanilla", "Verdict", "Vote",
]  # fmt: skip


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
