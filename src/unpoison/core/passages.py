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
from unpoison.sources.origins import EMPTY, Metadata, metadata_of, source_in

if TYPE_CHECKING:  # canonicalisation is imported when the first text is read
    from unpoison.text.alignment import Region, Regions
    from unpoison.text.canonical import Canonical, Hidden

__all__ = ["MAX_PASSAGES", "Passage", "Query", "Vector", "as_passages", "as_query"]

Vector = NDArray[np.float32]
"""One embedding, shape (d,)."""

MAX_PASSAGES = 5000
"""Maximum passages of a query: defenses compare every pair, and more pairs would not fit in memory."""

TEXT_FIELDS = ("text", "content", "page_content")
"""Fields of dicts and objects with the passage's text; the first match wins."""

FIELDS = ("id", "title", "source", "score")
"""Optional fields of a passage besides its text and embedding; rows of screenings and requests have them too."""

AS_LIST = {
    "Series": "write passages.tolist()",
    "DataFrame": 'write passages.to_dict("records")',
    "set": "write list(passages), in the order of retrieval",
    "dict_values": "write list(passages)",
}
"""Types of several passages that are no list, and what to write."""

NESTED = ("data", "resource")
"""Fields with nested passages: Cohere's documents, and embedded resources of MCP."""


def _vector(value: ArrayLike, owner: str) -> Vector:
    """Validate one embedding and freeze it as float32."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu" or array.ndim != 1 or array.size == 0:
        raise InputError(
            f"{owner}.embedding must be one vector of numbers, shape (d,), got {clip(value)}; "
            "pass the vector of your encoder or vector store"
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
        raise InputError(f"{owner}.text must be a string, got {clip(value)} ({type(value).__name__}); give its text")


@dataclass(frozen=True, slots=True)
class Query:
    """The user's question, with its embedding if the retriever has one.

    A plain string is accepted wherever a `Query` is. `verbatim` as for a `Passage`.
    """

    text: str
    embedding: Vector | None = field(default=None, repr=False, compare=False)
    verbatim: bool = field(default=False, repr=False, compare=False, kw_only=True)
    _canonical: Canonical | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text: object = self.text
        if not isinstance(text, str):
            raise InputError(f"query must be a string, got {clip(text)} ({type(text).__name__}); pass its text")
        if self.embedding is not None:
            object.__setattr__(self, "embedding", _vector(self.embedding, "query"))

    @property
    def reading(self) -> str:
        """The canonical reading of the question; markup is kept, because the question may be about it."""
        return self.text if self.verbatim else self._canonical_text().text

    @property
    def hidden(self) -> Hidden:
        """The hidden content."""
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
        text: The caller's text.
        id: The caller's identifier.
        title: Shown to the model above the text, and screened with it.
        source: Its origin (a URL, a collection).
        score: The retriever's score, any scale.
        embedding: The vector from the store, shape (d,); any float type is accepted, stored as float32.
        original: The caller's own object, unchanged; set by `Passage.of`.
        verbatim: Whether `reading` is the raw text instead of the canonical one, as in the papers' released code.
        cuts: Regions of `raw` that are not read, ascending; see `without`.
        metadata: Texts and numbers (author, date, url, ...), read-only: at most 32, texts of at most 1,000 characters.
        url: Its address: the source if no other is given, and a field of `metadata`, as in a dict.
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
    url: str | None = field(default=None, repr=False, compare=False, kw_only=True)
    _canonical: Canonical | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = "passage" if self.id is None else f"passage {clip(self.id)}"
        _text(self.text, owner)
        name: Any = self.id
        if isinstance(name, int) and not isinstance(name, bool):
            object.__setattr__(self, "id", str(name))
        for name in ("id", "title", "source", "url"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise InputError(f"{owner}.{name} must be a string or None, got {clip(value)}; convert or omit it")
        if self.url is not None:
            object.__setattr__(self, "source", self.url if self.source is None else self.source)
            object.__setattr__(self, "metadata", {**self.metadata, "url": self.url})
        if type(self.metadata) is not Metadata:
            object.__setattr__(self, "metadata", _metadata(self.metadata, owner))
        if self.score is not None:
            object.__setattr__(self, "score", _score(self.score, owner))
        if self.embedding is not None:
            object.__setattr__(self, "embedding", _vector(self.embedding, owner))

    @property
    def origin(self) -> str:
        """The party behind it: the registrable domain, user, folder or collection of its source; "" if unknown.

        Derived from the address of the passage, never from its text or a field of that name. `Sources` may have another
        rule.
        """
        from unpoison.sources.origins import origin_of, source_of  # imported lazily: rarely needed

        return origin_of(source_of(self.source, self.metadata))

    @property
    def raw(self) -> str:
        """The title, unless the text begins with it, and the text, both unchanged."""
        return self.text if not self.title or self.text.startswith(self.title) else f"{self.title}\n{self.text}"

    @property
    def reading(self) -> str:
        """The canonical reading of title and text, without the cut parts; computed once, on first use.

        Characters after the first 1,000,000 are neither read nor shown.
        """
        if not self.verbatim:
            return self._canonical_text().text
        from unpoison.text.canonical import MAX_TEXT_CHARS

        return self.raw[:MAX_TEXT_CHARS]

    @property
    def body(self) -> str:
        """The reading without its title; the whole reading if there is no title, or it cannot be separated."""
        from unpoison.text.analysis import analysis
        from unpoison.text.canonical import canonical

        title = analysis(self.title).part(canonical).text if self.title and self.raw is not self.text else ""
        above, below = self.reading[: len(title) + 1], self.reading[len(title) + 1 :]
        return below if below and above == f"{title}\n" else self.reading

    @property
    def shown(self) -> str:
        """The text for a model: the reading, with "[removed]" in place of cuts, indented, without `asides`."""
        from unpoison.text.canonical import INDENTED, shown_text

        if not self.cuts and (self.verbatim or not (self.hidden.asides or INDENTED.search(self.raw))):
            return self.reading
        return shown_text(self.raw, self.cuts)

    def without(self, cuts: Sequence[Region]) -> Self:
        """The same passage without these regions of `raw`, and without its embedding, which covers the whole text."""
        from unpoison.text.alignment import merge_regions

        return replace(self, cuts=merge_regions([*self.cuts, *cuts]), embedding=None)

    def regions(self, windows: Sequence[tuple[Any, ...]]) -> list[Regions]:
        """For each window (start, end) of the reading, the regions of `raw` that it came from, ascending."""
        if not windows:
            return []
        if self.verbatim or self.reading == self.raw:
            return [((start, end),) if start < end else () for start, end, *_ in windows]
        from unpoison.text.canonical import redact_with_trace

        trace = redact_with_trace(self.raw, self.cuts)[1]
        return [trace.regions(start, end) for start, end, *_ in windows]

    def without_asides(self) -> Self:
        """The same passage without the messages in its comments and tags."""
        if self.verbatim or not self.hidden.asides:
            return self
        from unpoison.text.alignment import ASIDE
        from unpoison.text.canonical import redact_with_trace

        trace = redact_with_trace(self.raw, self.cuts)[1]
        return self.without([region for place in trace.messages(ASIDE) for region in trace.regions(*place)])

    def messages(self) -> Regions:
        """The regions of the reading with messages that no reader of the raw text sees."""
        if self.verbatim or not self.hidden.messages:
            return ()
        from unpoison.text.alignment import UNSEEN
        from unpoison.text.canonical import redact_with_trace

        return redact_with_trace(self.raw, self.cuts)[1].messages(UNSEEN)

    @property
    def hidden(self) -> Hidden:
        """The hidden content of title and text; all zero for an honest passage."""
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
        """The text and other fields, JSON-ready; without the embedding and the caller's object."""
        fields = {name: value for name in FIELDS if (value := getattr(self, name)) is not None}
        return {"text": self.text, **fields, **({"metadata": dict(self.metadata)} if self.metadata else {})}

    @classmethod
    def of(cls, value: object, position: int | None = None) -> Self:
        """Convert a string, a mapping, or an object with a text to a passage.

        Mappings and objects may name the text `text`, `content` or `page_content` and may have `id`, `title`, `source`,
        `score` and `embedding`; a LlamaIndex `NodeWithScore` is read through its `node`. Without a `source`, it is
        taken from `url`, `uri`, `link` or `file_path`, or from these names in `metadata` or `meta`. Other texts and
        numbers go to `metadata`, and the whole object to `original`.

        Raises:
            InputError: No text, or a field of the wrong type; the message names `passages[position]`.
        """
        owner = "passage" if position is None else f"passages[{position}]"
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(value, original=value)
        attributes = dict(value) if isinstance(value, Mapping) else _attributes(value)
        inner = next((held for name in NESTED if isinstance(held := attributes.get(name), Mapping)), None)
        if inner is not None and not any(name in attributes for name in TEXT_FIELDS):
            attributes = {**inner, **{name: held for name, held in attributes.items() if name not in NESTED}}
        named = [attributes[name] for name in TEXT_FIELDS if name in attributes]
        text: Any = next((value for value in named if value is not None), None)
        if not named:
            raise InputError(f"{owner} has no text, got {clip(value)}; pass a string, dict or object, without a score")
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
        raise InputError(f"{owner}.score must be a number or None, got {clip(value)}; pass the retriever's")
    try:
        score = float(value)
    except OverflowError:
        score = inf
    if not isfinite(score):  # it cannot be ordered, and JSON has no such value
        raise InputError(f"{owner}.score is not a finite number; pass the retriever's score or leave it out")
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
    """Convert a string to a `Query`; other types are rejected."""
    return query if isinstance(query, Query) else Query(query)  # type: ignore[arg-type]


def as_passages(passages: object) -> tuple[Passage, ...]:
    """Validate the passages of one query: strings, dicts, objects or `Passage`, in retrieval order.

    Raises:
        InputError: Not a sequence, too many, an unusable passage, or embeddings of different dimensions.
    """
    if isinstance(passages, (str, bytes, Mapping)) or not isinstance(passages, (Sequence, Iterator, np.ndarray)):
        raise InputError(
            f"passages must be a list of passages, got {clip(passages)} ({type(passages).__name__}); "
            + AS_LIST.get(type(passages).__name__, "wrap a single passage in a list")
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
