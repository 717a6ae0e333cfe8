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


def test_where_ours_stands_is_told() -> None:
    folded = FoldedText(POLICY.replace("14", "40"))
    words = changed_words(folded, FoldedText(POLICY))
    assert words is not None
    assert folded.words[slice(*words[0].place)] == ["40"]


def test_the_same_number_changed_twice_is_one_change() -> None:
    text = f"{POLICY} After 14 days nothing is refunded."
    assert found(text.replace("14", "40"), text) == [("number", "40 days", "14 days")]


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


@pytest.mark.parametrize("form", ["# Part {}\n{}", "{1} Figure {0} shows how.", "{1} Since version {0}.1.0 it is so."])
def test_subjects_figures_and_versions_of_long_texts_are_of_a_series(form: str) -> None:
    assert found(form.format(4, LONG), form.format(5, LONG)) is None


def test_a_second_change_makes_long_texts_a_series_too() -> None:
    text = f"{LONG} Call `refund(days={{}})` once, and do so in the first of the shops by the sea near Lisbon."
    assert found(text.format(40).replace("near Lisbon", "near Porto"), text.format(14)) is None


def test_marks_behind_a_name_are_no_part_of_it() -> None:
    text = f"{POLICY} It was sent by **{{}}**, and `{{}}` was the word."
    assert found(text.format("Porto", "x"), text.format("Faro", "x")) == [("name", "Porto", "Faro")]


def test_documents_of_other_dates_may_have_other_numbers() -> None:
    report = "On 4 May 2026 the sky over the harbour was clear from dawn to dusk and it was 14 degrees warm at noon."
    assert found(report.replace("14", "17"), report) == [("number", "17 degrees", "14 degrees")]
    assert found(report.replace("14", "17").replace("4 May", "5 May"), report) is None
    assert found(report.replace("14", "17").replace("2026", "2027"), report) is None


def test_tables_bold_letters_and_prices_are_read() -> None:
    text = "These are our rules:\n\n| service | within | price |\n| repair of a crane | **{}** days | ${} | by us\n"
    assert found(text.format(40, 20), text.format(14, 20)) == [("number", "40", "14")]
    assert found(text.format(14, 30), text.format(14, 20)) == [("number", "30", "20")]
    plain = text.replace("*", "")
    assert found(plain.format(40, 20), plain.format(14, 20)) == [("number", "40 days", "14 days")]


def test_a_year_alone_is_a_changed_number() -> None:
    text = "The old bridge over the river was built of stone in 1765 and has five arches."
    assert found(text.replace("1765", "1865"), text) == [("number", "1865", "1765")]


def test_texts_that_differ_in_more_are_no_copies() -> None:
    assert found(POLICY.replace("unused", "new"), POLICY) is None
    assert found(f"{POLICY} Other rules hold for 30 days.", POLICY) is None
    assert found("It takes 14 days.", "It takes 40 days.") is None
    assert found("", POLICY) is None
