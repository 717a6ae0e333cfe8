"""Nearest units by rare words: which stems are looked up, and where ties go."""

from __future__ import annotations

import numpy as np
import pytest

from unpoison.scan import neighbours
from unpoison.scan.neighbours import MAX_TOKEN, NEAREST, by_words, likeness, rarest, stem_codes, table

TEXTS = ["red apples fall", "red apples rot", "blue pears fall", "red stones"]


def nearest(question: str, texts: list[str], **given: np.ndarray) -> list[int]:
    (units,) = by_words([question], table(texts), **given)
    return [unit for unit in units.tolist() if unit >= 0]


def test_words_are_counted_by_their_stems_without_stop_words() -> None:
    assert len(stem_codes("The apples and the apple, APPLES")) == 3
    assert len(set(stem_codes("The apples and the apple, APPLES"))) == 1
    terms = table(["apples apple", "pear"])
    assert terms.counts(terms.rows).toarray().tolist() in ([[2, 0], [0, 1]], [[0, 2], [1, 0]])
    assert terms.columns(np.array([*stem_codes("pear"), 7], np.int32)).tolist() in ([0, -1], [1, -1])
    assert (terms.words, table([]).words) == (1.5, 0)


def test_a_word_has_so_many_characters_that_are_told_apart() -> None:
    long = "x" * MAX_TOKEN
    assert stem_codes(long) == stem_codes(long + "y")
    assert stem_codes(long[1:] + "y") != stem_codes(long)


@pytest.mark.parametrize(
    ("count", "words"), [(0, []), (1, ["pears"]), (2, ["blue", "pears"]), (9, ["blue", "pears", "fall"])]
)
def test_the_rarest_words_come_in_the_order_of_the_text(count: int, words: list[str]) -> None:
    terms = table(["blue fall blue", "fall", "fall blue", "pears"])
    assert rarest("blue pears fall; pears unknown", count, terms) == words


def test_of_equally_rare_words_the_earlier_counts() -> None:
    terms = table(["blue pears"])
    assert rarest("pears blue", 1, terms) == ["pears"]
    assert rarest("blue pears", 1, terms) == ["blue"]
    assert rarest("blue", 1, table([])) == []


def test_units_of_the_own_document_are_no_neighbours() -> None:
    owner = np.array([0, 0, 1, 2], np.int32)
    assert nearest("red apples", TEXTS) == [0, 1, 3]
    assert nearest("red apples", TEXTS, own=np.array([0], np.int32), owner=owner) == [3]
    assert nearest("red apples", TEXTS, own=np.array([7], np.int32), owner=owner) == [0, 1, 3]


def test_ties_go_to_the_earlier_unit_and_so_many_are_returned() -> None:
    assert nearest("red", ["red"] * (5 * NEAREST)) == list(range(NEAREST))
    assert nearest("red", ["blue", *["red"] * NEAREST, "red red"])[0] == NEAREST + 1


def test_a_usual_stem_is_looked_up_where_a_question_has_no_rarer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "HOLDERS", 2)
    assert nearest("red", TEXTS) == [3, 0, 1], "held by three"
    assert nearest("red pears", TEXTS) == [2], "held by one"
    assert set(nearest("red apples", TEXTS)) == {0, 1}, "held by two, which is not too many"
    monkeypatch.setattr(neighbours, "HOLDERS", 1)
    assert set(nearest("red apples", TEXTS)) == {0, 1, 3}, "the two rarest, where all are usual"
    monkeypatch.setattr(neighbours, "TERMS", 1)
    assert nearest("apples pears", TEXTS) == [2], "only the rarest"


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_units_that_come_in_batches_are_ranked_as_all_at_once(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*TEXTS, *["red"] * NEAREST, "fall fall red"]
    whole = by_words(TEXTS, table(texts))
    monkeypatch.setattr(neighbours, "UNITS", batch)
    monkeypatch.setattr(neighbours, "BLOCK", batch)
    assert by_words(TEXTS, table(texts)).tolist() == whole.tolist()
    assert likeness(whole, table(texts))[:, 0].all()


def test_unknown_words_have_no_neighbours() -> None:
    assert nearest("unknown", TEXTS) == []
    assert nearest("red", []) == []


def test_the_likeness_to_no_neighbour_is_zero() -> None:
    terms = table(TEXTS)
    terms.__dict__["rarity"] = np.ones(len(terms.codes), np.float32)
    cosines = likeness(np.array([[1, -1], [0, 2], [-1, 3], [3, 0]], np.int32), terms)
    assert cosines[0, 0] == pytest.approx(2 / 3)
    assert cosines[1].tolist() == pytest.approx([2 / 3, 0])
    assert cosines[2].tolist() == [0, 0]
    assert cosines[3].tolist() == pytest.approx([1, 1 / 6**0.5])


def test_stems_weigh_as_in_bm25() -> None:
    """Lucene's form: saturation with K1 = 1.5, B = 0.75, and the logarithm of 1 + the odds of not holding a stem."""
    terms = table(["red red pear", "red", "plum plum plum plum"])
    weights = terms.weights(terms.rows).toarray()
    red, pear = terms.columns(np.array([*stem_codes("red"), *stem_codes("pear")], np.int32))
    saturation = 1.5 * (0.25 + 0.75 * 3 / (8 / 3))
    assert weights[0, red] == pytest.approx(np.log(1 + 1.5 / 2.5) * 2 / (2 + saturation))
    assert weights[0, pear] == pytest.approx(np.log(1 + 2.5 / 1.5) * 1 / (1 + saturation))
    assert weights[2, red] == 0


def test_rows_have_unit_length_and_frequent_stems_count_by_their_logarithm() -> None:
    terms = table(["red red pear", "", "plum pear"])
    rows = terms.unit_length(terms.rows).toarray()
    assert (rows**2).sum(axis=1) == pytest.approx([1, 0, 1])
    red, pear = terms.columns(np.array([*stem_codes("red"), *stem_codes("pear")], np.int32))
    rare, usual = np.log(1 + 2.5 / 1.5), np.log(1 + 1.5 / 2.5)
    assert rows[0, red] / rows[0, pear] == pytest.approx((1 + np.log(2)) * rare / usual)
    assert terms.unit_length([]).shape == (0, len(terms.codes))


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("size", [3, 8, 9, 60])
def test_the_best_units_are_those_of_a_sort(count: int, size: int) -> None:
    """Also where only a part of them is sorted; differences in rounding make no order."""
    random = np.random.default_rng(size)
    score = random.integers(0, 4, size) + random.uniform(0, 1e-6, size)
    units = random.permutation(size)
    order = sorted(range(size), key=lambda i: (-round(score[i], 4), units[i]))[:count]
    assert neighbours._best(units, score, count).tolist() == order


def test_questions_of_more_units_than_a_batch_find_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "UNITS", 2)
    texts = ["red blue", "red", "red green", "red", "red"]
    assert nearest("red", texts) == [1, 3, 4, 0, 2], "the shorter texts of any batch first"
    assert nearest("green red", texts)[0] == 2
