"""Python objects as systems under test: a function, our `Rag`, a chain, an engine or a pipeline of a framework.

An object that has `ask`, `plant` and `remove` is a target already. Any other object only answers, and documents are
planted into its `store`: one of our retrievers, or a store of LangChain, LlamaIndex or Haystack. All of these take ids
that the caller chooses, so the id is known before anything is planted, and what a killed run left behind can be removed
without looking for it. An object is known by its methods.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from unpoison.architectures.rag import Rag
from unpoison.bench.redteam.targets import Answered, Document, Target
from unpoison.core.passages import Passage
from unpoison.errors import InputError, OptionError, TargetError, clip
from unpoison.retrieval import HybridRetriever
from unpoison.types import Answer
from unpoison.utils.extras import require

__all__ = ["ANSWERS", "PASSAGES", "ObjectTarget", "Store", "load_object", "parse_answer", "store_of", "target_of"]

ANSWERS = ("answer", "result", "response", "output", "output_text", "text", "content", "replies")
PASSAGES = ("passages", "context", "contexts", "documents", "source_documents", "source_nodes", "sources")
"""What frameworks call what they say and what they have read, first match wins."""


class ObjectTarget:
    """A function that answers, and a store that it reads from.

    Args:
        ask: A question to an answer: a text, or whatever `parse_answer` can read.
        store: Where documents go.
        name: For reports.
    """

    marks = True

    def __init__(self, ask: Callable[[str], Any], store: Store, name: str) -> None:
        self._ask, self._store, self.name = ask, store, name

    def ask(self, question: str) -> Answered:
        return parse_answer(self._ask(question))

    def plant(self, documents: Sequence[Document]) -> list[str]:
        self._store.add(documents)
        return [document.uuid for document in documents]

    def remove(self, handles: Sequence[str]) -> None:
        self._store.remove(list(handles))

    def own_ids(self, canary: str) -> list[str]:
        return [Document("", canary).uuid]


def target_of(
    value: Any, store: Any = None, *, inputs: Mapping[str, Any] | None = None, name: str | None = None
) -> Target:
    """A target of any object.

    Args:
        value: A target; a `Rag`, whose retriever is the store; a LangChain runnable (`invoke`); a LlamaIndex query
            engine (`query`); a Haystack pipeline (`run`, with `inputs`); or a function of the question.
        store: What `store_of` takes; not needed for a target and for a `Rag`.
        inputs: For a pipeline: what each component is given, with "{question}" where the question goes.
        name: For reports; the object's class otherwise.

    Raises:
        OptionError: Nothing that can be asked or planted into.
    """
    if all(callable(getattr(value, method, None)) for method in ("ask", "plant", "remove")):
        target: Target = value
        return target
    named = name or str(getattr(value, "__qualname__", type(value).__qualname__))
    if isinstance(value, Rag):
        if value.defense.models.generator is None:
            raise OptionError("the Rag has no generator, so nothing of it can be asked; give it one")
        return ObjectTarget(value.ask, store_of(value.retriever if store is None else store), named)
    if store is None:
        raise OptionError(f"{named} can be asked, but where are documents planted? name the store that it reads from")
    return ObjectTarget(_ask_function(value, inputs, named), store_of(store), named)


def load_object(where: str, folder: FilePath | None = None) -> Any:
    """The object behind `module:attribute`; modules beside the configuration are found too.

    Raises:
        OptionError: There is no such module or attribute.
    """
    module, colon, attribute = where.partition(":")
    if not colon or not module or not attribute:
        raise OptionError(f"{clip(where)} names no object; write module:attribute")
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        loaded: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise
        raise OptionError(
            f"there is no module {clip(module)}; put it beside the configuration, or install it"
        ) from None
    for part in attribute.split("."):
        if not hasattr(loaded, part):
            raise OptionError(f"{clip(module)} has no {clip(attribute)}; see its spelling")
        loaded = getattr(loaded, part)
    return loaded() if isinstance(loaded, type) else loaded


def parse_answer(value: Any) -> Answered:
    """What a system returned, read as an answer with its passages.

    A text; our `Answer`; a mapping or an object with one of the names that frameworks use for an answer, and perhaps
    one for the passages, as texts or documents.

    Raises:
        TargetError: None of these.
    """
    if isinstance(value, Answered):
        return value
    if isinstance(value, str):
        return Answered(value)
    if isinstance(value, Answer):
        read = value.screening.read  # without what was cut, which no model has seen
        return Answered(value.text, tuple(p.shown if p.cuts else p.raw for p in read), tuple(p.id or "" for p in read))
    text = next((field for name in ANSWERS if (field := _field(value, name)) is not None), None)
    if isinstance(text, Sequence) and not isinstance(text, str) and text:
        text = text[0]  # Haystack's generators give a list of replies
    if not isinstance(text, str):
        text = getattr(text, "text", None) or getattr(text, "content", None)  # a chat message
    if not isinstance(text, str):
        raise TargetError(f"the system returned {clip(value)}, which holds no answer")
    passages = next((field for name in PASSAGES if (field := _field(value, name)) is not None), None)
    return Answered(text, *_passages(passages))


def _passages(values: Any) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    if values is None:
        return None, None
    if isinstance(values, str) or not isinstance(values, Iterable):
        return (str(values),), None
    try:
        read = [Passage.of(value, position) for position, value in enumerate(values)]
    except InputError as error:
        raise TargetError(f"the system returned passages that cannot be read: {error}") from None
    return tuple(passage.raw for passage in read), tuple(passage.id or "" for passage in read)


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _ask_function(value: Any, inputs: Mapping[str, Any] | None, name: str) -> Callable[[str], Any]:
    """How an object is asked."""
    if callable(getattr(value, "invoke", None)):
        return lambda question: value.invoke(question if inputs is None else _fill_inputs(inputs, question))
    if callable(getattr(value, "query", None)):
        query: Callable[[str], Any] = value.query
        return query
    if callable(getattr(value, "run", None)):
        if inputs is None:
            raise OptionError(
                f'{name} is a pipeline; say what goes in with inputs: {{retriever: {{query: "{{question}}"}}}}'
            )
        return lambda question: _flat(value.run(_fill_inputs(inputs, question)))
    if callable(value):
        function: Callable[[str], Any] = value
        return function
    raise OptionError(
        f"{name} cannot be asked; give a function of the question, or an object with ask, plant and remove"
    )


def _flat(outputs: Any) -> Any:
    """A pipeline's outputs, which stand one component deep, as one mapping."""
    if not isinstance(outputs, Mapping):
        return outputs
    return {name: member for part in outputs.values() if isinstance(part, Mapping) for name, member in part.items()}


def _fill_inputs(value: Any, question: str) -> Any:
    if isinstance(value, str):
        return question if value == "{question}" else value.replace("{question}", question)
    if isinstance(value, Mapping):
        return {key: _fill_inputs(part, question) for key, part in value.items()}
    return [_fill_inputs(part, question) for part in value] if isinstance(value, list) else value


class Store(NamedTuple):
    """How to add documents, each under its `uuid`, and how to remove them by it."""

    add: Callable[[Sequence[Document]], object]
    remove: Callable[[list[str]], object]


def store_of(value: Any) -> Store:
    """The store behind an object.

    A retriever of `unpoison.retrieval`, or any object with `add` and `remove`; a LangChain vector store; a LlamaIndex
    index; a Haystack document store.

    Raises:
        OptionError: None of these.
    """
    if isinstance(value, HybridRetriever):
        return _several([store_of(part) for part in value.retrievers])
    for methods, adapter in _ADAPTERS:
        if all(callable(getattr(value, name, None)) for name in methods):
            return adapter(value)
    raise OptionError(
        f"nothing can be planted into {clip(value)}; give a retriever of unpoison.retrieval, a LangChain vector "
        "store, a LlamaIndex index, a Haystack document store, or an object with ask, plant and remove"
    )


def metadata(document: Document) -> dict[str, Any]:
    """What an operator finds beside the text."""
    return {"canary": document.canary} | ({} if document.title is None else {"title": document.title})


def _several(stores: Sequence[Store]) -> Store:
    def add(documents: Sequence[Document]) -> None:
        for store in stores:
            store.add(documents)

    def remove(ids: list[str]) -> None:
        for store in stores:
            store.remove(ids)

    return Store(add, remove)


def _langchain(store: Any) -> Store:
    def add(documents: Sequence[Document]) -> None:
        texts, marks = [d.text for d in documents], [metadata(d) for d in documents]
        store.add_texts(texts, metadatas=marks, ids=[d.uuid for d in documents])

    return Store(add, lambda ids: store.delete(ids=ids))


def _llamaindex(index: Any) -> Store:
    nodes = require("llama_index.core.schema", "planting into a LlamaIndex index")

    def add(documents: Sequence[Document]) -> None:
        index.insert_nodes([nodes.TextNode(text=d.text, id_=d.uuid, metadata=metadata(d)) for d in documents])

    return Store(add, lambda ids: index.delete_nodes(ids, delete_from_docstore=True))


def _haystack(store: Any) -> Store:
    dataclasses = require("haystack.dataclasses", "planting into a Haystack document store")

    def add(documents: Sequence[Document]) -> None:
        store.write_documents([dataclasses.Document(id=d.uuid, content=d.text, meta=metadata(d)) for d in documents])

    return Store(add, store.delete_documents)


def _retriever(retriever: Any) -> Store:
    def add(documents: Sequence[Document]) -> None:
        retriever.add([Passage(d.text, id=d.uuid, title=d.title, source=d.canary) for d in documents])

    return Store(add, retriever.remove)


_ADAPTERS: tuple[tuple[tuple[str, ...], Callable[[Any], Store]], ...] = (
    (("add_texts", "delete"), _langchain),
    (("insert_nodes", "delete_nodes"), _llamaindex),
    (("write_documents", "delete_documents"), _haystack),
    (("add", "remove"), _retriever),
)
"""The methods by which each is known."""
