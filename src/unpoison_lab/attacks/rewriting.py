"""Rewriting a text without a language model: synonyms from a small table, sentence order and openings, typos."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import yaml

from unpoison.text.sentences import STOP_WORDS, split
from unpoison_lab.attacks.base import contains_answer

__all__ = ["Rewritten", "paraphrase_text", "sentences", "typo", "with_synonyms"]

_WORDS = yaml.safe_load(files("unpoison_lab").joinpath("data", "rewriting.yaml").read_text(encoding="utf-8"))
_TABLE: dict[str, tuple[str, ...]] = {}
for _group in _WORDS["synonyms"].split():
    _members = tuple(_group.split("/"))
    for _word in _members:
        _TABLE.setdefault(_word, tuple(m for m in _members if m != _word))

_OPENINGS = (
    "As it turns out,",
    "According to the same accounts,",
    "Put differently,",
    "It has been established that",
    "For the record,",
    "By all indications,",
    "It is worth adding that",
    "On closer inspection,",
)


class Rewritten(NamedTuple):
    """A rewritten text, with the numbers of replaced words and of content words if words were replaced."""

    text: str
    replaced: int | None = None
    content: int | None = None

    @property
    def meta(self) -> dict[str, int]:
        return (
            {}
            if self.replaced is None or self.content is None
            else {"replaced": self.replaced, "content_words": self.content}
        )


def with_synonyms(text: str, keep: Sequence[str], rng: np.random.Generator, rate: float) -> Rewritten:
    """Replace a share of the content words by synonyms, words of the kept texts never.

    Args:
        text: The text.
        keep: Texts whose words stay, such as the question and the wrong answer.
        rng: Chooses words and synonyms.
        rate: Share of all content words to replace, in [0, 1]; the table may know fewer.
    """
    kept = {word.lower() for phrase in keep for sentence in split(phrase) for word in sentence.words}
    parts, start = [], 0
    content, choices = 0, []
    for sentence in split(text):
        at = text.index(sentence.text, start)
        start = at + len(sentence.text)
        for word, offset in zip(sentence.words, sentence.starts, strict=True):
            lowered = word.lower()
            if lowered in STOP_WORDS or lowered in kept:
                continue
            content += 1
            if lowered in _TABLE:
                choices.append((at + offset, word))
    wanted = min(len(choices), round(rate * content))
    end = 0
    for k in sorted(rng.permutation(len(choices))[:wanted].tolist()):
        at, word = choices[k]
        options = _TABLE[word.lower()]
        synonym = options[int(rng.integers(len(options)))]
        parts += [text[end:at], synonym.capitalize() if word[0].isupper() else synonym]
        end = at + len(word)
    return Rewritten("".join([*parts, text[end:]]), wanted, content)


def paraphrase_text(text: str, keep: Sequence[str], rng: np.random.Generator) -> str:
    """The sentences in another order, some with another opening; the given text when that would lose a kept phrase."""
    parts = sentences(text)
    order = rng.permutation(len(parts))
    written = []
    for k in order:
        part = parts[k]
        if len(parts) == 1 or rng.random() < 0.5:
            opening = _OPENINGS[int(rng.integers(len(_OPENINGS)))]
            first, _, rest = part.partition(" ")
            part = (
                f"{opening} {first.lower() if first.lower() in STOP_WORDS and first != 'I' else first} {rest}".strip()
            )
        written.append(part)
    rewritten = " ".join(written)
    return rewritten if all(contains_answer(rewritten, k) for k in keep if contains_answer(text, k)) else text


def sentences(text: str) -> list[str]:
    """The sentences of a text as written."""
    return [sentence.text for sentence in split(text)]


_MARKS = ".,;:!?()[]{}\"'"
_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")

_MISSPELLINGS: dict[str, str] = dict(pair.split("/") for pair in _WORDS["misspellings"].split())


def typo(word: str, rng: np.random.Generator) -> str:
    """The word with one error: a neighbouring key, a common misspelling, a cut end, or shuffled inner letters.

    Args:
        word: At least 3 characters, which no result goes below; punctuation around it stays.
        rng: Chooses.

    Returns:
        A different word; the given one only if no error applies (a word of three equal signs).
    """
    start = len(word) - len(word.lstrip(_MARKS))
    end = len(word.rstrip(_MARKS))
    core = word[start:end]
    errors = (_neighbour, _misspell, _cut, _shuffle_letters)
    for kind in rng.permutation(len(errors)):
        misspelt = errors[kind](core, rng)
        if misspelt != core:
            return word[:start] + misspelt + word[end:]
    return word


def _neighbour(word: str, rng: np.random.Generator) -> str:
    """One letter replaced by an adjacent key, its case kept."""
    positions = [i for i, letter in enumerate(word) if _adjacent(letter)]
    if not positions:
        return word
    position = positions[int(rng.integers(len(positions)))]
    near = _adjacent(word[position])
    letter = near[int(rng.integers(len(near)))]
    return word[:position] + (letter.upper() if word[position].isupper() else letter) + word[position + 1 :]


def _adjacent(letter: str) -> str:
    for r, row in enumerate(_ROWS):
        column = row.find(letter.lower())
        if column >= 0:
            beside = row[max(0, column - 1) : column] + row[column + 1 : column + 2]
            above = _ROWS[r - 1][column : column + 2] if r else ""
            below = _ROWS[r + 1][max(0, column - 1) : column + 1] if r + 1 < len(_ROWS) else ""
            return "".join(key for key in beside + above + below if key.isdigit() == letter.isdigit())
    return ""


def _misspell(word: str, _rng: np.random.Generator) -> str:
    misspelling = _MISSPELLINGS.get(word.lower(), word)
    return misspelling.capitalize() if misspelling != word and word[:1].isupper() else misspelling


def _cut(word: str, rng: np.random.Generator) -> str:
    """Up to three letters gone from the end or from the start, three left at least."""
    most = min(3, len(word) - 3)
    if most < 1:
        return word
    gone = int(rng.integers(1, most + 1))
    return word[gone:] if rng.integers(2) else word[:-gone]


def _shuffle_letters(word: str, rng: np.random.Generator) -> str:
    """min(40 % of the letters, 2) letters change places, never the first."""
    moved = min(int(0.4 * len(word)), 2)
    if moved < 2:
        return word
    positions = np.sort(1 + rng.permutation(len(word) - 1)[:moved])
    letters = list(word)
    letters[positions[0]], letters[positions[1]] = letters[positions[1]], letters[positions[0]]
    return "".join(letters)
