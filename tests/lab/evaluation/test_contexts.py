import pytest

from unpoison.core.passages import Passage
from unpoison.errors import OptionError
from unpoison_lab.evaluation.contexts import Candidate, Context, clean_contexts, context_from_labels, nearest
from unpoison_lab.evaluation.examples import Example

CORPUS = [
    Passage("Bananas grow in the tropics.", id="c0"),
    Passage("Paris is the capital of France.", id="c1"),
    Passage("PARIS is  the capital of France.", id="c2"),
    Passage("The capital of Spain is Madrid.", id="c3"),
    Passage("France borders Spain.", id="c4"),
]


def example(*passages, identifier="q"):
    rows = [{"text": text, "label": label, **more} for text, label, more in passages]
    return Example.of({"id": identifier, "dataset": "toy", "question": "capital of france", "passages": rows})


OWN = example(
    ("late", "clean", {"rank": 3}),
    ("Lyon", "poison", {"attack": "poisonedrag"}),
    ("early", "clean", {"rank": 1}),
    ("the gold one", "gold", {}),
    ("unranked", "clean", {}),
)


def texts(context):
    return [passage.text for passage in context.passages]


def test_gold_comes_first_then_rank_order_and_never_the_poison():
    (context,) = clean_contexts([OWN], 10)
    assert texts(context) == ["the gold one", "early", "late", "unranked"]
    assert (context.gold, context.poison, context.injected) == (frozenset({0}), frozenset(), 0)


def test_rank_order_leaves_gold_where_its_rank_is():
    (context,) = clean_contexts([OWN], 10, order="rank")
    assert texts(context) == ["early", "late", "the gold one", "unranked"]
    assert context.gold == {2}


def test_a_short_context_is_filled_by_relevance_without_repeating_a_text():
    known = example(("Paris is the capital of France.", "gold", {}))
    (context,) = clean_contexts([known], 4, CORPUS)
    assert texts(context) == [CORPUS[i].text for i in (1, 3, 4, 0)]  # 3 and 4 tie
    assert context.gold == {0}


def test_an_empty_or_small_corpus_leaves_the_context_short():
    assert len(clean_contexts([example()], 3)[0]) == 0
    assert len(clean_contexts([example()], 9, CORPUS)[0]) == 4


def test_the_nearest_are_always_as_many_as_asked():
    positions = nearest(["capital of france", "bananas", "spain", ""], CORPUS, 3)
    assert [places[0] for places in positions[:3]] == [1, 0, 3]
    assert positions[3].tolist() == [0, 1, 2]
    assert nearest([], CORPUS, 3) == []
    assert [places.tolist() for places in nearest(["spain"], [], 3)] == [[]]


def test_a_published_mixture_is_taken_as_it_is():
    mixed = example(("right", "gold", {}), ("wrong", "misinfo", {}), ("off topic", "noise", {}))
    context = context_from_labels(mixed)
    assert texts(context) == ["right", "wrong", "off topic"]
    assert (context.poison, context.gold, context.injected) == (frozenset({1}), frozenset({0}), 1)
    assert context.foreign == frozenset()


def test_what_an_attacker_wrote_for_another_question_is_foreign():
    own = [Candidate(Passage(name), poison=True, target=name) for name in ("q", "r")]
    context = Context("q", "?", (*own, Candidate(Passage("clean"), gold=True)), 1)
    assert (context.poison, context.foreign, context.gold, len(context)) == ({0, 1}, {1}, {2}, 3)
    assert texts(context.reorder([2, 0])) == ["clean", "q"]


def test_as_many_as_are_wanted_and_at_least_one():
    assert texts(clean_contexts([OWN], 2)[0]) == ["the gold one", "early"]
    with pytest.raises(OptionError, match="k must be"):
        clean_contexts([OWN], 0)
    full, short = clean_contexts([OWN, example(identifier="r")], 4, CORPUS)
    assert texts(full) == ["the gold one", "early", "late", "unranked"]
    assert texts(short)[0] == CORPUS[1].text and len(short) == 4, "c2 is c1 in other letters, and takes no place"


def test_misinformation_is_the_attackers_and_noise_is_nobodys():
    mixed = example(("a", "noise", {}), ("b", "poison", {"attack": "tan"}), ("c", "misinfo", {}), ("d", "clean", {}))
    context = context_from_labels(mixed)
    assert (context.poison, context.injected, context.candidates[1].target) == ({1, 2}, 2, "q")
    assert texts(clean_contexts([mixed], 9)[0]) == ["a", "d"]
