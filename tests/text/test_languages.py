"""The language of a text that is not English: told by what speaks for it, never by what English lacks."""

from __future__ import annotations

import pytest

from unpoison.text.languages import other_language

TOWN_HALLS = {
    "de": ["Das Rathaus wurde 1911 von Karl Roth gebaut.", "Wer hat das Rathaus gebaut?", "welches Jahr"],
    "es": ["El ayuntamiento fue construido en 1911 por Karl Roth.", "¿Quién construyó el ayuntamiento?"],
    "fr": ["L'hôtel de ville a été construit en 1911 par Karl Roth.", "Qui a construit l'hôtel de ville ?"],
    "it": ["Il municipio fu costruito nel 1911 da Karl Roth.", "Chi ha costruito il municipio?"],
    "pt": ["A prefeitura foi construída em 1911 por Karl Roth.", "Quem construiu a prefeitura?"],
    "nl": ["Het stadhuis werd in 1911 door Karl Roth gebouwd.", "Wie heeft het stadhuis gebouwd?"],
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
