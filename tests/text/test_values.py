"""Values of a kind: which kind a question asks for, what a text holds, and whether two are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unpoison.text.questions import Wanted, read_question, wanted
from unpoison.text.sentences import sentences
from unpoison.text.values import (
    agree,
    answers_kind,
    compare,
    compare_all,
    find_value,
    fits,
    one_of_each,
    question_coverage,
    several,
    values,
    without_values,
)


@pytest.mark.parametrize(
    ("question", "kind", "unit"),
    [
        ("How long is the warranty?", "duration", ""),
        ("Within how many days must claims be filed?", "duration", "day"),
        ("Wie viele Wochen Elternzeit gibt es?", "duration", "week"),
        ("¿Cuántos días de vacaciones hay?", "duration", "day"),
        ("Combien de jours de congé ?", "duration", "day"),
        ("Quanti giorni di ferie ci sono?", "duration", "day"),
        ("Hoeveel dagen verlof zijn er?", "duration", "day"),
        ("Quantos dias de férias há?", "duration", "day"),
        ("Ile dni urlopu przysługuje?", "duration", "day"),
        ("Wann zieht das Büro um?", "date", ""),
        ("What is the IBAN of the company?", "iban", ""),
        ("How many people live there?", "number", ""),
        ("Quanto tempo dura la garanzia?", "duration", ""),
        ("Quanto costa?", "money", ""),
        ("Who wrote it?", "", ""),
        ("Within what time must a lost badge be reported?", "duration", ""),
        ("How fast are Gold customers answered?", "duration", ""),
        ("What is the rate limit?", "number", ""),
        ("Wie hoch ist ein Geschäftsanteil?", "number", ""),
        ("Wer ist verantwortlich?", "person", ""),
        ("Où se trouve l'entrée ?", "place", ""),
        ("Welches Achsgewicht ist zulässig?", "number", "mass"),
        ("How much does the tent weigh?", "number", "mass"),
        ("How tall is the tower?", "number", "length"),
        ("How many people fit in?", "number", ""),
        ("Which port does the server listen on?", "code", ""),
        ("Which port does the ferry leave from?", "", ""),
        ("保修期是多久？", "duration", ""),
        ("会議はいつですか。", "date", ""),
        ("年费是多少钱？", "money", ""),
        ("客服电话是多少？", "phone", ""),
        ("Сколько дней длится отпуск?", "duration", "day"),
        ("Сколько это стоит?", "money", ""),
        ("Когда собрание?", "date", ""),
        ("İzin kaç gün?", "duration", "day"),
        ("Toplantı ne zaman?", "date", ""),
    ],
)
def test_the_kind_that_a_question_asks_for(question: str, kind: str, unit: str):
    assert wanted(question) == (kind, unit)


def test_values_agree_across_languages_and_units():
    assert agree("36 months", "drei Jahre", "duration") == "equal"
    assert agree("a warranty of 36 months", "36 Monaten", "duration") == "equal"
    assert agree("1 September", "1. September 2026", "date") == "compatible"
    assert agree("1. September", "1. November", "date") == "rival"
    assert agree("49 EUR", "57 EUR", "money") == "rival"
    assert agree("after 40 minutes", "24 hours", "duration") == "rival"
    assert agree("more than 40 minutes", "24 hours", "duration") == "open"
    assert agree("forever", "36 months", "duration") is None
    assert agree("600", "60 on the free tier, 600 on Pro", "number") == "equal"
    assert agree("700", "60 on the free tier, 600 on Pro", "number") == "rival"
    assert agree("3.2 % for 2025", "7.5 % for 2025", "number", "How high is the dividend for 2025?") == "rival"


def test_values_are_removed_however_they_are_written():
    assert without_values("It moves on 1 September, not on 1 November.", "1 September 2026") == (
        "It moves on , not on 1 November."
    )
    assert without_values("drei Jahre oder 60 Monate", "36 months") == " oder 60 Monate"


def test_an_answer_of_another_kind_is_none():
    assert answers_kind("99.95 % | 24/7", "duration") is False
    assert answers_kind("three", "duration") is True
    assert answers_kind("for ever", "duration") is None
    assert answers_kind("DE298771204", "iban") is False


def test_the_value_beside_the_question_s_words_is_found():
    text = "Protokolle werden zwölf Monate, Sicherungen 35 Tage und Rechnungen zehn Jahre aufbewahrt."
    found = find_value("Wie lange werden Sicherungen aufbewahrt?", text, Wanted("duration"))
    assert found is not None and found[0] == "35 Tage"
    assert find_value("Wie lange?", "Nichts.", Wanted("duration")) is None


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        ("Wann liegt das Blutbild vor?", "Das Blutbild liegt nach 25 Minuten vor.", "nach 25 Minuten"),
        ("Wie hoch ist ein Anteil?", "§ 3 Ein Anteil beträgt 250 Euro. Der Rat hat fünf Mitglieder.", "250 Euro"),
        ("What is the minimum Android version of App 5.2?", "App 5.2: the minimum Android version is 11.", "11"),
        ("Wer ist für Hygiene verantwortlich?", "SOP HY-02. Verantwortlich: Dr. Miriam Ahlbeck, Hygiene.",
         "Dr. Miriam Ahlbeck"),
        ("Où se trouve l'entrée ?", "L'entrée du Lindenhof se trouve rue des Tilleuls.", "rue des Tilleuls"),
        ("Wer gibt Auskunft zur Miete?", "Die Miete ist fällig. Auskunft gibt Helga Brandt.", "Helga Brandt"),
        ("Wo ist das Büro?", "Das Büro ist am Schwedenkai 4.", "Schwedenkai 4"),
        ("会議はいつですか。", "次の会議は3月15日に行います。", "3月15日"),
    ],
)  # fmt: skip
def test_values_are_found_by_kind_and_by_what_fits(question: str, text: str, value: str):
    found = find_value(question, text, wanted(question))
    assert found is not None and found[0] == value


def test_the_share_of_a_question_s_words_that_a_text_holds():
    assert question_coverage("How long are returned medicines kept?", "Returned medicines are kept cool.") == 1
    assert question_coverage("How long are returned medicines kept?", "Consent forms are kept.") == 1 / 3
    assert question_coverage("Why?", "Anything.") == 1


@pytest.mark.parametrize(
    "text",
    [
        "Das Büro zieht am 1. September 2026 um.",
        "Bis 31. März gilt bzw. endet der Vertrag.",
        "Das gilt nach Art. 12 und Nr. 5 z. B. sofort.",
        "Der 3. Stock kostet ca. 5 Mio. Euro.",
        "El Sr. López vive en la pág. 5 del libro.",
        "Mme. Claire habite ici.",
        "Il dott. Rossi abita qui.",
        "Dhr. Jansen ziet bijv. dit.",
        "O Exmo. Sr. Silva mora aqui.",
        "Mieszka przy ul. Długiej w godz. porannych.",
    ],
)
def test_ordinals_and_abbreviations_end_no_sentence(text: str):
    assert len(sentences(text)) == 1 or text.startswith("Dhr")


def test_numbers_end_sentences():
    assert len(sentences("It was 1995. The end. He is 12. They left.")) == 4
    assert len(sentences("会议于3月15日举行。费用为250元。年会は5月です。")) == 3
    assert len(sentences("Bewerbung bis\n30. Juni")) == 2


@given(st.text(alphabet="٣1.,'-: /²EUR daysSeptember\u202f\ud800%", max_size=60))
def test_no_text_breaks_it(text: str):
    for value in values(text):
        assert 0 <= value.start < value.end <= len(text)
    asked = wanted(text)
    assert answers_kind(text, asked.kind) in (True, False, None)
    assert agree(text, "3 days", "duration") in ("equal", "compatible", "open", "risky", "rival", None)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Which author won the prize?", "person"),
        ("The university that he attended was founded in what year?", "date"),
        ("what county is it in", "place"),
        ("how much was spent", "number"),
        ("Are both of them plants?", "polar"),
        ("is it more common in males or females?", "thing"),
        ("", "thing"),
    ],
)
def test_the_type_of_answer_that_an_english_question_wants(question: str, kind: str):
    assert read_question(question).kind == kind


VERDICTS = [
    ("40 minutes", "more than 40 minutes", "risky"),
    ("more than 3 days", "less than 3 days", "rival"),
    ("at most 3 days", "at least 3 days", "rival"),
    ("within 3 days", "at most 3 days", "equal"),
    ("more than 3 days", "more than 5 days", "rival"),
    ("more than 3 days", "5 days", "open"),
    ("more than 5 days", "3 days", "rival"),
    ("before 1 May 2020", "after 1 May 2020", "rival"),
    ("until 1 May 2020", "before 1 May 2020", "equal"),
    ("1 May 2020", "May 2020", "compatible"),
    ("1 May 2020", "2 May 2020", "rival"),
    ("May 2020", "1 May", "risky"),
    ("3/4/2020", "4 March 2020", "open"),
    ("9 am", "9:00", "equal"),
    ("9 pm", "9 am", "rival"),
    ("9 o'clock", "9 pm", "compatible"),
    ("40%", "0.4", "equal"),
    ("3 km", "3000 m", "equal"),
    ("3 kg", "3 km", "rival"),
    ("£5", "5 pounds", "equal"),
    ("£5", "6 pounds", "rival"),
    ("20 degrees Celsius", "20 degrees", "compatible"),
    ("20 degrees Celsius", "20 degrees Fahrenheit", "rival"),
    ("5 apples", "5 pears", "risky"),
    ("5 apples", "6 pears", "rival"),
    ("5 apples", "5", "equal"),
    ("3-5 days", "3 days", "risky"),
]


@pytest.mark.parametrize(("left", "right", "verdict"), VERDICTS)
def test_how_two_values_are_related_either_way(left: str, right: str, verdict: str) -> None:
    assert compare(values(left)[0], values(right)[0]) == compare(values(right)[0], values(left)[0]) == verdict


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ("3 days on Monday", "3 days", "compatible"),
        ("3 days", "Monday", None),
        ("Monday", "1 May 2020", "open"),  # both say when
        ("3 days or 5 days", "5 days or 3 days", "equal"),
        ("3 days or 5 days", "5 days", "risky"),
        ("3 days or 5 days", "7 days", "rival"),
    ],
)
def test_how_several_values_are_related(left: str, right: str, verdict: str | None) -> None:
    assert compare_all(values(left), values(right)) == compare_all(values(right), values(left)) == verdict


def test_several_values_of_a_kind_without_those_of_the_question() -> None:
    assert several("3 days or 5 days", "duration")
    assert not several("3 days", "duration")
    assert not several("3 days for version 4.3", "number", "What of version 4.3?")
    assert one_of_each(values("3 days on Monday"))
    assert not one_of_each(values("3 days or 5 days"))


def test_dollars_of_two_countries_are_two_currencies() -> None:
    """Their units are no measures, and still are part of the sum."""
    assert agree("40 US dollars", "40 Australian dollars", "money") == "risky"
    assert agree("40 Canadian dollars", "40 Canadian dollars", "money") == "equal"


def test_a_question_for_a_time_asks_for_no_sum_or_duration_that_it_mentions() -> None:
    assert wanted("When is the fee due?").kind == wanted("Wann endet die Frist?").kind == "date"
    assert agree("el 15 de abril", "15/04", "date", "¿Cuándo termina el plazo?") == "equal"


@pytest.mark.parametrize(
    ("question", "answer", "fit"),
    [
        ("How much does the tent weigh?", "2.1 kg", True),
        ("How much does the tent weigh?", "two persons", False),
        ("How much does the tent weigh?", "2.1", True),
        ("How much does the tent weigh?", "as much as a cat", None),
        ("How many people fit in?", "two persons", True),
        ("Which port does the server listen on?", "7421", True),
        ("Which port does the server listen on?", "integer", False),
        ("Which port does the server listen on?", "MPL 2.0", False),
    ],
)
def test_an_answer_measures_what_is_asked_for(question: str, answer: str, fit: bool | None) -> None:
    assert fits(answer, wanted(question)) is fit


def test_what_is_measured_and_the_number_of_a_code_are_found_in_a_passage() -> None:
    question, text = "How much does the tent weigh?", "The tent is for 2 persons and has 2.1 kg."
    assert (found := find_value(question, text, wanted(question))) is not None and found[0] == "2.1 kg"
    question, text = "Which port does the server listen on?", "The server has 3 workers; its port is 7421 (integer)."
    assert (found := find_value(question, text, wanted(question))) is not None and found[0] == "7421"
