"""A local causal language model with access to its probabilities, for Adversarial Decoding and GARAG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpoison.models.checkpoints import checkpoint_errors, encodable, from_disk
from unpoison.models.prompts import Prompt, answer_prompt
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require

__all__ = ["CausalModel"]

READABILITY = "Is the text unintelligible? Reply Yes or No."
"""Adversarial Decoding's second score."""


class CausalModel:
    """Any causal language model of the transformers library; code that comes with a checkpoint is never run.

    Args:
        name_or_path: A name on the model hub, or a folder.
        window: The most tokens of one prompt; longer ones lose their start.
        max_new_tokens: The longest reply that `read` generates.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded.
    """

    def __init__(self, name_or_path: str | Path, *, window: int = 2048, max_new_tokens: int = 32) -> None:
        library = require("transformers", "a local language model")
        self._torch = require("torch", "a local language model")
        path = str(name_or_path)
        with checkpoint_errors(path):
            local = from_disk(path)
            self._tokenizer = library.AutoTokenizer.from_pretrained(path, local_files_only=local)
            self._model = library.AutoModelForCausalLM.from_pretrained(path, local_files_only=local).eval()
        self.name = f"hf:{path}"
        self._max_new_tokens = at_least("max_new_tokens", max_new_tokens, 1)
        positions = getattr(self._model.config, "max_position_embeddings", None) or window
        # Room behind the prompt for a reply, or for an answer to be scored.
        self._window = max(1, min(at_least("window", window, 8), positions - 2 * self._max_new_tokens))

    def propose(self, instruction: str, texts: Sequence[str], /, *, count: int, mass: float) -> list[list[str]]:
        """For each text the `count` likeliest continuations by one token inside the top `mass`, the end left out."""
        proposed = []
        for text in texts:
            prompt = Prompt("free", instruction, closing=text)
            logits = self._logits(self._prompt_ids(prompt, keep_closing=True))
            logits[self._tokenizer.all_special_ids] = -np.inf
            odds = np.exp(logits - logits.max())
            odds /= odds.sum()
            order = np.argsort(-odds, kind="stable")[:count]
            inside = order[np.concatenate([[0.0], np.cumsum(odds[order])[:-1]]) < mass]
            ids = self._ids(text)
            longer = [str(self._tokenizer.decode([*ids, int(i)], skip_special_tokens=True)) for i in inside]
            proposed.append([candidate for candidate in longer if candidate.strip() and candidate != text])
        return proposed

    def naturalness(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """(l_No - l_Yes) / (l_No + l_Yes) on raw logits after asking whether the text is unintelligible, shape (n,)."""
        yes, no = (self._ids(word)[0] for word in ("Yes", "No"))
        odds = []
        for text in texts:
            prompt = Prompt("free", READABILITY, notes={"Text": text}, closing="Yes or No:", max_tokens=1)
            logits = self._logits(self._prompt_ids(prompt))
            total = logits[no] + logits[yes]
            odds.append((logits[no] - logits[yes]) / total if total else 0.0)
        return np.array(odds, dtype=float)

    def read(self, question: str, passages: Sequence[str], answer: str, /) -> list[tuple[str, float]]:
        """For each passage alone: the greedy reply, and p(answer | question, passage) over the answer's tokens."""
        readings = []
        for passage in passages:
            prompt_ids = self._prompt_ids(answer_prompt(question, [passage], abstain=False))
            readings.append((self._reply(prompt_ids), self._likelihood(prompt_ids, answer)))
        return readings

    def _likelihood(self, prompt_ids: list[int], answer: str) -> float:
        wanted = self._ids(answer)
        with self._torch.inference_mode():
            tokens = self._torch.tensor([[*prompt_ids, *wanted]])
            logits = self._model(tokens).logits[0, len(prompt_ids) - 1 : -1].float().log_softmax(dim=-1)
        chosen = logits[range(len(wanted)), wanted]
        return float(chosen.sum().exp())

    def _reply(self, prompt_ids: list[int]) -> str:
        tokens = self._torch.tensor([prompt_ids])
        with self._torch.inference_mode():
            generated = self._model.generate(
                tokens,
                attention_mask=self._torch.ones_like(tokens),
                max_new_tokens=self._max_new_tokens,
                do_sample=False,
                pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id or 0,
            )
        return str(self._tokenizer.decode(generated[0, len(prompt_ids) :], skip_special_tokens=True)).strip()

    def _logits(self, ids: list[int]) -> NDArray[np.float64]:
        with self._torch.inference_mode():
            return np.asarray(self._model(self._torch.tensor([ids])).logits[0, -1].double().numpy())

    def _ids(self, text: str) -> list[int]:
        return [int(i) for i in self._tokenizer(encodable(text), add_special_tokens=False)["input_ids"]]

    def _prompt_ids(self, prompt: Prompt, *, keep_closing: bool = False) -> list[int]:
        """The prompt's ids, by the chat template if there is one; `keep_closing` continues the closing line."""
        if self._tokenizer.chat_template is None:
            return self._ids(prompt.text() + ("" if keep_closing else "\n"))[-self._window :]
        messages: list[Any] = list(prompt.messages())
        if keep_closing:
            messages = [{"role": "user", "content": prompt.system}]
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return self._ids(str(text) + (prompt.closing if keep_closing else ""))[-self._window :]
