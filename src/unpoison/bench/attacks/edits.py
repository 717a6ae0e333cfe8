"""What `defense-aware` does to a text: small edits, and first drafts made of clean passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unpoison.bench.attacks.base import Target, contains_answer
from unpoison.bench.attacks.rewriting import sentences, with_synonyms
from unpoison.bench.attacks.tan import substitute_answers
from unpoison.models.sentences import STOP_WORDS

__all__ = ["Draft", "first_drafts", "random_edit"]

Lead = Literal["none", "stop", "question"]


@dataclass(frozen=True, slots=True)
class Draft:
    """A text under edit.

    Attributes:
        text: Its sentences.
        lead: What stands in front: nothing, the question and a stop as PoisonedRAG writes it, or the question asked.
        borrowed: How many pieces of clean passages it holds or held.
    """

    text: str
    lead: Lead = "none"
    borrowed: int = 0

    def render(self, target: Target) -> str:
        """The text as it is planted."""
        if self.lead == "none":
            return self.text
        question = target.question.strip()
        return f"{question}.{self.text}" if self.lead == "stop" else f"{question.rstrip('?')}? {self.text}"


def first_drafts(target: Target, drafts: Sequence[Draft]) -> Iterator[tuple[Draft, ...]]:
    """Whole sets to begin with: bare texts, and texts that hide in a clean passage, a different one for each.

    The hidden ones: the passage with its right answer replaced, or with the claim as first or last sentence.
    """
    yield tuple(drafts)
    yield tuple(replace(draft, lead="question") for draft in drafts)
    clean = [substitute_answers(text, target) for text in target.context]
    if not clean:
        return
    stating = sorted(range(len(clean)), key=lambda i: (not contains_answer(clean[i], target.incorrect), i))
    hosts = [clean[stating[i % len(stating)]] for i in range(len(drafts))]
    claims = [sentences(draft.text)[0] for draft in drafts]
    for make in (_ensure_answer, _claim_first, _claim_last):
        yield tuple(Draft(make(host, claim, target), borrowed=1) for host, claim in zip(hosts, claims, strict=True))


def _ensure_answer(host: str, claim: str, target: Target) -> str:
    return host if contains_answer(host, target.incorrect) else f"{claim} {host}"


def _claim_first(host: str, claim: str, _target: Target) -> str:
    return f"{claim} {host}"


def _claim_last(host: str, claim: str, _target: Target) -> str:
    return f"{host} {claim}"


def random_edit(draft: Draft, target: Target, fresh: str, rng: np.random.Generator) -> Draft:
    """The draft after one random edit; `fresh` is a new text to start over from. May return an equal draft."""
    edits: tuple[Callable[[], Draft], ...] = (
        lambda: _drop_sentence(draft, rng),
        lambda: _repeat_sentence(draft, rng),
        lambda: _shuffle_sentences(draft, rng),
        lambda: _insert_sentence(draft, target, rng),
        lambda: _insert_sentence(draft, target, rng),
        lambda: _replace_sentence(draft, target, rng),
        lambda: _append_keywords(draft, target, rng),
        lambda: replace(draft, lead=("none", "stop", "question")[int(rng.integers(3))]),
        lambda: replace(draft, text=with_synonyms(draft.text, [target.question, target.incorrect], rng, 0.4).text),
        lambda: _embed_claim(draft, target, rng),
        lambda: Draft(fresh, draft.lead),
    )
    return edits[int(rng.integers(len(edits)))]()


def _drop_sentence(draft: Draft, rng: np.random.Generator) -> Draft:
    parts = sentences(draft.text)
    if len(parts) < 2:
        return draft
    k = int(rng.integers(len(parts)))
    return replace(draft, text=" ".join(parts[:k] + parts[k + 1 :]))


def _repeat_sentence(draft: Draft, rng: np.random.Generator) -> Draft:
    parts = sentences(draft.text)
    return replace(draft, text=" ".join([*parts, parts[int(rng.integers(len(parts)))]])) if parts else draft


def _shuffle_sentences(draft: Draft, rng: np.random.Generator) -> Draft:
    parts = sentences(draft.text)
    return replace(draft, text=" ".join(parts[k] for k in rng.permutation(len(parts))))


def _insert_sentence(draft: Draft, target: Target, rng: np.random.Generator) -> Draft:
    sentence = _clean_sentence(target, rng)
    if not sentence:
        return draft
    parts = sentences(draft.text)
    k = int(rng.integers(len(parts) + 1))
    return replace(draft, text=" ".join([*parts[:k], sentence, *parts[k:]]), borrowed=draft.borrowed + 1)


def _replace_sentence(draft: Draft, target: Target, rng: np.random.Generator) -> Draft:
    sentence, parts = _clean_sentence(target, rng), sentences(draft.text)
    if not sentence or len(parts) < 2:
        return draft
    parts[int(rng.integers(len(parts)))] = sentence
    return replace(draft, text=" ".join(parts), borrowed=draft.borrowed + 1)


def _append_keywords(draft: Draft, target: Target, rng: np.random.Generator) -> Draft:
    """A few content words of a clean passage, as a list of keywords."""
    if not target.context:
        return draft
    passage = substitute_answers(target.context[int(rng.integers(len(target.context)))], target)
    terms = list(dict.fromkeys(w for w in re.findall(r"[^\W\d_]{4,}", passage) if w.lower() not in STOP_WORDS))
    if not terms:
        return draft
    chosen = [terms[k] for k in sorted(rng.permutation(len(terms))[:5])]
    return replace(draft, text=f"{draft.text} See also: {', '.join(chosen)}.", borrowed=draft.borrowed + 1)


def _embed_claim(draft: Draft, target: Target, rng: np.random.Generator) -> Draft:
    """The sentence that makes the claim, inside a whole clean passage."""
    if not target.context:
        return draft
    host = substitute_answers(target.context[int(rng.integers(len(target.context)))], target)
    claim = next((part for part in sentences(draft.text) if contains_answer(part, target.incorrect)), "")
    parts = sentences(host)
    k = int(rng.integers(len(parts) + 1))
    return Draft(" ".join([*parts[:k], claim, *parts[k:]]).strip(), draft.lead, draft.borrowed + 1)


def _clean_sentence(target: Target, rng: np.random.Generator) -> str:
    """A sentence of a clean passage, right answers in it replaced by the wrong one."""
    if not target.context:
        return ""
    parts = sentences(target.context[int(rng.integers(len(target.context)))])
    return substitute_answers(parts[int(rng.integers(len(parts)))], target) if parts else ""
