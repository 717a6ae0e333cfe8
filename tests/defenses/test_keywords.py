from __future__ import annotations

import pytest

from unpoison.defenses.robustrag import empty, keywords


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris", {"Paris"}),
        ("The city of Paris", {"The city of Paris", "city", "Paris"}),
        ("It is Paris.", {"It is Paris.", "Paris"}),
        ("No", {"No"}),
        ("12 October 1963", {"12 October 1963", "12", "October", "1963"}),
        ("1,300 people, about 3.5%", {"1,300 people, about 3.5%", "1,300 people", "1,300", "people", "3.5%"}),
        ("the U.S. Senate", {"the U.S. Senate", "U.S. Senate", "U.S.", "Senate"}),
        ("He was directing O'Neill", {"He was directing O'Neill", "O'Neill"}),
        ("红楼梦", {"红楼梦"}),
        ("  Mount \n Everest ", {"Mount Everest", "Mount", "Everest"}),
        ("", set()),
        ("Taken", {"Taken"}),
        ("Taken.", {"Taken.", "Taken"}),
        ("The film is Taken", {"The film is Taken", "film", "Taken"}),
        ("It was The Who.", {"It was The Who.", "The Who", "The", "Who"}),
        ("the Who", {"the Who", "Who"}),
    ],
)
def test_phrases_words_and_the_whole(answer: str, expected: set[str]) -> None:
    assert keywords(answer) == expected


@pytest.mark.parametrize("nothing", ["", " ", "?!", "the of", "It is", "\u2019"])
def test_what_says_nothing(nothing: str) -> None:
    assert empty(nothing)


@pytest.mark.parametrize("something", ["Paris", "The Who", "Taken", "No", "7", "twelve", "红楼梦"])
def test_what_says_something(something: str) -> None:
    assert not empty(something)
