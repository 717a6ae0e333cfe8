"""Local causal language models of the transformers library."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.core.answers import Reply
from unpoison.errors import ModelError
from unpoison.models.checkpoints import NamedModel, load_pretrained, model_name
from unpoison.models.prompts import Prompt
from unpoison.models.responses import make_reply
from unpoison.utils.checks import at_least
from unpoison.utils.extras import require
from unpoison.utils.plain_text import encodable

__all__ = ["TransformersGenerator"]


class Codec:
    """Converts prompts to tokens; text inside a message can never become a special token of the chat."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        special = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)
        # The unknown token is special as well, but represents plain text, unless the model uses it to end.
        self._forbidden = special - ({tokenizer.unk_token_id} - {tokenizer.eos_token_id, tokenizer.bos_token_id})
        marks = {token.content.strip() for token in added.values() if not token.special}
        start = tokenizer("a").input_ids[:1]
        self._start = start if start == [tokenizer.bos_token_id] else []
        self._pieces, literals = self._template()
        marks.update(_MARK.findall(literals))
        marks = {mark for mark in marks if len(mark) > 1 and not mark.isalnum()}
        self._marks = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True)))) if marks else None

    def prompt(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, including those of the template."""
        contents = [message["content"] for message in prompt.messages()]
        if len(self._pieces) < len(contents) + 1:  # the template has no system message
            contents = ["\n\n".join(filter(None, contents))]
        tokens = list(self._pieces[0])
        for content, piece in zip(contents, self._pieces[1:], strict=True):
            tokens += self.plain(content) + piece
        return tokens

    def text(self, text: str) -> list[int]:
        """The tokens of a plain text, after the model's start token if it has one; none for an empty text."""
        plain = self.plain(text)
        return self._start + plain if plain else []

    def token_id(self, name: str) -> int | None:
        """The id of an added token with exactly this spelling, such as a reflection token, or None."""
        by_text = {token.content: i for i, token in self._tokenizer.added_tokens_decoder.items()}
        return by_text.get(name)

    def decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True)).strip()

    def _template(self) -> tuple[list[list[int]], str]:
        """The tokens before, between and after the messages, and their text.

        Some templates reject or drop the system message. Then there is a single message.
        """
        for roles in (("system", "user"), ("user",)):
            names = [f"MESSAGE{role.upper()}TEXT" for role in roles]
            messages = [{"role": role, "content": name} for role, name in zip(roles, names, strict=True)]
            try:
                rendered = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            except Exception:  # noqa: S112  no template, or any error of the template
                continue
            parts = re.split("|".join(names), rendered)
            if re.findall("|".join(names), rendered) == names:
                return [self._tokenizer(part, add_special_tokens=False).input_ids for part in parts], " ".join(parts)
        return [self._start, []], ""

    def plain(self, text: str) -> list[int]:
        """The tokens of untrusted text, without special tokens; text that looks like role markers is split."""
        text = encodable(text)
        while self._marks is not None and self._marks.search(text):
            text = self._marks.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
        tokens = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
        return [token for token in tokens if token not in self._forbidden]


_MARK = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,40}\]")
"""Role markers in templates that write them as plain text, such as [INST]."""


_WINDOW_TOKENS = 2048
"""Maximum tokens of one forward pass in `logprobs`; each needs 4 bytes times the vocabulary for its logits."""


class TransformersGenerator(NamedModel):
    """Any causal language model: greedy replies in batches, next-token and text log-probabilities.

    A folder is read from disk only; a name may be downloaded from the model hub, unless `HF_HUB_OFFLINE` is set. Only
    safetensors weights are read, and code in a checkpoint is never run. Calls from several threads are serialised.

    Messages use the tokenizer's chat template if it has one. Their text is tokenised separately from the template,
    without special tokens, so that the model sees no special tokens but those of the template.

    Args:
        name_or_path: Such as "Qwen/Qwen2.5-0.5B-Instruct", or a folder.
        device: "cpu", "cuda", "cuda:1", "mps", ...; None for a GPU if there is one.
        dtype: "auto" for the type of the saved checkpoint, or "float32", "bfloat16", ...
        batch_size: Prompts per forward pass.
        max_tokens: Overrides the limit of each prompt.

    Raises:
        MissingExtraError: The extra `torch` is not installed.
        ModelError: The checkpoint cannot be loaded.
    """

    def __init__(
        self,
        name_or_path: str | Path,
        *,
        device: str | None = None,
        dtype: str = "auto",
        batch_size: int = 8,
        max_tokens: int | None = None,
    ) -> None:
        at_least("batch_size", batch_size, 1)
        if max_tokens is not None:
            at_least("max_tokens", max_tokens, 1)
        self._torch = require("torch", "TransformersGenerator")
        library = require("transformers", "TransformersGenerator")
        path = str(name_or_path)
        self.name = model_name(f"hf:{path}", {"dtype": dtype, "max_tokens": max_tokens}, dtype="auto")
        self.batch_size, self.max_tokens = batch_size, max_tokens
        options = {"dtype": dtype, "use_safetensors": True}
        tokenizer, self._model, _ = load_pretrained("CausalLM", path, "TransformersGenerator", device, **options)
        self._codec = Codec(tokenizer)
        ends = self._model.generation_config.eos_token_id
        ends = tokenizer.eos_token_id if ends is None else ends
        self._ends = set(ends if isinstance(ends, list) else [] if ends is None else [ends])
        self._pad = next((i for i in (tokenizer.pad_token_id, *sorted(self._ends)) if i is not None), 0)
        self._model.generation_config = library.GenerationConfig(  # greedy, instead of the checkpoint's settings
            do_sample=False, pad_token_id=self._pad, eos_token_id=sorted(self._ends) or None
        )
        config = self._model.config.get_text_config()
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        parameters = signature(self._model.forward).parameters
        self._last_only = "logits_to_keep" in parameters
        self._memory = "cache" if "cache" in parameters else "past_key_values"  # renamed in 5.2x
        self._so_far: _SoFar | None = None
        self._lock = Lock()

    def generate(self, prompt: Prompt, /, *, timeout: float | None = None) -> Reply:
        """`generate_batch` for one prompt."""
        return self.generate_batch([prompt], timeout=timeout)[0]

    def generate_batch(self, prompts: Sequence[Prompt], /, *, timeout: float | None = None) -> list[Reply]:
        """Greedy replies, in the order of the prompts.

        Raises:
            ModelError: A prompt and its reply do not fit into the model's context, or the timeout passed.
        """
        end = None if timeout is None else time.monotonic() + timeout
        with self._hold_lock(timeout):
            encoded = [self._codec.prompt(prompt) for prompt in prompts]
            longest = [self.max_tokens or prompt.max_tokens for prompt in prompts]
            for tokens, extra in zip(encoded, longest, strict=True):
                self._require_room(len(tokens), extra)
            order = sorted(range(len(prompts)), key=lambda i: len(encoded[i]))  # less padding
            replies: dict[int, Reply] = {}
            for start in range(0, len(order), self.batch_size):
                batch = order[start : start + self.batch_size]
                rows, most = [encoded[i] for i in batch], [longest[i] for i in batch]
                continued = self._continue(rows, most, self._time_left(end))
                replies.update(zip(batch, continued, strict=True))
        return [replies[i] for i in range(len(prompts))]

    def logprobs(self, texts: Sequence[str], /) -> list[NDArray[np.float64]]:
        """Natural logarithms of the probability of each token but the first, given the previous ones.

        A text longer than the model's context is read in windows that overlap by half, so that every token is scored
        once with at least half a window before it.

        Returns:
            For each text an array of shape (T - 1,), for T tokens including the model's start token if it has one;
            shape (0,) for a text without tokens.
        """
        width = min(self.context or _WINDOW_TOKENS, _WINDOW_TOKENS)
        with self._hold_lock(None):
            tokens = [self._codec.text(text) for text in texts]
            windows = [(i, *window) for i, ids in enumerate(tokens) for window in _windows(len(ids), width)]
            windows.sort(key=lambda window: window[2] - window[1])
            values = [np.zeros(max(0, len(ids) - 1)) for ids in tokens]
            for batch in self._batches(windows):
                scores = self._score([tokens[i][start:stop] for i, start, stop, _ in batch])
                for (i, start, stop, fresh), row in zip(batch, scores, strict=True):
                    values[i][fresh - 1 : stop - 1] = row[fresh - start - 1 : stop - start - 1]
        return values

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a reply."""
        return frozenset(self._ends)

    def tokens(self, text: str, /) -> list[int]:
        """A piece of a reply as tokens."""
        with self._hold_lock(None):
            return self._codec.plain(text)

    def token_id(self, name: str, /) -> int | None:
        """The id of an added token with exactly this spelling, or None."""
        return self._codec.token_id(name)

    def text(self, tokens: Sequence[int], /) -> str:
        """Tokens as the text of a reply."""
        return self._codec.decode(list(tokens))

    def next_token(self, prompts: Sequence[Prompt], tokens: Sequence[int], /) -> NDArray[np.float32]:
        """Natural logarithms of the next-token probabilities after each prompt and the reply so far.

        The state of the last call is cached, so that one more token costs one step; all prompts are in one forward
        pass.

        Returns:
            Shape (n, vocabulary), at least -1000.

        Raises:
            ModelError: A prompt and its reply do not fit into the model's context.
        """
        torch, prefix = self._torch, tuple(tokens)
        with self._hold_lock(None):
            state, self._so_far = self._so_far, None
            if state is None or not prefix or state.prompts != tuple(prompts) or state.tokens != prefix[:-1]:
                rows = [self._codec.prompt(prompt) + list(prefix) for prompt in prompts]
                for row in rows:
                    self._require_room(len(row), 1)
                (fresh, mask), read = self._padded(rows), None
            else:
                fresh, read = [[prefix[-1]]] * len(prompts), state.read
                mask = [[*row, 1] for row in state.mask]
                self._require_room(max(map(sum, mask)), 0)
            if not prompts:
                return np.zeros((0, self._model.config.get_text_config().vocab_size), np.float32)
            ids, held = (torch.tensor(rows, device=self._model.device) for rows in (fresh, mask))
            places = (held.cumsum(1) - 1).clamp(min=0)[:, -len(fresh[0]) :]
            options = {"use_cache": True, self._memory: read, **({"logits_to_keep": 1} if self._last_only else {})}
            with torch.inference_mode():
                output = self._model(input_ids=ids, attention_mask=held, position_ids=places, **options)
                values = torch.log_softmax(output.logits[:, -1].float(), -1).cpu().numpy()
            if np.isnan(values).any():
                raise ModelError(f"{self.name} returned a probability of nan; load it with dtype='float32'")
            self._so_far = _SoFar(tuple(prompts), prefix, mask, output[self._memory])
        log_probabilities: NDArray[np.float32] = np.maximum(values, -1000.0)
        return log_probabilities

    def _padded(self, rows: list[list[int]], *, left: bool = True) -> tuple[list[list[int]], list[list[int]]]:
        """Rows of one length, and which of their tokens count."""
        gaps = [max(map(len, rows)) - len(row) for row in rows]
        ids = [[self._pad] * gap * left + row + [self._pad] * gap * (not left) for row, gap in zip(rows, gaps)]
        return ids, [[0] * gap * left + [1] * len(row) + [0] * gap * (not left) for row, gap in zip(rows, gaps)]

    def _batches(self, windows: list[tuple[int, int, int, int]]) -> Iterator[list[tuple[int, int, int, int]]]:
        """Batches of windows, shortest first, within the batch size and the memory for logits."""
        while windows:
            count = 1
            while count < min(self.batch_size, len(windows)):
                _, start, stop, _ = windows[count]
                if (count + 1) * (stop - start) > _WINDOW_TOKENS:
                    break
                count += 1
            yield windows[:count]
            windows = windows[count:]

    def _score(self, rows: list[list[int]]) -> list[NDArray[np.float64]]:
        """The T - 1 log-probabilities of each row of T tokens."""
        torch = self._torch
        ids, mask = (torch.tensor(one, device=self._model.device) for one in self._padded(rows, left=False))
        with torch.inference_mode():
            logits = self._model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1].float()
            # for the target only, to avoid a second array of the size of the logits
            targets = torch.gather(logits, 2, ids[:, 1:, None])[..., 0] - torch.logsumexp(logits, 2)
        values = targets.double().cpu().numpy()
        if not np.isfinite(values).all():
            raise ModelError(f"{self.name} returned a probability that is not finite; load it with dtype='float32'")
        return [np.minimum(values[i, : len(row) - 1], 0.0) for i, row in enumerate(rows)]

    def _continue(self, rows: list[list[int]], longest: list[int], left: float | None) -> list[Reply]:
        ids, mask = (self._torch.tensor(one, device=self._model.device) for one in self._padded(rows))
        began = time.monotonic()
        with self._torch.inference_mode():
            room = {"max_new_tokens": max(longest), "max_time": left}
            generated = self._model.generate(input_ids=ids, attention_mask=mask, **room)
        generated = generated[:, ids.shape[1] :].tolist()
        late = left is not None and time.monotonic() - began >= left
        replies = zip(rows, generated, longest, strict=True)
        return [self._reply(len(row), new, extra, late) for row, new, extra in replies]

    def _reply(self, prompt_tokens: int, new: list[int], longest: int, late: bool) -> Reply:
        stop = next((i for i, token in enumerate(new[:longest]) if token in self._ends), None)
        if stop is None and late and len(new) < longest:
            raise ModelError(f"{self.name} did not finish its reply in time; raise the deadline or lower max_tokens")
        kept = new[: longest if stop is None else stop]
        return make_reply(self._codec.decode(kept), "length" if stop is None else "stop", prompt_tokens, len(kept))

    def _require_room(self, tokens: int, extra: int) -> None:
        if self.context is not None and tokens + extra > self.context:
            raise ModelError(
                f"the prompt has {tokens:,} tokens and its reply up to {extra:,}, but the context of {self.name} is "
                f"{self.context:,}; send fewer or shorter passages, or lower max_tokens"
            )

    def _time_left(self, end: float | None) -> float | None:
        if end is None:
            return None
        left = end - time.monotonic()
        if left <= 0:
            raise ModelError(f"{self.name} did not reply in time; raise the deadline or send fewer passages")
        return left

    @contextmanager
    def _hold_lock(self, timeout: float | None) -> Iterator[None]:
        if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
            raise ModelError(f"{self.name} was busy with another call for {timeout:g} s", retryable=True)
        try:
            yield
        finally:
            self._lock.release()


class _SoFar(NamedTuple):
    """The cached state of `next_token`: prompts and reply, padded on the left, and the model's key-value cache."""

    prompts: tuple[Prompt, ...]
    tokens: tuple[int, ...]
    mask: list[list[int]]
    read: Any


def _windows(tokens: int, width: int) -> Iterator[tuple[int, int, int]]:
    """Windows (start, stop, first new token) over a text; the first token of a text is never scored."""
    if tokens < 2:
        return
    fresh = 1
    while fresh < tokens:
        start = 0 if fresh == 1 else fresh - width // 2
        stop = min(start + width, tokens)
        yield start, stop, fresh
        fresh = stop
