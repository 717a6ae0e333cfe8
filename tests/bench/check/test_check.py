"""A whole check of a few documents, its parts, and what it does with bad input."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.check.corpus import write_documents
from unpoison.algorithms.intervals import wilson
from unpoison.bench.check import Check, CheckResult
from unpoison.bench.check import check as check_module
from unpoison.bench.check.planting import ATTACKS, OWNERS
from unpoison.errors import InputError
from unpoison.scan.documents import Document
from unpoison.sources.sources import Sources
from unpoison.types import Passage


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_documents(tmp_path_factory.mktemp("check") / "docs")


@pytest.fixture(scope="module")
def result(folder: Path) -> CheckResult:
    check = Check.read(str(folder), reader=False, questions=4)
    check.run()
    return check.result()


def test_every_attack_of_every_owner_is_measured(result: CheckResult) -> None:
    measured = [(outcome.attack, outcome.owner) for outcome in result.outcomes]
    assert measured == [(attack, owner) for attack in ATTACKS for owner in OWNERS]
    assert result.complete
    assert result.questions == 4
    assert all(outcome.guard.count for outcome in result.outcomes)
    assert result.documents == 4


def test_who_is_new_is_told_from_who_is_known(result: CheckResult) -> None:
    """A swapped copy loses against the original where its source is new, and is believed where it is one's own."""
    swaps = {outcome.owner: outcome for outcome in result.outcomes if outcome.attack == "swap"}
    assert swaps["one"].plain.hits == swaps["own"].plain.hits == 4
    assert swaps["one"].guard.hits == 0
    assert swaps["own"].guard.hits >= 3


def test_the_headline_is_the_worst_case_with_its_counts(result: CheckResult) -> None:
    worst = max(outcome.guard.value for outcome in result.outcomes)
    assert result.worst is not None
    assert result.worst.guard.value == worst
    assert f"{result.worst.guard.hits} of 4 questions" in result.headline
    assert result.worst.words in result.headline
    assert result.worst_outside is not None
    assert result.worst_outside.owner != "own"


def test_the_policy_knows_the_folder_and_nobody_else(result: CheckResult, folder: Path) -> None:
    sources = Sources(yaml.safe_load(result.policy))
    asked = [Passage("x", source=str(folder / "hr/leave.md")), Passage("x", source="https://new.example/1")]
    assert [standing.level for standing in sources.standings("", asked)] == ["known", "fresh"]


def test_a_folder_is_known_as_it_was_typed_and_in_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    sources = Sources(Check.read("docs/", reader=False).policy_keys)
    asked = [Passage("x", source=source) for source in ("docs/hr/leave.md", str(folder / "hr/leave.md"))]
    assert {standing.level for standing in sources.standings("", asked)} == {"known"}


def test_what_remains_open_is_said(result: CheckResult) -> None:
    said = " ".join(result.open)
    assert "Only 4 questions" in said
    assert "write into your own sources" in said
    assert "unpoison[reader]" in said


@pytest.mark.parametrize(("hits", "named"), [(250, True), (9, False)])
def test_that_the_recommendation_drops_ones_own_texts_comes_first(result: CheckResult, hits: int, named: bool) -> None:
    said = replace(result, clean_lost=wilson(hits, 250)).open[0]
    assert said.startswith("The recommendation drops your own texts") == named
    assert ("unpoison screen --calibrate" in said) == named


class Stop(KeyboardInterrupt):
    pass


def test_interrupted_it_goes_on_and_comes_to_the_same(
    folder: Path, result: CheckResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(done: int, total: int, step: str) -> None:
        if step == "injection, one":
            raise Stop

    first = Check.read(str(folder), reader=False, questions=4, state=tmp_path)
    with pytest.raises(Stop):
        first.run(stop)
    partial = first.result()
    assert not partial.complete
    assert "interrupted" in partial.open[0]
    assert partial.outcomes == result.outcomes[: len(partial.outcomes)]
    assert partial.outcomes[-1].attack == "correction"

    steps: list[str] = []
    monkeypatch.setattr(check_module, "scan", None)  # not again
    second = Check.read(str(folder), reader=False, questions=4, state=tmp_path)
    assert second.resumed
    second.run(lambda done, total, step: steps.append(step))
    assert "injection, one" in steps
    assert not {"clean", "lie, one", "correction, own"} & set(steps)
    assert second.result().to_dict() == result.to_dict()


def test_other_documents_are_measured_anew(folder: Path, tmp_path: Path) -> None:
    def one(text: str) -> Check:
        return Check("docs", [Document(Passage(text, id="a"))], state=tmp_path)

    one("Backups are kept for 90 days.")._keep("scan", {"flagged": [], "worst": []})
    assert one("Backups are kept for 90 days.").resumed
    assert not one("Backups are kept for 30 days.").resumed
    assert not (tmp_path / "check.jsonl").exists()


def test_progress_grows_up_to_the_end(folder: Path) -> None:
    check = Check.read(str(folder), reader=False, questions=1)
    seen: list[tuple[int, int]] = []
    check.run(lambda done, total, step: seen.append((done, total)))
    assert seen == sorted(seen)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]


def test_what_the_scan_flagged_is_neither_asked_about_nor_believed() -> None:
    texts = ["Backups are kept for 90 days.", "Mail is kept for 45 days."]
    documents = [
        Document(Passage(texts[i // 2], id=f"{i}", source=f"https://{'ab'[i // 2]}.example/{i}")) for i in range(4)
    ]
    check = Check("rows", documents)
    check._keep("scan", {"flagged": ["2", "3"], "worst": []})
    assert check.policy_keys["known"] == ["a.example"]
    assert {one.passage.source for example in check.examples for one in example.passages} == {"https://a.example/0"}


def test_documents_of_which_nothing_can_be_asked_are_scanned_all_the_same(tmp_path: Path) -> None:
    check = Check.read(str(write_documents(tmp_path, {"a.md": "hm.\n", "b.md": "well, well.\n"})), reader=False)
    check.run()
    result = check.result()
    assert (result.complete, result.questions, result.outcomes, result.flagged) == (True, 0, (), 0)
    assert result.headline == "No attack was measured."
    assert any("No question could be made" in point for point in result.open)
    assert "known" in result.policy


def test_one_document_is_enough(tmp_path: Path) -> None:
    check = Check.read(
        str(write_documents(tmp_path, {"a.md": "# Backups\n\nBackups are kept for 90 days.\n"})),
        reader=False,
        questions=1,
    )
    check.run()
    result = check.result()
    assert result.complete
    assert result.questions == 1
    assert any("Only 1 question was made" in point for point in result.open)


@pytest.mark.parametrize(
    ("names", "words"),
    [([], "holds no documents"), (["a.png", "b.png"], "holds nothing that can be read: a.png")],
)
def test_a_folder_without_documents_is_one_sentence(tmp_path: Path, names: list[str], words: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"\x89PNG\r\n")
    with pytest.raises(InputError, match=words) as caught:
        Check.read(str(tmp_path), reader=False)
    assert "\n" not in str(caught.value)


def test_the_reader_answers_with_and_without_the_defense(folder: Path) -> None:
    """With a reader that repeats what it reads first, and one measure more."""
    from unpoison.models import ExtractiveReader

    read = Check.read(str(folder), reader=False, questions=1)
    check = Check("docs", read.documents, questions=1, reader=ExtractiveReader())
    check._keep("scan", {"flagged": [], "worst": []})
    check.run()
    outcomes = check.result().outcomes
    answered: Counter[str] = Counter()
    for outcome in outcomes:
        assert outcome.wrong_plain is not None
        assert outcome.wrong_guard is not None
        answered["plain"] += outcome.wrong_plain.hits
        answered["guard"] += outcome.wrong_guard.hits
    assert answered["plain"] > answered["guard"]


def test_the_row_of_a_result_is_json(result: CheckResult) -> None:
    import json

    row: dict[str, Any] = json.loads(json.dumps(result.to_dict()))
    assert row["headline"] == result.headline
    assert row["outcomes"][0]["guard"]["count"] == 4
    assert "cases" not in row["outcomes"][0]
    assert row["origins"][0]["share"] == 0.5
