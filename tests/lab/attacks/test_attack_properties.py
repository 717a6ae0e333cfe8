import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unpoison_lab.attacks.base import Target, contains_answer
from unpoison_lab.attacks.disperse import select_diverse
from unpoison_lab.attacks.garag import dominates, fronts, survivors
from unpoison_lab.attacks.poisonedrag import PoisonedRag
from unpoison_lab.attacks.rewriting import paraphrase_text, with_synonyms

points = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20)
texts = st.text(max_size=200)


@given(points)
def test_fronts_are_a_partition_in_which_nobody_is_dominated_by_an_equal(values):
    parsed = fronts(values)
    assert sorted(i for front in parsed for i in front) == list(range(len(values)))
    for rank, front in enumerate(parsed):
        assert not any(dominates(values[i], values[j]) for i in front for j in front)
        for j in front if rank else []:
            assert any(dominates(values[i], values[j]) for i in parsed[rank - 1])


@given(points, st.integers(1, 25))
def test_survivors_are_distinct_and_come_from_the_best_fronts(values, size):
    kept = survivors(values, size)
    assert len(kept) == len(set(kept)) == min(size, len(values))
    dropped = set(range(len(values))) - set(kept)
    assert not any(dominates(values[d], values[k]) for d in dropped for k in kept)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_a_dispersed_set_is_distinct_and_allowed(n, count, seed):
    rng = np.random.default_rng(seed)
    similarity, allowed = rng.random((n, n)), rng.random(n) < 0.6
    chosen = select_diverse((similarity + similarity.T) / 2, allowed, count)
    assert len(chosen) == len(set(chosen)) == min(count, int(allowed.sum()))
    assert all(allowed[i] for i in chosen)


@given(texts, st.integers(0, 2**32 - 1))
def test_rewriting_survives_any_text(text, seed):
    rng = np.random.default_rng(seed)
    keep = text.split()[:2]
    replaced = with_synonyms(text, keep, rng, 0.5)
    assert 0 <= replaced.replaced <= replaced.content
    assert all(contains_answer(paraphrase_text(text, keep, rng), k) for k in keep if contains_answer(text, k))


@given(st.text(min_size=1, max_size=80).filter(str.strip), st.text(min_size=1, max_size=20))
def test_templates_take_any_question_and_answer(question, answer):
    target = Target("x", question, (), answer)
    if not answer:
        return
    (poison,) = PoisonedRag(prefix=False).craft(target)
    assert answer in poison.text
    assert poison.reached == contains_answer(poison.text, answer)
