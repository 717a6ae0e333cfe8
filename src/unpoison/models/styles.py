"""How a prompt is put to a model: safe, as users need it, or plain, as the papers' baselines ask.

A style says nothing of what is asked, only how. It travels with the models (`Models.style`), so a defense is written
without it.

What the papers ask and plant, and what stands for it here, is in `data/wordings.yaml`, each with its source. The
papers' sentences are theirs, and some of the code that holds them carries no licence; so each is stated as a fact
(`says`), restated in our words (`text` and the like), and what is not as there is said (`differs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self

import yaml

from unpoison.core.registry import parse, read_options
from unpoison.errors import OptionError, clip
from unpoison.utils.checks import among, flag

__all__ = ["PAPERS", "SAFE", "Style", "wording"]

PAPERS = ("grada", "ragdefender", "trustrag", "radar")
"""Whose way of asking a style can name."""


@cache
def _all() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    text = files("unpoison").joinpath("data", "wordings.yaml").read_text(encoding="utf-8")
    read: Mapping[str, Mapping[str, Mapping[str, Any]]] = yaml.safe_load(text)
    return read


def wording(kind: str, name: str) -> Mapping[str, Any]:
    """One entry: `wording("answer", "grada")` or `wording("orders", "qa")`.

    Raises:
        KeyError: No such entry.
    """
    return _all()[kind][name]


@dataclass(frozen=True, slots=True)
class Style:
    """How prompts are put to a model.

    Attributes:
        safe: Fence what an attacker may have written, and order the model to follow nothing that stands inside. False
            is for comparisons with published numbers only: a passage may then pose as the instructions.
        abstain: Whether plain RAG may reply "I don't know". Methods that need abstentions ask for them anyway.
        long: Ask for a text in place of a short answer.
        question: Whether the question stands before or after the passages; safe prompts have it last.
        paper: Whose rules plain RAG is asked by (`data/wordings.yaml`), in our words: the form of the reply, and when
            it may abstain. "" for our own.

    Raises:
        OptionError: A value that cannot be used.
    """

    safe: bool = True
    abstain: bool = True
    long: bool = False
    question: Literal["last", "first"] = "last"
    paper: Literal["", "grada", "ragdefender", "trustrag", "radar"] = ""

    def __post_init__(self) -> None:
        for name in ("safe", "abstain", "long"):
            flag(name, getattr(self, name))
        among("question", self.question, ("last", "first"))
        among("paper", self.paper, ("", *PAPERS))
        if self.safe and self.question == "first":
            raise OptionError("question=first goes with the plain style only; safe prompts have our instructions first")
        if self.safe and self.paper:
            raise OptionError(f"paper={self.paper} goes with the plain style only; no paper asks safely")

    @classmethod
    def of(cls, spec: str | Self) -> Self:
        """Read a style: `safe`, `plain`, or one with options such as `plain:abstain=false,question=first,long=true`.

        Raises:
            OptionError: Neither of the two, or an option that a style does not have.
        """
        if isinstance(spec, cls):
            return spec
        name, texts = parse(str(spec))
        if name not in ("safe", "plain") or "safe" in texts:
            raise OptionError(f"style must be safe or plain, with options such as plain:long=true, got {clip(spec)}")
        return cls(safe=name == "safe", **read_options(cls, texts, name))

    def __str__(self) -> str:
        """What `of` reads back."""
        own = [field for field in fields(self)[1:] if getattr(self, field.name) != field.default]
        given = ",".join(f"{field.name}={str(getattr(self, field.name)).lower()}" for field in own)
        return ("safe" if self.safe else "plain") + (f":{given}" if given else "")

    @property
    def description(self) -> str:
        """In words, for the header of a table."""
        fence = "passages fenced and their orders forbidden" if self.safe else "no fence, no warning of orders"
        abstain = "may abstain" if self.abstain else "no abstention offered"
        rules = f"; by the rules of {wording('answer', self.paper)['source']}" if self.paper else ""
        return f"{fence}; {'long' if self.long else 'short'} answers; {abstain}; question {self.question}{rules}"


SAFE = Style()
