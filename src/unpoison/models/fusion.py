"""Fusion-in-Decoder: a T5 reader that encodes every passage separately and answers from all of them together.

Izacard and Grave (2021); with a discriminator on its encoder it is the third variant of Discern-and-Answer (Hong et
al., 2024), which RAGDefender compares with. The discriminator is a linear head of two classes on the first encoder
token of each passage; the answer is generated without masking, because the two were trained together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.errors import ModelError
from unpoison.models.checkpoints import NamedModel, checkpoint_errors, load_pretrained, model_name, softmax
from unpoison.models.prompts import Prompt
from unpoison.utils.checks import at_least, within
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable

__all__ = ["HEAD", "FusionInDecoder"]

HEAD = "discriminator.safetensors"
"""In the checkpoint's folder: `weight`, shape (2, d), and `bias`, shape (2,); the second class is perturbed."""
CLOSING = "perturbed:"
"""The end of a Discern-and-Answer prompt that asks for the perturbed passages."""
MAX_PASSAGES = 100
"""Maximum passages, because all encodings are in memory together."""


class FusionInDecoder(NamedModel):
    """Answers from the question and the passages of a prompt; instructions and notes are ignored.

    For `Discern`, it also reports the passages that its discriminator finds perturbed, if its folder has one.

    Args:
        folder: A T5 checkpoint written by `save_pretrained`, with `discriminator.safetensors` if the encoder was also
            trained as a discriminator. Code in a checkpoint is never run.
        length: Maximum tokens of a question with one passage; 200 in Discern-and-Answer.
        threshold: The minimum P(perturbed) of a perturbed passage, in [0, 1].
        max_tokens: Maximum tokens of the answer.
        device: "cpu", "cuda", ...; None for a GPU if there is one.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded, or its head does not fit.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        length: int = 200,
        threshold: float = 0.5,
        max_tokens: int = 50,
        device: str | None = None,
    ) -> None:
        self.length = at_least("length", length, 8, 4096)
        self.threshold = within("threshold", threshold, 0.0, 1.0)
        self.max_tokens = at_least("max_tokens", max_tokens, 1, 1024)
        self._torch = require("torch", "FusionInDecoder")
        path = str(folder)
        given = {"length": length, "threshold": threshold, "max_tokens": max_tokens}
        self.name = model_name(f"fid:{path}", given)
        options = {"use_safetensors": True}
        self._tokenizer, self._model, _ = load_pretrained("Seq2SeqLM", path, "FusionInDecoder", device, **options)
        with checkpoint_errors(path):
            self._head = self._read_head(Path(path) / HEAD)
        self._lock = Lock()

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """The answer; for a Discern-and-Answer prompt, preceded by the numbers of the perturbed passages.

        Raises:
            ModelError: More than 100 passages.
        """
        with self._lock, self._torch.inference_mode():
            states, mask = self._encode(prompt.question, prompt.passages)
            reply = self._decode(states, mask)
            perturbed = None if self._head is None else np.flatnonzero(self._probabilities(states) >= self.threshold)
        if prompt.closing != CLOSING or perturbed is None:
            return Reply(reply)
        statement = (
            f"Passage {', '.join(str(i + 1) for i in perturbed)} are perturbed." if len(perturbed) else "No passages."
        )
        return Reply(f"{statement}\nanswer: {reply}")

    def _encode(self, question: str, passages: Sequence[str]) -> tuple[Any, Any]:
        """The encoder's states, shape (k, length, d), and the mask of tokens, shape (k, length)."""
        if len(passages) > MAX_PASSAGES:
            raise ModelError(f"{self.name} reads at most {MAX_PASSAGES} passages, got {len(passages)}; give fewer")
        texts = [f"question: {encodable(question)} context: {encodable(text)}" for text in passages or ("",)]
        tokens = self._tokenizer(texts, max_length=self.length, truncation=True, padding=True, return_tensors="pt").to(
            self._model.device
        )
        mask = tokens["attention_mask"]
        return self._model.get_encoder()(input_ids=tokens["input_ids"], attention_mask=mask).last_hidden_state, mask

    def _decode(self, states: Any, mask: Any) -> str:
        """The greedy answer from all states as one sequence (the fusion)."""
        outputs = require("transformers.modeling_outputs", "FusionInDecoder")
        together = outputs.BaseModelOutput(last_hidden_state=states.reshape(1, -1, states.shape[-1]))
        generated = self._model.generate(
            encoder_outputs=together,
            attention_mask=mask.reshape(1, -1),
            max_new_tokens=self.max_tokens,
            do_sample=False,
            num_beams=1,
        )
        return str(self._tokenizer.decode(generated[0], skip_special_tokens=True)).strip()

    def _probabilities(self, states: Any) -> NDArray[np.float64]:
        """The head on the first token of each passage."""
        assert self._head is not None  # noqa: S101  asked by the callers
        weight, bias = self._head
        first = states[:, 0].float().cpu().numpy().astype(np.float64)
        probabilities: NDArray[np.float64] = softmax(first @ weight.T + bias)[:, 1]
        return probabilities

    def _read_head(self, path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        if not path.is_file():
            return None
        held = require("safetensors.numpy", "FusionInDecoder").load_file(path)
        weight, bias = (np.asarray(held[name], np.float64) for name in ("weight", "bias"))
        size = self._model.config.d_model
        if weight.shape != (2, size) or bias.shape != (2,) or not np.isfinite([*weight.ravel(), *bias]).all():
            raise ModelError(
                f"{path} must hold finite weight (2, {size}) and bias (2,), got {weight.shape}, {bias.shape}"
            )
        return weight, bias
