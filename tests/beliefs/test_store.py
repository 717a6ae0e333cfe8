"""What only the store in memory does: it forgets, oldest writing first, when it is full."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unpoison.beliefs import Belief, MemoryBeliefs
from unpoison.beliefs.store import belief_key, update
from unpoison.errors import InputError, OptionError, StoreError

A, B = Belief("Ada", 0.8, 0.1), Belief("Bea", 0.5, 0.25)


def keys(store: MemoryBeliefs) -> list[str]:
    return [key for key in "abc" if store.get(key)]


def test_a_full_store_forgets_what_was_written_longest_ago() -> None:
    store = MemoryBeliefs(limit=2)
    store.put("a", A)
    store.put("b", A)
    assert keys(store) == ["a", "b"], "as many as the limit stay"
    store.put("a", B)  # written again, so now b is the oldest
    store.put("c", A)
    assert keys(store) == ["a", "c"]
    assert store.get("a") == B
    assert MemoryBeliefs(limit=1).limit == 1
    with pytest.raises(OptionError, match="limit"):
        MemoryBeliefs(limit=0)


def test_created_is_kept_when_a_belief_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("unpoison.beliefs.store.time", SimpleNamespace(time=lambda: now[0]))
    store = MemoryBeliefs()
    store.put("k", A)
    now[0] = 1050
    store.put("k", B)
    belief = store.get("k")
    assert (belief.created, belief.updated) == (1000, 1050)  # type: ignore[union-attr]
    assert "1 beliefs" in repr(store)


def test_one_question_has_one_key_however_it_is_written() -> None:
    key = belief_key("Who built the bridge?")
    assert len(key) == 32
    for same in ("  who BUILT the\nbridge", "Who built the bridge ?!.", "\uff37ho built the bridge?"):
        assert belief_key(same) == key
    for other in ("Who built the bridge in 1902?", "Who? built the bridge", ""):
        assert belief_key(other) != key


def test_who_was_slower_does_not_write() -> None:
    store = MemoryBeliefs()
    assert store.put("k", A, expected="")
    assert not store.put("k", B, expected="")
    first = store.get("k")
    assert first is not None and first.version and (first.answer, first.created) == ("Ada", first.updated)
    assert not store.put("k", B, expected="another")
    assert store.put("k", B, expected=first.version)
    second = store.get("k")
    assert second is not None and second.answer == "Bea" and second.version != first.version
    assert store.put("k", A)


@pytest.mark.parametrize(
    ("key", "right"),
    [("k" * 128, True), ("k" * 129, False), ("", False), ("a b", False), ("a\u200b", False), ("é", True)],
)
def test_a_key_is_one_word_that_is_visible(key: str, right: bool) -> None:
    store = MemoryBeliefs()
    if right:
        assert store.get(key) is None
        return
    for use in (lambda: store.get(key), lambda: store.put(key, A)):
        with pytest.raises(InputError, match="1 to 128 visible characters"):
            use()


def test_an_update_begins_again_until_it_is_the_last_and_gives_up_at_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    class Contended(MemoryBeliefs):
        lost = 2

        def put(self, key: str, belief: Belief, *, expected: str | None = None) -> bool:
            self.lost -= 1
            return self.lost < 0 and super().put(key, belief, expected=expected)

    seen: list[Belief | None] = []
    store = Contended()
    assert update(store, "k", lambda before: [seen.append(before), A][1]) == A  # type: ignore[func-returns-value]
    assert (seen, store.get("k")) == ([None] * 3, A)
    monkeypatch.setattr("unpoison.beliefs.store.ATTEMPTS", 3)
    with pytest.raises(StoreError, match="was changed by others 3 times"):
        endless = Contended()
        endless.lost = 3
        update(endless, "k", lambda before: A)
