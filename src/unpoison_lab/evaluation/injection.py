"""Places planted passages by retrieval, by position, or in a pool, and assigns their sources.

Pure functions of contexts. Planted texts may name sources that the attacker owns, so that defenses that weigh sources
can be attacked.

Poison is tracked as an object, never by its text, because a poison may equal a clean passage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpoison.algorithms.cosine import best_first, cosine
from unpoison.core.passages import Passage
from unpoison.errors import InputError, OptionError, clip
from unpoison.models.protocols import Encoder, TwoTowers
from unpoison.utils.checks import at_least
from unpoison_lab.attacks.base import PoisonText, with_question
from unpoison_lab.evaluation.contexts import Candidate, Context, nearest, text_key
from unpoison_lab.evaluation.examples import Example

__all__ = [
    "check_owned",
    "dense_search",
    "frequent_sources",
    "hybrid_search",
    "look_alike",
    "poison_candidates",
    "pool",
    "prepend",
    "replace_at",
    "retrieve",
    "retrieve_corpus",
    "sleepers",
    "with_owners",
]

Search = Callable[[Sequence[str], Sequence[Passage], int], Sequence[NDArray[np.intp]]]
"""(questions, passages, count) to the best positions of each question."""


def poison_candidates(
    example: Example, texts: Iterable[PoisonText | Passage], *, prefix: bool = False
) -> tuple[Candidate, ...]:
    """Poison for one question.

    Args:
        example: The question that the texts were made for.
        texts: Crafted texts of an attack, or published texts (`example.poisons(...)`).
        prefix: Put the question and a full stop in front of each text, as PoisonedRAG's black-box attack does.
    """
    candidates = []
    for text in texts:
        passage = Passage(text.text, id=text.id, title=text.title) if isinstance(text, PoisonText) else text
        if prefix:
            passage = replace(passage, text=with_question(example.question, passage.text), embedding=None)
        candidates.append(Candidate(passage, poison=True, target=example.id))
    return tuple(candidates)


def replace_at(
    context: Context, poisons: Sequence[Candidate], positions: Sequence[int], *, append: bool = False
) -> Context:
    """Poison takes the place of the passages at these 0-based positions; the length stays (RobustRAG, RADAR).

    With `append`, poison at positions behind the last passage goes to the end, in order.

    Raises:
        InputError: A position outside the context or named twice, or not one position for each poison.
    """
    if len(positions) != len(poisons):
        raise InputError(f"{len(poisons)} poisons need one position each, got {len(positions)}")
    if len(set(positions)) != len(positions):
        raise InputError(f"positions must differ, got {list(positions)}; name each once")
    candidates = list(context.candidates)
    for position, poison in sorted(zip(positions, poisons), key=lambda pair: pair[0]):
        if append and position >= len(context):
            candidates.append(poison)
            continue
        if not 0 <= position < len(candidates):
            raise InputError(
                f"position {position} lies outside a context of {len(candidates)} passages; "
                f"use 0 to {len(candidates) - 1}, or a larger k"
            )
        candidates[position] = poison
    return _with_candidates(context, candidates, poisons)


def prepend(context: Context, poisons: Sequence[Candidate], k: int | None = None) -> Context:
    """Poison comes first, then the context, cut to `k` passages (None: as many as before)."""
    size = len(context) if k is None else at_least("k", k, 1)
    return _with_candidates(context, [*poisons, *context.candidates][:size], poisons)


def pool(context: Context, poisons: Sequence[Candidate], *, first: bool = True) -> Context:
    """The defense sees all poison and the whole context; top-k is taken after filtering (RAGDefender).

    Args:
        context: All gold and benign passages of the question.
        poisons: All of the attacker's.
        first: Whether the poison comes before the rest, or behind it.
    """
    candidates = [*poisons, *context.candidates] if first else [*context.candidates, *poisons]
    return _with_candidates(context, candidates, poisons)


def retrieve(context: Context, poisons: Sequence[Candidate], search: Search, k: int) -> Context:
    """Poison competes with the context for the `k` best places of a retriever (PoisonedRAG, GRADA, TrustRAG).

    Ties go to the context, then to the earlier poison. Poison of other questions may compete too;
    `Context.foreign` has the retrieved part.

    Raises:
        OptionError: `k` below 1.
    """
    at_least("k", k, 1)
    whole = pool(context, poisons, first=False)
    (order,) = search([context.query], whole.passages, len(whole))
    return whole.reorder(order[:k])


def retrieve_corpus(
    examples: Sequence[Example],
    corpus: Sequence[Passage],
    poisons: Sequence[Candidate],
    k: int,
    search: Search = nearest,
) -> list[Context]:
    """Plant all poison in the corpus and retrieve the `k` best passages for each question.

    The poison of every question competes for every question, as in a poisoned collection. A corpus passage is gold
    if the question lists the same text as gold.

    Args:
        examples: The questions.
        corpus: The clean passages.
        poisons: The poison of all questions.
        k: Passages per context.
        search: The retriever; BM25 by default, `dense_search(encoder)` for an encoder.

    Raises:
        OptionError: `k` below 1.
        InputError: Neither corpus nor poison.
    """
    at_least("k", k, 1)
    candidates = [*(Candidate(passage) for passage in corpus), *poisons]
    if not candidates:
        raise InputError("the corpus is empty and nothing was planted; there is nothing to retrieve")
    results = search([example.question for example in examples], [c.passage for c in candidates], k)
    contexts = []
    for example, positions in zip(examples, results):
        gold = {text_key(retrieved.passage.text) for retrieved in example.passages_by_label("gold")}
        retrieved = [candidates[i] for i in positions]
        marked = [c if c.poison else replace(c, gold=text_key(c.passage.text) in gold) for c in retrieved]
        injected = sum(poison.target == example.id for poison in poisons)
        contexts.append(Context(example.id, example.question, tuple(marked), injected))
    return contexts


def dense_search(encoder: Encoder) -> Search:
    """Exact nearest neighbours as the encoder compares; ties go to the earlier passage."""

    def search(questions: Sequence[str], passages: Sequence[Passage], count: int) -> list[NDArray[np.intp]]:
        texts = [passage.text for passage in passages]
        if isinstance(encoder, TwoTowers):
            queries, corpus = encoder.encode_queries(questions), encoder.encode(texts)
        else:
            vectors = encoder.encode([*questions, *texts])
            queries, corpus = vectors[: len(questions)], vectors[len(questions) :]
        return [best_first(_similar(encoder, queries[i : i + 1], corpus)[0], count) for i in range(len(questions))]

    return search


def hybrid_search(encoder: Encoder) -> Search:
    """BM25 and an encoder by the sum of 1 / (60 + rank), over the best 100 of each, or `count` if larger."""

    def search(questions: Sequence[str], passages: Sequence[Passage], count: int) -> list[NDArray[np.intp]]:
        depth = max(count, 100)
        lists = [single(questions, passages, depth) for single in (nearest, dense_search(encoder))]
        best_of_each = []
        for ranked in zip(*lists, strict=True):
            fused = np.zeros(len(passages))
            for order in ranked:
                fused[order] += 1 / (FUSION + np.arange(1, len(order) + 1))
            best = best_first(fused)
            best_of_each.append(best[fused[best] > 0][:count])
        return best_of_each

    return search


FUSION = 60
"""The constant of reciprocal rank fusion (Cormack et al., 2009)."""


def _similar(encoder: Encoder, left: ArrayLike, right: ArrayLike) -> NDArray[np.float64]:
    if getattr(encoder, "similarity", "cosine") == "dot":
        return np.asarray(np.asarray(left, float) @ np.asarray(right, float).T)
    return cosine(left, right)


def _with_candidates(context: Context, candidates: Sequence[Candidate], poisons: Sequence[Candidate]) -> Context:
    own = sum(poison.target == context.example for poison in poisons)
    return replace(context, candidates=tuple(candidates), injected=context.injected + own)


HONEST = 100
"""Questions for which a sleeper source was retrieved and truthful before it lies."""

RULES = ("one", "each", "page", "user", "lookalike", "quote")
"""Whom the attacker may be, beside `known:N` and `sleepers:N`."""

_KNOWN = re.compile(r"known:([1-9][0-9]{0,2})\Z")
_SLEEPERS = re.compile(r"sleepers:([1-9][0-9]{0,2})\Z")


def check_owned(owned: str) -> str:
    """A rule of `owned`, or "" for texts without a source.

    Raises:
        OptionError: No such rule.
    """
    if owned in ("", *RULES) or _KNOWN.match(owned) or _SLEEPERS.match(owned):
        return owned
    raise OptionError(f"owned must be {', '.join(RULES)}, known:N or sleepers:N (such as known:3), got {clip(owned)}")


def sleepers(owned: str) -> tuple[str, ...]:
    """The origins that were honest for `HONEST` questions before they lie, for a history."""
    match = _SLEEPERS.match(owned)
    return tuple(f"sleeper-{number}.example" for number in range(int(match[1]))) if match else ()


def frequent_sources(examples: Sequence[Example]) -> Mapping[str, tuple[str, ...]]:
    """For each question the sources that other questions' clean passages come from, most frequent first, by address.

    Sources of the question's own passages are left out: an attacker who owns those needs no poison.
    """
    questions: dict[str, set[str]] = {}
    address: dict[str, str] = {}
    own: dict[str, set[str]] = {}
    for example in examples:
        for labelled in example.passages:
            origin = "" if labelled.label == "poison" else labelled.passage.origin
            if origin:
                questions.setdefault(origin, set()).add(example.id)
                address.setdefault(origin, _address(labelled.passage))
                own.setdefault(example.id, set()).add(origin)
    ranked = sorted(questions, key=lambda origin: (-len(questions[origin]), origin))
    return {
        example.id: tuple(
            address[origin]
            for origin in ranked
            if origin not in own.get(example.id, ()) and questions[origin] != {example.id}
        )
        for example in examples
    }


def with_owners(
    owned: str, example: Example, poisons: Sequence[Candidate], known: Sequence[str], seed: int
) -> tuple[Candidate, ...]:
    """The planted texts, each with a source that the attacker holds.

    Args:
        owned: `one` new source for all of them, `each` a new one for every text, `known:N` N sources that were seen for
            other questions, in turn, `sleepers:N` N of the attacker's own that were honest long enough to be known;
            `page` the page of the question's first passage, `user` one user of a host where everybody writes,
            `lookalike` a domain that looks like that of the first passage, `quote` a new source for every text, which
            quotes the first passage's source; "" leaves them as they are.
        example: The question.
        poisons: Its planted texts.
        known: Addresses of established sources, from `frequent_sources`.
        seed: Chooses among these.

    Raises:
        OptionError: Fewer than N sources are established.
    """
    check_owned(owned)
    if not owned:
        return tuple(poisons)
    draw = Random(f"{seed} {example.id}")  # noqa: S311  a choice, no secret
    name = f"{draw.randrange(16**8):08x}"
    match = _KNOWN.match(owned)
    taken = _sample_sources(draw, known, int(match[1])) if match else []
    own = next((each.passage for each in example.passages if each.label != "poison" and each.passage.origin), None)
    held = []
    for number, candidate in enumerate(poisons):
        passage = candidate.passage
        if own is not None and owned in ("page", "lookalike", "quote"):
            passage, address = _beside(owned, own, passage, f"{name}-{number}")
        elif owned == "user":
            address = f"https://medium.com/@{name}/{number}"
        elif names := sleepers(owned):
            address = f"https://{names[number % len(names)]}/{name}-{number}"
        elif taken:
            address = f"{taken[number % len(taken)].rstrip('/')}/{name}-{number}"
        else:
            address = f"https://{name}{f'-{number}' if owned == 'each' else ''}.example/{number}"
        passage = replace(passage, source=address, metadata={})
        held.append(replace(candidate, passage=passage))
    return tuple(held)


def _beside(owned: str, own: Passage, lie: Passage, name: str) -> tuple[Passage, str]:
    """A planted text and its address, by an attacker who takes over, imitates or quotes the source of a passage."""
    if owned == "page":
        return lie, own.source or ""
    if owned == "lookalike":
        return lie, f"https://{look_alike(own.origin)}/{name}"
    return replace(lie, text=f"As {own.origin} reports: {lie.text}"), f"https://{name}.example/"


def look_alike(origin: str) -> str:
    """A domain that looks like another one: cnn.com as cnnn.com, google.com as g00gle.com."""
    label, dot, rest = origin.partition("/")[0].partition(".")
    other = label.replace("o", "0").replace("l", "1")
    return f"{other if other != label else label + label[-1]}{dot}{rest}"


def _sample_sources(draw: Random, known: Sequence[str], count: int) -> list[str]:
    if len(known) < count:
        raise OptionError(
            f"known:{count} takes over {count} sources that other questions have too, and the data names {len(known)}; "
            "give data whose passages have a source or url"
        )
    return draw.sample(known, count)


def _address(passage: Passage) -> str:
    """The address of a new page at the same origin."""
    url = passage.metadata.get("url")
    source = url if isinstance(url, str) and "://" in url else passage.source or ""
    host = re.match(r"(https?://[^/?#]+)", source)
    return host[1] if host else source.rpartition("/")[0] or source
