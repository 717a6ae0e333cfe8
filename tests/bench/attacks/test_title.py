from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.published import Published
from unpoison.bench.attacks.wrapper import Title
from unpoison.bench.evaluation import Example, poison_candidates


def test_the_title_is_the_poison_and_the_text_is_clean(target):
    poisons = Title(Published()).craft(target, 3)
    assert [p.title for p in poisons] == list(target.texts)
    assert all(p.text in target.context for p in poisons)
    assert len({p.text for p in poisons}) == 3
    assert poisons[0].meta["how"] == ["title"]


def test_a_title_is_one_line():
    target = Target("x", "q", texts=("one\n\ntwo  three",), context=("clean",))
    assert Title(Published()).craft(target, 1)[0].title == "one two three"


def test_the_title_moves_on_to_the_next_passage_when_wrapped_twice(target):
    (poison,) = Title(Title(Published())).craft(target, 1)
    assert poison.title == target.texts[0]
    assert poison.text in target.context


def test_the_passage_that_is_planted_has_the_title(target):
    poisons = Title(Published()).craft(target, 1)
    (candidate,) = poison_candidates(Example("t1", "", target.question, (), (), ()), poisons)
    assert (candidate.passage.title, candidate.passage.text) == (poisons[0].title, poisons[0].text)
