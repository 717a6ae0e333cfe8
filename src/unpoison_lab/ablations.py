"""The papers' ablations as subclasses, so that the method classes have no switches for them.

In option strings they are `ragdefender-ablation:clustering=kmeans`, `trustrag-ablation:ngram=false` and
`guard-ablation:independent=true`; every option of the method goes with them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unpoison.algorithms.clusters import agglomerative, kmeans
from unpoison.core.answers import Answer, Reply
from unpoison.core.passages import Passage, Query
from unpoison.core.reasons import Reason
from unpoison.core.screenings import Screening
from unpoison.defenses.base import make_answer, note_unfinished
from unpoison.defenses.guard import Guard
from unpoison.defenses.ragdefender import Grouping, RagDefender
from unpoison.defenses.trustrag import Cluster, TrustRag, density, reference_filter, reference_overlaps
from unpoison.models.prompts import consolidation_prompt, decision_prompt, knowledge_prompt
from unpoison.models.requests import Flow, generate, run_side_by_side
from unpoison.utils.checks import among, at_least, flag
from unpoison.utils.extras import require

__all__ = ["GuardAblation", "RagDefenderAblation", "TrustRagAblation"]

Matrix = NDArray[np.float64]


class RagDefenderAblation(RagDefender):
    """RAGDefender with another clustering (Table 6), or one of its stages alone (Table 8).

    Args:
        hops: As `RagDefender`.
        clustering: `agglomerative`, `kmeans` or `dbscan` (extra `[reference]`).
        linkage: Of `agglomerative`: `ward`, `average`, `complete` or `single`.
        eps: Of `dbscan`: up to this Euclidean distance two passages are neighbours, at least 1e-6; the paper has none.
        min_samples: Of `dbscan`: the neighbours, itself included, that make a passage the core of a cluster.
        stages: `both`; `grouping` drops the group that stage 1 blames; `identifying` runs stage 2 with N_adv = half of
            the passages.
        method: The options of `RagDefender`.

    Raises:
        OptionError: An option out of its range.
    """

    def __init__(
        self,
        hops: Literal["single", "multi"] = "single",
        *,
        clustering: Literal["agglomerative", "kmeans", "dbscan"] = "agglomerative",
        linkage: Literal["ward", "average", "complete", "single"] = "ward",
        eps: float = 0.5,
        min_samples: int = 5,
        stages: Literal["both", "grouping", "identifying"] = "both",
        **method: Any,
    ) -> None:
        super().__init__(hops, **method)
        self.clustering = among("clustering", clustering, ("agglomerative", "kmeans", "dbscan"))
        self.linkage = among("linkage", linkage, ("ward", "average", "complete", "single"))
        self.eps = at_least("eps", eps, 1e-6, whole=False)
        self.min_samples = at_least("min_samples", min_samples, 1)
        self.stages = among("stages", stages, ("both", "grouping", "identifying"))

    def grouping(self, vectors: NDArray[np.float32], similarity: Matrix, passages: tuple[Passage, ...]) -> Grouping:
        if self.stages == "identifying":
            return Grouping(len(passages) // 2, np.zeros(len(passages), bool), {})
        return super().grouping(vectors, similarity, passages)

    def identify(self, group: Grouping, frequency: Matrix) -> list[int]:
        if self.stages == "grouping":
            return np.flatnonzero(group.suspects).tolist()
        return super().identify(group, frequency)

    def clusters(self, vectors: NDArray[np.float32]) -> NDArray[np.int64]:
        if self.clustering == "agglomerative":
            return agglomerative(vectors, self.linkage, split_equal=self.mode == "reference")
        if self.clustering == "kmeans":
            return kmeans(vectors)
        dbscan = require("sklearn.cluster", "DBSCAN").DBSCAN(eps=self.eps, min_samples=self.min_samples)
        return np.asarray(dbscan.fit(np.asarray(vectors, np.float64)).labels_, np.intp)


class TrustRagAblation(TrustRag):
    """TrustRAG without some of its parts (Tables 2, 3, 6, 10, 12 and 13).

    Args:
        generator: For `answer`.
        clustering: False leaves stage 1 out ("w/o K-means").
        ngram: False decides without ROUGE ("w/o ROUGE"): the denser cluster goes, whatever the threshold, and the
            other one if it is dense as well. In `reference` mode it is the code's `removal_method=kmeans`, which drops
            its first test by ROUGE-L and still deletes passages by it.
        conflict_resolution: False leaves consolidation out.
        internal_knowledge: False does not ask what the model knows.
        self_assessment: False answers without judging how reliable the external information is.
        method: The options of `TrustRag`.

    Raises:
        OptionError: An option out of its range.
    """

    def __init__(
        self,
        generator: Any = None,
        *,
        clustering: bool = True,
        ngram: bool = True,
        conflict_resolution: bool = True,
        internal_knowledge: bool = True,
        self_assessment: bool = True,
        **method: Any,
    ) -> None:
        super().__init__(generator, **method)
        self.clustering = flag("clustering", clustering)
        self.ngram = flag("ngram", ngram)
        self.conflict_resolution = flag("conflict_resolution", conflict_resolution)
        self.internal_knowledge = flag("internal_knowledge", internal_knowledge)
        self.self_assessment = flag("self_assessment", self_assessment)

    def screening(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Screening]:
        if self.clustering:
            return (yield from super().screening(query, passages))
        reason = Reason.of("trustrag.no_clustering")
        return self.all_kept(query, passages, reason, str(reason))

    def preserve(
        self, labels: NDArray[np.int64], similarity: Matrix, texts: list[str]
    ) -> tuple[list[int], list[Reason]]:
        """Without ROUGE the denser cluster counts as malicious; a lone passage has no density, so it never is.

        The paper's Table 6 retains half of the clean passages where nothing was planted, so the threshold is not asked;
        and it finds 91 % where all five passages are poison, so the other cluster goes too where it is dense.
        """
        if self.ngram:
            return super().preserve(labels, similarity, texts)
        if self.mode == "reference":
            overlaps = reference_overlaps(texts)
            return reference_filter(labels, similarity, overlaps, self.threshold, self.overlap, gate=False)
        groups = [np.flatnonzero(labels == label) for label in (0, 1)]
        densities = [density(group, similarity) for group in groups]
        highest = np.nanmax(densities) if not np.isnan(densities).all() else np.inf
        clusters = [
            Cluster(group, dense, float("nan"), malicious=dense >= min(highest, self.threshold))
            for group, dense in zip(groups, densities, strict=True)
        ]
        return self.drop_clusters(clusters, similarity)

    def malicious_reason(self, cluster: Cluster) -> Reason:
        if self.ngram:
            return super().malicious_reason(cluster)
        code = "trustrag.dense" if cluster.density >= self.threshold else "trustrag.denser"
        return Reason.of(code, size=len(cluster.members), density=cluster.density)

    def answering(self, query: Query, passages: tuple[Passage, ...]) -> Flow[Answer]:
        """Stage 2 without the steps that are left out."""
        if self.stages == 1:
            return (yield from super().answering(query, passages))
        reference, internal = self.mode == "reference", None
        details, steps = dict[str, str](), dict[str, Reply]()
        if self.internal_knowledge:
            asking = generate([knowledge_prompt(query.reading, reference=reference)], "internal knowledge")
            screening, (memory,) = yield from run_side_by_side(self.screening(query, passages), asking)
            steps["internal knowledge"] = memory
            internal = details["internal_knowledge"] = memory.text
        else:
            screening = yield from self.screening(query, passages)
        if not screening.kept and internal is None:
            return (yield from self.answer_from(query, screening))
        external = "\n\n".join(screening.texts)
        if self.conflict_resolution:
            prompt = consolidation_prompt(query.reading, internal, screening.texts, reference=reference)
            (consolidated,) = yield from generate([prompt], "consolidation")
            steps["consolidation"] = consolidated
            external = details["consolidated_information"] = consolidated.text
        prompt = decision_prompt(query.reading, external, internal, assess=self.self_assessment)
        (reply,) = yield from generate([prompt], "final answer", screening)
        return note_unfinished(make_answer(reply, screening, details), steps)


class GuardAblation(Guard):
    """Guard without some of its comparisons.

    Args:
        independent: Let no check compare passages.
        method: The options of `Guard`.

    Raises:
        OptionError: An option out of its range.
    """

    def __init__(self, *, independent: bool = False, **method: Any) -> None:
        self.independent = flag("independent", independent)
        super().__init__(**method)
