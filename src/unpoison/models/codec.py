"""Prompts to the tokens of a local model, and back."""

from __future__ import annotations

import re
from typing import Any

from unpoison.models.checkpoints import encodable
from unpoison.models.prompts import Prompt

__all__ = ["Codec"]


class Codec:
    """Prompts to tokens, so that nothing inside a message can become a token of the chat's structure."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        special = {i for i, token in added.items() if token.special} | set(tokenizer.all_special_ids)
        # The unknown token is special as well, but stands for plain text, unless the model ends with it.
        self._forbidden = special - ({tokenizer.unk_token_id} - {tokenizer.eos_token_id, tokenizer.bos_token_id})
        marks = {token.content.strip() for token in added.values() if not token.special}
        start = tokenizer("a").input_ids[:1]
        self._start = start if start == [tokenizer.bos_token_id] else []
        self._pieces, literals = self._template()
        marks.update(_MARK.findall(literals))
        marks = {mark for mark in marks if len(mark) > 1 and not mark.isalnum()}
        self._marks = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True)))) if marks else None

    def prompt(self, prompt: Prompt) -> list[int]:
        """The tokens of a prompt, the template's own included."""
        contents = [message["content"] for message in prompt.messages()]
        if len(self._pieces) < len(contents) + 1:  # no place for a system message
            contents = ["\n\n".join(filter(None, contents))]
        tokens = list(self._pieces[0])
        for content, piece in zip(contents, self._pieces[1:], strict=True):
            tokens += self.plain(content) + piece
        return tokens

    def text(self, text: str) -> list[int]:
        """The tokens of a plain text, after the model's start token where it has one; none for an empty text."""
        plain = self.plain(text)
        return self._start + plain if plain else []

    def token_id(self, name: str) -> int | None:
        """The id of an added token of exactly this spelling, such as a reflection token; None where there is none."""
        by_text = {token.content: i for i, token in self._tokenizer.added_tokens_decoder.items()}
        return by_text.get(name)

    def decode(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True)).strip()

    def _template(self) -> tuple[list[list[int]], str]:
        """The tokens before, between and after the messages, and the text that they were made from.

        Not every template has a place for a system message; some refuse it, some lose it. Then there is one message.
        """
        for roles in (("system", "user"), ("user",)):
            names = [f"MESSAGE{role.upper()}TEXT" for role in roles]
            messages = [{"role": role, "content": name} for role, name in zip(roles, names, strict=True)]
            try:
                rendered = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            except Exception:  # noqa: S112  no template, or whatever the template raises
                continue
            parts = re.split("|".join(names), rendered)
            if re.findall("|".join(names), rendered) == names:
                return [self._tokenizer(part, add_special_tokens=False).input_ids for part in parts], " ".join(parts)
        return [self._start, []], ""

    def plain(self, text: str) -> list[int]:
        """The tokens of hostile text: no special token can occur, and what looks like the chat's marks is broken up."""
        text = encodable(text)
        while self._marks is not None and self._marks.search(text):
            text = self._marks.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
        tokens = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
        return [token for token in tokens if token not in self._forbidden]


_MARK = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,40}\]")
"""What role markers look like in templates that spell them in plain text, such as [INST]."""
