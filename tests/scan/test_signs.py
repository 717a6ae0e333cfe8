"""How a text is built as a whole, whatever it says."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scan.corpora import honest, planted
from unpoison.scan.signs import MAX_STYLE, MIN_STYLE, invention_odds


def test_planted_texts_look_made_and_honest_ones_do_not() -> None:
    invented = invention_odds([row["text"] for row in planted(front=False)])
    by_people = invention_odds([row["text"] for row in honest()])
    assert invented.min() > np.quantile(by_people, 0.9)


def test_a_sentence_by_people_clears_a_text_in_part() -> None:
    lie, page = planted(front=False)[0]["text"], honest()[3]["text"]
    alone, mixed, people = invention_odds([lie, f"{lie} {page}", page])
    assert people < mixed < alone


def test_layout_and_capitals_do_not_decide() -> None:
    lie = planted(front=False)[0]["text"]
    plain, shouted, listed, people = invention_odds([lie, lie.upper(), f"* {lie}\n", honest()[3]["text"]])
    assert min(shouted, listed) > people
    assert abs(listed - plain) < (plain - people) / 2


def test_texts_are_judged_alone_however_many_there_are() -> None:
    texts = [row["text"] for row in honest(40)] * 4
    together = invention_odds(texts)
    assert together.tolist() == [*together[:40].tolist()] * 4
    assert np.allclose(together[:3], [invention_odds([text])[0] for text in texts[:3]])


def test_nothing_to_read_is_innocent() -> None:
    assert invention_odds([]).shape == (0,)
    assert invention_odds(["", " \n "]).tolist() == [MIN_STYLE] * 2
    assert invention_odds(["..."])[0] < -4


@given(st.lists(st.text(max_size=60), max_size=5))
@settings(max_examples=60, deadline=None)
def test_any_texts_have_a_bounded_style(texts: list[str]) -> None:
    odds = invention_odds(texts)
    assert odds.shape == (len(texts),)
    assert np.all((odds >= MIN_STYLE) & (odds <= MAX_STYLE))
