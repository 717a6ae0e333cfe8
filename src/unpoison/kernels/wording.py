"""The outward form of texts, whatever they are about: lengths, capitals, marks, orders."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpoison.kernels.tokenized import TokenizedTexts

__all__ = ["forms"]

Matrix = NDArray[np.float64]

YEAR = re.compile(r"(?:1[5-9]|20)\d\d")

ORDERS = re.compile(
    r"\b(?:ignore|disregard|override|instructions?|output exactly|(?:respond|reply|answer) with|always answer"
    r"|only (?:permitted |correct )?answer|you (?:must|should|are asked)|when (?:you are )?asked"
    r"|the (?:correct )?answer"
    r"|system prompt|as an ai|pretend)\b|\[/?inst\]|<\|",
    re.IGNORECASE,
)
"""What speaks to the reader of the passage rather than of the topic."""

ORDER_WORDS = ("ignore", "disregard", "override", "instruction", "output exactly", "respond with", "reply with",
               "answer", "you must", "you should", "asked", "prompt", "as an ai", "pretend", "inst]", "<|")  # fmt: skip
"""One of these is in every order: looking for them first is quicker."""


def forms(texts: Sequence[str], tokenized: TokenizedTexts) -> dict[str, Matrix]:
    """The outward form of each text, each of shape (k,): lengths, shares of its words or characters, and marks."""
    k = len(texts)
    counts = np.bincount(tokenized.owner, minlength=k)
    sentences = np.maximum(np.bincount(tokenized.sentence_owner, minlength=k), 1)
    per_word = np.maximum(counts, 1)

    def share(flags: Sequence[float]) -> Matrix:
        return np.bincount(tokenized.owner, np.array(flags, float)[tokenized.word], k) / per_word

    size = max(len(tokenized.stop), 1)
    distinct = np.bincount(np.unique(tokenized.owner * size + tokenized.stem) // size, minlength=k)
    capitals = share([w[0].isupper() for w in tokenized.words]) * per_word - sentences
    ends = [text.rstrip().rstrip("\"'\u201d\u2019)]*") for text in texts]
    return {
        "length": np.log1p(counts),
        "sentence_length": per_word / sentences,
        "function_words": np.bincount(tokenized.owner, tokenized.stop[tokenized.stem], k) / per_word,
        "word_length": share([len(w) for w in tokenized.words]),
        "distinct": distinct / per_word,
        "capitals": np.maximum(capitals, 0) / per_word,
        "digits": share([not w.isalpha() and any(map(str.isdigit, w)) for w in tokenized.words]),
        "commas": np.array([text.count(",") for text in texts]) / per_word,
        "ellipsis": np.array([float("..." in text or "\u2026" in text) for text in texts]),
        "open_end": np.array([float(not end.endswith((".", "!", "?", "\u3002"))) for end in ends]),
        "lower_start": np.array([float(text[:1].islower()) for text in texts]),
        "marks": np.array([_marked(text) for text in texts]),
        "quoted": np.array([float(text[:1] in ('"', "'", "\u201c")) for text in texts]),
        "foreign": np.array([(len(t) - len(t.encode("ascii", "ignore"))) / max(len(t), 1) for t in texts]),
        "orders": np.array([_orders(text) for text in texts]),
        "asks": np.array([float("?" in text) for text in texts]),
        "year": np.array([float(YEAR.search(text) is not None) for text in texts]),
    }


PLAIN = str.maketrans("", "", ".,'\"-()0123456789 \n\tabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


MARK = re.compile(r"[^\w\s]|_")


def _marked(text: str) -> float:
    """The share of characters that are neither letters, digits, white space nor plain punctuation."""
    rest = text.translate(PLAIN)
    return len(MARK.findall(rest)) / max(len(text), 1)


def _orders(text: str) -> float:
    """How many orders a text gives."""
    lowered = text.casefold()
    return float(len(ORDERS.findall(text))) if any(word in lowered for word in ORDER_WORDS) else 0.0
