"""RAGDefender as its authors publish it (`pip install ragdefender sentence-transformers`), as an entry of the arena:

unpoison arena run --quick --track screening -d ragdefender_entry:Published

EMBEDDER names the encoder, or its folder; by default theirs, all-MiniLM-L6-v2, which is downloaded.
"""

import os

from ragdefender import RAGDefender

from unpoison.defenses.base import Defense
from unpoison.types import Screening


class Published(Defense):
    """What `RAGDefender.defend` removes goes; it has no scores, so it has no place at equal harm."""

    name = "ragdefender-published"
    summary = "RAGDefender 0.2.0, single hop"

    def __init__(self) -> None:
        super().__init__()
        self._theirs = RAGDefender(embedder=os.environ.get("EMBEDDER", "minilm-all"), task_type="single_hop")

    def screening(self, query, passages):
        yield from ()
        _, removed = self._theirs.defend(query.text, [p.reading for p in passages], return_indices=True)
        kept = [i for i in range(len(passages)) if i not in set(removed)]
        scores = [float(i in kept) for i in range(len(passages))]
        reasons = ["left" if i in kept else "removed" for i in range(len(passages))]
        return Screening.decided(self.name, query, passages, kept=kept, scores=scores, reasons=reasons)
