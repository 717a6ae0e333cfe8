from unpoison.bench.attacks.base import Target, contains_answer
from unpoison.bench.attacks.swap import Swap, substitute_answers


def test_nothing_but_the_answer_is_changed(target):
    first, second = Swap().craft(target, 2)
    assert first.text == target.gold[0].replace("Paris", "Lyon")
    assert second.text == target.context[1].replace("Paris", "Lyon")
    assert first.reached
    assert first.meta["source"] == "passage"


def test_where_no_further_passage_gives_the_answer_a_template_says_so(target):
    third = Swap().craft(target, 3)[2]
    assert not third.reached
    assert third.meta["reason"] == "2 clean passages give the right answer and 3 were asked for; a template stands in"
    assert contains_answer(third.text, "Lyon")


def test_a_passage_that_still_gives_a_right_answer_is_not_used():
    target = Target("x", "q", ("US", "America"), "Lyon", gold=("The U.S. is in America.", "America it is."))
    assert [p.text for p in Swap().craft(target, 1)] == ["Lyon it is."]


def test_substitution_takes_whole_words_longest_alias_first():
    target = Target("x", "q", ("York", "New York"), "Lyon")
    assert substitute_answers("New York, Yorkshire and YORK", target) == "Lyon, Yorkshire and Lyon"
