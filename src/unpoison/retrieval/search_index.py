"""What an index of Elasticsearch or OpenSearch says of itself: its vectors, and whether documents come back whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unpoison.retrieval.store import TEXT_FIELDS

__all__ = ["ORIGIN", "Index", "VectorField", "held_at", "holds", "similarity"]

ORIGIN = "unpoison_index"
"""The field that says which index of an alias a document came from, while it is elsewhere."""

SEARCHED = ("dense_vector", "knn_vector")
"""Types that hold one vector of numbers."""

INFERRED = "semantic_text"
"""The type whose vectors the server makes; they come in `_inference_fields`, earlier beside the text."""

VECTORS = (*SEARCHED, "sparse_vector", "rank_vectors", INFERRED)
"""Types whose values a server may leave out of a document."""


MEASURES = {
    "cosine": "cosine", "cosinesimil": "cosine", "dot_product": "product", "max_inner_product": "product",
    "innerproduct": "product", "l2_norm": "distance", "l2": "distance",
}  # fmt: skip
"""What Elasticsearch's `similarity` and OpenSearch's `space_type` compare by."""


class VectorField(NamedTuple):
    """A field of vectors.

    Attributes:
        path: With its dots.
        definition: As the mapping has it.
        nested: The path of the nested documents that have it; "" where the document itself has it.
    """

    path: str
    definition: Mapping[str, Any]
    nested: str

    @property
    def dimensions(self) -> int | None:
        """How many numbers a vector has, where the mapping says it."""
        size: int | None = self.definition.get("dims", self.definition.get("dimension"))
        return size

    @property
    def measure(self) -> str:
        """`cosine`, `product` or `distance`; "" for others, and where the mapping does not say it."""
        definition = self.definition
        space = definition.get("similarity") or definition.get("space_type")
        space = space or definition.get("method", {}).get("space_type")
        if space is None and definition.get("element_type") != "bit" and "model_id" not in definition:
            space = "cosine" if definition["type"] == "dense_vector" else "l2"  # the default of each
        return MEASURES.get(space, "")

    @property
    def exists(self) -> Mapping[str, Any]:
        """The query for documents that have it."""
        query = {"exists": {"field": self.path}}
        return {"nested": {"path": self.nested, "query": query}} if self.nested else query


class Index(NamedTuple):
    """One index.

    Attributes:
        name: Its own, not that of an alias.
        mapping: As the server has it.
        settings: Of the index, nested, with strings for numbers.
        stream: The data stream that it belongs to; None for most.
        writes: The aliases that write into it.
    """

    name: str
    mapping: Mapping[str, Any]
    settings: Mapping[str, Any]
    stream: str | None
    writes: frozenset[str]

    @classmethod
    def read(cls, name: str, described: Mapping[str, Any]) -> Index:
        """What `GET /INDEX` says of it."""
        aliases = described.get("aliases", {})
        return cls(
            name,
            described.get("mappings", {}),
            described.get("settings", {}).get("index", {}),
            described.get("data_stream"),
            frozenset(alias for alias, options in aliases.items() if options.get("is_write_index")),
        )

    @property
    def vectors(self) -> list[VectorField]:
        """Its fields of vectors, in the mapping's order."""
        return list(_vector_fields(self.mapping.get("properties", {})))

    @property
    def searched(self) -> VectorField | None:
        """The first field of one vector for each document."""
        return next((f for f in self.vectors if f.definition["type"] in SEARCHED and not f.nested), None)

    @property
    def text(self) -> str:
        """The field of the text in new documents."""
        return next((name for name in TEXT_FIELDS if name in self.mapping.get("properties", {})), TEXT_FIELDS[0])

    @property
    def schema(self) -> dict[str, Any]:
        """What another index needs to hold its documents with their vectors."""
        return {"text": self.text, "vectors": {f.path: dict(f.definition) for f in self.vectors if not f.nested}}

    def loss(self) -> str | None:
        """Why a document of it that is written back would not be what it was; None where it would."""
        source, settings = self.mapping.get("_source", {}), self.settings
        kept = settings.get("mapping", {}).get("source", {}).get("mode") or source.get("mode")
        if str(source.get("enabled", True)).lower() == "false" or kept == "disabled":
            return "its mapping disables _source"
        if source.get("excludes") or source.get("includes"):
            return "its mapping leaves fields out of _source"
        if kept == "synthetic" or (kept is None and settings.get("mode") in ("logsdb", "time_series")):
            return "its _source is synthetic, so that documents come back rearranged"
        if str(settings.get("derived_source", {}).get("enabled", False)).lower() == "true":
            return "its _source is derived, so that documents come back rearranged"
        if settings.get("final_pipeline", "_none") != "_none":
            return f"its final_pipeline {settings['final_pipeline']!r} changes what is written back"
        if self.stream is not None:
            return f"it belongs to the data stream {self.stream!r}, into which nothing can be put back"
        return None


def held_at(source: Any, path: str) -> Any:
    """The value at a path of a document, whose names may have dots themselves; None without one."""
    if not isinstance(source, Mapping):
        return None
    if path in source:
        return source[path]
    parts = path.split(".")
    for size in range(1, len(parts)):
        if (value := held_at(source.get(".".join(parts[:size])), ".".join(parts[size:]))) is not None:
            return value
    return None


def holds(source: Any, field: VectorField) -> bool:
    """Whether a document that came has the vectors of this field."""
    if field.definition["type"] != INFERRED:
        return _reaches(source, field.path)
    inferred = source.get("_inference_fields") if isinstance(source, Mapping) else None
    if isinstance(inferred, Mapping) and field.path in inferred:
        return True
    value = held_at(source, field.path)
    return isinstance(value, Mapping) and "inference" in value


def similarity(measure: str, query: Sequence[float], vector: Sequence[float]) -> float:
    """How near two vectors are by a `VectorField.measure`: the cosine, the product, or the negated distance."""
    one, other = np.asarray(query, np.float64), np.asarray(vector, np.float64)
    if measure == "distance":
        return -float(np.linalg.norm(one - other))
    product, lengths = float(one @ other), float(np.linalg.norm(one) * np.linalg.norm(other))
    return product if measure == "product" else product / lengths if lengths else 0.0


def _vector_fields(properties: Mapping[str, Any], prefix: str = "", nested: str = "") -> Iterator[VectorField]:
    for name, definition in properties.items():
        path = f"{prefix}{name}"
        if definition.get("type") in VECTORS:
            yield VectorField(path, definition, nested)
        inner = path if definition.get("type") == "nested" else nested
        yield from _vector_fields(definition.get("properties", {}), f"{path}.", inner)


def _reaches(source: Any, path: str) -> bool:
    """Whether something is at a path, in any of the values where there are lists."""
    if isinstance(source, list):
        return any(_reaches(one, path) for one in source)
    if not isinstance(source, Mapping):
        return False
    if source.get(path) is not None:
        return True
    parts = path.split(".")
    return any(_reaches(source.get(".".join(parts[:size])), ".".join(parts[size:])) for size in range(1, len(parts)))
