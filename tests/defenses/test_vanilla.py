from __future__ import annotations

import numpy as np
import pytest

from model_doubles import FakeLanguageModel
from ranges import assert_range
from unpoison import Grada, Vanilla
from unpoison.core.answers import Reply
from unpoison.defenses.vanilla import NoRag
from unpoison.errors import InputError, OptionError
from unpoison.models import ScriptedGenerator
from unpoison_lab.baselines.perplexity import Perplexity, perplexity

TEXTS = ["a", "b", "c"]


def test_vanilla_keeps_the_best_in_retrieval_order() -> None:
    assert Vanilla().screen("q", TEXTS).kept_indices == (0, 1, 2)
    screening = Vanilla(2).screen("q", TEXTS)
    assert screening.kept_indices == (0, 1)
    assert str(screening.verdicts[2].reason) == "retrieval rank 3, past the 2 kept"


def test_vanilla_answers_from_what_it_kept() -> None:
    generator = ScriptedGenerator(lambda prompt: "an answer")
    answer = Vanilla(2, generator=generator).answer("q", TEXTS)
    assert (answer.text, answer.abstained, len(answer.calls)) == ("an answer", False, 1)
    assert generator.prompts[0].passages == ("a", "b")


def test_vanilla_without_passages_asks_the_models_memory() -> None:
    generator = ScriptedGenerator(lambda prompt: "I don\u2019t know.")
    answer = Vanilla(generator=generator).answer("q", [])
    assert generator.prompts[0].task == "answer-alone"
    assert answer.abstained


def test_no_rag_shows_the_model_no_passage() -> None:
    generator = ScriptedGenerator(lambda prompt: "from memory")
    answer = NoRag(generator=generator).answer("q", TEXTS)
    assert answer.screening.kept == ()
    assert generator.prompts[0].passages == ()
    assert answer.text == "from memory"


def test_a_screening_defense_answers_from_what_it_kept() -> None:
    generator = ScriptedGenerator(lambda prompt: "x")
    answer = Grada(keep=2, generator=generator).answer("q", TEXTS)
    assert generator.prompts[0].passages == tuple(p.text for p in answer.screening.kept)


def test_perplexity_of_the_specs_example() -> None:
    assert perplexity(np.array([-1.0, -2.0, -3.0])) == pytest.approx(7.389056)
    assert perplexity(np.array([])) == 1
    assert perplexity(np.array([-1.0, -1.0, -3.0, -3.0]), window=2) == pytest.approx(np.exp(3))
    assert np.isfinite(perplexity(np.array([-1e9])))


def test_the_filter_drops_what_is_above_the_threshold() -> None:
    soup, plain = "w0 w1 w2 w3 w4 w5", "the the the the the the"
    screening = Perplexity(70, language_model=FakeLanguageModel()).screen("q", [plain, soup, ""])
    assert screening.dropped_indices == (1,)


def test_calibration_takes_a_quantile_of_clean_text() -> None:
    model = FakeLanguageModel()
    clean = ["the the the", "a a a a", "w x y z"]
    strict, lenient = (Perplexity.calibrate(clean, model, quantile=q).threshold for q in (0.0, 1.0))
    assert strict < lenient == pytest.approx(perplexity(model.logprobs(["w x y z"])[0]))
    with pytest.raises(InputError, match="calibrate"):
        Perplexity.calibrate([], model)


def test_perplexity_needs_a_model_with_log_probabilities() -> None:
    with pytest.raises(OptionError, match="language_model"):
        Perplexity(50).screen("q", TEXTS)
    with pytest.raises(OptionError, match="with a method logprobs"):
        Perplexity(50, language_model="extractive")


@pytest.mark.parametrize(
    ("reply", "abstained", "finish"),
    [
        (Reply(""), True, None),
        (Reply("I cannot help with that.", finish="refusal"), True, "refusal"),
        (Reply("It is played at the", finish="length"), False, "length"),
        (Reply("サンノゼのSAPセンターです"), False, None),
        (Reply("x" * 1_000_000), False, None),
    ],
    ids=["empty", "refusal", "cut", "another language", "a megabyte"],
)
def test_every_kind_of_reply_has_a_defined_result(reply: Reply, abstained: bool, finish: str | None) -> None:
    answer = Vanilla(generator=ScriptedGenerator(lambda prompt: reply)).answer("q", TEXTS)
    assert (answer.text, answer.abstained, answer.details.get("finish")) == (reply.text, abstained, finish)


def test_a_screening_that_keeps_nothing_abstains_without_a_call() -> None:
    generator = ScriptedGenerator(lambda prompt: "x")
    answer = Perplexity(1, language_model=FakeLanguageModel(), generator=generator).answer("q", ["a b c", "d e f"])
    assert answer.abstained
    assert generator.prompts == []


def test_options_have_their_range() -> None:
    assert_range(Vanilla, "keep", 1)
    assert Vanilla().keep is None


def test_the_baselines_say_why_a_passage_stays_or_goes() -> None:
    screening = Vanilla(2).screen("q", TEXTS)
    assert [v.score for v in screening.verdicts] == [0, -1, -2]
    assert str(screening.verdicts[0].reason) == "retrieval rank 1"
    assert screening.notes == ("no defense was applied",)
    bare = NoRag().screen("q", TEXTS)
    assert bare.notes == ("no passage is shown to the model",)
    assert {(v.kept, v.score) for v in bare.verdicts} == {(False, 0.0)}
    assert NoRag(generator=ScriptedGenerator("I don't know")).answer("q", TEXTS).abstained
