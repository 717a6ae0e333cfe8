"""Prompt injections: stretches of a text that address the model that reads it instead of the person who does.

A linear model over hashed n-grams of characters and words (`injections.ngram_hashes`) scores stretches of one to three
sentences; a text is as suspicious as its worst stretch. So nothing that is added before or behind an injection clears
it. A grammar finds common wordings (`injections.grammar`). A text in an unusual spelling is also judged in its
normal spelling (`text.respelling`). `data/prompt-injection.npz` holds the weights;
`benchmarks/training/train_injections.py` fits them.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from io import BytesIO
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unpoison.injections.detections import MAX_QUOTE_CHARS, STRONG, Detection, Injection, Stretch
from unpoison.injections.grammar import find_injections
from unpoison.injections.model import InjectionModel, Passed, shipped_injection_model
from unpoison.injections.ngram_hashes import CHARACTER_GRAMS, WORD_GRAMS, HashedNgrams, hash_ngrams
from unpoison.text.analysis import analysis, groups
from unpoison.text.respelling import Respelled, respell
from unpoison.text.sentences import around, sentences

__all__ = [
    "CERTAIN",
    "FEW",
    "MAX_SENTENCES",
    "InjectionWeights",
    "detect",
    "likely",
    "unwrap",
]

CERTAIN = 0.95
"""The probability of what the grammar finds, at least."""

MAX_SENTENCES = 3
"""Sentences of the longest stretch."""

FEW = 64
"""Neutral n-grams that are added to each stretch, so that two words alone cannot have a high score."""

MAX_PLACES = 17
"""Places of one text that the grammar may find."""

DOUBT = 0.01
"""The probability by the linear model from which the transformer reads a stretch; it does not read strong evidence."""

MAX_DOUBTS = 4
"""Stretches of a text that the transformer reads, the most suspicious first."""

WORTH_QUOTING = 0.01
"""The probability from which a stretch is shown."""

MIN_LETTERS = 20
"""Letters of an unsupported script from which a text counts as written in it."""

UNJUDGED = {
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Armenian": "\u0530-\u058f",
    "Hebrew": "\u0590-\u05ff",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Tibetan": "\u0f00-\u0fff",
    "Burmese": "\u1000-\u109f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Ethiopic": "\u1200-\u139f",
    "Khmer": "\u1780-\u17ff",
    "Mongolian": "\u1800-\u18af",
}
"""Scripts in which no injection was fitted."""


_SOFT_BREAK = re.compile(r"(?<=[^\s.!?:;|>}\]])\n(?=[^\W\d_A-Z]|['\"(\d])")
"""A line end behind which a sentence goes on: no mark before it, no capital behind it."""


_FOLDED = re.compile(r"\\\n[ ]*\\?|(?<=[^\s.!?:;|>}\]])\n[ ]+(?=[^\W\d_A-Z]+[ ,.;:!?'])(?![\w ]{1,40}:\s)")
"""A line end inside a value as YAML folds it: behind a backslash, or before an indented line that goes on."""

_STRUCTURE = re.compile(r"[\"'][^\"'\n]{0,400}\\n")
"""A quoted value with a line end written out, as JSON, YAML and Python write one."""

_HEADER = re.compile(
    r"(?im)^(?:from|to|cc|bcc|reply-to|sender|recipients?|date|message-id)[ \t]?:[ \t][^\n]{0,200}[\w>\]]$"
)
"""A line of a mail's head that names people or a time."""

_KEY = re.compile(r"([\"'])[\w.$-]{1,40}\1\s{0,2}:(?=\s|[\"'\[{\d]|[-\w])")
_YAML_KEY = re.compile(
    r"(?m)^[ ]{0,40}(?:- )?(?!(?:system|assistant|user|developer|instructions?|prompt|answer):)"
    r"[a-z_][a-z_0-9]{0,30}:[ ]"
)
"""A key at the start of a line that is no role of a chat."""

MIN_KEYS = 3
"""Lines of a text that begin with a key, from which it is read as YAML."""

_OPENED = re.compile(r"[\[{,:]\s{0,80}[\"']")
_CLOSED = re.compile(r"[\"']\s{0,80}[,\]}][\s\]},\[{]{0,80}")
_SCALAR = re.compile(r"(?<=:)\s{0,2}(?:-?\d[\d.]{0,20}|true|false|null|None|True|False)(?=\s{0,2}[,}\]])")
"""The parts of JSON around a string: its key, what opens and closes it, and values that are no strings."""

_REPEATED = re.compile(r"\b(\w{1,40})(?:[ \t,]{1,3}\1\b){3,1000}")
"""A word four times or more in a row is test data. The last one stays, so that a repeat hides no instruction."""

_NUMBERS = re.compile(r"(?<!\S)(?:[\d.,:%+-]{1,24}[ \t]{1,3}){8,400}")
"""A row of eight numbers or more: it holds no instruction, and its n-grams are rare."""


class InjectionWeights(NamedTuple):
    """Weights of n-grams.

    Attributes:
        weight: By hash, shape (a power of two,), in units of `unit`.
        unit: The log-odds of a weight of 1.
        bias: Log-odds of a stretch whose n-grams have no weight.
    """

    weight: NDArray[np.int8]
    unit: float
    bias: float


class _Stretches(NamedTuple):
    """The worst stretch of each text: log-odds (`-inf` without a word), and its first and last sentence."""

    odds: NDArray[np.float64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]


def detect(texts: Sequence[str]) -> list[Detection]:
    """The detections on texts, in their own or in their normal spelling. O(n) time for n characters."""
    found = [_detect(text, float(p)) for text, p in zip(texts, likely(texts))]
    model = shipped_injection_model()
    unsure = [i for i, one in enumerate(found) if DOUBT <= one.probability < STRONG]
    if model is None or not unsure:
        return found
    for i, worst in zip(unsure, _second_opinions([texts[i] for i in unsure], model)):
        stretch = Stretch(worst.start, worst.end, worst.probability)
        found[i] = replace(found[i], probability=worst.probability, stretches=(stretch,))
    return found


def _detect(text: str, probability: float) -> Detection:
    note = analysis(text).part(unsupported_language)
    said = f"not judged for prompt injection: {note}" if note else ""
    if probability < WORTH_QUOTING:
        return Detection(text, probability, (), said)
    worst = _worst_of(text)
    others = known_injections(text, MAX_PLACES) if probability >= STRONG else []
    stretches = [Stretch(one.start, one.end, one.probability) for one in (worst, *others) if one.start < one.end]
    return Detection(text, probability, tuple(_apart(stretches)), said)


def _apart(stretches: list[Stretch]) -> list[Stretch]:
    """Ascending; those that overlap are one."""
    joined = list[Stretch]()
    for one in sorted(stretches):
        if joined and one.start < joined[-1].end:
            last = joined[-1]
            joined[-1] = Stretch(last.start, max(last.end, one.end), max(last.probability, one.probability))
        else:
            joined.append(one)
    return joined


def _second_opinions(texts: Sequence[str], model: InjectionModel) -> list[Injection]:
    """The worst stretch of each text by both models; each text holds one that is in doubt.

    Their log-odds are added. A stretch that the transformer did not read keeps the linear model's probability, so that
    decoys hide nothing.
    """
    doubts = [_doubts(text) for text in texts]
    odds = iter(
        model.log_odds([Passed(text, one.start, one.end) for text, (read, _) in zip(texts, doubts) for one in read])
    )
    return [
        max([*(_weighed(found, next(odds)) for found in read), unread], key=attrgetter("probability"))
        for read, unread in doubts
    ]


def _weighed(found: Injection, odds: float) -> Injection:
    against = (1 - found.probability) / found.probability * math.exp(min(-odds, 50.0))
    return found._replace(probability=1 / (1 + against))


def _doubts(text: str) -> tuple[list[Injection], Injection]:
    """The stretches of a text that are in doubt, the most suspicious first, and the worst of the rest."""
    found, worst = list[Injection](), _worst_of(text)
    while worst.probability >= DOUBT and len(found) < MAX_DOUBTS:
        found.append(worst)
        text = text[: worst.start] + " " * (worst.end - worst.start) + text[worst.end :]
        worst = _worst_of(text)
    return found, worst


def _worst_of(text: str) -> Injection:
    """The most suspicious stretch of a text, in its own or in its normal spelling."""
    plain = _injection(text)
    meant = analysis(text).part(_respelled)
    if meant is None:
        return plain
    other = _injection(meant.text)
    if other.probability <= plain.probability:
        return plain
    return other._replace(start=int(meant.start[other.start]), end=int(meant.end[other.end - 1]))


def known_injections(text: str, limit: int) -> list[Injection]:
    """The first places of a text that the grammar finds, in order. O(n) time for n characters."""
    judged = _judged(text)
    found = list[Injection]()
    ends = [end for _, end in sentences(judged)]
    for match in find_injections([judged]).get(0, []):
        if found and match.start < found[-1].end:
            continue
        if len(found) == limit:
            break
        end = ends[min(bisect_left(ends, match.end), len(ends) - 1)]
        found.append(Injection(CERTAIN, " ".join(text[match.start : end].split())[:MAX_QUOTE_CHARS], match.start, end))
    return found


def likely(texts: Sequence[str]) -> NDArray[np.float64]:
    """The probability of the worst stretch of each of k texts, shape (k,).

    Complexity: O(n) time in the length of all texts.
    """
    meant = {i: one.text for i, text in enumerate(texts) if (one := analysis(text).part(_respelled))}
    read = [*texts, *meant.values()]
    parts = [_likely(read[begin:end]) for begin, end in groups(read)]
    probability = np.concatenate(parts) if parts else np.zeros(0)
    changed, k = list(meant), len(texts)
    probability[changed] = np.maximum(probability[changed], probability[k:])
    return probability[:k]


def _respelled(text: str) -> Respelled | None:
    """`respell` without counting keys and their line ends as changes of spelling."""
    apart = _strings_apart(text) if ":" in text else text
    return analysis(text).part(respell) if apart == text else respell(apart.replace(" \n", ". "))


def unwrap(text: str) -> str:
    """The text with a space for each line end inside a sentence, as mail and YAML break lines; as long as the text."""
    return _SOFT_BREAK.sub(" ", text)


def _judged(text: str) -> str:
    """The text to judge, of the same length: values without keys, lines unfolded, rows of numbers blanked."""
    if ":" in text:
        text = _strings_apart(text)
    if "\\" in text and _STRUCTURE.search(text):
        text = text.replace("\\n", " \n")
    if "\n" in text:
        text = unwrap(_FOLDED.sub(_blank, text))
    return _NUMBERS.sub(_blank, text)


def _strings_apart(text: str) -> str:
    """A text with the values of JSON, dicts and YAML on lines of their own, without keys and the head of a mail."""
    if _HEADER.search(text):
        text = _HEADER.sub(_blank, text)
    if text.count(": ") >= MIN_KEYS and len(_YAML_KEY.findall(text)) >= MIN_KEYS:
        text = _YAML_KEY.sub(_line_end, text)
    if not _KEY.search(text):
        return text
    text = _KEY.sub(lambda match: " " * (len(match[0]) - 1) + ":", text)
    text = _SCALAR.sub(_blank, text)
    text = _OPENED.sub(_line_end, text)
    return _CLOSED.sub(_line_end, text)


def _line_end(match: re.Match[str]) -> str:
    return " " * (len(match[0]) - 1) + "\n"


def _ngrams(texts: Sequence[str]) -> HashedNgrams:
    """What the weights see of texts; the grammar reads them with their repeats."""
    return hash_ngrams([_REPEATED.sub(_last, text) for text in texts])


def _last(match: re.Match[str]) -> str:
    return match[1].rjust(len(match[0]))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _likely(texts: Sequence[str]) -> NDArray[np.float64]:
    """Probabilities of texts as they are written."""
    texts = list(map(_judged, texts))
    probability = _probability(_worst(_ngrams(texts)).odds)
    known = list(find_injections(texts))
    probability[known] = np.maximum(probability[known], CERTAIN)
    return probability


def _injection(text: str) -> Injection:
    text = _judged(text)
    grams = _ngrams([text])
    worst = _worst(grams)
    probability = float(_probability(worst.odds)[0])
    if not len(grams.start):
        return Injection(probability, "")
    first, last = int(worst.first[0]), int(worst.last[0])
    start = int(grams.start[first] - grams.begin[0])
    end = min(int(grams.end[last] - grams.begin[0]), len(text))
    if known := find_injections([text]).get(0):
        joined = probability >= CERTAIN and known[0].start < end and start < known[0].end
        if joined or probability < CERTAIN:
            start = min(start, known[0].start) if joined else known[0].start
            end = max(end, around(text, known[0].start, known[0].end)[1]) if joined else around(text, *known[0][1:])[1]
        probability = max(probability, CERTAIN)
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    quote = " ".join(text[start:end].split())[:MAX_QUOTE_CHARS] if probability >= WORTH_QUOTING else ""
    return Injection(probability, quote, start, end)


def _worst(grams: HashedNgrams) -> _Stretches:
    """The worst stretch of each text. Sums of whole numbers are exact, so they do not depend on the texts beside."""
    weights = load_weights()
    shift = np.uint64(64 - weights.weight.size.bit_length() + 1)
    k, n = len(grams.begin), len(grams.start)
    odds, first, last = np.full(k, -np.inf), np.zeros(k, np.int64), np.zeros(k, np.int64)
    if not n:
        return _Stretches(odds, first, last)
    summed = weights.weight[grams.characters >> shift].sum(axis=0, dtype=np.int32)
    by_word = weights.weight[grams.words >> shift].sum(axis=0, dtype=np.int32)
    summed[grams.word_start] += by_word
    count = np.full(len(summed), CHARACTER_GRAMS, np.int32)
    count[grams.word_start] += WORD_GRAMS
    totals, counts = (np.concatenate([[0], np.cumsum(each, dtype=np.int64)]) for each in (summed, count))
    change = np.flatnonzero(np.diff(grams.text, prepend=-1))
    text = grams.text[change]
    for size in range(1, MAX_SENTENCES + 1):
        begin, stop = grams.start[: n - size + 1], grams.end[size - 1 :]
        value = (totals[stop] - totals[begin]) / np.sqrt(counts[stop] - counts[begin] + FEW)
        value[grams.text[: n - size + 1] != grams.text[size - 1 :]] = -np.inf
        value = np.append(value, np.full(size - 1, -np.inf)) * weights.unit + weights.bias
        best = np.maximum.reduceat(value, change)
        better = best > odds[text]
        if not better.any():
            continue
        place = np.flatnonzero(value == np.repeat(best, np.diff(np.append(change, n))))
        place = place[np.searchsorted(grams.text[place], text)]
        chosen = text[better]
        odds[chosen], first[chosen], last[chosen] = best[better], place[better], place[better] + size - 1
    return _Stretches(odds, first, last)


def _probability(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))), float)


def unsupported_language(text: str) -> str | None:
    """The script of a text, or of a part of it as long as a sentence, that no weight was fitted for; None without.

    O(n) time for n characters.
    """
    if text.isascii():
        return None
    every, scripts = _unsupported_scripts()
    letters_of_all = "".join(every.findall(text))
    if len(letters_of_all) < MIN_LETTERS:
        return None
    counts = {name: sum(map(len, runs.findall(letters_of_all))) for name, runs in scripts.items()}
    name, letters = max(counts.items(), key=itemgetter(1))
    return name if letters >= MIN_LETTERS else None


@cache
def _unsupported_scripts() -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    """Runs of letters of any of them, and of each."""
    each = {name: re.compile(f"[{ranges}]+") for name, ranges in UNJUDGED.items()}
    return re.compile(f"[{''.join(UNJUDGED.values())}]+"), each


@cache
def load_weights() -> InjectionWeights:
    """The weights of this package."""
    data = (files("unpoison") / "data" / "prompt-injection.npz").read_bytes()
    with np.load(BytesIO(data), allow_pickle=False) as arrays:
        return InjectionWeights(arrays["weight"], float(arrays["unit"]), float(arrays["bias"]))
