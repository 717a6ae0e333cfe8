import numpy as np
import pytest

from unpoison.attacks.base import PoisonText
from unpoison.errors import InputError, OptionError
from unpoison.evaluation.contexts import Candidate, Context
from unpoison.evaluation.examples import Example
from unpoison.evaluation.injection import (
    bm25_score,
    dense_search,
    encoder_score,
    inject,
    middle,
    planted,
    pool,
    prepend,
    replace_at,
    replace_last,
    retrieve,
    retrieve_corpus,
)
from unpoison.evaluation.rates import PoisonRate, radar_rate, ragdefender_rate
from unpoison.types import Passage

EXAMPLE = Example.of(
    {
        "id": "q",
        "dataset": "toy",
        "question": "capital of france",
        "correct_answers": ["Paris"],
        "incorrect_answers": ["Lyon"],
        "passages": [
            {"id": "g", "text": "Paris is the capital of France.", "label": "gold"},
            {"id": "p0", "text": "The capital of France is Lyon.", "label": "poison", "attack": "poisonedrag"},
            {"id": "p1", "text": "Paris is the capital of France.", "label": "poison", "attack": "poisonedrag"},
        ],
    }
)
CLEAN = Context(
    "q", "capital of france", tuple(Candidate(Passage(f"clean {i}", id=f"c{i}"), gold=i == 0) for i in range(5))
)
POISON = planted(EXAMPLE, EXAMPLE.poisons())
FOREIGN = Candidate(Passage("capital of france and spain", id="f"), poison=True, target="other")


def ids(context):
    return [passage.id for passage in context.passages]


def test_poison_keeps_its_id_and_may_carry_the_question():
    (first, _) = planted(EXAMPLE, EXAMPLE.poisons(), prefix=True)
    assert first.passage.text == "capital of france.The capital of France is Lyon."
    assert (first.passage.id, first.poison, first.target) == ("p0", True, "q")
    (crafted,) = planted(EXAMPLE, [PoisonText("q#x-0-0", "Lyon.", "q", "x")])
    assert (crafted.passage.id, crafted.passage.text) == ("q#x-0-0", "Lyon.")


def test_replacing_keeps_the_length_and_says_where():
    context = replace_at(CLEAN, POISON, [4, 0])
    assert ids(context) == ["p1", "c1", "c2", "c3", "p0"]
    assert (context.poison, context.gold, context.injected) == ({0, 4}, frozenset(), 2)
    assert ids(replace_last(CLEAN, POISON)) == ["c0", "c1", "c2", "p0", "p1"]
    assert ids(middle(CLEAN, POISON[:1])) == ["c0", "c1", "p0", "c3", "c4"]
    assert CLEAN.poison == frozenset()


@pytest.mark.parametrize(
    ("positions", "message"),
    [([5, 0], "outside a context of 5"), ([-1, 0], "outside"), ([1, 1], "must differ"), ([1], "one position each")],
)
def test_positions_that_the_published_code_ignores_are_refused(positions, message):
    with pytest.raises(InputError, match=message):
        replace_at(CLEAN, POISON, positions)


def test_more_poison_than_passages_is_refused():
    with pytest.raises(InputError, match="outside"):
        replace_last(CLEAN, POISON * 3)
    with pytest.raises(InputError, match="outside"):
        middle(CLEAN, POISON * 2)


def test_prepending_pushes_out_the_last():
    assert ids(prepend(CLEAN, POISON)) == ["p0", "p1", "c0", "c1", "c2"]
    assert ids(prepend(CLEAN, POISON, 3)) == ["p0", "p1", "c0"]
    assert prepend(CLEAN, POISON, 1).injected == 2
    with pytest.raises(OptionError):
        prepend(CLEAN, POISON, 0)


def test_a_pool_loses_nothing():
    assert ids(pool(CLEAN, POISON)) == ["p0", "p1", "c0", "c1", "c2", "c3", "c4"]
    assert ids(pool(CLEAN, POISON, first=False)) == ["c0", "c1", "c2", "c3", "c4", "p0", "p1"]
    assert pool(CLEAN, ()).candidates == CLEAN.candidates


def test_retrieval_lets_the_score_decide_and_ties_go_to_the_context():
    context = retrieve(CLEAN, POISON, lambda question, texts: [len(text) for text in texts], 3)
    assert ids(context) == ["p1", "p0", "c0"]
    assert ids(retrieve(CLEAN, POISON, lambda question, texts: np.zeros(len(texts)), 6)) == [*ids(CLEAN), "p0"]


def test_poison_is_followed_by_position_even_when_it_equals_a_clean_text():
    clean = Context(
        "q", "capital of france", (Candidate(Passage("Paris is the capital of France.", id="g"), gold=True),)
    )
    context = retrieve(clean, POISON, bm25_score, 3)
    assert ids(context) == ["g", "p0", "p1"]
    assert (context.poison, context.gold) == ({1, 2}, {0})


def test_poison_of_other_questions_competes_and_is_told_apart():
    context = retrieve(CLEAN, [*POISON, FOREIGN], bm25_score, 3)
    assert ids(context) == ["p0", "p1", "f"]
    assert (context.poison, context.foreign, context.injected) == ({0, 1, 2}, {2}, 2)


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (PoisonRate(1, 5, "retrieve"), ["p0", "c0", "c1", "c2", "c3"]),
        (radar_rate([5, 1], 5), ["p1", "c1", "c2", "c3", "p0"]),
        (PoisonRate(1, 5, "replace_last"), ["c0", "c1", "c2", "c3", "p0"]),
        (PoisonRate(1, 5, "middle"), ["c0", "c1", "p0", "c3", "c4"]),
        (PoisonRate(2, 4, "prepend"), ["p0", "p1", "c0", "c1"]),
        (ragdefender_rate(1, 2), ["p0", "p1", "c0", "c1", "c2", "c3", "c4"]),
        (PoisonRate(0, 5, "replace_last"), ["c0", "c1", "c2", "c3", "c4"]),
    ],
)
def test_a_rate_says_how_many_and_where(rate, expected):
    context = inject(CLEAN, POISON, rate)
    assert (ids(context), context.injected) == (expected, rate.injected)


def test_a_rate_may_ask_for_more_poison_than_there_is():
    with pytest.raises(InputError, match="3 poisons are to be planted and 2 were given"):
        inject(CLEAN, POISON, PoisonRate(3, 5, "prepend"))


CORPUS = [Passage("Paris is  the capital of FRANCE.", id="k0"), Passage("Bananas.", id="k1")]


def test_a_poisoned_corpus_is_searched_as_one():
    (context,) = retrieve_corpus([EXAMPLE], CORPUS, [*POISON, FOREIGN], 4)
    assert ids(context) == ["k0", "p0", "p1", "f"]
    assert (context.gold, context.poison, context.foreign, context.injected) == ({0}, {1, 2, 3}, {3}, 2)


def test_an_empty_corpus_holds_what_was_planted():
    (context,) = retrieve_corpus([EXAMPLE], [], POISON, 5)
    assert ids(context) == ["p0", "p1"]
    with pytest.raises(InputError, match="nothing to retrieve"):
        retrieve_corpus([EXAMPLE], [], [], 5)
    with pytest.raises(OptionError):
        retrieve_corpus([EXAMPLE], CORPUS, [], 0)


class Letters:
    """Counts of three letters."""

    name = "letters"

    def encode(self, texts, /):
        return np.array([[text.lower().count(letter) + 1e-3 for letter in "abc"] for text in texts], np.float32)


def test_an_encoder_can_be_the_retriever():
    passages = [Passage("bbb"), Passage("aab"), Passage("aaa"), Passage("aaaa")]
    (found,) = dense_search(Letters())(["a"], passages, 3)
    assert found.tolist() == [2, 3, 1]
    assert np.argmax(encoder_score(Letters())("c", ["a", "ccc", "b"])) == 1
