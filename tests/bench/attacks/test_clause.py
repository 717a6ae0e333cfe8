from unpoison.bench.attacks.base import Target, contains_answer
from unpoison.bench.attacks.clean_passages import Clause
from unpoison.bench.attacks.published import Copies

TRUE = "The ship is on an island. It was raised in 1961."
TARGET = Target(
    "q", "in which city is the Vasa Museum", ("Stockholm",), "Gothenburg", context=("It is in Stockholm.", TRUE)
)


def test_one_clause_is_new_and_all_else_is_as_it_was():
    first, second = Clause().craft(TARGET, 2)
    assert first.reached
    head, tail = "The ship is on an island", ". It was raised in 1961."
    assert first.text.startswith(head)
    assert first.text.endswith(tail)
    assert contains_answer(first.text.removeprefix(head).removesuffix(tail), "Gothenburg")
    assert not contains_answer(first.text, "Stockholm")
    assert not second.reached
    assert second.meta["reason"] == "1 clean passages give no answer and 2 were asked for; a template stands in"


def test_a_text_without_a_mark_at_its_end_is_edited_too():
    target = Target("q", "in which city is it", ("Stockholm",), "Gothenburg", context=("The ship is on an island",))
    assert contains_answer(Clause().craft(target)[0].text, "Gothenburg")


def test_copies_are_one_text():
    published = Target("q", "in which city is it", ("Stockholm",), "Gothenburg", texts=("In Gothenburg.", "other"))
    assert [poison.text for poison in Copies().craft(published, 3)] == ["In Gothenburg."] * 3
    assert len({poison.id for poison in Copies().craft(published, 3)}) == 3
    written = Copies().craft(TARGET, 2)
    assert written[0].text == written[1].text
    assert contains_answer(written[0].text, "Gothenburg")
