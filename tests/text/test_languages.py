"""The language of a text that is not English: told by what speaks for it, never by what English lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.languages import (
    Phrases,
    duration_unit,
    fold,
    has_decimal_comma,
    is_mixed,
    mentions,
    other_language,
    phrases,
    pieces,
    word_value,
)  # fmt: skip

TOWN_HALLS = {
    "de": ["Das Rathaus wurde 1911 von Karl Roth gebaut.", "Wer hat das Rathaus gebaut?", "welches Jahr"],
    "es": ["El ayuntamiento fue construido en 1911 por Karl Roth.", "¿Quién construyó el ayuntamiento?"],
    "fr": ["L'hôtel de ville a été construit en 1911 par Karl Roth.", "Qui a construit l'hôtel de ville ?"],
    "it": ["Il municipio fu costruito nel 1911 da Karl Roth.", "Chi ha costruito il municipio?"],
    "pt": ["A prefeitura foi construída em 1911 por Karl Roth.", "Quem construiu a prefeitura?"],
    "nl": ["Het stadhuis werd in 1911 door Karl Roth gebouwd.", "Wie heeft het stadhuis gebouwd?"],
    "pl": ["Ratusz został zbudowany w 1911 roku przez Karla Rotha.", "Kto zbudował ratusz?", "Ile wynosi czynsz?"],
    "cs": ["Radnici postavil v roce 1911 Karl Roth, který byl architektem.", "Ve kterém roce byla postavena radnice?"],
    "sv": ["Rådhuset byggdes 1911 av Karl Roth och ligger vid torget.", "Vilka dagar kan man besöka rådhuset?"],
    "da": ["Hvilke dage er rådhuset åbent?", "Hva koster det å parkere ved rådhuset?"],
    "tr": ["Belediye binası 1911 yılında Karl Roth tarafından yapıldı ve çok büyük.", "Nereden gidilir belediyeye?"],
    "id": ["Balai kota dibangun oleh Karl Roth pada tahun 1911.", "Bagaimana cara memohon permit?"],
    "ro": ["Primăria a fost construită în 1911 de Karl Roth.", "Câți angajați lucrează aici?", "unde este primaria"],
    "hu": ["A városháza 1911-ben épült, és Karl Roth tervezte az épületet.", "Mennyi idő alatt készült el?"],
    "fi": ["Kaupungintalo rakennettiin 1911, ja sen suunnitteli Karl Roth.", "Kuinka paljon lippu maksaa?"],
    "sw": ["Jengo la manispaa lilijengwa mwaka wa 1911 na Karl Roth.", "Ukumbi wa mji unafunguliwa siku gani?"],
    "zh": ["市政厅由 Karl Roth 于1911年建造。", "谁建造了市政厅？"],
    "ja": ["市庁舎は1911年にカール・ロートによって建てられた。"],
    "ko": ["시청은 1911년에 카를 로트가 지었다."],
    "und-Cyrl": ["Ратушу построил Карл Рот в 1911 году."],
    "und-Arab": ["تم بناء دار البلدية عام 1911"],
    "und": [
        "Το δημαρχείο χτίστηκε το 1911 από τον Καρλ Ροτ.",
        "Toà thị chính được Karl Roth xây dựng vào năm 1911, và là một trong những công trình đẹp nhất",
    ],
}


@pytest.mark.parametrize(("language", "text"), [(name, text) for name, texts in TOWN_HALLS.items() for text in texts])
def test_sentences_and_questions_of_other_languages_are_told(language: str, text: str):
    assert other_language(text) == language


@pytest.mark.parametrize(
    "text",
    [
        "",
        "who wrote 红楼梦",
        "Beijing (北京) is the capital of China (中国)",
        "la la land cast",
        "de la soul members",
        "rio de janeiro olympics",
        "El Niño vs La Niña",
        "Der Spiegel",
        "Ludwig van der Rohe",
        "André, Zoë and Renée",
        "naïve café résumé",
        "∑ α β γ = δ",
        "Nani Manchester United goals",
        "Redding - Airport, California (1 mi / 1 km), Anderson (3 mi / 5 km), Palo Cedro (6 mi / 9 km)",
        "care home cum nursing home",
        "Nike Inc. | 2020 | 37.4 bn | +7 %",
        "select id, name from users where id in (5, 6)",
        "def main(o, e): return (e or o)",
        "What does the German word Schadenfreude mean?",
        'The sign says "Wer hat das Rathaus gebaut, und für wen?" in large letters above the door of the house.',
        "Who wrote 'Wer hat den Brief'?",
        "what is the meaning of “et il est mort dans le jardin”",
        "The book is called Cien años de soledad in Spanish, and it was written by Gabriel García Márquez.",
        "Gustaf Adolf Westring, Stig Norén, Gösta Odqvist, Åke Sagrén, Örjan Ström, Pär Åström, Sölve Björk",
    ],
)
def test_names_quotations_tables_and_code_are_english(text: str):
    assert other_language(text) is None


@pytest.mark.parametrize(
    "text",
    ["Wer schrieb 'The Lord of the Rings'?", '"Wer hat den Brief geschrieben?"', "L'eau et l'air sont dans la mer"],
)
def test_a_quotation_does_not_hide_the_language_around_it(text: str):
    assert other_language(text) == ("fr" if "eau" in text else "de")


@given(st.text(max_size=40))
def test_folding_keeps_every_position(text: str) -> None:
    assert len(fold(text)) == len(text)
    folded = fold(text)
    assert all(folded[piece.start : piece.end] == piece.text for piece in pieces(folded))


@pytest.mark.parametrize(
    ("text", "folded"), [("ÉTÉ", "ete"), ("\u0663", "3"), ("½", "½"), ("a\u2013b", "a-b"), ("l\u2019an", "l'an")]
)
def test_case_accents_and_marks_are_one(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_a_piece_is_a_date_a_time_a_number_a_word_or_a_sign() -> None:
    assert [piece.text for piece in pieces("on 3/4/2020 at 10:30, 1,250.5 l'an x_1")] == [
        "on", "3/4/2020", "at", "10:30", ",", "1,250.5", "l'", "an", "x", "_", "1",
    ]  # fmt: skip


def test_the_longest_phrase_counts() -> None:
    table = phrases("dayparts")
    assert (table.at(["a", "m", "x"], 0), table.at(["am", "x"], 0)) == (None, ("am", 1))
    assert table.get("harbour") is None
    assert phrases("numbers").get("seven") == 7
    assert phrases("numbers").before(["seven", "days"], 1)
    assert not phrases("numbers").before(["seven", "days"], 2)


@pytest.mark.parametrize(
    ("word", "unit"), [("Stunden", "hour"), ("days", "day"), ("か月", "month"), ("kg", ""), ("harbour", "")]
)
def test_units_of_time(word: str, unit: str) -> None:
    assert duration_unit(word) == unit


def test_a_text_that_has_a_phrase_of_a_table() -> None:
    assert mentions("weekdays", "It opens on Monday.")
    assert not mentions("weekdays", "It opens at noon.")


@pytest.mark.parametrize(
    ("text", "mixed"),
    [
        ("इस feature को enable करने के लिए config file में एक line जोड़ें", True),
        ("Откройте файл settings.json и добавьте строку", True),
        ("The word for bread is хлеб, and nothing else in this long sentence is of another script.", False),
        ("x = \u03b1 + \u03b2 is a formula", False),
        ("plain", False),
    ],
)
def test_scripts_are_mixed_from_a_tenth_of_the_letters(text: str, mixed: bool) -> None:
    assert is_mixed(text) == mixed


@pytest.mark.parametrize(("letters", "mixed"), [(20, True), (21, False)])
def test_a_tenth_is_a_tenth_and_a_single_letter_a_formula(letters: int, mixed: bool) -> None:
    assert is_mixed("a" * letters + "йй") == mixed
    assert not is_mixed("a" * letters + "й")


@pytest.mark.parametrize(
    ("text", "comma"),
    [
        ("Das kostet 1,250 Euro und der Rest ist frei.", True), ("Цена 1,250 рублей", True),
        ("The price is 1,250.", False),
        ("价格是1,250元", False), ("זה עולה 1,250", False), ("कीमत 1,250 है", False),
    ],
)  # fmt: skip
def test_where_a_comma_stands_before_the_parts_of_one(text: str, comma: bool) -> None:
    assert has_decimal_comma(text) == comma


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("wer", "de"), ("was kostet", "de"), ("the was der die", None), ("ñandú über café", None),
        ("ñandú über table école", "und"), ("ñandú table café plank", "und"), ("ñandú table plank école lamp", None),
        ("żaba żaba" + " table" * 9, None), ("żaba żaba" + " table" * 10, "und"), ("żaba żaba" + " table" * 11, "und"),
        ("żaba żaba" + " table" * 12, None), ("żaba żaba the" + " table" * 10, None),
    ],
)  # fmt: skip
def test_how_much_speaks_for_another_language(text: str, language: str | None) -> None:
    assert other_language(text) == language


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("seven", (7,)), ("zweihundertfunfzig", (2, 100, 50)), ("einhundert", (1, 100)), ("vierundzwanzig", (4, 20)),
        ("cinquantacinque", (50, 5)), ("ventuno", (20, 1)), ("hundert" * 8 + "zwei", (100,) * 8 + (2,)),
        ("hundert" * 8 + "zehnz", ()), ("dreizehnx", ()), ("ab", ()), ("12", ()), ("hundert5", ()), ("", ()),
    ],
)  # fmt: skip
def test_the_numbers_of_which_a_word_is_made(word: str, values: tuple[int, ...]) -> None:
    assert word_value(word) == values


def test_phrases_are_found_at_a_place_and_the_longest_counts() -> None:
    table = Phrases({"x": "a, a b, a b c", "y": "b, d", "z": "p q r s"})
    found = [table.at(text.split(), 0) for text in ("a b c", "a b d", "a c", "b'", "d", "c", "p q r t")]
    assert found == [("x", 3), ("x", 2), ("x", 1), ("y", 1), ("y", 1), None, None]
    assert table.at(["d", "a", "b"], 1) == ("x", 3)
    assert [table.get(word) for word in ("a", "c", "p")] == ["x", None, None]
    assert table.single_words() == {"a": "x", "b": "y", "d": "y"}
    assert [place for place in range(6) if table.before(["z", "a", "b", "c", "z"], place)] == [3, 4]
    assert not table.before(["p", "q", "r", "s"], 4), "longer than three words"
    assert Phrases({"x": "a b c"}).before(["a", "b", "c"], 3)


def test_tables_of_tables_name_both() -> None:
    table = phrases("parts")
    assert table.at(["working", "days", ""], 0) == (("days", "working"), 1)
    assert phrases("parts", "days").at(["working", "days", ""], 0) == ("working", 1)


@pytest.mark.parametrize(
    ("text", "folded"),
    [("ǆ", "ǆ"), ("ß", "ß"), ("Ⅷ", "ⅷ"), ("①", "①"), ("ı", "i"), ("İ", "i"), ("～〜", "~~"),
     ("ﬁ", "ﬁ"), ("\u02bc\u2018", "''"),
     ("\u2010\u2011\u2014\u2212", "----"), ("Ä", "a"), ("٣", "3")],
)  # fmt: skip
def test_a_character_is_folded_where_that_is_one(text: str, folded: str) -> None:
    assert fold(text) == folded
