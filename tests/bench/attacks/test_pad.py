import pytest

from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.published import Published
from unpoison.bench.attacks.rewriting import sentences
from unpoison.bench.attacks.wrapper import FAR, Pad
from unpoison.errors import OptionError

CLAIM = "Lyon is the capital of France."


def padded(target, where, count=1, seed=0):
    return Pad(Published(), where=where, seed=seed).craft(target, count)


def test_before_and_behind_keep_poison_and_passage_whole(target):
    (before,), (behind,) = padded(target, "before"), padded(target, "behind")
    assert before.text.startswith(f"{CLAIM} ")
    assert behind.text.endswith(f" {CLAIM}")
    assert before.text.removeprefix(f"{CLAIM} ") in target.context
    assert behind.text.removesuffix(f" {CLAIM}") in target.context


def test_between_the_sentences_stands_the_poison_and_around_it_the_passage(target):
    texts = [poison.text for poison in padded(target, "between", 3)]
    for text, claim in zip(texts, target.texts, strict=True):
        rest = [part for part in sentences(text) if part not in sentences(claim)]
        assert " ".join(rest) in target.context
        assert not text.startswith(claim)
        if len(rest) > 1:
            assert not text.endswith(claim)


def test_far_behind_text_stands_the_poison(target):
    (text_made,) = padded(target, "behind-text")
    front = text_made.text.removesuffix(f" {CLAIM}")
    assert FAR <= len(front) < FAR + max(map(len, target.context)) + 1
    assert {part for text in target.context for part in sentences(text)} == set(sentences(front))
    assert CLAIM not in front


def test_far_behind_line_breaks_stands_the_poison(target):
    (text,) = padded(target, "behind-lines")
    host, claim = text.text.split("\n" * FAR)
    assert claim == CLAIM
    assert host in target.context


def test_several_texts_lie_in_different_passages(target):
    hosts = [p.text.removesuffix(f" {c}") for p, c in zip(padded(target, "behind", 3), target.texts, strict=True)]
    assert len(set(hosts)) == 3


def test_the_passage_depends_on_the_seed(target):
    assert len({padded(target, "behind", seed=seed)[0].text for seed in range(8)}) > 1


def test_a_passage_of_one_sentence_has_the_poison_behind_it():
    target = Target("x", "q", texts=("Lie.",), context=("One sentence only",))
    assert padded(target, "between")[0].text == "One sentence only Lie."


def test_unknown_places_are_refused():
    with pytest.raises(OptionError, match=r"where must be one of before, behind, between, .*, got 'above'"):
        Pad(Published(), where="above")
