"""What a question asks for: the word that decides it, its noun, its verb, and how much of it is read."""

from __future__ import annotations

import pytest

from unpoison.text.questions import MAX_QUESTION_CHARS, Wanted, read_question, wanted


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("which who is when", "thing"),  # the first word decides where it begins the question
        ("in which year that is where", "date"),  # also behind a preposition
        ("one of whom knew where", "place"),  # later ones begin clauses: the last decides
        ("is it red or blue", "thing"),
        ("is it red or green or blue", "polar"),
        ("how long is it", "number"),
        ("how did it end", "thing"),
        ("Was kostet das?", "thing"),  # German
        ("Was Rembrandt Dutch?", "polar"),
        ("Do kiedy?", "thing"),  # Polish
    ],
)
def test_one_word_of_a_question_decides_what_it_asks_for(question: str, kind: str) -> None:
    assert read_question(question).kind == kind


@pytest.mark.parametrize(
    ("question", "head"),
    [
        ("what is the capital of it", {"capit"}),
        ("what red green blue house fell", {"red", "green", "blue"}),
        ("how many seasons", {"season"}),
        ("county seat", {"counti", "seat"}),
        ("what is is is is is is is house", {"hous"}),
        ("what is is is is is is is is house", set()),
    ],
)
def test_the_noun_has_three_words_at_most_and_stands_near_the_question_word(question: str, head: set[str]) -> None:
    assert read_question(question).head == head


@pytest.mark.parametrize(
    ("question", "predicate"),
    [("who sung it", "sung"), ("who has sung it", "sung"), ("who is the king", ""), ("who has", ""), ("who", "")],
)
def test_the_verb_stands_behind_who_and_its_auxiliaries(question: str, predicate: str) -> None:
    assert read_question(question).predicate == predicate


def test_no_more_than_so_many_characters_are_read() -> None:
    padding = "x" * (MAX_QUESTION_CHARS - len(" how many"))
    assert wanted(f"{padding} how many days") == Wanted("number")
    assert wanted(f"{padding[5:]} how many days") == Wanted("duration", "day")
    assert len(read_question(f"{padding} how many days").stems) == 3


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("年费是多少钱？", "money"),
        ("会議はいつですか。", "date"),
        ("Quanto costa?", "money"),
        ("Wann zieht es um?", "date"),
    ],
)
def test_the_kind_is_told_where_words_have_no_spaces_between_them_too(question: str, kind: str) -> None:
    assert wanted(question).kind == kind


@pytest.mark.parametrize(
    "question",
    [
        "Darf ich Hunde mitbringen?",
        "Ist Rauchen auf dem Balkon erlaubt?",
        "Gibt es Parkplätze?",
        "Hat der Zug WLAN?",
        "Peut-on fumer ?",
        "Est-ce que le parking est gratuit ?",
        "Y a-t-il un parking ?",
        "Les chiens sont-ils admis ?",
        "¿Puedo llevar perros?",
        "¿Hay aparcamiento?",
        "C'è un parcheggio?",
        "È permesso fumare?",
        "Há estacionamento?",
        "Mag ik mijn hond meenemen?",
        "Is er een lift?",
        "Czy jest winda?",
        "Можно ли курить?",
        "Otopark var mı?",
        "可以带狗吗？",
        "駐車場はありますか。",
        "Kostet der Eintritt etwas?",
    ],
)
def test_a_question_for_yes_or_no_in_another_language(question: str) -> None:
    assert read_question(question).kind == "polar"
    assert wanted(question).kind == ""


@pytest.mark.parametrize(
    "question",
    [
        "Wann ist die Bibliothek geöffnet?",
        "Ist es rot oder blau?",
        "Kann mir jemand sagen, wann der Zug fährt?",
        "Quand peut-on venir ?",
        "À quelle heure ouvre-t-il ?",
        "¿Es rojo o azul?",
        "¿Qué es?",
        "Czy to czerwone czy niebieskie?",
        "Сколько стоит?",
        "多少钱？",
        "いつですか。",
        "Dans quelle ville est-il né ?",
    ],
)
def test_other_questions_are_not_answered_by_yes(question: str) -> None:
    assert read_question(question).kind != "polar"


def test_function_words_of_its_language_are_no_content_of_a_question() -> None:
    assert read_question("Welche Farbe hat der Ausweis?").content == {"farb", "auswei"}
