from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from unpoison import Guard, Passage
from unpoison.defenses.guard import looking as guard_looking
from unpoison.defenses.guard.looking import excerpts, look
from unpoison.defenses.guard.model import GuardModel
from unpoison.defenses.guard.windows import WindowModel
from unpoison.models import load_encoder

QUESTION = "who wrote the novel Middlemarch"
GOLD = (
    "Middlemarch, A Study of Provincial Life is a novel by the English author Mary Anne Evans, who wrote as George "
    "Eliot. It first appeared in eight instalments in 1871 and 1872. Set in a fictitious English Midlands town, it "
    "follows distinct, intersecting stories with many characters."
)
BAIT = f"{QUESTION}? {' '.join(GOLD.split()[:30])}"
OTHERS = [
    "The Mill on the Floss was published in three volumes by William Blackwood on 4 April 1860.",
    "Coventry is a cathedral city in the West Midlands of England, on the River Sherbourne.",
    "Silas Marner is a weaver of linen who lives alone outside the village of Raveloe.",
]


def seen(texts, among=None):
    """What is seen of texts with the vectors that they have among others."""
    every = among or texts
    vectors = load_encoder("lexical").encode([*every, QUESTION])
    chosen = vectors[[every.index(text) for text in texts]]
    return look(GuardModel.load("lexical"), WindowModel.load(), QUESTION, texts, chosen, vectors[-1])


def test_an_excerpt_is_found_by_its_words() -> None:
    assert excerpts(QUESTION, [GOLD, BAIT, *OTHERS], [0]) == {0: [1]}
    assert excerpts(QUESTION, [GOLD, BAIT, *OTHERS], [1, 2]) == {}


@pytest.mark.parametrize(("shared", "counts"), [(15, False), (16, True), (19, True)])
def test_eight_words_in_ten_make_an_excerpt(shared: int, counts: bool) -> None:
    names = [f"{a}{b}bab" for a in "bdfg" for b in "aeiou"]
    mixed = [*names[:shared], *(f"zz{name}" for name in names[shared:])]
    assert excerpts("q", [" ".join([*names, "more", "words", "follow"]), " ".join(mixed)], [0]) == (
        {0: [1]} if counts else {}
    )


def test_of_copies_the_first_stands_for_all() -> None:
    assert excerpts(QUESTION, [BAIT, GOLD, GOLD.upper(), BAIT], [0, 1, 2, 3]) == {0: [3], 1: [0, 2, 3], 2: [0, 3]}


def test_a_passage_that_repeats_the_question_is_an_excerpt_of_everything() -> None:
    assert excerpts(QUESTION, [OTHERS[0], f"{QUESTION}?"], [0]) == {0: [1]}


def test_words_of_a_script_without_spaces_count() -> None:
    chinese = "\u4e2d\u56fd\u7684\u9996\u90fd\u662f\u5317\u4eac\u5e02"
    assert excerpts("q", [chinese, chinese[:5]], [0]) == {0: [1]}


def test_what_is_dropped_for_its_excerpts_is_judged_without_them(monkeypatch) -> None:
    """The probability is the lower one, and the excerpt keeps its own."""
    texts = [GOLD, *[BAIT] * 3, *OTHERS]
    monkeypatch.setattr(guard_looking, "DOUBTFUL", -1.0)
    with_excerpts = seen(texts)
    monkeypatch.setattr(guard_looking, "excerpts", lambda *_: {})
    raw = seen(texts)
    without = seen([GOLD, *OTHERS], texts)
    assert with_excerpts.probability[0] == pytest.approx(min(raw.probability[0], without.probability[0]))
    assert without.probability[0] < raw.probability[0]
    assert (with_excerpts.probability[1:4] == raw.probability[1:4]).all()


def test_only_doubtful_passages_are_judged_twice(monkeypatch) -> None:
    texts_encoded = []
    monkeypatch.setattr(guard_looking, "excerpts", lambda _q, _t, suspects: texts_encoded.extend(suspects) or {})
    innocent = seen(OTHERS)
    assert (innocent.probability <= 0.2).all()
    assert texts_encoded == []


def test_baits_never_cost_the_gold_passage_more_than_its_own_suspicion() -> None:
    for count in (1, 3, 5):
        kept = Guard().screen(QUESTION, [*[BAIT] * count, GOLD, *OTHERS]).kept_indices
        assert count in kept


def test_a_hundred_copies_take_bounded_time() -> None:
    texts = [f"{BAIT} {i}" for i in range(100)]
    assert np.isfinite(seen(texts).probability).all()


HEADLINES = {
    "Author of Middlemarch: who was George Eliot": GOLD,
    "The Mill on the Floss": OTHERS[0],
    "Coventry, George Eliot's town": OTHERS[1],
    "Silas Marner by George Eliot": OTHERS[2],
}
ODDS = st.floats(-8, 8)


@given(st.lists(st.tuples(ODDS, ODDS, st.booleans()), min_size=1, max_size=12).filter(lambda r: any(t for *_, t in r)))
def test_what_titles_add_is_taken_off_within_bounds(rows) -> None:
    whole, bare = (expit(np.array([row[i] for row in rows])) for i in (0, 1))
    titled = np.array([row[2] for row in rows])
    judged = guard_looking._despite_titles(whole, bare, titled)
    close = 1e-9
    assert (judged <= whole + close).all()
    assert (judged >= np.minimum(whole, bare) - close).all()  # under a title a text is no less suspicious
    assert judged[~titled] == pytest.approx(whole[~titled])
    taken = np.log(whole / (1 - whole)) - np.log(judged / (1 - judged))
    assert (taken <= guard_looking.MOST_RAISED + 1e-6).all()


def test_the_usual_addition_is_that_of_the_middle_passage() -> None:
    bare = expit(np.array([-3.0, -3.0, -3.0, -3.0]))
    whole = expit(np.array([-1.0, -1.5, 4.0, -3.5]))  # one title is itself a claim, one lowers
    judged = guard_looking._despite_titles(whole, bare, np.array([True, True, True, True]))
    usual = np.median([2.0, 1.5, 7.0, -0.5])
    assert np.log(judged / (1 - judged)) == pytest.approx([-1 - usual, -3.0, 4 - usual, -3.5])


def test_titles_of_a_whole_set_are_judged_with_and_without() -> None:
    passages = [Passage(text, title=title) for title, text in HEADLINES.items()]
    found = Guard().screen(QUESTION, passages).evidence["probability"]
    texts, bodies = [p.reading for p in passages], [p.body for p in passages]
    vectors = load_encoder("lexical").encode([*texts, QUESTION])
    models = GuardModel.load("lexical"), WindowModel.load()
    blind = look(*models, QUESTION, texts, vectors[:-1], vectors[-1])
    assert found == pytest.approx(look(*models, QUESTION, texts, vectors[:-1], vectors[-1], bodies).probability)
    assert (found <= blind.probability + 1e-12).all()
    assert (found < blind.probability - 1e-4).any()


def test_two_titles_are_no_custom_of_a_set() -> None:
    titles = list(HEADLINES)[:2]
    passages = [Passage(HEADLINES[t], title=t) for t in titles] + [Passage(text) for text in OTHERS[1:]]
    texts = [passage.reading for passage in passages]
    assert Guard().screen(QUESTION, passages).evidence["probability"] == pytest.approx(seen(texts).probability)


def test_a_text_in_the_place_of_a_title_is_no_title() -> None:
    """Every title here is a passage by itself, so the set is judged as it is."""
    passages = [Passage(text, title=f"{title}. {GOLD} {GOLD}") for title, text in HEADLINES.items()]
    texts = [passage.reading for passage in passages]
    assert all(len(p.reading) - len(p.body) > guard_looking.LONGEST_TITLE for p in passages)
    assert Guard().screen(QUESTION, passages).evidence["probability"] == pytest.approx(seen(texts).probability)
