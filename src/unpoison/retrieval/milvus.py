"""A Milvus collection as a store: in a file of Milvus Lite, or on a server."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unpoison.errors import InputError, UnpoisonError
from unpoison.retrieval.store import TEXT_FIELDS, VectorStore, refuse, textless, unreachable
from unpoison.utils.extras import require

__all__ = ["MilvusStore"]

PAGE = 256
"""Entities of one request."""

MAX_TEXT = 65_535
"""Bytes of a text in a collection that is made here; more than that no field of Milvus holds."""

VARCHAR, FLOAT_VECTOR = 21, 101
"""Milvus's numbers of these types."""

UNREACHABLE = 2
"""The client's code for a server that does not answer."""


class MilvusStore(VectorStore):
    """The entities of a collection with a text (`text`, `content`, `page_content` or `document`), by its primary key.

    Args:
        address: A file of Milvus Lite, or the URL of a server (its token in MILVUS_TOKEN).
        collection: Its name.
        new: Make the collection, when documents are put, if it is not there.

    Raises:
        InputError: There is no such collection and `new` is not set.
        MissingExtraError: pymilvus is not installed.
        StoreError: It cannot be reached.
    """

    def __init__(self, address: str, collection: str, *, new: bool = False) -> None:
        self.library = require("pymilvus", "using Milvus")
        self.collection, self.name = collection, f"the Milvus collection {collection!r}"
        if not new and "://" not in address and not Path(address).exists():  # the client would make it
            raise InputError(f"there is no {address!r}; name the file of a Milvus Lite database")
        with self.translate_errors():
            self.client = self.library.MilvusClient(address, token=os.environ.get("MILVUS_TOKEN", ""))
        if not new and self._schema() is None:
            self.close()
            raise InputError(f"{self.name} is not there; name one that is, or make it")

    def rows(self) -> Iterator[Mapping[str, Any]]:
        schema, count = self._schema(), 0
        if schema is None:
            return
        with self.translate_errors():
            entities = self.client.query_iterator(
                self.collection, batch_size=PAGE, output_fields=["*"], consistency_level="Strong"
            )
        try:
            while True:
                with self.translate_errors(count):
                    batch = entities.next()
                if not batch:
                    return
                count += len(batch)
                yield from (self._row(dict(entity), schema) for entity in batch)
        finally:
            entities.close()

    def search(self, vector: Sequence[float], count: int) -> list[Mapping[str, Any]]:
        schema = self._schema()
        if schema is None or not count:
            return []
        if len(vector) != (size := _size(schema)):  # the client would log a traceback
            raise InputError(f"the query has {len(vector)} dimensions and {self.name} {size}")
        sign = -1.0 if schema["metric"] == "L2" else 1.0  # of the other measures, more is nearer
        with self.translate_errors():
            (hits,) = self.client.search(
                self.collection,
                [list(vector)],
                anns_field=_vector(schema),
                limit=count,
                output_fields=["*"],
                consistency_level="Strong",
            )
        return [{**self._row(dict(hit["entity"]), schema), "score": sign * float(hit["distance"])} for hit in hits]

    def fetch(self, ids: Collection[str]) -> dict[str, Mapping[str, Any]]:
        schema = self._schema()
        if schema is None or not ids:
            return {}
        if schema["auto_id"]:
            raise InputError(
                f"{self.name} numbers its entities itself, so none that is taken out could be put back; make it with "
                "auto_id=False"
            )
        with self.translate_errors():
            entities = self.client.get(
                self.collection, _keys(ids, schema), output_fields=["*"], consistency_level="Strong"
            )
        key = _primary(schema)["name"]
        return {
            str(entity[key]): {"id": str(entity[key]), "entity": dict(entity), "schema": schema} for entity in entities
        }

    def raw(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        schema = self._schema() or _plain_schema(len(fields["embedding"]))
        names = {field["name"] for field in schema["fields"]}
        others = {name: value for name, value in fields.items() if name not in ("id", "text", "embedding", "metadata")}
        entity = {
            **{n: v for n, v in {**fields.get("metadata", {}), **others}.items() if schema["dynamic"] or n in names},
            _primary(schema)["name"]: (_keys([fields["id"]], schema) or [fields["id"]])[0],
            self._text(schema, fields): fields["text"],
            _vector(schema): list(fields["embedding"]),
        }
        return {"id": fields["id"], "entity": entity, "schema": schema}

    def put(self, raw: Mapping[str, Mapping[str, Any]]) -> None:
        rows = list(raw.values())
        if any("entity" not in row or "schema" not in row for row in rows):
            raise InputError(f"{self.name} takes entities of Milvus; move documents to a store of their kind")
        if not rows:
            return
        with self.translate_errors():
            if self._schema() is None:
                self._make(rows[0]["schema"])
            for start in range(0, len(rows), PAGE):
                self.client.upsert(self.collection, [row["entity"] for row in rows[start : start + PAGE]])

    def take(self, ids: Collection[str]) -> None:
        schema = self._schema()
        keys = [] if schema is None else _keys(ids, schema)
        if keys:
            with self.translate_errors():
                self.client.delete(self.collection, ids=keys)

    def close(self) -> None:
        self.client.close()

    def _schema(self) -> dict[str, Any] | None:
        """What a collection like this one is made of, as JSON has it; None where there is none."""
        with self.translate_errors():
            if not self.client.has_collection(self.collection):
                return None
            self.client.load_collection(self.collection)  # a file that was closed has let go of it
            described = self.client.describe_collection(self.collection)
            fields = [
                {
                    **{name: field[name] for name in ("name", "is_primary", "nullable", "params") if name in field},
                    "type": int(field["type"]),
                    **({"element_type": int(field["element_type"])} if field.get("element_type") else {}),
                }
                for field in described["fields"]
                if not field.get("is_function_output")
            ]
            schema = {
                "fields": fields,
                "dynamic": bool(described["enable_dynamic_field"]),
                "auto_id": bool(described["auto_id"]),
            }
            indexes = self.client.list_indexes(self.collection, field_name=_vector(schema)) if _vector(schema) else []
            index = self.client.describe_index(self.collection, indexes[0]) if indexes else {}
        return {**schema, "metric": str(index.get("metric_type") or "COSINE")}

    def _make(self, schema: Mapping[str, Any]) -> None:
        made = self.client.create_schema(auto_id=False, enable_dynamic_field=schema["dynamic"])
        for field in schema["fields"]:
            element = {"element_type": self.library.DataType(field["element_type"])} if "element_type" in field else {}
            made.add_field(
                field["name"],
                self.library.DataType(field["type"]),
                is_primary=bool(field.get("is_primary")),
                nullable=bool(field.get("nullable")),
                **element,
                **field["params"],
            )
        index = self.client.prepare_index_params()
        index.add_index(_vector(schema), index_type="AUTOINDEX", metric_type=schema["metric"])
        self.client.create_collection(self.collection, schema=made, index_params=index)

    def _row(self, entity: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
        key, vector, text = _primary(schema)["name"], _vector(schema), self._text(schema, entity)
        if not isinstance(entity.get(text), str):
            raise textless(self.name, entity[key])
        others = {name: value for name, value in entity.items() if name not in (key, vector, text)}
        return {**others, "id": str(entity[key]), "text": entity[text], "embedding": entity.get(vector)}

    def _text(self, schema: Mapping[str, Any], entity: Mapping[str, Any]) -> str:
        """The field of the text: of the schema, else of those that only this entity has."""
        names = [field["name"] for field in schema["fields"]]
        return next((name for name in TEXT_FIELDS if name in names or name in entity), TEXT_FIELDS[0])

    @contextmanager
    def translate_errors(self, documents: int = 0) -> Iterator[None]:
        """What the client raises, as our own errors.

        Args:
            documents: How many were read before.
        """
        errors = self.library.exceptions
        try:
            yield
        except UnpoisonError:
            raise
        except (errors.MilvusUnavailableException, OSError) as error:
            raise unreachable(self.name, error, documents) from error
        except errors.MilvusException as error:
            if error.code == UNREACHABLE:
                raise unreachable(self.name, error, documents) from error
            raise refuse(self.name, error, "its fields, and the vectors' size") from error
        except (ValueError, TypeError) as error:
            raise refuse(self.name, error, "its fields, and the vectors' size") from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "grpc":
                raise
            raise unreachable(self.name, error, documents) from error


def _primary(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    field: Mapping[str, Any] = next(field for field in schema["fields"] if field.get("is_primary"))
    return field


def _vector(schema: Mapping[str, Any]) -> str:
    """The first field of vectors of floats; "" without one."""
    return next((str(field["name"]) for field in schema["fields"] if field["type"] == FLOAT_VECTOR), "")


def _size(schema: Mapping[str, Any]) -> int:
    """The dimensions of these vectors; 0 without a field of them."""
    name = _vector(schema)
    return next((int(field["params"]["dim"]) for field in schema["fields"] if field["name"] == name), 0)


def _keys(ids: Collection[str], schema: Mapping[str, Any]) -> list[Any]:
    """The ids as the primary key has them; what is no number is the key of no entity where keys are numbers."""
    if _primary(schema)["type"] == VARCHAR:
        return list(ids)
    numbers = (name for name in ids if len(name) <= 20 and name.removeprefix("-").isdecimal())
    return [int(name) for name in numbers if str(int(name)) == name]


def _plain_schema(size: int) -> dict[str, Any]:
    """Of a collection that is made for documents from elsewhere, with vectors of `size` dimensions."""
    fields = [
        {"name": "id", "type": VARCHAR, "params": {"max_length": 512}, "is_primary": True},
        {"name": "text", "type": VARCHAR, "params": {"max_length": MAX_TEXT}},
        {"name": "vector", "type": FLOAT_VECTOR, "params": {"dim": size}},
    ]
    return {"fields": fields, "dynamic": True, "auto_id": False, "metric": "COSINE"}
