"""Words that mix scripts by letters that look alike."""

from __future__ import annotations

import pytest

from unpoison.text.homoglyphs import one_script

PLAIN = "The refund window is thirty days for every delivery. "


@pytest.mark.parametrize(
    ("word", "read", "changes"),
    [
        ("rеfund", "refund", 1),  # a Cyrillic ie
        ("раssроrt", "passport", 4),
        ("windоw", "window", 1),
        ("αlpha", "αlpha", 0),  # a formula, or the name of a protein: Greek at its edge
        ("bαnk", "bank", 1),
        ("β", "β", 0),
        ("ˈwɪndəʊ", "ˈwɪndəʊ", 0),  # a transcription
        ("заказ", "заказ", 0),
        ("аос", "aoc", 3),  # twins only, in a Latin text
        ("harbour", "harbour", 0),
    ],
)
def test_a_word_in_a_latin_text(word: str, read: str, changes: int) -> None:
    assert one_script(PLAIN + word) == (PLAIN + read, changes)


def test_in_a_cyrillic_text_latin_twins_become_cyrillic() -> None:
    text = "Срок возврата составляет тридцать дней, зaкaз бесплатный."  # two Latin a
    read, changes = one_script(text)
    assert (read, changes) == (text.replace("a", "а"), 2)


def test_a_latin_stem_with_a_cyrillic_ending_stays_there() -> None:
    text = "Обновите driverы и перезагрузите систему, затем проверьте журнал."
    assert one_script(text) == (text, 0)


@pytest.mark.parametrize("text", ["", "plain", "только кириллица", "日本語"])
def test_what_does_not_mix_is_the_same_object(text: str) -> None:
    assert one_script(text)[0] is text


RUSSIAN = "Срок возврата составляет тридцать дней для каждой посылки. "
GREEK = "Η προθεσμία επιστροφής είναι τριάντα ημέρες για κάθε δέμα. "


@pytest.mark.parametrize(
    ("around", "word", "read", "changes"),
    [
        (GREEK, "vόμoς", "vόμoς", 0),  # a Latin v has no Greek twin
        (GREEK, "μόνo", "μόνο", 1),
        (RUSSIAN, "cop", "cop", 0),  # a Latin word of twins is a Latin word
        (RUSSIAN, "cрок", "срок", 1),
        (RUSSIAN, "рocc", "росс", 3),
        (PLAIN, "banкnote", "banknote", 1),  # resembles, and is in the minority
        (PLAIN, "bкк", "bкк", 0),
        (PLAIN, "соорегаtе", "cooperate", 8),
        (PLAIN, "Ӏtem", "Item", 1),
    ],
)
def test_the_script_of_a_word_follows_its_text(around: str, word: str, read: str, changes: int) -> None:
    assert one_script(around + word) == (around + read, changes)
