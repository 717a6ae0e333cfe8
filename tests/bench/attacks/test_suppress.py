import pytest

from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.clean_passages import Suppress
from unpoison.errors import InputError, OptionError

GOLD = " ".join(f"w{k}" for k in range(50))


def test_the_bait_is_the_question_and_the_first_words_of_the_gold_passage():
    (poison,) = Suppress().craft(Target("x", "where is it?", gold=(GOLD,)), 1)
    assert poison.text == f"where is it? {' '.join(GOLD.split()[:30])}"
    assert poison.reached
    assert poison.meta["answers"] == []


def test_several_baits_differ_and_take_turns_at_the_gold_passages():
    poisons = Suppress(words=2).craft(Target("x", "where", ("here",), "there", gold=(GOLD, "other gold text")), 3)
    assert [p.text for p in poisons] == ["where? w0 w1", "other gold where?", "where: w0 w1"]
    assert "there" not in " ".join(p.text for p in poisons).split()


def test_bait_needs_gold_and_words(bare):
    with pytest.raises(InputError, match="has no gold, which the attack suppress requires"):
        Suppress().craft(bare, 1)
    with pytest.raises(OptionError, match="words"):
        Suppress(words=0)
