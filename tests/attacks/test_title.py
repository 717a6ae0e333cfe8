from unpoison.attacks.base import Target
from unpoison.attacks.published import Published
from unpoison.attacks.title import Title
from unpoison.evaluation import Example, planted


def test_the_title_is_the_poison_and_the_text_is_clean(target):
    made = Title(Published()).craft(target, 3)
    assert [p.title for p in made] == list(target.texts)
    assert all(p.text in target.context for p in made)
    assert len({p.text for p in made}) == 3
    assert made[0].meta["how"] == ["title"]


def test_a_title_is_one_line():
    target = Target("x", "q", texts=("one\n\ntwo  three",), context=("clean",))
    assert Title(Published()).craft(target, 1)[0].title == "one two three"


def test_the_title_moves_on_to_the_next_passage_when_wrapped_twice(target):
    (made,) = Title(Title(Published())).craft(target, 1)
    assert made.title == target.texts[0]
    assert made.text in target.context


def test_the_passage_that_is_planted_has_the_title(target):
    made = Title(Published()).craft(target, 1)
    (candidate,) = planted(Example("t1", "", target.question, (), (), ()), made)
    assert (candidate.passage.title, candidate.passage.text) == (made[0].title, made[0].text)
