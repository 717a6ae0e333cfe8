from __future__ import annotations

import json
from importlib.resources import files

import pytest

from unpoison.bench.arena.cases import Family, clean_cases, published_cases, question_ids, twins
from unpoison.bench.arena.tasks import CLEAN, CRAFTED, PUBLISHED, VERSION, tasks_of
from unpoison.errors import InputError


def test_the_questions_of_every_task_are_fixed() -> None:
    shipped = json.loads((files("unpoison.data") / "arena.json").read_text(encoding="utf-8"))
    assert shipped["version"] == VERSION
    asked = {f"clean, {name}" for name in CLEAN} | {*PUBLISHED, "crafted", "twins", "answers", "at-rest"}
    assert set(shipped["tasks"]) == asked
    for task, by_file in shipped["tasks"].items():
        for name, ids in by_file.items():
            assert len(set(ids)) == len(ids) > 0, (task, name)
    assert len({task.key for task in tasks_of("screening")}) == len(CLEAN) + len(PUBLISHED) + 2 + len(CRAFTED)


def test_questions_come_from_all_files_in_turn(folder) -> None:
    assert question_ids("poisonedrag", 4) == [
        ("nq_poisoned", "q1"),
        ("hotpotqa_poisoned", "q1"),
        ("msmarco_poisoned", "q1"),
        ("nq_poisoned", "q2"),
    ]


def test_nothing_is_planted_in_clean_cases(data) -> None:
    (case,) = clean_cases(data, "clean, msmarco", 1)
    assert case.planted == ()
    assert all("source" not in passage.text for passage in case.passages)


@pytest.mark.parametrize("texts", [1, 5])
def test_poison_takes_places_and_the_set_keeps_its_size(data, texts) -> None:
    (case,) = published_cases(data, "poisonedrag", PUBLISHED["poisonedrag"], 1, texts)
    assert case.planted == tuple(range(3, 3 + texts))
    assert len(case.passages) == 10
    for i, passage in enumerate(case.passages):
        assert passage.text.startswith("who wrote emma.It is Mary Shelley") == (i in case.planted)


def test_only_the_family_s_texts_are_planted(data) -> None:
    (case,) = published_cases(data, "tan", Family(("nq_poisoned",), "tan"), 1, 1)
    assert case.passages[3].text == "It is Mary Shelley, says source 0 of tan."


def test_a_file_of_several_data_sets_is_filled_from_the_corpus_of_each_question(data, folder) -> None:
    path = folder / "test_only_hotflip.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row, dataset in zip(rows, ("nq", "msmarco")):
        row["dataset"] = dataset
        row["passages"] = [passage for passage in row["passages"] if passage["label"] == "poison"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    texts = (folder / "corpus.jsonl").read_text().splitlines()
    corpus = [{**json.loads(line), "text": f"A page of {json.loads(line)['dataset']}."} for line in texts]
    (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in corpus))
    cases = published_cases(data, "hotflip", PUBLISHED["hotflip"], 2, 1)
    assert [case.passages[0].text for case in cases] == ["A page of nq.", "A page of msmarco."]


def test_what_may_only_be_tested_on_counts_as_published() -> None:
    tasks = {task.name: task for task in tasks_of("screening")}
    for name, family in PUBLISHED.items():
        if family.files[0].startswith("test_only_"):
            assert tasks[name].files == (*family.files, "corpus") and tasks[name].origin == "published"


def test_twins_differ_in_the_answer_alone(data) -> None:
    (lie,), (truth,) = (list(twins(data, "twins", 1, told)) for told in ("lie", "truth"))
    assert lie.passages[3].text.replace("Mary Shelley", "Jane Austen") == truth.passages[3].text
    assert "Jane Austen wrote emma" in truth.passages[3].text


def test_another_file_under_the_name_is_refused(data, folder) -> None:
    other = folder / "ramdocs.jsonl"
    other.write_text(other.read_text().replace('"id": "q1"', '"id": "other"'))
    with pytest.raises(InputError, match=r"ramdocs has no question 'q1'.*unpoison data get ramdocs"):
        list(clean_cases(data, "clean, ambiguous", 1))
