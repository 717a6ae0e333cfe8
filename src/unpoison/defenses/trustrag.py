"""TrustRAG: clean retrieval, then conflict resolution with the language model (Zhou et al., 2025).

Stage 1 splits the passages into two clusters and drops a cluster that is too dense to be natural. Stage 2 asks the
model for its own knowledge, consolidates that with the remaining passages, and lets it judge which source to trust. The
first call of stage 2 needs no passages and runs concurrently with stage 1, so an answer takes three sequential calls.

The prompts restate the paper's Appendix A in our own words; `mode="reference"` follows the released code instead
(`k_mean_filtering` of its `defend_module.py`, extra `[reference]`: scikit-learn for K-means, NLTK for the stems of
ROUGE-L). That deviates from the paper's intent: it may drop a singleton that resembles nothing else, may return
nothing, and removes all near-duplicates. One difference remains: the input order is kept, while the released code
concatenates the clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.clusters import kmeans, two_means
from unpoison.algorithms.cosine import cosine
from unpoison.core.answers import Answer
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import EQUAL, Defense, ShellOptions, make_answer, note_unfinished
from unpoison.defenses.embedding import embed_passages
from unpoison.models import prompts
from unpoison.models.protocols import Encoder, Generator
from unpoison.models.requests import Flow, generate, run_side_by_side
from unpoison.text.tokens import nltk_stems, rouge_l
from unpoison.utils.checks import among, at_least, within
from unpoison.utils.extras import require

__all__ = ["Cluster", "TrustRag", "group_filter", "reference_filter", "reference_overlaps"]

Matrix = NDArray[np.float64]
Group = NDArray[np.intp]


class Cluster(NamedTuple):
    """One of the two clusters: its members, its density, and the mean ROUGE-L of its members."""

    members: Group
    density: float
    overlap: float
    malicious: bool


class TrustRag(Defense):
    """Drop clusters that are too dense, then resolve conflicts with the model (TrustRAG, Sections 3.2 and 3.3).

    `screen` runs stage 1 and needs no generator.

    Args:
        generator: For `answer`.
        stages: 2 for the whole method, 1 to answer from the screened passages with the plain RAG prompt.
        mode: `paper`, or `reference` for the released code's stage 1 (extra `[reference]`)
            and its prompts: no fence around passages, no abstention offered, and a consolidation that contains the
            attack's template. For reproduction only.
        threshold: The minimum mean pairwise cosine of a suspicious cluster, in [-1, 1]; None for the mode's default
            (0.85 or 0.88), which was chosen for SimCSE: other encoders may need another value.
        overlap: The mean pairwise ROUGE-L above which a dense cluster is malicious rather than mixed, in [0, 1].
        encoder: For passages without an embedding; the built-in lexical encoder by default.

    Like every defense, it also takes the common options (`ShellOptions`).

    Raises:
        OptionError: An option out of its range.
        MissingExtraError: `mode` is `reference` and the extra `[reference]` is not installed.
    """

    name = "trustrag"
    summary = "drops a cluster that is too dense; with a generator, resolves conflicts by what the model knows"
    calls = "3"
    source = "Zhou et al., 2025"

    def __init__(
        self,
        generator: Generator | str | None = None,
        *,
        stages: int = 2,
        mode: Literal["paper", "reference"] = "paper",
        threshold: float | None = None,
        overlap: float = 0.25,
        encoder: Encoder | str | None = None,
        **shell: Unpack[ShellOptions],
    ) -> None:
        super().__init__(encoder=encoder or "lexical", generator=generator, **shell)
        self.stages = at_least("stages", stages, 1, 2)
        self.mode = among("mode", mode, ("paper", "reference"))
        if mode == "reference":
            for package in ("sklearn", "nltk"):
                require(package, "mode=reference of TrustRAG")
            self.models = replace(self.models, style=prompts.PromptStyle(safe=False, abstain=False))
        default = 0.85 if mode == "paper" else 0.88
        self.threshold = default if threshold is None else within("threshold", threshold, -1.0, 1.0)
        self.overlap = within("overlap", overlap, 0.0, 1.0)

    # Stage 1: clean retrieval.

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        """K-means with two clusters, then n-gram preservation (Section 3.2)."""
        least = 3 if self.mode == "paper" else 2
        if len(passages) < least:
            return self._keep_all(query, passages, Reason.of("trustrag.too_few", least=least))
        vectors, _ = yield from embed_passages(query, passages, self.models.encoder)
        if (vectors == vectors[0]).all() and self.mode == "paper":
            return self._keep_all(query, passages, EQUAL)
        labels = reference_clusters(vectors) if self.mode == "reference" else two_means(_standardise(vectors))
        similarity = cosine(vectors)
        kept, why = self.preserve(labels, similarity, [p.reading for p in passages])
        mates = (labels[:, None] == labels[None, :]) & ~np.eye(len(labels), dtype=bool)
        crowding = np.where(mates, similarity, 0).sum(axis=1) / np.maximum(mates.sum(axis=1), 1)
        notes = [] if kept else ["every passage was found malicious: an answer rests on internal knowledge alone"]
        if self.stages == 2 and self.models.generator is None:
            notes.append("no generator was given, so stage 1 alone decides; stages=1 says that this is meant")
        arrays = {"similarity": similarity, "clusters": labels, "crowding": crowding}
        found = Evidence(arrays, tuple(notes), graph="similarity")
        return Screening.decided(self.name, query, passages, kept=kept, scores=-crowding, reasons=why, evidence=found)

    def preserve(
        self, labels: NDArray[np.int64], similarity: Matrix, texts: list[str]
    ) -> tuple[list[int], list[Reason]]:
        """N-gram preservation: the kept positions, and a reason for every passage."""
        if self.mode == "reference":
            return reference_filter(labels, similarity, reference_overlaps(texts), self.threshold, self.overlap)
        groups = [np.flatnonzero(labels == label) for label in (0, 1)]
        return self.drop_clusters([self._judge_cluster(group, similarity, texts) for group in groups], similarity)

    def _judge_cluster(self, members: Group, similarity: Matrix, texts: list[str]) -> Cluster:
        """A cluster is malicious if it is dense and its members share wording.

        A poison among clean passages shares little wording with them, so a mixed cluster is preserved for stage 2.
        """
        closeness = density(members, similarity)
        if not closeness >= self.threshold:
            return Cluster(members, closeness, float("nan"), malicious=False)
        overlap = density(np.arange(len(members)), rouge_l([texts[i] for i in members]))
        return Cluster(members, closeness, overlap, malicious=overlap > self.overlap)

    def drop_clusters(self, clusters: list[Cluster], similarity: Matrix) -> tuple[list[int], list[Reason]]:
        """Drop every malicious cluster, and a singleton that is as similar to it as its own members."""
        k = len(similarity)
        why, kept = [Reason("")] * k, np.ones(k, bool)
        for cluster, rival in (clusters, clusters[::-1]):
            size = len(cluster.members)
            dense = cluster.density >= self.threshold
            described = {"size": size, "density": cluster.density, "overlap": cluster.overlap}
            if cluster.malicious:
                reason = self.malicious_reason(cluster)
                kept[cluster.members] = False
            elif size == 1 and rival.malicious:
                closeness = float(similarity[np.ix_(cluster.members, rival.members)].mean())
                kept[cluster.members] = closeness < self.threshold
                code = f"trustrag.alone_{'like' if closeness >= self.threshold else 'unlike'}_malicious"
                reason = Reason.of(code, closeness=closeness)
            elif size == 1:
                reason = Reason.of("trustrag.alone")
            elif dense and np.isfinite(cluster.overlap):
                reason = Reason.of("trustrag.own_words", **described)
            else:
                reason = Reason.of("trustrag.not_dense", size=size, density=cluster.density)
            for i in cluster.members:
                why[i] = reason
        return np.flatnonzero(kept).tolist(), why

    def malicious_reason(self, cluster: Cluster) -> Reason:
        """The reason for dropping the members of a malicious cluster."""
        size = len(cluster.members)
        return Reason.of("trustrag.too_alike", size=size, density=cluster.density, overlap=cluster.overlap)

    def _keep_all(self, query: Query, passages: tuple[Passage, ...], why: Reason) -> Screening:
        return self.all_kept(query, passages, why, str(why))

    # Stage 2: conflict resolution.

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Internal knowledge concurrently with stage 1, then consolidation, then self-assessment (Section 3.3)."""
        if self.stages == 1:
            return (yield from super().answering(query, passages))
        reference = self.mode == "reference"
        asking = generate([prompts.knowledge_prompt(query.reading, reference=reference)], "internal knowledge")
        screening, (memory,) = yield from run_side_by_side(self.screening(query, passages), asking)
        prompt = prompts.consolidation_prompt(query.reading, memory.text, screening.texts, reference=reference)
        (consolidated,) = yield from generate([prompt], "consolidation")
        prompt = prompts.decision_prompt(query.reading, consolidated.text, memory.text, assess=True)
        (reply,) = yield from generate([prompt], "final answer", screening)
        details = {"internal_knowledge": memory.text, "consolidated_information": consolidated.text}
        answer = make_answer(reply, screening, details)
        return note_unfinished(answer, {"internal knowledge": memory, "consolidation": consolidated})

    def answer_from(self, query: Query, screening: Screening) -> Flow[Answer]:
        """The plain answer; if stage 1 keeps nothing, the model answers without context, as in the paper."""
        if screening.kept:
            return (yield from super().answer_from(query, screening))
        (reply,) = yield from generate([prompts.answer_alone_prompt(query.reading)], final=screening)
        return make_answer(reply, screening)


def _standardise(vectors: NDArray[np.float32]) -> Matrix:
    """Each dimension to mean 0 and deviation 1 over the passages, then each row to length 1.

    The paper does not mention it; the released code does it, and the published numbers come from there.
    """
    centred = np.asarray(vectors, dtype=float) - vectors.mean(axis=0, dtype=float)
    deviation = centred.std(axis=0)
    scaled = centred / np.where(deviation > 0, deviation, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(length > 0, length, 1))


def reference_clusters(vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """scikit-learn's K-means on standardised vectors of length 1: ten starts, 500 steps, seed 0.

    Args:
        vectors: Shape (k, d).

    Returns:
        Labels 0 and 1, shape (k,); all 0 for equal vectors, for which the released code fails.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    scaler = require("sklearn.preprocessing", "mode=reference of TrustRAG").StandardScaler()
    points = scaler.fit_transform(vectors)
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return kmeans(points / np.where(length > 0, length, 1), steps=500)


def reference_overlaps(texts: Sequence[str]) -> Matrix:
    """ROUGE-L F1 of each pair as in `rouge-score` with its stemmer, shape (k, k)."""
    return rouge_l(texts, nltk_stems)


def density(members: Group, similarity: Matrix) -> float:
    """The mean over all pairs of different members; NaN without a pair."""
    n, inner = len(members), similarity[np.ix_(members, members)]
    return float((inner.sum() - np.trace(inner)) / (n * (n - 1))) if n > 1 else float("nan")


def reference_filter(
    labels: NDArray[np.int64],
    similarity: Matrix,
    overlaps: Matrix,
    threshold: float,
    overlap: float,
    *,
    gate: bool = True,
) -> tuple[list[int], list[Reason]]:
    """The passages that the released code keeps, and the reasons.

    Args:
        labels: Cluster of each passage, 0 or 1, shape (k,).
        similarity: Cosine of the raw embeddings, shape (k, k).
        overlaps: ROUGE-L F1 of each pair, shape (k, k).
        threshold: Cosine above which a cluster is dense (0.88 in the released code).
        overlap: ROUGE-L above which two passages share wording (0.25).
        gate: Keep all passages if no two share wording (`removal_method=kmeans_ngram`). Without the gate
            (`removal_method=kmeans`) the clusters are judged anyway, and passages are still removed by ROUGE-L.

    Returns:
        Kept positions in input order, and a reason for every passage.
    """
    k = len(labels)
    first, second = (np.flatnonzero(labels == label) for label in (0, 1))
    if gate and not (np.triu(overlaps, 1) > overlap).any():
        return list(range(k)), [Reason.of("trustrag.no_shared_wording", overlap=overlap)] * k
    if len(second) == 0:  # one cluster: all embeddings are equal
        return [], [Reason.of("trustrag.one_cluster")] * k
    if len(first) == 1 or len(second) == 1:
        kept, note = _with_a_singleton(first, second, similarity, threshold)
        return _add_reasons(kept, note, k)
    return _with_two_groups(first, second, similarity, overlaps, threshold, overlap)


def _with_a_singleton(first: Group, second: Group, similarity: Matrix, threshold: float) -> tuple[list[int], Reason]:
    """The lone passage is kept only beside a dense group that it does not resemble.

    Two lone passages are not a dense group: then cluster 0 is kept.
    """
    alone, group = (second, first) if len(second) == 1 else (first, second)
    if len(group) == 1 or not density(group, similarity) > threshold:
        return group.tolist(), Reason.of("trustrag.lone_dropped")
    if similarity[group[0], alone[0]] > threshold:
        return [], Reason.of("trustrag.lone_like_dense")
    return alone.tolist(), Reason.of("trustrag.lone_unlike_dense")


def _with_two_groups(
    first: Group, second: Group, similarity: Matrix, overlaps: Matrix, threshold: float, overlap: float
) -> tuple[list[int], list[Reason]]:
    k = len(similarity)
    looser, denser = sorted((second, first), key=lambda group: density(group, similarity))
    if density(looser, similarity) > threshold:
        return [], [Reason.of("trustrag.both_dense")] * k
    surviving = [looser] if density(denser, similarity) >= threshold else [first, second]
    kept = [i for group in surviving for i in group_filter(group.tolist(), overlaps, overlap)]
    note = Reason.of("trustrag.dense_or_shared")
    return _add_reasons(kept, note, k)


def group_filter(members: list[int], overlaps: Matrix, overlap: float) -> list[int]:
    """Remove, within one cluster, every passage that shares wording with another: both, not only the copy.

    The scan stops at the first match of each passage, so that a chain 0-1-2 with different ends keeps 2.
    """
    deleted: set[int] = set()
    anchor: int | None = None
    for position, i in enumerate(members):
        if i in deleted:
            continue
        match = next((j for j in members[position + 1 :] if overlaps[i, j] > overlap), None)
        if match is not None:
            deleted.update((i, match))
            anchor = i if anchor is None else anchor
        if anchor is not None and overlaps[i, anchor] > overlap:
            deleted.add(i)
    return [i for i in members if i not in deleted]


def _add_reasons(kept: list[int], note: Reason, k: int) -> tuple[list[int], list[Reason]]:
    return sorted(kept), [Reason.of("trustrag.passed") if i in kept else note for i in range(k)]
