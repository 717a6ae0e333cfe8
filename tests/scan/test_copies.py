"""Near-copies are looked up by what they share, whatever they begin with."""

from __future__ import annotations

from unpoison.scan.changed import copy_candidates

PAGE = (
    "Goods may be returned within 14 days of delivery if they are unused and in their box. "
    "The refund is paid by the method that was used for the purchase, and the parcel is paid by us."
)
OTHER = "The bridge over the river has five arches of stone, and boats pass below it at low tide when the wind is calm."


def test_a_copy_with_one_word_changed_is_found_and_another_text_is_not() -> None:
    assert copy_candidates([PAGE, OTHER, PAGE.replace("14", "40")]) == {0: [2], 2: [0]}


def test_what_a_text_begins_with_does_not_count() -> None:
    texts = [f"And then {name} said: {PAGE}" for name in ("Ann", "Bo")]
    assert copy_candidates([*texts, OTHER]) == {0: [1], 1: [0]}


def test_a_crowd_of_copies_is_bounded() -> None:
    """Each is compared with a few, however many there are."""
    found = copy_candidates([PAGE] * 300)
    assert len(found) == 300
    assert max(map(len, found.values())) <= 32


def test_a_text_within_a_much_longer_one_is_no_copy_of_it() -> None:
    assert copy_candidates([PAGE, f"{PAGE} {OTHER}"]) == {}
