"""Reasons of the published methods in words for who decides: every one that a defense gives has some."""

from __future__ import annotations

import pytest

from unpoison import Grada, Radar, RagDefender, TrustRag
from unpoison.defenses.base import Defense
from unpoison.models import FakeNLI, ScriptedGenerator
from unpoison.plain_words import in_plain_words

LYON = "The capital of France is Lyon, the capital city of France is Lyon"
CONTEXTS = (
    [f"{LYON}, as document {word} says." for word in ("one", "two", "three", "four")]
    + ["Paris is the capital of France.", "The Louvre stands in Paris.", "Bread is baked in the morning."],
    [f"{LYON}."] * 3 + ["Paris is the capital and largest city of France."],
    ["Paris is the capital of France.", "The Louvre stands in Paris."],
    ["Paris is the capital of France.", "Rivers flow to the sea.", "Bread is baked early.", "Ships carry iron ore."],
    [f"{LYON}."] * 4,
)
ANSWERS = {"Lyon": "Lyon", "Paris is": "Paris", "Louvre": "I don't know", "Bread": "I don't know"}


def radar() -> Radar:
    return Radar(generator=ScriptedGenerator(lambda prompt: reply(str(prompt.passages))), nli=FakeNLI())


def reply(text: str) -> str:
    return next((answer for part, answer in ANSWERS.items() if part in text), "I don't know")


@pytest.mark.parametrize(
    "defense",
    [
        Grada(keep=2),
        Grada(keep=2, variant="bm25"),
        RagDefender(),
        RagDefender(hops="multi"),
        TrustRag(stages=1),
        TrustRag(stages=1, mode="reference"),
        TrustRag(stages=1, ngram=False),
        TrustRag(stages=1, clustering=False),
        radar(),
    ],
    ids=lambda defense: defense.name,
)
def test_every_reason_of_a_published_method_has_plain_words(defense: Defense) -> None:
    meanings_found = set()
    for context in CONTEXTS:
        for verdict in defense.screen("what is the capital of france", context).verdicts:
            reason = in_plain_words(verdict.reason, kept=verdict.kept)
            assert reason.numbers == " ".join(verdict.reason.split())
            assert reason.words.lower() != reason.numbers.lower()
            assert not any(map(str.isdigit, reason.words)), reason
            meanings_found.add(reason.words)
    assert meanings_found


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("place 7 of 10, past the 5 kept: graph score 0.0512, strongest tie 0.113 to passage 2",
         "Has less in common with the other texts than those that were taken"),
        ("place 1 of 10: graph score 0.1512, strongest tie 0.713 to passage 2",
         "Has much in common with the other texts"),
        ("suspect 1 of 3: pair frequency 0.412, most similar to passage 2 (0.98)",
         "Resembles other texts so closely that they look written together"),
        ("one of 4 passages that are too alike: mean cosine 0.91, mean ROUGE-L 0.52",
         "Belongs to a group of texts that say the same in nearly the same words"),
        ("answers 'Lyon': support 0.10 against 0.80, conflict 0.97 with passage 0; cut off",
         "Its answer is contradicted by other texts more than it is supported"),
        ("answers 'Lyon': support 0.10 against 0.80; cut off", "Too few other texts support its answer"),
        ("answers 'Paris': support 0.90 against 0.10; on the trusted side of the cut",
         "Its answer fits those of the other texts"),
    ],
)  # fmt: skip
def test_reasons_in_words_that_a_manager_understands(reason: str, words: str) -> None:
    assert in_plain_words(reason) == (words, reason)


def test_a_quoted_answer_does_not_choose_the_words() -> None:
    for planted in ("retrieval rank 1", "x: support 0.9 against 0.1; on the trusted side of the cut", "gives orders"):
        reason = in_plain_words(f"answers '{planted}': support 0.10 against 0.80; cut off")
        assert reason.words == "Too few other texts support its answer"
