import pytest

from unpoison_lab.evaluation.examples import Example, FieldError, Loaded, Problem

ROW = {
    "id": "q-1",
    "dataset": "toy",
    "question": "capital of france",
    "correct_answers": ["Paris"],
    "incorrect_answers": ["Lyon", "Nice"],
    "kind": "single-hop",
    "passages": [
        {"text": "Paris is the capital.", "label": "gold", "title": "Paris", "rerank": 2},
        {"id": "mine", "text": "France is large.", "label": "clean", "rank": 1, "score": 3},
        {"text": "Lyon is the capital.", "label": "poison", "attack": "poisonedrag"},
        {"text": "Nice is the capital.", "label": "poison", "attack": "tan"},
    ],
}


def changed(**fields):
    return {**ROW, **fields}


def with_passage(**fields):
    return {**ROW, "passages": [{"text": "Paris", "label": "clean", **fields}]}


def test_a_row_is_read_whole():
    example = Example.of(ROW)
    assert (example.id, example.correct_answers, example.extra["kind"]) == ("q-1", ("Paris",), "single-hop")
    assert [labelled.passage.id for labelled in example.passages] == ["q-1#0", "mine", "q-1#2", "q-1#3"]
    first, second = example.passages[:2]
    assert (first.label, first.passage.title, first.rank, first.extra["rerank"]) == ("gold", "Paris", None, 2)
    assert (second.rank, second.passage.score) == (1, 3.0)
    assert example.attacks == ("poisonedrag", "tan")
    assert [p.text for p in example.poisons("tan")] == ["Nice is the capital."]
    assert len(example.poisons()) == 2
    assert [labelled.label for labelled in example.passages_by_label("clean", "gold")] == ["gold", "clean"]


def test_the_attacker_is_told_the_first_wrong_answer_and_the_texts_of_one_attack():
    target = Example.of(ROW).target("poisonedrag")
    assert (target.incorrect, target.alternatives) == ("Lyon", ("Nice",))
    assert target.texts == ("Lyon is the capital.",)
    assert target.gold == ("Paris is the capital.",)
    assert len(target.context) == 2
    assert Example.of(changed(incorrect_answers=[])).target().incorrect == ""


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ([], "row"),
        (changed(id=True), "id"),
        (changed(question=" "), "question"),
        (changed(question=7), "question"),
        (changed(correct_answers={"text": "Paris"}, answer=True), "answer"),
        (changed(incorrect_answers=[True]), "incorrect_answers"),
        (changed(passages={}), "passages"),
        (changed(passages=[7]), "passages[0]"),
        (with_passage(label="bad"), "passages[0].label"),
        (with_passage(label=["clean"]), "passages[0].label"),
        (with_passage(attack=3), "passages[0].attack"),
        (with_passage(rank=0), "passages[0].rank"),
        (with_passage(rank=True), "passages[0].rank"),
        (with_passage(text=None), "passages[0].text"),
        (with_passage(title=3), "passages[0]"),
        (with_passage(score="high"), "passages[0]"),
        (changed(passages=[ROW["passages"][1]] * 2), "passages[1].id"),
        (changed(incorrect_answers=["Rome", "the Paris"]), "incorrect_answers"),
        (changed(correct_answers=["males"], incorrect_answers=["females"]), "incorrect_answers"),
    ],
)
def test_a_malformed_row_names_its_field(row, field):
    with pytest.raises(FieldError) as caught:
        Example.of(row)
    assert caught.value.field == field
    assert str(caught.value).startswith(field)


def test_what_people_have_is_enough():
    bare = Example.of(
        {"query": "Where?", "answer": "Paris", "incorrect_answer": 7, "passages": ["a text", {"content": "b"}]}
    )
    assert (bare.question, bare.correct_answers, bare.incorrect_answers) == ("Where?", ("Paris",), ("7",))
    assert [(p.passage.text, p.label, p.attack) for p in bare.passages] == [
        ("a text", "clean", None),
        ("b", "clean", None),
    ]
    assert bare.id == Example.of({"question": "Where?"}).id != Example.of({"question": "When?"}).id
    assert Example.of({"question": "Where?", "id": None, "dataset": None}, default_id="faq-3").id == "faq-3"


def test_the_answer_that_an_earlier_ask_wrote_is_no_right_answer():
    assert Example.of({"question": "Where?", "answer": {"text": "Lyon", "calls": []}}).correct_answers == ()


def test_the_first_field_that_is_there_has_the_answers_each_once():
    row = {"question": "q", "correct_answers": None, "answers": ["a", "a", " ", 3, 2.5], "answer": "b"}
    assert Example.of(row).correct_answers == ("a", "3", "2.5")
    assert Example.of({"question": None, "query": "second"}).question == "second"
    assert Example.of({"question": "q", "passages": None}).passages == ()


def test_an_id_is_a_text_or_a_number_and_a_passage_without_one_has_its_place():
    assert Example.of({"question": "q", "id": 7}).id == "7"
    bare = Example.of({"question": "q", "passages": ["a", {"text": "b", "id": "x"}, "c"]})
    assert [p.passage.id for p in bare.passages] == [f"{bare.id}#0", "x", f"{bare.id}#2"]
    assert bare.id.startswith("q-") and len(bare.id) == 14
    assert Example.of(with_passage(rank=1)).passages[0].rank == 1


def test_a_row_that_is_left_out_names_its_line_and_its_id():
    assert str(Problem(3, "id", "id is odd")) == "line 3: id is odd"
    assert str(Problem(3, "id", "id is odd", "a")) == "line 3 ('a'): id is odd"
    loaded = Loaded("x", (Example.of(ROW),), (), "sha256:")
    assert (len(loaded), [example.id for example in loaded]) == (1, ["q-1"])


def test_clean_poison_and_gold_are_told_apart_for_the_attacker():
    target = Example.of(ROW).target()
    assert target.texts == ("Lyon is the capital.", "Nice is the capital.")
    assert target.context == ("Paris is the capital.", "France is large.")
    assert (target.id, target.question, target.correct) == ("q-1", "capital of france", ("Paris",))
