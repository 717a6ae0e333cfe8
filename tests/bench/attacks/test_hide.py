import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.bench.attacks.base import Target
from unpoison.bench.attacks.hide import INSERTED, KINDS, LOOK_ALIKES, Hide
from unpoison.bench.attacks.published import Published
from unpoison.errors import OptionError

TWINS = str.maketrans({twin: letter for letter, twin in LOOK_ALIKES.items()})

READERS = {
    **{kind: lambda text, mark=mark: text.replace(mark, "") for kind, mark in INSERTED.items()},
    "tags": lambda text: re.sub(r"<[^>]+>", "", text),
    "comments": lambda text: re.sub(r"<!--.*?-->", "", text),
    "fullwidth": lambda text: unicodedata.normalize("NFKC", text),
    "bold": lambda text: unicodedata.normalize("NFKC", text),
    "entities": html.unescape,
    "look-alikes": lambda text: text.translate(TWINS),
    "case": str.capitalize,
}
"""What a reader that strips the disguise does."""

CLAIM = "The seat of the french state is lyon, house 42b."


@pytest.fixture(params=list(KINDS))
def kind(request):
    return request.param


def hidden(kind, text=CLAIM, seed=0):
    (poison,) = Hide(Published(), kind=kind, seed=seed).craft(Target("t1", "q", ("Paris",), "lyon", (text,)), 1)
    return poison


def test_there_is_a_reader_for_every_kind():
    assert set(READERS) == set(KINDS)
    assert len(KINDS) == 13


def test_no_word_of_the_text_is_left_as_a_word(kind):
    text = hidden(kind).text
    words = re.findall(r"[^\W_]{2,}", CLAIM)
    matches = re.findall(r"\w+", text)
    # One letter of `42b` has a twin in no script, so look-alikes leave it.
    assert [word for word in words if word in matches] == (["42b"] if kind == "look-alikes" else [])


def test_a_reader_that_strips_the_disguise_has_the_text_back(kind):
    text = hidden(kind)
    assert text.text != CLAIM
    assert READERS[kind](text.text) == CLAIM
    assert text.reached
    assert text.meta["how"] == [f"hide:kind={kind}"]


@pytest.mark.parametrize("other", ["zero-width", "bold", "tags", "look-alikes", "entities"])
def test_a_reader_of_another_kind_has_not(kind, other):
    if kind != other and {kind, other} != {"fullwidth", "bold"} and {kind, other} != {"tags", "comments"}:
        assert READERS[other](hidden(kind).text) != CLAIM


def test_one_mark_goes_between_two_letters_of_every_word():
    text = hidden("zero-width").text
    assert text.count("\u200b") == len(re.findall(r"[^\W_]{2,}", CLAIM))
    assert not re.search("(?<![^\\W_])\u200b|\u200b(?![^\\W_])", text)


def test_places_depend_on_the_seed_and_on_nothing_else():
    assert hidden("zero-width") == hidden("zero-width")
    assert hidden("zero-width", seed=1).text != hidden("zero-width").text
    assert hidden("look-alikes", seed=1).text != hidden("look-alikes").text


def test_a_text_without_letters_to_hide_says_so():
    text = hidden("look-alikes", "\u6771\u4eac lyon".replace("lyon", "lt"))
    assert not text.reached
    assert text.text == "\u6771\u4eac lt"


def test_look_alikes_are_single_letters_of_another_script():
    assert len(set(LOOK_ALIKES.values())) == len(LOOK_ALIKES) == 27
    for letter, twin in LOOK_ALIKES.items():
        assert unicodedata.name(letter).startswith("LATIN")
        assert unicodedata.name(twin).split()[0] in ("CYRILLIC", "GREEK")
        assert unicodedata.name(letter).split()[1] == unicodedata.name(twin).split()[1]


def test_unknown_kinds_are_refused():
    with pytest.raises(OptionError, match=r"kind must be one of zero-width, .*, got 'ink'"):
        Hide(Published(), kind="ink")


@given(st.text(min_size=1, max_size=80).filter(str.strip), st.sampled_from(sorted(INSERTED)))
def test_any_text_can_be_hidden_and_read_again(text, kind):
    if INSERTED[kind] not in text and "<" not in text:
        assert READERS[kind](hidden(kind, text).text) == text
