"""The next token of a local model, with checkpoints that are made and saved here."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_language_model import save_language_model
from unpoison.errors import ModelError, OptionError
from unpoison.models import CachedGenerator, ExtractiveReader, TokenByToken
from unpoison.models.prompts import Prompt, answer_prompt
from unpoison.models.protocols import Models
from unpoison.models.requests import next_token
from unpoison.models.transformers import TransformersGenerator
from unpoison.runtime.driver import run

pytestmark = pytest.mark.needs("torch")

PROMPTS = [answer_prompt("Who?", ["Ann."]), answer_prompt("Who?", ["Bob said that it was Ann."]), Prompt("free", "Be.")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TransformersGenerator:
    return TransformersGenerator(save_language_model(tmp_path_factory.mktemp("next")))


def test_it_is_offered_through_the_cache_as_well(model: TransformersGenerator) -> None:
    assert isinstance(model, TokenByToken)
    assert isinstance(CachedGenerator(model), TokenByToken)
    assert not isinstance(CachedGenerator(ExtractiveReader()), TokenByToken)


def test_rows_are_distributions(model: TransformersGenerator) -> None:
    logs = model.next_token(PROMPTS, [])
    assert logs.shape == (3, model._model.config.vocab_size)
    assert np.allclose(np.exp(logs).sum(axis=1), 1, atol=1e-5)
    assert model.next_token([], []).shape == (0, logs.shape[1])


def test_greedy_decoding_is_what_the_library_generates(model: TransformersGenerator) -> None:
    prompt = Prompt("free", "Be brief.", "why?", max_tokens=12)
    tokens: list[int] = []
    while len(tokens) < 12:
        best = int(model.next_token([prompt], tokens)[0].argmax())
        if best in model.ends:
            break
        tokens.append(best)
    assert model.text(tokens) == model.generate(prompt).text


def test_a_growing_reply_gives_what_a_fresh_reading_gives(model: TransformersGenerator) -> None:
    tokens = model.tokens(" I don't know")
    assert model._codec._tokenizer.decode(tokens) == " I don't know"
    for length in range(len(tokens) + 1):
        grown = model.next_token(PROMPTS, tokens[:length])
        model._so_far, kept = None, model._so_far
        fresh = model.next_token(PROMPTS, tokens[:length])
        alone = [model.next_token([prompt], tokens[:length])[0] for prompt in PROMPTS]
        model._so_far = kept
        assert np.allclose(grown, fresh, atol=1e-4), "the kept state changes nothing"
        assert np.allclose(grown, alone, atol=1e-4), "padding changes nothing"


def test_other_prompts_or_tokens_are_read_anew(model: TransformersGenerator) -> None:
    model.next_token(PROMPTS, [5])
    other = model.next_token(PROMPTS[::-1], [5, 6])
    model._so_far = None
    assert np.allclose(other, model.next_token(PROMPTS[::-1], [5, 6]), atol=1e-5)
    model.next_token(PROMPTS, [5])
    assert np.allclose(model.next_token(PROMPTS, [7, 6])[::-1], model.next_token(PROMPTS[::-1], [7, 6]), atol=1e-4)


def test_what_does_not_fit_is_refused(model: TransformersGenerator) -> None:
    with pytest.raises(ModelError, match="reads 512"):
        model.next_token([answer_prompt("Who?", ["word " * 600])], [])


def test_the_driver_accounts_for_it_and_refuses_others(model: TransformersGenerator) -> None:
    logs, calls = run(next_token(PROMPTS, []), Models(generator=model))
    assert logs.shape[0] == 3
    assert [(call.kind, call.items) for call in calls] == [("next token", 3)]
    with pytest.raises(OptionError, match="does not say how likely the next token is"):
        run(next_token(PROMPTS, []), Models(generator=ExtractiveReader()))
