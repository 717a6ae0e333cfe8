"""Tiny real checkpoints, written by the tests in the libraries' own formats."""

from __future__ import annotations

from pathlib import Path

WORDS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "is", "in", "capital", "of", "france", "paris", "lyon",
    "city", "tower", "river", "not", "large", "old", "##s", ".", "?",
]  # fmt: skip


def save_tokenizer(folder: Path) -> Path:
    """A WordPiece tokenizer of BERT's kind."""
    from transformers import BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {word: i for i, word in enumerate(WORDS)}
    BertTokenizer(vocab=vocabulary, model_max_length=64).save_pretrained(folder)
    return folder


def classifier(labels: list[str], seed: int = 0, *, order: list[int] | None = None):
    """A BERT of two layers with random weights and one output per label; `order` permutes its outputs."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, num_labels=len(labels), id2label=dict(enumerate(labels)),
        label2id={label: i for i, label in enumerate(labels)},
    )  # fmt: skip
    model = BertForSequenceClassification(config).eval()
    with torch.no_grad():  # the default initialisation is so small that every pair would get the same probabilities
        model.bert.pooler.dense.weight.normal_(0, 1)
        model.classifier.weight.normal_(0, 1)
        model.bert.embeddings.word_embeddings.weight.normal_(0, 1)
        if order is not None:
            model.classifier.weight.copy_(model.classifier.weight[order].clone())
            model.classifier.bias.copy_(model.classifier.bias[order].clone())
    return model


def save_classifier(folder: Path, labels: list[str], **options) -> Path:
    save_tokenizer(folder)
    classifier(labels, **options).save_pretrained(folder)
    return folder


def question_answerer(seed: int = 0):
    """A BERT of two layers with random weights that marks where answers begin and end."""
    import torch
    from transformers import BertConfig, BertForQuestionAnswering

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64,
    )  # fmt: skip
    model = BertForQuestionAnswering(config).eval()
    with torch.no_grad():
        model.qa_outputs.weight.normal_(0, 2)
        model.bert.embeddings.word_embeddings.weight.normal_(0, 1)
    return model


def save_question_answerer(folder: Path, **options) -> Path:
    save_tokenizer(folder)
    question_answerer(**options).save_pretrained(folder)
    return folder


def encoder(seed: int = 0):
    """A BERT of two layers with random weights and no head."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).eval()
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.normal_(0, 1)
    return model
