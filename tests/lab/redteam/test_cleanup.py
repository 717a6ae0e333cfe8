"""What is said to be removed was looked for and not found: systems that say yes to all."""

from __future__ import annotations

import json

import pytest

from lab.redteam.test_campaign import Scripted, tried
from unpoison.errors import TargetError
from unpoison_lab.redteam.journal import RunJournal
from unpoison_lab.redteam.targets import TargetReply


def test_a_removal_that_only_seems_so_is_found_out_with_the_rehearsal(tmp_path):
    class Nodding(Scripted):
        def remove(self, handles: list[str]) -> None:
            """Says yes, and does nothing."""

    system = Nodding()
    with pytest.raises(TargetError, match=r"could not be removed.*still reads it"):
        tried(tmp_path, system, wait={"seconds": 1})
    assert len(system.documents) == 1
    with RunJournal(tmp_path / "j.jsonl") as journal:
        assert [plant.removed for plant in journal.history.plants.values()] == [False]  # `clean` tries again


class Silent(Scripted):
    """Tells no passages."""

    def ask(self, question: str) -> TargetReply:
        return TargetReply(super().ask(question).answer)


def test_what_nobody_could_look_for_is_not_said_to_be_removed(tmp_path):
    from unpoison_lab.cli.redteam import notes_of, problems_of

    results = tried(tmp_path, Silent())
    assert (results.planted, results.removed, results.accepted) == (4, 0, 4)
    assert problems_of(results) == []
    assert any("4 documents was accepted" in note for note in notes_of(results))
    assert json.loads(results.to_json())["cleanup"]["accepted"] == 4


def test_a_second_run_of_a_journal_counts_its_own_documents(tmp_path):
    first, second = tried(tmp_path, Scripted()), tried(tmp_path, Scripted())
    assert (first.planted, first.removed) == (second.planted, second.removed) == (4, 4)
    assert second.complete


def test_what_is_still_read_after_its_removal_may_remain(tmp_path):
    class Forgetful(Scripted):
        def remove(self, handles: list[str]) -> None:
            """Removes the rehearsal only."""
            super().remove([handle for handle in handles if "harmless document" in self.documents.get(handle, "")])

    system = Forgetful()
    results = tried(tmp_path, system, questions=1, wait={"seconds": 1})
    assert (results.planted, results.removed, results.accepted) == (2, 1, 0)
    assert {canary for canary, _ in results.remaining} == system.documents.keys()
    assert not results.complete
