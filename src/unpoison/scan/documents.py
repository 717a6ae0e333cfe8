"""Documents of an index, their metadata, and their units: the parts that are checked separately."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Any, NamedTuple, Self

from unpoison.core.passages import Passage
from unpoison.errors import InputError, clip
from unpoison.io.rows import read_time
from unpoison.scan.parts import COVERT, FOLDED, NOTHING, FileReading, Part
from unpoison.scan.web_page import concealed_texts
from unpoison.text.canonical import MAX_TEXT_CHARS, Hidden, canonical
from unpoison.text.sentences import sentences
from unpoison.utils.files import Spilled

__all__ = ["TURNS", "UNNAMED", "Document", "Probe", "Unit", "UnreadDocument", "content_name", "documents_of", "moment",
           "probe", "units_of"]  # fmt: skip

TIMES = ("added_at", "created_at", "inserted_at", "indexed_at", "published", "timestamp", "date")
"""Metadata fields with the time of a document; the first one present is used."""

TURNS = ("messages", "conversations")
"""Fields of a chat log with its turns."""

UNNAMED = "it has no id, and is named by a hash of its text"
RENAMED = "another document has its id"

AUTHORS = ("author", "authors", "uploader", "user", "owner")
"""Metadata fields with the author."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    Attributes:
        passage: Its text, title, source and vector; `id` is always there.
        added_at: When it was added, None if unknown.
        author: Its author, None if unknown.
        hidden: Text that its file hides but a reader can unfold, such as a filtered row.
        covert: Text that no reader can see, such as white letters on white.
        places: The places of the text, as in `FileReading`.
        notes: Warnings from reading it.
    """

    passage: Passage
    added_at: datetime | None = None
    author: str | None = None
    hidden: FileReading = NOTHING
    covert: FileReading = NOTHING
    places: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def reading(self) -> FileReading:
        """The text with its places."""
        return FileReading(self.passage.text, self.places)

    @property
    def id(self) -> str:
        """Its name, unique within one scan."""
        return self.passage.id or ""

    @property
    def key(self) -> str:
        """A hash of name, title and text."""
        digest = blake2b(digest_size=16)
        for part in (self.id, self.passage.title or "", self.passage.text):
            digest.update(f"{len(part)} ".encode() + part.encode("utf-8", "surrogatepass"))
        return digest.hexdigest()

    @classmethod
    def of(cls, value: object, position: int | None = None) -> Self:
        """Read a string, a mapping, a passage, or a framework's document, as `Passage.of` does.

        Without an id it is named by a hash of its text. Time and author are the metadata `TIMES` and `AUTHORS`.

        Raises:
            InputError: No text, or a field of the wrong type.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and isinstance(value.get("id"), (int, float)):
            value = {**value, "id": str(value["id"])}
        passage = Passage.of(value, position)
        metadata, named = passage.metadata, dict[str, Any]()
        if passage.title is None and isinstance(metadata.get("title"), str):
            named["title"] = metadata["title"]
        notes: tuple[str, ...] = ()
        if passage.id is None:
            named["id"] = f"text-{blake2b(passage.text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"
            notes = (UNNAMED,)
        time = next((metadata[name] for name in TIMES if metadata.get(name) is not None), None)
        added_at = None if time is None else moment(time)
        if time is not None and added_at is None:
            notes = (*notes, f"its time {clip(time)} cannot be read")
        author = next((str(metadata[name])[:200] for name in AUTHORS if metadata.get(name)), None)
        return cls(replace(passage, **named), added_at, author, notes=notes)

    @classmethod
    def of_row(cls, fields: Mapping[str, Any]) -> Self:
        """Read a row of a file or store; empty fields are ignored, and the vector may have other names.

        Raises:
            InputError: No text, or a field of the wrong type.
        """
        kept = {name: value for name, value in fields.items() if value is not None and name != "score"}
        for name in ("vector", "embeddings"):
            if "embedding" not in kept and isinstance(kept.get(name), list):
                kept["embedding"] = kept[name]
        for name in ("title", "source"):
            if name in kept and not isinstance(kept[name], str):
                del kept[name]
        turns = next((kept[name] for name in TURNS if isinstance(kept.get(name), list)), None)
        if turns is None or isinstance(kept.get("text"), str):
            return cls.of(kept)
        said = FileReading.of(
            Part(f"{turn.get('role') or turn.get('from') or ''}: {_said(turn)}", f"turn {number:,}")
            for number, turn in enumerate(turns, 1)
            if isinstance(turn, Mapping)
        )
        return replace(cls.of({**kept, "text": said.text}), places=said.places)


def _said(turn: Mapping[str, Any]) -> str:
    """The texts of a turn of a chat: its text or parts, and the arguments of its calls."""
    content = turn.get("content", turn.get("value"))
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") or part.get("content") if isinstance(part, Mapping) else part for part in parts]
    calls = [call.get("function", call) for call in turn.get("tool_calls") or () if isinstance(call, Mapping)]
    return " ".join(str(one) for one in (*texts, *calls) if one)


@dataclass(frozen=True, slots=True)
class UnreadDocument:
    """A row or file that could not be read.

    Attributes:
        location: The line, row or path.
        error: The reason.
    """

    location: str
    error: str


def documents_of(values: Iterable[object]) -> Iterator[Document]:
    """Documents with distinct names: a repeated name gets a hash of the content appended, and a note.

    Raises:
        InputError: A value that is not a document.
    """
    if isinstance(values, (str, bytes, Mapping)):
        raise InputError(f"documents must be a list of documents, got {clip(values)}; wrap it in a list")
    documents = Spilled(Document.of(value, position) for position, value in enumerate(values))
    ids, taken = Counter(document.id for document in documents), Counter[str]()
    for document in documents:
        yield document if ids[document.id] == 1 else _told_apart(document, taken)


def _told_apart(document: Document, taken: Counter[str]) -> Document:
    """A document with a repeated id, renamed by its content, so that moving the others does not change its name."""
    name = content_name(document)
    taken[name] += 1
    number = f"-{taken[name]}" if taken[name] > 1 else ""
    renamed = replace(document.passage, id=f"{name}{number}")
    return replace(document, passage=renamed, notes=(*document.notes, f"{RENAMED} {clip(document.id)}"))


def content_name(document: Document) -> str:
    """The name of a document with a repeated id."""
    return f"{document.id}#{document.key[:8]}"


def moment(value: object) -> datetime | None:
    """A time as text (ISO or RFC 2822), seconds or milliseconds since 1970, a date or datetime; None for others."""
    time: datetime | None
    try:
        if isinstance(value, datetime):
            time = value
        elif isinstance(value, date):
            time = datetime(value.year, value.month, value.day, tzinfo=UTC)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            time = datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, UTC)
        elif isinstance(value, str):
            time = read_time(value)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return None if time is None else time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


MAX_CHARACTERS = 2_000
"""Maximum characters of a unit; a shorter document is one unit."""

MIN_CHARACTERS = 1_200
"""A unit ends with the first sentence beyond this many characters."""

_SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a document.

    Attributes:
        document: The number of the document.
        text: The canonical text; the first unit begins with the title.
        body: The text without the title.
        title: The canonical title of the document; empty without one.
        start, end: Its region in the caller's text, or a larger region if the exact one is unknown.
        hidden: Characters hidden in the piece of the document that the unit comes from; in its first unit only.
        concealed: `FOLDED` or `COVERT` if it is text that the file or its markup hides.
    """

    document: int
    text: str
    body: str
    title: str
    start: int
    end: int
    hidden: Hidden
    concealed: str = ""


def units_of(document: Document, number: int) -> Iterator[Unit]:
    """The units of a document of any length, then those of its hidden text. O(n) time, one piece in memory."""
    passage = document.passage
    heading = canonical(passage.title or "")
    title = heading.text
    shown = "" if not title or passage.text.startswith(passage.title or "") else title
    first = True
    for start, end in _pieces(passage.text):
        raw = passage.text[start:end]
        read = canonical(raw)
        hidden = read.hidden + heading.hidden if first else read.hidden
        at = 0
        for body in _stretches(read.text):
            where = raw.find(body, at)
            at = max(where, at)
            region = (start, end) if where < 0 else (start + where, start + where + len(body))
            text = f"{shown}\n{body}" if first and shown else body
            yield Unit(number, text, body, title, *region, hidden)
            first, hidden = False, Hidden()
    inside = concealed_texts(passage.text)
    for concealed, unseen in ((FOLDED, document.hidden.text), (COVERT, document.covert.text)):
        text = "\n".join(filter(None, (unseen, *(part.text for part in inside if part.hidden == concealed))))
        for body in _stretches(canonical(text).text) if text else ():
            yield Unit(number, body, body, "", 0, len(passage.text), Hidden(), concealed)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Pieces of limited length, cut at white space if there is any nearby."""
    start, most = 0, MAX_TEXT_CHARS // 2
    while len(text) - start > most:
        space = max((match.end() for match in _SPACE.finditer(text, start + most - 1000, start + most)), default=0)
        end = space or start + most
        yield start, end
        start = end
    yield start, len(text)


def _stretches(text: str) -> Iterator[str]:
    if len(text) <= MAX_CHARACTERS:
        yield text
        return
    begun, last = -1, 0
    for start, end in sentences(text):
        if begun < 0:
            begun = start
        if end - begun > MAX_CHARACTERS and last > begun:
            yield text[begun:last]
            begun = start
        while end - begun > MAX_CHARACTERS:  # an overlong sentence
            yield text[begun : begun + MAX_CHARACTERS]
            begun += MAX_CHARACTERS
        last = end
        if last - begun >= MIN_CHARACTERS:
            yield text[begun:last]
            begun = -1
    if begun >= 0 and text[begun:last].strip():
        yield text[begun:last]


MAX_PROBE_WORDS = 40
"""Maximum words of a question."""

MIN_PROBE_WORDS = 4
"""A first sentence with fewer words is a heading, and the next sentence is added."""

INTERROGATIVE = re.compile(
    r"(?:(?:in|on|at|by|for|from|of|to|with) )?(?:who|whom|whose|what|when|where|which|why|how)\b"
    r"|(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had)\b",
    re.IGNORECASE,
)
"""Beginnings of English questions; in other languages the question mark decides."""

MAX_QUESTION_WORDS, MAX_UNMARKED_WORDS = 45, 15
"""Maximum words of a leading question, with and without a question mark."""

_GOES_ON = re.compile(r"\W*(?:is|was|are|were|by|and|or)\b")
"""Continuations after a title with a question mark: "Where Are We Going? is a film"."""


class Probe(NamedTuple):
    """The question of a unit.

    Attributes:
        question: The text of the question.
        asks: Whether the unit begins with a question.
        lead: The region of the first sentence in the body.
    """

    question: str
    asks: bool
    lead: tuple[int, int]


def probe(unit: Unit) -> Probe:
    """The first sentence as a question, with the title before it if it does not contain the title. O(n) time."""
    stands = sentences(unit.body[:4_000])
    if not stands:
        return Probe(unit.title, asks=False, lead=(0, 0))
    lead = stands[0]
    first = unit.body[lead[0] : lead[1]]
    words = first.split()
    asks = len(stands) > 1 and _asks(first, words) and not _GOES_ON.match(unit.body, lead[1])
    if len(words) < MIN_PROBE_WORDS and len(stands) > 1:
        words += unit.body[stands[1][0] : stands[1][1]].split()
    named = unit.title.split()
    if named and not asks and named[0] not in words:
        words = named + words
    return Probe(" ".join(words[:MAX_PROBE_WORDS]), asks, lead)


def _asks(sentence: str, words: list[str]) -> bool:
    if not MIN_PROBE_WORDS - 1 <= len(words) <= MAX_QUESTION_WORDS:
        return False
    if sentence.rstrip("\"'\u201d\u2019) ").endswith(("?", "\uff1f")):
        return True
    return len(words) <= MAX_UNMARKED_WORDS and "," not in sentence and INTERROGATIVE.match(sentence) is not None
