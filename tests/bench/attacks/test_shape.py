import pytest

from unpoison.bench.attacks.base import Target, contains_answer
from unpoison.bench.attacks.poisonedrag import PoisonedRag
from unpoison.bench.attacks.prompt_injection import Pia
from unpoison.bench.attacks.published import Published
from unpoison.bench.attacks.wrapper import AROUND, INSTEAD, KINDS, SNIPPET_WORDS, Shape
from unpoison.errors import InputError, OptionError


def shaped(target, kind, inner=None):
    return Shape(inner or Published(), kind=kind).craft(target, 1)[0]


@pytest.mark.parametrize("kind", AROUND)
def test_a_frame_leaves_the_text_whole_and_is_the_same_for_all(kind, target):
    first, second = Shape(Published(), kind=kind).craft(target, 2)
    assert target.texts[0] in first.text != target.texts[0]
    assert first.text.replace(target.texts[0], "") == second.text.replace(target.texts[1], "")


def test_frames_stand_where_they_do_on_a_page(target):
    claim = target.texts[0]
    assert shaped(target, "references").text.startswith(f"{claim} [1] ")
    assert shaped(target, "byline").text.endswith(f"| {claim}")
    assert shaped(target, "footer").text.startswith(f"{claim}\nPage 3")


@pytest.mark.parametrize("kind", INSTEAD)
def test_a_form_is_made_around_the_wrong_answer_only(kind, target):
    text = shaped(target, kind, PoisonedRag())
    assert contains_answer(text.text, "Lyon")
    assert not contains_answer(text.text, "Paris")
    assert target.question not in text.text
    assert text.reached


def test_a_snippet_is_the_words_around_the_last_statement_of_the_answer():
    words = [f"w{k}" for k in range(60)]
    text = " ".join([*words[:20], "Lyon", *words[20:45], "New Lyon", *words[45:]])
    target = Target("x", "q", ("Paris",), "new lyon", (text,))
    shown = shaped(target, "snippet").text.removeprefix("14 Mar 2019 \u00b7 ... ").removesuffix(" ...").split()
    assert len(shown) == SNIPPET_WORDS
    assert shown[10:12] == ["New", "Lyon"]
    assert " ".join(shown) in text


def test_a_snippet_of_a_text_without_the_answer_states_it():
    target = Target("x", "who wrote emma", ("Jane Austen",), "Mary Shelley", ("Nobody knows.",))
    assert "Mary Shelley wrote emma" in shaped(target, "snippet").text


def test_braces_in_a_text_are_text(target):
    text = shaped(Target("x", "q {0}", ("Paris",), "{text}", ("a {b} {text}",)), "references")
    assert text.text.startswith("a {b} {text} [1]")


@pytest.mark.parametrize("kind", INSTEAD)
def test_a_form_around_an_answer_needs_one(kind):
    with pytest.raises(InputError, match=r"target 'x' has no incorrect, which the attack pia\+shape requires"):
        shaped(Target("x", "q"), kind, Pia(style="dos"))


def test_a_frame_needs_none():
    assert shaped(Target("x", "q"), "footer", Pia(style="dos")).reached


def test_unknown_kinds_are_refused():
    with pytest.raises(OptionError, match=r"kind must be one of references, byline, footer, .*, got 'poem'"):
        Shape(Published(), kind="poem")
    assert len(KINDS) == 6
