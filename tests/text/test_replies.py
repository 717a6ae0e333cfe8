"""Replies as models write them: what they think first, and how they decline in many languages."""

from __future__ import annotations

import time

import pytest

from unpoison.text.replies import ReasoningFilter, informative, without_reasoning

REASONED = {
    "<think>I don't know yet.</think>Stockholm": "Stockholm",
    "<think>\nno\n</think>\n\nStockholm": "Stockholm",
    "<THINK>no</THINK> Stockholm": "Stockholm",
    "\n<reasoning>no</reasoning>\n<think>no</think>\nStockholm": "Stockholm",
    "<thinking>a < b, <b>c</b></thinking>Stockholm": "Stockholm",
    "[THINK]no[/THINK]Stockholm": "Stockholm",
    "\u25c1think\u25b7no\u25c1/think\u25b7Stockholm": "Stockholm",
    "<|begin_of_thought|>no<|end_of_thought|>\n<|begin_of_solution|>Stockholm<|end_of_solution|>": "Stockholm",
    "<|START_THINKING|>no<|END_THINKING|><|START_RESPONSE|>Stockholm<|END_RESPONSE|>": "Stockholm",
    "<|channel|>analysis<|message|>no<|end|><|start|>assistant<|channel|>final<|message|>Stockholm": "Stockholm",
    "<|channel|>final<|message|>Stockholm<|return|>": "Stockholm",
    "analysisThe user asks.assistantfinalStockholm": "Stockholm",
    "\u017fo <think>": "\u017fo <think>",
    "Stockholm": "Stockholm",
    " Stockholm \n": " Stockholm \n",
    "analysis of variance": "analysis of variance",
    "<thinkers> of Greece": "<thinkers> of Greece",
    "<b>Stockholm</b>": "<b>Stockholm</b>",
    "Use <think>x</think> tags": "Use <think>x</think> tags",
    "<": "<",
    "": "",
}
CUT_OFF = ("<think>I wonder", "<think>", "<reasoning>a</think>b", "<|channel|>analysis<|message|>no<|end|>",
           "analysisThe user asks", "<think>no</think><think>no")  # fmt: skip


@pytest.mark.parametrize(("reply", "shown"), REASONED.items())
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_reasoning_before_the_answer_is_removed_from_replies_and_streams(reply: str, shown: str, size: int) -> None:
    assert without_reasoning(reply) == (shown, False)
    stream = ReasoningFilter()
    pieces = [stream.feed(reply[i : i + size]) for i in range(0, len(reply), size)]
    heard = "".join([*pieces, stream.close()])
    assert heard.strip().startswith(shown.strip())
    assert "no" not in heard or "no" in shown
    assert not stream.unclosed


@pytest.mark.parametrize("reply", CUT_OFF)
def test_an_unclosed_block_is_a_reply_cut_off(reply: str) -> None:
    assert without_reasoning(reply) == ("", True)
    stream = ReasoningFilter()
    assert [stream.feed(letter) for letter in reply] == [""] * len(reply)
    assert stream.close() == ""
    assert stream.unclosed


def test_an_end_without_a_beginning_was_opened_by_the_template() -> None:
    assert without_reasoning("I wonder.</think>\n\nStockholm") == ("Stockholm", False)


def test_pieces_that_can_be_no_marker_are_shown_at_once() -> None:
    stream = ReasoningFilter()
    assert [stream.feed(piece) for piece in ("St", "ock", "holm <think>")] == ["St", "ock", "holm <think>"]


def test_a_long_block_takes_linear_time() -> None:
    stream, begun = ReasoningFilter(), time.process_time()
    for piece in ["<think>", *["word "] * 100_000, "</think>", "Stockholm"]:
        stream.feed(piece)
    assert time.process_time() - begun < 3


DECLINES = """
I don't know.
i don’t know
I dont know
N/A
Unknown.
**Unknown**
The passages do not say.
The passages don't say who wrote it.
The provided text does not mention the capital of Sweden.
The given passages do not contain information about the question.
Based on the passages, the context doesn't specify the year.
None of the passages mentions the capital.
No passage gives the answer.
There is no information about this in the passages.
There is no mention of the capital of Sweden.
No information is provided about the capital.
The answer is not in the passages.
The answer is not provided in the given context.
The answer cannot be determined from the passages.
The question cannot be answered with the given information.
It is not stated in the passages.
Not mentioned in the text.
I cannot answer this question.
I'm sorry, but I can't help with that.
Sorry, the passages do not say.
Unfortunately, the documents don't provide this.
I'm unable to determine the answer.
As an AI language model, I have no access to this.
Unable to determine.
Insufficient information to answer.
It is unclear from the passages.
What is the capital? The passages do not say.
The passages do not say, but they do mention that Sweden is in Europe.
The passages are silent on this.
Ich weiß es nicht.
Das weiß ich leider nicht.
Ich kann die Frage nicht beantworten.
Die Passagen sagen dazu nichts.
Der Text enthält keine Angaben dazu.
Das geht aus dem Text nicht hervor.
Es wird nicht erwähnt.
Unbekannt
Je ne sais pas.
Je ne peux pas répondre à cette question.
Les passages ne le disent pas.
Le texte ne mentionne pas la capitale.
Aucune information n'est donnée.
No lo sé.
No sé la respuesta.
Los pasajes no lo dicen.
No se menciona en el texto.
El texto no proporciona esa información.
Non lo so.
I brani non lo dicono.
Il testo non menziona la capitale.
Não sei.
Os textos não dizem.
O texto não menciona a capital.
Ik weet het niet.
De passages vermelden dit niet.
Dat wordt niet vermeld.
Jag vet inte.
Texten säger inget om det.
Jeg ved det ikke.
Nie wiem.
Tekst nie podaje tej informacji.
Nevím.
Bilmiyorum.
Metinde belirtilmemiş.
Saya tidak tahu.
Teks tidak menyebutkan hal itu.
Tôi không biết.
Nu știu.
Nem tudom.
En tiedä.
Я не знаю.
Не знаю
В тексте не указано.
В отрывках нет информации об этом.
Не могу ответить на этот вопрос.
Δεν γνωρίζω.
لا أعرف
لا تذكر النصوص ذلك، النص لا يذكر.
אני לא יודע.
मुझे नहीं पता।
ฉันไม่ทราบ
我不知道。
不知道
文中没有提到。
根据提供的段落，无法回答。
わかりません。
文章には記載されていません。
모르겠습니다.
본문에 언급되어 있지 않습니다.
""".strip().splitlines()

ANSWERS = """
Stockholm
Stockholm. The passages do not say more.
The capital is Stockholm, although passage 2 does not mention it.
The passages do not say, but the answer is Stockholm.
The text does not mention it, but Stockholm is the capital.
I don't know from the passages. The answer is Stockholm.
no
None
No
4
The Unknown Soldier
Know Nothing Party
The Sound of Silence
There is no evidence that vaccines cause autism.
It was not built in Paris; it was built in London.
He did not say a word for ten years.
She does not have children.
I Know What You Did Last Summer
The document was signed in 1776.
The Information Act of 1990
Nicht nur Berlin, auch Bonn war Hauptstadt.
Die Hauptstadt ist nicht Göteborg, sondern Stockholm.
Keine Macht den Drogen
Er ist nicht bekannt für Jazz, sondern für Blues.
La capitale n'est pas Göteborg, mais Stockholm.
La capital no es Gotemburgo, es Estocolmo.
No, no es un pez.
Non è Göteborg, è Stoccolma.
Não, é Lisboa.
Столица не Гётеборг, а Стокгольм.
Нет
首都不是哥德堡，而是斯德哥尔摩。
斯德哥尔摩
没有
ストックホルムではなく、オスロです。
스톡홀름
Nem csak Budapest
Nie Kraków, lecz Warszawa
Het is niet Rotterdam, maar Amsterdam.
It is not known to be dangerous to humans.
""".strip().splitlines()


@pytest.mark.parametrize("reply", [*DECLINES, "*\n*", "**\n_\n**"])
def test_a_refusal_in_any_words_and_language_is_no_answer(reply: str) -> None:
    assert not informative(reply)


@pytest.mark.parametrize("reply", ANSWERS)
def test_an_answer_that_denies_or_names_a_passage_is_one(reply: str) -> None:
    assert informative(reply)


@pytest.mark.parametrize("text", ["the passages " * 800, "is not " * 1500, "no information " * 700, "не " * 3000,
                                  "answer " * 1400, "text" + " a" * 5000])  # fmt: skip
def test_refusals_are_looked_for_in_linear_time(text: str) -> None:
    informative("warm")
    begun = time.process_time()
    informative(text)
    assert time.process_time() - begun < 1
