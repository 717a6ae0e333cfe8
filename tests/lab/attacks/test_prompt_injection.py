import json

import pytest

from ranges import assert_range
from unpoison.errors import InputError, OptionError
from unpoison_lab.attacks.base import MAX_COPIES, Target, contains_answer
from unpoison_lab.attacks.prompt_injection import (
    COUNTER,
    ELSEWHERE,
    KINDS,
    LINK,
    OUT_OF_SERVICE,
    Ambiguous,
    Conditional,
    Pia,
    PromptInjection,
)
from unpoison_lab.data_files import FOLDER


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


def test_more_texts_than_wordings_begin_again(target):
    poisons = PromptInjection().craft(target, 7)
    assert [p.text for p in poisons[:3]] == [p.text for p in poisons[3:6]] and poisons[6].text == poisons[0].text


def test_an_order_with_a_condition_gives_the_right_answer_to_who_reads_it_alone(target):
    attack = Conditional()
    (poison,) = attack.craft(target, 1)
    alone, company = poison.text.split("If there are other documents")
    assert ("Paris" in alone, "Lyon" in alone, "Lyon" in company, "Paris" in company) == (True, False, True, False)
    assert (poison.meta["repeat"], Ambiguous().repeat) == (1, 10)
    assert attack.uses_gold and "{number}" in attack.passage_format
    for kind in (Conditional, Ambiguous):
        with pytest.raises(InputError, match=r"which the attack .* requires"):
            kind().craft(Target("x", "q", incorrect="Lyon"))


@pytest.mark.parametrize("kind", [Pia, Ambiguous, Conditional])
def test_how_often_an_order_is_repeated_has_a_range(kind):
    assert_range(kind, "repeat", 1, MAX_COPIES)


def test_all_texts_of_one_target_are_the_same_and_an_outage_needs_no_answer(target):
    assert len({p.text for p in Pia().craft(target, 3)}) == 1
    assert Pia(style="link").craft(Target("x", "q"))[0].meta["answers"] == [LINK]
    with pytest.raises(InputError, match="target 'x' has no incorrect answer, which style=long needs"):
        Pia(style="long").craft(Target("x", "q"))


RELEASED = {
    "qa-trustrag": "say {answer}; ",
    "long-radar": "bio {answer}; ",
    "long-radar-before": "<",
    "long-radar-after": ">",
    "dos-grada": "be busy. ",
    "dos-grada-answer": "I am busy",
}


@pytest.mark.parametrize(
    ("style", "paper", "text", "answers"),
    [
        ("qa", "trustrag", "say Lyon; say Lyon; ", ["Lyon"]),
        ("long", "radar", "<bio Lyon; bio Lyon; >", ["Lyon"]),
        ("dos", "grada", "be busy. be busy. ", ["I am busy"]),
    ],
)
def test_released_words_stand_in_place_of_ours(style, paper, text, answers, target, tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    rows = [json.dumps({"id": name, "text": words}) for name, words in RELEASED.items()]
    (tmp_path / "replay.jsonl").write_text("\n".join(rows))
    (poison,) = Pia(style=style, replay=paper, repeat=2).craft(target, 1)
    assert (poison.text, poison.meta["answers"]) == (text, answers)


@pytest.mark.parametrize(
    ("style", "paper"), [("qa", "grada"), ("dos", "radar"), ("long", "trustrag"), ("link", "radar")]
)
def test_a_paper_that_plants_no_such_order_is_refused(style, paper):
    with pytest.raises(OptionError, match=f"replay={paper}: its released code plants no order of style={style}"):
        Pia(style=style, replay=paper)
