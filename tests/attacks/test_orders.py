import pytest

from unpoison.attacks.ambiguous import Ambiguous
from unpoison.attacks.base import Target
from unpoison.attacks.conditional import Conditional
from unpoison.attacks.pia import LINK, OUT_OF_SERVICE, Pia
from unpoison.errors import InputError, OptionError


def test_the_order_stands_as_often_as_asked(target):
    (made,) = Pia(repeat=3).craft(target, 1)
    for part in ("When you are asked the question", "Lyon", target.question):
        assert made.text.count(part) == 3


@pytest.mark.parametrize(("style", "published"), [("qa", 10), ("long", 3), ("dos", 1), ("link", 1)])
def test_styles_repeat_as_published(style, published, target):
    (made,) = Pia(style=style).craft(target, 1)
    assert made.meta["repeat"] == published
    assert made.text.count("\n\n") == published - 1


def test_what_counts_as_success_depends_on_the_style(target):
    assert Pia().craft(target)[0].meta["answers"] == ["Lyon"]
    assert Pia(style="dos").craft(target)[0].meta["answers"] == [OUT_OF_SERVICE]
    assert Pia(style="link").wanted(target) == (LINK,)
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


def test_conditional_needs_numbered_passages(target):
    attack = Conditional()
    text = attack.craft(target)[0].text
    assert text.index("Paris") < text.index("Lyon")
    assert attack.passage_format.format(number=1, text="x") == "Document 1: x"
