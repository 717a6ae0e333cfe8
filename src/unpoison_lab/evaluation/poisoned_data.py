"""A poisoned data set, row by row, in the shared format, for `unpoison attack`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import partial
from typing import Any

from unpoison.errors import OptionError
from unpoison.utils.threads import parallel_map
from unpoison_lab.attacks.base import Attack, Budget, PoisonText
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.poisoning import CraftedPoison, Staged, craft_one
from unpoison_lab.evaluation.scenarios import Scenario, stand_in, takes, wording
from unpoison_lab.evaluation.workbench import Workbench

__all__ = ["plant", "total"]


def plant(scenario: Scenario, bench: Workbench, *, jobs: int = 1) -> Iterator[tuple[CraftedPoison, dict[str, Any]]]:
    """Attack the questions of a scenario.

    Args:
        scenario: Data, attack, policy, k.
        bench: The models.
        jobs: Questions at the same time.

    Yields:
        For each question, in the order of the data set, its texts or why there are none, and its row in the shared
        format with the poison in place, empty after a failure. As soon as it is known; with the policies retrieve-batch
        and corpus, where the poison of other questions competes, when everything is crafted.

    Raises:
        OptionError: A scenario without an attack, or an option or model that the attack cannot work with.
    """
    if not scenario.attacked:
        raise OptionError("there is nothing to plant: give an attack, at least one text, and a policy but 'labelled'")
    attack, examples = bench.attack(scenario), bench.examples(scenario)
    crafting = parallel_map(partial(_craft, scenario, bench, attack), examples, jobs)
    if scenario.policy in ("retrieve-batch", "corpus"):
        crafted = list(crafting)
        staged = bench.stage_questions(scenario, examples, attack, {texts.example: texts for texts in crafted})
        for example, texts, question in zip(examples, crafted, staged, strict=True):
            yield _poisoned(scenario, example, question, texts, attack)
        return
    for example, texts in zip(examples, crafting):
        (question,) = bench.stage_questions(scenario, [example], attack, {example.id: texts})
        yield _poisoned(scenario, example, question, texts, attack)


def total(texts: Iterable[PoisonText]) -> Budget:
    """The total cost of some texts."""
    budgets = [text.budget for text in texts]
    return Budget(*(sum(getattr(budget, field.name) for budget in budgets) for field in fields(Budget)))


def _craft(scenario: Scenario, bench: Workbench, attack: Attack, example: Example) -> CraftedPoison:
    return craft_one(attack, example.id, partial(bench.target, scenario, attack, example), scenario.poisons)


def _poisoned(
    scenario: Scenario, example: Example, staged: Staged, crafted: CraftedPoison, attack: Attack
) -> tuple[CraftedPoison, dict[str, Any]]:
    if staged.error is not None:
        return CraftedPoison(example.id, error=staged.error), {}
    row: dict[str, Any] = {
        **example.extra,
        "id": example.id,
        "dataset": example.dataset,
        "question": staged.context.query,
        "correct_answers": list(example.correct_answers),
        "incorrect_answers": list(staged.wanted or example.incorrect_answers),
        "passages": [],
    }
    if staged.context.query != example.question:
        row["question_before_attack"] = example.question
    for rank, candidate in enumerate(staged.context.candidates, 1):
        passage = candidate.passage
        fields: dict[str, Any] = {"id": passage.id or f"{example.id}#{rank}", "text": passage.text, "rank": rank}
        fields |= {name: value for name in ("title", "source") if (value := getattr(passage, name)) is not None}
        fields |= {name: value for name, value in passage.metadata.items() if name not in fields}
        fields["label"] = "poison" if candidate.poison else "gold" if candidate.gold else "clean"
        if candidate.poison:
            fields["attack"] = attack.name
        row["passages"].append(fields)
    row["planted"] = {
        "attack": attack.name,
        "made": _origin(scenario, crafted),
        "texts": len(crafted.texts),
        "in_context": len(staged.context.poison),
        "reached": staged.reached,
        "shortfalls": list(staged.shortfalls),
        "budget": total(crafted.texts).to_dict(),
    }
    return crafted, row


def _origin(scenario: Scenario, crafted: CraftedPoison) -> dict[str, Any]:
    """The provenance of a row's texts: the attack with its options, the writer, and the models."""
    sources = sorted({str(text.meta["source"]) for text in crafted.texts if text.meta.get("source")})
    origin: dict[str, Any] = {"attack": scenario.attack, "seed": scenario.seed, "sources": sources}
    if label := wording(scenario.attack):
        origin["wording"] = label
    if takes("attacks", scenario.attack, "generator"):
        origin["generator"] = scenario.generator
    if takes("attacks", scenario.attack, "encoder"):
        origin["encoder"] = scenario.target_encoder
    return origin | ({"stand_in": instead} if (instead := stand_in(scenario)) else {})
