import pytest

from unpoison_lab.evaluation.datasets import poisonedrag, radar_dynamic, ramdocs, robustrag
from unpoison_lab.evaluation.examples import Example, FieldError


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
