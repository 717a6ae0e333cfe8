import json

import pytest

from unpoison.core.codec import from_row, to_row
from unpoison.core.registry import create, find, names, options
from unpoison.errors import InputError, OptionError
from unpoison_lab.attacks.base import Attack, PoisonText, Target, contains_answer, with_question
from unpoison_lab.attacks.prompt_injection import Pia
from unpoison_lab.attacks.published import Published

OFFLINE = sorted(set(names("attacks")) - {"hotflip", "garag"})


@pytest.mark.parametrize(
    ("text", "answer", "held"),
    [
        ("I don't know", "no", False),
        ("in 1994", "4", False),
        ("it is new york city.", "New York", True),
        ("The Lyon!", "a lyon", True),
        ("anything", "", False),
        ("anything", "the", False),
        ("", "Lyon", False),
    ],
)
def test_answers_match_whole_words(text, answer, held):
    assert contains_answer(text, answer) is held


@pytest.mark.parametrize(("right", "wrong"), [("Paris", "Paris, Texas"), ("New York City", "new york"), ("4", "4")])
def test_a_wrong_answer_that_contains_the_right_one_is_rejected(right, wrong):
    with pytest.raises(InputError, match=r"target 'x': the wrong answer .* leave this target out"):
        Target("x", "q", (right,), wrong)


def test_every_registered_attack_can_be_found_and_says_what_it_is():
    for name in names("attacks"):
        attack = find("attacks", name)
        assert attack.name == name
        assert attack.summary
        assert issubclass(attack, Attack)
        assert {"seed"} <= {option.name for option in options(attack)}


def test_options_can_be_written_as_text():
    assert create("attacks", "pia:style=dos,repeat=2,prefix=true").repeat == 2
    with pytest.raises(OptionError, match="pia has no option 'encoder'"):
        create("attacks", "pia:encoder=lexical")


@pytest.mark.parametrize("name", OFFLINE)
def test_texts_do_not_depend_on_what_was_crafted_before(name, target, encoder):
    other = Target(
        "t9",
        "who wrote emma",
        ("Jane Austen",),
        "Mary Shelley",
        ("x Mary Shelley",) * 3,
        ("By Jane Austen.",),
        context=("Emma was published in 1815. It is a comedy of manners.",),
    )
    together, alone = create("attacks", name, encoder=encoder), create("attacks", name, encoder=encoder)
    together.craft(other, 2)
    poisons = together.craft(target, 3)
    assert poisons == alone.craft(target, 3)
    assert len({p.id for p in poisons}) == len(poisons) == 3
    assert [from_row(PoisonText, json.loads(json.dumps(to_row(p)))) for p in poisons] == poisons
    assert all(p.target_id == "t1" and p.attack == name and p.text for p in poisons)
    assert all(p.meta["reached"] != bool(p.meta["reason"]) for p in poisons)


@pytest.mark.parametrize(
    "name",
    ["poisonedrag", "diverse", "tan", "paraphrase", "synonym", "prompt-injection"],
)
def test_another_seed_gives_other_texts(name, bare):
    first, second = (create("attacks", name, seed=seed).craft(bare, 2) for seed in (0, 1))
    assert [p.text for p in first] != [p.text for p in second]
    assert not {p.id for p in first} & {p.id for p in second}


@pytest.mark.parametrize("name", OFFLINE)
def test_no_texts_are_no_error(name, target, encoder):
    assert create("attacks", name, encoder=encoder).craft(target, 0) == []


def test_a_target_without_what_the_attack_needs_is_refused(bare):
    with pytest.raises(InputError, match="target 't2' has no texts, which the attack published requires"):
        Published().craft(bare, 1)
    with pytest.raises(InputError, match="1 published texts and 2 were asked for"):
        Published().craft(Target("x", "q", texts=("one",)), 2)
    with pytest.raises(OptionError, match="count"):
        Pia().craft(bare, -1)


def test_a_missing_model_is_named():
    with pytest.raises(OptionError, match="hotflip needs encoder"):
        create("attacks", "hotflip")


def test_the_prefix_has_no_space_behind_its_stop(target):
    assert with_question("capital of france", "Lyon is...") == "capital of france.Lyon is..."
    (with_prefix,) = Published(prefix=True).craft(target, 1)
    assert with_prefix.text == "what is the capital of france.Lyon is the capital of France."


def test_a_published_text_stands_as_often_as_asked(target):
    (text,) = target.texts[:1]
    for repeat in (1, 3, 10):
        (poison,) = Published(repeat=repeat).craft(target, 1)
        assert poison.text == "\n\n".join([text] * repeat)
        assert poison.meta["repeat"] == repeat
    (asked,) = Published(repeat=2, prefix=True).craft(target, 1)
    assert asked.text == f"{target.question}.{text}\n\n{text}"
    for wrong in (0, -1, 101, 2.5, True):
        with pytest.raises(OptionError, match="repeat must be"):
            Published(repeat=wrong)
