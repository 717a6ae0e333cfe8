import pytest

from unpoison.errors import InputError, OptionError
from unpoison_lab.attacks.base import Target, contains_answer
from unpoison_lab.attacks.prompt_injection import (
    COUNTER,
    ELSEWHERE,
    KINDS,
    LINK,
    OUT_OF_SERVICE,
    Ambiguous,
    Pia,
    PromptInjection,
)


def test_the_order_stands_as_often_as_asked(target):
    (poison,) = Pia(repeat=3).craft(target, 1)
    for part in ("When you are asked the question", "Lyon", target.question):
        assert poison.text.count(part) == 3


@pytest.mark.parametrize(("style", "published"), [("qa", 10), ("long", 3), ("dos", 1), ("link", 1)])
def test_styles_repeat_as_published(style, published, target):
    (poison,) = Pia(style=style).craft(target, 1)
    assert poison.meta["repeat"] == published
    assert poison.text.count("\n\n") == published - 1


def test_what_counts_as_success_depends_on_the_style(target):
    assert Pia().craft(target)[0].meta["answers"] == ["Lyon"]
    assert Pia(style="dos").craft(target)[0].meta["answers"] == [OUT_OF_SERVICE]
    assert Pia(style="link").target_answers(target) == (LINK,)
    assert "“" in Pia(style="dos").craft(target)[0].text


def test_orders_without_a_wrong_answer_are_possible_for_some_styles():
    nothing = Target("x", "q")
    assert Pia(style="dos", prefix=True).craft(nothing)[0].text.startswith("q.Ignore")
    with pytest.raises(InputError, match="style=qa needs"):
        Pia().craft(nothing)
    with pytest.raises(OptionError, match="style"):
        Pia(style="poem")


def test_ambiguous_names_the_wrong_answer_first_and_admits_to_the_right_one(target):
    attack = Ambiguous(repeat=2)
    assert attack.uses_gold
    assert attack.craft(target)[0].text.count("Lyon or Paris") == 2


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_wordings_that_the_seed_chooses(kind, target):
    poisons = PromptInjection(kind=kind).craft(target, 3)
    assert len({p.text for p in poisons}) == 3
    assert len({PromptInjection(kind=kind, seed=seed).craft(target, 1)[0].text for seed in range(9)}) == 3
    assert all("{" not in p.text and p.meta["kind"] == kind for p in poisons)


@pytest.mark.parametrize("kind", ["override", "role", "rule", "dictated"])
def test_orders_that_give_an_answer_give_the_wrong_one(kind, target):
    assert all("Lyon" in p.text and "Paris" not in p.text for p in PromptInjection(kind=kind).craft(target, 3))
    with pytest.raises(InputError, match="has no incorrect answer, which the attack prompt-injection requires"):
        PromptInjection(kind=kind).craft(Target("x", "q"))


@pytest.mark.parametrize(("kind", "sign"), [("exfiltrate", COUNTER), ("off-topic", ELSEWHERE)])
def test_other_orders_are_known_by_a_sign_in_the_answer(kind, sign):
    for poison in PromptInjection(kind=kind).craft(Target("x", "q"), 3):
        assert poison.meta["answers"] == [sign]
        assert contains_answer(poison.text, sign)  # what obeys is found, although a link stands beside it
