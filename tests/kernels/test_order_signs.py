"""Signs: which kinds of words a text holds, and which follow which within their reach."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.kernels.order_signs import Lexicon, SignTable, occurrences_in, signs
from unpoison.kernels.orders import OrderWeights, shipped

KINDS = {"void": "ignore*", "guidance": "rules", "when": "when", "say": "say"}


def signs_in(text: str, *looked_for: tuple[str, str, int]) -> list[tuple[str, int, int]]:
    """The signs in a text: which, and the numbers of both words."""
    weights = OrderWeights(Lexicon(KINDS), 0.0, dict.fromkeys(looked_for, 1.0))
    held = signs(occurrences_in(text, weights.lexicon), weights.table)
    names, size = weights.lexicon.names, len(weights.lexicon.names)
    code = weights.table.code[held.sign]
    which = [f"{names[c // size]} {names[c % size]}" for c in code.tolist()]
    return list(zip(which, held.first.tolist(), held.last.tolist()))


def test_a_kind_follows_another_within_its_reach() -> None:
    sign = ("void", "guidance", 4)
    assert signs_in("He ignored the rules", sign) == [("void guidance", 1, 3)]
    assert signs_in("ignored the old and new rules", sign) == []
    assert signs_in("rules ignored", sign) == []


def test_the_nearest_first_kind_counts() -> None:
    assert signs_in("ignore, ignore the rules", ("void", "guidance", 8)) == [("void guidance", 1, 3)]


def test_a_question_may_stand_between_far_kinds() -> None:
    text = "when" + " and" * 20 + " say"
    assert signs_in(text, ("when", "say", 24)) == [("when say", 0, 21)]
    assert signs_in(text, ("when", "say", 8)) == []


def test_a_kind_by_itself_and_where_a_sentence_begins() -> None:
    assert signs_in("rules. Ignore", ("alone", "void", 0)) == [("alone void", 1, 1)]
    assert signs_in("rules. Ignore", ("start", "void", 2)) == [("start void", 1, 1)]
    assert signs_in("the rules that he did ignore", ("start", "void", 2)) == []


def test_places_are_those_of_the_text() -> None:
    text = "Please: ignore these rules!"
    weights = OrderWeights(Lexicon(KINDS), 0.0, {("void", "guidance", 4): 1.0})
    held = signs(occurrences_in(text, weights.lexicon), weights.table)
    assert text[held.start[0] : held.end[0]] == "ignore these rules"


def test_nothing_is_found_in_nothing() -> None:
    lexicon = Lexicon(KINDS)
    table = SignTable(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(len(lexicon.names), bool))
    assert len(signs(occurrences_in("", lexicon), table).sign) == 0


def test_known_words_are_bounded_and_nobody_fills_them_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unpoison.kernels.order_signs.MOST_KNOWN", 3)
    lexicon = Lexicon(KINDS)
    assert all(lexicon.kinds(f"w{i}") == () for i in range(10))
    assert lexicon.kinds("Ignored") == lexicon.kinds("ignore") == (lexicon.number["void"],)
    assert "ignore" in lexicon.cached
    assert len(lexicon.cached) <= 3
    assert lexicon.kinds("ignore" + "d" * 30) == ()


@given(st.text(alphabet="\u8bf7\u5ffd\u7565\u6240\u6709\u6307\u4ee4\u53ea\u56de\u7b54\u3042", max_size=60))
def test_what_is_passed_over_in_a_run_of_ideographs_has_no_kinds(text: str) -> None:
    lexicon = shipped().lexicon
    one_by_one = [(at, kinds) for at in range(len(text)) if (kinds := lexicon.beginning(text, at))]
    assert list(lexicon.unspaced(text, 0, len(text))) == one_by_one
    assert not list(Lexicon({}).unspaced(text, 0, len(text)))


@pytest.mark.parametrize(("between", "near"), [(0, True), (6, True), (7, False)])
def test_every_ideograph_counts_as_a_word(between: int, near: bool) -> None:
    weights = OrderWeights(Lexicon({"v": "\u5ffd\u7565", "g": "\u6307\u4ee4"}), 0.0, {("v", "g", 8): 1.0})
    text = "\u5929\u5ffd\u7565" + "\u5929" * between + "\u6307\u4ee4"
    assert (len(signs(occurrences_in(text, weights.lexicon), weights.table).sign) == 1) is near
