"""ONNX graphs exported from tiny checkpoints, against the checkpoints themselves."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from checkpoints import encoder as tiny_encoder
from checkpoints import export, save_tokenizer
from unpoison.errors import ModelError
from unpoison.models import SentenceTransformerEncoder
from unpoison.models.onnx import OnnxEncoder

pytestmark = pytest.mark.needs("torch", "onnxruntime")

TEXTS = ["paris", "the capital of france is a large city .", "lyon is old", "\ud800", "", "river " * 900]


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    folder = save_tokenizer(tmp_path_factory.mktemp("encoder"))
    tiny_encoder().save_pretrained(folder)
    export(tiny_encoder(), "last_hidden_state", folder / "onnx" / "model.onnx")
    return folder


def copied(folder, target):
    return shutil.copytree(folder, target / "copy")


def test_the_encoder_agrees_with_its_checkpoint(encoder_folder):
    expected = SentenceTransformerEncoder(encoder_folder).encode(TEXTS)
    encoder = OnnxEncoder(encoder_folder, batch_size=2)
    vectors = encoder.encode(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, expected, atol=1e-5)
    assert encoder.encode([]).shape[0] == 0


@pytest.mark.parametrize("said", [{"pooling_mode": ["mean", "max"]}, {"pooling_mode_max_tokens": True}, {}])
def test_other_poolings_are_refused(encoder_folder, tmp_path, said):
    folder = copied(encoder_folder, tmp_path)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(said))
    with pytest.raises(ModelError, match="only pooling by the mean or the first token"):
        OnnxEncoder(folder)


def test_missing_and_damaged_files_are_refused_in_a_sentence(encoder_folder, tmp_path):
    with pytest.raises(ModelError, match=r"lacks model\.onnx or tokenizer\.json"):
        OnnxEncoder(tmp_path)
    folder = copied(encoder_folder, tmp_path)
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="cannot load"):
        OnnxEncoder(folder)
