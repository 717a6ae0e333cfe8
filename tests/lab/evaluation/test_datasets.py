import gzip
import hashlib
import json

import pytest

from unpoison.errors import InputError
from unpoison_lab.evaluation import datasets
from unpoison_lab.evaluation.datasets import load, load_passages, poisonedrag, radar_dynamic, ramdocs, robustrag
from unpoison_lab.evaluation.examples import Example, FieldError

GOOD = {"id": "a", "dataset": "toy", "question": "q?", "passages": []}


def written(path, *rows):
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_the_sample_is_whole():
    sample = load("sample")
    assert len(sample) >= 40
    assert not sample.problems
    assert {example.dataset for example in sample} == {"sample"}
    assert sample.digest.startswith("sha256:")


def test_bad_rows_are_left_out_and_listed_with_line_and_field(tmp_path):
    path = written(
        tmp_path / "toy.jsonl",
        GOOD,
        "{not json",
        "",
        {**GOOD, "id": "b", "question": None},
        "[1, 2]",
        GOOD,
        {**GOOD, "id": "c", "correct_answers": ["10"], "incorrect_answers": ["100"]},
        {**GOOD, "id": "d"},
    )
    loaded = load(path)
    assert [example.id for example in loaded] == ["a", "d"]
    assert [(p.line, p.field, p.id) for p in loaded.problems] == [
        (2, "row", None),
        (4, "question", "b"),
        (5, "row", None),
        (6, "id", "a"),
        (7, "incorrect_answers", "c"),
    ]
    assert "met before, on line 1" in str(loaded.problems[3])
    assert loaded.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("line", ["\ud83d".join('""'), "[" * 100_000, "9" * 5000, '"\\u00"'])
def test_hostile_lines_are_problems_not_crashes(tmp_path, line):
    path = tmp_path / "toy.jsonl"
    path.write_bytes(line.encode("utf-8", "surrogatepass") + b"\n" + json.dumps(GOOD).encode())
    loaded = load(path)
    assert ([e.id for e in loaded], [p.line for p in loaded.problems]) == (["a"], [1])


def test_a_source_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path / "absent.jsonl")
    with pytest.raises(InputError, match="is no JSON"):
        load(f"poisonedrag:{written(tmp_path / 'bad.json', '{')}")
    with pytest.raises(InputError, match="list or an object"):
        load(f"poisonedrag:{written(tmp_path / 'seven.json', '7')}")
    monkeypatch.setattr(datasets, "MAX_BYTES", 10)
    with pytest.raises(InputError, match="more than 10"):
        load(written(tmp_path / "long.jsonl", GOOD))


def test_poisonedrag_as_published_is_an_object_of_targets(tmp_path):
    targets = {
        "test1": {
            "id": "test1",
            "question": "capital of france",
            "correct answer": "Paris",
            "incorrect answer": "Lyon",
            "adv_texts": ["Lyon is.", "It is Lyon."],
        },
        "test2": {"question": "two", "correct answer": ["x"], "incorrect_answer": "y", "adv_texts": []},
        "test3": {"question": "three", "correct answer": "yes", "incorrect answer": "yes sir", "adv_texts": []},
    }
    loaded = load(f"poisonedrag:{written(tmp_path / 'nq.json', targets)}")
    first, second = loaded
    assert (first.id, first.dataset, first.correct_answers, first.incorrect_answers) == (
        "test1",
        "nq",
        ("Paris",),
        ("Lyon",),
    )
    assert [p.text for p in first.poisons("poisonedrag")] == ["Lyon is.", "It is Lyon."]
    assert (second.id, second.incorrect_answers) == ("test2", ("y",))
    assert [(p.line, p.id) for p in loaded.problems] == [(3, "test3")]


def test_a_corpus_is_read_by_data_set_and_its_mistakes_are_named(tmp_path):
    path = written(
        tmp_path / "corpus.jsonl", {"id": "1", "dataset": "nq", "text": "x"}, {"id": "2", "dataset": "b", "text": "y"}
    )
    assert [p.id for p in load_passages(path, "nq")] == ["1"]
    with pytest.raises(InputError, match="line 1: passage has no text"):
        load_passages(written(path, {"id": "1"}))
    with pytest.raises(InputError, match="line 1: row is unusable: no usable JSON"):
        load_passages(written(path, "{:"))


def test_a_series_with_a_broken_year_is_left_out_whole(tmp_path):
    years = {"2020": {"docs": [], "answer": "A"}, "2021": {"docs": None, "answer": "B"}}
    rows = [
        {"id": "s", "question": "q?", "yearly_contexts": years},
        {"id": "t", "question": "q?", "yearly_contexts": {}},
    ]
    years = {"2020": {"docs": [], "answer": "A"}, "2021": {"docs": [], "answer": "B", "incorrect_answer": "B"}}
    rows.append({"id": "u", "question": "q?", "yearly_contexts": years})
    loaded = load(f"radar-dynamic:{written(tmp_path / 'dynamic.json', rows)}")
    assert not loaded.examples
    assert [(p.line, p.field, p.id) for p in loaded.problems] == [(1, "docs", None), (3, "incorrect_answers", "u@2021")]


def read(rows):
    return [Example.of(row) for row in rows]


def test_robustrag_keeps_the_google_order_and_the_incorrect_context():
    row = {
        "question_id": "20231013_2",
        "question": "Which country?",
        "correct answer": ["England", "UK"],
        "incorrect answer": "Switzerland",
        "choices": ["England", "US"],
        "context": [
            {"title": "One", "text": "first", "link": "u"},
            {"title": "No text"},
            {"title": "Three", "text": "third"},
        ],
        "incorrect_context": ["Switzerland, said the report.", "The Swiss."],
    }
    (example,) = read(robustrag(row, 1, "realtimeqa"))
    assert (example.id, example.incorrect_answers) == ("20231013_2", ("Switzerland",))
    assert [(p.passage.text, p.rank, p.label) for p in example.passages[:2]] == [
        ("first", 1, "clean"),
        ("third", 3, "clean"),
    ]
    assert len(example.poisons("radar-incorrect-context")) == 2
    assert example.extra["choices"] == ["England", "US"]
    assert "context" not in example.extra


@pytest.mark.parametrize("wrong", [{"incorrect context": "one text"}, {"incorrect_context": None}, {}])
def test_robustrag_allows_its_spellings_of_poison(wrong):
    (example,) = read(robustrag({"question": "q", "correct answer": "a", "context": [], **wrong}, 3, "open_nq"))
    assert example.id == "open_nq-3"
    assert len(example.poisons()) == ("incorrect context" in wrong)


def test_a_dynamic_question_becomes_one_example_a_year_in_order():
    row = {
        "id": "head-of-state",
        "question": "Who leads?",
        "yearly_contexts": {
            "2021": {
                "docs": [{"title": "T", "snippet": " B leads ", "content": "since May"}],
                "answer": "B",
                "incorrect_answer": ["X", "Y"],
                "incorrect_context": "X leads.",
            },
            "2019": {
                "docs": [{"snippet": "A leads"}],
                "answer": ["A"],
                "incorrect_answer": "Z",
                "incorrect_context": [],
            },
        },
    }
    first, second = read(radar_dynamic(row, 1, "dynamic"))
    assert (first.id, first.extra["series"], first.extra["year"]) == ("head-of-state@2019", "head-of-state", 2019)
    assert second.passages[0].passage.text == "B leads\nsince May"
    assert (second.incorrect_answers, [p.text for p in second.poisons()]) == (("X", "Y"), ["X leads."])


def test_ramdocs_labels_its_documents():
    row = {
        "question": "Population?",
        "documents": [
            {"text": str(i), "type": kind, "answer": "1"} for i, kind in enumerate(("correct", "misinfo", "noise"))
        ],
        "gold_answers": ["3,559"],
        "wrong_answers": ["10,000"],
        "disambig_entity": ["Broken Bow"],
    }
    (example,) = read(ramdocs(row, 1, "ramdocs"))
    assert example.id == "ramdocs-0"
    assert [p.label for p in example.passages] == ["gold", "misinfo", "noise"]
    assert example.passages[0].extra["answer"] == "1"
    assert example.extra["disambig_entity"] == ["Broken Bow"]


@pytest.mark.parametrize(
    ("convert", "row", "field"),
    [
        (poisonedrag, {"question": "q", "adv_texts": [1]}, "adv_texts"),
        (robustrag, {"question": "q", "correct answer": "a"}, "context"),
        (robustrag, {"question": "q", "correct answer": "a", "context": ["text"]}, "context[0]"),
        (radar_dynamic, {"question": "q", "yearly_contexts": []}, "yearly_contexts"),
        (radar_dynamic, {"question": "q", "yearly_contexts": {"then": {}}}, "yearly_contexts"),
        (radar_dynamic, {"question": "q", "yearly_contexts": {"2019": 1}}, "yearly_contexts.2019"),
        (ramdocs, {"question": "q", "documents": [{"text": "t", "type": "good"}]}, "documents[0].type"),
    ],
)
def test_a_malformed_row_names_the_field_of_its_own_format(convert, row, field):
    with pytest.raises(FieldError) as caught:
        convert(row, 1, "toy")
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smaple", r"did you mean .*sample"),
        ("toy.json", r"did you mean .*toy\.jsonl"),
        ("other/deep.jsonl", r"give a data file, or their folder$"),
        ("nothing-like-it", r"give a data file, or their folder; sets that are built by name: built-set$"),
    ],
)
def test_a_name_that_is_none_is_answered_with_what_was_meant(tmp_path, monkeypatch, name, says):
    monkeypatch.setenv("UNPOISON_DATA", str(tmp_path / "built"))
    (tmp_path / "built").mkdir()
    written(tmp_path / "built" / "built-set.jsonl", GOOD)
    written(tmp_path / "toy.jsonl", GOOD)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        load(name)
    with pytest.raises(InputError, match="is a folder; --questions 50 makes questions from its documents"):
        load(tmp_path)


def test_documents_in_place_of_questions_are_answered_with_the_option(tmp_path):
    loaded = load(written(tmp_path / "d.jsonl", {"id": "a", "text": "a document"}, {"text": "b", "question": "q?"}))
    assert [str(p) for p in loaded.problems] == [
        "line 1: question is missing; --questions 50 makes questions from documents"
    ]
    assert [example.id for example in loaded] == ["d-2"]


def test_a_file_as_large_as_is_allowed_is_read(tmp_path, monkeypatch):
    path = written(tmp_path / "toy.jsonl", GOOD)
    monkeypatch.setattr(datasets, "MAX_BYTES", path.stat().st_size)
    assert len(load(path)) == 1
    monkeypatch.setattr(datasets, "MAX_BYTES", 500)
    packed = tmp_path / "toy.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\n".join([path.read_bytes()] * 99)))
    with pytest.raises(InputError, match=r"holds more than .* bytes; split it"):
        load(packed)


def test_passages_of_beir_have_their_id_and_all_are_taken_without_a_set(tmp_path):
    path = written(
        tmp_path / "c.jsonl", {"_id": "d1", "text": "x", "title": "T"}, {"id": "d2", "text": "y", "dataset": "b"}
    )
    assert [(p.id, p.title) for p in load_passages(path)] == [("d1", "T"), ("d2", None)]
    with pytest.raises(InputError, match="line 1: row is unusable: a row must be a JSON object"):
        load_passages(written(path, "[1]"))
