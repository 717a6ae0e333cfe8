import re
from dataclasses import replace

import numpy as np
import pytest

from ranges import assert_range
from unpoison.models.doubles import ScriptedGenerator
from unpoison_lab.attacks.base import contains_answer
from unpoison_lab.attacks.garag import (
    Garag,
    _Subject,
    crowding_distance,
    dominates,
    fronts,
    generation_ratio,
    modifiable,
    overlap,
    relevance_ratio,
    survivors,
    tournament,
)
from unpoison_lab.attacks.rewriting import typo


def test_the_ratios_of_the_worked_example():
    assert relevance_ratio(10.0, 10.2) == pytest.approx(0.8187308)
    assert generation_ratio(0.6, 0.3) == 0.5


def test_the_pareto_front_of_the_worked_example():
    points = [(0.8, 1.1), (0.9, 0.9), (0.7, 1.2), (0.95, 1.0)]
    assert fronts(points) == [[0, 1, 2], [3]]
    assert dominates(points[1], points[3])
    assert not dominates(points[0], points[1])
    assert not dominates(points[0], points[0])


def test_whole_fronts_survive_before_lonely_members_of_the_next():
    points = [(0.8, 1.1), (0.9, 0.9), (0.7, 1.2), (0.95, 1.0)]
    assert sorted(survivors(points, 3)) == [0, 1, 2]
    assert survivors(points, 4)[0] == 1  # least sum first
    assert sorted(survivors(points, 2)) == [1, 2]


def test_typos_change_words_and_keep_them_long_enough():
    rng = np.random.default_rng(0)
    for word in ("because", "Government", "capital,", "the", "(1912)", "river's"):
        for _ in range(50):
            word_made = typo(word, rng)
            assert word_made != word
            assert len(word_made) >= 3
    assert {typo("capital,", rng)[-1] for _ in range(20)} == {","}
    assert typo("===", rng) == "==="


def test_answers_predictions_stop_words_and_short_words_stay():
    tokens = ["The", " ", "capital", " ", "of", " ", "Paris,", " ", "is", " ", "big", " ", "old"]
    assert [tokens[i] for i in modifiable(tokens, ["Paris", "an old town"])] == ["capital", "big"]


@pytest.mark.parametrize(
    ("reply", "value"), [("It is New York.", 1.0), ("new jersey", 0.5), ("Boston", 0.0), ("", 0.0)]
)
def test_overlap_stands_in_for_the_probability(reply, value):
    assert overlap(reply, "New York") == value


def failing(prompt):
    """A reader that understands the passage as long as the word capital is spelt right."""
    return "Paris" if "capital" in prompt.passages[0] else "unknown"


def garag(encoder, generator=failing, **options):
    return Garag(encoder=encoder, generator=ScriptedGenerator(generator), population=6, parents=3, **options)


def test_the_search_breaks_the_reader_or_says_that_it_did_not(target, encoder):
    (poison,) = garag(encoder, iterations=10, share=0.4).craft(target, 1)
    assert contains_answer(poison.text, "Paris")
    assert poison.text != target.gold[0]
    assert poison.meta["answers"] == []
    assert poison.reached == (poison.meta["rsr"] < 1 and "capital" not in poison.text)
    assert poison.budget.llm_calls == 1 + 7 + poison.meta["generations"] * 7
    (immune,) = garag(encoder, lambda _: "Paris", iterations=2).craft(target, 1)
    assert not immune.reached
    assert "reader answers" in immune.meta["reason"]


def test_the_search_is_the_same_for_the_same_seed(target, encoder):
    first, second = (garag(encoder, iterations=3).craft(target, 2) for _ in range(2))
    assert first == second
    assert first[0].text != garag(encoder, iterations=3, seed=1).craft(target, 2)[0].text


def test_its_options_have_ranges(encoder):
    make = lambda **options: Garag(encoder=encoder, **options)  # noqa: E731
    for name in ("share", "crossover", "mutation"):
        assert_range(make, name, 0.0, 1.0)
    assert_range(make, "population", 2)
    assert_range(make, "parents", 1)
    assert_range(make, "iterations", 0)


def test_without_a_generation_the_best_of_the_first_is_given(target, encoder):
    (poison,) = garag(encoder, lambda _: "Paris", iterations=0).craft(target, 1)
    assert (poison.meta["generations"], poison.budget.llm_calls) == (0, 1 + 7)
    assert "after 0 generations" in poison.meta["reason"]


TEN = "Paris was governed from seven large towers beside our river"


@pytest.mark.parametrize(("reply", "changed"), [(TEN, False), (f"{TEN} once", True)])
def test_the_words_of_a_short_first_reply_stay_and_a_sentence_protects_nothing(reply, changed, target, encoder):
    (poison,) = garag(encoder, lambda _: reply, iterations=0).craft(replace(target, gold=(TEN,)), 1)
    assert (poison.text != TEN) is changed
    if not changed:
        assert poison.meta["reason"] == "no word of the passage can be changed"


def test_a_reader_that_misses_the_answer_from_the_first_cannot_be_broken(target, encoder):
    (poison,) = garag(encoder, lambda _: "no idea").craft(target, 1)
    assert (poison.text, poison.budget.llm_calls) == (target.gold[0], 1)
    assert poison.meta["reason"] == "the reader misses the answer in the unchanged passage already"


def test_each_text_takes_the_next_golden_passage(target, encoder):
    two = replace(target, gold=(target.gold[0], "Paris governs every other region of this country"))
    poisons = garag(encoder, lambda _: "Paris", iterations=0).craft(two, 3)
    assert ["region" in p.text or "country" in p.text for p in poisons] == [False, True, False]


def words_of(target):
    tokens = re.findall(r"\S+|\s+", target.gold[0])
    return modifiable(tokens, [*target.correct, "Paris"])


@pytest.mark.parametrize(("share", "typos"), [(0.0, lambda n: 1), (0.5, lambda n: n // 2), (1.0, lambda n: n)])
def test_the_share_says_how_many_words_are_mistyped(share, typos, target, encoder):
    (poison,) = garag(encoder, lambda _: "Paris", iterations=1, share=share).craft(target, 1)
    before, after = target.gold[0].split(" "), poison.text.split(" ")
    assert (
        poison.meta["typos"] == typos(len(words_of(target))) == sum(a != b for a, b in zip(before, after, strict=True))
    )


class Probable:
    """A reader that is sure of the answer as long as a word is spelt right."""

    def read(self, question, passages, answer, /):
        return [("Paris", 0.8 if "capital" in text else 0.2) for text in passages]


def test_a_reader_that_says_how_sure_it_is_makes_the_ratio(target, encoder):
    attack = Garag(encoder=encoder, reader=Probable(), population=4, parents=1, iterations=1, share=1.0)
    (poison,) = attack.craft(target, 1)
    assert poison.meta["gpr"] == 0.25 and not poison.reached
    assert poison.meta["reason"] == f"after 1 generations: RSR {poison.meta['rsr']:.3f}, reader answers"


def test_a_child_takes_what_both_have_and_of_the_rest_the_shares(target, encoder):
    subject = _Subject(target, "Paris", [f"token{i}" for i in range(20)], list(range(20)), 4)
    first, second = {0: "a", 1: "b", 2: "c", 3: "d"}, {0: "e", 4: "f", 5: "g", 6: "h"}
    rng = np.random.default_rng(0)
    plain = {"encoder": encoder, "mutation": 0.0}
    assert Garag(crossover=0.0, **plain)._child(subject, first, second, rng) == first
    assert Garag(crossover=1.0, **plain)._child(subject, first, second, rng) == {**second, 0: "a"}
    mixed = Garag(crossover=0.34, **plain)._child(subject, first, second, rng)
    assert len(set(mixed) & set(first)) == 3 and len(set(mixed) & set(second)) == 2
    for mutation, kept in ((0.5, 2), (1.0, 0)):
        made = Garag(encoder=encoder, mutation=mutation, crossover=0.0)._child(subject, first, second, rng)
        assert len(made) == 4 and sum(made.get(i) == typo for i, typo in first.items()) == kept


def test_of_one_front_the_ends_are_loneliest():
    assert crowding_distance([[0, 3], [1, 1], [4, 0]]).tolist() == [np.inf, 1 + 1, np.inf]
    assert crowding_distance([[0, 3], [3, 2], [4, 0], [1, 2.5]])[[1, 3]] == pytest.approx(
        [3 / 4 + 2.5 / 3, 3 / 4 + 1 / 3]
    )
    assert crowding_distance([[1], [1], [1]]).tolist() == [np.inf, 0, np.inf], "equal values say nothing of the rest"


class Drawn:
    """Draws these two."""

    def __init__(self, *two):
        self.two = two

    def integers(self, high, size):
        assert (high, size) == (3, 2)
        return self.two


@pytest.mark.parametrize(
    ("two", "lonely", "winner"),
    [
        ((0, 1), (0, 9, 0), 0),
        ((1, 0), (0, 9, 0), 0),
        ((0, 2), (1, 0, 2), 2),
        ((0, 2), (2, 0, 1), 0),
        ((2, 0), (1, 0, 1), 2),
    ],
)
def test_of_two_the_better_wins_and_else_the_lonelier(two, lonely, winner):
    values = np.array([[1.0, 1.0], [2.0, 1.0], [0.0, 2.0]])  # the first beats the second, and not the third
    assert tournament(values, np.array(lonely), Drawn(*two)) == winner


def test_the_defaults_are_those_of_the_authors(encoder):
    made = Garag(encoder=encoder)
    assert (made.share, made.population, made.iterations, made.parents) == (0.2, 25, 25, 10)
    assert (made.crossover, made.mutation, made.target_answers(None)) == (0.2, 0.4, ())
