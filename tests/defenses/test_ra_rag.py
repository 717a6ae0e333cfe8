"""RA-RAG: the worked example, who is counted, and what a majority of liars does."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from unpoison import Passage, Sources
from unpoison.defenses.ra_rag import RaRag
from unpoison.errors import OptionError
from unpoison.models import FakeNLI, ScriptedGenerator
from unpoison.models.prompts import Prompt
from unpoison.sources.trust import reliability

QUESTION = "in which city is the Vasa"


def page(host: str, text: str, number: int = 0) -> Passage:
    return Passage(text, source=f"https://{host}.example/{number}")


def last_word(prompt: Prompt) -> str:
    words = " ".join(prompt.passages).split()
    return next((word for word in reversed(words) if word in ("Stockholm", "Gothenburg", "Malmö")), "I don't know")


def ra_rag(**options: object) -> RaRag:
    return RaRag(ScriptedGenerator(last_word), **options)  # type: ignore[arg-type]


PASSAGES = [
    page("b", "They say Gothenburg"),
    page("c", "No, Gothenburg"),
    page("a", "It is in Stockholm"),
    page("a", "Salvaged in 1961", 1),
    page("d", "Opening hours are long"),
]


def test_the_worked_example() -> None:
    """Two answers are possible, so rates of .9, .6 and .6 weigh .8, .2 and .2: the one beats the two."""
    rates = {"a.example": 0.9, "b.example": 0.6, "c.example": 0.6, "d.example": 1.0}
    answer = ra_rag(reliability=rates).answer(QUESTION, PASSAGES)
    assert answer.text == "Stockholm"
    assert answer.screening.kept_indices == (2, 3)
    assert answer.screening.evidence["weights"] == pytest.approx([0.2, 0.2, 0.8, 0.8, 0])
    assert [str(verdict.reason) for verdict in answer.screening.verdicts] == [
        "its source answers 'Gothenburg' with weight 0.20, against 'Stockholm'",
        "its source answers 'Gothenburg' with weight 0.20, against 'Stockholm'",
        "its source answers 'Stockholm' with weight 0.80, which wins",
        "its source answers 'Stockholm' with weight 0.80, which wins",
        "its source does not know",
    ]
    assert len(answer.calls) == 4, "one for each source"
    assert answer.details["reliability"] == rates


def test_each_source_answers_from_all_its_passages_and_from_no_others() -> None:
    generator = ScriptedGenerator(last_word)
    RaRag(generator).screen(QUESTION, PASSAGES)
    assert [prompt.passages for prompt in generator.prompts] == [
        ("They say Gothenburg",),
        ("No, Gothenburg",),
        ("It is in Stockholm", "Salvaged in 1961"),
        ("Opening hours are long",),
    ]


def test_without_reliabilities_the_majority_of_sources_wins_and_ties_go_to_the_better_rank() -> None:
    assert ra_rag().answer(QUESTION, PASSAGES).text == "Gothenburg"
    assert ra_rag().answer(QUESTION, PASSAGES[1:]).text == "Gothenburg"
    assert ra_rag().answer(QUESTION, PASSAGES[2:0:-1]).text == "Stockholm"


def test_only_the_most_reliable_that_know_are_counted() -> None:
    rates = {"a.example": 0.9, "b.example": 0.8, "c.example": 0.8, "d.example": 1.0}
    assert ra_rag(reliability=rates).answer(QUESTION, PASSAGES).text == "Gothenburg"
    one = ra_rag(reliability=rates, kappa=1).answer(QUESTION, PASSAGES)
    assert one.text == "Stockholm", "d is more reliable, and does not know"
    assert str(one.screening.verdicts[0].reason).endswith("and is not among the 1 most reliable that answer")


def test_who_is_no_better_than_chance_weighs_nothing() -> None:
    answer = ra_rag(reliability=dict.fromkeys(("a.example", "b.example", "c.example"), 0.5)).answer(QUESTION, PASSAGES)
    assert (answer.abstained, answer.screening.kept) == (True, ())
    assert "no source that can be believed answers" in answer.screening.evidence.notes


def test_what_no_passage_of_the_source_supports_is_not_counted() -> None:
    invents = ScriptedGenerator(lambda prompt: "Malmö" if len(prompt.passages) > 1 else last_word(prompt))
    nli = FakeNLI(
        lambda premise, hypothesis: (0.9, 0.1, 0.0) if hypothesis.split()[-1] in premise.split() else (0.1, 0.2, 0.7)
    )
    answer = RaRag(invents, nli, reliability={"a.example": 1.0}).answer(QUESTION, [PASSAGES[2], PASSAGES[3]])
    assert answer.abstained
    assert str(answer.screening.verdicts[0].reason) == "its source answers 'Malmö', and none of its passages says so"
    assert RaRag(ScriptedGenerator(last_word), nli).answer(QUESTION, PASSAGES).text == "Gothenburg"


def test_reliabilities_come_from_what_sources_said_before(tmp_path: Path) -> None:
    sources = Sources(history=tmp_path / "history.db", today=lambda: date(2026, 1, 1))
    for number in range(10):
        sources.record(f"question number {number}", {"a.example": "agreed", "b.example": "contested"})
        sources.record(f"question number {number}", {"c.example": "agreed" if number < 3 else "contested"})
    assert sources.agreement(["a.example", "b.example", "c.example", "x.example"]) == {
        "a.example": 1.0,
        "b.example": 0.0,
        "c.example": 0.3,
    }
    assert ra_rag(sources=sources).answer(QUESTION, PASSAGES).text == "Stockholm"


def test_reliabilities_can_be_those_of_cross_checking() -> None:
    rows = [
        {"a.example": n, "d.example": n, "b.example": n if n % 2 else -n - 1, "c.example": -2 * n - 50}
        for n in range(40)
    ]
    rates = {name: estimate.rate for name, estimate in reliability(rows).items()}
    assert rates["a.example"] > rates["b.example"] > rates["c.example"]
    assert ra_rag(reliability=rates).answer(QUESTION, PASSAGES).text == "Stockholm"


@pytest.mark.parametrize("options", [{"kappa": 0}, {"support": 2}, {"reliability": {"a": 1.5}}])
def test_options_out_of_their_range(options: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        ra_rag(**options)
