"""Which documents of a store may be behind an answer, and which belong to those that are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Self

from rapidfuzz import fuzz

from unpoison.bench.redteam.targets import Answered, read_count
from unpoison.core.passages import Passage
from unpoison.errors import InputError
from unpoison.retrieval.bm25 import BM25Retriever, words_of_any_script
from unpoison.scan.collection import MAX_BATCH_SHARE, origins
from unpoison.scan.documents import Document, Failure
from unpoison.scan.sources import read_documents
from unpoison.scan.statements import statements
from unpoison.scan.trace_methods import STATED
from unpoison.text.canonical import canonical
from unpoison.text.prompt_injection import THRESHOLD, injection

__all__ = ["HINT", "MAX_SUSPECTS", "Accomplice", "Documents", "Standing", "Suspect", "is_cited"]

MAX_SUSPECTS = 12
"""Documents that may be withheld in the first round; what the target reads in their place may come later."""

NEIGHBOURS = 50
"""Documents that are looked at, for the question, and for the question with the answer."""

COPY = 85.0
"""Per cent of letters in common, from which two texts are near-copies."""

COPY_CHARACTERS = 2_000
"""Of each text, compared letter by letter."""

MIN_COMPANY = 3
"""Up to so many others of one source belong together in a small collection."""


HINT = 0.25
"""A document that states the answer less plainly does not take part in it: clean documents about the subject."""


class Standing(StrEnum):
    """What a document says about the answer; only what states it, or gives orders, is moved without asking."""

    STATES = "states the wrong answer, or gives orders"
    SILENT = "does not state the wrong answer"
    RIGHT = "states what is right"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A document that may be behind the answer.

    Attributes:
        id: Its name in the store.
        text: With its title in front.
        origins: Its author and its source, in words.
        cited: Whether the target says that it read it.
        similarity: BM25 of the question, as a share of the best document's, in [0, 1].
        stated: How plainly it states a wrong answer, that of the complaint or another that came in its place, in
            [0, 1].
        complained: How plainly it states that of the complaint, in [0, 1].
        right: How plainly it states what is right, where that is known, in [0, 1].
    """

    id: str
    text: str
    origins: tuple[str, ...]
    cited: bool
    similarity: float
    stated: float
    complained: float = 0.0
    right: float = 0.0

    @property
    def standing(self) -> Standing:
        """Whether what it says can be behind the wrong answer. What the system replies does not decide this."""
        if self.right >= STATED and self.complained < STATED:
            return Standing.RIGHT
        if (
            self.complained >= HINT
            or self.stated >= STATED
            or injection(canonical(self.text).text).probability > THRESHOLD
        ):
            return Standing.STATES
        return Standing.SILENT

    @property
    def score(self) -> float:
        """By which suspects are ranked: what it says counts twice as much as being cited and being near."""
        return self.stated + 0.5 * self.similarity + 0.5 * self.cited

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Of what `to_dict` gave."""
        return cls(**{**row, "origins": tuple(row["origins"])})


class Accomplice(NamedTuple):
    """A document that belongs to the guilty, though the answer does not depend on it.

    One that states what is right, and not the wrong answer, is listed and never moved.
    """

    id: str
    text: str
    reason: str
    right: bool = False


class Documents:
    """What a store holds, searchable by words.

    Args:
        source: As for `unpoison scan`.
        held: Another source, where some of its documents are meanwhile.
        names: Their ids.

    Raises:
        InputError: There are no documents.
        StoreError: It cannot be reached.
    """

    def __init__(self, source: str, held: str = "", names: Collection[str] = ()) -> None:
        self.failures = list[Failure]()
        self._by_id = dict[str, Document]()
        if names:
            away = read_documents(held, self.failures.append)
            self._by_id = {document.id: document for document in away if document.id in names}
        self._by_id |= {document.id: document for document in read_documents(source, self.failures.append)}
        if not self._by_id:
            raise InputError("the store holds no documents that can be read; see --store")
        passages = (Passage(_text(document), id=name) for name, document in self._by_id.items())
        self._search = BM25Retriever(passages, tokenize=words_of_any_script)

    def __len__(self) -> int:
        return len(self._by_id)

    def suspects(
        self, question: str, answers: Sequence[str], replies: Sequence[Answered], right: Sequence[str] = ()
    ) -> list[Suspect]:
        """What the target cites, and the neighbours of question and answer; the most suspicious first.

        Args:
            question: What was asked.
            answers: The wrong answer of the complaint, or the wrong part of it; then others that came in its place.
            replies: Of the target, with what it read where it says so.
            right: Right answers, where they are known.
        """
        read = _merge(replies)
        near = {passage.id or "": passage.score or 0.0 for passage in self._search.retrieve(question, NEIGHBOURS)}
        both = [p.id or "" for answer in answers for p in self._search.retrieve(f"{question} {answer}", NEIGHBOURS)]
        names = dict.fromkeys([*near, *both, *self._cited(read)])
        texts = [_text(self._by_id[name]) for name in names]
        best = max(near.values(), default=1.0)
        suspects = [
            Suspect(
                id=name,
                text=text,
                origins=origins(self._by_id[name]),
                cited=is_cited(name, text, read),
                similarity=near.get(name, 0.0) / best,
                stated=stated,
                complained=complained,
                right=agrees,
            )
            for name, text, stated, complained, agrees in zip(
                names,
                texts,
                _strengths(question, answers, texts),
                _strengths(question, answers[:1], texts),
                _strengths(question, right, texts),
                strict=True,
            )
        ]
        return sorted(suspects, key=lambda suspect: (-suspect.score, suspect.id))

    def accomplices(
        self, question: str, answers: Sequence[str], guilty: Sequence[Suspect], right: Sequence[str] = ()
    ) -> list[Accomplice]:
        """Near-copies of the guilty that state the same answer, and what few others came from their source.

        Where many came from there, those that state the same answer.

        Args:
            question: What was asked.
            answers: The wrong ones, that of the complaint first.
            guilty: Those that are proven; they may be out of the store.
            right: Right answers, where they are known.
        """
        named = {suspect.id for suspect in guilty}
        accomplices = dict[str, Accomplice]()
        for suspect in guilty:
            for passage in self._search.retrieve(suspect.text[:COPY_CHARACTERS], NEIGHBOURS):
                name = passage.id or ""
                if name in named or name in accomplices or not _alike(suspect.text, passage.text):
                    continue
                if _strengths(question, answers, [passage.text])[0] >= STATED:
                    reason = f"a near-copy of {suspect.id} that states the same answer"
                    accomplices[name] = Accomplice(name, passage.text, reason)
        for origin in dict.fromkeys(origin for suspect in guilty for origin in suspect.origins):
            company = [d for d in self._by_id.values() if d.id not in named and origin in origins(d)]
            if len(company) > max(MIN_COMPANY, MAX_BATCH_SHARE * len(self._by_id)):
                # Much of the collection comes from there, which says nothing by itself.
                stated = _strengths(question, answers, [_text(document) for document in company])
                company = [document for document, share in zip(company, stated, strict=True) if share >= STATED]
                reason = f"{origin}, as a guilty document has, and states the same answer"
            else:
                reason = f"{origin}, as a guilty document has"
            for document in company:
                accomplices.setdefault(document.id, Accomplice(document.id, _text(document), reason))
        texts = [one.text for one in accomplices.values()]
        wrong, agree = _strengths(question, answers[:1], texts), _strengths(question, right, texts)
        innocent = {name for name, no, yes in zip(accomplices, wrong, agree, strict=True) if yes >= STATED > no}
        return [one._replace(right=name in innocent) for name, one in accomplices.items()]

    def _cited(self, read: Answered) -> Iterator[str]:
        """Documents that are cited, by their ids, or by the nearest documents of a passage's words."""
        yield from (name for name in read.ids or () if name in self._by_id)
        for text in read.passages or ():
            for passage in self._search.retrieve(text[:COPY_CHARACTERS], 3):
                if is_cited("", passage.text, Answered("", (text,))):
                    yield passage.id or ""


def _strengths(question: str, answers: Sequence[str], texts: Sequence[str]) -> list[float]:
    """How plainly each text states one of the answers, in [0, 1]; 0 without an answer."""
    if not answers:
        return [0.0] * len(texts)
    return [max(map(float, shares)) for shares in zip(*(statements(question, answer, texts) for answer in answers))]


def _merge(replies: Sequence[Answered]) -> Answered:
    """What was read in any of the replies."""
    passages = tuple(dict.fromkeys(text for reply in replies for text in reply.passages or ()))
    return Answered("", passages, tuple(dict.fromkeys(name for reply in replies for name in reply.ids or ())))


def is_cited(name: str, text: str, reply: Answered) -> bool:
    """Whether the target says that it read a document, by its id or a passage of it."""
    return read_count(reply, (text,), ((name,),)) == 1


def _text(document: Document) -> str:
    title, text = document.passage.title, document.passage.text
    return text if not title or text.startswith(title) else f"{title}\n{text}"


def _alike(left: str, right: str) -> bool:
    return fuzz.ratio(left[:COPY_CHARACTERS].casefold(), right[:COPY_CHARACTERS].casefold()) >= COPY
