"""The mixed adaptive attack (RAGDefender, Section 6.5): paraphrase, then synonyms, then dispersion."""

from __future__ import annotations

from unpoison.bench.attacks.base import Meter, Target
from unpoison.bench.attacks.claims import claims
from unpoison.bench.attacks.disperse import Disperse
from unpoison.bench.attacks.paraphrase import paraphrases
from unpoison.bench.attacks.synonym import synonyms
from unpoison.models.requests import Flow

__all__ = ["Mixed"]


class Mixed(Disperse):
    """`disperse` over texts that were paraphrased and given synonyms; the same options."""

    name = "mixed"
    summary = "adaptive: paraphrase, synonyms and dispersion together"
    offline = "rules and a table of words"

    def _candidates(self, target: Target, wanted: int, meter: Meter) -> Flow[list[str]]:
        bodies = yield from claims(self, target, wanted, meter)
        again = yield from paraphrases(self, target, [body.text for body in bodies], [meter] * wanted)
        rewritten = yield from synonyms(self, target, again, [meter] * wanted, 0.3)
        return list(dict.fromkeys(new.text for new in rewritten))
