"""What an exported reader teaches another one: its probabilities of every token (Hinton et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from benchmarks.training.reader_network import Frame, Window, open_tokenizer
from benchmarks.training.reader_weights import exported_folder
from unpoison.models.spans import OnnxSpans
from unpoison.models.spans import TokenWindow as Input
from unpoison.utils.threads import cores

__all__ = ["Teacher", "soft_loss"]

TEMPERATURE = 2.0
"""By how much the probabilities are softened."""


@dataclass
class Teacher:
    """An exported reader, the frame of its texts, and its ids of the student's tokens."""

    model: OnnxSpans
    frame: Frame
    ids: np.ndarray

    @classmethod
    def of(cls, name: str, student: Tokenizer) -> Teacher:
        folder = exported_folder(name)
        tokenizer = open_tokenizer(folder)
        return cls(OnnxSpans(folder, name, cores()), Frame.of(tokenizer), _translation(student, tokenizer))

    def window(self, window: Window, frame: Frame) -> Input:
        """A student's window in the teacher's ids and frame."""
        question, passage = frame.parts(window.ids, window.passage)
        ids, first = self.frame.around(self.ids[question].tolist(), self.ids[passage].tolist())
        types = (np.arange(len(ids)) >= first).astype(np.int64)
        return Input(np.array(ids), types, first, first + len(passage), (), ())


def soft_loss(frame: Frame, teacher: Teacher, start: Tensor, end: Tensor, batch: Sequence[Window]) -> Tensor:
    """How far the student is from the teacher over "none" and the passage's tokens: the divergence of both ends."""
    texts = [teacher.window(window, frame) for window in batch]
    loss = start.new_zeros(())
    for row, (window, text, marks) in enumerate(zip(batch, texts, teacher.model.run(texts), strict=True)):
        size = len(frame.parts(window.ids, window.passage)[1])
        for ours, theirs in ((start, marks.start), (end, marks.end)):
            own, goal = (
                torch.cat([logits[:1], logits[first : first + size]]) / TEMPERATURE
                for logits, first in (
                    (ours[row], window.passage),
                    (torch.from_numpy(theirs).to(start.device), text.first),
                )
            )
            loss = loss + nn.functional.kl_div(
                own.log_softmax(-1), goal.log_softmax(-1), reduction="sum", log_target=True
            )
    return TEMPERATURE**2 * loss / (2 * len(batch))


def _translation(source: Tokenizer, target: Tokenizer) -> NDArray[np.int64]:
    """The target's id of each of the source's tokens, shape (tokens of the source,); 0 for marks that it lacks.

    Raises:
        ValueError: They do not cut words into the same pieces, so that one cannot teach the other token by token.
    """
    theirs, marks = target.get_vocab(), source.get_added_tokens_decoder()
    table = np.zeros(source.get_vocab_size(), np.int64)
    for token, i in source.get_vocab().items():
        if token not in theirs and i not in marks:
            raise ValueError(f"the teacher lacks the piece of a word {token!r}; take one of the same vocabulary")
        table[i] = theirs.get(token, 0)
    return table
