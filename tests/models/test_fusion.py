"""Fusion-in-Decoder with a tiny T5: what it reads, that its answer is the library's own, what Discern makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from checkpoints import WORDS, save_tokenizer
from unpoison.errors import ModelError, OptionError
from unpoison.models import FusionInDecoder
from unpoison.models.fusion import HEAD
from unpoison.models.prompts import Prompt
from unpoison_lab.baselines.discern import Discern

pytestmark = pytest.mark.needs("torch")

PASSAGES = ["paris is the capital of france", "lyon is a large old city in france", "the tower is not in lyon"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A T5 of one layer with random weights, and a head that tells passages apart by their first token."""
    import torch
    from safetensors.numpy import save_file
    from transformers import T5Config, T5ForConditionalGeneration

    path = save_tokenizer(tmp_path_factory.mktemp("fid"))
    torch.manual_seed(3)
    config = T5Config(
        vocab_size=len(WORDS), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(0, 1)
    model.save_pretrained(path)
    weight = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    save_file({"weight": weight, "bias": np.zeros(2, np.float32)}, path / HEAD)
    return path


@pytest.fixture(scope="module")
def reader(folder: Path) -> FusionInDecoder:
    return FusionInDecoder(folder, max_tokens=5, length=64)


def ask(passages: list[str]) -> Prompt:
    return Prompt("answer", "", "capital of france", tuple(passages))


def perturbed(reader: FusionInDecoder) -> NDArray[np.float64]:
    """What the discriminator says of each passage."""
    with reader._torch.inference_mode():
        return reader._probabilities(reader._encode("capital of france", PASSAGES)[0])


def test_passages_are_read_apart_and_answered_from_together(folder: Path, reader: FusionInDecoder) -> None:
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration
    from transformers.modeling_outputs import BaseModelOutput

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = []
        for passage in PASSAGES:  # one by one, so that nothing is padded
            tokens = tokenizer(f"question: capital of france context: {passage}", return_tensors="pt")
            states.append(model.get_encoder()(**{k: tokens[k] for k in ("input_ids", "attention_mask")})[0])
        replies = model.generate(
            encoder_outputs=BaseModelOutput(last_hidden_state=torch.cat(states, dim=1)), max_new_tokens=5, num_beams=1
        )
    assert reader.generate(ask(PASSAGES)).text == tokenizer.decode(replies[0], skip_special_tokens=True).strip()
    weight = np.random.default_rng(0).normal(size=(2, 16)).astype(np.float32)
    logits = np.array([state[0, 0].numpy() @ weight.T for state in states], float)
    expected = 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))
    np.testing.assert_allclose(perturbed(reader), expected, atol=1e-4)


def test_discern_says_what_the_readers_discriminator_finds(folder: Path) -> None:
    probabilities = perturbed(FusionInDecoder(folder))
    bar = float(np.sort(probabilities)[-1])
    reader = FusionInDecoder(folder, threshold=bar, max_tokens=5)
    answer = Discern(reader).answer("capital of france", PASSAGES)
    assert answer.screening.dropped_indices == (int(probabilities.argmax()),)
    assert answer.text == reader.generate(ask(PASSAGES)).text
    assert Discern(FusionInDecoder(folder, threshold=1.0)).screen("capital of france", PASSAGES).dropped_indices == ()


def test_what_cannot_be_read_is_said(folder: Path, reader: FusionInDecoder, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    with pytest.raises(ModelError, match="at most 100 passages, got 101"):
        reader.generate(ask(["x"] * 101))
    with pytest.raises(ModelError, match="cannot load the checkpoint"):
        FusionInDecoder(tmp_path)
    with pytest.raises(OptionError, match="threshold"):
        FusionInDecoder(folder, threshold=2)
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    save_file({"weight": np.zeros((2, 7), np.float32), "bias": np.zeros(2, np.float32)}, tmp_path / HEAD)
    with pytest.raises(ModelError, match="weight \\(2, 16\\)"):
        FusionInDecoder(tmp_path)
