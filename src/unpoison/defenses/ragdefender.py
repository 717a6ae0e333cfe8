"""RAGDefender: estimate the number of adversarial passages, then identify them (Kim et al., 2025).

Poisons written for one query and one wrong answer are unusually similar. Stage 1 estimates their number N_adv: by two
clusters and a vote of the heaviest TF-IDF terms (single-hop questions), or by the concentration of each passage's
similarities (multi-hop). Stage 2 drops the N_adv passages that occur most, and most strongly, among the most similar
pairs.

The single-hop estimate is at least 1 for any three passages, so something is dropped from every query, attacked or not:
`docs/defenses/ragdefender.md` has the measured cost.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.clusters import agglomerative, concentration, top_pair_frequency, top_terms
from unpoison.algorithms.cosine import best_first, cosine
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import EQUAL, Defense, ScreeningOptions
from unpoison.defenses.embedding import embed_passages
from unpoison.models.protocols import Encoder
from unpoison.models.requests import Flow
from unpoison.text.tokens import ENGLISH_318, words
from unpoison.utils.checks import among, at_least

__all__ = ["Grouping", "RagDefender"]


Vectors = NDArray[np.float32]
Matrix = NDArray[np.float64]


class Grouping(NamedTuple):
    """The result of stage 1: the estimated number of adversarial passages, the suspected group, and the evidence."""

    estimate: int
    suspects: NDArray[np.bool_]
    evidence: dict[str, NDArray[np.generic]]
    notes: tuple[str, ...] = ()


class RagDefender(Defense):
    """Estimate the number of adversarial passages, then drop that many (RAGDefender, Sections 4.1 and 4.2).

    Args:
        hops: `single` for questions that one passage answers (two clusters and the TF-IDF vote), `multi` for questions
            that need several (concentration factors). It is not detected automatically.
        terms: The number of heaviest TF-IDF terms that vote (the paper's m), at least 1.
        exponent: The weight of a pair is its similarity to this power (the paper's p), at least 0.
        rule: The count of `multi`: `reference`, the rule behind the published numbers, or `paper`, Eq. 3 as printed,
            which can never flag a majority.
        mode: `paper`: a term votes if it is a token of the passage, and nothing is dropped from fewer than 3, or equal,
            passages. `reference` follows the released code: a term votes if its lower-case form occurs in the original
            text with its capitals, and small and equal sets are screened too.
        encoder: For passages without an embedding; the built-in lexical encoder by default.

    Like every defense, it also takes the common options (`ScreeningOptions`).

    Raises:
        OptionError: An option out of its range.
    """

    name = "ragdefender"
    summary = "estimates how many passages are poisoned and drops the most alike; always drops some"
    calls = "1"
    source = "Kim et al., 2025"

    def __init__(
        self,
        hops: Literal["single", "multi"] = "single",
        *,
        terms: int = 5,
        exponent: float = 2.0,
        rule: Literal["reference", "paper"] = "reference",
        mode: Literal["paper", "reference"] = "paper",
        encoder: Encoder | str | None = None,
        **shell: Unpack[ScreeningOptions],
    ) -> None:
        super().__init__(encoder=encoder or "lexical", **shell)
        self.hops = among("hops", hops, ("single", "multi"))
        self.terms = at_least("terms", terms, 1, 10_000)
        self.exponent = at_least("exponent", exponent, 0.0, 100.0, whole=False)
        self.rule = among("rule", rule, ("reference", "paper"))
        self.mode = among("mode", mode, ("paper", "reference"))

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """Stage 1 estimates the number, stage 2 identifies the passages."""
        vectors, _ = yield from embed_passages(query, passages, self.models.encoder)
        similarity = cosine(vectors)
        spared = self._spare_reason(vectors)
        if spared:
            group = Grouping(0, np.zeros(len(passages), bool), {}, (str(spared),))
            return self._build_screening(query, passages, similarity, [], np.zeros(len(passages)), group, spared)
        group = self.grouping(vectors, similarity, passages)
        frequency, _ = top_pair_frequency(similarity, group.estimate, self.exponent)
        suspected = self.identify(group, frequency)
        return self._build_screening(query, passages, similarity, suspected, frequency, group)

    def grouping(self, vectors: Vectors, similarity: Matrix, passages: tuple[Passage, ...]) -> Grouping:
        """Stage 1 (Section 4.1)."""
        if self.hops == "single":
            return self._by_clusters(vectors, similarity, passages)
        return self._by_concentration(similarity)

    def identify(self, group: Grouping, frequency: Matrix) -> list[int]:
        """Stage 2 (Section 4.2): the passages that occur most among the most similar pairs, the worst first.

        With one suspect, the two members of the best pair tie: the better-ranked passage is dropped, as in both
        references. With a single poison it usually is the poison.
        """
        order: list[int] = best_first(frequency)[: group.estimate].tolist()
        return order

    def _spare_reason(self, vectors: Vectors) -> Reason | None:
        """The reason to keep all passages, if they cannot be distinguished."""
        least = 3 if self.mode == "paper" else 2
        if len(vectors) < least:
            return Reason.of("ragdefender.too_few", least=least)
        return EQUAL if self.mode == "paper" and (vectors == vectors[0]).all() else None

    def _by_clusters(self, vectors: Vectors, similarity: Matrix, passages: tuple[Passage, ...]) -> Grouping:
        """Eq. 1 and 2: the smaller of two clusters is adversarial, or the larger if the heavy terms are widespread."""
        labels = self.clusters(vectors)
        sizes = np.unique(labels, return_counts=True)[1]
        smaller = len(labels) - int(sizes.max())
        texts = [p.reading for p in passages]
        tokens = [words(text, ENGLISH_318) for text in texts]
        heaviest = top_terms(tokens, self.terms)
        places = texts if self.mode == "reference" else map(set, tokens)
        terms_held = np.array([sum(term in place for term in heaviest) for place in places])
        widespread = int((terms_held > self.terms / 2).sum()) > len(passages) / 2
        count = len(passages) - smaller if widespread else smaller
        notes: tuple[str, ...] = ()
        if count == len(labels) and self.mode == "paper":
            # One group and widespread terms would drop all passages: this is no finding.
            count, notes = 0, ("all passages are one group; the vote would drop all, so none is dropped",)
        suspects = _group_of_size(labels, count, similarity)
        evidence = {"clusters": labels, "terms": np.array(heaviest, dtype=str), "terms_found": terms_held}
        return Grouping(count, suspects, evidence, notes)

    def clusters(self, vectors: Vectors) -> NDArray[np.int64]:
        """The cluster of each passage, shape (k,)."""
        return agglomerative(vectors, "ward", split_equal=self.mode == "reference")

    def _by_concentration(self, similarity: Matrix) -> Grouping:
        """Eq. 3: passages whose mean and median similarity to the others exceed the set's."""
        factors = concentration(similarity, self.rule)
        count, suspects = factors.count, factors.flagged
        notes: tuple[str, ...] = ()
        if factors.flipped:
            suspects = ~suspects
            if count == len(similarity) and self.mode == "paper":
                # No passage stands out, and the flip would drop all: this is no finding.
                count, suspects = 0, np.zeros(len(similarity), bool)
                notes = ("no passage stands out; the reference rule would drop all, so none is dropped",)
        return Grouping(count, suspects, {"mean": factors.mean, "median": factors.median}, notes)

    def _build_screening(
        self,
        query: Query,
        passages: tuple[Passage, ...],
        similarity: Matrix,
        suspected: list[int],
        frequency: Matrix,
        group: Grouping,
        spared: Reason | None = None,
    ) -> Screening:
        others = similarity.copy()
        np.fill_diagonal(others, -np.inf)
        nearest = others.argmax(axis=1).tolist() if passages else []
        closeness = others.max(axis=1, initial=-np.inf).tolist()
        blamed = {index: rank for rank, index in enumerate(suspected, 1)}
        reasons = []
        for i, often in enumerate(frequency.tolist()):
            alike = {"passage": nearest[i], "similarity": closeness[i]}
            compared = {"count": len(blamed), "frequency": often, **alike}
            if spared is not None:
                reasons.append(spared)
            elif i in blamed:
                reasons.append(Reason.of("ragdefender.suspect", place=blamed[i], **compared))
            elif blamed:
                reasons.append(Reason.of("ragdefender.below", **compared))
            else:
                reasons.append(Reason.of("ragdefender.no_suspects", **alike))
        notes, kept = group.notes, [i for i in range(len(passages)) if i not in blamed]
        if passages and not kept:
            notes = (*notes, "every passage was found adversarial: nothing is left to answer from")
        arrays = {"similarity": similarity, "frequency": frequency, "estimate": np.array(group.estimate)}
        found = Evidence({**arrays, **group.evidence}, notes, graph="similarity")
        return Screening.decided(
            self.name, query, passages, kept=kept, scores=-frequency, reasons=reasons, evidence=found
        )


def _group_of_size(labels: NDArray[np.int64], count: int, similarity: Matrix) -> NDArray[np.bool_]:
    """The largest cluster or its complement, whichever has `count` members; of two equal sides the denser one."""
    values, sizes = np.unique(labels, return_counts=True)
    largest = labels == values[sizes.argmax()]
    sides = [side for side in (largest, ~largest) if side.sum() == count]
    if not sides or count == 0:
        return np.zeros(len(labels), bool)
    return max(sides, key=lambda side: float(similarity[np.ix_(side, side)].mean()))
