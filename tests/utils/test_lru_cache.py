"""The dictionary behind the caches, and that every cache of the package is bounded in bytes."""

from __future__ import annotations

import ast
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unpoison
from unpoison import Guard
from unpoison.models import CachedGenerator, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.text import analysis, sentences
from unpoison.text.canonical import canonical
from unpoison.text.near_duplicates import FoldedText
from unpoison.text.respelling import respell
from unpoison.utils.lru_cache import LRUCache


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 12)), max_size=60), st.integers(1, 20))
def test_never_more_than_allowed_and_the_last_used_stays(puts: list[tuple[int, int]], most: int) -> None:
    kept: LRUCache[int, int] = LRUCache(lambda key, value: value, most, 4)
    for key, size in puts:
        kept.put(key, size)
        held = [value for k in range(10) if (value := kept._values.get(k)) is not None]
        assert sum(held) == kept._held <= most
        assert len(kept) <= 4
        assert (kept.get(key) == size) is (size <= most)


def test_everything_can_be_forgotten() -> None:
    kept: LRUCache[str, str] = LRUCache(lambda key, value: 1, 2)
    kept.put("a", "1")
    kept.clear()
    assert kept.get("a") is None
    assert (len(kept), kept._held) == (0, 0)


def test_what_was_not_used_for_longest_leaves_first() -> None:
    kept: LRUCache[str, str] = LRUCache(lambda key, value: 1, 2)
    kept.put("a", "1")
    kept.put("b", "2")
    assert kept.get("a") == "1"
    kept.put("c", "3")
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == ("1", None, "3")


def test_what_grows_makes_others_leave_and_itself_where_it_is_too_large() -> None:
    kept: LRUCache[str, str] = LRUCache(lambda key, value: 4, 10)
    kept.put("a", "1")
    kept.put("b", "2")
    kept.grow("a", 2)
    assert (kept.get("a"), kept.get("b"), kept._held) == ("1", "2", 10)
    kept.grow("b", 1)
    assert (kept.get("a"), kept.get("b"), kept._held) == (None, "2", 5)
    kept.grow("a", 5)
    assert kept._held == 5
    kept.put("c", "3")
    kept.grow("b", 6)
    assert (kept.get("b"), kept.get("c"), kept._held) == (None, "3", 4)


def grown(work: object) -> int:
    """Bytes that are held after some work that were not before."""
    tracemalloc.start()
    try:
        work()  # type: ignore[operator]
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_long_tokens_are_not_remembered() -> None:
    """Twenty requests of them once took 290 MB."""
    guard, numbers = Guard(), random.Random(0)

    def work() -> None:
        for _ in range(3):
            texts = [" ".join(f"{numbers.randrange(10**9)}{'x' * 190}" for _ in range(100)) for _ in range(5)]
            guard.screen("which", texts)

    work()  # what is loaded once
    assert grown(work) < 5_000_000  # other caches fill meanwhile


@pytest.mark.parametrize("word", ["a", "\u4e00", "word", "w\u200brd"])
@pytest.mark.parametrize(
    "part",
    [canonical, sentences._sentences, FoldedText, respell, lambda text: Guard().screen("which", [text, "b"])],
)
def test_what_is_known_of_texts_takes_a_number_of_bytes(
    word: str, part: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 2**20
    sentences._stem.cache_clear()
    monkeypatch.setattr(analysis, "_kept", LRUCache(analysis._kept._size, most))
    whole = part.__name__ == "<lambda>"

    def work(times: int) -> None:
        for i in range(times):
            text = f"{i} " + f"{word} " * 750
            if whole:
                part(text)
            else:
                analysis.analysis(text).part(part)

    work(1)
    analysis.clear()
    assert grown(lambda: work(10 if whole else 40)) < 1.3 * most


def test_replies_are_remembered_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    from unpoison.models.cache import _Memory

    monkeypatch.setattr(_Memory, "BYTES", 2**20)
    generator = CachedGenerator(ScriptedGenerator("x" * 100_000))

    def work() -> None:
        for i in range(40):
            generator.generate(Prompt("free", "s", f"q{i}"))

    assert grown(work) < 1.3 * 2**20


UNBOUNDED = frozenset(
    """_all_labels _all_marks _classes _defense _environment _extras _forms _hints _letters _list _lists _load _minilm
    _optional _options _questions _secret _sentence_marks _settings _shipped _style _suffixes _tables _template
    _templates _text_file _types _unsupported_scripts _usual_marks _words load network _morpheme_values _morphemes
    _pattern _data _defaults _named_in denying phrases entry_points_of load_grammar preset_file load_reader load_weights
    resource claim_patterns array_folder _forms""".split()  # noqa: SIM905
)
"""Functions whose arguments are names of our own or sizes up to a bound, never a caller's text."""


BOUNDED = (
    *("_stem", "_wanted", "_question_words", "_breaks_of", "_words_hash", "_read", "gaps", "read_answer", "_values"),
    "_split_words",  # blocks of text, four at most
    "_made_again",  # models by the arguments of their constructors, eight at most
    *("_word_value", "_code", "_classes_of"),  # words of at most 60, 60 and 40 characters
    "read_values",  # 20,000 characters at most
    "_begun_by",  # words of at most 40 characters
    "_is_keyed",  # beginnings of texts, of 10,000 characters
    "_rows",  # of an evaluation file, two at most
    *("_place", "_origin", "_origin_place", "_glob", "_entries", "check_rule"),  # of sources, rules and policies
)
"""Whose texts are cut before they are remembered, or are our own."""


def test_no_cache_holds_callers_texts_without_a_bound() -> None:
    """`@cache` keeps everything, `lru_cache` so many of whatever size."""
    for path in Path(unpoison.__file__).parents[1].glob("unpoison*/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                how = [ast.unparse(decorator) for decorator in node.decorator_list]
                assert "cache" not in how or node.name in UNBOUNDED, f"{path}: {node.name}"
                assert not any("lru_cache" in text for text in how) or node.name in BOUNDED, f"{path}: {node.name}"


def test_words_whose_stems_are_remembered_are_short() -> None:
    sentences._stem.cache_clear()
    sentences.stem("x" * 41)
    assert sentences._stem.cache_info().currsize == 0
    analysis._known.cache_clear()
    assert len(analysis.analysis("x" * 33).words.word) == 1
    assert analysis._known.cache_info().currsize == 0
