"""Sentences of a collection that contradict each other: the same words except for a number or a name.

The texts do not show which of the two is right, so both are listed with their places.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from unpoison.core.codec import JsonRecord
from unpoison.scan.documents import Document
from unpoison.text.canonical import canonical
from unpoison.text.questions import Kind
from unpoison.text.sentences import STOP_WORDS, sentences, stem
from unpoison.text.tokens import word_list
from unpoison.text.values import agree, values

__all__ = ["Contradiction", "DocumentStatement", "contradictions"]

MAX_WORDS = 60
"""Maximum words of a sentence."""

MIN_SHARED, MIN_SHARE = 3, 0.6
"""Minimum number and share of common content words, beside the values, of two sentences on one question."""

MIN_DIRECT = 2
"""Minimum number of these words in both sentences; the others may be in the title or first sentence of a document."""

MAX_VERSIONS = 3
"""So many values between the same words are fields of a template, such as a price list."""

MAX_BEGINNING = 200
"""Characters of a document that are searched for its first sentence."""

COMMON = 0.1
"""The share of documents with a name from which the name does not distinguish subjects."""

MAX_LISTED = 100
"""Maximum number of contradictions."""

MAX_HOLDERS = 40
"""Maximum sentences with a pair of a unit and a word; a more frequent pair does not distinguish questions."""

HIDDEN = "hidden, "
"""Prefix of the place of a sentence that its file hides."""

_TOKEN = re.compile(r"\d[\d.,:/]*\d|\d|[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_CODE = re.compile(r"[{}<>=_`|]|://|\bet al\b")
"""Signs of code, tables and citations, which assert nothing in words."""
TYPED: frozenset[Kind] = frozenset(("iban", "phone", "money", "share", "duration", "date", "clock"))
"""Kinds of values that are compared as such, however their units are written."""
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_UNTELLING = word_list("about_values")
"""Words that do not tell whose an account, a telephone or an address is."""
_SAID = word_list("said_numbers")


@dataclass(frozen=True, slots=True)
class DocumentStatement(JsonRecord):
    """A sentence with a value: its document, its place there ("" for the only line), its text, and the value."""

    document: str
    place: str
    text: str
    value: str


@dataclass(frozen=True, slots=True)
class Contradiction(JsonRecord):
    """Two sentences on the same question with different values; `shared` is the share of common words, in [0, 1]."""

    first: DocumentStatement
    second: DocumentStatement
    shared: float


@dataclass(frozen=True, slots=True)
class _Read:
    """A statement and its features for comparison.

    Attributes:
        statement: The sentence and its value.
        kind: The kind of the value, also "mail"; "" for a name and a number without one.
        unit: The kind, or the stem after the value.
        subject: The first content word.
        words, others: Its content words, and its other numbers.
        about: The content words of its document's title and first sentence.
    """

    statement: DocumentStatement
    kind: str
    unit: str
    subject: str
    words: frozenset[str]
    others: frozenset[str]
    about: frozenset[str]


def contradictions(documents: Sequence[Document]) -> tuple[Contradiction, ...]:
    """The contradictions between documents, and between what one shows and what it hides, the clearest first.

    Complexity: O(n) time and memory for n words.
    """
    every = _without_names_of_all([one for document in documents for one in _statements(document)], len(documents))
    values = defaultdict[tuple[str, frozenset[str]], set[str]](set)
    for one in every:
        values[one.unit, one.words].add(_plain(one.statement.value))
    read = [one for one in every if len(values[one.unit, one.words]) < MAX_VERSIONS]
    holders = defaultdict[tuple[str, str], list[int]](list)
    for number, one in enumerate(read):
        for word in one.words:
            holders[one.unit, word].append(number)
    pairs = {pair for same in holders.values() if len(same) <= MAX_HOLDERS for pair in combinations(same, 2)}
    found = dict[tuple[str, str], Contradiction]()
    for left, right in sorted(pairs):
        one, other = read[left], read[right]
        share = _share(one, other)
        if share:
            key = one.statement.text, other.statement.text
            found.setdefault(key, Contradiction(one.statement, other.statement, round(share, 3)))
    return tuple(sorted(found.values(), key=lambda one: -one.shared)[:MAX_LISTED])


def _without_names_of_all(every: Sequence[_Read], documents: int) -> list[_Read]:
    """The statements without names that many documents have, such as that of the company: these distinguish nothing."""
    holders = defaultdict[str, set[str]](set)
    for one in every:
        for word in one.words:
            if word[0].isupper():
                holders[word].add(one.statement.document)
    common = {word for word, some in holders.items() if len(some) > max(2, COMMON * documents)}
    return [replace(one, words=one.words - common) for one in every]


def _share(one: _Read, other: _Read) -> float:
    """The share of common words if two statements answer the same question differently; otherwise 0."""
    left, right = one.statement, other.statement
    if left.document == right.document and left.place.startswith(HIDDEN) == right.place.startswith(HIDDEN):
        return 0.0
    if _plain(left.value) == _plain(right.value) or _is_number(left.value) != _is_number(right.value):
        return 0.0
    if one.kind in TYPED and agree(left.value, right.value, one.kind) != "rival":
        return 0.0
    if _years(one.others) != _years(other.others) or (one.others - other.others and other.others - one.others):
        return 0.0
    mine, theirs = one.words - other.words - other.about, other.words - one.words - one.about
    direct, every = len(one.words & other.words), len(one.words | other.words)
    shared = every - len(mine) - len(theirs)
    if direct < MIN_DIRECT or shared < MIN_SHARED - (_is_number(left.value) and not mine and not theirs):
        return 0.0
    # What only one of them says narrows it, and two narrowings are two questions, such as "in Berlin", "in Hamburg".
    if mine and theirs and (one.subject != other.subject or not _is_number(left.value) or shared < MIN_SHARE * every):
        return 0.0
    return 0.0 if mine and theirs and any(word[0].isupper() for word in mine | theirs) else shared / every


def _years(numbers: frozenset[str]) -> set[str]:
    return {number for number in numbers if re.fullmatch("(?:19|20)[0-9]{2}", number)}


def _is_number(value: str) -> bool:
    return any(map(str.isdigit, value)) or "@" in value or value.split()[0].lower() in _SAID


def _plain(value: str) -> str:
    """A value without separators of thousands."""
    return re.sub(r",(?=\d{3}\b)", "", value).rstrip(".,:").casefold()


def _statements(document: Document) -> Iterator[_Read]:
    beginning = document.passage.text[:MAX_BEGINNING]
    first = beginning[slice(*next(iter(sentences(beginning)), (0, 0)))]
    about = frozenset(map(_content, _TOKEN.findall(f"{document.passage.title or ''} {first}"))) - {""}
    for hidden, reading in (("", document.reading), (HIDDEN, document.hidden), (HIDDEN, document.covert)):
        line = 0
        for raw in reading.text.split("\n"):
            text = canonical(raw).text
            for start, end in sentences(text):
                sentence = text[start:end].strip()
                place = f"{hidden}{reading.place(line)}".rstrip(", ")
                for value, kind, unit, subject, words, others in _values(sentence):
                    said = DocumentStatement(document.id, place, sentence, value)
                    yield _Read(said, kind, unit, subject, words, others, about)
            line += len(raw) + 1


def _values(sentence: str) -> Iterator[tuple[str, str, str, str, frozenset[str], frozenset[str]]]:
    """Each typed value, number or name of a sentence, with its fields of `_Read`."""
    matches = list(_TOKEN.finditer(sentence))
    tokens = [match[0] for match in matches]
    if not MIN_SHARED < len(tokens) <= MAX_WORDS or _CODE.search(sentence):
        return
    typed: list[tuple[int, int, str]] = [(*match.span(), "mail") for match in _MAIL.finditer(sentence)]
    typed += [(value.start, value.end, value.kind) for value in values(sentence) if value.kind in TYPED]
    kinds, written, runs = dict[int, str](), dict[int, str](), list[tuple[int, int]]()
    for start, end, kind in typed:
        inside = [n for n, match in enumerate(matches) if start <= match.start() < end]
        if inside:
            runs.append((inside[0], inside[-1] + 1))
            kinds |= dict.fromkeys(inside, kind)
            written[inside[0]] = sentence[start:end]
    is_name = [number > 0 and token[0].isupper() and number not in kinds for number, token in enumerate(tokens)]
    for number, token in enumerate(tokens):
        if number in kinds:
            continue
        if token[0].isdigit() or token.lower() in _SAID:
            runs.append((number, number + 1))
        elif is_name[number]:
            if runs and runs[-1][1] == number and is_name[number - 1]:
                runs[-1] = runs[-1][0], number + 1
            else:
                runs.append((number, number + 1))
    words = [_content(token) for token in (tokens[0].lower(), *tokens[1:])]
    numbers = [number for number, token in enumerate(tokens) if token[0].isdigit()]
    for first, last in runs:
        kind = kinds.get(first, "")
        rest = [word for number, word in enumerate(words) if word and not first <= number < last]
        unit = next((word for word in words[last:] if word), next((word for word in words[:first][::-1] if word), ""))
        others = frozenset(_plain(tokens[number]) for number in numbers if not first <= number < last)
        said = written.get(first) or sentence[matches[first].start() : matches[last - 1].end()]
        before = frozenset(w.lower() for w, t in zip(words, tokens[:first]) if w and t.lower() not in _UNTELLING)
        held = {
            "iban": (frozenset(("iban", "account")),),
            "phone": (before,),
            "mail": (before, frozenset(("@", said.partition("@")[0]))),
        }
        others = frozenset() if kind in held else others
        for question in held.get(kind, (frozenset(rest),)):
            yield said, kind, kind or unit, rest[0] if rest else "", question, others


def _content(token: str) -> str:
    """The stem of a content word, a name with its capital; "" for a number and a word without a subject."""
    lowered = token.lower()
    if token[0].isdigit() or lowered in STOP_WORDS or lowered in _SAID:
        return ""
    return token[0] + stem(lowered)[1:] if token[0].isupper() else stem(lowered)
