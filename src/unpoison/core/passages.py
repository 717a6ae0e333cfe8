"""Input normalisation: validates the caller's queries and passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.errors import InputError, clip
from unpoison.sources.fields import EMPTY, Metadata, metadata_of, source_in

if TYPE_CHECKING:  # how a text is read is imported when the first one is
    from unpoison.text.alignment import Region, Regions
    from unpoison.text.canonical import Canonical, Hidden

__all__ = ["MAX_PASSAGES", "Passage", "Query", "Vector", "as_passages", "as_query"]

Vector = NDArray[np.float32]
"""One embedding, shape (d,)."""

MAX_PASSAGES = 5000
"""Defenses compare every pair of passages; above this the pairs no longer fit in memory."""

TEXT_FIELDS = ("text", "content", "page_content")
"""Where dicts and objects keep a passage's text, first match wins."""

FIELDS = ("id", "title", "source", "score")
"""What a passage may bring besides its text and its vector; the rows of screenings and requests have it too."""

NESTED = ("data", "resource")
"""Where Cohere's documents and embedded resources of MCP keep all that, where it is not in the mapping itself."""


def _vector(value: ArrayLike, owner: str) -> Vector:
    """Check one embedding and freeze it as float32."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{owner}.embedding must be one vector of numbers, shape (d,), got {clip(value)}; "
            "pass the vector that your encoder or vector store made"
        )
    with np.errstate(over="ignore"):
        vector = array.astype(np.float32)
    if not np.isfinite(vector).all():
        bad = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(f"{owner}.embedding[{bad}] is {array[bad]}, which is no finite float32; encode the text again")
    vector.setflags(write=False)
    return vector


def _text(value: object, owner: str) -> None:
    if not isinstance(value, str):
        raise InputError(
            f"{owner}.text must be a string, got {clip(value)} ({type(value).__name__}); give its text or leave it out"
        )


@dataclass(frozen=True, slots=True)
class Query:
    """The user's question, with its embedding where the retriever already made one.

    A plain string is accepted wherever a `Query` is. `verbatim` as for a `Passage`.
    """

    text: str
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    verbatim: bool = field(default=False, repr=False, compare=False, kw_only=True)
    _canonical: Canonical | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text: object = self.text
        if not isinstance(text, str):
            raise InputError(
                f"query must be a string, got {clip(text)} ({type(text).__name__}); pass the question's text"
            )
        if self.embedding is not None:
            object.__setattr__(self, "embedding", _vector(self.embedding, "query"))

    @property
    def reading(self) -> str:
        """The canonical reading of the question; its markup is kept, since the question may be about it."""
        return self.text if self.verbatim else self._canonical_text().text

    @property
    def hidden(self) -> Hidden:
        """What was hidden in it."""
        return self._canonical_text().hidden

    def _canonical_text(self) -> Canonical:
        if self._canonical is None:
            from unpoison.text.canonical import canonical

            object.__setattr__(self, "_canonical", canonical(self.text, markup=False))
        assert self._canonical is not None  # noqa: S101  it was set
        return self._canonical


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved text.

    Attributes:
        text: As the caller has it.
        id: The caller's identifier.
        title: Shown to the model above the text, and read with it by every defense.
        source: Where it came from (a URL, a collection).
        score: The retriever's score, any scale.
        embedding: The vector that the store already has, shape (d,), any float type on the way in, float32 here.
        original: The caller's own object, untouched; `Passage.of` fills it.
        verbatim: Whether `reading` is the raw text instead of the canonical one, as the papers' released codes have it.
        cuts: Stretches of `raw` that are not read, rising; see `without`.
        metadata: Texts and numbers that came with it (author, date, url, ...), read only: at most 32, texts of at most
            1,000 characters.
    """

    text: str
    id: str | None = None
    title: str | None = None
    source: str | None = None
    score: float | None = None
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    original: object = field(default=None, repr=False, compare=False)
    verbatim: bool = field(default=False, repr=False, compare=False, kw_only=True)
    cuts: Regions = field(default=(), repr=False, compare=False, kw_only=True)
    metadata: Mapping[str, str | int | float] = field(default=EMPTY, repr=False, compare=False, kw_only=True)
    _canonical: Canonical | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = "passage" if self.id is None else f"passage {clip(self.id)}"
        _text(self.text, owner)
        name: Any = self.id
        if isinstance(name, int) and not isinstance(name, bool):
            object.__setattr__(self, "id", str(name))
        for name in ("id", "title", "source"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(
                    f"{owner}.{name} must be a string or None, got {clip(value)}; convert it or leave it out"
                )
        if type(self.metadata) is not Metadata:
            object.__setattr__(self, "metadata", _metadata(self.metadata, owner))
        if self.score is not None:
            object.__setattr__(self, "score", _score(self.score, owner))
        if self.embedding is not None:
            object.__setattr__(self, "embedding", _vector(self.embedding, owner))

    @property
    def origin(self) -> str:
        """The party behind it: the registrable domain, user, folder or collection of its source; "" for unknown.

        Derived from where the passage was found, never read from its text or from a field of that name. `Sources` may
        have another rule.
        """
        from unpoison.sources.origins import origin_of, source_of  # most passages are never asked

        return origin_of(source_of(self.source, self.metadata))

    @property
    def raw(self) -> str:
        """The title, where there is one that the text does not begin with, and the text, as the caller has them."""
        if not self.title or self.text.startswith(self.title):
            return self.text
        return f"{self.title}\n{self.text}"

    @property
    def reading(self) -> str:
        """The canonical reading of title and text, without the cut parts.

        Made once, when it is first asked for. Of more than 1,000,000 characters the rest is not read, and not shown.
        """
        if not self.verbatim:
            return self._canonical_text().text
        from unpoison.text.canonical import MAX_TEXT_CHARS

        return self.raw[:MAX_TEXT_CHARS]

    @property
    def body(self) -> str:
        """The reading without its title; all of it where there is none, or where the two cannot be told apart."""
        from unpoison.text.analysis import analysis
        from unpoison.text.canonical import canonical

        title = analysis(self.title).part(canonical).text if self.title and self.raw is not self.text else ""
        above, below = self.reading[: len(title) + 1], self.reading[len(title) + 1 :]
        return below if below and above == f"{title}\n" else self.reading

    @property
    def shown(self) -> str:
        """What a model is shown: the reading, with "[removed]" where something is cut."""
        if not self.cuts:
            return self.reading
        from unpoison.text.canonical import MARK, redact_text

        return redact_text(self.raw, self.cuts, MARK).text

    def without(self, cuts: Sequence[Region]) -> Self:
        """The same passage, its reading without these stretches of `raw` as well, and without its embedding.

        An embedding of the whole text is not one of the rest.
        """
        from unpoison.text.alignment import merge_regions

        return replace(self, cuts=merge_regions([*self.cuts, *cuts]), embedding=None)

    def regions(self, windows: Sequence[tuple[Any, ...]]) -> list[Regions]:
        """For each window, a start and an end in the reading, the stretches of `raw` that it was made of, rising."""
        if not windows:
            return []
        if self.verbatim:
            return [((start, end),) if start < end else () for start, end, *_ in windows]
        from unpoison.text.canonical import redact_with_trace

        trace = redact_with_trace(self.raw, self.cuts)[1]
        return [trace.regions(start, end) for start, end, *_ in windows]

    def messages(self) -> Regions:
        """Where in the reading messages stand that no reader of the raw text sees."""
        if self.verbatim or not self.hidden.messages:
            return ()
        from unpoison.text.canonical import redact_with_trace

        return redact_with_trace(self.raw, self.cuts)[1].messages()

    @property
    def hidden(self) -> Hidden:
        """What was hidden in title and text; all zero for an honest passage."""
        return self._canonical_text().hidden

    def _canonical_text(self) -> Canonical:
        if self._canonical is None:
            from unpoison.text.analysis import analysis
            from unpoison.text.canonical import canonical, redact_text

            read = redact_text(self.raw, self.cuts) if self.cuts else analysis(self.raw).part(canonical)
            object.__setattr__(self, "_canonical", read)
        assert self._canonical is not None  # noqa: S101  it was set
        return self._canonical

    def to_dict(self) -> dict[str, Any]:
        """The text and what the passage says of itself, JSON-ready; without its vector and the caller's object."""
        fields = {name: value for name in FIELDS if (value := getattr(self, name)) is not None}
        return {"text": self.text, **fields, **({"metadata": dict(self.metadata)} if self.metadata else {})}

    @classmethod
    def of(cls, value: object, position: int | None = None) -> Self:
        """Make a passage of a string, a mapping, or an object that carries its text.

        Mappings and objects may name the text `text`, `content` or `page_content` and may carry `id`, `title`,
        `source`, `score` and `embedding`; a LlamaIndex `NodeWithScore` is read through its `node`. Without a `source`,
        it is read from `url`, `uri`, `link` or `file_path`, or from these names in `metadata` or `meta`. What else they
        hold in texts and numbers is in `metadata`, and all of it in `original`.

        Raises:
            InputError: No text, or a field of the wrong type; the message names `passages[position]`.
        """
        owner = "passage" if position is None else f"passages[{position}]"
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value, original=value)
        if isinstance(value, Mapping):
            attributes = dict(value)
        elif value is None or isinstance(value, (int, float, bytes, Sequence)):
            attributes = {}
        else:
            attributes = _attributes(value)
        inner = next((held for name in NESTED if isinstance(held := attributes.get(name), Mapping)), None)
        if inner is not None and not any(name in attributes for name in TEXT_FIELDS):
            attributes = {**inner, **{name: held for name, held in attributes.items() if name not in NESTED}}
        named = [attributes[name] for name in TEXT_FIELDS if name in attributes]
        text: Any = next((value for value in named if value is not None), None)
        if not named:
            raise InputError(
                f"{owner} has no text, got {clip(value)}; pass a string, a dict with 'text', or an object with .text"
            )
        fields = {name: attributes[name] for name in (*FIELDS, "embedding") if name in attributes}
        more = attributes.get("metadata") or attributes.get("meta")
        fields["source"] = source_in(attributes, more)
        fields["metadata"] = metadata_of(attributes, more)
        try:
            return cls(text, original=value, **fields)
        except InputError as error:
            problem = str(error).partition(".")[2]
            raise InputError(f"{owner}.{problem}") from None


def _metadata(value: object, owner: str) -> Metadata:
    if not isinstance(value, Mapping):
        raise InputError(f"{owner}.metadata must be a mapping of texts and numbers, got {clip(value)}")
    return metadata_of({}, value)


def _score(value: object, owner: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.floating, np.integer)):
        raise InputError(
            f"{owner}.score must be a number or None, got {clip(value)}; pass the retriever's score or leave it out"
        )
    try:
        score = float(value)
    except OverflowError:
        score = inf
    if not isfinite(score):  # it would order nothing, and JSON cannot hold it
        raise InputError(f"{owner}.score is no finite number; pass the retriever's score or leave it out")
    return score


def _attributes(value: Any) -> dict[str, Any]:
    """The passage fields of a framework's document object."""
    node: Any = getattr(value, "node", value)  # LlamaIndex wraps the text in a node beside its score
    attributes = {name: getattr(node, name) for name in TEXT_FIELDS if isinstance(getattr(node, name, None), str)}
    for name, kind in (("id", (str, int)), ("title", str), ("source", str)):
        if isinstance(getattr(node, name, None), kind):
            attributes[name] = getattr(node, name)
    attributes["metadata"] = next(
        (held for name in ("metadata", "meta") if isinstance(held := getattr(node, name, None), Mapping)), None
    )
    score = getattr(value, "score", None)
    if isinstance(score, (int, float)):
        attributes["score"] = score
    if getattr(node, "embedding", None) is not None:
        attributes["embedding"] = node.embedding
    return attributes


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
            f"passages must be a list of passages, got {clip(passages)} ({type(passages).__name__}); "
            "wrap a single passage in a list"
        )
    values = list(islice(passages, MAX_PASSAGES + 1))
    if len(values) > MAX_PASSAGES:
        raise InputError(
            f"passages holds more than {MAX_PASSAGES:,} passages; defenses compare every pair, so screen the best few "
            "hundred"
        )
    checked = tuple(Passage.of(value, position) for position, value in enumerate(values))
    sizes = {p.embedding.size: i for i, p in reversed(list(enumerate(checked))) if p.embedding is not None}
    if len(sizes) > 1:
        (first, i), (second, j) = sorted(sizes.items(), key=lambda item: item[1])[:2]
        raise InputError(
            f"passages[{i}].embedding has {first} dimensions and passages[{j}].embedding has {second}; "
            "encode all passages with one encoder"
        )
    return checked
