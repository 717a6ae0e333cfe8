"""What training does to a passage and its question, so that the reader meets more forms than its free data hold."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from unpoison.text.tokens import squad

__all__ = [
    "MONTHS",
    "UNLABELLED",
    "Pair",
    "Score",
    "blanked",
    "cut",
    "occurrences",
    "published",
    "questioned",
    "redated",
    "renamed",
    "rival_of",
    "scored",
    "summary",
    "swapped",
    "varied",
    "without_answer",
]

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[\"'“(\[]?[A-Z0-9])")
NAME = re.compile(r"\b[A-Z][\w'\u2019.-]*(?:\s+(?:of|de|the|van|von|and)?\s?[A-Z][\w'\u2019.-]*){0,3}")
NUMBER = re.compile(r"\b\d[\d,.]*\d\b|\b\d\b")


UNLABELLED = "unlabelled"
"""The source of pairs of which only a teacher says what they hold."""


@dataclass(frozen=True)
class Pair:
    """A question, one passage, and where the passage says the answer.

    Attributes:
        question: As a user types it.
        text: The passage.
        spans: Start and end of every place that holds the answer; empty where the passage does not say.
        source: Where the pair comes from.
    """

    question: str
    text: str
    spans: tuple[tuple[int, int], ...]
    source: str

    @property
    def answer(self) -> str:
        """The answer as the first place words it."""
        start, end = self.spans[0]
        return self.text[start:end]


def occurrences(text: str, answers: list[str], most: int = 8) -> tuple[tuple[int, int], ...]:
    """Where the answers stand as whole words, whatever the case; of places within each other the longer one."""
    places: list[tuple[int, int]] = []
    for answer in sorted({a.strip() for a in answers if a.strip()}, key=len, reverse=True):
        pattern = r"(?<!\w)" + r"\s+".join(map(re.escape, answer.split())) + r"(?!\w)"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if not any(start < match.end() and match.start() < end for start, end in places):
                places.append(match.span())
    return tuple(sorted(places)[:most])


def varied(pair: Pair, others: list[Pair], rng: np.random.Generator) -> Pair:
    """One of the many forms in which the same passage may reach a reader."""
    if pair.spans and rng.random() < 0.2:
        pair = swapped(pair, others, rng)
    if pair.spans and rng.random() < 0.08:
        pair = without_answer(pair)
    if pair.spans and rng.random() < 0.06:
        pair = renamed(pair, others, rng)
    if pair.spans and rng.random() < 0.25:
        pair = redated(pair, rng)
    if rng.random() < 0.12:
        other = others[int(rng.integers(len(others)))]
        if other.question != pair.question:
            pair = _joined(pair, other.text, behind=bool(rng.random() < 0.5))
    if rng.random() < 0.3:
        pair = cut(pair, rng)
    if rng.random() < 0.15:
        pair = _in_front(pair, rng)
    if rng.random() < 0.12:
        pair = published(pair, rng)
    return questioned(pair, rng)


def questioned(pair: Pair, rng: np.random.Generator) -> Pair:
    """The question in another of its usual spellings: with or without capital and question mark."""
    question = pair.question.strip()
    chance = rng.random()
    if chance < 0.3:
        question = question.rstrip("?. ").lower()
    elif chance < 0.6:
        question = question[:1].upper() + question[1:].rstrip("? ") + "?"
    return replace(pair, question=question)


def cut(pair: Pair, rng: np.random.Generator) -> Pair:
    """Some fifteen to sixty words as a search engine shows them, around an answer where there is one."""
    words = [match.span() for match in re.finditer(r"\S+", pair.text)]
    size = int(rng.integers(15, 60))
    if len(words) <= size + 5:
        return pair
    first = int(rng.integers(len(words) - size))
    if pair.spans:
        start, end = pair.spans[int(rng.integers(len(pair.spans)))]
        inside = [i for i, (a, b) in enumerate(words) if b > start and a < end]
        if len(inside) > size:
            return pair
        low, high = max(0, inside[-1] + 1 - size), min(inside[0], len(words) - size)
        first = int(rng.integers(min(low, high), max(low, high) + 1))
    begin, stop = words[first][0], words[first + size - 1][1]
    before = str(rng.choice(["", "... ", "… "])) if first else ""
    after = str(rng.choice(["", " ...", " …", "..."])) if stop < len(pair.text) else ""
    kept = tuple((s - begin + len(before), e - begin + len(before)) for s, e in pair.spans if begin <= s and e <= stop)
    return replace(pair, text=before + pair.text[begin:stop] + after, spans=kept)


def swapped(pair: Pair, others: list[Pair], rng: np.random.Generator) -> Pair:
    """The passage with another answer of the same kind in every place of the first: read, do not remember."""
    other = rival_of(pair, others, rng)
    return pair if other is None else _replaced(pair, other)


def rival_of(pair: Pair, others: list[Pair], rng: np.random.Generator) -> str | None:
    """Another pair's answer of the same kind, where a dozen draws find one."""
    for _ in range(12):
        other = others[int(rng.integers(len(others)))]
        if other.spans and other.answer.lower() != pair.answer.lower() and _alike(pair.answer, other.answer):
            return other.answer
    return None


def _alike(left: str, right: str) -> bool:
    """Whether both are numbers, names or plain words, and about as long."""
    return _kind(left) == _kind(right) and abs(len(left.split()) - len(right.split())) <= 2


def _kind(answer: str) -> str:
    if re.search(r"\b[12]\d{3}\b", answer):
        return "date"
    if any(c.isdigit() for c in answer):
        return "number"
    return "name" if answer[:1].isupper() else "words"


def _replaced(pair: Pair, new: str) -> Pair:
    parts, spans, at, size = [], [], 0, 0
    for start, end in pair.spans:
        parts += [pair.text[at:start], new]
        size += start - at
        spans.append((size, size + len(new)))
        size += len(new)
        at = end
    return replace(pair, text="".join([*parts, pair.text[at:]]), spans=tuple(spans))


def without_answer(pair: Pair) -> Pair:
    """The passage less every sentence that holds the answer; the pair itself where nothing else would remain."""
    kept, at = [], 0
    for sentence in SENTENCE.split(pair.text):
        start = pair.text.index(sentence, at)
        at = start + len(sentence)
        if not any(s < at and start < e for s, e in pair.spans):
            kept.append(sentence)
    text = " ".join(kept)
    return replace(pair, text=text, spans=()) if len(text) > 60 else pair


def renamed(pair: Pair, others: list[Pair], rng: np.random.Generator) -> Pair:
    """A question about somebody or something else, which the passage does not answer."""
    names = [m for m in NAME.finditer(pair.question) if m.start() > 0 and m[0] in pair.text]
    numbers = [m for m in NUMBER.finditer(pair.question) if m[0] in pair.text]
    if names and rng.random() < 0.7:
        chosen = names[int(rng.integers(len(names)))]
        for _ in range(10):
            other = NAME.findall(others[int(rng.integers(len(others)))].question[1:])
            if other and other[0] not in pair.text:
                return _asked(pair, chosen, other[0])
    elif numbers:
        chosen = numbers[int(rng.integers(len(numbers)))]
        if chosen[0].isdigit():
            changed = str(int(chosen[0]) + int(rng.choice([-7, -3, -2, 2, 3, 11])))
            if changed not in pair.text:
                return _asked(pair, chosen, changed)
    return pair


def redated(pair: Pair, rng: np.random.Generator) -> Pair:
    """A passage about another year than the question's, which it therefore does not answer."""
    years = [year for year in re.findall(r"\b(?:1[6-9]|20)\d{2}\b", pair.question) if year in pair.text]
    if not years or any(year in pair.text[s:e] for year in years for s, e in pair.spans):
        return pair
    year = years[int(rng.integers(len(years)))]
    other = str(int(year) + int(rng.choice([-4, -2, -1, 1, 2, 4])))
    if rng.random() < 0.5 and other not in pair.text:
        return replace(pair, question=pair.question.replace(year, other), spans=())
    return replace(pair, text=pair.text.replace(year, other), spans=()) if len(set(years)) == 1 else pair


MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]  # fmt: skip


def published(pair: Pair, rng: np.random.Generator) -> Pair:
    """A date of publication in front, as search engines and news pages show it: it answers nothing."""
    month, day, year = MONTHS[int(rng.integers(12))], int(rng.integers(1, 29)), int(rng.integers(2005, 2027))
    form = str(rng.choice(["{m} {d}, {y} ... ", "{m} {d}, {y} — ", "Published {d} {m} {y}\n", "{d} {m} {y} · ",
                           "{y}-{n:02}-{d:02} ", "Updated: {m} {d}, {y}. ", "{d} days ago ... "]))  # fmt: skip
    short = month if rng.random() < 0.3 else month[:3]
    front = form.format(m=short, d=day, y=year, n=MONTHS.index(month) + 1)
    by = len(front)
    return replace(pair, text=front + pair.text, spans=tuple((s + by, e + by) for s, e in pair.spans))


def _asked(pair: Pair, place: re.Match[str], name: str) -> Pair:
    question = pair.question[: place.start()] + name + pair.question[place.end() :]
    return replace(pair, question=question, spans=())


def _joined(pair: Pair, other: str, *, behind: bool) -> Pair:
    """A sentence or two of another page before or behind the passage."""
    filling = " ".join(SENTENCE.split(other)[:2])[:400]
    if behind:
        return replace(pair, text=f"{pair.text} {filling}")
    by = len(filling) + 1
    return replace(pair, text=f"{filling} {pair.text}", spans=tuple((s + by, e + by) for s, e in pair.spans))


def _in_front(pair: Pair, rng: np.random.Generator) -> Pair:
    """The question in front, as attackers and pages of frequent questions write it."""
    form = str(rng.choice(["{}. ", "{}? ", "Q: {}? A: ", "{}\n", "{} - ", "{} "]))
    front = form.format(pair.question.rstrip("?. "))
    spans = tuple((s + len(front), e + len(front)) for s, e in pair.spans)
    return replace(pair, text=front + pair.text, spans=spans)


def blanked(title: str, text: str, rng: np.random.Generator) -> Pair | None:
    """A sentence of the passage with a name or number taken out, as a question: where does the passage say it?

    After the cloze questions of Lewis et al. (2019): the blank becomes a question word, and words are dropped, so that
    the question is not found by looking for its own letters.
    """
    sentences = [s for s in SENTENCE.split(text) if 6 <= len(s.split()) <= 45]
    if not sentences:
        return None
    sentence = sentences[int(rng.integers(len(sentences)))]
    found = [m for m in (*NAME.finditer(sentence), *NUMBER.finditer(sentence)) if m.start() > 0 and len(m[0]) > 1]
    if not found:
        return None
    chosen = found[int(rng.integers(len(found)))]
    word = {"date": "when", "number": "how many", "name": str(rng.choice(["who", "what", "which", "where"]))}.get(
        _kind(chosen[0]), "what"
    )
    rest = (sentence[: chosen.start()] + " " + sentence[chosen.end() :]).rstrip(".!? ").split()
    start = max(0, len(sentence[: chosen.start()].split()) - int(rng.integers(3, 9)))
    near = [w for w in rest[start : start + int(rng.integers(7, 15))] if rng.random() > 0.25]
    about = [title] if title and rng.random() < 0.6 and title.lower() not in " ".join(near).lower() else []
    question = " ".join([word, *near, *about]) if rng.random() < 0.7 else " ".join([*about, *near, word])
    spans = occurrences(text, [chosen[0]])
    return Pair(question, text, spans, "blanked") if spans else None


@dataclass(frozen=True)
class Score:
    """How one answer compares with what its passage says: SQuAD's F1 and exact match, the best of all wordings."""

    answerable: bool
    f1: float
    exact: bool
    answered: bool


def scored(pair: Pair, answer: str) -> Score:
    """Compare an answer ("" for none) with the pair's own."""
    golds = {pair.text[start:end] for start, end in pair.spans}
    best = max((_f1(answer, gold) for gold in golds), default=0.0)
    return Score(bool(golds), best, any(squad(answer) == squad(gold) for gold in golds), bool(answer))


def summary(scores: list[Score]) -> list[float]:
    """Percent: F1 and exact match of what has an answer, answered though none, refused though answer."""
    some, none = [s for s in scores if s.answerable], [s for s in scores if not s.answerable]
    columns = (
        [s.f1 for s in some],
        [s.exact for s in some],
        [s.answered for s in none],
        [not s.answered for s in some],
    )
    return [round(100 * float(np.mean(column)), 1) if column else float("nan") for column in columns]


def _f1(left: str, right: str) -> float:
    one, two = Counter(squad(left).split()), Counter(squad(right).split())
    common = sum((one & two).values())
    return 2 * common / (one.total() + two.total()) if common else 0.0
