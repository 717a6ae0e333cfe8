"""RobustRAG's keyword aggregation: the worked examples, the order and number of calls, the keywords of an answer."""

from __future__ import annotations

import pytest

from ranges import assert_range
from unpoison import Query
from unpoison.core.passages import as_passages
from unpoison.defenses.robustrag import MAX_DOUBTFUL, RobustRag, empty, keywords
from unpoison.models import ExtractiveReader, ScriptedGenerator
from unpoison.models.prompts import Prompt

ANSWERS = ["Paris", "Paris", "Lyon", "I don't know", "The city of Paris"]


def scripted(answers: list[str], final: str = "final") -> ScriptedGenerator:
    """Passage "p3" is answered with the fourth answer, every final call with `final`."""

    def reply(prompt: Prompt) -> str:
        return answers[int(prompt.passages[0][1:])] if prompt.task == "atomic" else final

    return ScriptedGenerator(reply)


def passages(answers: list[str]) -> list[str]:
    return [f"p{i}" for i in range(len(answers))]


def test_the_worked_example() -> None:
    generator = scripted(ANSWERS, "Paris")
    answer = RobustRag(generator).answer("q", passages(ANSWERS))
    assert answer.text == "Paris"
    assert answer.details["keywords"] == ["Paris"]
    assert answer.details["atomic_answers"] == ANSWERS
    assert len(answer.calls) == len(ANSWERS) + 1
    final = generator.prompts[-1]
    assert final.passages == ("Paris",), "no passage is shown, only what enough of them say"
    assert all(prompt.task == "atomic" and len(prompt.passages) == 1 for prompt in generator.prompts[:-1])


def test_the_isolated_calls_are_asked_for_together() -> None:
    generator = ScriptedGenerator("Paris")
    texts = [f"p{i}" for i in range(10)]
    (together,) = next(RobustRag(generator).answering(Query("q"), as_passages(texts)))
    assert [prompt.passages for prompt in together.prompts] == [(text,) for text in texts]
    RobustRag(generator).answer("q", texts)
    assert len(generator.prompts) == 11


@pytest.mark.parametrize(("count", "threshold"), [(1, 1), (4, 2), (9, 3), (10, 3), (50, 3)])
def test_beta_takes_over_at_ten_answers(count: int, threshold: int) -> None:
    """mu = min(3, 0.3 n): 0.3, 1.2, 2.7, 3, 3."""
    for stating in (threshold - 1, threshold):
        answers = ["Paris"] * stating + [f"x{i}" for i in range(count - stating)]
        keywords_found = RobustRag(scripted(answers)).answer("q", passages(answers)).details["keywords"]
        assert ("Paris" in keywords_found) == (stating >= threshold)


def test_votes_fall_with_rank_and_sum_to_the_number_of_answers() -> None:
    defense = RobustRag(gamma=0.5)
    answers = ["Paris", "Paris", "Lyon", "I don't know", "Paris"]
    weights = defense._weights(answers)
    assert weights == pytest.approx({0: 2.2069, 1: 1.1034, 2: 0.5517, 4: 0.1379}, abs=5e-5)
    assert sum(weights.values()) == pytest.approx(4)
    assert defense._votes(answers, weights) == pytest.approx({"Paris": 3.4483, "Lyon": 0.5517}, abs=5e-5)


def test_an_answer_votes_once_and_the_longest_keyword_comes_first() -> None:
    answers = ["Paris, Paris, Paris", "Port-au-Prince in Haiti", "Port-au-Prince in Haiti", "x y", "z"]
    keywords_found = RobustRag(scripted(answers), alpha=0.4).answer("q", passages(answers)).details["keywords"]
    assert keywords_found == ["Port-au-Prince in Haiti", "Port-au-Prince", "Haiti"]


def test_when_all_abstain_nothing_more_is_asked() -> None:
    generator = scripted(["I don\u2019t know.", "unknown", ""])
    answer = RobustRag(generator).answer("q", passages(["", "", ""]))
    assert (answer.abstained, answer.text, len(generator.prompts)) == (True, "I don't know.", 3)
    assert RobustRag(ScriptedGenerator([])).answer("q", []).abstained, "no passages, no call"


def test_too_few_informative_answers() -> None:
    assert RobustRag(scripted(ANSWERS), least=5).answer("q", passages(ANSWERS)).abstained


def test_without_any_keyword_the_model_is_asked_all_the_same_or_not() -> None:
    answers = [f"word{i}" for i in range(10)]
    generator = scripted(answers)
    assert RobustRag(generator).answer("q", passages(answers)).text == "final"
    assert generator.prompts[-1].passages == ()
    silent = scripted(answers)
    assert RobustRag(silent, empty_hints="abstain").answer("q", passages(answers)).abstained
    assert len(silent.prompts) == 10


def test_long_answers_need_phrases_of_several_words() -> None:
    answers = ["born in Lagos Island, singer"] * 3 + ["Lagos Island"]
    defense = RobustRag(scripted(answers), form="long")
    assert (defense.alpha, defense.beta) == (0.4, 4)
    assert defense.answer("q", passages(answers)).details["keywords"] == [
        "born in Lagos Island, singer",
        "Lagos Island",
    ]


def test_screening_drops_nothing_and_needs_no_model() -> None:
    assert RobustRag().screen("q", ["a", "b"]).kept_indices == (0, 1)


def test_a_single_poison_cannot_speak() -> None:
    answers = ["Paris"] * 9 + ["Lyon"]
    keywords_found = RobustRag(scripted(answers)).answer("q", passages(answers)).details["keywords"]
    assert keywords_found == ["Paris"]


def test_with_the_extractive_reader() -> None:
    told = ["Paris is the capital of France.", "The capital of France is Paris.", "France's capital, Paris, is large."]
    answer = RobustRag(ExtractiveReader()).answer(
        "What is the capital of France?", [*told, "It is Lyon, France's capital."]
    )
    assert "Paris" in answer.text
    assert not any("Lyon" in keyword for keyword in answer.details["keywords"])


def test_options_have_their_range() -> None:
    for name, least, most in (
        ("alpha", 0.0, 1.0),
        ("beta", 0.0, 1e6),
        ("gamma", 1e-6, 1.0),
        ("doubtful", 0, MAX_DOUBTFUL),
    ):
        assert_range(RobustRag, name, least, most, generator=ScriptedGenerator("x"))
    assert_range(RobustRag, "least", 1, generator=ScriptedGenerator("x"))


def test_the_defaults_are_those_of_the_form_and_of_the_model() -> None:
    short, long = (RobustRag(ScriptedGenerator("x"), form=form) for form in ("short", "long"))
    assert (short.alpha, short.beta, long.alpha, long.beta) == (0.3, 3.0, 0.4, 4.0)
    assert (short.doubtful, RobustRag(ExtractiveReader()).doubtful) == (0, 0)


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
