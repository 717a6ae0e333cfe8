import pytest

from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.corruptrag import FORMS, CorruptRag
from unpoison.models.doubles import ScriptedGenerator

CAPITAL = Target("c", "capital of france", ("Paris",), "Lyon")


@pytest.mark.parametrize("form", FORMS)
def test_the_text_calls_the_right_answer_outdated_and_the_wrong_one_current(form):
    poisons = CorruptRag(form=form).craft(CAPITAL, len(FORMS[form]))
    assert len({p.text for p in poisons}) == len(poisons)
    for poison in poisons:
        assert poison.text.startswith("capital of france.")
        assert "Paris" in poison.text
        assert "Lyon" in poison.text
        assert poison.reached
        assert poison.meta["source"] == "template"


def test_as_asks_no_model_and_ak_rewrites_until_the_trial_is_lost():
    script = {"passage 1": "Lyon", "Variant 1,": "Lyon, since the revision."}
    generator = ScriptedGenerator(script)
    (plain,) = CorruptRag(generator=generator).craft(CAPITAL, 1)
    assert not generator.prompts
    (poison,) = CorruptRag(form="ak", generator=generator).craft(CAPITAL, 1)
    assert poison.text == "capital of france.Lyon, since the revision."
    assert poison.meta["source"] == "generator"
    assert poison.budget.llm_calls == 2
    assert plain.budget.llm_calls == 0


def test_ak_is_rewritten_from_a_note_that_says_outdated():
    generator = ScriptedGenerator({"passage 1": "Paris", "Variant": "x"})
    (poison,) = CorruptRag(form="ak", trials=2, generator=generator).craft(CAPITAL, 1)
    notes = [prompt.notes["Note"] for prompt in generator.prompts if "Note" in prompt.notes]
    assert len(set(notes)) == 2
    assert all("Paris" in note and "Lyon" in note for note in notes)
    assert not poison.reached
    assert poison.meta["trials"] == 2
