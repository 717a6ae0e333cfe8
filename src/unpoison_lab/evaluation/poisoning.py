"""Poison, from the attack to the context: crafted for each target, then placed by the scenario's policy.

Crafting keeps a journal, one line for each target; an error of one target is part of the result. A staged
question is the input of the defense, with the poison in place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from unpoison.core.codec import from_row, to_row
from unpoison.core.passages import Passage
from unpoison.errors import InputError, OptionError, UnpoisonError
from unpoison.io.output import Journal, read_rows
from unpoison.models.protocols import Encoder
from unpoison.utils.threads import parallel_map
from unpoison_lab.attacks.base import Attack, PoisonText, Target
from unpoison_lab.evaluation.contexts import Candidate, Context, context_from_labels, nearest
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.injection import (
    Search,
    dense_search,
    hybrid_search,
    poison_candidates,
    pool,
    prepend,
    replace_at,
    retrieve,
    retrieve_corpus,
    with_owners,
)
from unpoison_lab.evaluation.scenarios import PLACED, Scenario

__all__ = ["CraftedPoison", "Staged", "craft_all", "craft_one", "stage"]


@dataclass(frozen=True, slots=True)
class CraftedPoison:
    """The texts that an attack crafted for one target.

    Attributes:
        example: The target's id.
        texts: The poison; empty after a failure.
        error: The error, or None.
    """

    example: str
    texts: tuple[PoisonText, ...] = ()
    error: str | None = None


def craft_all(
    attack: Attack,
    targets: Mapping[str, Callable[[], Target]],
    count: int,
    path: Path,
    *,
    jobs: int = 1,
    step: Callable[[], None] = lambda: None,
) -> dict[str, CraftedPoison]:
    """Craft for every target without a text in the journal.

    Args:
        attack: Crafts.
        targets: How to make the target of each example, by its id; making it may raise `InputError`.
        count: Texts per target.
        path: The journal; one line per target, written when it is done.
        jobs: Targets at the same time.
        step: Called after each target.

    Returns:
        By the example's id.
    """
    earlier = {crafted.example: crafted for crafted in (from_row(CraftedPoison, row) for row in read_rows(path))}
    crafted = {name: new for name, new in earlier.items() if name in targets and new.error is None}
    missing = [name for name in targets if name not in crafted]
    if not missing:
        return crafted
    with Journal(path) as journal:
        for new in parallel_map(lambda name: craft_one(attack, name, targets[name], count), missing, jobs):
            journal.append(to_row(new))
            crafted[new.example] = new
            step()
    return crafted


def craft_one(attack: Attack, name: str, target: Callable[[], Target], count: int) -> CraftedPoison:
    """Craft for one target; an error is in the result.

    Raises:
        OptionError: Something that is the same for every target.
    """
    try:
        texts = tuple(attack.craft(target(), count))
    except OptionError:
        raise
    except UnpoisonError as error:
        return CraftedPoison(name, error=str(error))
    if len(texts) < count:
        return CraftedPoison(name, error=f"the attack {attack.name} made {len(texts)} of {count} texts")
    return CraftedPoison(name, texts)


@dataclass(frozen=True, slots=True)
class Staged:
    """One question as the defense sees it, with its ground truth.

    Attributes:
        context: The question as asked, and the passages in order.
        correct: The right answers.
        wanted: The replies that count as the attack's success.
        reached: How many planted texts reached the attack's own goal; None without an attack.
        shortfalls: Why the others did not.
        error: Why there is no poison although there should be; the context is empty then.
    """

    context: Context
    correct: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    reached: int | None = None
    shortfalls: tuple[str, ...] = ()
    error: str | None = None

    @property
    def example(self) -> str:
        return self.context.example

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; `from_dict` reads them back."""
        return {
            "example": self.example,
            "query": self.context.query,
            "injected": self.context.injected,
            "passages": [_row_of(candidate) for candidate in self.context.candidates],
            **{name: getattr(self, name) for name in ("correct", "wanted", "reached", "shortfalls", "error")},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read the output of `to_dict`.

        Raises:
            InputError: A field is missing or malformed.
        """
        try:
            candidates = tuple(Candidate(**{**row, "passage": Passage(**row["passage"])}) for row in values["passages"])
            context = Context(values["example"], values["query"], candidates, values["injected"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"not a saved context: {error}; pass what Staged.to_dict() wrote") from None
        return from_row(cls, values, context=context)


def stage(
    scenario: Scenario,
    examples: Sequence[Example],
    clean: Mapping[str, Context],
    corpus: Sequence[Passage] = (),
    *,
    attack: Attack | None = None,
    crafted: Mapping[str, CraftedPoison] | None = None,
    retriever: Encoder | None = None,
    known: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> list[Staged]:
    """Place the poison by the scenario's policy.

    Args:
        scenario: Policy, positions, k, and how many poisons.
        examples: The questions.
        clean: The undisturbed context of each, by the example's id.
        corpus: The clean passages, for the policy corpus.
        attack: The attack, or None.
        crafted: The texts for each question, by the example's id.
        retriever: An encoder, alone or with BM25 as the scenario says; None for BM25.
        known: For each question the established sources that an attacker may own (`injection.frequent_sources`).

    Returns:
        One for each example, in order. Where crafting or placing failed, `error` says why.

    Raises:
        InputError: The policy corpus without a corpus.
    """
    texts = crafted or {}
    poisons = {
        example.id: poison_candidates(example, texts[example.id].texts) for example in examples if texts.get(example.id)
    }
    if scenario.owned:
        poisons = {
            example.id: with_owners(
                scenario.owned, example, poisons[example.id], known.get(example.id, ()), scenario.seed
            )
            for example in examples
            if example.id in poisons
        }
    if scenario.policy == "corpus":
        if not corpus:
            raise InputError("the corpus is empty; the policy corpus retrieves from it, give one with --corpus")
        everything = [poison for own in poisons.values() for poison in own]
        retrieved = retrieve_corpus(examples, corpus, everything, scenario.k, _search(scenario, retriever))
        contexts: list[Context | InputError] = list(retrieved)
    else:
        search = _search(scenario, retriever)
        rivals = _batches(examples, poisons) if scenario.policy == "retrieve-batch" else poisons
        contexts = [_place_poison(scenario, example, clean, rivals.get(example.id, ()), search) for example in examples]
    return [
        _stage_question(example, context, attack, texts.get(example.id), triggered=scenario.triggered)
        for example, context in zip(examples, contexts, strict=True)
    ]


BATCH = 10
"""Questions whose poison competes at the same time in PoisonedRAG's released code (its option M)."""


def _batches(examples: Sequence[Example], poisons: Mapping[str, Sequence[Candidate]]) -> dict[str, Sequence[Candidate]]:
    """For each question the poison of its ten, in the order of the questions."""
    every: dict[str, Sequence[Candidate]] = {}
    for start in range(0, len(examples), BATCH):
        ten = examples[start : start + BATCH]
        together = [poison for example in ten for poison in poisons.get(example.id, ())]
        every |= {example.id: together for example in ten}
    return every


def _search(scenario: Scenario, retriever: Encoder | None) -> Search:
    """The scenario's retriever; BM25 counts the words of the texts at hand alone, as in GRADA's code."""
    if retriever is None:
        return nearest
    return hybrid_search(retriever) if scenario.retriever.startswith("hybrid:") else dense_search(retriever)


def _place_poison(
    scenario: Scenario, example: Example, clean: Mapping[str, Context], poisons: Sequence[Candidate], search: Search
) -> Context | InputError:
    if scenario.policy == "labelled":
        return context_from_labels(example)
    context = clean[example.id]
    if scenario.policy == "retrieve-batch":
        own = sum(poison.target == example.id for poison in poisons)
        return replace(retrieve(context, poisons, search, scenario.k), injected=own)
    poisons, size = poisons[: scenario.poisons], len(context)
    count = len(poisons)
    places = {  # replace-last: TrustRAG's PIA, RobustRAG's default; middle: GRADA, Table 5
        "replace-last": range(size - count, size),
        "middle": range(size // 2, size // 2 + count),
    }
    try:
        if scenario.policy in (*places, *PLACED):
            named = [position - 1 for position in scenario.positions[:count]]
            append = scenario.policy == "replace-or-append"
            return replace_at(context, poisons, places.get(scenario.policy, named), append=append)
        if scenario.policy == "retrieve":
            return retrieve(context, poisons, search, scenario.k)
        return pool(context, poisons) if scenario.policy == "pool" else prepend(context, poisons, scenario.k)
    except InputError as error:  # a context too short for the position
        return error


def _stage_question(
    example: Example,
    context: Context | InputError,
    attack: Attack | None,
    crafted: CraftedPoison | None,
    *,
    triggered: bool,
) -> Staged:
    error = str(context) if isinstance(context, InputError) else crafted.error if crafted else None
    empty = Context(example.id, example.question, ())
    if isinstance(context, InputError) or error is not None:
        return Staged(empty, example.correct_answers, example.incorrect_answers, error=error)
    if attack is None or crafted is None:
        return Staged(context, example.correct_answers, example.incorrect_answers)
    query = attack.user_question(context.query) if triggered else context.query
    shown = replace(context, query=query, candidates=_format_candidates(context, attack.passage_format))
    return Staged(
        shown,
        example.correct_answers,
        _target_answers(crafted.texts),
        sum(text.reached for text in crafted.texts),
        tuple(str(text.meta.get("reason", "")) for text in crafted.texts if not text.reached),
    )


def _target_answers(texts: Sequence[PoisonText]) -> tuple[str, ...]:
    """The replies that any of the texts calls a success."""
    return tuple(dict.fromkeys(str(answer) for text in texts for answer in text.meta.get("answers", ())))


def _format_candidates(context: Context, form: str) -> tuple[Candidate, ...]:
    if form == "{text}":
        return context.candidates
    return tuple(
        replace(
            candidate,
            passage=replace(candidate.passage, text=form.format(number=number, text=candidate.passage.text)),
        )
        for number, candidate in enumerate(context.candidates, 1)
    )


def _row_of(candidate: Candidate) -> dict[str, Any]:
    passage = candidate.passage
    values = {name: getattr(passage, name) for name in ("text", "id", "title", "source")}
    known = {name: value for name, value in values.items() if value is not None}
    row: dict[str, Any] = {"passage": known | ({"metadata": dict(passage.metadata)} if passage.metadata else {})}
    if candidate.poison:
        row |= {"poison": True, "target": candidate.target}
    return row | ({"gold": True} if candidate.gold else {})
