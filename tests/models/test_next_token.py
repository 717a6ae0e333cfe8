"""The next token of a local model, with checkpoints that are made and saved here."""

from __future__ import annotations

import numpy as np
import pytest

from tiny_language_model import save_language_model
from unpoison.models.prompts import Prompt, answer_prompt
from unpoison.models.transformers import TransformersGenerator

pytestmark = pytest.mark.needs("torch")

PROMPTS = [answer_prompt("Who?", ["Ann."]), answer_prompt("Who?", ["Bob said that it was Ann."]), Prompt("free", "Be.")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TransformersGenerator:
    return TransformersGenerator(save_language_model(tmp_path_factory.mktemp("next")))


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
    for length in range(3):
        grown = model.next_token(PROMPTS, tokens[:length])
        model._so_far, kept = None, model._so_far
        fresh = model.next_token(PROMPTS, tokens[:length])
        alone = [model.next_token([prompt], tokens[:length])[0] for prompt in PROMPTS]
        model._so_far = kept
        assert np.allclose(grown, fresh, atol=1e-4), "the kept state changes nothing"
        assert np.allclose(grown, alone, atol=1e-4), "padding changes nothing"
