import pytest

from ranges import assert_range
from unpoison.errors import OptionError
from unpoison.models.doubles import ScriptedGenerator
from unpoison_lab.attacks.base import Target
from unpoison_lab.attacks.claims import statement
from unpoison_lab.attacks.poisonedrag import PoisonedRag

CAPITAL = Target("c", "capital of france", ("Paris",), "Lyon")


def test_the_worked_example():
    generator = ScriptedGenerator(["I one", "Paris", '"Lyon is..."', "Lyon."])
    (poison,) = PoisonedRag(generator=generator).craft(CAPITAL, 1)
    assert poison.text == "capital of france.Lyon is..."
    assert poison.meta["trials"] == 2
    assert poison.budget.llm_calls == 4
    assert poison.reached
    assert poison.meta["verified"]


def test_the_last_text_stands_when_all_trials_fail_and_says_so():
    generator = ScriptedGenerator({"Variant 1,": "first", "Variant 2,": "second", "passage 1": "Paris"})
    (poison,) = PoisonedRag(generator=generator, trials=2).craft(CAPITAL, 1)
    assert poison.text.endswith(".second")
    assert not poison.reached
    assert poison.meta["reason"] == "the trial answer was 'Paris', not 'Lyon'"
    assert poison.budget.llm_calls == 4


def test_templates_need_no_model_and_differ(bare):
    poisons = PoisonedRag().craft(bare, 30)
    assert len({p.text for p in poisons}) == 30
    assert all(p.reached and p.text.startswith("who wrote emma.") for p in poisons)
    assert {p.meta["source"] for p in poisons} == {"template"}
    assert {p.meta["trials"] for p in poisons} == {1}
    assert "Jane Austen" not in " ".join(p.text for p in poisons)


def test_the_extractive_reader_tries_templates_but_writes_nothing(bare):
    attack = PoisonedRag(generator="extractive", trials=5)
    assert attack.mode == "template"
    (poison,) = attack.craft(bare, 1)
    assert poison.meta["verified"]
    assert poison.budget.llm_calls == poison.meta["trials"]
    with pytest.raises(OptionError, match="needs a generator that writes"):
        PoisonedRag(mode="verified", generator="extractive")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("who wrote emma", "R wrote emma"),
        ("What is the capital of France?", "The capital of France is R"),
        ("who is singing", 'The answer to the question "who is singing" is R'),
        ("when was it", 'The answer to the question "when was it" is R'),
    ],
)
def test_questions_become_statements(question, expected):
    assert statement(question, "R") == expected


def test_its_options_have_ranges_and_the_defaults_of_the_paper():
    for name in ("words", "trials"):
        assert_range(PoisonedRag, name, 1)
    attack = PoisonedRag()
    assert (attack.words, attack.trials, attack.prefix) == (30, 50, True)
