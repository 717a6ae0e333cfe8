"""What passes between the rooms: passages in, screenings and answers out.

All of these are frozen and validated where they are made, so that everything behind the door can rely on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.errors import InputError, shown

__all__ = [
    "MAX_PASSAGES",
    "Answer",
    "Call",
    "Evidence",
    "Passage",
    "Query",
    "Reply",
    "Screening",
    "Vector",
    "Verdict",
    "as_passages",
    "as_query",
]

Vector = NDArray[np.float32]
"""One embedding, shape (d,)."""

MAX_PASSAGES = 5000
"""Defenses compare every pair of passages; above this the pairs no longer fit in memory."""

TEXT_FIELDS = ("text", "content", "page_content")
"""Where dicts and objects keep a passage's text, first match wins."""

T = TypeVar("T")


def _vector(value: ArrayLike, owner: str) -> Vector:
    """Check one embedding and freeze it as float32."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{owner}.embedding must be one vector of numbers, shape (d,), got {shown(value)}; "
            "pass the vector that your encoder or vector store made"
        )
    with np.errstate(over="ignore"):
        vector = array.astype(np.float32)
    if not np.isfinite(vector).all():
        bad = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(f"{owner}.embedding[{bad}] is {array[bad]}, which is no finite float32; encode the text again")
    vector.setflags(write=False)
    return vector


def _text(value: object, owner: str) -> str:
    if not isinstance(value, str):
        raise InputError(
            f"{owner}.text must be a string, got {shown(value)} ({type(value).__name__}); give its text or leave it out"
        )
    return value


@dataclass(frozen=True, slots=True)
class Query:
    """The user's question, with its embedding where the retriever already made one.

    A plain string is accepted wherever a `Query` is.
    """

    text: str
    embedding: Vector | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InputError(
                f"query must be a string, got {shown(self.text)} ({type(self.text).__name__}); pass the question's text"
            )
        if self.embedding is not None:
            object.__setattr__(self, "embedding", _vector(self.embedding, "query"))


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved text.

    Attributes:
        text: What the model would read.
        id: The caller's identifier.
        title: Shown in explanations; defenses compare `text` only.
        source: Where it came from (a URL, a collection).
        score: The retriever's score, any scale.
        embedding: The vector that the store already has, shape (d,), any float type on the way in, float32 here.
        original: The caller's own object, untouched; `Passage.of` fills it.
    """

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    score: float | None = None
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    original: object = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = "passage" if self.id is None else f"passage {shown(self.id)}"
        _text(self.text, owner)
        if isinstance(self.id, int) and not isinstance(self.id, bool):
            object.__setattr__(self, "id", str(self.id))
        for name in ("id", "title", "source"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(
                    f"{owner}.{name} must be a string or None, got {shown(value)}; convert it or leave it out"
                )
        if self.score is not None:
            object.__setattr__(self, "score", _score(self.score, owner))
        if self.embedding is not None:
            object.__setattr__(self, "embedding", _vector(self.embedding, owner))

    @classmethod
    def of(cls, value: object, position: int | None = None) -> Self:
        """Make a passage of a string, a mapping, or an object that carries its text.

        Mappings and objects may name the text `text`, `content` or `page_content` and may carry `id`, `title`,
        `source`, `score` and `embedding`; a LlamaIndex `NodeWithScore` is read through its `node`. Whatever else they
        hold stays in `original`.

        Raises:
            InputError: No text, or a field of the wrong type; the message names `passages[position]`.
        """
        owner = "passage" if position is None else f"passages[{position}]"
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value, original=value)
        if isinstance(value, Mapping):
            found = dict(value)
        elif value is None or isinstance(value, (int, float, bytes, Sequence)):
            found = {}
        else:
            found = _attributes(value)
        text = next((found[name] for name in TEXT_FIELDS if name in found), None)
        if text is None:
            raise InputError(
                f"{owner} has no text, got {shown(value)}; pass a string, a dict with 'text', or an object with .text"
            )
        fields = {name: found[name] for name in ("id", "title", "source", "score", "embedding") if name in found}
        try:
            return cls(text, original=value, **fields)
        except InputError as error:
            problem = str(error).partition(".")[2]
            raise InputError(f"{owner}.{problem}") from None


def _score(value: object, owner: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise InputError(
            f"{owner}.score must be a number or None, got {shown(value)}; pass the retriever's score or leave it out"
        )
    return float(value)


def _attributes(value: object) -> dict[str, Any]:
    """The passage fields of a framework's document object."""
    node = getattr(value, "node", value)  # LlamaIndex wraps the text in a node beside its score
    found = {name: getattr(node, name) for name in TEXT_FIELDS if isinstance(getattr(node, name, None), str)}
    for name, kind in (("id", (str, int)), ("title", str), ("source", str)):
        if isinstance(getattr(node, name, None), kind):
            found[name] = getattr(node, name)
    score = getattr(value, "score", None)
    if isinstance(score, (int, float)):
        found["score"] = score
    if getattr(node, "embedding", None) is not None:
        found["embedding"] = node.embedding
    return found


def as_query(query: object) -> Query:
    """A `Query` of a string or a `Query`; anything else is refused."""
    return query if isinstance(query, Query) else Query(query)  # type: ignore[arg-type]


def as_passages(passages: object) -> tuple[Passage, ...]:
    """The passages of one query, validated together: strings, dicts, objects or `Passage`, in retrieval order.

    Raises:
        InputError: Not a sequence, too many, an unusable member, or embeddings of different dimensions.
    """
    if isinstance(passages, (str, bytes, Mapping)) or not isinstance(passages, (Sequence, Iterator, np.ndarray)):
        raise InputError(
            f"passages must be a list of passages, got {shown(passages)} ({type(passages).__name__}); "
            "wrap a single passage in a list"
        )
    made = tuple(Passage.of(value, position) for position, value in enumerate(passages))
    if len(made) > MAX_PASSAGES:
        raise InputError(
            f"passages holds {len(made):,} passages, more than {MAX_PASSAGES:,}; defenses compare every pair, so "
            "screen the best few hundred"
        )
    sizes = {p.embedding.size: i for i, p in reversed(list(enumerate(made))) if p.embedding is not None}
    if len(sizes) > 1:
        (first, i), (second, j) = sorted(sizes.items(), key=lambda item: item[1])[:2]
        raise InputError(
            f"passages[{i}].embedding has {first} dimensions and passages[{j}].embedding has {second}; "
            "encode all passages with one encoder"
        )
    return made


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a defense says of one passage.

    Attributes:
        index: Its position in the input.
        kept: Whether the model may read it.
        score: The defense's own trust score; higher is more trusted; scales differ between defenses.
        rank: 0 for the best of the kept, None when dropped.
        reason: One sentence, naming the neighbours that incriminate or support it.
    """

    index: int
    kept: bool
    score: float
    rank: int | None
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return {"index": self.index, "kept": self.kept, "score": self.score, "rank": self.rank, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Evidence(Mapping[str, NDArray[Any]]):
    """The named arrays that a decision rests on, read-only, plus notes on anything unusual.

    Attributes:
        arrays: For example `similarity` (k, k), `clusters` (k,), `centrality` (k,).
        notes: Sentences such as "fewer than 3 passages: nothing to compare".
        graph: Which (k, k) array the picture draws as edges.
    """

    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    graph: str | None = None

    def __post_init__(self) -> None:
        frozen = {}
        for name, value in self.arrays.items():
            array = np.asarray(value).view()
            array.setflags(write=False)
            frozen[name] = array
        object.__setattr__(self, "arrays", MappingProxyType(frozen))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


@dataclass(frozen=True, slots=True)
class Screening:
    """What `screen` returns: a verdict on every passage, the kept ones best first, and the evidence.

    Kept plus dropped is exactly the input, by position; making one that is not raises `ValueError`.

    Attributes:
        defense: The defense's name.
        query: The question.
        passages: The input, in its order.
        verdicts: One per passage, in input order.
        evidence: The arrays behind the verdicts.
    """

    defense: str
    query: str
    passages: tuple[Passage, ...]
    verdicts: tuple[Verdict, ...]
    evidence: Evidence = field(default_factory=Evidence, compare=False)

    def __post_init__(self) -> None:
        if [v.index for v in self.verdicts] != list(range(len(self.passages))):
            raise ValueError(f"{len(self.passages)} passages need one verdict each, in order; got {len(self.verdicts)}")
        ranks = sorted(v.rank for v in self.verdicts if v.kept and v.rank is not None)
        if ranks != list(range(sum(v.kept for v in self.verdicts))):
            raise ValueError(f"kept verdicts must have the ranks 0, 1, 2, ..., got {ranks}")

    @classmethod
    def decided(
        cls,
        defense: str,
        query: Query,
        passages: Sequence[Passage],
        *,
        kept: Sequence[int],
        scores: ArrayLike,
        reasons: Sequence[str],
        evidence: Evidence | None = None,
    ) -> Self:
        """Assemble a screening from a decision: `kept` best first, `scores` and `reasons` by position."""
        rank = {int(index): place for place, index in enumerate(kept)}
        values = np.asarray(scores, dtype=float).tolist()
        verdicts = tuple(
            Verdict(i, i in rank, value, rank.get(i), reason)
            for i, (value, reason) in enumerate(zip(values, reasons, strict=True))
        )
        return cls(defense, query.text, tuple(passages), verdicts, evidence or Evidence())

    @property
    def kept_indices(self) -> tuple[int, ...]:
        """Input positions of the kept passages, best first."""
        kept = [v for v in self.verdicts if v.rank is not None]
        return tuple(v.index for v in sorted(kept, key=lambda v: v.rank or 0))

    @property
    def dropped_indices(self) -> tuple[int, ...]:
        """Input positions of the dropped passages, in input order."""
        return tuple(v.index for v in self.verdicts if not v.kept)

    @property
    def kept(self) -> tuple[Passage, ...]:
        """The kept passages, best first."""
        return tuple(self.passages[i] for i in self.kept_indices)

    @property
    def dropped(self) -> tuple[Passage, ...]:
        """The dropped passages, in input order."""
        return tuple(self.passages[i] for i in self.dropped_indices)

    def select(self, items: Sequence[T]) -> list[T]:
        """The caller's own objects for the kept positions, best first: `docs = screening.select(docs)`."""
        if len(items) != len(self.passages):
            raise InputError(
                f"items holds {len(items)} objects but {len(self.passages)} passages were screened; pass the same list"
            )
        return [items[i] for i in self.kept_indices]

    def explain(self) -> str:
        """The decision in plain text, for a terminal."""
        from unpoison.rendering import explain

        return explain(self)

    def to_html(self) -> str:
        """One self-contained page with the picture of the similarity graph and every reason, escaped."""
        from unpoison.rendering import page

        return page([self])

    def summary(self) -> dict[str, Any]:
        """The part that output rows carry: defense, kept positions best first, verdicts, and notes if there are any."""
        found: dict[str, Any] = {
            "defense": self.defense,
            "kept": list(self.kept_indices),
            "verdicts": [v.to_dict() for v in self.verdicts],
        }
        if self.evidence.notes:
            found["notes"] = list(self.evidence.notes)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON-ready values; `from_dict` reads it back (embeddings and the caller's objects stay out)."""
        return {
            **self.summary(),
            "query": self.query,
            "passages": [
                {
                    name: value
                    for name in ("text", "id", "title", "source", "score")
                    if (value := getattr(p, name)) is not None
                }
                for p in self.passages
            ],
            "evidence": {
                "arrays": {
                    name: {"dtype": str(array.dtype), "values": array.tolist()} for name, array in self.evidence.items()
                },
                "graph": self.evidence.graph,
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            evidence = data["evidence"]
            return cls(
                defense=data["defense"],
                query=data["query"],
                passages=as_passages(data["passages"]),
                verdicts=tuple(Verdict(**verdict) for verdict in data["verdicts"]),
                evidence=Evidence(
                    {name: np.array(a["values"], dtype=a["dtype"]) for name, a in evidence["arrays"].items()},
                    tuple(data.get("notes", ())),
                    evidence["graph"],
                ),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"not a saved screening: {type(error).__name__}: {error}; pass what Screening.to_dict() wrote"
            ) from error


@dataclass(frozen=True, slots=True)
class Reply:
    """What a generator returns for one prompt.

    Attributes:
        text: The reply, whole.
        prompt_tokens, completion_tokens: None where the model does not say.
        finish: Why it ended: "stop", "length", "refusal", or the provider's word.
        cached: Whether it came from the response cache.
    """

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish: str = "stop"
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """The account of one model call.

    Attributes:
        kind: "encode", "generate", "judge" or "compare".
        model: The model's name.
        purpose: What the defense wanted, such as "atomic answer".
        seconds: Wall time, retries included.
        items: How many texts, prompts or pairs it carried.
        attempts: 1 unless it was retried.
        prompt_tokens, completion_tokens: None where unknown.
        cached: Whether the reply came from the cache.
    """

    kind: str
    model: str
    purpose: str
    seconds: float
    items: int = 1
    attempts: int = 1
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Answer:
    """What `answer` returns.

    Attributes:
        text: The answer.
        screening: Which passages stood behind it.
        calls: Every model call, in the order of their start.
        abstained: True when there was nothing trustworthy to answer from.
        screened: False only where the caller asked to answer unscreened after a failure.
        details: Named intermediate texts (atomic answers, internal knowledge, consolidated information).
    """

    text: str
    screening: Screening
    calls: tuple[Call, ...] = ()
    abstained: bool = False
    screened: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "abstained": self.abstained,
            "screened": self.screened,
            "calls": [call.to_dict() for call in self.calls],
        }
