import numpy as np
import pytest
import tokenizers
import transformers

from unpoison_lab.attacks.adversarial_decoding import AdversarialDecoding
from unpoison_lab.attacks.garag import Garag
from unpoison_lab.attacks.white_box import CausalModel

pytestmark = pytest.mark.needs("torch", "transformers", "tokenizers")

WORDS = [
    "<pad>", "<end>", "<unk>", "Yes", "No", "what", "is", "the", "capital", "of", "france", "Lyon", "Paris", "city",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A two-layer language model with random weights and a vocabulary of fourteen words."""
    import torch

    path = str(tmp_path_factory.mktemp("causal"))
    words = tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>", unk_token="<unk>"
    ).save_pretrained(path)
    generator = torch.random.get_rng_state()
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(WORDS), n_positions=512, n_embd=16, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=1
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(path)
    torch.random.set_rng_state(generator)
    return path


@pytest.fixture(scope="module")
def model(folder):
    return CausalModel(folder, window=400, max_new_tokens=4)


def test_proposals_lengthen_the_text_by_likely_words(model):
    first, second = model.propose("write", ["", "what is"], count=3, mass=1.0)
    assert len(first) == 3
    assert all(text.startswith("what is ") for text in second)
    assert not any(special in text for text in first + second for special in WORDS[:3])
    assert len(model.propose("write", [""], count=3, mass=0.01)[0]) == 1


def test_naturalness_is_a_ratio_of_logits(model):
    values = model.naturalness(["what is", "the capital"])
    assert values.shape == (2,)
    assert np.isfinite(values).all()


def test_the_probability_of_an_answer_is_one(model):
    ((reply, one),) = model.read("what is the capital", ["the capital is Paris"], "Paris")
    assert isinstance(reply, str)
    assert 0 < one < 1
    ((_, two),) = model.read("what is the capital", ["the capital is Paris"], "Paris city")
    assert two < one


def test_a_local_model_drives_adversarial_decoding(folder, target, encoder):
    (poison,) = AdversarialDecoding(lm=folder, steps=2, beams=2, top_k=3, encoder=encoder).craft(target)
    assert poison.text.endswith(target.texts[0])
    assert poison.budget.llm_calls > 0


def test_a_local_model_reads_for_garag(model, target, encoder):
    (poison,) = Garag(reader=model, encoder=encoder, population=2, parents=1, iterations=1).craft(target)
    assert poison.meta["gpr"] > 0
