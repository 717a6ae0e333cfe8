import numpy as np
import pytest

from ranges import assert_range
from unpoison.models.doubles import ScriptedGenerator
from unpoison_lab.attacks.base import contains_answer
from unpoison_lab.attacks.garag import (
    Garag,
    dominates,
    fronts,
    generation_ratio,
    modifiable,
    overlap,
    relevance_ratio,
    survivors,
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
