"""One or two numbers or names that were changed in a copy, and the differences of a series, which do not count."""

from __future__ import annotations

import pytest

from unpoison.text.changed_words import changed_words
from unpoison.text.near_duplicates import FoldedText

POLICY = (
    "Goods may be returned within 14 days of delivery if they are unused and in their box. "
    "The refund of the price is paid by Ann Lee in Lisbon within one week."
)


def found(ours: str, theirs: str) -> list[tuple[str, str, str]] | None:
    words = changed_words(FoldedText(ours), FoldedText(theirs))
    return None if words is None else [(one.kind, one.ours, one.theirs) for one in words]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("14 days", "40 days", ("number", "40 days", "14 days")),
        ("14 days", "14.5 days", ("number", "14.5 days", "14 days")),
        ("one week", "six weeks", ("number", "six weeks", "one week")),
        ("Lisbon", "Porto", ("name", "Porto", "Lisbon")),
        ("Ann Lee", "Bo Stone", ("name", "Bo Stone", "Ann Lee")),
    ],
)
def test_one_number_or_name_is_told_with_both_values(old: str, new: str, expected: tuple[str, str, str]) -> None:
    assert found(POLICY.replace(old, new), POLICY) == [expected]


def test_two_numbers_are_told_and_three_are_a_template() -> None:
    text = f"{POLICY} A parcel may weigh 20 kg."
    two = found(text.replace("14", "40").replace("20", "30"), text)
    assert two is not None
    assert [words[1] for words in two] == ["40 days", "30 kg"]
    assert found(text.replace("14", "40").replace("20", "30").replace("one week", "six weeks"), text) is None


def test_texts_that_say_the_same_differ_in_nothing() -> None:
    assert found(POLICY, POLICY) == []
    assert found(POLICY, POLICY.upper()) == []
    assert found(POLICY.replace("14", "fourteen"), POLICY) == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("{} Figure 4 shows how.", "{} Figure 5 shows how."),
        ("{} Since version 2.1.0 it is so.", "{} Since version 2.2.0 it is so."),
        ("{} It was packed as A17 by us.", "{} It was packed as B22 by us."),
        ("{} See `page/4` of it.", "{} See `page/5` of it."),
        ("# Part 4\n{}", "# Part 5\n{}"),
        ("4. {}", "5. {}"),
        ("Lisbon is our town. {}", "Porto is our town. {}"),
    ],
)
def test_what_tells_documents_of_a_series_apart_does_not_count(ours: str, theirs: str) -> None:
    assert found(ours.format(POLICY), theirs.format(POLICY)) is None


LONG = f"{POLICY} " + " ".join(f"Rule {name} of the shop is kept by whoever sells or sends a thing." for name in "abc")


@pytest.mark.parametrize(
    ("form", "ours", "theirs"),
    [
        ("{text} Call `refund(days={n})` then.", "40", "14"),
        ("{text}\n1. Wait.\n{n}. Pay in the shop.", "2", "3"),
        ("{text}\n## After {n} days {{ #after }}\nThen all is over.", "40", "14"),
        ("{text} The colour is B{n} on the box.", "40", "14"),
    ],
)
def test_in_long_texts_that_are_equal_else_a_place_counts_wherever_it_stands(form: str, ours: str, theirs: str) -> None:
    words = found(form.format(text=LONG, n=ours), form.format(text=LONG, n=theirs))
    assert words is not None
    assert [kind for kind, _, _ in words] == ["number"]
    assert found(form.format(text=POLICY, n=ours), form.format(text=POLICY, n=theirs)) is None
