"""The training of the reader: windows by any tokenizer's own template, a teacher, a run that was stopped."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from needs import need
from tests.conftest import ROOT

pytestmark = pytest.mark.needs("torch", "transformers")

PIECES = ["the", "capital", "of", "france", "is", "paris", "lyon", "what", "old", "##s", "."]
BERT, MPNET = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], ["<s>", "<pad>", "</s>", "[UNK]"]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.training import train_reader

    return train_reader


def checkpoint(folder: Path, kind: str, pieces: list[str] = PIECES) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, MPNetConfig, MPNetModel

    marks, template = (BERT, ("[CLS] $A [SEP] $B [SEP]", "[CLS]", "[SEP]")) if kind == "bert" else (
        MPNET, ("<s> $A </s> </s> $B </s>", "<s>", "</s>"))  # fmt: skip
    vocabulary = {piece: i for i, piece in enumerate([*marks, *pieces])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template[1] + " $A " + template[2],
        pair=template[0].replace("$B", "$B:1"),
        special_tokens=[(mark, vocabulary[mark]) for mark in template[1:]],
    )
    tokenizer.add_special_tokens(marks)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    if kind == "bert":
        model = BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=300, **sizes))
    else:
        model = MPNetModel(
            MPNetConfig(vocab_size=len(vocabulary), max_position_embeddings=300, pad_token_id=1, **sizes)
        )
    folder.mkdir()
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def options(start: Path, **others) -> Namespace:
    absent = dict.fromkeys(("start_at", "teacher", "layers", "languages", "steps"))
    return Namespace(**{"start": start, "frozen": 0, **absent, "device": "cpu", "float32": True, **others})


def windows(reader, run):
    from benchmarks.training.reader_texts import Pair

    text = "the capital of france is paris ."
    pairs = [Pair("what is the capital of france", text, ((25, 30),), "made"), Pair("what is old", text, (), "made")]
    return [reader._cut(*parts, run.frame)[0] for parts in reader._tokenized(pairs, run.tokenizer)]


@pytest.mark.parametrize(("kind", "marks"), [("bert", ((2,), (3,), (3,), 0)), ("mpnet", ((0,), (2, 2), (2,), 1))])
def test_a_window_is_what_the_tokenizer_makes_of_a_pair(reader, tmp_path, kind, marks):
    run = reader._run(options(checkpoint(tmp_path / kind, kind)))
    frame = run.frame
    assert (frame.before, frame.between, frame.behind, frame.pad) == marks
    answered, silent = windows(reader, run)
    whole = run.tokenizer.encode("what is the capital of france", "the capital of france is paris .")
    assert answered.ids == whole.ids
    assert [whole.tokens[start : end + 1] for start, end in answered.spans] == [["paris"]]
    assert silent.spans == []
    question, passage = frame.parts(answered.ids, answered.passage)
    assert frame.around(question, passage) == (answered.ids, answered.passage)


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_what_stands_beside_a_short_text_changes_nothing(reader, tmp_path, kind):
    """A batch is padded with the tokenizer's own mark, from which MPNet counts its places."""
    run = reader._run(options(checkpoint(tmp_path / kind, kind)))
    run.model.eval()
    long, short = windows(reader, run)
    with torch.no_grad():
        together = reader._logits(run, [long, short])[0][1]
        alone = reader._logits(run, [short])[0][0]
    assert torch.allclose(together[: len(short.ids)], alone[: len(short.ids)], atol=1e-5)


def exported(start: Path, folder: Path, strong: float) -> Path:
    """A teacher as `export_reader.py` writes it, sure of what it marks."""
    need("onnx")
    from benchmarks.training.export_reader import _Shipped
    from benchmarks.training.onnx_export import INPUTS, write_graph
    from benchmarks.training.reader_network import Reader

    network = Reader(start).eval()
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.01)  # the export keeps one of two equal tensors
        network.marks.weight.normal_(0, strong)
    folder.mkdir()
    inputs = INPUTS if network.typed else INPUTS[:2]
    write_graph(_Shipped(network), inputs, ("start", "end", "relation"), folder / "model.onnx")
    (folder / "tokenizer.json").write_bytes((start / "tokenizer.json").read_bytes())
    save_file(network.state_dict(), folder / "pass-1.safetensors")
    return folder


def distance(reader, run, batch) -> float:
    run.model.eval()
    start_logits, end_logits, _ = reader._logits(run, batch)
    return reader.soft_loss(run.frame, run.teacher, start_logits, end_logits, batch).item()


def test_a_student_of_another_kind_comes_nearer_to_its_teacher(reader, tmp_path, monkeypatch):
    start, theirs = checkpoint(tmp_path / "bert", "bert"), checkpoint(tmp_path / "mpnet", "mpnet")
    monkeypatch.setattr(reader, "SOFT", 1.0)
    run = reader._run(options(start, teacher=str(exported(theirs, tmp_path / "teacher", 3.0))))
    batch = windows(reader, run)
    taught = run.teacher.window(batch[0], run.frame)
    assert run.teacher.frame.parts(taught.ids.tolist(), taught.first)[1] == [
        piece - len(BERT) + len(MPNET) for piece in run.frame.parts(batch[0].ids, batch[0].passage)[1]
    ]
    before, optimizer = distance(reader, run, batch), reader._optimizer(run.model, 5e-3)
    for _ in range(20):
        reader._step(run, optimizer, batch, 0.5)
    assert 0 < distance(reader, run, batch) < before / 2


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_training_goes_on_from_an_exported_reader(reader, tmp_path, kind):
    """Every matrix has its own place: int8 steps are a hundredth of the weights, other weights are as far as random."""
    from benchmarks.training.reader_weights import earlier_weights

    folder = exported(checkpoint(tmp_path / kind, kind), tmp_path / "exported", 1.0)
    trained = earlier_weights(folder)
    (folder / "pass-1.safetensors").unlink()
    shipped = earlier_weights(folder)
    assert shipped.keys() == trained.keys()
    for name, value in trained.items():
        assert shipped[name].shape == value.shape, name
        assert (shipped[name] - value).abs().max() <= 0.02 * value.abs().max(), name


def test_a_stopped_run_goes_on_where_it_was(reader, tmp_path):
    run = reader._run(options(checkpoint(tmp_path / "bert", "bert")))
    run.model.eval()  # no dropout: the same steps give the same weights
    batch, optimizer = windows(reader, run), reader._optimizer(run.model, 1e-3)
    reader._step(run, optimizer, batch, 0.1)
    reader._saved(run.model, optimizer, tmp_path, 2, 7)
    reader._step(run, optimizer, batch, 0.2)

    again = reader._run(options(tmp_path / "bert"))
    again.model.eval()
    moments = reader._optimizer(again.model, 1e-3)
    assert reader._resumed(again.model, moments, tmp_path) == (2, 7)
    reader._step(again, moments, batch, 0.2)
    for name, value in run.model.state_dict().items():
        assert torch.allclose(again.model.state_dict()[name], value, atol=1e-7), name
