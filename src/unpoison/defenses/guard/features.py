"""What detectors of crafted texts see of a retrieval: style, overlap with the question, and words of a template.

`Style` scores how much the wording resembles generated claims. Words that suit every topic and punctuation marks count
as themselves. Any other word is replaced by its shape, so that no topic is learned. The style of a text is the sum of
the weights of its n-grams of one to three tokens, divided by the square root of its length.

`beside` measures how much of a question's words and phrases a window repeats, and how much it adds.

`words_of_form` finds records, such as product sheets, tickets and clauses, that share a template. Words that most texts
of a retrieval have in common are no evidence against any of them; only the other words of a text can have been written
for the question. Planted copies of one claim must not count as a template. Records differ from them by their subjects:
every two have different names or numbers, and at most half of them contain all of the question's words that any of them
contains. Planted texts that answer the question contain all of these. An attacker who fills half of a retrieval with
texts of one template about other subjects can hide one that answers the question; without neighbours
(`guard-ablation:independent`) this attack does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Indel, LCSseq
from rapidfuzz.process import cdist

from unpoison.text.analysis import CAPITAL, MARK, SHAPES, STOP, Words, words_of

__all__ = [
    "COLUMNS", "Matrix", "QuestionTerms", "Style", "TextWords", "beside", "common_words", "coverage", "ranges",
    "root", "run_codes", "words_of_form",
]  # fmt: skip

Matrix = NDArray[np.float64]
Numbers = NDArray[np.int64]
Codes = NDArray[np.uint64]

MAX_RUN_WORDS: Final = 3
FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
CAPITALISED: Final = 50
"""The shape of a word with a capital letter that does not count as itself."""
MIN_WORDS: Final = 4
"""Shorter texts are scored as if they had this many words and marks."""


class Style(NamedTuple):
    """Weights of n-grams.

    Attributes:
        general: The numbers of the words that count as themselves, rising, the upper 32 bits.
        code: The n-grams that have a weight, rising, the upper 32 bits, shape (f,).
        weight: Their weights, shape (f,). These are whole numbers, so that sums are exact in any order.
        unit: The log-odds of a weight of 1.
        base: The intercept.
    """

    general: NDArray[np.uint32]
    code: NDArray[np.uint32]
    weight: Matrix
    unit: float
    base: float

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read what `benchmarks/train_crafted.py` wrote."""
        scale, base = (float(value) for value in data["style_scale"])
        return cls(data["general"], data["code"], data["weight"].astype(np.float64), scale, base)

    def windows(self, texts: Sequence[Words]) -> list[Matrix]:
        """The style of each window of k texts, shape (w,) each. O(n log f) time."""
        words, windows = ([0, *accumulate(len(text[i]) for text in texts)] for i in (0, -1))
        apart = np.repeat(np.arange(len(texts)) << 32, np.diff(words))
        word, kind, sentence = (np.concatenate([text[i] for text in texts]) for i in (0, 2, 3))
        codes = run_codes(word, kind, sentence + apart, self.general)
        behind = np.repeat(words[:-1], np.diff(windows))
        first = np.concatenate([text.first for text in texts]) + behind
        last = np.concatenate([text.last for text in texts]) + behind
        style = self.sums([self.places(code) for code in codes], first, last)
        return [style[begin:end].copy() for begin, end in pairwise(windows)]

    def places(self, codes: Codes) -> Numbers:
        """Positions of the n-grams in `code`; -1 for unknown ones."""
        upper = (codes >> np.uint64(32)).astype(np.uint32)
        place = np.minimum(np.searchsorted(self.code, upper), len(self.code) - 1)
        return np.where((self.code[place] == upper) & (codes > 0), place, -1)

    def sums(self, places: list[Numbers], first: Numbers, last: Numbers) -> Matrix:
        """The styles of stretches, from the places of the runs that begin at each word or mark."""
        total = np.zeros(len(first))
        padded = np.append(self.weight, 0.0)  # place -1
        for shorter, place in enumerate(places):
            total += ranges(padded[place], first, np.maximum(last - shorter, first))
        return np.asarray(total * self.unit / root(last - first) + self.base)


def root(lengths: Numbers) -> Matrix:
    """The divisor of sums over windows of these lengths."""
    return np.sqrt(np.maximum(lengths, MIN_WORDS))


def ranges(values: NDArray[Any], first: Numbers, last: Numbers) -> Matrix:
    """The sum of the values of each range."""
    total = np.zeros(len(values) + 1)
    np.cumsum(values, out=total[1:])
    return np.asarray(total[last] - total[first])


def run_codes(word: Numbers, kind: Numbers, sentence: Numbers, general: NDArray[np.uint32]) -> list[Codes]:
    """The n-grams of one to three tokens that begin at each token, 0 across the end of a sentence; shape (n,) each."""
    upper = (word >> 31).astype(np.uint32)
    place = np.minimum(np.searchsorted(general, upper), len(general) - 1)
    mark = kind >= MARK
    itself = (general[place] == upper) | mark
    shape = kind & (CAPITAL - 1)
    capital = ((kind & CAPITAL) > 0) & ~mark
    shape = np.where(capital & (shape != SHAPES.index("year")) & (shape != SHAPES.index("number")), CAPITALISED, shape)
    token = (np.where(itself, word, shape + 1) + 7 * (itself & capital)).view(np.uint64) * FACTOR
    made, code = [token], token
    for length in range(1, MAX_RUN_WORDS):
        code = (code[:-1] ^ (code[:-1] >> np.uint64(29))) * FACTOR + token[length:]
        whole = np.zeros(len(token), np.uint64)
        whole[: len(code)] = np.where(sentence[:-length] == sentence[length:], code, 0)
        made.append(whole)
    return made


COLUMNS: Final = ("coverage", "echo", "news", "length")

MAX_TERMS: Final = 64
"""Distinct words, and phrases, of a question that count; people ask in fewer."""


class QuestionTerms(NamedTuple):
    """A question's distinct telling stems (all where it has no other) and phrases of three stems, rising."""

    stems: Numbers
    phrases: Numbers

    @classmethod
    def of(cls, question: Words) -> Self:
        """At most `MAX_TERMS` of each."""
        word = question.kind < MARK
        stems, stop = question.stem[word], (question.kind[word] & STOP) > 0
        telling = stems[~stop] if (~stop).any() else stems
        return cls(np.unique(telling)[:MAX_TERMS], np.unique(_phrases(stems))[:MAX_TERMS])


class TextWords(NamedTuple):
    """The words of k texts behind each other, without marks.

    Attributes:
        stem: Of each word, shape (n,).
        stop: Whether it is a stop word, shape (n,).
        first, last: The words of each stretch, from `first` to before `last`, shape (w,).
        owner: The text of each stretch, shape (w,).
        begin: The first word of each text, and the number of words, shape (k + 1,).
    """

    stem: Numbers
    stop: NDArray[np.bool_]
    first: Numbers
    last: Numbers
    owner: Numbers
    begin: Numbers

    @classmethod
    def of(cls, texts: Sequence[Words]) -> Self:
        """All windows of k texts, at least one."""
        kind = np.concatenate([text.kind for text in texts])
        word = kind < MARK
        before = np.concatenate([[0], np.cumsum(word)])
        begin = np.cumsum([0, *(len(text.kind) for text in texts)])
        owner = np.repeat(np.arange(len(texts)), [len(text.first) for text in texts])
        first = np.concatenate([text.first for text in texts]) + begin[owner]
        last = np.concatenate([text.last for text in texts]) + begin[owner]
        stem = np.concatenate([text.stem for text in texts])[word]
        return cls(stem, (kind[word] & STOP) > 0, before[first], before[last], owner, before[begin])


def beside(wanted: QuestionTerms, spoken: TextWords) -> Matrix:
    """`COLUMNS` of each stretch, shape (w, 4).

    `coverage` and `echo` are the shares of the question's words and phrases that it contains, `news` the logarithm of
    the number of other content words, `length` that of all words. O(n) time for each word of the question.
    """
    first, last, stem = spoken.first, spoken.last, spoken.stem
    hit = _places(wanted.stems, stem)
    new = ~spoken.stop & (hit < 0)
    phrase = np.full(len(stem), -1)
    phrase[: max(len(stem) - 2, 0)] = _places(wanted.phrases, _phrases(stem))
    return np.column_stack([
        _distinct(hit, first, last) / max(len(wanted.stems), 1),
        _distinct(phrase, first, np.maximum(last - 2, first)) / max(len(wanted.phrases), 1),
        np.log1p(ranges(new, first, last)),
        np.log1p(np.maximum(last - first, 1)),
    ])  # fmt: skip


def _phrases(stem: Numbers) -> Numbers:
    """A number for every three stems in a row."""
    own = stem.view(np.uint64) if stem.flags.c_contiguous else stem.astype(np.uint64)
    return ((own[:-2] * FACTOR + own[1:-1]) * FACTOR + own[2:]).view(np.int64)


def _places(table: Numbers, values: Numbers) -> Numbers:
    """Positions of values in a rising table; -1 for absent ones."""
    if not len(table):
        return np.full(len(values), -1)
    place = np.minimum(np.searchsorted(table, values), len(table) - 1)
    return np.where(table[place] == values, place, -1)


def _distinct(place: Numbers, first: Numbers, last: Numbers) -> Matrix:
    """How many distinct items occur in each stretch."""
    total, at = np.zeros(len(first)), np.flatnonzero(place >= 0)
    what = place[at]
    low, high = np.searchsorted(at, first), np.searchsorted(at, last)
    for thing in set(what.tolist()):
        total += ranges(what == thing, low, high) > 0
    return total


DENSE_CELLS = 4_000_000
"""Maximum passages times words for a dense passage-by-word array (32 MB)."""


def coverage(question: str, texts: Sequence[str]) -> Matrix:
    """The highest share of the question's words in any window of each of k texts, shape (k,). O(n) time."""
    highest = np.zeros(len(texts))
    if texts:
        spoken = TextWords.of(words_of(texts))
        shares = beside(QuestionTerms.of(words_of([question])[0]), spoken)[:, COLUMNS.index("coverage")]
        np.maximum.at(highest, spoken.owner, shares)
    return highest


def common_words(
    asked: Numbers, spoken: TextWords, k: int, others: slice | Numbers = slice(None)
) -> tuple[Matrix, Matrix]:
    """The number of telling words of each of the first k texts that are not asked, at least 1, shape (k,).

    And how many of them it shares with selected ones, at first all; shape (k, others). O(n log n) time.
    """
    text = np.repeat(np.arange(k), np.diff(spoken.begin[: k + 1]))
    stem, stop = spoken.stem[: len(text)], spoken.stop[: len(text)]
    keep = ~stop & ~np.isin(stem, asked)
    names, number = np.unique(stem[keep], return_inverse=True)
    size, holder = max(len(names), 1), text[keep]
    if k * size <= DENSE_CELLS:
        table = np.zeros((k, size))
        table[holder, number] = 1
        words, table = np.maximum(table.sum(axis=1), 1), table[:, table.sum(axis=0) > 1]
        return words, table @ table[others].T
    from scipy.sparse import csr_array

    sparse = csr_array((np.ones(len(holder)), (holder, number)), shape=(k, size))
    sparse.data[:] = 1  # where a text has a word twice
    return np.maximum(np.diff(sparse.indptr), 1.0), np.asarray((sparse @ sparse[others].T).toarray(), float)


Flags = NDArray[np.bool_]

ALIKE: Final = 0.4
"""Minimum share of words in the same order of two texts with one template; two pages on one topic share a fifth."""

FEWEST: Final = 3
"""Minimum number of different records of a template, besides `MAJORITY` of the texts."""

MAJORITY: Final = 2 / 3
"""Minimum share of a retrieval; an attacker must control as much of it to plant a template."""

MOST_TEXTS: Final = 64
"""Maximum number of texts, evenly spread, that represent a larger retrieval."""

MOST_WORDS: Final = 512
"""Maximum number of words and marks of a text to compare."""

COPIED: Final = 0.8
"""Minimum share of the shorter text's words in a copy of it, with anything around it; a twentieth of the planted texts
that were published for one question share as many."""

MIN_COPIED: Final = 8
"""Shorter texts need as many common words as one with this many: few words are easily alike."""

COMPARED: Final = 4
"""Number of most similar records; words that half of them contain belong to the template."""


class RecordText(NamedTuple):
    """A text for comparison.

    Attributes:
        stems: Its words and marks, including the title, at most `MOST_WORDS`.
        every: The same as a set.
        values: The names and numbers among them.
    """

    stems: list[int]
    every: frozenset[int]
    values: frozenset[int]

    @classmethod
    def of(cls, parts: Sequence[Words]) -> Self:
        """The parts of one text."""
        stem = np.concatenate([part.stem for part in parts])[:MOST_WORDS]
        kind = np.concatenate([part.kind for part in parts])[:MOST_WORDS]
        shape = kind & (CAPITAL - 1)
        number = (shape == SHAPES.index("year")) | (shape == SHAPES.index("number"))
        value = ((kind & (MARK | STOP)) == 0) & (number | ((kind & CAPITAL) > 0))
        return cls(stem.tolist(), frozenset(stem.tolist()), frozenset(stem[value].tolist()))

    def differs(self, other: RecordText) -> bool:
        """Whether each of two texts has a name or number that the other lacks."""
        return bool(self.values - other.every and other.values - self.every)

    def rewrites(self, other: RecordText) -> bool:
        """Whether they share `COPIED` of the shorter one's words in the same order, and differ in a name or number."""
        same = COPIED * max(MIN_COPIED, min(len(self.stems), len(other.stems)))
        return self.differs(other) and LCSseq.similarity(self.stems, other.stems) >= same


def words_of_form(
    wanted: QuestionTerms, texts: Sequence[Sequence[Words]], rows: Sequence[int], readings: Sequence[int] = ()
) -> dict[int, Flags]:
    """The template words of texts, as flags of their first words and marks, by position; other texts are missing.

    Args:
        wanted: The question.
        texts: The retrieval, each text in one or more parts, followed by other readings of some texts.
        rows: The texts to examine.
        readings: The texts to which the last ones are other readings. These are records if the originals are, and are
            compared with the same readings of other texts.

    Complexity: O(r m n^2 / 64) time for r rows, at most `MOST_TEXTS` others and `MOST_WORDS` words.
    """
    among = len(texts) - len(readings)
    others = np.unique(np.linspace(0, among - 1, min(among, MOST_TEXTS)).astype(int)).tolist()
    if len(others) < FEWEST or not rows:
        return {}
    written = dict(enumerate(readings, among))
    meant = {i: n for n, i in written.items()}
    asked = sorted({written.get(n, n) for n in rows})
    known = {n: RecordText.of(texts[n]) for n in {*others, *asked}}
    mates = _mates(wanted, known, asked, others)
    formed: dict[int, Flags] = {}
    for n in rows:
        near = mates.get(written.get(n, n), ())
        if near:
            same = [meant.get(i, i) if n in written else i for i in near]
            own, *shared = ((known.get(i) or RecordText.of(texts[i])).stems for i in (n, *same))
            formed[n] = _in_common(own, shared)
    return formed


def _mates(
    wanted: QuestionTerms, known: Mapping[int, RecordText], rows: Sequence[int], others: Sequence[int]
) -> dict[int, list[int]]:
    """The `COMPARED` most similar others of each text that is a record."""
    own_stems, their_stems = ([known[n].stems for n in some] for some in (rows, others))
    shares = cdist(own_stems, their_stems, scorer=Indel.normalized_similarity, score_cutoff=ALIKE)
    least = max(FEWEST, MAJORITY * len(others))
    asked = frozenset(wanted.stems.tolist())
    mates: dict[int, list[int]] = {}
    for n, row in zip(rows, shares.tolist(), strict=True):
        near = sorted((-share, known[o].stems, o) for share, o in zip(row, others) if share > 0 and o != n)
        near_of = {o: known[o] for _, _, o in near}  # each has a name or number of its own
        own = [o for o, one in near_of.items() if one.differs(known[n])]
        different = 1 + len({known[o].values for o in own})
        if different >= least and not _same_subject([known[n], *(known[o] for o in own)], asked):
            mates[n] = own[:COMPARED]
    return mates


def _same_subject(group: Sequence[RecordText], asked: frozenset[int]) -> bool:
    """Whether more than half contain all of the question's words that any of them contains."""
    covered = [text.every & asked for text in group]
    return 2 * covered.count(frozenset().union(*covered)) > len(group)


def _in_common(stems: list[int], others: Sequence[list[int]]) -> Flags:
    """The words that at least half of the others contain in the same order, as flags, shape (n,)."""
    count = np.zeros(len(stems))
    for other in others:
        for block in LCSseq.opcodes(stems, other):
            if block.tag == "equal":
                count[block.src_start : block.src_end] += 1
    return np.asarray(2 * count >= len(others))
