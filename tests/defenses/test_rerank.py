"""Rerankers as defenses, and as the similarity inside GRADA."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_doubles import FakeCrossEncoder
from ranges import assert_range
from unpoison import Grada
from unpoison.core import registry
from unpoison.defenses.rerank import Rerank
from unpoison.errors import ModelError
from unpoison.models import ScriptedGenerator

TEXTS = ["a", "b", "c", "d"]
SCORES = FakeCrossEncoder(lambda query, text: dict(zip(TEXTS, [0.1, 2.0, -1, 0.5])).get(text, 0.0))


def test_the_worked_example() -> None:
    screening = Rerank(keep=2, cross_encoder=SCORES).screen("q", TEXTS)
    assert screening.kept_indices == (1, 3)
    assert str(screening.verdicts[0].reason) == "place 3 of 4, past the 2 kept: relevance 0.1000"


def test_up_to_keep_it_only_reorders() -> None:
    assert Rerank(cross_encoder=SCORES).screen("q", TEXTS).kept_indices == (1, 3, 0, 2)


def test_equal_scores_keep_retrieval_order() -> None:
    assert Rerank(keep=3, cross_encoder=FakeCrossEncoder()).screen("q", TEXTS).kept_indices == (0, 1, 2)


def test_one_call_answers_from_the_best() -> None:
    generator = ScriptedGenerator("x")
    answer = Rerank(keep=2, cross_encoder=SCORES, generator=generator).answer("q", TEXTS)
    assert generator.prompts[0].passages == ("b", "d")
    assert [call.kind for call in answer.calls] == ["compare", "generate"]


def test_titles_are_scored_with_the_text() -> None:
    scorer = FakeCrossEncoder()
    Rerank(cross_encoder=scorer).screen("q", [{"title": "T", "text": "x"}])
    assert scorer.calls == [(("q", "T\nx"),)]


@pytest.mark.needs("torch")
def test_any_checkpoint_by_its_folder(tmp_path: Path) -> None:
    from checkpoints import save_classifier

    folder = save_classifier(tmp_path / "reranker", ["relevance"])
    given = ["paris is the capital", "a river", "lyon"]
    by_option = registry.create("defenses", f"rerank:model={folder},keep=2").screen("paris", given)
    by_string = Rerank(keep=2, cross_encoder=f"cross:{folder}").screen("paris", given)
    assert by_option.kept_indices == by_string.kept_indices
    with pytest.raises(ModelError, match="cannot load"):
        Rerank(str(tmp_path / "absent"))


@pytest.mark.needs("torch")
def test_it_serves_as_similarity_inside_grada(tmp_path: Path) -> None:
    from checkpoints import save_classifier

    folder = save_classifier(tmp_path / "reranker", ["relevance"])
    given = ["paris is the capital", "a river", "lyon", "the old tower", "paris is in france", "a city"]
    screening = Grada(similarity="cross-encoder", cross_encoder=f"cross:{folder}", keep=3).screen("paris", given)
    assert len(screening.kept) == 3
    assert screening.evidence["similarity"].any()


def test_options_have_their_range() -> None:
    assert_range(Rerank, "keep", 1, cross_encoder=FakeCrossEncoder({}))


def test_every_passage_has_its_place_and_its_relevance() -> None:
    screening = Rerank(keep=2, cross_encoder=SCORES).screen("q", TEXTS)
    assert [v.score for v in screening.verdicts] == [0.1, 2.0, -1, 0.5]
    assert screening.evidence["relevance"].tolist() == [0.1, 2.0, -1, 0.5]
    assert [str(v.reason).partition(":")[0] for v in screening.verdicts] == [
        "place 3 of 4, past the 2 kept", "place 1 of 4", "place 4 of 4, past the 2 kept", "place 2 of 4"
    ]  # fmt: skip
    assert Rerank(cross_encoder=SCORES).keep == 5 and Rerank(cross_encoder=SCORES).screen("q", []).kept == ()
