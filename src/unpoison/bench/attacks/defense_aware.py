"""An attacker who knows the defense and searches, black-box, for texts that it keeps.

The method asks nothing of a defense but `screen`: it edits its texts, screens them among the passages that the
retriever would return with them, and holds on to every edit that does not make things worse. What it knows is what a
real attacker can: the question, the wrong and the right answer, the passages on the open web that will be retrieved,
and the defense as software. Report its success beside that of the unedited texts, however bad it looks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import numpy as np

from unpoison.algorithms.cosine import inner_products
from unpoison.algorithms.ranking import best_first
from unpoison.bench.attacks.base import Attack, Meter, PoisonText, Target, contains_answer, with_question
from unpoison.bench.attacks.claims import claims, template_claim
from unpoison.bench.attacks.clean_passages import substitute_answers
from unpoison.bench.attacks.options import SearchOptions
from unpoison.bench.attacks.rewriting import sentences, with_synonyms
from unpoison.core.registry import create
from unpoison.defenses.base import Defense
from unpoison.errors import OptionError
from unpoison.models.requests import Flow
from unpoison.models.sentences import STOP_WORDS
from unpoison.types import Passage
from unpoison.utils.checks import at_least

__all__ = ["DefenseAware", "Draft", "ScreenedTrial", "first_drafts", "random_edit"]

SETTLED = 25
"""Once every text is kept, the search ends after so many screenings without a better standing."""

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


@dataclass(frozen=True, slots=True)
class ScreenedTrial:
    """What one screening said of the attacker's texts.

    Attributes:
        retrieved: Whether each text was among the best `top`.
        kept: Whether each was retrieved and kept.
        standing: For each, the share of the other screened passages that the defense trusts less, in [0, 1].
    """

    retrieved: tuple[bool, ...]
    kept: tuple[bool, ...]
    standing: tuple[float, ...]

    @property
    def fitness(self) -> float:
        """Kept texts, then their standing, so that progress shows before a text crosses the line."""
        n = len(self.kept)
        return sum(self.kept) + sum(self.standing) / n + 0.1 * sum(self.retrieved) / n if n else 0.0


class DefenseAware(Attack):
    """Hill climbing against a defense, all texts of a target together.

    Edits: drop, repeat or move a sentence; borrow a sentence, a few terms or a whole passage from the clean passages,
    right answers in it replaced by the wrong one; change or drop the question in front; replace words by synonyms;
    start one text afresh. Every text keeps stating the wrong answer. The texts of one target are optimised as a set,
    because defenses judge sets.

    Args:
        defense: A `Defense` or an option string such as "grada" or "trustrag:stages=1".
        screens: The most screenings per target.
        top: How many passages the retriever returns, and the defense screens.
        min_similarity: The least similarity to the question, besides being among the best `top`.
        words: The longest text.
        encoder: The retriever's encoder.
        generator: Writes the first texts where none are published; passed to a defense given as a string.
        seed: Drives the search.
        limits: Bounds on the model calls.
    """

    name = "defense-aware"
    summary = "knows the defense and optimises its texts against the defense's verdicts"
    wording = "data"
    needs = ("encoder", "defense")
    usual_encoder = "lexical"
    uses_gold = True

    def __init__(
        self,
        defense: Defense | str | None = None,
        *,
        screens: int = 200,
        top: int = 10,
        min_similarity: float = -1.0,
        words: int = 150,
        **common: Unpack[SearchOptions],
    ) -> None:
        if isinstance(defense, str):
            models = {name: common.get(name) for name in ("encoder", "generator")}
            defense = create("defenses", defense, **models)
        if defense is not None and not isinstance(defense, Defense):
            raise OptionError(f"defense must be a Defense or a name such as 'grada', got {type(defense).__name__}")
        self.defense = defense
        super().__init__(**common)
        self.screens = at_least("screens", screens, 1)
        self.top = at_least("top", top, 1)
        self.min_similarity = min_similarity
        self.words = at_least("words", words, 10)

    def crafting(self, target: Target, count: int) -> Flow[list[PoisonText]]:
        if not count:
            return []
        bodies = yield from claims(self, target, count)
        meter, rng = Meter(sum(body.calls for body in bodies)), self.rng(target, count)
        plain = [body.text for body in bodies]
        usual = tuple(
            Draft(t if contains_answer(t, target.incorrect) else template_claim(self, target, i))
            for i, t in enumerate(plain)
        )
        first = yield from self._try(target, [with_question(target.question, draft.text) for draft in usual], meter)
        best, result = tuple(Draft(draft.text, lead="stop") for draft in usual), first
        for drafts in first_drafts(target, usual):
            if meter.defense_calls >= self.screens:
                break
            trial = yield from self._try(target, [draft.render(target) for draft in drafts], meter)
            if trial.fitness > result.fitness:
                best, result = drafts, trial
        idle = 0
        while meter.defense_calls < self.screens and not (all(result.kept) and idle >= SETTLED):
            changed = self._edit_draft(target, best, result, rng)
            if changed is None:
                break
            trial = yield from self._try(target, [draft.render(target) for draft in changed], meter)
            idle = 0 if trial.fitness > result.fitness else idle + 1
            if trial.fitness >= result.fitness:
                best, result = changed, trial
        return self._make_poisons(target, best, first, result, meter)

    def _edit_draft(
        self, target: Target, drafts: tuple[Draft, ...], result: ScreenedTrial, rng: np.random.Generator
    ) -> tuple[Draft, ...] | None:
        """The set with one text edited, more often one that is not kept; None when no edit is possible."""
        odds = np.array([1.0 if kept else 3.0 for kept in result.kept])
        for _ in range(50):
            i = int(rng.choice(len(drafts), p=odds / odds.sum()))
            fresh = template_claim(self, target, int(rng.integers(288)))
            draft = random_edit(drafts[i], target, fresh, rng)
            text = draft.render(target)
            if draft != drafts[i] and contains_answer(text, target.incorrect) and len(text.split()) <= self.words:
                return (*drafts[:i], draft, *drafts[i + 1 :])
        return None

    def _try(self, target: Target, texts: Sequence[str], meter: Meter) -> Flow[ScreenedTrial]:
        """Retrieve the best `top` of context and texts, screen them, and see what became of the texts."""
        vectors = yield from meter.encode([target.question, *target.context, *texts], "retrieval")
        similarity = inner_products(vectors[1:], vectors[0])
        order = [int(i) for i in best_first(similarity)]
        clean = len(target.context)
        order = [i for i in order if i < clean or similarity[i] >= self.min_similarity][: self.top]
        everything = [*target.context, *texts]
        assert self.defense is not None  # noqa: S101  __init__ has checked
        # The defense is a black box with models of its own, so it is run, not yielded from.
        screening = self.defense.screen(target.question, [Passage(everything[i]) for i in order])
        meter.defense_calls += 1
        scores = np.array([verdict.score for verdict in screening.verdicts])
        retrieved, kept, standing = [], [], []
        for i in range(clean, len(everything)):
            position = order.index(i) if i in order else None
            retrieved.append(position is not None)
            kept.append(position is not None and screening.verdicts[position].kept)
            others = max(len(order) - 1, 1)
            standing.append(0.0 if position is None else float((scores < scores[position]).sum()) / others)
        return ScreenedTrial(tuple(retrieved), tuple(kept), tuple(standing))

    def _make_poisons(
        self, target: Target, drafts: Sequence[Draft], first: ScreenedTrial, result: ScreenedTrial, meter: Meter
    ) -> list[PoisonText]:
        poisons = []
        for i, draft in enumerate(drafts):
            reason = ""
            if not result.retrieved[i]:
                reason = f"after {meter.defense_calls} screenings the text is not among the best {self.top}"
            elif not result.kept[i]:
                reason = f"after {meter.defense_calls} screenings {self.defense_name} still drops the text"
            meta: dict[str, Any] = {
                "defense": self.defense_name,
                "kept_before": sum(first.kept),
                "kept_after": sum(result.kept),
                "of": len(drafts),
                "borrowed": draft.borrowed,
            }
            # All texts were searched for together: the first one carries the cost.
            paid = meter if i == 0 else None
            poisons.append(self.poison(target, i, draft.render(target), reason=reason, meter=paid, **meta))
        return poisons

    @property
    def defense_name(self) -> str:
        return self.defense.name if self.defense is not None else ""


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
    stated = [sentences(draft.text)[0] for draft in drafts]
    for make in (_ensure_answer, _claim_first, _claim_last):
        yield tuple(Draft(make(host, claim, target), borrowed=1) for host, claim in zip(hosts, stated, strict=True))


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
