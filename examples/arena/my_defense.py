"""An entry of the arena, whole: copy this file, write your own rule, and run

unpoison arena run --quick -d my_defense:Short
"""

from unpoison.defenses.base import Defense
from unpoison.types import Screening


class Short(Defense):
    """Drop passages of fewer than eight words: who says little proves little."""

    name = "short"
    summary = "drops short passages"

    def screening(self, query, passages):
        yield from ()  # it asks no model
        lengths = [len(passage.reading.split()) for passage in passages]
        kept = [i for i, length in enumerate(lengths) if length >= 8]
        reasons = [f"{length} words" for length in lengths]
        return Screening.decided(self.name, query, passages, kept=kept, scores=lengths, reasons=reasons)
