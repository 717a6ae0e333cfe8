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
    with pytest.raises(OptionError, match="mode must be"):
        PoisonedRag(mode="other")
    attack = PoisonedRag()
    assert (attack.words, attack.trials, attack.prefix) == (30, 50, True)


def test_every_trial_asks_for_another_variant_and_only_of_what_failed():
    asked = []

    def reply(prompt):
        text = str(prompt.messages())
        if "Variant" not in text:
            return "Lyon" if "variant 1" in text else "Paris"
        asked.append(next(number for number in range(1, 9) if f"Variant {number}," in text))
        assert "17 words" in text
        return f"variant {asked[-1]}"

    first, second = PoisonedRag(generator=ScriptedGenerator(reply), trials=3, words=17).craft(CAPITAL, 2)
    assert sorted(asked) == [1, 2, 4, 6]
    assert (first.meta["trials"], second.meta["trials"]) == (1, 3)
    assert (first.meta["source"], first.meta["verified"], second.reached) == ("generator", True, False)
    assert (first.budget.llm_calls, second.budget.llm_calls) == (2, 6)


def test_templates_are_tried_one_after_the_other(bare):
    texts = []

    class Stubborn(ScriptedGenerator):
        writes = False

    def reply(prompt):
        texts.append(prompt.passages[0])
        return "no"

    poisons = PoisonedRag(mode="template", generator=Stubborn(reply), trials=3).craft(bare, 2)
    assert len(set(texts)) == 6 and {p.meta["trials"] for p in poisons} == {3}
    assert [p.text for p in poisons] == [f"who wrote emma.{text}" for text in sorted(texts[-2:], key=texts.index)]


def test_without_a_model_nothing_is_verified_and_the_question_may_be_left_out(bare):
    (poison,) = PoisonedRag(prefix=False).craft(bare, 1)
    assert (poison.meta["verified"], poison.meta["source"], poison.budget.llm_calls) == (False, "template", 0)
    assert not poison.text.startswith("who wrote emma")
