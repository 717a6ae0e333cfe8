"""Reading with any question-answering checkpoint: torch against its int8 ONNX export, windows, hostile files."""

from __future__ import annotations

import shutil
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.training.onnx_export import export
from checkpoints import save_classifier, save_question_answerer
from unpoison.errors import ModelError
from unpoison.models.reader import Reader
from unpoison.models.spans import MAX_ANSWER_TOKENS, Marks, TokenWindow, _window, best_span

pytestmark = pytest.mark.needs("onnxruntime", "torch")

QUESTION = "is paris the capital of france ?"
PASSAGES = ["the capital of france is paris .", "lyon is a large old city .", "river", "tower not river " * 30]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return save_question_answerer(tmp_path_factory.mktemp("qa"))


@pytest.fixture(scope="module")
def exported(checkpoint, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "new"
    export(str(checkpoint), folder)
    return folder


@pytest.fixture
def copied(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "copy")


def test_the_export_reads_as_its_checkpoint_does(checkpoint, exported):
    ours, theirs = Reader(exported).read(QUESTION, PASSAGES), Reader(checkpoint).read(QUESTION, PASSAGES)
    assert [r.score for r in ours] == pytest.approx([r.score for r in theirs], abs=0.5)  # int8 against float32
    assert len({round(r.score, 3) for r in theirs}) == len(PASSAGES)


def test_a_passage_is_read_alike_alone_and_among_others(exported):
    reader = Reader(exported)
    together = reader.read(QUESTION, PASSAGES)
    assert [Reader(exported).read(QUESTION, [passage])[0] for passage in PASSAGES] == together
    assert reader.read_pairs([(QUESTION, PASSAGES[0]), ("lyon ?", PASSAGES[0])])[0] == together[0]


def test_long_passages_are_read_in_windows_to_their_end(checkpoint):
    reader = Reader(checkpoint)
    long = "river " * 400 + "the capital of france is paris ."
    assert reader.read(QUESTION, [long])[0].skimmed == 0
    windows = reader._cutter.windows([(QUESTION, long)])[0]
    ends = [window.offsets[window.last - 1][1] for window in windows]
    starts = [window.offsets[window.first][0] for window in windows]
    assert ends[-1] == len(long)
    assert all(start < end for start, end in zip(starts[1:], ends[:-1], strict=True))  # neighbours overlap


def test_what_a_passage_spells_is_text_and_no_mark_of_the_model(checkpoint):
    windows = Reader(checkpoint)._cutter.windows([("paris ?", "[SEP] [CLS] paris [PAD]")])[0]
    marks = [i for i in windows[0].ids.tolist() if i in (2, 3)]  # [CLS] and [SEP] of the tiny vocabulary
    assert marks == [2, 3, 3]


def marks(start: dict[int, float], end: dict[int, float], size: int) -> Marks:
    first, last = np.full(size, -5.0, np.float32), np.full(size, -5.0, np.float32)
    for i, value in start.items():
        first[i] = value
    for i, value in end.items():
        last[i] = value
    return Marks(first, last)


def window(size: int, first: int, words: list[int | None] | None = None) -> TokenWindow:
    ids = np.zeros(size, np.int64)
    offsets = [(0, 0)] * first + [(10 * i, 10 * i + 9) for i in range(size - first)]
    return TokenWindow(ids, ids, first, size, offsets, words or [None] * first + list(range(size - first)))


def test_the_best_span_begins_before_it_ends_and_is_short():
    span = best_span(window(60, 4), marks({0: 1, 10: 4, 50: 6}, {0: 1, 12: 5, 8: 9}, 60))
    assert (span.start, span.end) == (60, 89)  # tokens 10 to 12: 8 ends before 10 begins, 50 begins behind 12
    assert span.odds == pytest.approx(4 + 5 - 2)
    far = best_span(window(60, 4), marks({0: 0, 5: 9}, {0: 0, 5 + MAX_ANSWER_TOKENS: 9, 20: 1}, 60))
    assert far.end == 10 * 16 + 9


def test_the_best_span_is_widened_to_whole_words_and_needs_a_passage():
    words = [None, None, 0, 1, 1, 1, 2]
    span = best_span(window(7, 2, words), marks({4: 5}, {4: 5}, 7))
    assert (span.start, span.end) == (10, 39)
    assert best_span(window(3, 3), marks({}, {}, 3)) is None


@pytest.mark.parametrize(
    ("passage", "token", "whole"),
    [
        ("in Gothenburg, by", (6, 9), "Gothenburg"),  # punctuation is no part of a word
        ("seit 1911 in", (5, 7), "1911"),
        ("Øresund links", (1, 4), "Øresund"),  # from its first letter, a token of its own
        ("वह हिन्दी है", (4, 5), "हिन्दी"),  # signs of vowels are
        ("市政厅由罗特建造", (4, 6), "罗特"),  # nothing is widened where no spaces are written
        ("ร้านเปิดแปดโมง", (8, 11), "แปด"),
    ],
)
def test_an_answer_is_widened_to_words_as_its_script_has_them(passage, token, whole):
    cuts = sorted({0, *token, *(i for i, sign in enumerate(passage) if not sign.isalnum()), len(passage)})
    offsets = [(0, 0), *pairwise(cuts)]
    encoded = SimpleNamespace(
        ids=list(range(len(offsets))), type_ids=[0] * len(offsets), offsets=offsets,
        sequence_ids=[None, *[1] * (len(offsets) - 1)],
    )  # fmt: skip
    chosen = offsets.index(token)
    span = best_span(_window(encoded, passage), marks({chosen: 5}, {chosen: 5}, len(offsets)))
    assert passage[span.start : span.end].strip() == whole


def test_a_file_that_was_cut_or_changed_is_refused(copied):
    (copied / "model.onnx").write_bytes((copied / "model.onnx").read_bytes()[:-100])
    with pytest.raises(ModelError, match=r"differs from the published one.*install the package again"):
        Reader(copied)
    (copied / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"lacks model\.onnx"):
        Reader(copied)


def test_other_checkpoints_and_folders_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(ModelError, match="cannot load the checkpoint"):
        Reader(tmp_path / "none")
    save_classifier(tmp_path / "nli", ["entailment", "neutral", "contradiction"])
    with pytest.raises(ModelError, match="not an extractive question-answering model"):
        Reader(tmp_path / "nli")
    with pytest.raises(ModelError, match="not an extractive question-answering model"):
        export(str(tmp_path / "nli"), tmp_path / "new")


def test_a_graph_may_not_name_other_files(copied, tmp_path):
    import onnx

    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"s" * 4096)
    model = onnx.load(str(copied / "model.onnx"))
    tensor = next(t for t in model.graph.initializer if len(t.raw_data) >= 64)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../secret.bin"
    (copied / "model.onnx").write_bytes(model.SerializeToString())
    (copied / "reader.json").unlink()
    with pytest.raises(ModelError, match="keeps weights in files beside"):
        Reader(copied)
