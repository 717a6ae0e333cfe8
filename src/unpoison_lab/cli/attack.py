"""`unpoison attack`: add a published attack's poison to every question of a data set.

Examples:
  unpoison attack --list
  unpoison attack -a poisonedrag --count 3 sample -o attacked.jsonl
  unpoison attack -a pia --policy replace-last --k 5 sample --json | unpoison screen -d trustrag -
  unpoison attack -a hotflip -e minilm sample -o searched.jsonl
  unpoison evaluate -a published -d grada attacked.jsonl

Exit status: 0 when every question was attacked, 1 when some failed, 2 when nothing could be done.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from unpoison.cli.common import progress, say
from unpoison.cli.display import show, show_listing, text_table
from unpoison.cli.options import argument, from_here, option
from unpoison.core import registry
from unpoison.errors import InputError, OptionError
from unpoison.io.output import Writer
from unpoison.utils.plain_text import count_noun, excerpt
from unpoison.utils.threads import parallel_map
from unpoison_lab.attacks.base import Attack, Budget, PoisonText
from unpoison_lab.evaluation.examples import Example
from unpoison_lab.evaluation.grids import Grid
from unpoison_lab.evaluation.poisoning import CraftedPoison, Staged, craft_one
from unpoison_lab.evaluation.scenarios import Scenario, stand_in, takes, wording
from unpoison_lab.evaluation.workbench import Workbench

__all__ = ["attack"]

AXES = ("policy", "prefix", "k", "encoder", "generator", "seed", "limit")
"""The options that are fields of a scenario too."""

SHOWN = 20
"""Planted texts in the table."""

WORDING = {"ours": "ours", "published": "as published", "data": "the data's, else ours"}
"""Origin of the planted words, for a column."""


def attack(
    context: typer.Context,
    data: Annotated[str | None, argument("DATA", "A data file, 'sample', or any data that 'evaluate' takes.")] = None,
    name: Annotated[
        str, option("--attack -a NAME[:OPTIONS]", "The attack; --list shows all.", callback=from_here)
    ] = "poisonedrag",
    count: Annotated[int, option("N", "Poisoned texts for each question.", min=1)] = 1,
    policy: Annotated[
        str, option("POLICY", "Where the texts go: prepend, retrieve, corpus, replace-last, middle or pool.")
    ] = "prepend",
    prefix: Annotated[
        bool | None,
        option(
            "--prefix/--no-prefix",
            "Whether to prepend the question to each text. [default: as the attack's paper has it]",
        ),
    ] = None,
    k: Annotated[int, option("--k K", "Passages per question.", min=1)] = 10,
    encoder: Annotated[str, option("--encoder -e ENCODER", "For attacks that use an encoder.")] = "lexical",
    generator: Annotated[
        str | None, option("--generator -g GENERATOR", "The language model of attacks that use one.")
    ] = None,
    seed: Annotated[int, option("SEED", "Random seed of the attack.", min=0)] = 0,
    limit: Annotated[int | None, option("N", "Use the first N questions only.", min=1)] = None,
    jobs: Annotated[int, option("N", "Attack N questions at the same time.", min=1, max=64)] = 1,
    output: Annotated[Path | None, option("--output -o FILE", "Write the attacked rows to this file.")] = None,
    as_json: Annotated[bool, option("--json", "Write the attacked rows to standard output.")] = False,
    listing: Annotated[bool, option("--list", "List the attacks with their options and requirements.")] = False,
) -> None:
    """Add the poisoned passages of a published attack to every question.

    Writes rows with the passages in the order that a defense sees, poison marked. Reports how many texts reached the
    goal of the attack and what they cost. Texts that miss the goal are planted too, and counted.
    """
    if listing:
        show_listing(_attacks(), as_json=as_json, show_lines=True)
        return
    if data is None:
        raise OptionError("name the data to attack: a file, or 'sample'; --list lists the attacks")
    axes = {axis: context.params[axis] for axis in AXES}
    fixed = {"data": [data], "attack": name, "poisons": count, "defense": "vanilla", "baseline": False, "clean": False}
    scenarios = Grid.of({**axes, **fixed}).scenarios()
    if len(scenarios) != 1 or not scenarios[0].attacked:
        raise OptionError(
            f"'attack' plants one attack in one way, not -a {name} with --policy {policy}; 'evaluate' takes several"
        )
    planted: list[CraftedPoison] = []
    with (
        tempfile.TemporaryDirectory(prefix="unpoison-") as folder,
        Writer(output, data.rpartition(":")[2], to_stdout=as_json) as writer,
        progress() as advance,
    ):
        bench = Workbench(Path(folder))
        for problem in bench.data(data).problems:
            say(f"{data}: {problem}")
        questions = len(bench.examples(scenarios[0]))
        if not questions:
            raise InputError(f"{data} holds no usable question")
        for number, (one, row) in enumerate(plant(scenarios[0], bench, jobs=jobs), 1):
            advance(number, questions, f"attacking with {name}")
            planted.append(one)
            if one.error is None:
                writer.write(row)
            else:
                say(f"{one.example}: {one.error}")
    texts = [text for one in planted for text in one.texts]
    if texts and not as_json:
        show(_table(texts))
    say(_summary(planted, texts))
    failed = sum(one.error is not None for one in planted)
    raise typer.Exit(0 if not failed else 1 if failed < len(planted) else 2)


def _table(texts: Sequence[PoisonText]) -> Table:
    """The first texts, with goal and cost."""
    spent = [name for name, number in total(texts).to_dict().items() if number]
    rows = []
    for text in texts[:SHOWN]:
        goal = "reached" if text.reached else f"missed: {text.meta.get('reason', '')}"
        whole = text.text if text.title is None else f"{text.title} / {text.text}"
        costs = [str(getattr(text.budget, name)) for name in spent]
        rows.append((text.target_id, excerpt(whole, 120), excerpt(goal), *costs))
    more = len(texts) - SHOWN
    columns = ("question", "planted text", "goal", *(name.replace("_", " ") for name in spent))
    return text_table(columns, rows, box=None, caption=f"and {more:,} more" if more > 0 else None)


def _summary(planted: Sequence[CraftedPoison], texts: Sequence[PoisonText]) -> str:
    """Such as "planted 3 texts for 3 questions; 1 missed the attack's own goal; 2 llm calls"."""
    failed = sum(one.error is not None for one in planted)
    missed = sum(not text.reached for text in texts)
    return (
        f"planted {count_noun(len(texts), 'text')} for {count_noun(len(planted) - failed, 'question')}"
        + (f"; {missed:,} missed the attack's own goal" if missed else "")
        + (f"; {count_noun(failed, 'question')} failed" if failed else "")
        + "".join(f"; {number:,} {name.replace('_', ' ')}" for name, number in total(texts).to_dict().items() if number)
    )


def _attacks() -> list[dict[str, str]]:
    """Every attack with its options, needs and wording."""
    rows = []
    for name in registry.names("attacks"):
        try:
            target = registry.find("attacks", name)
            options = "\n".join(option.described for option in registry.options(target))
        except Exception as error:  # a broken third-party package must not hide the others
            rows.append({"name": name, "what it does": f"cannot be loaded: {error}"})
            continue
        rows.append(
            {
                "name": name,
                "what it does": target.summary,
                "options": options,
                "needs": ", ".join(target.needs) or "nothing",
                "of the data": ", ".join(target.requires) or "nothing",
                "wording": WORDING[target.wording],
            }
        )
    return rows


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
