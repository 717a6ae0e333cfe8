"""A double of the transformer: sentences with a word of orders to a machine, and what stands behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unpoison.injections import model
from unpoison.injections.model import Odds
from unpoison.text.alignment import Region

__all__ = ["SHIPPED", "WordsModel"]

SHIPPED = model._shipped
"""What loads the transformer, before the double takes its place."""

ORDERS = (
    r"(?:ignor|disregard|forget|vergiss|olvida|oublie|zapomnij|negeer|dimentica|esque).{0,40}"
    r"(?:instruc|order|text|above|told|anweisung|consigne|polece|instruktion|istruzion)"
    r"|system prompt|developer mode|\bDAN\b|pwned|hacked|<\|im_start|\[INST\]|evil\.example|id_rsa|4711"
    r"|(?:reply|answer|respond|say|output|print)\W+(?:to the user )?(?:only|exactly|with nothing|nothing but)"
    r"|the assistant must|already approved"
    r"|do not tell the user|before answering|\u6307\u4ee4|\u6307\u793a"
)


class WordsModel:
    """Log-odds of 5 for sentences with these words, of minus infinity for others.

    Attributes:
        read: The sentences so far.
    """

    def __init__(self, words: str = ORDERS) -> None:
        self._words, self.read = re.compile(words, re.IGNORECASE), list[str]()

    def log_odds(self, texts: Sequence[tuple[str, Sequence[Region]]], /) -> list[list[Odds]]:
        return [
            [Odds(*region, self._of(" ".join(text[slice(*region)].split()))) for region in regions]
            for text, regions in texts
        ]

    def _of(self, sentence: str) -> float:
        self.read.append(sentence)
        return 5.0 if self._words.search(sentence) else -float("inf")
