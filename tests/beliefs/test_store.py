"""What only the store in memory does: it forgets, oldest writing first, when it is full."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from unpoison.beliefs import Belief, MemoryBeliefs
from unpoison.beliefs.store import belief_key
from unpoison.errors import OptionError

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
