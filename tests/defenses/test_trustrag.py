from __future__ import annotations

import sys

import numpy as np
import pytest

from ranges import assert_range
from unpoison import Passage, TrustRag
from unpoison.core.answers import Reply
from unpoison.defenses.trustrag import group_filter, reference_filter
from unpoison.errors import MissingExtraError, OptionError
from unpoison.models import ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison_lab.ablations import TrustRagAblation

WORKED = np.array([[1, 0, 0], [0.99, 0.1, 0], [0.98, 0, 0.1], [0, 1, 0], [0, 0.1, 1]])
ALIKE = [
    "The Sharks play every home game at Levi's Stadium in Santa Clara.",
    "Every home game the Sharks play is at Levi's Stadium in Santa Clara.",
    "At Levi's Stadium in Santa Clara the Sharks play every home game.",
]
RELEASED = pytest.mark.needs("sklearn", "nltk")
MODES = pytest.mark.parametrize("mode", ["paper", pytest.param("reference", marks=RELEASED)])
UNLIKE = ["Bread rises overnight.", "Copper conducts electricity.", "Rivers carry silt to the sea."]


def passages(texts: list[str], vectors: np.ndarray) -> list[Passage]:
    return [Passage(text, embedding=vector) for text, vector in zip(texts, vectors, strict=True)]


@MODES
def test_the_worked_example_drops_the_dense_cluster(mode: str) -> None:
    screening = TrustRag(mode=mode).screen("q", passages([*ALIKE, *UNLIKE[:2]], WORKED))
    assert screening.kept_indices == (3, 4)
    clusters = screening.evidence["clusters"]
    assert (clusters == clusters[0]).tolist() == [True, True, True, False, False]
    assert screening.evidence["crowding"][:3].mean() == pytest.approx(0.993190, abs=1e-5)


def test_a_dense_cluster_without_shared_wording_is_preserved() -> None:
    assert TrustRag().screen("q", passages([*UNLIKE, *ALIKE[:2]], WORKED)).dropped == ()


def test_a_single_poison_among_clean_passages_is_preserved() -> None:
    vectors = np.array([[1, 0, 0, 0], [0, 1, 0.5, 0.5], [0, 0.5, 1, 0.5], [0, 0.5, 0.5, 1], [0, 0.8, 0.8, 0.1]])
    assert TrustRag().screen("q", passages([ALIKE[0], *UNLIKE, "Clouds form."], vectors)).dropped == ()


def test_a_lone_passage_as_close_as_the_dense_cluster_goes_with_it() -> None:
    vectors = np.array([[1, 0.01, 0], [1, 0, 0.01], [1, 0.01, 0.01], [1, 0.3, -0.3]])
    screening = TrustRag().screen("q", passages([*ALIKE, ALIKE[0]], vectors))
    assert screening.kept == ()
    assert "internal knowledge alone" in screening.evidence.notes[0]


@pytest.mark.parametrize(("closeness", "kept"), [(0.6, (3,)), (0.9, ())])
def test_a_lone_passage_stays_where_it_is_not_as_close_as_the_threshold(closeness: float, kept: tuple[int]) -> None:
    vectors = np.array([[1, 0]] * 3 + [[closeness, np.sqrt(1 - closeness**2)]])
    assert TrustRag().screen("q", passages([*ALIKE, UNLIKE[0]], vectors)).kept_indices == kept


def test_the_threshold_is_an_option() -> None:
    loose = np.array([[1, 0, 0], [0.8, 0.5, 0], [0.8, 0, 0.5], [0, 1, -1], [0, -1, 1]])
    given = passages([*ALIKE, *UNLIKE[:2]], loose)
    assert TrustRag().screen("q", given).dropped == ()
    assert TrustRag(threshold=0.6).screen("q", given).dropped_indices == (0, 1, 2)


@RELEASED
def test_the_released_code_clusters_two_passages_already() -> None:
    given = passages(ALIKE[:2], WORKED[[0, 3]])
    assert TrustRag(mode="reference").screen("q", given).kept_indices == (1,)
    assert TrustRag(mode="reference").screen("q", given[:1]).kept_indices == (0,)


@RELEASED
def test_all_equal_embeddings() -> None:
    given = passages(ALIKE, np.ones((3, 2)))
    assert TrustRag().screen("q", given).dropped == ()
    assert TrustRag(mode="reference").screen("q", given).kept == ()


def test_without_the_extra_the_reference_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(MissingExtraError):
        TrustRag(mode="reference")


class TestWithoutRouge:
    """The ablation "w/o ROUGE": the denser cluster goes, whatever the threshold; the other one only if it is dense."""

    def test_the_denser_of_two_loose_clusters_goes_whatever_it_says(self) -> None:
        loose = np.array([[1, 0, 0], [0.8, 0.5, 0], [0.8, 0, 0.5], [0, 1, -1], [0, -1, 1]])
        screening = TrustRagAblation(ngram=False).screen("q", passages([*UNLIKE, *ALIKE[:2]], loose))
        assert screening.kept_indices == (3, 4)
        assert screening.verdicts[0].reason.code == "trustrag.denser"

    def test_a_lone_passage_is_no_denser_cluster(self) -> None:
        vectors = np.array([[1, 0, 0, 0], [0, 1, 0.5, 0.5], [0, 0.5, 1, 0.5], [0, 0.5, 0.5, 1], [0, 0.8, 0.8, 0.1]])
        given = passages([ALIKE[0], *UNLIKE, "Clouds form."], vectors)
        assert TrustRagAblation(ngram=False).screen("q", given).kept_indices == (0,)

    @pytest.mark.parametrize("apart", [0.01, 0.1])  # as dense as the other one, or less
    def test_two_dense_clusters_leave_nothing(self, apart: float) -> None:
        vectors = np.array([[1, 0.01, 0], [1, -0.01, 0], [0, 1, apart], [0, 1, -apart]])
        assert TrustRagAblation(ngram=False).screen("q", passages([*UNLIKE, "a b"], vectors)).kept == ()

    @RELEASED
    def test_the_released_code_without_its_gate_still_deletes_by_rouge(self) -> None:
        loose = np.array([[1, 0, 0], [0.8, 0.5, 0], [0, 1, -1], [0, -1, 1]])
        given = passages([*ALIKE[:2], *UNLIKE[:2]], loose)
        assert TrustRagAblation(mode="reference", ngram=False).screen("q", given).kept_indices == (2, 3)


class TestReference:
    """The case table of the released code."""

    overlaps = np.full((4, 4), 0.9)

    def test_closed_gate_returns_everything(self) -> None:
        kept, _ = reference_filter(np.array([0, 0, 0, 1]), np.ones((4, 4)), np.full((4, 4), 0.1), 0.88, 0.25)
        assert kept == [0, 1, 2, 3]

    def test_a_singleton_beside_a_loose_group_is_dropped_although_nothing_is_dense(self) -> None:
        similarity = np.full((4, 4), 0.3)
        assert reference_filter(np.array([0, 0, 0, 1]), similarity, self.overlaps, 0.88, 0.25)[0] == [0, 1, 2]

    def test_a_singleton_like_the_dense_group_leaves_nothing(self) -> None:
        assert reference_filter(np.array([0, 0, 0, 1]), np.full((4, 4), 0.95), self.overlaps, 0.88, 0.25)[0] == []

    def test_a_singleton_unlike_the_dense_group_is_all_that_stays(self) -> None:
        similarity = np.full((4, 4), 0.95)
        similarity[3, :3] = similarity[:3, 3] = 0.2
        assert reference_filter(np.array([0, 0, 0, 1]), similarity, self.overlaps, 0.88, 0.25)[0] == [3]

    @pytest.mark.parametrize(("inside", "beside", "kept"), [
        (0.875, 0.1, [0, 1, 2]), (0.89, 0.1, [3]), (0.89, 0.875, [3]), (0.89, 0.89, []),
    ])  # fmt: skip
    def test_a_group_is_dense_above_the_threshold_and_not_at_it(
        self, inside: float, beside: float, kept: list[int]
    ) -> None:
        similarity = np.full((4, 4), inside)
        similarity[3, :3] = similarity[:3, 3] = beside
        assert reference_filter(np.array([0, 0, 0, 1]), similarity, self.overlaps, 0.875, 0.25)[0] == kept

    @pytest.mark.parametrize(("first", "second", "kept"), [
        (0.95, 0.88, [2, 3]),  # the looser one is not above the threshold
        (0.95, 0.89, []),
        (0.88, 0.3, [2, 3]),  # the denser one at the threshold goes already
        (0.87, 0.3, [0, 1, 2, 3]),
        (0.3, 0.95, [0, 1]),
    ])  # fmt: skip
    def test_of_two_groups_the_denser_goes_from_the_threshold_on(
        self, first: float, second: float, kept: list[int]
    ) -> None:
        similarity = np.full((4, 4), 0.1)
        similarity[:2, :2], similarity[2:, 2:] = first, second
        overlaps = np.full((4, 4), 0.1)
        overlaps[0, 2] = overlaps[2, 0] = 0.9  # opens the gate, between the groups
        assert reference_filter(np.array([0, 0, 1, 1]), similarity, overlaps, 0.88, 0.25)[0] == kept

    def test_overlap_counts_above_its_threshold_and_not_at_it(self) -> None:
        at, above = np.full((4, 4), 0.25), np.full((4, 4), 0.26)
        labels, similarity = np.array([0, 0, 0, 1]), np.full((4, 4), 0.95)
        assert reference_filter(labels, similarity, at, 0.88, 0.25)[0] == [0, 1, 2, 3]
        assert reference_filter(labels, similarity, above, 0.88, 0.25)[0] == []
        assert group_filter([0, 1], at, 0.25) == [0, 1]
        assert group_filter([0, 1], above, 0.25) == []

    def test_of_two_passages_cluster_0_stays(self) -> None:
        for labels, kept in (([0, 1], [0]), ([1, 0], [1])):
            assert reference_filter(np.array(labels), np.eye(2), np.full((2, 2), 0.9), 0.88, 0.25)[0] == kept

    def test_two_dense_clusters_leave_nothing(self) -> None:
        assert reference_filter(np.array([0, 0, 1, 1]), np.full((4, 4), 0.95), self.overlaps, 0.88, 0.25)[0] == []

    def test_two_loose_clusters_lose_their_near_duplicates(self) -> None:
        overlaps = np.eye(4)
        overlaps[0, 1] = overlaps[1, 0] = 0.5
        assert reference_filter(np.array([0, 0, 1, 1]), np.full((4, 4), 0.3), overlaps, 0.88, 0.25)[0] == [2, 3]


def test_the_group_filter_compares_with_the_first_removed_above_the_threshold() -> None:
    overlaps = np.eye(3)
    overlaps[0, 1] = overlaps[1, 0] = 0.5
    for shared, kept in ((0.25, [2]), (0.26, [])):
        overlaps[0, 2] = overlaps[2, 0] = shared
        assert group_filter([0, 1, 2], overlaps, 0.25) == kept


def test_the_group_filter_leaks_chains_and_removes_triangles() -> None:
    chain = np.eye(3)
    chain[0, 1] = chain[1, 0] = chain[1, 2] = chain[2, 1] = 0.5
    chain[0, 2] = chain[2, 0] = 0.1
    assert group_filter([0, 1, 2], chain, 0.25) == [2]
    triangle = np.eye(4)
    for i, j, value in ((0, 1, 0.5), (1, 2, 0.4), (0, 2, 0.6)):
        triangle[i, j] = triangle[j, i] = value
    assert group_filter([0, 1, 2, 3], triangle, 0.25) == [3]


class TestAnswer:
    given = passages([*ALIKE, *UNLIKE[:2]], WORKED)

    def tasks(self, **options: object) -> list[str]:
        generator = ScriptedGenerator(lambda prompt: f"reply to {prompt.task}")
        answer = TrustRagAblation(generator, **options).answer("where", self.given)  # type: ignore[arg-type]
        assert answer.text == f"reply to {generator.prompts[-1].task}"
        return [prompt.task for prompt in generator.prompts]

    def test_three_calls(self) -> None:
        assert self.tasks() == ["knowledge", "consolidate", "decide"]

    def test_each_part_can_be_switched_off(self) -> None:
        assert self.tasks(conflict_resolution=False) == ["knowledge", "decide"]
        assert self.tasks(internal_knowledge=False) == ["consolidate", "decide"]
        assert self.tasks(self_assessment=False) == ["knowledge", "consolidate", "decide"]
        assert self.tasks(stages=1) == ["answer"]
        assert self.tasks(clustering=False) == ["knowledge", "consolidate", "decide"]

    def test_without_clustering_all_passages_reach_the_consolidation(self) -> None:
        generator = ScriptedGenerator(lambda prompt: "text")
        TrustRagAblation(generator, clustering=False).answer("where", self.given)
        assert len(generator.prompts[1].passages) == 5

    def test_self_assessment_sees_both_sources(self) -> None:
        generator = ScriptedGenerator(lambda prompt: prompt.task)
        TrustRag(generator).answer("where", self.given)
        assert generator.prompts[2].notes == {"External information": "consolidate", "Your own knowledge": "knowledge"}

    def test_nothing_left_answers_from_memory_and_says_so(self) -> None:
        generator = ScriptedGenerator(lambda prompt: prompt.task)
        poisoned = passages([*ALIKE, ALIKE[0]], np.array([[1, 0.01, 0], [1, 0, 0.01], [1, 0.01, 0.01], [1, 0.3, -0.3]]))
        answer = TrustRag(generator).answer("where", poisoned)
        assert generator.prompts[1].passages == ()
        assert not answer.abstained

    @pytest.mark.parametrize("options", [{"stages": 1}, {"internal_knowledge": False}])
    def test_nothing_left_asks_the_model_without_context(self, options: dict[str, object]) -> None:
        """The paper's Tables 2 and 10 depend on it: with stage 1 alone at 100 % it reports an accuracy of 67."""
        generator = ScriptedGenerator(lambda prompt: prompt.task)
        poisoned = passages([*ALIKE, ALIKE[0]], np.array([[1, 0.01, 0], [1, 0, 0.01], [1, 0.01, 0.01], [1, 0.3, -0.3]]))
        answer = TrustRagAblation(generator, **options).answer("where", poisoned)  # type: ignore[arg-type]
        assert [prompt.task for prompt in generator.prompts] == ["answer-alone"]
        assert generator.prompts[0].passages == ()
        assert not answer.abstained

    def test_each_ablation_asks_something_else(self) -> None:
        def decision(**options: object) -> Prompt:
            generator = ScriptedGenerator(lambda prompt: prompt.task)
            TrustRagAblation(generator, **options).answer("where", self.given)  # type: ignore[arg-type]
            return generator.prompts[-1]

        whole, unknowing = decision(), decision(internal_knowledge=False)
        trusting, neither = decision(self_assessment=False), decision(internal_knowledge=False, self_assessment=False)
        assert len({prompt.text() for prompt in (whole, unknowing, trusting, neither)}) == 4
        assert set(unknowing.notes) == set(neither.notes) == {"External information"}
        assert set(whole.notes) == set(trusting.notes) == {"External information", "Your own knowledge"}
        assert all("judge" in prompt.system for prompt in (whole, unknowing))
        assert all("judge" not in prompt.system for prompt in (trusting, neither))

    @pytest.mark.parametrize(("finish", "message"), [("refusal", "refused"), ("length", "truncated")])
    def test_an_unfinished_consolidation_is_said(self, finish: str, message: str) -> None:
        def reply(prompt: Prompt) -> Reply:
            return Reply("text", finish=finish if prompt.task == "consolidate" else "stop")

        answer = TrustRag(ScriptedGenerator(reply)).answer("where", self.given)
        assert answer.details["unfinished"] == {"consolidation": finish}
        assert any(message in note and "consolidation" in note for note in answer.screening.evidence.notes)

    @RELEASED
    def test_the_papers_prompts_hold_no_attack_template(self) -> None:
        def seen(mode: str) -> Prompt:
            generator = ScriptedGenerator(lambda prompt: "text")
            TrustRag(generator, mode=mode).answer("where", self.given)
            return generator.prompts[1]

        assert "a certain output is then demanded" not in seen("paper").system
        assert "a certain output is then demanded" in seen("reference").system


def test_options_out_of_range_are_refused() -> None:
    for options in ({"stages": 3}, {"mode": "code"}, {"threshold": 2}, {"overlap": -0.1}):
        with pytest.raises(OptionError, match=next(iter(options))):
            TrustRag(**options)  # type: ignore[arg-type]


def test_options_have_their_range() -> None:
    assert_range(TrustRag, "stages", 1, 2)
    assert_range(TrustRag, "threshold", -1.0, 1.0)
    assert_range(TrustRag, "overlap", 0.0, 1.0)
    assert TrustRag().threshold == 0.85
