"""A sentence encoder written as int8 ONNX, against the checkpoint it was made of."""

from __future__ import annotations

import json

import numpy as np
import pytest

from checkpoints import encoder, save_tokenizer
from unpoison.errors import ModelError, OptionError
from unpoison.models import SentenceTransformerEncoder
from unpoison.models.onnx import OnnxEncoder
from unpoison.models.onnx_export import export_encoder

pytestmark = pytest.mark.needs("torch", "onnx", "onnxruntime")

TEXTS = ["paris", "the capital of france is a large city .", "lyon is old", "river " * 90, "is the tower in paris ?"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = save_tokenizer(tmp_path_factory.mktemp("checkpoint"))
    encoder().save_pretrained(folder)
    return folder


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_nearly_those_of_the_checkpoint(checkpoint, tmp_path, pooling):
    import sentence_transformers as library

    model = library.SentenceTransformer(str(checkpoint), device="cpu")
    model[1].pooling_mode = pooling
    model.save(str(tmp_path / "whole"))
    export_encoder(str(tmp_path / "whole"), tmp_path / "small")
    exported = OnnxEncoder(tmp_path / "small")
    expected = SentenceTransformerEncoder(tmp_path / "whole").encode(TEXTS)
    cosines = (exported.encode(TEXTS) * expected).sum(axis=1)
    assert cosines.min() > 0.98
    assert exported.longest == 64  # of the checkpoint, not the encoder's own 256


def test_no_text_changes_how_another_is_read(checkpoint, tmp_path):
    export_encoder(str(checkpoint), tmp_path / "small")
    exported = OnnxEncoder(tmp_path / "small")
    together = exported.encode(TEXTS)
    assert all(np.array_equal(together[i], exported.encode([text])[0]) for i, text in enumerate(TEXTS))


def test_what_cannot_be_exported_is_said(checkpoint, tmp_path):
    import sentence_transformers as library

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    with pytest.raises(OptionError, match="has files already"):
        export_encoder(str(checkpoint), tmp_path / "full")
    model = library.SentenceTransformer(str(checkpoint), device="cpu")
    model.save(str(tmp_path / "max"))
    said = tmp_path / "max" / "1_Pooling" / "config.json"
    said.write_text(json.dumps({**json.loads(said.read_text()), "pooling_mode": "max"}))
    with pytest.raises(ModelError, match="by max; only one transformer"):
        export_encoder(str(tmp_path / "max"), tmp_path / "small")
    assert not (tmp_path / "small").exists()
