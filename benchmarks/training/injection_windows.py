"""Windows of whole sentences, labelled by sentence, that the model of prompt injections is trained on.

Every order and every harmless look-alike is read alone, in a paragraph of ordinary text of its own language, and as a
value, an item, a cell, a mail or a comment; ordinary text is read at random places.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from tokenizers import Tokenizer

from benchmarks.training.injection_mail import mail
from benchmarks.training.injection_texts import Text, held_out
from unpoison.text.sentences import sentences

__all__ = [
    "ORDER",
    "PART",
    "SOME",
    "UNSURE",
    "WINDOW",
    "Carriers",
    "Pieces",
    "Window",
    "ordinary",
    "planted",
    "windows",
]

WINDOW = 126
"""Pieces of a window, without the marks around it."""

PART = 64
"""Most pieces of a sentence; a longer one is split into even parts."""

HONEST, ORDER, SOME, UNSURE = 0, 1, -1, 2
"""Labels of a sentence: honest, of an order, one of several of which at least one is, only read for others."""

RESULTS = ("tool result", "tool result JSON", "email", "table", "customer service dialogue", "forum answer",
           "ticket or event JSON", "memory entry")  # fmt: skip
"""Kinds of harmless texts that an order is planted in, beside ordinary text."""

KEYS = ("text", "content", "body", "note", "comment", "description", "summary", "message", "details", "value", "bio",
        "review", "snippet", "answer", "remarks", "title", "subject", "notes", "instructions", "info")  # fmt: skip

NAMES = ("anna", "ben", "m.rossi", "k.tanaka", "support", "office", "li.wei", "o.novak", "sara", "info")

MOST_CHARS = 2_500
"""Characters of a text that are read at once."""


class Window(NamedTuple):
    """Sentences that are read together.

    Attributes:
        ids: Their pieces, without marks.
        ends: Where each of them ends in `ids`.
        labels: One per sentence.
        weight: Of the window in the loss.
    """

    ids: list[int]
    ends: list[int]
    labels: list[int]
    weight: float


class Pieces:
    """The pieces of sentences, each tokenized alone and once."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known = dict[str, list[int]]()

    def of(self, sentence: str) -> list[int]:
        if sentence not in self._known:
            self._known[sentence] = self._tokenizer.encode(sentence, add_special_tokens=False).ids
        return self._known[sentence]

    def parts(self, sentence: str) -> list[list[int]]:
        """The pieces in even parts of at most `PART`."""
        ids = self.of(sentence)
        many = -(-len(ids) // PART)
        size = -(-len(ids) // max(many, 1))
        return [ids[i : i + size] for i in range(0, len(ids), size)] if ids else []


class Carriers:
    """Ordinary text by language, and results of tools."""

    def __init__(self, texts: Sequence[Text]) -> None:
        harmless = [text for text in texts if not (text.injection or held_out(text))]
        self._by_language = defaultdict[str, list[str]](list)
        for text in harmless:
            if not text.near and text.source != "machine" and len(text.text) > 150:
                self._by_language[text.language].append(text.text)
        self._results = [t.text for t in harmless if t.kind in RESULTS and len(t.text) < MOST_CHARS]

    def paragraph(self, language: str, random: Random) -> list[str]:
        """Sentences of a text in this language; English for one in which there is none."""
        text = random.choice(self._by_language.get(language[:2]) or self._by_language["en"])
        parts = [text[start:end] for start, end in sentences(text)]
        first = random.randrange(max(1, len(parts) - 7))
        return parts[first : first + 8] or [text]

    def result(self, random: Random) -> str:
        return random.choice(self._results)


Place = tuple[int, int]


def planted(text: str, language: str, carriers: Carriers, random: Random) -> tuple[str, Place]:
    """A text in a place where somebody might plant it, and where it stands there."""
    chance = random.random()
    if chance < 0.25:
        return text, (0, len(text))
    if chance < 0.65:
        around = carriers.paragraph(language, random)
        at = random.choice((0, len(around), random.randint(0, len(around))))
        between = random.choice((" ", " ", " ", "\n", "\n\n"))
        before, after = between.join([*around[:at], ""]), between.join(["", *around[at:]])
        return before + text + after, (len(before), len(before) + len(text))
    if chance < 0.75 and (language == "en" or random.random() < 0.3):
        result = carriers.result(random)
        at = random.choice([0, len(result), *(place for region in sentences(result) for place in region)])
        before = result[:at] + ("" if not at or result[at - 1].isspace() else " ")
        return f"{before}{text} {result[at:].lstrip(' ')}", (len(before), len(before) + len(text))
    made, shown = random.choice(FORMS)(text, carriers.paragraph(language, random), random)
    start = made.find(shown)
    return made, (start, start + len(shown))


def _json(text: str, around: list[str], random: Random) -> tuple[str, str]:
    keys = random.sample(KEYS, 3)
    indent = random.choice((None, None, 2))
    row = {"id": random.randint(1, 9999), keys[0]: around[0], keys[1]: text, keys[2]: around[-1]}
    data: object = row
    if random.random() < 0.5:
        rows = [{"id": number, keys[0]: part} for number, part in enumerate(around[:3])]
        rows.insert(random.randint(0, len(rows)), {"id": random.randint(4, 99), keys[0]: text})
        data = random.choice((rows, {"status": "ok", "results": rows}))
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return json.dumps(data, ensure_ascii=False, indent=indent), escaped


def _yaml(text: str, around: list[str], random: Random) -> tuple[str, str]:
    key, quote = random.choice(KEYS), random.random() < 0.3
    shown = json.dumps(text, ensure_ascii=False) if quote else text
    values = [*around[:2], shown, *around[2:4]]
    return "".join(f"- id: {number}\n  {key}: {value}\n" for number, value in enumerate(values)), shown


def _items(text: str, around: list[str], random: Random) -> tuple[str, str]:
    mark = random.choice(("- ", "* ", "• ", "", ""))
    values = around[:3]
    values.insert(random.randint(0, len(values)), text)
    return "\n".join(mark + value for value in values), text


def _table(text: str, around: list[str], random: Random) -> tuple[str, str]:
    rows = [(random.choice(NAMES), part) for part in around[:2]]
    rows.insert(random.randint(0, len(rows)), (random.choice(KEYS), text))
    return "| name | text |\n|---|---|\n" + "\n".join(f"| {name} | {part} |" for name, part in rows), text


def _comment(text: str, around: list[str], random: Random) -> tuple[str, str]:
    mark, after = random.choice((("# ", ""), ("// ", ""), ("/* ", " */"), ("-- ", ""), ("<!-- ", " -->")))
    line = text.replace("\n", " ")
    code = random.choice(("def total(rows):\n    return sum(rows)", "const limit = 20;", "SELECT * FROM orders;",
                          "import sys\n", "timeout: 30\nretries: 2"))  # fmt: skip
    return f"{mark}{around[0]}{after}\n{code}\n{mark}{line}{after}\n{code}", line


def _keys(text: str, around: list[str], random: Random) -> tuple[str, str]:
    keys = random.sample(KEYS, 3)
    return f"{keys[0]}: {around[0]}\n{keys[1]}: {text}\n{keys[2]}: {around[-1]}", text


FORMS: tuple[Callable[[str, list[str], Random], tuple[str, str]], ...] = (
    _json, _json, _yaml, _items, _items, _table, mail, mail, mail, _comment, _keys,
)  # fmt: skip


def windows(
    text: str, place: Place | None, label: int, weight: float, pieces: Pieces, random: Random, around: int = 7
) -> Window | None:
    """The window around a place, with up to so many sentences beside it; of a place unknown, the text's beginning."""
    found = list[tuple[list[int], int]]()
    start, end = place or (0, len(text))
    for first, last in sentences(text):
        shared = min(last, end) - max(first, start)
        inside = 2 * shared >= min(last - first, end - start)
        marked = label if inside else UNSURE if shared > 0 else HONEST
        found += [(part, marked) for part in pieces.parts(text[first:last])]
    targets = [i for i, (_, marked) in enumerate(found) if marked == label] if place else [0]
    if not found or not targets:
        return None
    low, high = targets[0], targets[0] + 1
    room = WINDOW - len(found[low][0])
    while place and high <= targets[-1] and len(found[high][0]) <= room:
        room -= len(found[high][0])
        high += 1
    for _ in range(around):
        left = low and len(found[low - 1][0]) <= room
        right = high < len(found) and len(found[high][0]) <= room
        if not (left or right):
            break
        if left and (not right or random.random() < 0.5):
            low -= 1
            room -= len(found[low][0])
        else:
            room -= len(found[high][0])
            high += 1
    return _window(found[low:high], weight)


def ordinary(text: str, weight: float, pieces: Pieces, random: Random) -> Window | None:
    """One to eight sentences at a random place of an honest text."""
    regions = sentences(text)
    if not regions:
        return None
    first = random.randrange(len(regions))
    found = [
        (part, HONEST) for s, e in regions[first : first + random.randint(1, 8)] for part in pieces.parts(text[s:e])
    ]
    low = random.randrange(len(found)) if found and random.random() < 0.2 else 0
    return _window(found[low:], weight) if found else None


def _window(parts: Sequence[tuple[list[int], int]], weight: float) -> Window | None:
    ids, ends, labels = list[int](), list[int](), list[int]()
    for part, label in parts:
        if len(ids) + len(part) > WINDOW:
            break
        ids += part
        ends.append(len(ids))
        labels.append(label)
    return Window(ids, ends, labels, weight) if ids and any(label != UNSURE for label in labels) else None
