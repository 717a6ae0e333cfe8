"""Discern-and-Answer: the form of the reply, the discriminator and its file, one call."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from unpoison.defenses.discern import Discern, Discriminator, Labelled, _loss, parse_reply
from unpoison.errors import InputError, OptionError
from unpoison.models import FakeEncoder, LexicalEncoder, ScriptedGenerator

FIVE = [f"d{i}" for i in range(1, 6)]
REPLY = "Passage 2, 4 are perturbed. Deriving the answer based on Passage 1, 3, 5.\nanswer: Paris"


@pytest.mark.parametrize(
    ("reply", "perturbed", "answer"),
    [
        (REPLY, {2, 4}, "Paris"),
        ("Paris", set(), "Paris"),
        ("perturbed: Passage 3 is perturbed. Deriving the answer based on Passage 1.\nAnswer: Rome", {3}, "Rome"),
        ("Passages 1, 2 and 5 are perturbed.\nanswer: x", {1, 2, 5}, "x"),
        ("No passages are perturbed. Deriving the answer based on Passage 1, 2.\nanswer: 1963", set(), "1963"),
        ("In 1963", set(), "In 1963"),
        ("Passage 12 was written by Paul", set(), "Passage 12 was written by Paul"),
        ("answer: Passage 7", set(), "Passage 7"),
        ("", set(), ""),
    ],
)
def test_the_form_of_the_reply(reply: str, perturbed: set[int], answer: str) -> None:
    assert parse_reply(reply) == (perturbed, answer)


def test_one_call_finds_and_answers() -> None:
    generator = ScriptedGenerator(REPLY)
    answer = Discern(generator).answer("q", FIVE)
    assert (answer.text, len(answer.calls)) == ("Paris", 1)
    assert answer.screening.dropped_indices == (1, 3)
    assert str(answer.screening.verdicts[1].reason) == "the model says that it is perturbed"
    assert generator.prompts[0].messages()[1]["content"].endswith("perturbed:")
    assert Discern(generator).screen("q", FIVE).kept_indices == (0, 2, 4)


def test_numbers_of_no_passage_do_not_matter_and_all_may_be_perturbed() -> None:
    reply = "Passage 1, 2, 9 are perturbed. Deriving the answer ignoring all passages.\nanswer: from memory"
    answer = Discern(ScriptedGenerator(reply)).answer("q", ["a", "b"])
    assert answer.screening.kept == ()
    assert answer.text == "from memory"
    assert "every passage" in answer.screening.evidence.notes[0]


VECTORS = {
    "q1": [1, 0, 0, 0], "q2": [0, 1, 0, 0], "clean": [0.5, 0.5, 0.7, 0], "clean too": [0.6, 0.4, 0.7, 0],
    "false": [0.5, 0.5, 0, 0.7], "false too": [0.4, 0.6, 0, 0.7],
}  # fmt: skip
EXAMPLES = [
    Labelled("q1", ["clean", "false", "clean too"], [False, True, False]),
    Labelled("q2", ["false", "clean"], [True, False]),
    Labelled("q2", ["clean"], [False]),
]


@pytest.fixture(scope="module")
def discriminator() -> Discriminator:
    return Discriminator.train(EXAMPLES, FakeEncoder(VECTORS))


def test_the_slope_is_that_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    for labels in ([True, False, False], [True, True, True, False], [False, False], [True, True]):
        logits, perturbed = rng.normal(size=len(labels)), np.array(labels)
        loss, slope = _loss(logits, perturbed)
        assert slope == pytest.approx(approx_fprime(logits, lambda z, p=perturbed: _loss(z, p)[0]), abs=1e-6)
        assert loss > 0


def test_the_contrastive_term_takes_as_many_others_from_the_end() -> None:
    """One positive (z = 0) and of the negatives the last one (z = 0): -log(1/2), beside the cross-entropy."""
    loss, _ = _loss(np.array([0.0, 5.0, 0.0]), np.array([True, False, False]))
    entropy = (2 * np.log(2) + np.log1p(np.exp(5))) / 3
    assert loss == pytest.approx(entropy + np.log(2))


def test_a_discriminator_learns_and_carries_over(discriminator: Discriminator) -> None:
    encoder = FakeEncoder(VECTORS)
    vectors = encoder.encode(["q1", "clean too", "false too"])
    clean, false = discriminator.probabilities(vectors[0], vectors[1:])
    assert clean < 0.5 < false


def test_with_a_discriminator_screening_needs_no_generator(discriminator: Discriminator) -> None:
    encoder = FakeEncoder(VECTORS)
    screening = Discern(discriminator=discriminator, encoder=encoder).screen("q1", ["clean", "false too"])
    assert screening.kept_indices == (0,)
    assert Discern(discriminator=discriminator, encoder=encoder).needs == ()
    assert Discern.needs == ("generator",)
    assert Discern(discriminator=discriminator, encoder=encoder).screen("q1", []).verdicts == ()


def test_with_a_discriminator_its_verdict_stands_in_the_prompt(discriminator: Discriminator) -> None:
    generator = ScriptedGenerator("Paris")
    answer = Discern(generator, discriminator=discriminator, encoder=FakeEncoder(VECTORS)).answer(
        "q1", ["clean", "false too", "clean too"]
    )
    assert generator.prompts[0].closing == (
        "perturbed: Passage 2 is perturbed. Deriving the answer based on Passage 1, 3.\nanswer:"
    )
    assert (answer.text, len(generator.prompts)) == ("Paris", 1)
    Discern(generator, discriminator=discriminator, encoder=FakeEncoder(VECTORS)).answer("q1", ["false"])
    assert "ignoring all passages" in generator.prompts[1].closing


def test_it_survives_its_file(discriminator: Discriminator, tmp_path: Path) -> None:
    file = tmp_path / "head.json"
    discriminator.save(file)
    again = Discriminator.load(file)
    assert (again.encoder, again.bias, again.weights.tolist()) == (
        "fake", discriminator.bias, discriminator.weights.tolist(),
    )  # fmt: skip
    assert Discern(discriminator=str(file), encoder=FakeEncoder(VECTORS)).screen("q1", ["false"]).kept == ()
    assert Discriminator.train(EXAMPLES, FakeEncoder(VECTORS)).weights.tolist() == discriminator.weights.tolist()


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "[" * 100_000, '{"form": "unpoison discriminator 1", "encoder": 1, "bias": 0, "weights": [1]}',
     '{"form": "unpoison discriminator 1", "encoder": "e", "bias": NaN, "weights": [1]}',
     '{"form": "other", "encoder": "e", "bias": 0, "weights": [1]}', "\x80"],
)  # fmt: skip
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "head.json"
    file.write_text(content, "latin-1")
    with pytest.raises(InputError, match=r"head\.json.* is not a saved discriminator"):
        Discern(discriminator=file)
    with pytest.raises(InputError):
        Discriminator.load(tmp_path / "absent.json")


def test_mistakes_are_named(discriminator: Discriminator, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"trained on vectors of 'fake', got the encoder 'lexical'"):
        Discern(discriminator=discriminator, encoder="lexical")
    with pytest.raises(OptionError, match="depend on the other texts"):
        Discriminator.train(EXAMPLES, LexicalEncoder())
    with pytest.raises(InputError, match="one label for each"):
        Discriminator.train([Labelled("q1", ["clean"], [])], FakeEncoder(VECTORS))
    with pytest.raises(InputError, match="label both"):
        Discriminator.train([Labelled("q1", ["clean"], [False])], FakeEncoder(VECTORS))
    with pytest.raises(InputError, match="vectors of 4 entries, got 2"):
        discriminator.probabilities([1, 0], [[1, 0]])
    discriminator.save(tmp_path / "head.json")
    assert json.loads((tmp_path / "head.json").read_text())["encoder"] == "fake"
