"""Sentence classifier: log-odds that a sentence instructs a model, given its context, in any language.

A prefilter, the first look (`first_odds`, a small convolution over tokens), clears most sentences in microseconds. The
transformer scores each other sentence alone and, unless that clears it, again in a window of whole sentences, so that
it reads a payload with the instruction before it. The final log-odds are those in the window, plus `ALONE` times the
excess of those alone: an honest sentence may look odd alone, and honest text around an instruction hides it.
Each window is a separate run, because an int8 graph scales its activations by everything in a run, and no text may
change how another is judged. `benchmarks/training/train_injections.py` trains both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from io import BytesIO
from itertools import pairwise, product
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from unpoison.errors import ModelError, clip
from unpoison.injections.reading import WALL
from unpoison.text.alignment import Region
from unpoison.utils.assets import DATA, check_published, open_graph
from unpoison.utils.extras import require
from unpoison.utils.lru_cache import LRUCache
from unpoison.utils.plain_text import encodable
from unpoison.utils.threads import Workers

__all__ = ["SWITCH", "InjectionModel", "Odds", "shipped_model"]

FILES = ("model.onnx", "tokenizer.json", "first_look.npz")

SWITCH = "UNPOISON_INJECTION_MODEL"
"""The environment variable that turns the model off for a process, if its value is `off`."""

FIRST, LAST = 0, 2
"""Token ids before and after a window."""

AT_ONCE, STRIP = 256, 128
"""Sentences in one batch of the prefilter, and tokens in one matrix product; larger ones start a second thread."""

DOUBT = -2.0
"""The log-odds, relative to the threshold, above which a sentence that was scored alone is also scored in a window."""

ALONE = 0.8
"""Weight of the excess of the score alone over the score in the window."""

HONEST = -5.0
"""The log-odds in the window, relative to the threshold, below which a sentence is harmless however odd it is alone."""

MAX_SENTENCES, MAX_WINDOWS = 400, 100
"""Maximum sentences of one text that are scored alone, and windows, the most suspicious first; bounds the time."""

MAX_BYTES = 32 * 2**20
"""Size limit of the window cache, about 100,000 entries. Boilerplate recurs across texts."""

GREETING = 3
"""Maximum words of a greeting such as "Hi Anna," or "From: anna@example.org", at which a window begins. People ask each
other for things in mails: with the greeting, a quarter of the injections found elsewhere looked like such a request."""

BEHIND = 0.6
"""The share of a window reserved for sentences after the suspicious one, where payloads stand."""

Numbers = NDArray[np.int64]


class Odds(NamedTuple):
    """The log-odds of a sentence, or of a part of a long one, minus the threshold; minus infinity if it was cleared."""

    start: int
    end: int
    odds: float


class SentenceModel(Protocol):
    """The interface that the detector requires of a model."""

    def log_odds(self, texts: Sequence[tuple[str, Sequence[Region]]], /) -> list[list[Odds]]:
        """The log-odds of the sentences of k texts, by position."""


class _Part(NamedTuple):
    """The tokens of a sentence, or of a part of a long one.

    Parts with different `value` are separated by a `WALL`; `greets` is whether it is a line as short as a greeting.
    """

    text: int
    start: int
    end: int
    ids: Numbers
    value: int
    greets: bool


class InjectionModel:
    """Scores the sentences of texts.

    Args:
        folder: It holds `model.onnx`, `tokenizer.json`, `first_look.npz`, and `injections.json` with their hashes.

    Raises:
        MissingExtraError: onnxruntime or tokenizers is not installed.
        ModelError: A file is missing, cut or changed.
    """

    name = "the injection model"

    def __init__(self, folder: Path) -> None:
        settings = _settings(folder, self.name)
        self._threshold, self._first_look = float(settings["threshold"]), float(settings["first_look"])
        self._window, self._longest = int(settings["window"]), int(settings["part"])
        self._session, _, (self._output, *_) = open_graph(folder, self.name)
        self._tokenizer = require("tokenizers", self.name).Tokenizer.from_file(str(folder / FILES[1]))
        self._tokenizer.encode_special_tokens = True  # a "</s>" in a text is text
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        with np.load(BytesIO((folder / FILES[2]).read_bytes()), allow_pickle=False) as arrays:
            self._tables = {name: arrays[name] for name in arrays.files}
        self._known: LRUCache[bytes, NDArray[np.float64]] = LRUCache(lambda _, own: 300 + own.nbytes, MAX_BYTES)
        self._lock = Lock()  # tokenizers refuse to be used by two threads at once
        self._workers = Workers("unpoison-injections")

    def log_odds(self, texts: Sequence[tuple[str, Sequence[Region]]], /) -> list[list[Odds]]:
        """The log-odds of the sentences of k texts: the mean over their tokens, alone or in a window.

        Deterministic on one machine. O(n) time for n characters, with a large factor for sentences that the prefilter
        does not clear; at most `MAX_SENTENCES` of them are scored.

        Raises:
            ModelError: The model failed, or made a value that is not finite.
        """
        parts = self._parts(texts)
        first = first_odds(self._tables, [part.ids for part in parts]) - self._first_look
        bounds = list(_texts_of(parts))
        places = [(i, i + 1) for low, high in bounds for i in _highest(first, 0.0, low, high, MAX_SENTENCES)]
        alone = self._read(parts, places)
        windows = [window for low, high in bounds for window in self._windows(parts, alone, low, high)]
        odds = _joined(alone, self._read(parts, windows))
        said: list[list[Odds]] = [[] for _ in texts]
        for part, value in zip(parts, odds.tolist()):
            said[part.text].append(Odds(part.start, part.end, value))
        return said

    def _parts(self, texts: Sequence[tuple[str, Sequence[Region]]]) -> list[_Part]:
        """The tokens of each sentence; a long sentence is split into equal parts."""
        where = [(n, *region) for n, (_, regions) in enumerate(texts) for region in regions]
        written = [encodable(texts[n][0][start:end]) for n, start, end in where]
        with self._lock:
            encoded = self._tokenizer.encode_batch(written, add_special_tokens=False)
        parts, value, last = list[_Part](), 0, (0, 0)
        for (n, start, end), one in zip(where, encoded):
            text = texts[n][0]
            value += n != last[0] or WALL in text[last[1] : start]
            last = n, end
            ids = np.array(one.ids, np.int64)
            size = ceil(len(ids) / max(ceil(len(ids) / self._longest), 1))
            edges = list(range(size, len(ids), size))
            offsets = one.offsets if edges else ()  # each access makes the whole list
            begins = [start, *(start + offsets[edge][0] for edge in edges)]
            pieces = np.split(ids, edges) if len(ids) else []
            greets = "\n" in text[end : end + 2] and len(text[start:end].split(None, GREETING)) <= GREETING
            ends = [*begins[1:], end]
            parts += [_Part(n, *place, own, value, greets) for place, own in zip(zip(begins, ends), pieces)]
        return parts

    def _read(self, parts: Sequence[_Part], spans: Sequence[Region]) -> NDArray[np.float64]:
        """The log-odds of all parts, the highest over these windows; minus infinity outside all windows."""
        odds = np.full(len(parts), -np.inf)
        keys = [_hash(parts[low:high]) for low, high in spans]
        known = {key: own for key in keys if (own := self._known.get(key)) is not None}
        once = {key: span for key, span in zip(keys, spans) if key not in known}  # equal windows are scored once
        read = self._workers.map(lambda span: self._run(parts[slice(*span)]), list(once.values()))
        for key, odds_of_it in zip(once, read):
            known[key] = odds_of_it
            self._known.put(key, odds_of_it)
        for (low, high), key in zip(spans, keys):
            odds[low:high] = np.maximum(odds[low:high], known[key])
        return odds

    def _windows(self, parts: Sequence[_Part], odds: NDArray[np.float64], low: int, high: int) -> list[Region]:
        """The windows around the suspicious sentences of one text, whose parts are those from `low` to `high`."""
        found, read = list[Region](), set[int]()
        for i in _highest(odds, DOUBT, low, high, MAX_WINDOWS):
            window = self._window_around(parts, odds, i)
            if i not in read and window != (i, i + 1):
                found.append(window)
                read.update(range(*window))
        return found

    def _window_around(self, parts: Sequence[_Part], odds: NDArray[np.float64], place: int) -> Region:
        """As many whole sentences as fit: first some after the suspicious one, then those before it, then more after.

        It starts after the nearest greeting that the prefilter has cleared.
        """
        begin, end, room = place, place + 1, self._window - len(parts[place].ids)

        def beside(i: int) -> bool:
            return 0 <= i < len(parts) and parts[i].value == parts[place].value

        def greets(i: int) -> bool:
            return parts[i].greets and odds[i] == -np.inf

        for share in (BEHIND, 0.0):
            kept = room * (1 - share)
            while beside(end) and room - len(parts[end].ids) >= kept * (share > 0):
                room -= len(parts[end].ids)
                end += 1
            while beside(begin - 1) and not greets(begin - 1) and len(parts[begin - 1].ids) <= room:
                begin -= 1
                room -= len(parts[begin].ids)
        return begin, end

    def _run(self, parts: Sequence[_Part]) -> NDArray[np.float64]:
        """The log-odds of the sentences of one window."""
        ids = np.concatenate([[FIRST], *(part.ids for part in parts), [LAST]])[None]
        try:
            logits = np.asarray(self._session.run([self._output], {"input_ids": ids})[0][0], float)[1:-1]
        except Exception as error:  # onnxruntime raises bare exceptions of its own
            raise ModelError(f"{self.name} failed ({clip(str(error), 200)}); install unpoison again") from error
        if not np.isfinite(logits).all():
            raise ModelError(f"{self.name} made a value that is not finite; install unpoison again")
        size = np.array([len(part.ids) for part in parts])
        odds: NDArray[np.float64] = np.add.reduceat(logits, np.cumsum(size) - size) / size - self._threshold
        return odds


def first_odds(tables: Mapping[str, NDArray[Any]], sentences: Sequence[Numbers]) -> NDArray[np.float64]:
    """The log-odds of n sentences by the prefilter, shape (n,); each has at least one token.

    A convolution over neighbouring tokens; the maximum and the mean of each filter go through one hidden layer.
    """
    odds = [np.zeros(0)]
    for some in (sentences[low : low + AT_ONCE] for low in range(0, len(sentences), AT_ONCE)):
        size, found = np.array([len(ids) for ids in some]), _filtered(tables, some)
        begin = np.cumsum(size) - size
        seen = np.hstack([np.maximum.reduceat(found, begin), np.add.reduceat(found, begin) / size[:, None]])
        hidden = np.maximum(seen @ tables["hidden_weight"].T + tables["hidden_bias"], 0)
        odds.append(hidden @ tables["last_weight"][0] + tables["last_bias"][0])
    return np.concatenate(odds)


def _filtered(tables: Mapping[str, NDArray[Any]], sentences: Sequence[Numbers]) -> NDArray[np.float32]:
    """The activations around each token, shape (tokens, filters); the last embedding separates two sentences."""
    filters = tables["filters_weight"].T.reshape(-1, tables["pieces"].shape[1], len(tables["filters_bias"]))
    blank = np.full(len(filters) // 2, len(tables["pieces"]) - 1)
    ids = np.concatenate([blank, *(part for sentence in sentences for part in (sentence, blank))])
    rows = tables["pieces"][ids] * tables["pieces_scale"]
    found = np.zeros((len(ids) - 2 * len(blank), filters.shape[2]), np.float32)
    for low, (k, one) in product(range(0, len(found), STRIP), enumerate(filters)):
        found[low : low + STRIP] += rows[low + k : low + k + STRIP][: len(found) - low] @ one
    inside = ids[len(blank) : len(blank) + len(found)] != blank[0]
    return np.asarray(np.maximum(found[inside] + tables["filters_bias"], 0), np.float32)


def _hash(parts: Sequence[_Part]) -> bytes:
    """A hash of the tokens of sentences and of their boundaries."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part.ids).to_bytes(4, "little") + part.ids.tobytes())
    return digest.digest()


def _joined(alone: NDArray[np.float64], inside: NDArray[np.float64]) -> NDArray[np.float64]:
    """The final log-odds of sentences that were scored alone, in a window, or both."""
    odder = (inside > HONEST) & (alone > inside)
    return np.where(odder, ALONE * alone + (1 - ALONE) * inside, np.where(np.isfinite(inside), inside, alone))


def _highest(odds: NDArray[np.float64], least: float, low: int, high: int, most: int) -> list[int]:
    """The `most` highest positions above `least`, ascending."""
    places = [i for i in range(low, high) if odds[i] > least]
    return sorted(sorted(places, key=lambda i: -odds[i])[:most]) if len(places) > most else places


def _texts_of(parts: Sequence[_Part]) -> Iterator[Region]:
    """The range of parts of each text."""
    edges = [i for i in range(len(parts) + 1) if i in (0, len(parts)) or parts[i].text != parts[i - 1].text]
    return pairwise(edges)


def _settings(folder: Path, name: str) -> dict[str, Any]:
    """The settings, with the hashes of the other files verified."""
    try:
        settings: dict[str, Any] = json.loads((folder / "injections.json").read_text("utf-8"))
        hashes = {file: str(settings["sha256"][file]) for file in FILES}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{name} has no usable injections.json ({type(error).__name__}); install again") from error
    check_published(folder, hashes, name)
    return settings


def shipped_model() -> SentenceModel | None:
    """The model of this package; None if its libraries are missing or it is turned off.

    Raises:
        ModelError: Its files were cut or changed.
    """
    return None if os.environ.get(SWITCH) == "off" else _shipped()


@cache
def _shipped() -> InjectionModel | None:
    folder = DATA / "injection_model"
    libraries = all(map(find_spec, ("onnxruntime", "tokenizers")))
    return InjectionModel(folder) if libraries and (folder / "injections.json").is_file() else None
