"""Near-copies: what counts as a difference, in several scripts, and what does not."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.near_duplicates import BEGINNING, FoldedText, differences, diverge, near_copies

MUSEUM = "The Vasa Museum stands on an island in Stockholm and was opened to the public in 1990."


def fillings_of(*texts: str) -> list[dict[int, str]]:
    return [frame.fillings for frame in near_copies(texts)]


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        (MUSEUM, MUSEUM.replace("Stockholm", "Gothenburg"), ("Stockholm", "Gothenburg")),
        (MUSEUM, MUSEUM.replace("Stockholm", "New York City"), ("Stockholm", "New York City")),
        (MUSEUM, MUSEUM.replace("Stockholm", "gothenburg").lower(), ("Stockholm", "gothenburg")),
        (MUSEUM, MUSEUM.replace("1990", "1961"), ("1990", "1961")),
        (f"{MUSEUM} Stockholm is proud.", f"{MUSEUM} Stockholm is proud.".replace("Stockholm", "Oslo"),
         ("Stockholm", "Oslo")),
        ("Refunds are possible within 30 days of purchase.", "Refunds are possible within 14 days of purchase.",
         ("30 days", "14 days")),
        ("The shop opens at 9.30 and the fee is small.", "The shop opens at 9.45 and the fee is small.",
         ("9.30", "9.45")),
        ("the window was painted red by the owner", "the window was painted blue by the owner", ("red", "blue")),
        ("you have two weeks to send the order back", "you have ten weeks to send the order back", ("two", "ten")),
        ("Das Museum steht in Stockholm und wurde von der Stadt gebaut.",
         "Das Museum steht in Göteborg und wurde von der Stadt gebaut.", ("Stockholm", "Göteborg")),
        ("Die Rückgabe ist innerhalb von 30 Tagen möglich.", "Die Rückgabe ist innerhalb von 14 Tagen möglich.",
         ("30 Tagen", "14 Tagen")),
        ("圣何塞鲨鱼队在北京比赛，观众很多。", "圣何塞鲨鱼队在上海比赛，观众很多。", ("北京", "上海")),
        ("退款期限为购买后30天内。", "退款期限为购买后14天内。", ("30天", "14天")),
        ("サメはサンノゼの東京アリーナで試合をする", "サメはサンノゼの大阪アリーナで試合をする", ("東京", "大阪")),
        ("متحف فاسا يقع في مدينة ستوكهولم في السويد", "متحف فاسا يقع في مدينة غوتنبرغ في السويد",
         ("ستوكهولم", "غوتنبرغ")),
        ("Музей Васа находится в городе Стокгольм на острове", "Музей Васа находится в городе Осло на острове",
         ("Стокгольм", "Осло")),
    ],
)  # fmt: skip
def test_a_name_or_number_in_the_place_of_another_is_told(left: str, right: str, says: tuple[str, str]) -> None:
    assert fillings_of(left, "Oak trees were felled for ships.", right) == [dict(zip((0, 2), says))]
    assert fillings_of(right, left) == [dict(enumerate(reversed(says)))]


@pytest.mark.parametrize(
    "other",
    [
        MUSEUM,
        MUSEUM.upper(),
        MUSEUM.replace("an island", "the island"),
        MUSEUM.replace("opened", "oppened"),
        MUSEUM.replace("Stockholm", "Stockholmm"),
        MUSEUM.replace("public", "wide public"),
        MUSEUM.replace(" in 1990", ""),
        "Stockholm has a museum around the salvaged hull of a warship, and Gothenburg has none.",
        MUSEUM.replace("Vasa", "Viking").replace("Stockholm", "Oslo").replace("1990", "1926").replace("public", "king"),
        "",
    ],
)
def test_what_says_the_same_or_is_another_text_is_not(other: str) -> None:
    assert fillings_of(MUSEUM, other) == []


def test_equal_texts_and_further_versions_stand_in_one_frame() -> None:
    oslo, paris = (MUSEUM.replace("Stockholm", city) for city in ("Oslo", "Paris"))
    assert fillings_of(MUSEUM, oslo, MUSEUM, paris) == [{0: "Stockholm", 1: "Oslo", 2: "Stockholm", 3: "Paris"}]


WORDS = [f"w{i}" for i in range(12)]


@given(st.lists(st.sampled_from(WORDS), max_size=150), st.data())
def test_beginnings_diverge_only_if_the_texts_are_no_near_copies(words: list[str], data: st.DataObject) -> None:
    other = list(words)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(other)))
        other[at : at + data.draw(st.integers(0, 9))] = data.draw(st.lists(st.sampled_from("abcdefghij"), max_size=9))
    left, right = " ".join(words), " ".join(other)
    begin, other_begin = (FoldedText(text[:BEGINNING]) for text in (left, right))
    if diverge(begin, other_begin):
        assert differences(FoldedText(left), FoldedText(right)) is None
    assert not diverge(begin, begin)


def test_other_texts_diverge_at_their_beginning() -> None:
    texts = f"{MUSEUM} " * 9, "Refunds are possible within 30 days of purchase. " * 9
    assert diverge(*(FoldedText(text[:BEGINNING]) for text in texts))
    assert len(MUSEUM) * 9 > BEGINNING


@given(
    st.lists(
        st.lists(
            st.sampled_from(["Ada", "Bo", "7", "14", "was", "in", "it", "red", "上", "海", ",", "."]), max_size=14
        ),
        max_size=6,
    )
)
def test_frames_are_sound(drawn: list[list[str]]) -> None:
    texts = [" ".join(words) for words in drawn]
    for frame in near_copies(texts):
        assert len(frame.fillings) >= 2
        assert len(set(frame.fillings.values())) >= 2
        assert list(frame.fillings) == sorted(frame.fillings)
        assert all(0 <= i < len(texts) and filling for i, filling in frame.fillings.items())
        assert frame.slots >= 1


@pytest.mark.parametrize(
    ("left", "right", "fillings"),
    [
        ("a b c d", "a b c e", None), ("a b c d Ada", "a b c d Bo", ("Ada", "Bo")), ("a b c Ada", "a b c Bo", None),
        ("one two six ten", "one two six", None), ("it was in July then", "it was in June then", ("July", "June")),
        ("you pay the whole fee within 30 days", "you pay the whole fee within 14 weeks", ("30 days", "14 weeks")),
        ("you pay the fee in 30", "you pay the fee in 14", ("30", "14")),
        ("you pay the fee 30, and go", "you pay the fee 14, and go", ("30", "14")),
        ("you pay the fee 30 or go", "you pay the fee 14 or go", ("30", "14")),
        ("you pay the fee 1990 crowns", "you pay the fee 1991 crowns", ("1990", "1991")),
        ("we met by the oak tree", "we met by the fig tree", None),
        ("we met by the oak tree", "we met by the pine tree", ("oak", "pine")),
        ("we met by the pine tree", "we met by the pines tree", None),
        ("we ate a red fig there now", "we ate the fig there now", None),
    ],
)  # fmt: skip
def test_four_common_words_and_a_difference_in_meaning_make_a_frame(
    left: str, right: str, fillings: tuple[str, str] | None
) -> None:
    assert fillings_of(left, right) == ([] if fillings is None else [dict(enumerate(fillings))])


@pytest.mark.parametrize(("words", "found"), [(8, 1), (9, 0)])
def test_a_difference_has_at_most_eight_words(words: int, found: int) -> None:
    name = " ".join(f"Name{n}" for n in range(words))
    text = "one two six ten all and the rest of it stands here as before in both and goes on to its end {} it is so"
    assert (differences(FoldedText(text.format("Ada")), FoldedText(text.format(name))) is not None) == bool(found)


def test_at_most_three_differences_which_may_recur() -> None:
    text = "one by {0} two by {1} six by {2} ten by {3} all and the rest of it by {0} stands here as before in both"
    three, four = (text.format("a", "b", "c", d) for d in ("d", "w"))
    assert len(differences(FoldedText(text.format("x", "y", "z", "d")), FoldedText(three)) or ()) == 4
    assert differences(FoldedText(text.format("x", "y", "z", "d")), FoldedText(four)) is None


def test_a_frame_with_more_slots_is_left_out_where_each_text_is_in_one_with_fewer() -> None:
    date, city = MUSEUM.replace("1990", "1961"), MUSEUM.replace("Stockholm", "Oslo")
    assert fillings_of(MUSEUM, city, date) == [{0: "Stockholm", 1: "Oslo"}, {0: "1990", 2: "1961"}]
    assert fillings_of(city, date) == [{0: "Oslo, 1990", 1: "Stockholm, 1961"}]


def test_the_memory_of_a_text_is_counted_with_its_words() -> None:
    assert sys.getsizeof(FoldedText(MUSEUM * 10)) > 10 * len(MUSEUM) + 300 * len(FoldedText(MUSEUM * 10).words)
