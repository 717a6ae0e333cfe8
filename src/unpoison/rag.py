"""Rag: retriever, defense and generator, the whole pipeline on one page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from unpoison.core import registry
from unpoison.core.answers import Answer, Call
from unpoison.core.passages import MAX_PASSAGES, Passage, Query, as_passages, as_query
from unpoison.core.screenings import Screening
from unpoison.core.verdicts import Evidence
from unpoison.defenses.base import Defense
from unpoison.defenses.vote import need_proof, withhold_unproved
from unpoison.errors import OptionError, clip
from unpoison.models.loading import GeneratorFunction
from unpoison.models.protocols import Generator, Models
from unpoison.models.requests import Flow, encode, retrieve
from unpoison.retrieval.base import Retriever, aretrieve_passages
from unpoison.runtime.driver import arun, run
from unpoison.sources.sources import SourcesOption
from unpoison.utils.checks import at_least, flag

__all__ = ["Rag"]


class Rag:
    """A RAG pipeline: retriever, defense, generator.

        rag = Rag(BM25Retriever(passages), generator="openai:gpt-4o-mini")
        answer = rag.ask("who built the Vasa")

    The query is encoded once, for retriever and defense. A defense named by a string gets the retriever's encoder, and
    the retriever for reformulated queries. The defense's `limits` apply to retrieval and to answering, each. Embeddings
    are reused if they are comparable: if the query and all passages have one, or if the defense has the retriever's
    encoder and can add missing ones. Otherwise the defense encodes the texts itself.

    Args:
        retriever: One of `unpoison.retrieval`, or anything with its `retrieve(query, k)`.
        defense: An option string such as "guard" or "grada:keep=5", or a defense.
        generator: For a defense named by a string; without it only `retrieve` and `screen` work.
        k: Number of passages to retrieve and screen, at least 1.
        guarantee: Abstain unless the answer is proved to withstand this many planted passages; the defense must prove
            its answers (`vote`, `robustrag`, `guard:answer=guaranteed`). 0 requires no proof.
        sources: Sources for the defense (`unpoison.Sources`, a policy file, a mapping).
        learn: Whether to update the history of sources.

    Raises:
        OptionError: An option out of its range; a guarantee from a defense without proof; a generator beside a defense
            that is an object.
        UnknownNameError: No defense of that name.
    """

    def __init__(
        self,
        retriever: Retriever,
        defense: Defense | str = "guard",
        generator: Generator | GeneratorFunction | str | None = None,
        *,
        k: int = 10,
        guarantee: int = 0,
        sources: SourcesOption = None,
        learn: bool = False,
    ) -> None:
        if not callable(getattr(retriever, "retrieve", None)):
            raise OptionError(f"retriever must have retrieve(query, k), got {clip(retriever)}; wrap it in a class")
        self.retriever = retriever
        self.k = at_least("k", k, 1, MAX_PASSAGES)
        self._models = Models(encoder=getattr(retriever, "encoder", None), retriever=_Candidates(retriever, self.k))
        if isinstance(defense, str):
            given = {"encoder": self._models.encoder, "generator": generator, "retriever": self._models.retriever}
            chosen: Defense = registry.create("defenses", defense, **given)
        elif generator is None:
            chosen = defense
        else:
            raise OptionError("generator is for a defense named by a string; give this its own: Guard(generator=...)")
        if sources is not None or flag("learn", learn):
            chosen = chosen.with_sources(chosen.sources if sources is None else sources, learn=learn)
        self.guarantee = at_least("guarantee", guarantee, 0)
        if guarantee:
            need_proof(chosen, "guarantee")
        self.defense: Defense = chosen

    def retrieve(self, question: str | Query) -> tuple[Passage, ...]:
        """The retrieved passages, best first, unscreened.

        Raises:
            InputError: An unusable question, or a passage that cannot be used.
            ModelError: The encoder or a retriever that is not ours failed.
            StoreError: The store cannot be reached.
        """
        (_, passages), _ = run(self._find_passages(as_query(question)), self._models, self.defense.limits)
        return passages

    def screen(self, question: str | Query) -> Screening:
        """Retrieve and screen passages."""
        (query, passages), _ = run(self._find_passages(as_query(question)), self._models, self.defense.limits)
        return self.defense.screen(*self._comparable(query, passages))

    def ask(self, question: str | Query) -> Answer:
        """Answer a question; the answer has the screening and all calls of retriever and models.

        Abstains if nothing is retrieved, unless the defense answers from the model's knowledge or its beliefs.

        Raises:
            OptionError: The defense has no generator.
        """
        (query, passages), calls = run(self._find_passages(as_query(question)), self._models, self.defense.limits)
        if not passages and not self.defense.answers_itself:
            return self._empty_answer(query, calls)
        answer = withhold_unproved(self.defense.answer(*self._comparable(query, passages)), self.guarantee)
        return replace(answer, calls=(*calls, *answer.calls))

    async def aretrieve(self, question: str | Query) -> tuple[Passage, ...]:
        """`retrieve` for asyncio."""
        (_, passages), _ = await arun(self._find_passages(as_query(question)), self._models, self.defense.limits)
        return passages

    async def ascreen(self, question: str | Query) -> Screening:
        """`screen` for asyncio."""
        (query, passages), _ = await arun(self._find_passages(as_query(question)), self._models, self.defense.limits)
        return await self.defense.ascreen(*self._comparable(query, passages))

    async def aask(self, question: str | Query) -> Answer:
        """`ask` for asyncio."""
        found = self._find_passages(as_query(question))
        (query, passages), calls = await arun(found, self._models, self.defense.limits)
        if not passages and not self.defense.answers_itself:
            return self._empty_answer(query, calls)
        answer = withhold_unproved(await self.defense.aanswer(*self._comparable(query, passages)), self.guarantee)
        return replace(answer, calls=(*calls, *answer.calls))

    def _empty_answer(self, query: Query, calls: tuple[Call, ...]) -> Answer:
        nothing = Evidence(notes=("the retriever found nothing that matches",))
        screening = Screening.decided(self.defense.name, query, (), kept=(), scores=(), reasons=(), evidence=nothing)
        return replace(Answer.abstention(screening), calls=calls)

    def _find_passages(self, query: Query) -> Flow[tuple[Query, tuple[Passage, ...]]]:
        """The query with its embedding, and the passages."""
        if self._models.encoder is not None and query.embedding is None:
            (vector,) = yield from encode([query.text], "query", queries=True)
            query = Query(query.text, vector)
        (retrieved,) = yield from retrieve([query])
        return query, as_passages(retrieved)

    def _comparable(self, query: Query, passages: tuple[Passage, ...]) -> tuple[Query, tuple[Passage, ...]]:
        """The same, without embeddings that the defense would mix with those of another encoder."""
        complete = query.embedding is not None and all(p.embedding is not None for p in passages)
        theirs, ours = self.defense.models.encoder, self._models.encoder
        if complete or (ours is not None and theirs is not None and theirs.name == ours.name):
            return query, passages
        return Query(query.text), tuple(replace(passage, embedding=None) for passage in passages)

    def __repr__(self) -> str:
        return f"Rag({self.retriever!r}, defense={self.defense.name!r}, k={self.k})"


@dataclass(frozen=True, slots=True)
class _Candidates:
    """A retriever in the form that flows call."""

    retriever: Retriever
    count: int

    @property
    def name(self) -> str:
        return type(self.retriever).__name__

    def __call__(self, question: Query, /) -> Iterable[Any]:
        return self.retriever.retrieve(question, self.count)

    async def acall(self, question: Query, /) -> Iterable[Any]:
        return await aretrieve_passages(self.retriever, question, self.count)
